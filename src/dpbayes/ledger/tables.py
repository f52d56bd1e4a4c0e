"""The three tables of a ledger, and the few statements that read and write them."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, Text, insert, select, update

from dpbayes.domain.codec import digest
from dpbayes.errors import LedgerError
from dpbayes.ledger.account import Account
from dpbayes.ledger.entry import Entry, broken
from dpbayes.ledger.replay import replay

KEY = "key"

META = MetaData()

LEDGER = Table("dpbayes_ledger", META, Column("format", Integer, primary_key=True))

DATASETS = Table(
    "dpbayes_datasets",
    META,
    Column("dataset", String, primary_key=True),
    Column("head", String, nullable=False),  # hash of the last entry: shows when entries at the end are missing
    Column("fingerprint", String),  # a secret key, and lines of part and keyed digest of the table; never exported
)

ENTRIES = Table(
    "dpbayes_entries",
    META,
    Column("dataset", String, primary_key=True),
    Column("serial", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("hash", String, nullable=False),
)


def datasets(connection: Connection) -> list[str]:
    """The data sets of the ledger."""
    return sorted(connection.scalars(select(DATASETS.c.dataset)))


def exists(connection: Connection, dataset: str) -> bool:
    """Whether the ledger holds this data set."""
    return connection.scalar(select(DATASETS.c.head).where(DATASETS.c.dataset == dataset)) is not None


def account(connection: Connection, dataset: str, *, lock: bool = False, known: Account | None = None) -> Account:
    """The account of a data set, with its whole chain checked; ``lock`` waits for and keeps out other writers.

    An account ``known`` from before is returned as it is while its last hash, which fixes all that came before it,
    is still the last one. SQLite has no row locks and needs none: its write transactions exclude each other.
    """
    query = select(DATASETS.c.head).where(DATASETS.c.dataset == dataset)
    head = connection.scalar(query.with_for_update() if lock else query)
    if head is None:
        raise LedgerError(
            f"Ledger: there is no data set {dataset!r} in it. Check the name, or add it with `dpbayes ledger init`."
        )
    if known is not None and known.head.hash == head:
        return known
    found = replay(dataset, _texts(connection, dataset))
    if found.head.hash != head:
        raise broken(dataset, found.head.serial + 1, "and perhaps later ones are missing")
    return found


def _texts(connection: Connection, dataset: str) -> Iterator[str]:
    rows = connection.execute(
        select(ENTRIES.c.serial, ENTRIES.c.text, ENTRIES.c.hash)
        .where(ENTRIES.c.dataset == dataset)
        .order_by(ENTRIES.c.serial)
    )
    for place, (serial, text, stored) in enumerate(rows):
        if serial != place or not isinstance(text, str) or digest(text) != stored:
            raise broken(dataset, place, "does not match its hash")
        yield text


def append(connection: Connection, entry: Entry) -> None:
    """Add an entry at the end of the chain of its data set."""
    dataset = str(entry.body["dataset"])
    connection.execute(insert(ENTRIES).values(dataset=dataset, serial=entry.serial, text=entry.text, hash=entry.hash))
    if entry.serial == 0:
        connection.execute(insert(DATASETS).values(dataset=dataset, head=entry.hash))
    else:
        connection.execute(update(DATASETS).where(DATASETS.c.dataset == dataset).values(head=entry.hash))


def fingerprint_changed(connection: Connection, dataset: str, of: str, value: str) -> bool:
    """Keep this fingerprint under the data set's secret key, and say whether another was kept for the same part.

    What format 1 kept had no key: it is forgotten.
    """
    mine = DATASETS.c.dataset == dataset
    stored = connection.scalar(select(DATASETS.c.fingerprint).where(mine).with_for_update())
    lines = [line.split(" ") for line in (stored or "").splitlines()]
    kept = {line[0]: line[1] for line in lines if len(line) == 2}
    if KEY not in kept:
        kept = {KEY: secrets.token_hex(32)}
    key = bytes.fromhex(kept[KEY])
    part, keyed = (hmac.new(key, text.encode(), "sha256").hexdigest() for text in (f"part {of}", f"value {value}"))
    before = kept.get(part)
    text = "\n".join(f"{name} {text}" for name, text in sorted((kept | {part: keyed}).items()))
    connection.execute(update(DATASETS).where(mine).values(fingerprint=text))
    return before not in (None, keyed)
