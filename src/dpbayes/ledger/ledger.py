"""The ledger: limits of data sets, and charges that are kept before anything is drawn."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from dpbayes.base import checks, display
from dpbayes.base.codec import canonical, digest
from dpbayes.base.display import rounded_down, rounded_up
from dpbayes.base.errors import BudgetExceeded, InvalidArgument, LedgerError, ReleaseError, UnitMismatch
from dpbayes.ledger import history, pricing, store
from dpbayes.ledger.account import (
    FORMAT,
    Account,
    Chain,
    Charge,
    Entry,
    Spending,
    broken,
    mechanism,
    release,
    replay,
)
from dpbayes.ledger.connection import Connection, Witness
from dpbayes.ledger.history import Series
from dpbayes.ledger.kept import Kept
from dpbayes.ledger.store import Store
from dpbayes.mechanisms.kinds import confirm
from dpbayes.mechanisms.noise import software
from dpbayes.privacy.calibrate import adaptive_limit
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee, Limit, Rule
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit


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
    spending: Spending | None = None
    """Where the charge stands."""

    def record(self) -> dict[str, str | int]:
        """JSON form, public: without the key."""
        return {"dataset": self.dataset, "serial": self.serial, "hash": self.hash}


class Ledger:
    """An append-only ledger in an SQLite file or a PostgreSQL database.

    Charge first, draw afterwards: a charge is on disk when ``charge`` returns. Every reading checks the whole chain
    and prices all mechanisms anew.

    >>> import tempfile
    >>> from dpbayes import Cost, Laplace, PureDP, Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.ADD_REMOVE)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(folder + "/census.ledger")
    ...     ledger.open("census", PureDP(epsilon=1.0), unit)
    ...     receipt = ledger.charge("census", Cost.of(Laplace(scale=4, unit=unit)), about="sex × income")
    ...     ledger.account("census").left()
    0.75
    """

    LONG: ClassVar[int] = 100  # entries from which on it is remembered what they amount to

    def __init__(self, where: str | Path) -> None:
        self._store = Store(where)
        self._seen: dict[str, Account] = {}

    @property
    def name(self) -> str:
        """Its file, or its address without the password."""
        return self._store.name

    @property
    def kept(self) -> Kept:
        """The releases under way, and the draws that were paid for."""
        return self._folder(self._store.identity())

    @property
    def lacks_roles(self) -> bool:
        """Whether it is in a database that does not tell analysts from the owner."""
        with self._store.reading() as connection:
            return connection.server and not pricing.exist(connection)

    def __repr__(self) -> str:
        if self._store.path is not None and self._store.path.is_file():  # a server is not asked for this
            with suppress(LedgerError):
                return "\n".join(_standing(self.account(name)) for name in self.datasets()[:12])
        return f"Ledger({self.name!r})"

    def _repr_html_(self) -> str:
        facts = [(dataset, said) for dataset, _, said in (line.partition(": ") for line in repr(self).splitlines())]
        return display.as_html(f"Ledger({self.name!r})", facts if facts[0][1] else [])

    def open(
        self,
        dataset: str | Path | Schema,
        budget: Limit,
        unit: Unit | str | None = None,
        *,
        schema: str = "",
        rule: Rule = "gaussian",
        slack: float | None = None,
        about: str = "",
        witness: str = "",
    ) -> None:
        """Add a data set with its limit; the ledger itself is created where there is none.

        Said again, it changes nothing. An (ε, δ) limit is kept by a ``rule`` that holds whatever later releases were
        adapted to, see AdaptiveDP. A ``Schema``, or its file, gives id, unit and digest of the data set. With a name
        and a unit in its place, ``schema`` is the digest of the schema that releases must use, or else the first that
        is charged is taken. A ``witness``, a second file or address, receives the last entry of every chain, and a
        ledger that is behind it is refused.
        """
        if unit is None or not isinstance(dataset, str):
            declared = dataset if isinstance(dataset, Schema) else Schema.load(dataset)
            dataset, unit, schema = declared.id, declared.unit, declared.digest
        unit, limit = Unit.of(unit), adaptive_limit(budget, rule, slack)
        details = {"format": FORMAT, "budget": limit.record(), "unit": unit.record(), "schema": schema}
        first = Entry.write(dataset=dataset, after=None, kind="budget", about=about, **details)
        watcher = Witness.create(witness) if witness else None
        with self._store.writing(create=True) as connection:
            if watcher is not None:
                watcher.keep(connection)
            if store.exists(connection, dataset):
                known = self._account(connection, dataset)
                if (known.budget, known.unit) == (limit, unit) and schema in ("", *known.schemas) and watcher is None:
                    return
                raise LedgerError(
                    f"Ledger: the data set {dataset!r} is already in it, with the limit {known.budget}. To change "
                    "that, run `dpbayes ledger limit`; after a change of the schema, `dpbayes ledger accept`."
                )
            store.append(connection, first, replay(dataset, [first.text]))

    def change_budget(
        self, dataset: str, budget: Limit, *, about: str, rule: Rule | None = None, slack: float | None = None
    ) -> None:
        """Replace the limit, the data owner's decision, with the reason; the unit stays, and so does the rule."""
        with self._store.writing() as connection:
            account = self._account(connection, dataset, lock=True)
            limit = adaptive_limit(budget, account.budget.rule or "gaussian" if rule is None else rule, slack)
            if not about.strip():
                raise InvalidArgument("Ledger: expected the reason for the change.")
            details = {"format": FORMAT, "budget": limit.record(), "unit": account.unit.record(), "schema": ""}
            self._append(connection, account, "budget", about, **details)

    def accept(self, dataset: str, schema: str, *, about: str) -> None:
        """Let releases use another schema too, given by its digest: the data owner's decision, with the reason."""
        if not schema or not about.strip():
            raise InvalidArgument("Ledger: expected the digest of a schema, and the reason why it is accepted.")
        with self._store.writing() as connection:
            account = self._account(connection, dataset, lock=True)
            if schema in account.schemas:
                raise LedgerError(f"Ledger: {dataset!r} accepts this schema already.")
            self._append(connection, account, "schema", about, schema=schema)

    def datasets(self) -> list[str]:
        """The data sets of the ledger."""
        with self._store.reading() as connection:
            return store.datasets(connection)

    def only(self) -> str:
        """The one data set of the ledger."""
        names = self.datasets()
        if len(names) != 1:
            raise LedgerError(f"Ledger: expected one data set in it, and it has {', '.join(names) or 'none'}.")
        return names[0]

    def account(self, dataset: str) -> Account:
        """What the ledger says of a data set, with its whole chain checked, and every mechanism priced anew."""
        with self._store.reading() as connection:
            return self._account(connection, dataset, anew=True)

    def standing(self, dataset: str) -> Account:
        """The same, remembered from when that was done, if nobody has written the ledger since."""
        with self._store.reading() as connection:
            return self._account(connection, dataset)

    def _account(self, connection: Connection, dataset: str, *, lock: bool = False, anew: bool = False) -> Account:
        head, seen, found = store.head(connection, dataset, lock=lock), self._seen.get(dataset), None
        if seen is None and not anew and (identity := store.identity(connection)) is not None:
            seen = self._folder(identity).remembered(dataset)
        if seen and not anew and seen.seal and connection.stamp(dataset, seen.head.serial) == seen.seal:
            if seen.head.hash == head:
                return self._seen.setdefault(dataset, self._with_chain(seen))
            found = seen.followed(store.texts(connection, dataset, seen.head.serial + 1))
        found = self._with_chain(found) if found else replay(dataset, store.texts(connection, dataset))
        if found.head.hash != head:
            raise broken(dataset, found.head.serial + 1, "and perhaps later ones are missing")
        return found if found.head.serial < self.LONG else self._remember(connection, found)

    def _with_chain(self, account: Account) -> Account:
        """An account that reads its entries when they are asked for."""
        dataset, head = account.dataset, account.head

        def chain() -> Chain:
            with self._store.reading() as connection:
                whole = replay(dataset, islice(store.texts(connection, dataset), head.serial + 1))
            if whole.head != head:
                raise broken(dataset, head.serial, "is another than before")
            return whole.chain()

        return replace(account, chain=cache(chain))

    def _folder(self, identity: str) -> Kept:
        return Kept.of(self._store.path, identity, earlier=self._store.given, name=self._store.name)

    def _remember(self, connection: Connection, account: Account, *, commit: bool = False) -> Account:
        """Keep a long account as long as its seal holds, for other processes too."""
        charged, seal = account.charged.summed(), connection.seal(account.dataset, account.head.serial, commit=commit)
        self._seen[account.dataset] = made = replace(account, charged=charged, seal=seal)
        if seal and (identity := store.identity(connection)) is not None:
            self._folder(identity).remember(made)
        return made

    def _append(self, connection: Connection, account: Account, kind: str, about: str, **details: object) -> Account:
        """Write an entry; the account after it."""
        entry = Entry.write(dataset=account.dataset, after=account.head, kind=kind, about=about, **details)
        told = account.followed([entry.text])
        after = self._with_chain(told or replay(account.dataset, [*(one.text for one in account.entries), entry.text]))
        store.append(connection, entry, after)
        return after if entry.serial < self.LONG else self._remember(connection, after, commit=True)

    def charge(self, dataset: str, cost: Cost, *, about: str = "", schema: str = "", key: str = "") -> Receipt:
        """Charge a cost durably, or refuse it with BudgetExceeded and leave the ledger unchanged.

        What is charged together is a series: a list fixed now, at the price of its composition. It may be drawn later,
        in one go or in parts. ``schema`` is the digest of the schema through which the table is read. Whoever knows the
        ``key`` can find the charge again and settle it.
        """
        releases = [_release_record(mechanism, times) for mechanism, times in cost.entries]
        if not releases:
            raise InvalidArgument("Ledger: expected a cost of at least one release, got none.")
        cost = Cost.total([Cost.of(mechanism(text), times) for text, times in map(release, releases)])
        self.check(dataset, cost, schema=schema)  # priced before the lock is taken: under it only later charges are
        key = key or secrets.token_hex(32)
        with self._store.writing() as connection:
            account = self._account(connection, dataset, lock=True)
            self._check(account, cost, schema)
            details = {"releases": releases, "lock": digest(key), "schema": schema, "software": software()}
            after = self._append(connection, account, "charge", about, **details)
        head, spending = after.head, after.spending(after.head.serial)
        return Receipt(dataset=dataset, serial=head.serial, hash=head.hash, key=key, spending=spending)

    def series(self, dataset: str, cost: Cost, *, about: str = "", schema: str = "") -> Series:
        """Charge draws as one entry at their composed price now, and make them one by one, each from new counts."""
        if not all(hasattr(mechanism, "draw") for mechanism, _ in cost.entries):
            raise InvalidArgument("Ledger: expected a series of mechanisms that draw. Charge what others made instead.")
        return Series(self, self.charge(dataset, cost, about=about, schema=schema), cost)

    def check(self, dataset: str, cost: Cost, *, schema: str = "") -> Account:
        """Refuse what ``charge`` would refuse now, and charge nothing; the account, if it affords the cost."""
        with self._store.reading() as connection:
            account = self._account(connection, dataset)
            self._check(account, cost, schema)
            store.weigh(
                connection, dataset, canonical([_release_record(mechanism, times) for mechanism, times in cost.entries])
            )
        return account

    def receipt(self, key: str) -> Receipt | None:
        """The receipt of the charge that was made with this key, if one was and was not taken back."""
        lock = digest(key)
        for dataset in self.datasets():
            account = self.account(dataset)
            for charge in account.charges.values():
                if charge.lock == lock and charge.state != "void":
                    return self.receipt_of(account, charge, key=key)
        return None

    def receipt_of(self, account: Account, charge: Charge, *, key: str = "") -> Receipt:
        """The receipt of a charge; without its key, what was drawn can be noted still, and nothing be taken back."""
        entry, placed = charge.entry, account.spending(charge.entry.serial)
        return Receipt(dataset=account.dataset, serial=entry.serial, hash=entry.hash, key=key, spending=placed)

    def _check(self, account: Account, cost: Cost, schema: str) -> None:
        """Refuse what must not be charged."""
        if account.unit != cost.unit:
            raise UnitMismatch(
                f"Ledger: {account.dataset!r} protects this unit: {account.unit}. This charge protects another: "
                f"{cost.unit}. Make the schema say what the ledger was opened with, or open a new data set."
            )
        if schema and account.schemas and schema not in account.schemas:
            raise LedgerError(
                f"Ledger: releases of {account.dataset!r} use another schema: this one has other attributes, levels, "
                "unit or public totals. Use the schema that was registered, or let the data owner accept this one "
                "with `dpbayes ledger accept`."
            )
        if not account.affords(cost):
            raise above_limit(account, cost)

    def priced(self, dataset: str, target: Guarantee) -> Guarantee:
        """A target as the rule of this ledger prices it; calibrate to it what will be charged here."""
        return self.standing(dataset).priced(target)

    def confirm(self, receipt: Receipt, *, digest: str = "") -> None:
        """Note that the release was drawn, with a digest of its values, which ties a published file to the charge.

        A charge without this note may have been drawn, and counts as well. To note the same again changes nothing.
        """
        self._settle(receipt, "drawn", "", digest=digest)

    def void(self, receipt: Receipt, *, about: str) -> None:
        """Take back a charge, with the reason: only where it is certain that no row of the table was read for it.

        The key is in the memory of the process that charged, and in the draft of its release.
        """
        self._settle(receipt, "void", about, key=receipt.key)

    def _settle(self, receipt: Receipt, kind: str, about: str, **proof: str) -> None:
        with self._store.writing() as connection:
            account = self._account(connection, receipt.dataset, lock=True)
            charge = account.open.get(receipt.serial) or account.charges.get(receipt.serial)
            opens = charge is not None and (charge.lock == digest(receipt.key) or (kind == "drawn" and not receipt.key))
            if charge is None or charge.entry.hash != receipt.hash or not opens:
                raise LedgerError("Ledger: this receipt belongs to another ledger. Use the one that made the charge.")
            if kind == charge.state == "drawn" and charge.digest == proof["digest"]:
                return
            if kind == "drawn" and charge.state != "charged":
                how = "is void" if charge.state == "void" else "notes that something else was drawn for it"
                raise ReleaseError(f"Ledger: charge {receipt.serial} {how}, so this draw must not be published.")
            if charge.state != "charged":
                raise LedgerError(f"Ledger: charge {receipt.serial} is {charge.state} already, and stays so.")
            self._append(connection, account, kind, about, charge=receipt.serial, **proof)

    def remember_fingerprint(self, dataset: str, value: str, *, of: str = "") -> bool:
        """Keep a fingerprint of the table, and say whether another one was kept before: the table has changed.

        The answer is private, a fact about the rows without noise: it is for the data owner. ``of`` says what the
        fingerprint covers, such as some columns; only fingerprints of the same are compared. Both are kept outside the
        chain under a secret key of the data set, and never exported.
        """
        with self._store.writing() as connection:
            store.head(connection, dataset, lock=True)
            return store.fingerprint_changed(connection, dataset, of, value)

    def export(self, dataset: str) -> list[str]:
        """The entries as lines of JSON, all public; ``dpbayes.ledger.history.read`` checks and prices them."""
        return history.lines(self.account(dataset))


