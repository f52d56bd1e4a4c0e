"""What a charge uses of an adaptive limit: of a pure ε, of a Gaussian shift or a divergence, and of the slack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dpbayes.privacy.cost import MOST_RELEASES, Cost, Priced, but_for
from dpbayes.privacy.gdp import Corners, pure_mu
from dpbayes.privacy.pld import ROUNDING
from dpbayes.privacy.solve import TOLERANCE, safe_root

if TYPE_CHECKING:
    from dpbayes.privacy.adaptive import AdaptiveDP

GAIN = 0.98
"""A charge is composed only if that may save 2 % of its price: for Gaussian noise it saves nothing."""

REMEMBERED = 2**17
"""Prices that a process keeps. With less room than a history takes, each charge would be priced anew at every look, and
under the lock of the ledger."""

Entries = tuple[tuple[Priced, int], ...]
Item = tuple[float, float]
"""A pair of the menu: a pure ε and a shift."""

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


def uses(limit: AdaptiveDP, item: Item, charged: Sequence[Step]) -> Used:
    """What steps use of an item of the menu, each of its pure ε or of its shift, whichever share is smaller."""
    found = [used_by(limit, item, step) for step in charged]
    first, second, third = (math.fsum(each) for each in zip(*found, strict=True)) if found else (0.0, 0.0, 0.0)
    return first, second, third


def used_by(limit: AdaptiveDP, item: Item, step: Step) -> Used:
    """What one step uses."""
    epsilon, shift = item
    most, slack = limit.divergence if limit.rule == "renyi" else shift * shift, limit.slack or 1.0
    pure, square, flagged, times = step
    as_pure = pure / epsilon if epsilon > 0 else math.inf
    covered = square / most if shift > 0 else math.inf
    counted = (as_pure, 0.0) if as_pure <= covered else (0.0, covered)
    return times * counted[0], times * counted[1], times * flagged / slack


@lru_cache(maxsize=REMEMBERED)
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
        composed = (_covered(limit, Cost(unit=entries[0][0].unit, entries=rests), pure, betrayed),)
        if GAIN * composed[0].square <= least:  # as good as it can be
            return composed
    apart = tuple(_one(limit, mechanism)._replace(times=times) for mechanism, times in entries)
    return min(apart, composed or apart, key=lambda charge: max(uses(limit, limit.menu[0], charge)))


@lru_cache(maxsize=REMEMBERED)
def _one(limit: AdaptiveDP, mechanism: Priced) -> Step:
    """The step that one release of a mechanism is."""
    rest, betrayed = but_for(mechanism)
    if limit.rule == "renyi":
        return Step(rest.renyi(math.inf), rest.renyi(limit.order or 2.0), betrayed)
    if hasattr(rest, "gdp"):
        return _simply(mechanism)
    return _covered(limit, Cost.of(rest), rest.renyi(math.inf), betrayed)


def _simply(mechanism: Priced) -> Step:
    """The same by what it says itself, or by its pure ε."""
    rest, betrayed = but_for(mechanism)
    pure = rest.renyi(math.inf)
    mu, tail = rest.gdp() if hasattr(rest, "gdp") else (pure_mu(pure), 0.0)
    return Step(pure, mu * mu, betrayed + tail)


def _covered(limit: AdaptiveDP, cost: Cost, pure: float, betrayed: float) -> Step:
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
    flagged = _flagged(cost, pure, betrayed, share * slack)
    if flagged.square > most and share < 1.0:  # it will be counted as pure, and needs no slack
        flagged = _flagged(cost, pure, betrayed, share * slack * (most / flagged.square) ** 8)

    def gap(log_share: float) -> float:
        square = _flagged(cost, pure, betrayed, slack * math.exp(log_share)).square
        return math.log(max(square / most, 1e-300)) - log_share

    if flagged.square < share * most:  # less slack will do
        least = safe_root(gap, safe=math.log(share), unsafe=math.log(1e-15), tolerance=TOLERANCE)
        flagged = _flagged(cost, pure, betrayed, slack * math.exp(least))
    taken = max(flagged.square, (flagged.flagged - betrayed) / slack * most)
    return flagged if taken < GAIN * response.square else response


def _flagged(cost: Cost, pure: float, betrayed: float, delta: float) -> Step:
    """The step that is covered but for this δ₀."""
    shift = max(corner.mu(delta) for corner in _corners(cost))
    return Step(pure, shift * shift, betrayed + delta)


@lru_cache(maxsize=16)
def _corners(cost: Cost) -> tuple[Corners, ...]:
    """Those of the composed loss, in each direction."""
    return tuple(Corners.of(*each) for each in cost.pld().losses())
