"""Spark as engine: workers encode and count their part of the rows, and only counts reach the driver.

All packed tables are counted by one job of SQL expressions, so workers need Spark and nothing else. A columnar source
is scanned for each packed table, every time only its own columns; another source is read once, and each row gives one
key for every table (``docs/decisions.md`` 6 says why).

Spark's log stays silent while we count: when a job fails, it quotes the row that made it fail. Three logs may quote
it: that of Spark in the Java of this process, that of PySpark in Python, and those of executors on other machines. The
first two are held back for as long as a job of ours runs, in a caller's own session too, and are then as before.
Executors of a session of our own are told to be silent when they start. Those of a caller's cluster write to the
cluster's own files, which are as private as the tables that it reads.
"""

from __future__ import annotations

import hashlib
import logging
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import numpy as np
import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from dpbayes.base.checks import Ints
from dpbayes.base.errors import TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.duckdb import DuckDBEngine
from dpbayes.tables.encoding import SEARCHED, SPARK, key_expressions, missing_code
from dpbayes.tables.engine import (
    Column,
    Engine,
    Kind,
    PackedTable,
    check_column,
    check_names,
    check_schema,
    needed,
    pack,
    split,
    unpack,
)
from dpbayes.tables.sources import PATIENCE, FileSource, file_source, parquet_names, private_folder

_guard = threading.Lock()
_silent: dict[str, tuple[int, Callable[[], None]]] = {}  # for each log: how many jobs need silence, and its end


@contextmanager
def silence(session: SparkSession | None) -> Iterator[None]:
    """No line in any log that this process can reach, of anything that runs meanwhile."""
    logs: dict[str, Callable[[], Callable[[], None]]] = {"python": _hold_back_python}
    if session is not None and (virtual_machine := _virtual_machine(session)) is not None:
        logs["java"] = lambda: _hold_back_java(virtual_machine)
    with _guard:
        for name, hold_back in logs.items():
            jobs, end = _silent.get(name) or (0, hold_back())
            _silent[name] = (jobs + 1, end)
    try:
        yield
    finally:
        with _guard:
            for name in reversed(logs):  # the bridge to Java falls silent first and speaks last
                jobs, end = _silent.pop(name)
                if jobs > 1:
                    _silent[name] = (jobs - 1, end)
                else:
                    end()


def _hold_back_python() -> Callable[[], None]:
    """PySpark tells why a query failed, and at the level DEBUG its bridge to Java tells everything that crosses it."""

    def nothing(_: logging.LogRecord) -> bool:
        return False

    known = logging.Logger.manager.loggerDict
    bridge = [logging.getLogger(name) for name in list(known) if name.partition(".")[0] == "py4j"]
    loggers = [PySparkLogger.getLogger("SQLQueryContextLogger"), *bridge]
    for logger in loggers:
        logger.addFilter(nothing)

    def end() -> None:
        for logger in loggers:
            logger.removeFilter(nothing)

    return end


def _hold_back_java(virtual_machine: Any) -> Callable[[], None]:
    """A filter before all loggers, whatever their levels; taken away, everything is as it was."""
    log4j = virtual_machine.org.apache.logging.log4j
    outcome = log4j.core.Filter.Result
    configuration = log4j.LogManager.getContext(False).getConfiguration()
    nothing = log4j.core.filter.ThresholdFilter.createFilter(log4j.Level.OFF, outcome.NEUTRAL, outcome.DENY)
    configuration.addFilter(nothing)

    def end() -> None:
        configuration.removeFilter(nothing)

    return end


def _virtual_machine(session: SparkSession) -> Any:
    """The Java that runs the driver, or None: a session of Spark Connect has it elsewhere, with its log."""
    try:
        return session.sparkContext._jvm
    except (PySparkException, AttributeError):
        return None


warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # none is used here

