"""Where ledgers live: three tables in an SQLite file or a PostgreSQL database.

A writer holds the only write lock of its data set from before it reads until its commit is on disk, so no two
charges are weighed against the same balance.

SQLite keeps its default rollback journal: between commits the ledger is one plain file that can be copied, and read
from read-only media, while a write-ahead log would leave charges in a second file. With that journal only
``synchronous=EXTRA`` promises that a commit survives a power cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from dpbayes.errors import LedgerError
from dpbayes.ledger import tables
from dpbayes.ledger.account import too_new
from dpbayes.ledger.connection import NO_LEDGER, PATIENCE, Connection, check_driver, told
from dpbayes.ledger.entry import FORMAT, too_old
from dpbayes.ledger.witness import Witness, heads

CREATION = 0x64706C67
"""Two that change the tables at once would collide in PostgreSQL's catalogue: they queue at this advisory lock."""


class Store:
    """One database, given as a file path or a PostgreSQL URL."""

    def __init__(self, where: str | Path) -> None:
        self._address, self.name = _server(where)
        self.given = None if self._address else Path(where).absolute()
        self.path = None if self.given is None else Path(os.path.realpath(self.given))
        """The file itself, however it was named: what belongs to it lies beside it."""

    def connect(self) -> Connection:
        """A new connection, for one transaction."""
        if self.path:
            return Connection.to_file(self.path)
        return Connection.to_server(self._address)

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
            self._check_format(connection)
            yield connection
            connection.commit()

    def identity(self) -> str:
        """The id of the ledger. One that an earlier version made gets its id now: random, once, whoever asks first."""
        with self.reading() as connection:
            found = tables.identity(connection)
        if found is None:
            with self._transaction(*self._begin_writing()) as connection:
                self._one_at_a_time(connection)  # before the table is looked at: a look would stand in the way
                self._check_format(connection)
                tables.identify(connection)
                found = tables.identity(connection)
                connection.commit()
        return str(found)

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
            with closing(self.connect()) as connection:
                witness = Witness.of(connection)
                seen = None if witness is None else witness.last()  # before the ledger is read
                for statement in begin:
                    connection.execute(statement)
                if witness is not None and seen is not None:
                    witness.compare(connection, seen, self.name)
                before = heads(connection) if witness is not None else {}
                yield connection
                if witness is not None and (after := heads(connection)) != before:
                    witness.note(after, self.name)

    def _create(self, connection: Connection) -> None:
        self._one_at_a_time(connection)
        tables.create(connection, FORMAT)

    def _one_at_a_time(self, connection: Connection) -> None:
        if not self.path:
            connection.execute("SELECT pg_advisory_xact_lock(?)", [CREATION])

    def _check_format(self, connection: Connection) -> None:
        versions = [version for (version,) in connection.execute("SELECT format FROM dpbayes_ledger")]
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
            raise LedgerError(f"Ledger: {self.name} {NO_LEDGER}")
        if versions[0] > FORMAT:
            raise too_new()
        if versions[0] < FORMAT:
            raise too_old()


def _server(where: str | Path) -> tuple[str, str]:
    """The address of a server, empty for a file; and what to call it, without user and password."""
    if isinstance(where, Path) or "://" not in where:
        return "", str(where)
    scheme, _, rest = where.partition("://")
    try:
        address = urlsplit(f"postgresql://{rest}")
        host, _ = address.hostname or "", address.port
    except ValueError:
        scheme = ""
    if scheme.partition("+")[0] != "postgresql":
        raise LedgerError("Ledger: expected a file path, or a URL that begins with postgresql://.")
    check_driver()
    return address.geturl(), f"postgresql://{host}/{address.path.removeprefix('/')}"
