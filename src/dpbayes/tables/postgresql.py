"""The database as engine: PostgreSQL encodes and counts in one statement, and only counts leave it.

Each row has one key for every packed table, and one parallel GROUP BY counts all keys in one pass
(``docs/decisions.md`` 6 compares this with other ways to write it).
"""

# ruff: noqa: S608 - queries are text; every name and value in them is quoted.

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import psycopg

from dpbayes.base.checks import Ints
from dpbayes.base.errors import TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.encoding import POSTGRESQL, SEARCHED, identifier, key_expressions, missing_code
from dpbayes.tables.engine import (
    Column,
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
from dpbayes.tables.sources import PATIENCE, one_table

_TABLES = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_COLUMNS = """
    SELECT a.attname, CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.typtype = 'd'
        THEN format_type(t.typbasetype, t.typtypmod) ELSE format_type(a.atttypid, a.atttypmod) END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = CAST(%s AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
        AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    ORDER BY a.attnum
"""

_COPIED = np.dtype([("fields", ">i2"), ("", ">i4"), ("key", ">i8"), ("", ">i4"), ("rows", ">i8")])
"""What COPY sends in binary for a row of two bigint: a header of 19 bytes, 26 a row, and two of -1 at the end."""

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows to count: SQL to read FROM, and for each attribute its code as an expression over them."""

    relation: str
    codes: Mapping[str, str]


class PostgreSQLEngine:
    """Counts a table or view of a PostgreSQL database."""

    def __init__(self, session: Callable[[], AbstractContextManager[Connection]], table: str) -> None:
        self._session = session
        with self._transaction() as connection:
            known = connection.execute(_TABLES).fetchall()
            visible = connection.execute(_TABLES + " AND pg_table_is_visible(c.oid)").fetchall()
            names = [name for _, name in visible]
            schema, name = one_table(table, visible if table in names else known)
            relation = f"{identifier(schema)}.{identifier(name)}"
            self._types: dict[str, str] = dict(connection.execute(_COLUMNS, [relation]).fetchall())
            self._relation = f"{relation} AS t"
        if not self._types:
            raise TableError(f"Table: this user may not read {table!r}. Ask its owner to grant SELECT on it.")
        check_names(list(self._types))

    @classmethod
    def of_address(cls, address: str) -> PostgreSQLEngine:
        """``postgresql://user@host/db?table=people``; other options are those of libpq."""
        base, _, query = address.partition("?")
        options = dict(parse_qsl(query))
        table = options.pop("table", "")
        if not base.startswith(("postgresql://", "postgres://")) or not table:
            raise TableError("Table: expected an address like postgresql://user@host/database?table=people.")
        options.setdefault("connect_timeout", str(PATIENCE))
        conninfo = f"{base}?{urlencode(options)}"
        return cls(lambda: _connected(conninfo), table)

    @classmethod
    def of_connection(cls, connection: object, table: str) -> PostgreSQLEngine:
        """A table of an open psycopg connection, or of an SQLAlchemy engine or connection that uses psycopg."""
        if isinstance(connection, psycopg.Connection):
            return cls(lambda: nullcontext(connection), table)
        return cls(lambda: _borrowed(connection), table)

    def columns(self) -> tuple[Column, ...]:
        """Names and types of the columns that may be read. Reads no rows."""
        return tuple(Column(name, POSTGRESQL.kind(column_type)) for name, column_type in self._types.items())

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals from one statement."""
        attributes = needed(schema, marginals)
        check_schema(schema, self.columns(), [attribute.name for attribute in attributes])
        tables = pack(schema, marginals)
        rows = self._coded(attributes)
        if schema.person is not None:
            rows = self._bounded(rows, schema.person, schema.unit)
        keys = ", ".join(key_expressions(tables, rows.codes))
        query = (
            f"SELECT key, count(*) FROM (SELECT unnest(ARRAY[{keys}]) AS key FROM {rows.relation}) AS keys GROUP BY key"
        )
        return unpack(schema, marginals, tables, self._counted(query, tables))

    def values(self, column: str, unit: Unit, person: str | None = None) -> dict[str, int]:
        """The texts in a column that are not missing, and their rows."""
        check_column(column, self.columns())
        text = POSTGRESQL.text(_column(column), self._types[column])
        rows = _Rows(self._relation, {column: text})
        if person is not None:
            check_column(person, self.columns(), "person")
            rows = self._bounded(rows, person, unit)
        query = f"SELECT v, count(*) FROM (SELECT {rows.codes[column]} AS v FROM {rows.relation}) AS texts"
        with self._transaction() as connection:
            return dict(connection.execute(f"{query} WHERE v IS NOT NULL GROUP BY v").fetchall())

    def fingerprint(self, columns: Sequence[str]) -> str:
        """The number of rows and the sum of their hashes, hashed; comparable within one version of PostgreSQL."""
        for column in columns:
            check_column(column, self.columns())
        texts = ", ".join(POSTGRESQL.text(_column(column), self._types[column]) for column in columns)
        row_hash = f"hashtextextended(CAST(ROW({texts}) AS text), 0)"
        with self._transaction() as connection:
            found = connection.execute(f"SELECT count(*), sum({row_hash}) FROM {self._relation}").fetchall()
            version = connection.info.server_version // 10_000
        counted = [(int(rows), int(total or 0)) for rows, total in found]
        return f"postgresql-{version}:{hashlib.sha256(repr((list(columns), counted)).encode()).hexdigest()}"

    def _coded(self, attributes: Sequence[Attribute]) -> _Rows:
        """Codes inline, so that workers compute them; a long list is a small table, joined by hash."""
        relation, codes = self._relation, {}
        for number, attribute in enumerate(attributes):
            column_type = self._types[attribute.name]
            value = POSTGRESQL.value(_column(attribute.name), column_type, attribute)
            if len(attribute.texts) > SEARCHED and POSTGRESQL.kind(column_type) is not Kind.NUMBER:
                listed = ", ".join(
                    f"({POSTGRESQL.literal(text)}, {code})" for code, text in enumerate(attribute.texts, 1)
                )
                relation += f" LEFT JOIN (VALUES {listed}) AS l{number} (listed, code) ON {value} = l{number}.listed"
                last, missing = len(attribute.level_of_code), missing_code(attribute)
                codes[attribute.name] = (
                    f"coalesce(l{number}.code, CASE WHEN {value} IS NULL THEN {missing} ELSE {last} END)"
                )
            else:
                codes[attribute.name] = POSTGRESQL.code(value, column_type, attribute)
        return _Rows(relation, codes)

    def _bounded(self, rows: _Rows, person: str, unit: Unit) -> _Rows:
        """Of each person at most ``max_rows`` rows, those with the smallest hashes, as in every engine."""
        named = {name: f"c{number}" for number, name in enumerate(rows.codes)}
        codes = ", ".join(f"{code} AS {named[name]}" for name, code in rows.codes.items())
        column = _column(person)
        people = POSTGRESQL.text(column, self._types[person])
        row_hash = f"md5(convert_to(concat_ws(',', p, {', '.join(named.values())}), 'UTF8'))"
        place = f'row_number() OVER (PARTITION BY p ORDER BY {row_hash} COLLATE "C")'
        known = f"SELECT {people} AS p, {codes} FROM {rows.relation} WHERE {column} IS NOT NULL"
        placed = f"SELECT *, {place} AS place FROM ({known}) AS known"
        return _Rows(f"(SELECT * FROM ({placed}) AS placed WHERE place <= {unit.max_rows}) AS kept", named)

    def _counted(self, query: str, tables: Sequence[PackedTable]) -> list[Ints]:
        """Run the query and add up what it sends, block by block: memory holds the cells, whatever the rows."""
        cells = np.zeros(sum(table.size for table in tables), dtype=np.int64)
        copied = f"COPY ({query}) TO STDOUT (FORMAT binary)"
        with self._transaction() as connection, connection.cursor() as cursor, cursor.copy(copied) as copy:
            blocks = iter(copy)
            left = bytes(next(blocks))[19:]  # the server sends the header with the first row
            while more := b"".join(islice(blocks, 2**16)):
                left += more
                found = np.frombuffer(left, dtype=_COPIED, count=len(left) // _COPIED.itemsize)
                cells[found["key"]] = found["rows"]
                left = left[found.nbytes :]
        return split(tables, cells)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with _own_words(), self._session() as connection, connection.transaction():
            yield connection


def open_source(source: object) -> PostgreSQLEngine:
    """The engine for an address, or for a pair of an open connection and a table's name."""
    if isinstance(source, str):
        return PostgreSQLEngine.of_address(source)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return PostgreSQLEngine.of_connection(*source)
    raise TableError("Table: a connection needs the name of a table. Pass the pair (connection, 'people').")


def _column(name: str) -> str:
    return f"t.{identifier(name)}"


@contextmanager
def _connected(conninfo: str) -> Iterator[Connection]:
    """A connection of our own, which cannot write."""
    try:
        connection = psycopg.connect(conninfo)
    except psycopg.OperationalError as problem:
        # The severity that servers report; a host that cannot be reached has none.
        answered = "FATAL" in str(problem)
        raise TableError(_REFUSED if answered else _SILENT) from None
    except psycopg.Error:
        raise TableError("Table: its address is not one of PostgreSQL. Check its host, port and options.") from None
    with connection:
        connection.read_only = True
        yield connection


@contextmanager
def _borrowed(pool: Any) -> Iterator[Connection]:
    """The psycopg connection under an SQLAlchemy engine (given back at the end) or connection."""
    stranger = TableError(f"Table: a {type(pool).__name__} is not a connection to PostgreSQL that can be read.")
    try:
        from sqlalchemy import Connection as Borrowed
        from sqlalchemy import Engine as Pool
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise stranger from None
    if not isinstance(pool, (Borrowed, Pool)):
        raise stranger
    try:
        with pool.connect() if isinstance(pool, Pool) else nullcontext(pool) as borrowed:
            connection = borrowed.connection.driver_connection
            if not isinstance(connection, psycopg.Connection):
                raise TableError("Table: open the SQLAlchemy engine with the driver postgresql+psycopg.")
            yield connection
    except SQLAlchemyError:
        raise TableError(_SILENT) from None


_SILENT = "Table: its database does not answer. Check the address and that the server runs."
_REFUSED = "Table: its database refuses this user. Check the user, the password and the name of the database."
_FAULTS = {
    "42501": "Table: reading it is not permitted. Ask its owner to grant SELECT on it.",
    "42P01": "Table: it is no longer there. Check the name of the table.",
    "42703": "Table: its columns have changed since it was opened. Open it again.",
    "57014": "Table: counting was cancelled by the server. Ask for a longer statement_timeout.",
    "22": "Table: it holds a value that its type does not allow. Repair the table, or cast the column.",
    "28": _REFUSED,
    "53": "Table: the database ran out of memory, disk or connections. Try again later, or ask for fewer cells.",
    "08": "Table: the database stopped answering. Try again when the server runs.",
    "57P": "Table: the database was stopped while it counted. Try again when the server runs.",
}
"""SQLSTATE codes or classes; an error without one is a connection that broke."""


@contextmanager
def _own_words() -> Iterator[None]:
    """Replace messages of the database, which may quote a row or a password, by a sentence for each kind of error."""
    try:
        yield
    except psycopg.Error as problem:
        code = problem.sqlstate or "08"
        otherwise = "Table: the database could not count it. Check that it is a table or view that can be read."
        raise TableError(next((text for start, text in _FAULTS.items() if code.startswith(start)), otherwise)) from None
