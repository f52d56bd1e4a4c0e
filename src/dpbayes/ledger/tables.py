"""The three tables of a ledger, and the few statements that read and write them."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterator

from dpbayes.domain.codec import digest
from dpbayes.errors import LedgerError
from dpbayes.ledger import roles
from dpbayes.ledger.account import Account, replay
from dpbayes.ledger.connection import Connection
from dpbayes.ledger.entry import Entry, broken

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


def create(connection: Connection, version: int) -> None:
    """Make the tables where there are none."""
    there = "SELECT to_regclass('dpbayes_ledger')::text"
    if not connection.server:
        there = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'dpbayes_ledger'"
    if connection.scalar(there) is None:
        for table in TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO dpbayes_ledger (format, id) VALUES (?, ?)", [version, secrets.token_hex(16)])
        if connection.server:
            roles.install(connection)


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


def account(connection: Connection, dataset: str, *, lock: bool = False, known: Account | None = None) -> Account:
    """The account of a data set, with its whole chain checked; ``lock`` waits for and keeps out other writers.

    An account ``known`` from before is a checkpoint: every stored entry is compared with those that it holds, and only
    what came after it is read anew. SQLite has no row locks and needs none: its write transactions exclude each other.
    """
    query = "SELECT head FROM dpbayes_datasets WHERE dataset = ?"
    head = connection.scalar(_locking(connection, query) if lock else query, [dataset])
    if head is None:
        raise LedgerError(
            f"Ledger: there is no data set {dataset!r} in it. Check the name, or add it with `dpbayes ledger init`."
        )
    rows = connection.execute(
        "SELECT serial, text, hash FROM dpbayes_entries WHERE dataset = ? ORDER BY serial", [dataset]
    ).fetchall()
    if (
        known is not None
        and [(each.serial, each.text, each.hash) for each in known.entries] != rows[: len(known.entries)]
    ):
        known = None
    start = 0 if known is None else len(known.entries)
    found = known if known is not None and start == len(rows) else replay(dataset, _texts(dataset, rows, start), known)
    if found.head.hash != head:
        raise broken(dataset, found.head.serial + 1, "and perhaps later ones are missing")
    return found


def _texts(dataset: str, rows: list[tuple[object, object, object]], start: int) -> Iterator[str]:
    for place, (serial, text, stored) in enumerate(rows[start:], start=start):
        if serial != place or not isinstance(text, str) or digest(text) != stored:
            raise broken(dataset, place, "does not match its hash")
        yield text


def entries(connection: Connection) -> Iterator[tuple[str, str]]:
    """The data set and the text of every entry, unchecked, in order."""
    yield from connection.execute("SELECT dataset, text FROM dpbayes_entries ORDER BY dataset, serial")


def append(connection: Connection, entry: Entry, known: Account | None = None) -> None:
    """Add an entry at the end of the chain of its data set, whose account before it may be ``known``."""
    dataset = str(entry.body["dataset"])
    if connection.server and not roles.owns(connection):
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
        roles.note(connection, account(connection, dataset, known=known))


def weigh(connection: Connection, dataset: str, releases: str) -> None:
    """Refuse what a database would refuse to append for this user; a file refuses nothing."""
    if connection.server and not roles.owns(connection):
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
    if connection.server and not roles.owns(connection):
        return "SELECT dpbayes_lock(?)"
    return f"{query} FOR UPDATE" if connection.server else query
