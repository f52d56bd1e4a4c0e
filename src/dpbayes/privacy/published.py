"""The papers' own privacy bounds, by name, so that anyone can compare them with the exact cost."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpbayes import _checks
from dpbayes.errors import TargetUnreachable
from dpbayes.privacy.convert import renyi_to_epsilon, tcdp_to_epsilon
from dpbayes.privacy.solve import safe_root

GOLDEN_STEPS = 200


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


def equation_10(*, weight: float, order: float, delta: float, l2_squared: float = 2.0, linf: float = 1.0) -> float:
    """ε̂ = ½·λ·r²·Δ₂²·ψ′(1 + 3(λ−1)rΔ∞) + ln(λ−1) − (ln δ + λ·ln λ)/(λ−1)

    Symbols: r weight, λ order, Δ₂² l2_squared, Δ∞ linf.
    Source: [RDP] equation (10).
    Adjacency: enters only through Δ₂² and Δ∞.
    """
    divergence = 0.5 * order * weight**2 * l2_squared * trigamma(1.0 + 3.0 * (order - 1.0) * weight * linf)
    return renyi_to_epsilon(order, divergence, delta)


def theorem_1(
    *,
    concentration: float,
    gamma: float,
    weight: float = 1.0,
    l2_squared: float = 2.0,
    linf: float = 1.0,
    least_count: float = 0.0,
) -> tuple[float, float]:
    """(ρ, ω) with ρ = ½·r²·Δ₂²·ψ′(α + r·τ − γ) and ω = γ/(r·Δ∞) + 1

    Symbols: α concentration (the smallest), γ gamma, r weight, τ least_count, Δ₂² l2_squared, Δ∞ linf.
    Source: [tCDP] theorem 1 and the end of section 3.1.
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> rho, omega = theorem_1(concentration=3, gamma=1)
    >>> round(rho, 6), omega
    (0.644934, 2.0)
    """
    _checks.positive("theorem_1", concentration=concentration, gamma=gamma, weight=weight)
    rest = concentration + weight * least_count - gamma
    _checks.positive("theorem_1", **{"concentration - gamma": rest})
    return 0.5 * weight**2 * l2_squared * trigamma(rest), gamma / (weight * linf) + 1.0


def equation_6(
    *,
    concentration: float,
    gamma: float,
    delta: float,
    weight: float = 1.0,
    l2_squared: float = 2.0,
    linf: float = 1.0,
) -> float:
    """ε by the tCDP line that γ gives.

    Symbols: as in theorem_1.
    Source: [tCDP] equation (6).
    Adjacency: enters only through Δ₂² and Δ∞.
    """
    rho, omega = theorem_1(concentration=concentration, gamma=gamma, weight=weight, l2_squared=l2_squared, linf=linf)
    return tcdp_to_epsilon(rho, omega, delta)


def theorem_2(
    *, concentration: float, delta: float, weight: float = 1.0, l2_squared: float = 2.0, linf: float = 1.0
) -> tuple[float, float, float]:
    """(ε, γ_m, γ_M): ε = min f(γ) over 0 < γ ≤ γ_M, f the second line of equation (6), attained at γ_m

    and γ_M the solution of ln(1/δ) = ½·γ²·Δ₂²·ψ′(α − γ)/Δ∞².

    Symbols: as in theorem_1; with a weight r, Δ₂ and Δ∞ are multiplied by r.
    Source: [tCDP] theorem 2, equations (7) and (8).
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> round(theorem_2(concentration=10, delta=1e-5)[0], 2)
    3.63
    """
    _checks.positive("theorem_2", concentration=concentration, weight=weight)
    _checks.probability("theorem_2", delta=delta)
    moved_squared, moved = weight**2 * l2_squared, weight * linf
    depth = -math.log(delta)

    def excess(gamma: float) -> float:
        rest = concentration - gamma
        return math.inf if rest <= 0 else 0.5 * gamma**2 * moved_squared * trigamma(rest) / moved**2 - depth

    gamma_largest = safe_root(excess, safe=0.0, unsafe=concentration, tolerance=1e-12 * depth)

    def f(gamma: float) -> float:
        return 0.5 * moved_squared * trigamma(concentration - gamma) * (gamma / moved + 1.0) + depth * moved / gamma

    # f is convex: ternary search
    low, high = 0.0, gamma_largest
    for _ in range(GOLDEN_STEPS):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        if a <= 0 or f(a) >= f(b):
            low = a
        else:
            high = b
    gamma_best = 0.5 * (low + high)
    return f(gamma_best), gamma_best, gamma_largest
