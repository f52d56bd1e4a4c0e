"""The embedded engine: DuckDB encodes the needed columns, NumPy counts packed tables of codes."""

# ruff: noqa: S608 - queries are text; every name and value in them is quoted.

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from dpbayes.base.checks import Ints
from dpbayes.base.errors import TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts, SparseCounts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables import sources
from dpbayes.tables.encoding import DUCKDB, identifier
from dpbayes.tables.engine import Column, add_rows, check_column, check_names, check_schema, needed, pack, unpack
from dpbayes.tables.mending import copies
from dpbayes.tables.sources import FileSource, arrow_table, csv_header, file_source, one_table, parquet_names

_KEPT_ROWS = "dpbayes_kept_rows"
_SORTED_ROWS = 2**21

T = TypeVar("T")
Relation = Callable[[Mapping[str, Attribute | None]], str]  # what to read FROM for columns, and as which attributes


class _DamagedError(TableError): ...


@dataclass(frozen=True, slots=True)
class _Field:
    """A column as DuckDB sees it: its name, its type, and the expression that reads it."""

    name: str
    type: str
    expression: str


class DuckDBEngine:
    """Counts a table that DuckDB can read: files, tables in memory, or a table of an open connection.

    >>> people = DuckDBEngine.of_memory({"sex": ["F", "M", "F"]})
    >>> people.columns()
    (Column(name='sex', kind=<Kind.TEXT: 'text'>),)
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: Relation,
        fields: Sequence[_Field],
        mended: Callable[[], Relation] | None = None,
    ) -> None:
        self._connection = connection
        self._relation = relation
        self._mended = mended  # gives what to read instead, where lines cannot be read
        self._fields = {field.name: field for field in fields}

    @classmethod
    def of_file(cls, source: FileSource) -> DuckDBEngine:
        """CSV or Parquet files, or a table of a DuckDB file, opened for reading only."""
        if source.format == "database":
            return cls.of_connection(_connect(source.path), source.options.get("table", ""))
        connection = _connect()
        if source.format == "csv":
            return cls._of_csv(connection, source)
        check_names(parquet_names(source))
        paths = [source.path] if source.remote else source.files
        reading = f"read_parquet([{', '.join(DUCKDB.literal(path) for path in paths)}])"
        fields = _described(connection, reading)
        if source.remote:
            return cls(connection, lambda _: reading, fields)

        def converted(columns: Mapping[str, Attribute | None]) -> str:
            with _own_words():
                rows = pyarrow.parquet.read_table(list(source.files), columns=list(columns))
            connection.register("rows_in_memory", arrow_table(rows, columns))
            return "rows_in_memory"

        return cls(connection, lambda _: reading, fields, lambda: converted)

    @classmethod
    def of_memory(cls, table: object) -> DuckDBEngine:
        """An Arrow, pandas or polars table; only the needed columns are converted."""
        connection = _connect()
        empty = arrow_table(table, rows=False)
        check_names(empty.column_names)

        def relation(columns: Mapping[str, Attribute | None]) -> str:
            connection.register("table_in_memory", arrow_table(table, columns))
            return "table_in_memory"

        connection.register("empty_table", empty)
        return cls(connection, relation, _described(connection, "empty_table"))

    @classmethod
    def of_connection(cls, connection: duckdb.DuckDBPyConnection, table: str) -> DuckDBEngine:
        """A table or view of an open connection; ``schema.table`` where the name alone is not enough.

        If the connection has DuckDB's own setting for the folder it spills to, it gets a private one instead.
        """
        _spill_privately(connection)
        with _own_words():
            known = connection.execute(
                "SELECT DISTINCT table_schema, table_name FROM information_schema.tables"
            ).fetchall()
        relation = ".".join(identifier(part) for part in one_table(table, known))
        return cls(connection, lambda _: relation, _described(connection, relation))

    @classmethod
    def _of_csv(cls, connection: duckdb.DuckDBPyConnection, source: FileSource) -> DuckDBEngine:
        """Everything is read as text, so that no type is guessed from rows; an empty field is missing."""
        if source.remote:
            raise TableError("Table: CSV files are read from local paths only. Copy it, or use Parquet.")
        check_names(names := csv_header(source))
        types = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(len(names)))
        delimiter = source.options["delimiter"]
        options = f"columns={{{types}}}, auto_detect=false, header=true, nullstr='', quote='\"', escape='\"'"

        def reading(files: Sequence[str]) -> str:
            return f"read_csv([{', '.join(map(DUCKDB.literal, files))}], {options}, delim={DUCKDB.literal(delimiter)})"

        def copied() -> Relation:
            folder = sources.private_folder() / f"csv-{secrets.token_hex(8)}"
            weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
            relation = reading(copies(source.files, delimiter, len(names), folder))
            return lambda _: relation

        fields = [_Field(name, "VARCHAR", f"c{position}") for position, name in enumerate(names)]
        mended = cache(copied)  # in one column a value of "\r" beside a line end would make one record more
        engine = cls(connection, lambda x: mended()(x) if len(names) == 1 else reading(source.files), fields, copied)
        return engine

    def columns(self) -> tuple[Column, ...]:
        """Names and types. Reads no rows."""
        return tuple(Column(field.name, DUCKDB.kind(field.type)) for field in self._fields.values())

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals from one scan of the columns they need."""
        return self._readable(lambda: self._counted(schema, marginals))

    def _counted(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        attributes = needed(schema, marginals)
        check_schema(schema, self.columns(), [attribute.name for attribute in attributes])
        tables = pack(schema, marginals)
        counted = [np.zeros(table.size, dtype=np.int64) for table in tables]
        with closing(self._batches_of(schema, attributes)) as batches:
            for batch in batches:
                codes = {axis.name: _codes(batch.column(number)) for number, axis in enumerate(attributes)}
                for table, cells in zip(tables, counted, strict=True):
                    add_rows(cells, table, codes)
        return unpack(schema, marginals, tables, counted)

    def occupied(self, schema: Schema, marginal: Marginal) -> SparseCounts:
        """The occupied cells of a marginal whose table may be far too wide to list."""
        shape = marginal.shape(schema)
        with closing(self.codes(schema, marginal.names)) as batches:
            rows = (np.stack([levels[name] for name in marginal.names], axis=1) for levels in batches)
            return SparseCounts.total((SparseCounts.of_rows(shape, levels) for levels in rows), shape)

    def codes(self, schema: Schema, names: Sequence[str]) -> Generator[dict[str, Ints]]:
        """Batches of records, for each attribute the positions among its levels."""
        check_schema(schema, self.columns(), names)
        axes = [schema[name] for name in names]
        level_of = [np.array((0, *axis.level_of_code), dtype=np.int64) for axis in axes]  # codes count from one
        if self._mended is not None:  # what was handed out cannot be taken back
            texts = ", ".join(f"count({self._fields[name].expression})" for name in names)
            self._readable(lambda: self._fetched(f"SELECT {texts} FROM {self._relation(dict.fromkeys(names))}"))
        with closing(self._batches_of(schema, axes)) as batches:
            for batch in batches:
                yield {
                    name: table[_codes(batch.column(number))]
                    for number, (name, table) in enumerate(zip(names, level_of, strict=True))
                }

    def values(self, column: str, unit: Unit, person: str | None = None) -> dict[str, int]:
        """The texts in a column that are not missing, and their rows."""
        check_column(column, self.columns())
        if person is not None:
            check_column(person, self.columns(), "person")
        field = self._fields[column]
        read = {column: None}, [DUCKDB.text(field.expression, field.type)], ["v0"], unit, person
        counted = "SELECT c0, count(*) FROM ({}) WHERE c0 IS NOT NULL GROUP BY c0"
        return dict(self._readable(lambda: self._fetched(counted.format(self._rows(*read)))))

    def fingerprint(self, columns: Sequence[str]) -> str:
        """The number of rows and the sum of their hashes, hashed; comparable within one DuckDB version."""
        for column in columns:
            check_column(column, self.columns())
        read = ", ".join(self._fields[column].expression for column in columns)
        query = f"SELECT count(*), sum(hash({read})::HUGEINT) FROM "
        found = self._readable(lambda: self._fetched(query + self._relation(dict.fromkeys(columns))))
        digest = hashlib.sha256(repr((list(columns), found)).encode()).hexdigest()
        return f"duckdb-{duckdb.__version__}:{digest}"

    def _readable(self, work: Callable[[], T]) -> T:
        """Do it; where a value cannot be read, again and from now on from a copy in which every one can."""
        with suppress(*([_DamagedError] if self._mended else [])):
            return work()
        with _own_words():
            self._relation, self._mended = cast(Callable[[], Relation], self._mended)(), None
        return work()

    def _codes_query(self, schema: Schema, attributes: Sequence[Attribute], people: str = "true") -> str:
        """The codes of each row, counted from one, as c0, c1, …"""
        fields = [self._fields[attribute.name] for attribute in attributes]
        described = list(enumerate(zip(attributes, fields, strict=True)))
        return self._rows(
            {attribute.name: attribute for attribute in attributes},
            [DUCKDB.value(field.expression, field.type, attribute) for _, (attribute, field) in described],
            [_narrow_code(f"v{number}", field.type, attribute) for number, (attribute, field) in described],
            schema.unit,
            schema.person,
            people,
        )

    def _rows(
        self,
        columns: Mapping[str, Attribute | None],
        values: Sequence[str],
        codes: Sequence[str],
        unit: Unit,
        person: str | None,
        people: str = "true",
    ) -> str:
        """Rows of c0, c1, …, computed from v0, v1, …; of each person at most ``max_rows`` of them.

        Which rows of a person are kept depends on that person's rows alone, through a hash, so the bound
        holds and every engine keeps the same ones. Rows that name no person are nobody's and left out.
        """
        value_list = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
        code_list = ", ".join(f"{code} AS c{number}" for number, code in enumerate(codes))
        if person is None:
            return f"SELECT {code_list} FROM (SELECT {value_list} FROM {self._relation(columns)})"
        field = self._fields[person]
        relation = self._relation({**columns, person: None})
        known = f"{field.expression} IS NOT NULL"
        texts = f"SELECT {DUCKDB.text(field.expression, field.type)} AS p, {value_list} FROM {relation}"
        names = ", ".join(f"c{number}" for number in range(len(codes)))
        return (
            f"SELECT {names} FROM (SELECT p, {code_list} FROM ({texts} WHERE {known}) WHERE {people}) "
            f"QUALIFY row_number() OVER (PARTITION BY p ORDER BY md5(concat_ws(',', p, {names}))) <= {unit.max_rows}"
        )

    def _batches(self, query: str, at_once: int = 2**17) -> Generator[pa.RecordBatch]:
        """Batches of rows of a running query; the next one is read while this one is counted."""
        with ExitStack() as at_the_end, _cancellable(self._connection) as start:
            reader = start(lambda: self._connection.sql(query).to_arrow_reader(at_once)).result()
            at_the_end.callback(reader.close)
            following = start(lambda: next(reader, None))
            while (batch := following.result()) is not None:
                following = start(lambda: next(reader, None))
                yield batch

    def _batches_of(self, schema: Schema, attributes: Sequence[Attribute]) -> Generator[pa.RecordBatch]:
        """The rows that count; with people, some of these at a time, since sorting by person holds rows in memory.

        Each part goes through a temporary table: a sort cannot stream, nor be cancelled if it did.
        """
        if schema.person is None:
            yield from self._batches(self._codes_query(schema, attributes))
            return
        rows = f"SELECT count(*) FROM {self._relation({attribute.name: attribute for attribute in attributes})}"
        parts = 1 + self._fetched(rows)[0][0] // _SORTED_ROWS
        try:
            for part in range(parts):
                query = self._codes_query(schema, attributes, people=f"hash(p) % {parts} = {part}")
                self._fetched(f"CREATE OR REPLACE TEMP TABLE {_KEPT_ROWS} AS {query}")
                yield from self._batches(f"FROM {_KEPT_ROWS}")
        finally:
            self._connection.execute(f"DROP TABLE IF EXISTS {_KEPT_ROWS}")

    def _fetched(self, query: str) -> list[tuple[Any, ...]]:
        with _cancellable(self._connection) as start:
            return cast(list[tuple[Any, ...]], start(lambda: self._connection.execute(query).fetchall()).result())


def open_source(source: object) -> DuckDBEngine:
    """The engine for a path, a table in memory, or a pair of an open connection and a table's name."""
    if isinstance(source, (str, PathLike)):
        return DuckDBEngine.of_file(file_source(str(source)))
    if isinstance(source, tuple):
        return DuckDBEngine.of_connection(*source)
    return DuckDBEngine.of_memory(source)


def _narrow_code(value: str, column_type: str, attribute: Attribute) -> str:
    code_type = "UTINYINT" if len(attribute.level_of_code) < 2**8 else "UINTEGER"
    return f"CAST({DUCKDB.code(value, column_type, attribute)} AS {code_type})"


def _codes(column: pa.Array) -> NDArray[np.unsignedinteger]:
    """The numbers in place. Arrow's own conversion would import pandas, and swallow a Ctrl-C while it does."""
    return cast("NDArray[np.unsignedinteger]", np.from_dlpack(column))


def _connect(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A connection of our own: rows in any order, nothing printed, spilled to a private folder; files are only read."""
    in_memory = path == ":memory:"
    # Connections to one file share their settings, so they must agree on the folder; others must not share it.
    name = secrets.token_hex(8) if in_memory else hashlib.sha256(os.fsencode(Path(path).resolve())).hexdigest()[:16]
    folder = sources.private_folder() / f"duckdb-{name}"
    settings = {"temp_directory": str(folder), "max_temp_directory_size": f"{sources.room()}B"}
    with _own_words():
        try:
            connection = duckdb.connect(path, read_only=not in_memory, config=settings)
            return connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        except duckdb.ConnectionException:
            raise TableError(
                "Table: this process has the database open already. Pass the open one, as in (connection, 'people')."
            ) from None


def _spill_privately(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a caller's connection spill to a private folder, unless the caller chose one.

    DuckDB's own choice is a folder next to the database, or in the current folder, that everyone can read. It cannot be
    changed once something was spilled, nor changed back.
    """
    with _own_words():
        chosen = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
        paths = connection.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    if chosen not in {".tmp", *(f"{path}.tmp" for (path,) in paths)}:
        return
    folder = sources.private_folder() / f"duckdb-{secrets.token_hex(8)}"
    try:
        connection.execute(f"SET GLOBAL temp_directory = {DUCKDB.literal(str(folder))}")
    except duckdb.Error:
        raise TableError(
            "Table: this connection spills rows to a folder that others may read, and that cannot be changed any more. "
            "Set its temp_directory to a private folder right after opening it."
        ) from None


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> list[_Field]:
    with _own_words():
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return [_Field(name, str(kind), identifier(name)) for name, kind, *_ in described]


@contextmanager
def _cancellable(connection: duckdb.DuckDBPyConnection) -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Runs queries in a second thread, so that Ctrl-C reaches this one, which then cancels them."""
    with _own_words(), ThreadPoolExecutor(max_workers=1) as thread:
        try:
            yield thread.submit
        except (KeyboardInterrupt, GeneratorExit):
            connection.interrupt()
            raise


@contextmanager
def _own_words() -> Iterator[None]:
    """Replace the messages of DuckDB and Arrow, which quote rows, by a sentence for each class of error."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError):
        raise TableError("Table: memory ran out. Ask for fewer cells, or free some memory.") from None
    except (duckdb.PermissionException, PermissionError):
        raise TableError("Table: reading it is not permitted. Check the permissions of the file.") from None
    except duckdb.HTTPException:
        raise TableError("Table: its address did not answer. Check the address and the credentials.") from None
    except (duckdb.Error, pa.ArrowException, RuntimeError, OSError, EOFError, zlib.error) as problem:
        # Arrow passes on what goes wrong in the middle of a file as an OSError without a number.
        if isinstance(problem, duckdb.IOException) or getattr(problem, "errno", None) is not None:
            raise TableError("Table: it cannot be read. Check that it exists, is complete and is not locked.") from None
        raise _DamagedError(
            "Table: it is damaged, or not in the format that its name says. Check that it is complete, "
            "that every row has all the columns, and that its text is UTF-8."
        ) from None
