"""Formulas of [RDP] and [tCDP] as printed that no product needs, each beside its exact twin where there is one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import loggamma, xlogy

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.mechanisms.utility import distribution, expected_kl
from dpbayes.privacy.convert import renyi_to_epsilon, tcdp_to_epsilon
from dpbayes.privacy.published import trigamma
from dpbayes.privacy.solve import safe_root

GOLDEN_STEPS = 200


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
    """P[KL(p‖y) > η], exact by inversion of the characteristic function of ln y

    E[e^{isKL}] = Π p_k^{isp_k} · Γ(β+dα)/Γ(β+dα−is) · Π Γ(βp_k+α−isp_k)/Γ(βp_k+α).

    Symbols: η eta, β beta = r·N, α concentration, d cells.
    Source: the moments in [RDP] equation (14), at an imaginary argument; inversion by Gil-Pelaez.
    Adjacency: none.

    >>> exact = tail(0.05, [0.5, 0.3, 0.2], beta=200, concentration=1.0)
    >>> exact < tail_bound(0.05, beta=200, cells=3, concentration=1.0)
    True
    """
    cells = distribution("tail", p)
    shapes, total = beta * cells + concentration, beta + cells.size * concentration
    mean = expected_kl(cells, records=beta, weight=1.0, concentration=concentration)
    variance = sum(float(q) ** 2 * trigamma(float(a)) for q, a in zip(cells, shapes, strict=True) if q > 0)
    spread = math.sqrt(max(variance - trigamma(total), 1e-300))
    entropy = float(xlogy(cells, cells).sum())

    def log_characteristic(s: Floats) -> np.ndarray:
        shifted = loggamma(shapes - 1j * s[:, None] * cells) - loggamma(shapes)
        return np.asarray(1j * s * entropy + loggamma(total) - loggamma(total - 1j * s) + shifted.sum(axis=1))

    # The trapezoidal rule converges geometrically; its step aliases tails 40 spreads away.
    step = 2.0 * math.pi / (40.0 * spread + 4.0 * abs(eta - mean))
    tail_sum, block = 0.0, 512
    for start in range(0, 400_000, block):
        s = (np.arange(start, start + block, dtype=np.float64) + 0.5) * step
        terms = np.imag(np.exp(log_characteristic(s) - 1j * s * eta)) / s
        tail_sum += float(terms.sum())
        if np.abs(terms[-16:]).max() < 1e-15:
            break
    return min(max(0.5 + step * tail_sum / math.pi, 0.0), 1.0)
