"""What a charge uses of an adaptive limit: of a pure ε, of a Gaussian shift or a divergence, and of the slack."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from dpbayes.privacy.cost import MOST_RELEASES, Cost, Priced
from dpbayes.privacy.gdp import Corners, pure_mu
from dpbayes.privacy.solve import safe_root

if TYPE_CHECKING:
    from dpbayes.privacy.adaptive import AdaptiveDP

GAIN = 0.98
"""A charge is composed only if that may save 2 % of its price: for Gaussian noise it saves nothing."""

TOLERANCE = 1e-10
"""The share of the price to which δ₀ is balanced."""

REMEMBERED = 2**17
"""Prices that a process keeps. A limit with a menu asks for several of each charge: with less room than a history
takes, each charge would be priced anew at every look, and under the lock of the ledger."""

Used = tuple[float, float, float]
"""Shares of one item of the menu: of its pure ε, of its squared shift (or divergence), of the slack."""


def total(charges: list[Used]) -> Used:
    """The sums over several charges, correctly rounded."""
    return (
        math.fsum(pure for pure, _, _ in charges),
        math.fsum(square for _, square, _ in charges),
        math.fsum(betrayed for _, _, betrayed in charges),
    )


@lru_cache(maxsize=REMEMBERED)  # every look at a history asks it of every charge
def bounded(mechanism: Priced) -> bool:
    """Whether it is pure, perhaps except with a small probability, or a bundle with something pure in it."""
    if (together := getattr(mechanism, "together", None)) is not None:
        return any(bounded(inner) for inner, _ in together)
    return math.isfinite(_but_for(mechanism)[0].renyi(math.inf))


def _but_for(mechanism: Priced) -> tuple[Priced, float]:
    """What a mechanism is unless a chance betrays everything, and that chance."""
    split = getattr(mechanism, "but_for", None)
    return (mechanism, 0.0) if split is None else split()


@lru_cache(maxsize=REMEMBERED)
def uses(limit: AdaptiveDP, item: tuple[float, float], entries: tuple[tuple[Priced, int], ...]) -> Used:
    """What one charge uses of an item of the menu."""
    while any(hasattr(mechanism, "together") for mechanism, _ in entries):  # bundles are priced as they are charged
        entries = tuple(
            (inner, often * times)
            for mechanism, times in entries
            for inner, often in getattr(mechanism, "together", ((mechanism, 1),))
        )
    each = [(_one(limit, item, mechanism), times) for mechanism, times in entries]
    apart = total([(times * pure, times * square, times * betrayed) for (pure, square, betrayed), times in each])
    releases = sum(times for _, times in entries)
    if limit.rule == "renyi" or item[1] == 0.0 or releases == 1 or releases > MOST_RELEASES:
        return apart
    # composed, losses approach a Gaussian whose μ² is twice the divergence at order 1
    least = math.fsum(2.0 * times * mechanism.renyi(1.001) for mechanism, times in entries) / item[1] ** 2
    if not least < GAIN * max(apart[:2]):
        return apart
    composed = _balanced(limit, item[1], Cost(unit=entries[0][0].unit, entries=entries))
    return (0.0, composed, composed) if composed < max(apart) else apart


@lru_cache(maxsize=REMEMBERED)
def _one(limit: AdaptiveDP, item: tuple[float, float], mechanism: Priced) -> Used:
    """What one release of a mechanism uses of an item: of its pure ε or of its shift, whichever is less."""
    rest, betrayed = _but_for(mechanism)
    lost = betrayed / (limit.slack or 1.0)
    epsilon, shift = rest.renyi(math.inf), item[1]
    pure = epsilon / item[0] if item[0] > 0 else math.inf
    square = math.inf
    if shift > 0 and limit.rule == "renyi" and math.isfinite(divergence := rest.renyi(limit.order or 2.0)):
        square = divergence / limit.divergence
    elif shift > 0 and hasattr(rest, "gdp"):
        mu, tail = rest.gdp()
        square, lost = (mu / shift) ** 2, lost + tail / (limit.slack or 1.0)
    elif shift > 0:
        square = (pure_mu(epsilon) / shift) ** 2 if math.isfinite(epsilon) else math.inf
        balanced = _balanced(limit, shift, Cost.of(rest)) if pure > 0.5 * square or math.isinf(square) else math.inf
        if balanced < min(square, pure):
            return 0.0, balanced, lost + balanced
    return (pure, 0.0, lost) if pure <= square else (0.0, square, lost)


def _balanced(limit: AdaptiveDP, shift: float, cost: Cost) -> float:
    """The least max(μ(δ₀)²/μ², δ₀/slack) over δ₀, μ(δ₀) the least shift that covers the loss but for δ₀

    so that shift and slack are used up together.

    Symbols: μ the shift that an item of the menu allows.
    Source: docs/explanation/proofs/adaptive.md, lemma 2.
    Adjacency: that of the cost.
    """
    corners = _corners(cost)
    slack = limit.slack or 1.0

    def used(delta: float) -> float:
        return float((max(corner.mu(delta) for corner in corners) / shift) ** 2)

    if (at_most := used(slack)) > 1.0:
        return at_most

    def gap(log_share: float) -> float:
        return math.log(max(used(slack * math.exp(log_share)), 1e-300)) - log_share

    return math.exp(safe_root(gap, safe=0.0, unsafe=math.log(1e-15), tolerance=TOLERANCE))


@lru_cache(maxsize=16)
def _corners(cost: Cost) -> tuple[Corners, ...]:
    """Those of the composed loss, in each direction; all items of a menu ask for them, one after the other."""
    return tuple(Corners.of(*each) for each in cost.pld().losses())
