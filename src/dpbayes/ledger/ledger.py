"""The ledger: budgets of data sets, and charges that are kept before anything is drawn."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from sqlalchemy import Connection

from dpbayes import _checks
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument, LedgerError, UnitMismatch
from dpbayes.ledger import export, tables
from dpbayes.ledger.account import Account, mechanism
from dpbayes.ledger.entry import FORMAT, Entry, digest
from dpbayes.ledger.replay import release
from dpbayes.ledger.store import Store
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee


@runtime_checkable
class Recorded(Protocol):
    """A mechanism that can be written down."""

    def record(self) -> dict[str, object]:
        """JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of a charge: ``hash`` names its entry for ever. Whoever holds the ``key`` can still void it."""

    dataset: str
    serial: int
    hash: str
    key: str = field(repr=False)

    def record(self) -> dict[str, str | int]:
        """JSON form, public: without the key."""
        return {"dataset": self.dataset, "serial": self.serial, "hash": self.hash}


class Ledger:
    """An append-only ledger in an SQLite file or a PostgreSQL database.

    Charge first, draw afterwards: a charge is on disk when ``charge`` returns. Every reading checks the whole chain
    and prices all mechanisms anew.

    >>> import tempfile
    >>> from dpbayes import Adjacency, Cost, Laplace, PrivacyUnit, PureDP
    >>> unit = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(folder + "/census.ledger")
    ...     ledger.open("census", PureDP(epsilon=1.0), unit)
    ...     receipt = ledger.charge("census", Cost.of(Laplace(scale=4, unit=unit)), about="sex × income")
    ...     ledger.account("census").left()
    0.75
    """

    def __init__(self, where: str | Path) -> None:
        self._store = Store(where)

    def open(self, dataset: str, budget: Guarantee, unit: PrivacyUnit, *, about: str = "") -> None:
        """Add a data set with its budget; the ledger itself is created where there is none."""
        details = {"format": FORMAT, "budget": budget.record(), "unit": unit.record()}
        first = Entry.write(dataset=dataset, after=None, kind="budget", about=about, **details)
        with self._store.writing(create=True) as connection:
            if tables.exists(connection, dataset):
                raise LedgerError(
                    f"Ledger: the data set {dataset!r} is already in it. Change its limit with `dpbayes ledger budget`."
                )
            tables.append(connection, first)

    def change_budget(self, dataset: str, budget: Guarantee, *, about: str) -> None:
        """Replace the limit, the data owner's decision, with the reason; the unit stays."""
        with self._store.writing() as connection:
            account = tables.account(connection, dataset, lock=True)
            details = {"format": FORMAT, "budget": budget.record(), "unit": account.unit.record()}
            _append(connection, account, "budget", about, **details)

    def datasets(self) -> list[str]:
        """The data sets of the ledger."""
        with self._store.reading() as connection:
            return tables.datasets(connection)

    def account(self, dataset: str) -> Account:
        """What the ledger says of a data set, with its whole chain checked."""
        with self._store.reading() as connection:
            return tables.account(connection, dataset)

    def charge(self, dataset: str, cost: Cost, *, about: str = "") -> Receipt:
        """Charge a cost durably, or refuse it with BudgetExceeded and leave the ledger unchanged."""
        releases = [_written(mechanism, times) for mechanism, times in cost.entries]
        cost = _read_back(releases)
        account = self.account(dataset)
        if account.unit != cost.unit:
            raise UnitMismatch(
                f"Ledger: {dataset!r} protects {account.unit.adjacency} with max_rows={account.unit.max_rows}, "
                f"this charge {cost.unit.adjacency} with max_rows={cost.unit.max_rows}. "
                "Make the schema say what the ledger was opened with, or open a new data set."
            )
        if account.affords(cost):  # priced before the lock is taken, so that others wait only if they come between
            with self._store.writing() as connection:
                account = tables.account(connection, dataset, lock=True, known=account)
                if account.affords(cost):
                    key = secrets.token_hex(32)
                    entry = _append(connection, account, "charge", about, releases=releases, lock=digest(key))
                    return Receipt(dataset=dataset, serial=entry.serial, hash=entry.hash, key=key)
        raise account.refusal(cost)

    def confirm(self, receipt: Receipt, *, digest: str = "") -> None:
        """Note that the release was drawn, with a digest of its values, which ties a published file to the charge.

        A charge without this note may have been drawn, and counts as well.
        """
        self._settle(receipt, "drawn", "", digest=digest)

    def void(self, receipt: Receipt, *, about: str) -> None:
        """Take back a charge, with the reason: only where it is certain that nothing of the table was read for it.

        The key is in the memory of the process that charged and nowhere else: when that process dies, the
        charge stays for ever.
        """
        self._settle(receipt, "void", about, key=receipt.key)

    def _settle(self, receipt: Receipt, kind: str, about: str, **proof: str) -> None:
        with self._store.writing() as connection:
            account = tables.account(connection, receipt.dataset, lock=True)
            charge = account.charges.get(receipt.serial)
            if charge is None or charge.entry.hash != receipt.hash or charge.lock != digest(receipt.key):
                raise LedgerError("Ledger: this receipt belongs to another ledger. Use the one that made the charge.")
            if charge.state != "charged":
                raise LedgerError(f"Ledger: charge {receipt.serial} is {charge.state} already, and stays so.")
            _append(connection, account, kind, about, charge=receipt.serial, **proof)

    def remember_fingerprint(self, dataset: str, value: str, *, of: str = "") -> bool:
        """Keep a fingerprint of the table, and say whether another one was kept before: the table has changed.

        ``of`` says what it covers, such as some columns; only fingerprints of the same are compared. It is
        private, kept as a digest outside the chain, and never exported.
        """
        with self._store.writing() as connection:
            tables.account(connection, dataset, lock=True)
            before = tables.swap_fingerprint(connection, dataset, digest(of), digest(value))
            return before not in (None, digest(value))

    def export(self, dataset: str) -> list[str]:
        """The entries as lines of JSON, all public; ``dpbayes.ledger.export.read`` checks and prices them."""
        return export.lines(self.account(dataset))


def _append(connection: Connection, account: Account, kind: str, about: str, **details: object) -> Entry:
    entry = Entry.write(dataset=account.dataset, after=account.head, kind=kind, about=about, **details)
    tables.append(connection, entry)
    return entry


def _written(mechanism: object, times: int) -> dict[str, object]:
    _checks.positive_integer("Ledger", times=times)
    if not isinstance(mechanism, Recorded):
        raise InvalidArgument(f"Ledger: expected mechanisms that can be recorded, got {type(mechanism).__name__}.")
    return {"mechanism": mechanism.record(), "times": int(times)}


def _read_back(releases: list[dict[str, object]]) -> Cost:
    """The cost as every later reader of these records will see it."""
    if not releases:
        raise InvalidArgument("Ledger: expected a cost of at least one release, got none.")
    first, *others = (Cost.of(mechanism(text), times) for text, times in map(release, releases))
    return sum(others, first)
