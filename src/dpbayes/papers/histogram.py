"""Accuracy of a private histogram and of a private posterior: the bounds of [tCDP], each beside its exact twin."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, digamma, erfinv, gammaln

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.utility import distribution
from dpbayes.privacy.solve import safe_root


def _priors(owner: str, prior: ArrayLike, private_prior: ArrayLike, cells: int) -> tuple[Floats, Floats]:
    base = np.broadcast_to(np.asarray(prior, dtype=np.float64), (cells,))
    private = np.broadcast_to(np.asarray(private_prior, dtype=np.float64), (cells,))
    if (base < 1).any() or (private < base).any():
        raise InvalidArgument(f"{owner}: expected prior >= 1 and private_prior >= prior in every cell.")
    return base, private


def posterior_kl_bound(p: ArrayLike, *, records: int, prior: ArrayLike, private_prior: ArrayLike) -> float:
    """E[KL(Dir(X+α) ‖ Dir(X+α′))] ≤ Σ (α′_k − α_k)²/p_k/(N+1), X ~ Multinomial(N, p)

    Symbols: N records, α prior, α′ private_prior.
    Source: [tCDP] theorem 3, equations (10) and (11).
    Adjacency: none.
    """
    cells = distribution("posterior_kl_bound", p)
    base, private = _priors("posterior_kl_bound", prior, private_prior, cells.size)
    _checks.positive("posterior_kl_bound", **{"smallest p": float(cells.min())})
    return float((((private - base) ** 2) / cells).sum() / (records + 1))


def posterior_kl(p: ArrayLike, *, records: int, prior: ArrayLike, private_prior: ArrayLike) -> float:
    """E[KL(Dir(X+α) ‖ Dir(X+α′))], exact: the total is fixed and each X_k is binomial.

    Symbols: N records, α prior, α′ private_prior.
    Source: [tCDP] equation (20), summed over the binomial law of each cell.
    Adjacency: none.

    >>> exact = posterior_kl([0.2, 0.8], records=50, prior=1.0, private_prior=3.0)
    >>> exact < posterior_kl_bound([0.2, 0.8], records=50, prior=1.0, private_prior=3.0)
    True
    """
    cells = distribution("posterior_kl", p)
    base, private = _priors("posterior_kl", prior, private_prior, cells.size)
    x = np.arange(records + 1, dtype=np.float64)
    choose = gammaln(records + 1.0) - gammaln(x + 1.0) - gammaln(records - x + 1.0)
    total, total_private = records + base.sum(), records + private.sum()
    value = gammaln(total) - gammaln(total_private) + (private.sum() - base.sum()) * digamma(total)
    for q, a, b in zip(cells, base, private, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            log_mass = choose + np.where(x > 0, x * np.log(q), 0.0)
            log_mass += np.where(records - x > 0, (records - x) * np.log1p(-q), 0.0)
        inner = gammaln(x + b) - gammaln(x + a) - (b - a) * digamma(x + a)
        value += float((np.exp(log_mass) * inner).sum())
    return float(value)


def linf_bound(*, cells: int, records: float, total_concentration: float, failure: float) -> float:
    """‖y − p‖∞ ≤ √(ln(2d/β)/(2(N + α₀ + 1))) + α₀/(N + α₀) but with probability β

    Symbols: d cells, N records, α₀ total_concentration, β failure. For a weight r replace N by r·N.
    Source: [tCDP] theorem 4, equation (13).
    Adjacency: none.
    """
    _checks.probability("linf_bound", failure=failure)
    spread = math.sqrt(math.log(2.0 * cells / failure) / (2.0 * (records + total_concentration + 1.0)))
    return spread + total_concentration / (records + total_concentration)


def linf_quantile(p: ArrayLike, *, records: float, concentration: float, failure: float) -> tuple[float, float]:
    """Between which ‖y − p‖∞ lies that is exceeded with probability β, by the exact beta law of each cell

    from below by the largest probability of a single cell, from above by the sum over cells. With two cells
    both error sizes are equal and the lower end is exact.

    Symbols: N records (times r for a weight r), α concentration, β failure.
    Source: our counterpart to [tCDP] theorem 4; y_k ~ Beta(Np_k + α, N(1−p_k) + (d−1)α).
    Adjacency: none.
    """
    cells = distribution("linf_quantile", p)
    _checks.probability("linf_quantile", failure=failure)
    first = records * cells + concentration
    second = records * (1.0 - cells) + (cells.size - 1) * concentration

    def exceed(t: float) -> Floats:
        below = betainc(first, second, np.clip(cells - t, 0.0, 1.0))
        above = betainc(second, first, np.clip(1.0 - cells - t, 0.0, 1.0))
        return np.asarray(below + above)

    def solve(gather: str) -> float:
        return safe_root(
            lambda t: float(getattr(exceed(t), gather)()) - failure, safe=1.0, unsafe=0.0, tolerance=1e-9 * failure
        )

    return solve("max"), solve("sum")


def records_for_linf(
    error: float,
    *,
    cells: int,
    failure: float,
    rho: float,
    gamma: float,
    l2_squared: float = 2.0,
    high_privacy: bool = True,
) -> float:
    """N = ln(2d/β)/ϵ² + (d/ϵ)·(Δ₂²/(2ρ) + γ); in the low-privacy regime Δ₂/√(2ρ) in place of Δ₂²/(2ρ)

    The papers state the order of growth only; the constants here are those of the formula as printed.

    Symbols: ϵ error, d cells, β failure, ρ rho, γ gamma, Δ₂² l2_squared.
    Source: [tCDP] equations (14) and (15).
    Adjacency: enters only through Δ₂².
    """
    _checks.positive("records_for_linf", error=error, rho=rho, gamma=gamma)
    _checks.probability("records_for_linf", failure=failure)
    noise = l2_squared / (2.0 * rho) if high_privacy else math.sqrt(l2_squared / (2.0 * rho))
    return math.log(2.0 * cells / failure) / error**2 + cells / error * (noise + gamma)


def gaussian_linf_bound(*, cells: int, records: float, rho: float, failure: float, l2_squared: float = 2.0) -> float:
    """‖Z‖∞ ≤ √(ln(2d/β)·Δ₂²/(N²ρ)) but with probability β, Z Gaussian noise on p with ρ-zCDP

    Symbols: d cells, N records, ρ rho, β failure, Δ₂² l2_squared.
    Source: [tCDP] equation (16).
    Adjacency: enters only through Δ₂².
    """
    _checks.probability("gaussian_linf_bound", failure=failure)
    return math.sqrt(math.log(2.0 * cells / failure) * l2_squared / (records**2 * rho))


def gaussian_linf(*, cells: int, records: float, rho: float, failure: float, l2_squared: float = 2.0) -> float:
    """The exact quantile of ‖Z‖∞: σ·√2·erf⁻¹((1−β)^{1/d}), σ² = Δ₂²/(2N²ρ)

    Symbols: as in gaussian_linf_bound.
    Source: our counterpart to [tCDP] equation (16): the cells are independent.
    Adjacency: enters only through Δ₂².
    """
    _checks.probability("gaussian_linf", failure=failure)
    sigma = math.sqrt(l2_squared / (2.0 * rho)) / records
    return sigma * math.sqrt(2.0) * float(erfinv((1.0 - failure) ** (1.0 / cells)))
