"""One connection to a ledger's database, SQLite or PostgreSQL, in SQL that both understand; and to its witness.

Faults are told in one sentence with the remedy; the driver's own text, which may hold a password, stays out.

A witness is a second file or database that receives the last entry of every chain of a ledger. Whoever can write the
file of a ledger can put an older copy back, and charges are forgotten. A ledger that is behind its witness, or went
another way, is refused. Its address is in the ledger, and in all copies of it.

An entry goes to the witness after it is on disk in the ledger, and before anyone is told of it. So a process that dies
in between leaves a ledger that is ahead, which whoever opens it next makes up for, and never one that is behind. The
witness is read before the ledger, so that a charge that comes between the two does not look like a loss.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpbayes.base import files
from dpbayes.base.errors import InvalidArgument, LedgerError, MissingExtra

PATIENCE = 60
"""Seconds to wait for another writer: longer than pricing a long history takes."""


class Connection:
    """Statements with ``?`` where values go. What is not committed when it is closed never was."""

    def __init__(self, raw: Any, *, file: Path | None = None) -> None:
        self._raw = raw
        self._file = file
        self.server = file is None
        """Whether it is PostgreSQL, which has row locks."""

    @classmethod
    def to_file(cls, path: Path) -> Connection:
        """Autocommit, so that transactions begin where ``store`` says; ``mode=rw`` never creates a file."""
        raw = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
        made = cls(raw, file=path)
        made.execute("PRAGMA synchronous=EXTRA")  # it looks at the file, and so may have to wait
        made.execute("PRAGMA fullfsync=ON")
        return made

    @classmethod
    def to_server(cls, address: str) -> Connection:
        """The first statement begins a transaction; a server has ten seconds to answer."""
        return cls(_psycopg().connect(address, connect_timeout=10))

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        """Run a statement; what it returns can be iterated."""
        text = statement.replace("?", "%s") if self.server else statement
        return self._patiently(lambda: self._raw.execute(text, tuple(values)))

    def scalar(self, statement: str, values: Sequence[object] = ()) -> Any:
        """The first value of the first row, or None."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def has(self, table: str) -> bool:
        """Whether there is such a table."""
        there = "to_regclass(?)::text" if self.server else "name FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.scalar(f"SELECT {there}", [table]) is not None

    def commit(self) -> None:
        """Keep what was written; it is on disk when this returns."""
        self._patiently(self._raw.commit)

    def stamp(self, dataset: str, serial: int) -> str:
        """Changes whenever anybody writes entries up to this one: times of a file, writers of rows; or is empty."""
        if self._file is None:
            query = "SELECT count(*), sum(xmin::text::numeric), max(xmin::text::numeric) FROM dpbayes_entries "
            found = self.execute(f"{query} WHERE dataset = ? AND serial <= ?", [dataset, serial]).fetchone()
            return " ".join(map(str, found))
        if self.scalar("PRAGMA journal_mode") != "delete":  # else there may be entries in another file
            return ""
        now = self._file.stat()
        return f"{now.st_dev} {now.st_ino} {now.st_size} {now.st_mtime_ns} {now.st_ctime_ns}"

    def seal(self, dataset: str, serial: int, *, commit: bool = False) -> str:
        """A stamp that no later writing leaves as it is, after a commit or not; empty if others may have written."""
        # on a server the stamp is already that of the commit; of a file, data_version changes when others commit
        before = self.stamp(dataset, serial) if self.server else self.scalar("PRAGMA data_version")
        if commit:
            self.commit()
        if self.server:
            return str(before)
        with suppress(sqlite3.Error):  # a charge stands, whether or not it can be remembered
            found = self.stamp(dataset, serial)
            time.sleep(0.02)  # systems count the times of files in steps of up to 10 ms
            if (found, before) == (self.stamp(dataset, serial), self.scalar("PRAGMA data_version")):
                return found
        return ""

    def _patiently(self, work: Callable[[], Any]) -> Any:
        """Wait for other writers, but not where there are no locks, which SQLite takes for locks that others hold."""
        try:
            return work()
        except sqlite3.OperationalError as problem:
            if self._file is None or problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            if files.lacks_locks(self._file.parent):
                raise OSError(errno.ENOLCK, files.NO_LOCKS) from None
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
def explain_faults(name: str) -> Iterator[None]:
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


POINTER = "CREATE TABLE dpbayes_witnesses (address VARCHAR NOT NULL, id VARCHAR NOT NULL)"
SEEN = (
    "CREATE TABLE IF NOT EXISTS dpbayes_witness (id VARCHAR NOT NULL, dataset VARCHAR NOT NULL, "
    "serial INTEGER NOT NULL, hash VARCHAR NOT NULL, PRIMARY KEY (id, dataset, serial))"
)
HEADS = (
    "SELECT e.dataset, e.serial, e.hash FROM dpbayes_entries e JOIN dpbayes_datasets d "
    "ON e.dataset = d.dataset AND e.hash = d.head "
    "WHERE e.serial = (SELECT max(serial) FROM dpbayes_entries l WHERE l.dataset = d.dataset)"
)

