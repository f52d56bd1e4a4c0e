"""Where ledgers live: three tables in an SQLite file or a PostgreSQL database, and what reads and writes them.

A writer holds the only write lock of its data set from before it reads until its commit is on disk, so no two
charges are weighed against the same balance.

SQLite keeps its default rollback journal: between commits the ledger is one plain file that can be copied, and read
from read-only media, while a write-ahead log would leave charges in a second file. With that journal only
``synchronous=EXTRA`` promises that a commit survives a power cut.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from dpbayes.base.codec import digest
from dpbayes.base.errors import LedgerError
from dpbayes.ledger import pricing
from dpbayes.ledger.account import FORMAT, Account, Entry, broken, too_new, too_old
from dpbayes.ledger.connection import NO_LEDGER, PATIENCE, Connection, Witness, check_driver, explain_faults, heads

KEY = "key"

TABLES = (
    # id: random, tells the ledger from all others and stays with its copies; ledgers up to 0.2.0 have no such column
    "CREATE TABLE dpbayes_ledger (format INTEGER NOT NULL PRIMARY KEY, id VARCHAR)",
    # head: hash of the last entry, which shows when entries at the end are missing
    # fingerprint: a secret key, and lines of part and keyed digest of the table; never exported
    "CREATE TABLE dpbayes_datasets (dataset VARCHAR NOT NULL PRIMARY KEY, head VARCHAR NOT NULL, fingerprint VARCHAR)",
    "CREATE TABLE dpbayes_entries (dataset VARCHAR NOT NULL, serial INTEGER NOT NULL, text TEXT NOT NULL, "
    "hash VARCHAR NOT NULL, PRIMARY KEY (dataset, serial))",
)


def _create(connection: Connection) -> None:
    """Make the tables where there are none."""
    if not connection.has("dpbayes_ledger"):
        for table in TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO dpbayes_ledger (format, id) VALUES (?, ?)", [FORMAT, secrets.token_hex(16)])
        if connection.server:
            pricing.install(connection)


def identity(connection: Connection) -> str | None:
    """The id of the ledger, if it has one."""
    found = connection.execute("SELECT * FROM dpbayes_ledger")
    values = dict(zip((column[0] for column in found.description), found.fetchone() or (), strict=False))
    if (identity := values.get("id")) is not None and not re.fullmatch("[0-9a-f]{32}", str(identity)):
        raise LedgerError("Ledger: its id is damaged. Restore the last good copy.")  # it becomes the name of a folder
    return identity


def identify(connection: Connection) -> None:
    """Give an id to a ledger of a version that gave none."""
    columns = [column[0] for column in connection.execute("SELECT * FROM dpbayes_ledger").description]
    if "id" not in columns:
        connection.execute("ALTER TABLE dpbayes_ledger ADD COLUMN id VARCHAR")
    connection.execute("UPDATE dpbayes_ledger SET id = ? WHERE id IS NULL", [secrets.token_hex(16)])


def datasets(connection: Connection) -> list[str]:
    """The data sets of the ledger."""
    return sorted(dataset for (dataset,) in connection.execute("SELECT dataset FROM dpbayes_datasets"))


def exists(connection: Connection, dataset: str) -> bool:
    """Whether the ledger holds this data set."""
    return connection.scalar("SELECT head FROM dpbayes_datasets WHERE dataset = ?", [dataset]) is not None


def head(connection: Connection, dataset: str, *, lock: bool = False) -> str:
    """The hash of the last entry of a data set; ``lock`` keeps out other writers, as SQLite's transactions do."""
    query = "SELECT head FROM dpbayes_datasets WHERE dataset = ?"
    found = connection.scalar(_locking(connection, query) if lock else query, [dataset])
    if found is None:
        raise LedgerError(
            f"Ledger: there is no data set {dataset!r} in it. Check the name, or add it with `dpbayes ledger init`."
        )
    return str(found)