_NO_LOG = Path(__file__).with_name("log4j2.properties").as_uri()
_MUTE = "-Dlog4j2.level=OFF -Dlog4j2.configurationFile=none"
"""Executors log nothing from their first line on: not by a file of theirs, which names a level, but by this one.

A level that the driver sends reaches only those that run already, and Spark forgets it when it sets up its log again.
"""
_QUIET = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_NO_LOG}",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""For sessions of our own: logs and bars would break the sentences we print, and logs and pages may quote rows."""


class SparkEngine:
    """Counts a table that Spark can read; ``columnar`` if reading some of its columns costs only those."""

    def __init__(self, frame: DataFrame, *, columnar: bool = False) -> None:
        fields = frame.schema.fields
        check_names([field.name for field in fields])
        self._types = {field.name: field.dataType.simpleString() for field in fields}
        self._column = {name: f"x{number}" for number, name in enumerate(self._types)}
        self._frame = frame.toDF(*self._column.values())  # by position: no name needs quoting from here on
        self._columnar = columnar

    @classmethod
    def of_path(cls, session: SparkSession, source: FileSource) -> Engine:
        """Parquet files, at any address that this Spark can read. CSV files are read here, as everywhere, by DuckDB.

        They have to be in reach of this process anyway, Spark reads each in one task, and it skips empty lines, which
        are records of a table with one column.
        """
        if source.format == "csv":
            return DuckDBEngine.of_file(source)
        if source.format != "parquet":
            raise TableError("Table: Spark reads .csv, .tsv and .parquet files. Leave the engine out for DuckDB files.")
        if not source.remote:
            check_names(parquet_names(source))
        reading = session.read.options(mergeSchema=True)  # compares the types in all files, without reading rows
        return cls(reading.parquet(*([source.path] if source.remote else source.files)), columnar=True)

    def columns(self) -> tuple[Column, ...]:
        """Names and types. Reads no rows."""
        return tuple(Column(name, SPARK.kind(column_type)) for name, column_type in self._types.items())

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals from one job."""
        attributes = needed(schema, marginals)
        check_schema(schema, self.columns(), [attribute.name for attribute in attributes])
        tables = pack(schema, marginals)
        codes = {attribute.name: f"c{number}" for number, attribute in enumerate(attributes)}
        with _own_words(self._frame.sparkSession):
            rows = self._coded(attributes, schema.person)
            if schema.person is not None:
                rows = _bounded(rows, list(codes.values()), schema.unit)
            cells = _counted(rows, tables, codes, passes=self._columnar and schema.person is None)
        return unpack(schema, marginals, tables, split(tables, cells))

    def values(self, column: str, unit: Unit, person: str | None = None) -> dict[str, int]:
        """The texts in a column that are not missing, and their rows."""
        check_column(column, self.columns())
        selected = [f"{SPARK.text(self._column[column], self._types[column])} AS c0"]
        if person is not None:
            check_column(person, self.columns(), "person")
            selected.append(f"{self._person(person)} AS p")
        with _own_words(self._frame.sparkSession):
            rows = self._frame.selectExpr(*selected)
            kept = rows if person is None else _bounded(rows, ["c0"], unit)
            found = kept.where("c0 IS NOT NULL").groupBy("c0").count().toArrow()
        return dict(zip(found["c0"].to_pylist(), found["count"].to_pylist(), strict=True))

    def fingerprint(self, columns: Sequence[str]) -> str:
        """The number of rows and the sum of their hashes, hashed; comparable within one version of Spark."""
        for column in columns:
            check_column(column, self.columns())
        hashed = ", ".join(f"{self._column[column]}, isnull({self._column[column]})" for column in columns)
        total = f"CAST(sum(CAST(xxhash64({hashed}) AS DECIMAL(38, 0))) AS STRING)"
        with _own_words(self._frame.sparkSession):
            found = [tuple(row) for row in self._frame.selectExpr("count(*)", total).collect()]
        return f"spark-{pyspark.__version__}:{hashlib.sha256(repr((list(columns), found)).encode()).hexdigest()}"

    def _person(self, person: str) -> str:
        return SPARK.text(self._column[person], self._types[person])

    def _coded(self, attributes: Sequence[Attribute], person: str | None) -> DataFrame:
        """Rows of the codes c0, c1, …, and of the person p; a long list is a small table, sent to every worker."""
        types = [self._types[attribute.name] for attribute in attributes]
        values = [
            f"{SPARK.value(self._column[attribute.name], column_type, attribute)} AS v{number}"
            for number, (attribute, column_type) in enumerate(zip(attributes, types, strict=True))
        ]
        people = [] if person is None else [f"{self._person(person)} AS p"]
        rows = self._frame.selectExpr(*values, *people)
        codes = []
        for number, (attribute, column_type) in enumerate(zip(attributes, types, strict=True)):
            value, last, missing = f"v{number}", len(attribute.level_of_code), missing_code(attribute)
            if len(attribute.texts) > SEARCHED and SPARK.kind(column_type) is not Kind.NUMBER:
                pairs = [(text, code) for code, text in enumerate(attribute.texts, 1)]
                listed = rows.sparkSession.createDataFrame(pairs, f"t{number} STRING, l{number} INT")
                rows = rows.join(sql.broadcast(listed), sql.expr(f"{value} = t{number}"), "left")
                codes.append(f"coalesce(l{number}, CASE WHEN {value} IS NULL THEN {missing} ELSE {last} END)")
            else:
                codes.append(SPARK.code(value, column_type, attribute))
        numbered = [f"CAST({code} AS INT) AS c{number}" for number, code in enumerate(codes)]
        return rows.selectExpr(*numbered, *(["p"] if people else []))


def _bounded(rows: DataFrame, codes: Sequence[str], unit: Unit) -> DataFrame:
    """Of each person p at most ``max_rows`` rows, those with the smallest hashes, as in every engine."""
    joined = ", ".join(["p", *(f"CAST({code} AS STRING)" for code in codes)])
    place = f"row_number() OVER (PARTITION BY p ORDER BY md5(CAST(concat_ws(',', {joined}) AS BINARY)))"
    placed = rows.where("p IS NOT NULL").selectExpr(*codes, f"{place} AS place")
    return placed.where(f"place <= {unit.max_rows}").select(*codes)


def _counted(rows: DataFrame, tables: Sequence[PackedTable], codes: Mapping[str, str], *, passes: bool) -> Ints:
    """The cells of all tables: workers add up their own rows first, so what they exchange is bounded by the cells."""
    keys = key_expressions(tables, codes)
    if passes:
        counted = [rows.selectExpr(f"{key} AS key").groupBy("key").count() for key in keys]
        found = reduce(DataFrame.union, counted).toArrow()
    else:
        found = rows.selectExpr(f"explode(array({', '.join(keys)})) AS key").groupBy("key").count().toArrow()
    cells = np.zeros(sum(table.size for table in tables), dtype=np.int64)
    cells[found["key"].to_numpy()] = found["count"].to_numpy()
    return cells


def open_source(source: object) -> Engine:
    """The engine for an address, a path, a DataFrame, or a pair of a session and a table's name or path."""
    if isinstance(source, (str, PathLike)):
        with _own_words():
            return _of_address(str(source))
    if isinstance(source, tuple) and len(source) == 2 and hasattr(source[0], "createDataFrame"):
        with _own_words(source[0]):
            return _of_name(source[0], str(source[1]))
    if hasattr(source, "sparkSession"):
        with _own_words(source.sparkSession):
            return SparkEngine(source)
    raise TableError("Table: Spark counts a path, a DataFrame, or a pair (session, 'table or path').")


