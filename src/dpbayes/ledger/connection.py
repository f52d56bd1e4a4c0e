"""One connection to a ledger's database: SQLite or PostgreSQL, spoken to in SQL that both understand."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpbayes.errors import MissingExtra

PATIENCE = 60
"""Seconds to wait for another writer: longer than pricing a long history takes."""

ANSWER = 10
"""Seconds to wait for a server."""


class Connection:
    """Statements with ``?`` where values go. What is not committed when it is closed never was."""

    def __init__(self, raw: Any, *, server: bool) -> None:
        self._raw = raw
        self.server = server
        """Whether it is PostgreSQL, which has row locks."""

    @classmethod
    def to_file(cls, path: Path) -> Connection:
        """Autocommit, so that transactions begin where ``store`` says; ``mode=rw`` never creates a file."""
        raw = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
        raw.execute("PRAGMA synchronous=EXTRA")
        raw.execute("PRAGMA fullfsync=ON")
        return cls(raw, server=False)

    @classmethod
    def to_server(cls, address: str) -> Connection:
        """The first statement begins a transaction."""
        return cls(_psycopg().connect(address, connect_timeout=ANSWER), server=True)

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        """Run a statement; what it returns can be iterated."""
        return self._raw.execute(statement.replace("?", "%s") if self.server else statement, tuple(values))

    def scalar(self, statement: str, values: Sequence[object] = ()) -> Any:
        """The first value of the first row, or None."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def commit(self) -> None:
        """Keep what was written; it is on disk when this returns."""
        self._raw.commit()

    def close(self) -> None:
        """Forget what was not committed."""
        self._raw.close()


def check_driver() -> None:
    """Refuse a server while its driver is not installed."""
    _psycopg()


def _psycopg() -> Any:
    try:
        import psycopg
    except ModuleNotFoundError as problem:
        raise MissingExtra("Ledger: a PostgreSQL ledger needs psycopg. Install dpbayes[postgres].") from problem
    return psycopg
