"""Formulas of [RDP] and [tCDP] as printed that no product needs, each beside its exact twin where there is one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, loggamma, polygamma, xlogy

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.mechanisms.utility import distribution, expected_kl
from dpbayes.privacy.bounds import trigamma
from dpbayes.privacy.convert import renyi_to_epsilon, tcdp_to_epsilon
from dpbayes.privacy.solve import safe_root

GOLDEN_STEPS = 200

ROUND_UP = 1.0 + 1e-9
"""Covers the rounding of an inverted transform."""


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


def bias(p: ArrayLike, *, records: float, weight: float, concentration: float) -> Floats:
    """E[y_k] − p_k = α·(1 − d·p_k)/(rN + dα)

    Symbols: N records, r weight, α concentration, d cells.
    Source: [RDP] equation (3).
    Adjacency: none.
    """
    cells = distribution("bias", p)
    return concentration * (1.0 - cells.size * cells) / (weight * records + cells.size * concentration)


def tail_bound(eta: float, *, beta: float, cells: int, concentration: float) -> float:
    """P[KL(p‖y) > η] ≤ exp(−βη²/(2(2+η)(4+3η)))     valid for β ≥ dα/(e^{η/2} − 1), else 1

    Symbols: η eta, β beta = r·N, d cells, α concentration.
    Source: [RDP] theorem 2.
    Adjacency: none.
    """
    _checks.positive("tail_bound", eta=eta, beta=beta, concentration=concentration)
    if beta < cells * concentration / math.expm1(0.5 * eta):
        return 1.0
    return math.exp(-beta * eta**2 / (2.0 * (2.0 + eta) * (4.0 + 3.0 * eta)))


def records_by_tail_bound(eta: float, *, failure: float, cells: int, weight: float, concentration: float) -> int:
    """The N from which theorem 2 gives KL ≤ η but with probability ``failure``.

    N = max(dα/(r(e^{η/2} − 1)), 2(2+η)(4+3η)·ln(1/failure)/(rη²))

    Symbols: η eta, d cells, α concentration, r weight.
    Source: [RDP] section 4, after theorem 2.
    Adjacency: none.
    """
    _checks.positive("records_by_tail_bound", eta=eta, weight=weight, concentration=concentration)
    _checks.probability("records_by_tail_bound", failure=failure)
    for_bias = cells * concentration / math.expm1(0.5 * eta)
    for_spread = 2.0 * (2.0 + eta) * (4.0 + 3.0 * eta) * -math.log(failure) / eta**2
    return math.ceil(max(for_bias, for_spread) / weight)


def tail(eta: float, p: ArrayLike, *, beta: float, concentration: float) -> float:
    """P[KL(p‖y) > η] = (1/π)·∫₀^∞ Re[e^{K(c+is) − (c+is)η}/(c+is)] ds for any c > 0, rounded up by 10⁻⁹ of itself

    K(t) = ln E[e^{tKL}] = t·Σp_k ln p_k + lnΓ(β+dα) − lnΓ(β+dα−t) + Σ[lnΓ(βp_k+α−tp_k) − lnΓ(βp_k+α)]. Along the line
    through the saddle point nothing cancels, so a small tail is as accurate as a large one. Below the mean of KL, where
    c < 0 gives the tail minus one, the error is 10⁻⁹.

    Symbols: η eta, β beta = r·N, α concentration, d cells, K the cumulants of KL.
    Source: the moments in [RDP] equation (14), at a complex argument; inversion of Laplace transforms (Bromwich).
    Adjacency: none.

    >>> exact = tail(0.05, [0.5, 0.3, 0.2], beta=200, concentration=1.0)
    >>> exact < tail_bound(0.05, beta=200, cells=3, concentration=1.0)
    True
    """
    cells = distribution("tail", p)
    shapes, total = beta * cells + concentration, beta + cells.size * concentration
    mean = expected_kl(cells, records=beta, weight=1.0, concentration=concentration)
    entropy = float(xlogy(cells, cells).sum())
    last = float((shapes[cells > 0] / cells[cells > 0]).min())  # where E[e^{tKL}] ends

    def slope(c: float) -> float:
        return entropy + float(digamma(total - c)) - float((cells * digamma(shapes - c * cells)).sum())

    def bend(c: float) -> float:
        return float((cells**2 * polygamma(1, shapes - c * cells)).sum() - polygamma(1, total - c))

    def exponent(t: np.ndarray) -> np.ndarray:
        shifted = loggamma(shapes - t[:, None] * cells) - loggamma(shapes)
        return np.asarray(t * (entropy - eta) + loggamma(total) - loggamma(total - t) + shifted.sum(axis=1))

    spread = math.sqrt(max(bend(0.0), 1e-300))
    if eta >= mean:  # the slope rises to infinity at the last t
        c = safe_root(lambda t: slope(t) - eta, safe=0.0, unsafe=last * (1.0 - 1e-12), tolerance=1e-6 * spread)
        c = max(c, min(1.0 / spread, 0.5 * last))
    else:
        c = -1.0 / spread
    # The trapezoidal rule converges geometrically; its step aliases e^−40, by the tilt or 40 spreads away.
    # Singularities lie on the real axis, so the path may bend to the right, where e^{−tη} makes it end.
    step = 2.0 * math.pi / (40.0 / abs(c) + 40.0 * math.sqrt(max(bend(c), 1e-300)))
    bent = 0.3 * spread
    height = float(exponent(np.array([c + 0j])).real[0])
    found, block = 0.5 / c, 512
    for start in range(1, 400_000, block):
        u = step * np.arange(start, start + block, dtype=np.float64)
        t = c + bent * u**2 + 1j * u
        terms = np.imag(np.exp(exponent(t) - height) / t * (2.0 * bent * u + 1j))
        found += float(terms.sum())
        if np.abs(terms[-16:]).max() < 1e-17 * abs(found):
            break
    value = step * found / math.pi * math.exp(height)
    return min(max(value * ROUND_UP if c > 0 else 1.0 + value + (ROUND_UP - 1.0), 0.0), 1.0)
