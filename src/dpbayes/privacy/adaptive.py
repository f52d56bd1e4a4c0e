"""Limits that hold against an analyst who chooses each release after seeing all earlier ones.

A charge uses some of a pure ε, of a Gaussian shift or a divergence, and of the slack.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple, cast, get_args

from dpbayes.base import checks
from dpbayes.base.display import rounded_up
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import (
    TOLERANCE,
    Corners,
    best_order,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    safe_root,
)
from dpbayes.privacy.cost import LARGEST_PURE, MOST_RELEASES, Cost, Priced, but_for
from dpbayes.privacy.guarantee import RDP, ApproxDP, Charged, Guarantee, Limit, Rule, gaussian_sketch
from dpbayes.privacy.pld import ROUNDING

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
        # a twentieth of δ is set aside unless the owner says otherwise; it costs about 0.2 % of the noise
        slack = self.delta * (1.0 / 20.0) if self.slack is None else self.slack
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

    def shares(self, costs: Iterable[Cost]) -> Counter[tuple[float, ...]]:
        """Of each step, whether it is pure, and what it uses of every item of the menu."""
        menu, found = self.menu, Counter[tuple[float, ...]]()
        for step, times in Counter(_steps(self, costs)).items():
            each = (share for item in menu for share in used_by(self, item, step))
            found[float(math.isfinite(step.pure)), *each] += times
        return found

    def used(self, costs: Iterable[Cost] | Charged) -> float:
        """The share of the limit that several charges use, whatever each was adapted to: that of the best item."""
        return min(max(each) for _, each in self._sums(costs))

    def _sums(self, costs: Iterable[Cost] | Charged, *, all_: bool = False) -> list[tuple[tuple[float, float], Used]]:
        """The sums of all charges in each item of the menu that may matter: the first, unless some are pure."""
        since, sums = (costs.since, costs.sums) if isinstance(costs, Charged) else (costs, ())
        charged = _steps(self, since)
        pure = all_ or (sums and sums[0] != (0.0,)) or any(math.isfinite(step.pure) for step in charged)
        menu = enumerate(self.menu if pure else self.menu[:1])
        return [(item, uses(self, item, charged, sums[3 * place + 1 : 3 * place + 4])) for place, item in menu]

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

    def spent(self, costs: Iterable[Cost] | Charged) -> float:
        """What several charges use, as an ε at the limit's δ; above the limit's ε exactly if they exceed it."""
        found = [(max(used), self._number(item, used)) for item, used in self._sums(costs)]
        inside = [number for part, number in found if part <= 1.0]
        if inside:
            return min(*inside, self.epsilon)
        return max(min(number for _, number in found), self.epsilon * (1.0 + 1e-12))

    def left(self, costs: Sequence[Cost] | Charged) -> float:
        """The ε, at the limit's δ, of the largest release that fits beside these charges (see ``fit_to_limit``)."""
        if not costs:
            return self.epsilon
        found = 0.0
        for item, (pure, square, betrayed) in self._sums(costs):
            if max(pure, square, betrayed) <= 1.0:
                noise = self._number(item, (0.0, 1.0 - square, 1.0 - betrayed), _FIRST) if item[1] > 0 else 0.0
                found = max(found, noise, item[0] * (1.0 - pure))
        return min(found * (1.0 - 1e-9), self.epsilon)  # so that a release of that size fits

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
        epsilon = max(self.at(1.0 / releases) * (1.0 - 1e-9), 1e-12)
        return AdaptiveDP(epsilon=epsilon, delta=self.delta, slack=self._slack / releases)

    def routes(self, costs: Sequence[Cost] | Charged) -> list[dict[str, str | float]]:
        """Under the rule ``gaussian`` squared shifts, or the pure ε of everything: the first and last of the menu."""
        if self.rule == "renyi":
            return []
        (first, (_, square, flags)), *_, (last, (pure, _, _)) = self._sums(costs, all_=True)
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


GAIN = 0.98
"""A charge is composed only if that may save 2 % of its price: for Gaussian noise it saves nothing."""

Entries = tuple[tuple[Priced, int], ...]
Used = tuple[float, float, float]
"""Shares of one item of the menu: of its pure ε, of its squared shift (or divergence), of the slack."""


class Step(NamedTuple):
    """A step of the interaction, repeated: in every item of the menu it is the same, but for how it is counted."""

    pure: float
    """The pure ε that it has unless a flag is raised; infinite if it has none."""
    square: float
    """The squared shift that covers it unless a flag is raised, or its divergence by the rule ``renyi``."""
    flagged: float
    """The probability of a flag, which is one for all items."""
    times: int = 1


def uses(
    limit: AdaptiveDP, item: tuple[float, float], charged: Sequence[Step], sums: Sequence[Sequence[float]] = ()
) -> Used:
    """What steps use of an item of the menu, each of its pure ε or of its shift, whichever share is smaller.

    ``sums`` are of those before.
    """
    each = {step: used_by(limit, item, step) for step in set(charged)}
    parts = enumerate(sums or ((), (), ()))
    return cast("Used", tuple(math.fsum((*old, *(each[step][part] for step in charged))) for part, old in parts))


