"""One connection to a ledger's database: SQLite or PostgreSQL, spoken to in SQL that both understand.

Its faults are told in one sentence with the remedy; the driver's own text, which may hold a password, stays out.
"""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpbayes.domain import durable
from dpbayes.errors import LedgerError, MissingExtra

PATIENCE = 60
"""Seconds to wait for another writer: longer than pricing a long history takes."""

ANSWER = 10
"""Seconds to wait for a server."""


class Connection:
    """Statements with ``?`` where values go. What is not committed when it is closed never was."""

    def __init__(self, raw: Any, *, folder: Path | None = None) -> None:
        self._raw = raw
        self._folder = folder
        self.server = folder is None
        """Whether it is PostgreSQL, which has row locks."""

    @classmethod
    def to_file(cls, path: Path) -> Connection:
        """Autocommit, so that transactions begin where ``store`` says; ``mode=rw`` never creates a file."""
        raw = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
        made = cls(raw, folder=path.parent)
        made.execute("PRAGMA synchronous=EXTRA")  # it looks at the file, and so may have to wait
        made.execute("PRAGMA fullfsync=ON")
        return made

    @classmethod
    def to_server(cls, address: str) -> Connection:
        """The first statement begins a transaction."""
        return cls(_psycopg().connect(address, connect_timeout=ANSWER))

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        """Run a statement; what it returns can be iterated."""
        text = statement.replace("?", "%s") if self.server else statement
        return self._patiently(lambda: self._raw.execute(text, tuple(values)))

    def scalar(self, statement: str, values: Sequence[object] = ()) -> Any:
        """The first value of the first row, or None."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def commit(self) -> None:
        """Keep what was written; it is on disk when this returns."""
        self._patiently(self._raw.commit)

    def _patiently(self, work: Callable[[], Any]) -> Any:
        """Wait for other writers, but not where there are no locks, which SQLite takes for locks that others hold."""
        try:
            return work()
        except sqlite3.OperationalError as problem:
            if self._folder is None or problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            if durable.lacks_locks(self._folder):
                raise OSError(errno.ENOLCK, durable.NO_LOCKS) from None
        self._raw.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")
        return work()

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


LOCKED = "is locked by another process. Try again when that one has finished."
READ_ONLY = "is read-only. Ask for permission to write it (for a file, also to its folder)."
FULL = "cannot be written: the disk is full or failing. Draw nothing on this charge; make room and try again."
DAMAGED = "is damaged. Restore the last good copy, and check that it holds every release published since."
NO_LEDGER = "is not a dpbayes ledger. Check the name, or create one with `dpbayes ledger init`."
CLOSED = "cannot be opened. Check the name and the permissions."
UNREACHABLE = (
    "does not answer. Check the address and that the server runs; a charge that was on its way may have been kept."
)
REFUSED = "refuses this user. Check name, password and permissions."

SQLITE = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_FULL": FULL,
    "SQLITE_IOERR": FULL,
    "SQLITE_NOTADB": NO_LEDGER,
    "SQLITE_ERROR": NO_LEDGER,  # no such table
    "SQLITE_CANTOPEN": CLOSED,
    "SQLITE_PERM": CLOSED,
    "SQLITE_AUTH": CLOSED,
}
"""Primary result codes; extended ones begin with the same words. Anything else is damage."""

POSTGRESQL = {
    "55P03": LOCKED,
    "40P01": LOCKED,
    "25006": READ_ONLY,
    "53100": FULL,
    "58030": FULL,
    "XX": DAMAGED,
    "42P01": NO_LEDGER,  # no such table
    "3D000": NO_LEDGER,  # no such database
    "42501": REFUSED,
    "DP001": "refuses this charge: by the database's own price it is above the limit. Ask for less, or ask the data "
    "owner to make it.",
    "DP002": "refuses this charge: the database cannot price it, and this kind of charge needs the owner's role.",
    "DP003": "refuses this charge until the data owner has set the limit again with this version of dpbayes.",
    "28": REFUSED,
}
"""SQLSTATE codes or classes; anything else is a server that went away."""


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn any fault of the database called ``name`` into a LedgerError."""
    try:
        yield
    except OSError as problem:
        reason = f"cannot be used: {problem.strerror}." if problem.errno == errno.ENOLCK else CLOSED
        raise LedgerError(f"Ledger: {name} {reason}") from problem
    except UnicodeError as problem:  # of a damaged text
        raise LedgerError(f"Ledger: {name} {DAMAGED}") from problem
    except Exception as problem:
        if not isinstance(problem, sqlite3.Error) and type(problem).__module__.partition(".")[0] != "psycopg":
            raise
        raise LedgerError(f"Ledger: {name} {_reason(problem)}") from problem


def _reason(original: Exception) -> str:
    if isinstance(original, sqlite3.Error):
        table, code, otherwise = SQLITE, getattr(original, "sqlite_errorname", ""), DAMAGED
    else:
        table, code, otherwise = POSTGRESQL, _state(original), UNREACHABLE
    return next((text for start, text in table.items() if code.startswith(start)), otherwise)


def _state(original: Exception) -> str:
    """The SQLSTATE; of a connection that a server refuses there is none, only the server's line."""
    said = str(original)
    if known := getattr(original, "sqlstate", None):
        return str(known)
    if re.search(r'FATAL: +database ".*" does not exist', said):
        return "3D000"
    return "28000" if re.search("FATAL: .*(authentication|pg_hba|role|permission)", said) else ""