def _of_address(address: str) -> Engine:
    """``spark://host:7077?path=…`` or ``?table=…``, or a path; options ``spark.…`` configure a new session."""
    form = re.fullmatch(r"(?P<place>.+?)(\?(?P<options>[\w.]+=[^?]*))?", address, re.DOTALL)
    place, query = (form["place"], form["options"] or "") if form else ("", "")
    options = dict(parse_qsl(query, keep_blank_values=True))
    configured = {name: options.pop(name) for name in list(options) if name.startswith("spark.")}
    master = place if place.startswith("spark://") else None
    name = options.pop("table", None) or (options.pop("path", "") if master else place)
    if not name:
        raise TableError("Table: expected spark://host:7077?path=/data/people.parquet, or ?table=people.")
    rest = "&".join(f"{option}={quote(value)}" for option, value in options.items())
    return _of_name(_session(master, configured), f"{name}?{rest}" if rest else name)


def _of_name(session: SparkSession, name: str) -> Engine:
    """Files by the end of their name; anything else is a table or view of the session's catalogue."""
    if re.search(r"\.(csv|tsv)(\.gz)?(\?.*)?$|\.(parquet|pq)(\?.*)?$|[/\\*]", name, re.DOTALL):
        return SparkEngine.of_path(session, file_source(name))
    stored = session.catalog.getTable(name).tableType in ("MANAGED", "EXTERNAL")
    return SparkEngine(session.table(name), columnar=stored)


