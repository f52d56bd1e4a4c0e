"""[tCDP] section 4 and appendix B: how far a draw, or its posterior, is from the table.

Symbols: p shares, x counts, N their sum, d cells, α alpha, one number or one per cell, α₀ their sum, β beta, a
probability, ϵ epsilon, an accuracy, ρ rho, γ gamma. Δ₂² = 2: one replaced record.
"""

from __future__ import annotations

import math
from itertools import count

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, digamma, erfinv, gammaln, xlog1py, xlogy

from dpbayes.base.checks import Floats, positive, probability
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import distance
from dpbayes.mechanisms.utility import distribution
from dpbayes.papers.checked import counted, equal, found, same_size, states, vector
from dpbayes.papers.rdp.definitions import dirichlet_mechanism, mean_error, parameters
from dpbayes.papers.result import Result
from dpbayes.privacy.convert import safe_root

__all__ = [
    "beta_tail", "bias", "binomial_reciprocal", "equation_11", "equation_12", "equation_14", "equation_15",
    "equation_16", "equation_17", "equation_20", "gaussian_sigma", "histogram", "sample_size", "sample_size_kl",
    "theorem_3", "theorem_4",
]  # fmt: skip

L2_SQUARED = 2.0
"""Δ₂² of a table in which one record is replaced."""


@states("T37 T58")
def theorem_3(p: ArrayLike, *, N: int, alpha: ArrayLike, alpha_prime: ArrayLike) -> Result[float]:
    """E[KL(Dir(X+α)‖Dir(X+α′))] ≤ Σ δ_i²/p_i/(N+1), δ = α′ − α ≥ 0, α ≥ 1, X ~ Multinomial(N, p)
    ``exact`` sums equation (20) over the binomial law of each cell; ``steps`` are E Σδ²/(X+α) and E Σδ²/(X+1) between.
    Source: [tCDP] theorem 3, equation (10), appendix B.
    """
    cells = _shares("theorem_3", p)
    base, private = (np.broadcast_to(np.asarray(each, dtype=np.float64), cells.shape) for each in (alpha, alpha_prime))
    if not ((base >= 1) & (private >= base)).all():
        raise InvalidArgument("theorem_3: expected alpha >= 1 and alpha_prime >= alpha in every cell.")
    if N * cells.size > 50_000_000:  # some seconds and two gigabytes
        raise InvalidArgument("theorem_3: expected up to 50,000,000 outcomes N times d, which are summed one by one.")
    moved, x = private - base, np.arange(N + 1, dtype=np.float64)[:, None]
    mass = np.exp(gammaln(N + 1.0) - gammaln(x + 1.0) - gammaln(N - x + 1.0) + xlogy(x, cells) + xlog1py(N - x, -cells))
    each, total = gammaln(x + private) - gammaln(x + base) - moved * digamma(x + base), N + base.sum()
    whole = gammaln(total) - gammaln(total + moved.sum()) + moved.sum() * digamma(total)
    steps = tuple(float((mass * moved**2 / (x + more)).sum()) for more in (base, 1.0))
    return found(float((moved**2 / cells).sum() / (N + 1)), float(whole + (mass * each).sum()), steps=steps)


def _shares(owner: str, p: ArrayLike) -> Floats:
    cells = distribution(owner, p)
    if not cells.all():
        raise InvalidArgument(f"{owner}: expected every share of p above zero.")
    return cells


@states("T38")
def equation_11(p: ArrayLike, *, N: int, s: float) -> Result[float]:
    """G(p)·s²/(N+1), G(p) = Σ 1/p_i: theorem 3 for α′ = α + s
    Source: [tCDP] equation (11).
    """
    return found(float((1.0 / _shares("equation_11", p)).sum()) * s**2 / (N + 1))


@states("T40 T39")
def equation_12(p: ArrayLike, *, N: int, rho_prime: float) -> Result[float]:
    """Δ₂⁴·G(p)/(ρ′²(N+1)) with ρ′ = Δ₂²·ψ′(α′_m − γ), α′_m − γ > 1: the last member, an order of growth, constant 1
    Source: [tCDP] equation (12).
    """
    return equation_11(p, N=N, s=L2_SQUARED / rho_prime)


