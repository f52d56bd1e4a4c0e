"""A witness: a second file or database that receives the last entry of every chain of a ledger.

Whoever can write the file of a ledger can put an older copy back, and charges are forgotten. A ledger that is behind
its witness, or went another way, is refused. Its address is in the ledger, and in all copies of it.

An entry goes to the witness after it is on disk in the ledger, and before anyone is told of it. So a process that dies
in between leaves a ledger that is ahead, which whoever opens it next makes up for, and never one that is behind. The
witness is read before the ledger, so that a charge that comes between the two does not look like a loss.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dpbayes.errors import InvalidArgument, LedgerError
from dpbayes.ledger.connection import Connection, told

POINTER = "CREATE TABLE dpbayes_witnesses (address VARCHAR NOT NULL, id VARCHAR NOT NULL)"
SEEN = (
    "CREATE TABLE IF NOT EXISTS dpbayes_witness (id VARCHAR NOT NULL, dataset VARCHAR NOT NULL, "
    "serial INTEGER NOT NULL, hash VARCHAR NOT NULL, PRIMARY KEY (id, dataset, serial))"
)
HEADS = (
    "SELECT e.dataset, e.serial, e.hash FROM dpbayes_entries e JOIN dpbayes_datasets d "
    "ON e.dataset = d.dataset AND e.hash = d.head"
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
        there = "SELECT to_regclass('dpbayes_witnesses')::text"
        if not connection.server:
            there = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'dpbayes_witnesses'"
        found = None
        if connection.scalar(there) is not None:
            found = connection.execute("SELECT address, id FROM dpbayes_witnesses").fetchone()
        return None if found is None else cls(*map(str, found))

    @classmethod
    def made(cls, address: str) -> Witness:
        """A new one, for a ledger that is opened; it is there when this returns."""
        if "://" in address and urlsplit(address).password:
            raise InvalidArgument(
                "Ledger: expected the address of a witness without a password, since the ledger keeps it. "
                "Put the password into a .pgpass file."
            )
        if "://" not in address:
            address = str(Path(address).absolute())
            with told(address):
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
        with told(f"{self.address}, the witness,"):
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