def _session(master: str | None, options: Mapping[str, str]) -> SparkSession:
    """The session that runs already, or a new one of our own."""
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None and active.sparkContext.master != master:
            raise TableError("Table: this process runs another Spark session. Pass that one, or stop it first.")
        return active
    if master is not None:
        _check_reachable(master)
    builder = SparkSession.builder.appName("dpbayes")
    private = {"spark.local.dir": str(private_folder() / "spark")}
    executors = "spark.executor.extraJavaOptions"
    muted = {executors: f"{options.get(executors, '')} {_MUTE}".strip()}
    for name, value in {**_QUIET, **private, **options, **muted}.items():
        builder = builder.config(name, value)
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # of this process; executors are mute from the start
    return session


def _check_reachable(master: str) -> None:
    """Spark itself waits a minute for its master, and then goes on without."""
    for host, _, port in (place.rpartition(":") for place in master.removeprefix("spark://").split(",")):
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE):
            return
    raise TableError("Table: the Spark master does not answer. Check its address, as in spark://host:7077.")


_FAULTS = {
    "JAVA_GATEWAY|JAVA_HOME": "Spark needs Java 17 or newer. Install it, and set JAVA_HOME if it is not found.",
    "PATH_NOT_FOUND": "there is no file at its path. Check the path; every worker must be able to read it.",
    "TABLE_OR_VIEW_NOT_FOUND": "this Spark has no such table. Check its name, or give the path of files.",
    "MERGE_SCHEMA|MERGE_INCOMPATIBLE|DATA_TYPE_MISMATCH": "its files do not have the same types. Convert them to one.",
    "AccessControl|Permission denied|FORBIDDEN": "reading it is not permitted. Check the permissions of the files.",
    "OutOfMemory|MaxResultSize": "memory ran out. Ask for fewer cells, or give Spark more memory.",
    "MALFORMED|FAILED_READ_FILE|NOT_A_PARQUET|is not a Parquet": "it is damaged, or not in the format that its name "
    "says. Check that it is complete, that every row has all the columns, and that its text is UTF-8.",
    "Connection refused|shut down|stopped|unresponsive|cancelled": "Spark stopped while it counted. Try again.",
}
"""Conditions and classes that Spark names in its messages, and what we say instead."""


@contextmanager
def _own_words(session: SparkSession | None = None) -> Iterator[None]:
    """Replace messages of Spark, which quote rows, by a sentence for each kind of error; its logs say nothing."""
    with silence(session):  # also while we look at the error, which asks Java for its text
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError, EOFError, pa.ArrowException) as problem:
            said = str(problem)
            told = (text for pattern, text in _FAULTS.items() if re.search(pattern, said, re.IGNORECASE))
            otherwise = "Spark could not count it. Check that it can be read there."
            raise TableError(f"Table: {next(told, otherwise)}") from None