@states("T41 T42")
def sample_size_kl(p: ArrayLike, *, epsilon: float, rho_prime: float, high_privacy: bool = True) -> Result[float]:
    """N = Δ₂⁴·G(p)/(ρ′²ϵ), in the low-privacy regime Δ₂²·G(p)/(ρ′ϵ), for an expected KL of ϵ: constants 1
    Source: [tCDP] section 4.1, after equation (12).
    """
    needed = (L2_SQUARED / rho_prime) ** (2 if high_privacy else 1)
    return found(needed * float((1.0 / _shares("sample_size_kl", p)).sum()) / epsilon)


@states("T57")
def equation_20(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """KL(Dir(u)‖Dir(v)) = ln B(v) − ln B(u) − Σ (v_i − u_i)·[ψ(u_i) − ψ(Σu)]
    Source: [tCDP] equation (20).
    """
    one, other = vector("equation_20", "u", u, above=True), vector("equation_20", "v", v, above=True)
    return equal(float(distance.kl(*same_size("equation_20", one, other))))


@states("T59", p=probability)
def binomial_reciprocal(*, N: int, p: float) -> Result[float]:
    """E[1/(X+1)] = (1 − (1−p)^(N+1))/((N+1)p) < 1/((N+1)p), X ~ Binomial(N, p)
    Source: [tCDP] appendix B, last display.
    """
    printed = 1.0 / ((N + 1) * p)
    return found(printed, -math.expm1((N + 1) * math.log1p(-p)) * printed)


@states("T43")
def bias(x: ArrayLike, *, alpha: ArrayLike) -> Result[float | Floats]:
    """|E[Y_i] − x_i/N| = |x_i·α₀ − N·α_i|/(N(N+α₀)) ≤ α₀/(N+α₀); ``exact`` has one for each cell, ``signed`` the sign
    Source: [tCDP] section 4.2, first display.
    """
    signed, total = mean_error("bias", x, 1.0, alpha), float(np.sum(x))
    whole = float(parameters("bias", x, 1.0, alpha).sum())
    return found((whole - total) / whole, np.abs(signed), signed=signed)


@states("T44")
def beta_tail(t: float, *, N: int, alpha_0: float) -> Result[float]:
    """P[|Y_i − E[Y_i]| > t] ≤ 2e^(−2t²(N+α₀+1)): Y_i is sub-Gaussian with variance 1/(4(N+α₀+1))
    Source: [tCDP] section 4.2.
    """
    return found(min(2.0 * math.exp(-2.0 * t * t * (N + alpha_0 + 1.0)), 1.0))


@states("T45", beta=probability)
def theorem_4(x: ArrayLike, *, alpha: ArrayLike, beta: float) -> Result[float]:
    """‖Y − p‖∞ ≤ √(ln(2d/β)/(2(N+α₀+1))) + α₀/(N+α₀) but with probability β, Y ~ Dirichlet(x + α), p = x/N
    The truth lies between ``lower``, by the exact beta law of the worst cell, and ``upper``, by their sum; ``exact`` is
    the lower end for two cells, whose errors are one.
    Source: [tCDP] theorem 4, equation (13).
    """
    cells, shapes = counted("theorem_4", x), parameters("theorem_4", x, 1.0, alpha)
    shares, rest, N = cells / cells.sum(), shapes.sum() - shapes, float(cells.sum())

    def over(t: float) -> Floats:
        below, above = np.clip(shares - t, 0.0, 1.0), np.clip(1.0 - shares - t, 0.0, 1.0)
        return np.asarray(betainc(shapes, rest, below) + betainc(rest, shapes, above)) / beta - 1.0 / cells.size

    lower = safe_root(lambda t: float(over(t).max()) + 1.0 / cells.size - 1.0, safe=1.0, unsafe=0.0, tolerance=1e-9)
    upper = safe_root(lambda t: float(over(t).sum()), safe=1.0, unsafe=0.0, tolerance=1e-9)
    printed = _radius(cells.size, N, float(shapes.sum()) - N, beta)
    return found(printed, lower if cells.size == 2 else None, lower=lower, upper=upper)


def _radius(d: int, N: float, alpha_0: float, beta: float) -> float:
    return math.sqrt(math.log(2.0 * d / beta) / (2.0 * (N + alpha_0 + 1.0))) + alpha_0 / (N + alpha_0)


@states("T45", beta=probability, alpha=positive)
def sample_size(*, d: int, beta: float, epsilon: float, alpha: float) -> Result[int]:
    """The least N from which theorem 4 gives ‖Y − p‖∞ < ϵ but with probability β, for α in every cell
    Source: [tCDP] section 4.2, after equation (13).
    """
    high = next(n for n in (2**k for k in count()) if _radius(d, n, d * alpha, beta) < epsilon)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _radius(d, middle, d * alpha, beta) < epsilon else (middle, high)
    return found(high)


@states("T46", beta=probability)
def equation_14(*, d: int, beta: float, epsilon: float, rho: float, gamma: float) -> Result[float]:
    """N = ln(2d/β)/ϵ² + (d/ϵ)·(Δ₂²/(2ρ) + γ), where α − γ > 1: an order of growth with the constants as printed
    Source: [tCDP] equation (14).
    """
    return found(math.log(2.0 * d / beta) / epsilon**2 + d / epsilon * (L2_SQUARED / (2.0 * rho) + gamma))


@states("T47", beta=probability)
def equation_15(*, d: int, beta: float, epsilon: float, rho: float, gamma: float) -> Result[float]:
    """N = ln(2d/β)/ϵ² + (d/ϵ)·(Δ₂/√(2ρ) + γ), where α − γ < 1: an order of growth with the constants as printed
    Source: [tCDP] equation (15).
    """
    return found(math.log(2.0 * d / beta) / epsilon**2 + d / epsilon * (math.sqrt(L2_SQUARED / (2.0 * rho)) + gamma))


@states("T48")
def gaussian_sigma(*, N: int, rho: float) -> Result[float]:
    """σ = √(Δ₂²/(2ρ))/N, the Gaussian noise on p = x/N that is ρ-zCDP
    Source: [tCDP] section 4.2, on the Gaussian mechanism.
    """
    return equal(math.sqrt(L2_SQUARED / (2.0 * rho)) / N)


@states("T49 T52", beta=probability)
def equation_16(*, d: int, N: int, rho: float, beta: float) -> Result[float]:
    """‖Z‖∞ ≤ √(ln(2d/β)·Δ₂²/(N²ρ)) but with probability β, Z the Gaussian noise with ρ-zCDP; it grows as √ln d
    ``exact`` is σ√2·erf⁻¹((1−β)^(1/d)), as the cells are independent.
    Source: [tCDP] equation (16).
    """
    sigma = float(gaussian_sigma(N=N, rho=rho))
    exact = sigma * math.sqrt(2.0) * float(erfinv((1.0 - beta) ** (1.0 / d)))
    return found(math.sqrt(math.log(2.0 * d / beta) * L2_SQUARED / rho) / N, exact)


@states("T51 T50", beta=probability)
def equation_17(*, d: int, beta: float, epsilon: float, rho: float) -> Result[float]:
    """ln(2d/β)/ϵ² + dΔ₂²/(ρϵ) > ln(2d/β)/ϵ² + Δ₂²/ρ ≥ 2√(ln(2d/β)Δ₂²/(ρϵ²)): ``left``, ``middle`` and ``right``
    Gaussian noise needs half of ``right`` records, fewer than the others.
    Source: [tCDP] equation (17).
    """
    spread, noise = math.log(2.0 * d / beta) / epsilon**2, L2_SQUARED / rho
    left = spread + d * noise / epsilon
    return found(left, left=left, middle=spread + noise, right=2.0 * math.sqrt(spread * noise))


@states("T45 T43 T44", beta=probability)
def histogram(
    x: ArrayLike, *, alpha: ArrayLike, beta: float = 0.05, rng: np.random.Generator | None = None
) -> Result[float]:
    """A normalised histogram: one ``draw`` Y ~ Dirichlet(x + α), and how far it is from x/N by theorem 4
    Source: [tCDP] section 4.2.
    """
    made, radius = dirichlet_mechanism(x, r=1.0, alpha=alpha, rng=rng), theorem_4(x, alpha=alpha, beta=beta)
    return found(radius.printed, radius.exact, **radius.parts, draw=made.draw)
