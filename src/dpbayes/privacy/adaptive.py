"""Limits that hold against an analyst who chooses each release after seeing all earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, cast, get_args

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import best_order
from dpbayes.privacy.cost import LARGEST_PURE, Cost
from dpbayes.privacy.gdp import gaussian_epsilon, gaussian_mu
from dpbayes.privacy.guarantee import RDP, ApproxDP, Guarantee, Limit, Rule, gaussian_sketch, rounded_up
from dpbayes.privacy.shares import Used, steps, used_by, uses
from dpbayes.privacy.solve import exact_parts

SLACK = 1.0 / 20.0
"""The part of δ that is set aside unless the owner says otherwise; it costs about 0.2 % of the noise."""

FULL = 1.0 - 1e-9
"""Of what is left, this much is said to be left, so that a release of that size fits."""


MIXED = (0.25, 0.5, 0.75)
"""Shares of ε that pure releases may take beside Gaussian ones, by the rule ``gaussian``."""

MIXED_DELTA = 0.005
"""The part of δ that each of them may use; it costs Gaussian noise 0.07 % in all."""

_FIRST = 1.0 - len(MIXED) * MIXED_DELTA
"""What is left of δ for the item without pure releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDP(Limit):
    """(ε, δ)-differential privacy of a whole interaction, enforced by running sums that adaptivity cannot break.

    ``gaussian``: a charge is covered by a Gaussian of shift μ, except with probability δ₀, or it is pure ε₀. The
    ``menu`` lists pairs of a pure ε and a shift; Σε₀ and √Σμ² have to stay within one of them, and Σδ₀ below ``slack``.
    ``renyi``: the divergences at one ``order`` add up, or the pure ε₀. Rule, slack and order are fixed when the limit
    is set. Releases that are charged together were fixed together, so they are priced by their exact composition where
    that is cheaper.

    Source: docs/explanation/proofs/adaptive.md; [ST22], [FZ21].

    >>> limit = AdaptiveDP(epsilon=1, delta=1e-6)
    >>> round(limit.shift, 4), limit.slack
    (0.2359, 5e-08)
    """

    name: ClassVar[str] = "adaptive-dp"
    epsilon: float
    delta: float
    rule: Rule = "gaussian"
    slack: float | None = None
    order: float | None = None

    def __post_init__(self) -> None:
        checks.positive("AdaptiveDP", epsilon=self.epsilon)
        checks.probability("AdaptiveDP", delta=self.delta)
        checks.one_of("AdaptiveDP", get_args(Rule), rule=self.rule)
        slack = SLACK * self.delta if self.slack is None else self.slack
        checks.positive("AdaptiveDP", slack=slack)
        if slack >= self.delta:
            raise InvalidArgument(f"AdaptiveDP: expected slack below δ={self.delta:g}, got {slack:g}.")
        if self.rule == "gaussian" and self.order is not None:
            raise InvalidArgument("AdaptiveDP: an order belongs to the rule 'renyi'.")
        order = self.order
        if self.rule == "renyi":
            order = _best_order(self.epsilon, self.delta - slack) if order is None else order
            checks.order("AdaptiveDP", order)
            if math.isinf(order) or _renyi_limit(order, self.epsilon, self.delta - slack) <= 0:
                raise InvalidArgument(f"AdaptiveDP: at order {order:g} no divergence meets ε={self.epsilon:g}.")
        for field, value in (("epsilon", self.epsilon), ("delta", self.delta), ("slack", slack), ("order", order)):
            object.__setattr__(self, field, None if value is None else float(value))

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """ε and δ."""
        return self.epsilon, self.delta

    @property
    def plain(self) -> ApproxDP:
        """(ε, δ)."""
        return ApproxDP(epsilon=self.epsilon, delta=self.delta)

    @property
    def sketch(self) -> RDP:
        """The order at which Gaussian noise that fills it would be priced best."""
        return gaussian_sketch(self.shift, self.delta)

    @property
    def other_rule(self) -> AdaptiveDP:
        """The same limit by the other rule."""
        return replace(self, rule="renyi" if self.rule == "gaussian" else "gaussian", order=None)

    @property
    def divergence(self) -> float:
        """The largest Rényi divergence at the order, by the rule ``renyi``."""
        return _renyi_limit(self.order or 2.0, self.epsilon, self.delta - self._slack)

    @property
    def menu(self) -> tuple[tuple[float, float], ...]:
        """Pairs (pure ε, shift), the first without and the last with nothing but pure releases."""
        if self.rule == "renyi":
            return (0.0, math.sqrt(2.0 * self.divergence / (self.order or 2.0))), (self.epsilon, 0.0)
        return _menu(self.epsilon, self.delta - self._slack)

    @property
    def shift(self) -> float:
        """The largest Gaussian shift that the limit allows."""
        return self.menu[0][1]

    @property
    def _slack(self) -> float:
        return self.slack or 0.0

    def part(self, cost: Cost) -> float:
        """The share of the limit that this cost uses on its own, if all of it was fixed beforehand."""
        return self.used([cost])

    def used(self, costs: Iterable[Cost]) -> float:
        """The share of the limit that several charges use, whatever each was adapted to: that of the best item."""
        return min(max(each) for _, each in self._sums(costs))

    def _sums(self, costs: Iterable[Cost]) -> list[tuple[tuple[float, float], Used]]:
        """The sums of all charges in each item of the menu that may matter: the first, unless some are pure."""
        charged = [step for cost in costs if cost.entries for step in steps(self, cost.entries)]
        pure = any(math.isfinite(step.pure) for step in charged)
        return [(item, uses(self, item, charged)) for item in (self.menu if pure else self.menu[:1])]

    def at(self, part: float) -> float:
        """The ε, at the limit's δ, of a release of Gaussian noise that uses this share of the limit."""
        return self._number(self.menu[0], (0.0, part, part))

    def _number(self, item: tuple[float, float], used: Used, share: float | None = None) -> float:
        """The ε, at the limit's δ, that these shares of an item keep: ε₀ + ε_μ(δ·e^−ε₀), δ the item's own share of it

        By the rule ``renyi`` it is that of Gaussian noise, enlarged so that the whole limit is ε.

        Symbols: ε₀ the pure part, ε_μ that of a Gaussian of shift μ.
        Source: docs/explanation/proofs/adaptive.md, theorem 3.
        Adjacency: none.
        """
        pure, square, betrayed = used
        if not math.isfinite(pure + square + betrayed) or pure * item[0] > LARGEST_PURE:
            return pure * item[0] if square == 0.0 else math.inf
        shift, first = item[1] * math.sqrt(square), pure * item[0]
        if self.rule == "renyi":
            whole = gaussian_epsilon(self.shift, self.delta)
            return first + self.epsilon * (gaussian_epsilon(shift, self.delta) / whole if whole > 0 else square)
        share = (_FIRST if item[0] == 0.0 else MIXED_DELTA) if share is None else share
        rest = (self.delta - min(max(square, betrayed), 1.0) * self._slack) * share
        return first + gaussian_epsilon(shift, rest * math.exp(-first))

    def spent(self, costs: Iterable[Cost]) -> float:
        """What several charges use, as an ε at the limit's δ; above the limit's ε exactly if they exceed it."""
        return self._spent(self._sums(costs))

    def running(self, costs: Iterable[Cost]) -> Iterator[float]:
        """What is spent after each of these charges: one look at each."""
        pure, menu = False, self.menu
        sums: list[list[list[float]]] = [[[], [], []] for _ in menu]
        for cost in costs:
            for step in steps(self, cost.entries) if cost.entries else ():
                pure = pure or math.isfinite(step.pure)
                for item, parts in zip(menu, sums, strict=True):
                    parts[:] = map(exact_parts, parts, used_by(self, item, step))
            found = [(item, cast("Used", tuple(map(math.fsum, parts)))) for item, parts in zip(menu, sums, strict=True)]
            yield self._spent(found if pure else found[:1])

    def _spent(self, sums: list[tuple[tuple[float, float], Used]]) -> float:
        found = [(max(used), self._number(item, used)) for item, used in sums]
        inside = [number for part, number in found if part <= 1.0]
        if inside:
            return min(*inside, self.epsilon)
        return max(min(number for _, number in found), self.epsilon * (1.0 + 1e-12))

    def left(self, costs: Sequence[Cost]) -> float:
        """The ε, at the limit's δ, of the largest release that fits beside these charges, calibrated by ``priced``."""
        if not costs:
            return self.epsilon
        found = 0.0
        for item, (pure, square, betrayed) in self._sums(costs):
            if max(pure, square, betrayed) <= 1.0:
                noise = self._number(item, (0.0, 1.0 - square, 1.0 - betrayed), _FIRST) if item[1] > 0 else 0.0
                found = max(found, noise, item[0] * (1.0 - pure))
        return min(found * FULL, self.epsilon)

    def amount(self, cost: Cost) -> float:
        """The ε that this cost uses up on its own, and never less than what it costs exactly.

        One order, fixed for the whole limit, prices a small release of other noise below its own ε.
        """
        spent = self.spent([cost])
        return max(spent, cost.epsilon(self.delta)) if self.rule == "renyi" and math.isfinite(spent) else spent

    def gap(self, cost: Cost) -> float:
        """The ε that this cost uses up minus the limit's."""
        return self.spent([cost]) - self.epsilon

    def share(self, releases: int) -> Guarantee:
        """A k-th of the limit each."""
        if self.rule == "renyi":
            return RDP(order=self.order or 2.0, epsilon=self.divergence / releases)
        epsilon = max(self.at(1.0 / releases) * FULL, 1e-12)
        return AdaptiveDP(epsilon=epsilon, delta=self.delta, slack=self._slack / releases)

    def routes(self, costs: Sequence[Cost]) -> list[dict[str, str | float]]:
        """Under the rule ``gaussian`` squared shifts, or the pure ε of everything: the first and last of the menu."""
        if self.rule == "renyi":
            return []
        charged = [step for cost in costs for step in steps(self, cost.entries)]
        first, last = self.menu[0], self.menu[-1]
        (_, square, flags), (pure, _, _) = uses(self, first, charged), uses(self, last, charged)
        kept: dict[str, str | float] = {"flags": flags, "slack": self._slack}
        return [
            {"by": "square", "most": first[1] ** 2, "used": square, **kept},
            {"by": "pure", "most": last[0], "used": pure, **kept},
        ]

    def record(self) -> dict[str, float | str]:
        """JSON form."""
        fixed: dict[str, float | str] = {"notion": self.name, "epsilon": self.epsilon, "delta": self.delta}
        fixed |= {"rule": self.rule, "slack": self._slack}
        return fixed if self.order is None else fixed | {"order": self.order}

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} at δ={rounded_up(self.delta)}"


