"""What the entries of one data set say together: its budget, what is spent, and whether a charge fits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from dpbayes.domain.codec import Record, canonical
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import BudgetExceeded
from dpbayes.ledger.entry import Entry
from dpbayes.mechanisms.records import from_record
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee, Limit, rounded_down, rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Where a charge stands in its ledger."""

    serial: int
    """Which entry the charge is."""
    hash: str
    """The hash of that entry, and so of the whole chain up to it."""
    spent: float
    """Of the budget, this charge included, in the budget's own notion."""
    left: float
    """The largest cost of one more release, seen from there."""
    budget: Record
    """The guarantee that all releases of the data set keep together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge: mechanism records with multiplicities, and what became of it.

    ``state`` is ``charged`` (it may have been drawn), ``drawn`` or ``void`` (nothing was read).
    """

    entry: Entry
    releases: tuple[tuple[str, int], ...]
    lock: str
    state: str = "charged"
    digest: str = ""
    """SHA-256 of the values that were drawn, where the releaser noted it."""

    @property
    def schema(self) -> str:
        """The digest of the schema that it was made under; empty if none was named."""
        return str(self.entry.body.get("schema", ""))

    @property
    def mechanisms(self) -> Counter[str]:
        """The records that were charged, and how often."""
        found: Counter[str] = Counter()
        for record, times in self.releases:
            found[record] += times
        return found

    @property
    def cost(self) -> Cost:
        """What was charged: a list that was fixed before the first of it was drawn."""
        entries = tuple((mechanism(record), times) for record, times in self.releases)
        return Cost(unit=entries[0][0].unit, entries=entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The state of one data set, replayed from its entries."""

    dataset: str
    unit: PrivacyUnit
    budget: Limit
    entries: tuple[Entry, ...]
    charges: Mapping[int, Charge]
    format: int
    """That of the last budget entry; 1 is dpbayes 0.1."""
    schemas: tuple[str, ...] = ()
    """Digests of the schemas that may be charged; none yet, if the data set was opened without one."""

    @property
    def head(self) -> Entry:
        """The last entry."""
        return self.entries[-1]

    @property
    def cost(self) -> Cost:
        """The cost of every charge that is not void, equal mechanisms merged: as if all had been planned together."""
        merged: Counter[str] = Counter()
        for charge in self.charges.values():
            if charge.state != "void":
                for record, times in charge.releases:
                    merged[record] += times
        return Cost(unit=self.unit, entries=tuple((mechanism(record), k) for record, k in merged.items()))

    @property
    def limit(self) -> float:
        """The number that the budget allows: its ε, or its ρ."""
        return self.budget.size

    def price(self, cost: Cost) -> float:
        """A charge on its own, as the number that the budget limits."""
        return self.budget.amount(cost)

    @property
    def costs(self) -> dict[int, Cost]:
        """The charges that are not void, by serial: each a list that was fixed before it was drawn."""
        return {serial: one.cost for serial, one in self.charges.items() if one.state != "void"}

    @property
    def used(self) -> float:
        """The share of the limit that is used up."""
        return self.budget.used(self.costs.values())

    @property
    def spent(self) -> float:
        """What is used up, as the number that the budget limits."""
        return self.budget.spent(self.costs.values())

    def affords(self, cost: Cost) -> bool:
        """Whether the limit holds with this cost on top of what is spent, whatever it was adapted to."""
        return self.budget.used([*self.costs.values(), cost]) <= 1.0

    def left(self) -> float:
        """The largest number, in the budget's notion, that one more release may cost on its own.

        Under (ε, δ) it is the ε, at the budget's δ, of a release calibrated by the rule of the ledger; in the other
        notions costs add, and it is the limit minus what is spent.
        """
        return self.budget.left(list(self.costs.values()))

    def priced(self, target: Guarantee) -> Guarantee:
        """A target as this ledger prices it: what is calibrated to it and is not above what is left, fits."""
        return self.budget.priced(target, list(self.costs.values()))

    def with_charge(self, entry: Entry, cost: Cost) -> Account:
        """The account after one more charge."""
        releases = tuple((canonical(drawn.record()), times) for drawn, times in cost.entries)
        charge = Charge(entry=entry, releases=releases, lock=str(entry.body["lock"]))
        return replace(self, entries=(*self.entries, entry), charges={**self.charges, entry.serial: charge})

    def spending(self, serial: int) -> Spending:
        """Where a charge stood when it was made."""
        then = self
        if self.head.serial != serial:
            from dpbayes.ledger.replay import replay  # which needs this module

            then = replay(self.dataset, [entry.text for entry in self.entries[: serial + 1]])
        return Spending(
            serial=serial, hash=then.head.hash, spent=then.spent, left=then.left(), budget=dict(then.budget.record())
        )

    def refusal(self, cost: Cost) -> BudgetExceeded:
        """The error for a charge that does not fit."""
        asked, spent, left = self.price(cost), self.spent, self.left()
        total = self.budget.spent([*self.costs.values(), cost])
        return BudgetExceeded(
            f"Ledger: {self.dataset!r} allows {self.budget}, {rounded_up(spent, 4)} of it is spent, and this charge, "
            f"{rounded_up(asked, 4)} on its own, would make it {rounded_up(total, 4)}. A release of up to "
            f"{rounded_down(left, 4)} would fit. Lower the target, or ask the data owner to raise the limit.",
            asked=asked,
            spent=spent,
            limit=self.limit,
            fits=left,
        )


@lru_cache(maxsize=2**16)
def mechanism(record: str) -> Priced:
    """The mechanism of a canonical record."""
    return from_record(json.loads(record))
