"""What the entries of one data set say together: its budget, what is spent, and whether a charge fits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import BudgetExceeded, TargetUnreachable
from dpbayes.ledger.entry import Entry
from dpbayes.mechanisms.records import from_record
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, rounded_down, rounded_up

TOLERANCE = 1e-9
"""A charge may exceed the limit by this share of it: the rounding of sums, far below any meaning of ε."""

PRECISION = 1e-3
"""How finely ``left`` is searched, as a share of the limit."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The state of one data set, replayed from its entries."""

    dataset: str
    unit: PrivacyUnit
    budget: Guarantee
    entries: tuple[Entry, ...]
    charges: Mapping[int, Charge]

    @property
    def head(self) -> Entry:
        """The last entry."""
        return self.entries[-1]

    @property
    def cost(self) -> Cost:
        """The cost of every charge that is not void, equal mechanisms merged."""
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
        """A cost as the number that the budget limits."""
        return self.budget.gap(cost) + self.limit

    def affords(self, cost: Cost) -> bool:
        """Whether the limit holds with this cost on top of what is spent."""
        total = self.cost + cost
        if isinstance(self.budget, ApproxDP) and total.renyi_epsilon(self.budget.delta)[1] <= self.budget.epsilon:
            return True  # proven already, and far quicker than the exact total
        return self.budget.gap(total) <= TOLERANCE * self.limit

    def left(self) -> float:
        """The largest number, in the budget's notion, that one more release may cost on its own.

        Under (ε, δ) costs do not add, and what fits depends on the shape of the release: the number is for a
        Gaussian one, at the budget's δ. In all other notions costs add, and the number is limit minus spent.
        """
        spent = self.cost
        if not spent.entries or not isinstance(self.budget, ApproxDP):
            return max(self.limit - self.price(spent), 0.0)
        try:
            largest = calibrate(gaussian_noise(self.unit), self.budget, alongside=spent, tolerance=PRECISION)
        except TargetUnreachable:
            return 0.0
        return self.price(Cost.of(largest))

    def refusal(self, cost: Cost) -> BudgetExceeded:
        """The error for a charge that does not fit."""
        asked, spent, left = self.price(cost), self.price(self.cost), self.left()
        total = self.price(self.cost + cost)
        return BudgetExceeded(
            f"Ledger: {self.dataset!r} allows {self.budget}, {rounded_up(spent, 4)} of it is spent, and this charge, "
            f"{rounded_up(asked, 4)} on its own, would make it {rounded_up(total, 4)}. A release of up to "
            f"{rounded_down(left, 4)} would fit. Lower the target, or ask the data owner to raise the limit.",
            asked=asked,
            spent=spent,
            limit=self.limit,
            fits=left,
        )


@lru_cache(maxsize=4096)
def mechanism(record: str) -> Priced:
    """The mechanism of a canonical record."""
    return from_record(json.loads(record))