def _renyi_limit(order: float, epsilon: float, delta: float) -> float:
    """B = ε − ln(λ−1) + (ln δ + λ·ln λ)/(λ−1), rounded down: the divergence that (ε, δ) allows at this order

    Symbols: λ order.
    Source: [RDP] lemma 3, solved for the divergence.
    Adjacency: none.
    """
    less = order - 1.0
    found = epsilon - math.log(less) + (math.log(delta) + order * math.log(order)) / less
    return found - 1e-12 * max(abs(found), epsilon)


@lru_cache(maxsize=256)
def _best_order(epsilon: float, delta: float) -> float:
    """The order at which (ε, δ) allows most Gaussian noise releases: the largest B/λ."""
    return best_order(lambda order: -_renyi_limit(order, epsilon, delta) / order, lowest=1.01)


@lru_cache(maxsize=256)
def _menu(epsilon: float, delta: float) -> tuple[tuple[float, float], ...]:
    """Pairs (E, μ) with e^E·δ_μ(ε − E) ≤ δ_i, where Σδ_i ≤ δ; the last, (ε, 0), needs no δ

    Symbols: E pure ε, μ shift.
    Source: docs/explanation/proofs/adaptive.md, theorem 3.
    Adjacency: none.
    """
    first = gaussian_mu(epsilon, delta * _FIRST)
    mixed = [
        (share * epsilon, gaussian_mu((1.0 - share) * epsilon, delta * MIXED_DELTA * math.exp(-share * epsilon)))
        for share in MIXED
        if share * epsilon <= LARGEST_PURE
    ]
    return (0.0, first), *mixed, (epsilon, 0.0)
