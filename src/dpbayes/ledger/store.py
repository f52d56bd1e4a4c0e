"""Where ledgers live: three tables in an SQLite file or a PostgreSQL database.

A writer holds the only write lock of its data set from before it reads until its commit is on disk, so no two
charges are weighed against the same balance.

SQLite keeps its default rollback journal: between commits the ledger is one plain file that can be copied, and read
from read-only media, while a write-ahead log would leave charges in a second file. With that journal only
``synchronous=EXTRA`` promises that a commit survives a power cut.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, insert, inspect, make_url, select, update
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from dpbayes.errors import LedgerError, MissingExtra
from dpbayes.ledger.entry import FORMAT
from dpbayes.ledger.faults import NO_LEDGER, told
from dpbayes.ledger.replay import too_new
from dpbayes.ledger.tables import LEDGER, META

PATIENCE = 60
"""Seconds to wait for another writer: longer than pricing a long history takes."""

CREATION = 0x64706C67
"""Two creators at once would collide in PostgreSQL's catalogue: they queue at this advisory lock."""


class Store:
    """One database, given as a file path or a PostgreSQL URL."""

    def __init__(self, where: str | Path) -> None:
        url = _url(where)
        if url is None:
            self.path: Path | None = Path(where).absolute()
            self._engine = _file(self.path)
            self.name = str(where)
        else:
            self.path = None
            self._engine = _server(url)
            self.name = f"postgresql://{url.host or ''}/{url.database or ''}"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent look at the tables, without a write lock."""
        begin = "BEGIN" if self.path else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        with self._transaction(begin) as connection:
            self._check_format(connection)
            yield connection

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends, or leaves no trace; it may make the tables first."""
        if self.path and create:
            with told(self.name):  # a new file is its owner's only: the fingerprints in it are private
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._transaction(*self._begin_writing()) as connection:
            if create:
                self._create(connection)
            if self._check_format(connection) < FORMAT:  # from now on older programs would misread what is written
                connection.execute(update(LEDGER).values(format=FORMAT))
            yield connection
            connection.commit()

    def _begin_writing(self) -> tuple[str, ...]:
        if self.path:
            return ("BEGIN IMMEDIATE",)
        return (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",  # after waiting for a lock, look afresh
            "SET LOCAL synchronous_commit TO on",
            f"SET LOCAL lock_timeout TO '{PATIENCE}s'",
        )

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[Connection]:
        with told(self.name):
            if self.path and not self.path.is_file():
                raise LedgerError(f"Ledger: {self.name} is not there. Create it with `dpbayes ledger init`.")
            with self._engine.connect() as connection:
                for statement in begin:
                    connection.exec_driver_sql(statement)
                yield connection

    def _create(self, connection: Connection) -> None:
        if not self.path:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION})")
        if not inspect(connection).has_table(LEDGER.name):
            META.create_all(connection)
            connection.execute(insert(LEDGER).values(format=FORMAT))

    def _check_format(self, connection: Connection) -> int:
        versions = connection.scalars(select(LEDGER.c.format)).all()
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
            raise LedgerError(f"Ledger: {self.name} {NO_LEDGER}")
        if versions[0] > FORMAT:
            raise too_new()
        return versions[0]


def _url(where: str | Path) -> URL | None:
    """The URL of a server, or ``None`` for a file."""
    if isinstance(where, Path) or "://" not in where:
        return None
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.get_backend_name() != "postgresql":
        raise LedgerError("Ledger: expected a file path, or a URL that begins with postgresql://.")
    return url.set(drivername="postgresql+psycopg")


def _file(path: Path) -> Engine:
    def connect() -> sqlite3.Connection:
        """Autocommit, so that transactions begin where this module says; ``mode=rw`` never creates a file."""
        uri = f"{path.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        connection.execute("PRAGMA synchronous=EXTRA")
        connection.execute("PRAGMA fullfsync=ON")
        return connection

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _server(url: URL) -> Engine:
    try:
        return create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 10})
    except ModuleNotFoundError as problem:
        raise MissingExtra("Ledger: a PostgreSQL ledger needs psycopg. Install dpbayes[postgres].") from problem
