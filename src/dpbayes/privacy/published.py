"""The papers' own privacy bounds that products use: for vectors, and where the papers' parameters are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpbayes import _checks
from dpbayes.errors import TargetUnreachable
from dpbayes.privacy.solve import safe_root


def trigamma(x: float) -> float:
    """ψ′(x) = Σ 1/(x+k)², the Hurwitz zeta function at 2."""
    from scipy.special import zeta

    return float(zeta(2.0, x))


def trigamma_bound(order: float, *, weight: float, concentration: float, l2_squared: float, linf: float) -> float:
    """ε(λ) = ½·λ·r²·Δ₂²·ψ′(α − (λ−1)·r·Δ∞)        valid while α > (λ−1)·r·Δ∞, else ∞

    Symbols: λ order, r weight, α concentration (the smallest), Δ₂² l2_squared, Δ∞ linf.
    Source: [RDP] appendix D, last display; [tCDP] appendix A.
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> round(trigamma_bound(2, weight=1, concentration=5, l2_squared=2, linf=1), 6)
    0.567646
    """
    rest = concentration - (order - 1.0) * weight * linf
    return 0.5 * order * weight**2 * l2_squared * trigamma(rest) if rest > 0 else math.inf


def algorithm_1(
    *,
    order: float,
    epsilon: float,
    l2_squared: float = 2.0,
    linf: float = 1.0,
    slack: Callable[[float], float] | None = None,
    least_count: float = 0.0,
) -> tuple[float, float]:
    """(r, α) with ε = ½·λ·r²·Δ₂²·ψ′(1 + g(r)) and α = 1 + g(r) + (λ−1)·r·Δ∞

    where g(r) = 3(λ−1)rΔ∞ unless another ``slack`` g is given. A public bound c > b on the counts
    (``least_count``) adds r·b to the argument of ψ′, and nothing to α.

    Symbols: λ order, r weight, α concentration, Δ₂² l2_squared, Δ∞ linf, g slack, b least_count.
    Source: [RDP] algorithm 1, remark 1 (any g), remark 2 (b).
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> weight, concentration = algorithm_1(order=5, epsilon=0.1)
    >>> round(weight, 4), round(concentration, 3)
    (0.2776, 5.441)
    """
    _checks.order("algorithm_1", order)
    _checks.positive("algorithm_1", epsilon=epsilon, l2_squared=l2_squared, linf=linf)
    _checks.non_negative("algorithm_1", least_count=least_count)

    def g(weight: float) -> float:
        return 3.0 * (order - 1.0) * weight * linf if slack is None else slack(weight)

    def gap(weight: float) -> float:
        argument = 1.0 + g(weight) + weight * least_count
        return 0.5 * order * weight**2 * l2_squared * trigamma(argument) - epsilon

    high = 1.0
    while gap(high) <= 0:
        high *= 2.0
        if high > 1e100:
            raise TargetUnreachable("algorithm_1: no weight reaches this ε with the slack given; let it grow slower.")
    weight = safe_root(gap, safe=0.0, unsafe=high, tolerance=1e-13 * epsilon)
    return weight, 1.0 + g(weight) + (order - 1.0) * weight * linf