Heads = dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Witness:
    """Where it is, and the id under which it knows the ledger."""

    address: str
    id: str

    @classmethod
    def of(cls, connection: Connection) -> Witness | None:
        """That of a ledger, if it has one. Nothing is under way on the connection before or after."""
        found = cls._named(connection)
        if connection.server:
            connection.commit()
        return found

    @classmethod
    def _named(cls, connection: Connection) -> Witness | None:
        if not connection.has("dpbayes_witnesses"):
            return None
        found = connection.execute("SELECT address, id FROM dpbayes_witnesses").fetchone()
        return found and cls(*map(str, found))

    @classmethod
    def create(cls, address: str) -> Witness:
        """A new one, for a ledger that is opened; it is there when this returns."""
        if "://" in address and urlsplit(address).password:
            raise InvalidArgument(
                "Ledger: expected the address of a witness without a password, since the ledger keeps it. "
                "Put the password into a .pgpass file."
            )
        if "://" not in address:
            address = str(Path(address).absolute())
            with explain_faults(address):
                os.close(os.open(address, os.O_CREAT | os.O_RDWR, 0o600))
        witness = cls(address, secrets.token_hex(16))
        with witness._opened() as connection:
            connection.execute(SEEN)
            connection.commit()
        return witness

    def keep(self, connection: Connection) -> None:
        """Write into a ledger that this is its witness; another one stays."""
        known = Witness._named(connection)
        if known is None:
            connection.execute(POINTER)
            if connection.server:  # it holds no password, and analysts tell the witness too
                connection.execute("GRANT SELECT ON dpbayes_witnesses TO PUBLIC")
            connection.execute("INSERT INTO dpbayes_witnesses (address, id) VALUES (?, ?)", [self.address, self.id])
        elif known.address != self.address:
            raise LedgerError(f"Ledger: its witness is {known.address!r} already, and stays so. Leave --witness out.")

    def last(self) -> Heads:
        """The last entry of each data set that it has seen."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT dataset, serial, hash FROM dpbayes_witness WHERE id = ? ORDER BY serial", [self.id]
            ).fetchall()
        return {dataset: (serial, hashed) for dataset, serial, hashed in rows}

    def compare(self, connection: Connection, seen: Heads, name: str) -> None:
        """Refuse a ledger that lacks what the witness saw before it was opened; then tell it what is new."""
        for dataset, (serial, hashed) in seen.items():
            query = "SELECT hash FROM dpbayes_entries WHERE dataset = ? AND serial = ?"
            if connection.scalar(query, [dataset, serial]) != hashed:
                raise self._behind(name, dataset, serial)
        found = heads(connection)
        if not seen and any(serial > 0 for serial, _ in found.values()):  # it saw the first entry before the second
            raise LedgerError(f"Ledger: {self.address}, the witness of {name}, has forgotten it. Put the witness back.")
        self.note({dataset: head for dataset, head in found.items() if seen.get(dataset) != head}, name)

    def note(self, new: Heads, name: str) -> None:
        """Tell it these last entries; what is told stays."""
        if not new:
            return
        with self._opened() as connection:
            for dataset, (serial, hashed) in new.items():
                insert = "INSERT INTO dpbayes_witness (id, dataset, serial, hash) VALUES (?, ?, ?, ?)"
                connection.execute(f"{insert} ON CONFLICT DO NOTHING", [self.id, dataset, serial, hashed])
                query = "SELECT hash FROM dpbayes_witness WHERE id = ? AND dataset = ? AND serial = ?"
                if connection.scalar(query, [self.id, dataset, serial]) != hashed:
                    raise self._behind(name, dataset, serial)
            connection.commit()

    @contextmanager
    def _opened(self) -> Iterator[Connection]:
        server = "://" in self.address
        with explain_faults(f"{self.address}, the witness,"):
            if not server and not Path(self.address).is_file():
                raise LedgerError(f"Ledger: its witness {self.address} is not there. Put it back.")
            opened = Connection.to_server(self.address) if server else Connection.to_file(Path(self.address))
            with closing(opened) as connection:
                if not server:
                    connection.execute("BEGIN")
                yield connection

    def _behind(self, name: str, dataset: str, serial: int) -> LedgerError:
        return LedgerError(
            f"Ledger: {name} is an older copy, or a copy that went another way: its witness {self.address} has seen "
            f"another entry {serial} of {dataset!r}. Put the newest copy back; if that is lost, open a new ledger with "
            "what it had left."
        )


def heads(connection: Connection) -> Heads:
    """The last entry of each data set of a ledger."""
    return {dataset: (serial, hashed) for dataset, serial, hashed in connection.execute(HEADS)}
