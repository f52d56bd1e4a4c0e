"""From Rényi curves and concentrated bounds to (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpbayes.base import checks
from dpbayes.privacy.solve import ROUND_UP, ULPS, least


def renyi_to_epsilon(order: float, renyi: float, delta: float) -> float:
    """ε = D + ln(λ−1) − (ln δ + λ·ln λ)/(λ−1), at least 0.

    Symbols: λ order, D renyi.
    Source: [RDP] lemma 3 (from [CKS20] proposition 12).
    Adjacency: that of the Rényi bound.

    >>> round(renyi_to_epsilon(order=5, renyi=0.1, delta=1e-5), 6)
    2.352728
    """
    checks.order("renyi_to_epsilon", order)
    checks.probability("renyi_to_epsilon", delta=delta)
    if math.isinf(order) or math.isinf(renyi):
        return renyi
    less = order - 1.0
    chance, entropy = math.log(delta) / less, order * math.log(order) / less
    rounding = ULPS * (renyi + abs(math.log(less)) + abs(chance) + entropy)
    return max(renyi + math.log(less) - (chance + entropy) + rounding, 0.0)


def renyi_to_delta(order: float, renyi: float, epsilon: float) -> float:
    """δ = exp((λ−1)(D−ε))·(1−1/λ)^λ/(λ−1), at most 1.

    Symbols: λ order, D renyi.
    Source: [RDP] lemma 3 (from [CKS20] proposition 12).
    Adjacency: that of the Rényi bound.
    """
    checks.order("renyi_to_delta", order)
    checks.non_negative("renyi_to_delta", epsilon=epsilon)
    if math.isinf(renyi) or math.isinf(order):
        return 0.0 if renyi <= epsilon else 1.0
    less = order - 1.0
    exponent = less * (renyi - epsilon) + order * math.log1p(-1.0 / order) - math.log(less)
    rounding = ULPS * (less * (renyi + abs(renyi - epsilon)) + 2.0 + abs(math.log(less)))
    return min(math.exp(min(exponent + rounding, 0.0)) * (1.0 + ULPS), 1.0)


def tcdp_to_epsilon(rho: float, omega: float, delta: float) -> float:
    """ε = ρ + 2√(ρ·ln(1/δ)) if ln(1/δ) ≤ (ω−1)²ρ, else ρω + ln(1/δ)/(ω−1).

    Symbols: ρ rho, ω omega; ω = inf is zCDP.
    Source: [tCDP] lemma 1 (from [BDRS18] lemma 6).
    Adjacency: that of the bound.

    >>> round(tcdp_to_epsilon(rho=0.1, omega=math.inf, delta=1e-5), 6)
    2.245966
    """
    checks.probability("tcdp_to_epsilon", delta=delta)
    checks.order("tcdp_to_epsilon", omega)
    if math.isinf(rho):
        return math.inf
    depth = -math.log(delta)
    if depth <= (omega - 1.0) ** 2 * rho:
        return rho + 2.0 * math.sqrt(rho * depth)
    return rho * omega + depth / (omega - 1.0)


def tcdp_to_delta(rho: float, omega: float, epsilon: float) -> float:
    """The least δ that the line ρ·λ gives at any order below ω."""

    def at(order: float) -> float:
        return renyi_to_delta(order, rho * order, epsilon) if order < omega else 1.0

    return at(best_order(at))


def statement_to_delta(epsilon: float, delta: float, at: float) -> float:
    """δ(ε′) = δ + (1−δ)·(e^ε − e^ε′)⁺/(1 + e^ε): the largest profile that an (ε, δ) statement allows.

    Symbols: ε epsilon, δ delta, ε′ at.
    Source: [KOV] theorem 3.3, the pair that dominates all (ε, δ)-DP mechanisms.
    Adjacency: that of the statement.
    """
    if at >= epsilon:
        return delta
    return min((delta + (1.0 - delta) * -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))) * ROUND_UP, 1.0)


def best_order(value: Callable[[float], float], *, lowest: float = 1.0 + 1e-6, highest: float = 1e7) -> float:
    """The order λ that makes ``value`` smallest: a grid in ln(λ−1), then a golden section around its best point.

    Any order gives a valid bound, so a missed minimum costs tightness, never privacy.

    >>> round(best_order(lambda order: (order - 3.0) ** 2), 4)
    3.0
    """
    left, right, points = math.log(lowest - 1.0), math.log(highest - 1.0), 48
    grid = [left + (right - left) * i / (points - 1) for i in range(points)]

    def at(x: float) -> float:
        return value(1.0 + math.exp(x))

    values = [at(x) for x in grid]
    best = min(range(points), key=values.__getitem__)
    found = least(at, grid[max(best - 1, 0)], grid[min(best + 1, points - 1)])
    return 1.0 + math.exp(min(found, (values[best], grid[best]))[1])