def used_by(limit: AdaptiveDP, item: tuple[float, float], step: Step) -> Used:
    """What one step uses."""
    epsilon, shift = item
    most, slack = limit.divergence if limit.rule == "renyi" else shift * shift, limit.slack or 1.0
    pure, square, flagged, times = step
    as_pure = pure / epsilon if epsilon > 0 else math.inf
    covered = square / most if shift > 0 else math.inf
    counted = (as_pure, 0.0) if as_pure <= covered else (0.0, covered)
    return times * counted[0], times * counted[1], times * flagged / slack


def _steps(limit: AdaptiveDP, costs: Iterable[Cost]) -> list[Step]:
    return [step for cost in costs if cost.entries for step in steps(limit, cost.entries)]


# with less room than a history takes, each charge would be priced anew at every look, under the lock of the ledger
@lru_cache(maxsize=2**17)
def steps(limit: AdaptiveDP, entries: Entries) -> tuple[Step, ...]:
    """The steps of one charge: its releases, or all of them as one where their composition is cheaper.

    δ₀ and with it the shift depend on the charge and on the limit, and not on the item that counts them.

    Source: docs/explanation/proofs/adaptive.md, theorem 3.
    """
    releases = sum(times for _, times in entries)
    rests = tuple((but_for(mechanism)[0], times) for mechanism, times in entries)
    # composed, losses approach a Gaussian whose μ² is twice the divergence at order 1
    least = math.fsum(2.0 * times * rest.renyi(1.001) for rest, times in rests)
    simply = math.fsum(times * _simply(mechanism).square for mechanism, times in entries)
    composed: tuple[Step, ...] = ()
    if limit.rule == "gaussian" and 1 < releases <= MOST_RELEASES and least < GAIN * simply:
        betrayed = math.fsum(times * but_for(mechanism)[1] for mechanism, times in entries)
        pure = math.fsum(times * rest.renyi(math.inf) for rest, times in rests)
        composed = (_cover(limit, Cost(unit=entries[0][0].unit, entries=rests), pure, betrayed),)
        if GAIN * composed[0].square <= least:  # as good as it can be
            return composed
    apart = tuple(_one(limit, mechanism)._replace(times=times) for mechanism, times in entries)
    return min(apart, composed or apart, key=lambda charge: max(uses(limit, limit.menu[0], charge)))


@lru_cache(maxsize=2**17)
def _one(limit: AdaptiveDP, mechanism: Priced) -> Step:
    """The step that one release of a mechanism is."""
    rest, betrayed = but_for(mechanism)
    if limit.rule == "renyi":
        return Step(rest.renyi(math.inf), rest.renyi(limit.order or 2.0), betrayed)
    if hasattr(rest, "gdp"):
        return _simply(mechanism)
    return _cover(limit, Cost.of(rest), rest.renyi(math.inf), betrayed)


@lru_cache(maxsize=2**17)
def _simply(mechanism: Priced) -> Step:
    """The same by what it says itself, or by its pure ε."""
    rest, betrayed = but_for(mechanism)
    pure = rest.renyi(math.inf)
    mu, tail = rest.gdp() if hasattr(rest, "gdp") else (pure_mu(pure), 0.0)
    return Step(pure, mu * mu, betrayed + tail)


def _cover(limit: AdaptiveDP, cost: Cost, pure: float, betrayed: float) -> Step:
    """The step with the least max(μ(δ₀)²/μ², δ₀/slack), μ(δ₀) the least shift that covers the loss but for δ₀

    so that shift and slack are used up together. What is pure takes no larger share of the slack than of ε, and next to
    none if it cannot be covered within the limit.

    Symbols: μ the largest shift of the menu.
    Source: docs/explanation/proofs/adaptive.md, lemma 2.
    Adjacency: that of the cost.
    """
    slack, most = limit.slack or 1.0, limit.shift**2
    response = Step(pure, pure_mu(pure) ** 2, betrayed)
    lost = ROUNDING / slack * most  # a composed loss is infinite with at least this probability
    if math.isfinite(pure) and max(2.0 * cost.renyi(1.001), lost) >= GAIN * response.square:
        return response
    share = min(pure / limit.epsilon, 1.0)
    flagged = _flag(cost, pure, betrayed, share * slack)
    if flagged.square > most and share < 1.0:  # it will be counted as pure, and needs no slack
        flagged = _flag(cost, pure, betrayed, share * slack * (most / flagged.square) ** 8)

    def gap(log_share: float) -> float:
        square = _flag(cost, pure, betrayed, slack * math.exp(log_share)).square
        return math.log(max(square / most, 1e-300)) - log_share

    if flagged.square < share * most:  # less slack will do
        least = safe_root(gap, safe=math.log(share), unsafe=math.log(1e-15), tolerance=TOLERANCE)
        flagged = _flag(cost, pure, betrayed, slack * math.exp(least))
    taken = max(flagged.square, (flagged.flagged - betrayed) / slack * most)
    return flagged if taken < GAIN * response.square else response


def _flag(cost: Cost, pure: float, betrayed: float, delta: float) -> Step:
    """The step that is covered but for this δ₀."""
    shift = max(corner.mu(delta) for corner in _corners(cost))
    return Step(pure, shift * shift, betrayed + delta)


@lru_cache(maxsize=16)
def _corners(cost: Cost) -> tuple[Corners, ...]:
    """Those of the composed loss, in each direction."""
    return tuple(Corners.of(*each) for each in cost.pld().losses())