def texts(connection: Connection, dataset: str, start: int = 0) -> Iterator[str]:
    """The texts of all entries, or from one on; each has its place and its hash."""
    rows = connection.execute(
        "SELECT serial, text, hash FROM dpbayes_entries WHERE dataset = ? AND serial >= ? ORDER BY serial",
        [dataset, start],
    ).fetchall()
    for place, (serial, text, stored) in enumerate(rows, start=start):
        if serial != place or not isinstance(text, str) or digest(text) != stored:
            raise broken(dataset, place, "does not match its hash")
        yield text


def append(connection: Connection, entry: Entry, after: Account) -> None:
    """Add an entry at the end of the chain of its data set, whose account after it is given."""
    dataset = str(entry.body["dataset"])
    if connection.server and not pricing.owns(connection):
        connection.execute("SELECT dpbayes_append(?, ?)", [dataset, entry.text])
        return
    connection.execute(
        "INSERT INTO dpbayes_entries (dataset, serial, text, hash) VALUES (?, ?, ?, ?)",
        [dataset, entry.serial, entry.text, entry.hash],
    )
    if entry.serial == 0:
        connection.execute("INSERT INTO dpbayes_datasets (dataset, head) VALUES (?, ?)", [dataset, entry.hash])
    else:
        connection.execute("UPDATE dpbayes_datasets SET head = ? WHERE dataset = ?", [entry.hash, dataset])
    if connection.server and entry.kind in ("budget", "charge", "void"):
        pricing.note(connection, after)


def weigh(connection: Connection, dataset: str, releases: str) -> None:
    """Refuse what a database would refuse to append for this user; a file refuses nothing."""
    if connection.server and not pricing.owns(connection):
        connection.execute("SELECT dpbayes_weigh(?, ?::jsonb)", [dataset, releases])


def fingerprint_changed(connection: Connection, dataset: str, of: str, value: str) -> bool:
    """Keep this fingerprint under the data set's secret key, and say whether another was kept for the same part."""
    query = "SELECT fingerprint FROM dpbayes_datasets WHERE dataset = ?"
    stored = connection.scalar(_locking(connection, query), [dataset])
    lines = [line.split(" ") for line in (stored or "").splitlines()]
    kept = {line[0]: line[1] for line in lines if len(line) == 2}
    if KEY not in kept:
        kept = {KEY: secrets.token_hex(32)}
    key = bytes.fromhex(kept[KEY])
    part, keyed = (hmac.new(key, text.encode(), "sha256").hexdigest() for text in (f"part {of}", f"value {value}"))
    before = kept.get(part)
    text = "\n".join(f"{name} {text}" for name, text in sorted((kept | {part: keyed}).items()))
    connection.execute("UPDATE dpbayes_datasets SET fingerprint = ? WHERE dataset = ?", [text, dataset])
    return before not in (None, keyed)


def _locking(connection: Connection, query: str) -> str:
    if connection.server and not pricing.owns(connection):
        return "SELECT dpbayes_lock(?)"
    return f"{query} FOR UPDATE" if connection.server else query


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
            with explain_faults(self.name):  # a new file is its owner's only: the fingerprints in it are private
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._transaction(*self._begin_writing()) as connection:
            if create:
                self._one_at_a_time(connection)
                _create(connection)
            self._check_format(connection)
            yield connection
            connection.commit()

    def identity(self) -> str:
        """The id of the ledger. One that an earlier version made gets its id now: random, once, whoever asks first."""
        with self.reading() as connection:
            found = identity(connection)
        if found is None:
            with self._transaction(*self._begin_writing()) as connection:
                self._one_at_a_time(connection)  # before the table is looked at: a look would stand in the way
                self._check_format(connection)
                identify(connection)
                found = identity(connection)
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
        with explain_faults(self.name):
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

    def _one_at_a_time(self, connection: Connection) -> None:
        if not self.path:
            # two that change the tables at once would collide in PostgreSQL's catalogue: here they queue
            connection.execute("SELECT pg_advisory_xact_lock(?)", [0x64706C67])

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