def _standing(account: Account) -> str:
    """What is left for a data set, on one line."""
    limit, left, many = account.budget, account.left(), len(account.costs)
    at = f" at δ={limit.exception:g}" if limit.exception else ""
    fits = f"a release of up to {rounded_down(left, 4)} fits" if left > 0 else "nothing more fits"
    spent = f"{rounded_up(account.spent, 4)} of {limit.size:g} spent{at}"
    return f"{account.dataset}: {spent}; {fits}; {display.plural(many, 'release')}"


def above_limit(account: Account, cost: Cost) -> BudgetExceeded:
    """The error for a charge that does not fit."""
    asked, spent, left = account.budget.amount(cost), account.spent, account.left()
    total = account.budget.spent(account.charged.plus(cost))
    return BudgetExceeded(
        f"Ledger: {account.dataset!r} allows {account.budget}, {rounded_up(spent, 4)} of it is spent, and this charge, "
        f"{rounded_up(asked, 4)} on its own, would make it {rounded_up(total, 4)}. A release of up to "
        f"{rounded_down(left, 4)} would fit. Lower the target, or ask the data owner to raise the limit.",
        asked=asked,
        spent=spent,
        limit=account.budget.size,
        fits=left,
    )


def _release_record(mechanism: object, times: int) -> dict[str, object]:
    checks.positive_integer("Ledger", times=times)
    if not isinstance(mechanism, Recorded):
        raise InvalidArgument(f"Ledger: expected mechanisms that can be recorded, got {type(mechanism).__name__}.")
    confirm(mechanism)
    return {"mechanism": mechanism.record(), "times": int(times)}
