"""[tCDP] sections 2 and 3, appendices A, C and D: one draw from a Dirichlet posterior, and what it costs.

Exact values are those of counts in which one record is replaced (Δ₂² = 2, Δ∞ = 1, the default), or added or removed
(Δ₂² = Δ∞ = 1). Plain arrays are taken as public: nothing is charged.

Symbols: x counts, α alpha, one number or one per cell, α_m the smallest, r weight, γ gamma, ρ rho, ω omega, λ order,
Δ₂² l2_squared, Δ∞ linf, τ tau, a public bound on the counts.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.utility import distribution
from dpbayes.papers.checked import equal, found, same_size, states, vector
from dpbayes.papers.rdp.definitions import definition_2_1, definition_2_2, dirichlet_mechanism, kl, pairs_of
from dpbayes.papers.rdp.definitions import definition_2_3 as rdp_definition_2_3
from dpbayes.papers.rdp.theorems import equation_11 as equation_3
from dpbayes.papers.rdp.theorems import pair, records
from dpbayes.papers.result import Result
from dpbayes.privacy.bounds import trigamma
from dpbayes.privacy.convert import least, safe_root, tcdp_to_epsilon

__all__ = [
    "G", "H", "alpha_for", "compose", "definition_2_1", "definition_2_2", "definition_2_3", "density",
    "dirichlet_posterior_sampling", "equation_1", "equation_3", "equation_6", "equation_7", "lemma_1", "synthesise",
    "theorem_1", "theorem_2",
]  # fmt: skip


@states("T14")
def definition_2_3(P: ArrayLike, Q: ArrayLike, *, omega: float) -> Result[float]:
    """ρ(ω) = sup of D_λ/λ over 1 < λ < ω and both directions: P and Q are (ρ, ω)-tCDP apart, ρ-zCDP if ω = ∞
    Source: [tCDP] definition 2.3.
    """

    def missed(depth: float) -> float:
        order = 1.0 + math.exp(depth)
        return -float(rdp_definition_2_3(P, Q, order=order)) / order

    grid = np.linspace(math.log(1e-5), math.log(max(min(omega, 1e8) - 1.0, 1e-4)), 400)  # the largest is between two
    at = int(np.argmin([missed(x) for x in grid]))
    highest = -least(missed, grid[max(at - 1, 0)], grid[min(at + 1, 399)])[0]
    return equal(max(highest, float(kl(P, Q)), float(kl(Q, P))))  # KL is the limit at order 1


@states("T15")
def compose(*pairs: tuple[float, float]) -> Result[float]:
    """(ρ₁, ω₁) and (ρ₂, ω₂) compose to (Σ ρ, min ω): ``rho`` and ``omega``, for any number of pairs
    Source: [tCDP] section 2.1.
    """
    omegas, spent = pairs_of("compose", tuple((pair[1], pair[0]) for pair in pairs))
    for omega in omegas:
        checks.order("compose", omega)
    return found(math.fsum(spent), rho=math.fsum(spent), omega=float(min(omegas)))


@states("T16", rho=non_negative)
def lemma_1(*, rho: float, omega: float, delta: float) -> Result[float]:
    """ε = ρ + 2√(ρ·ln(1/δ)) if ln(1/δ) ≤ (ω−1)²ρ, else ρω + ln(1/δ)/(ω−1)
    Source: [tCDP] lemma 1.
    """
    return found(tcdp_to_epsilon(rho, omega, delta))


@states("T18")
def equation_1(alpha: ArrayLike) -> Result[float]:
    """Ln B(α) = Σ lnΓ(α_i) − lnΓ(Σ α_i)
    Source: [tCDP] equation (1).
    """
    cells = vector("equation_1", "alpha", alpha, above=True)
    return equal(float(gammaln(cells).sum() - gammaln(cells.sum())))


@states("T17")
def density(y: ArrayLike, *, alpha: ArrayLike) -> Result[float]:
    """p(y) = Π y_i^(α_i − 1)/B(α)
    Source: [tCDP] section 2.2.
    """
    law, cells = same_size("density", distribution("density", y), vector("density", "alpha", alpha, above=True))
    return equal(float(np.exp(xlogy(cells - 1.0, law).sum() - float(equation_1(cells)))))


@states("T19")
def dirichlet_posterior_sampling(
    x: ArrayLike, *, alpha: ArrayLike, r: float = 1.0, rng: np.random.Generator | None = None
) -> Result[Floats]:
    """Y ~ Dirichlet(r·x + α): the value is r·x + α, ``draw`` is one Y; ``theorem_1`` has its price
    Source: [tCDP] section 2.3, equation (9).
    """
    return dirichlet_mechanism(x, r=r, alpha=alpha, rng=rng)


@states("T5")
def synthesise(
    x: ArrayLike, *, size: int, alpha: ArrayLike, r: float = 1.0, rng: np.random.Generator | None = None
) -> Result[Floats]:
    """One ``draw`` Y ~ Dirichlet(r·x + α), then ``records`` from Multinomial(Y), cells by number, at no further cost
    Source: [tCDP] section 1.
    """
    made = dirichlet_mechanism(x, r=r, alpha=alpha, rng=rng)
    return equal(made.printed, **made.parts, records=records(made.draw, size, rng))


@states("T22 T27 T56")
def theorem_1(
    *, alpha: ArrayLike, gamma: float, l2_squared: float = 2.0, linf: float = 1.0, r: float = 1.0, tau: float = 0.0
) -> Result[float]:
    """ρ = ½·r²·Δ₂²·ψ′(α_m + rτ − γ), ω = γ/(rΔ∞) + 1, and so (λ, λρ)-RDP for λ < ω: ``renyi(order)``
    ``exact`` is D_ω/ω of the worst neighbours, infinite from ω = 1 + (α + rτ)/(rΔ∞) on: no (ρ, ∞) can be had.
    Source: [tCDP] theorem 1, section 3.1, appendix A.

    >>> x = theorem_1(alpha=10, gamma=2)
    >>> round(x.rho, 4), x.omega, round(x.exact, 4), round(x.renyi(2), 4)
    (0.1331, 3.0, 0.101, 0.2663)
    """
    known = np.asarray(alpha, dtype=np.float64) + r * tau
    if not gamma < known.min():
        raise InvalidArgument(f"theorem_1: expected gamma below the smallest alpha, got {gamma!r}.")
    rho, omega = _line(float(known.min()), gamma, r, l2_squared, linf)
    worst = pair(r, known, l2_squared, linf)
    exact = None if worst is None else worst.renyi(omega) / omega
    return found(rho, exact, rho=rho, omega=omega, renyi=partial(_renyi, rho, omega))


def _line(smallest: float, gamma: float, r: float, l2_squared: float, linf: float) -> tuple[float, float]:
    return 0.5 * r**2 * l2_squared * trigamma(smallest - gamma), gamma / (r * linf) + 1.0


def _renyi(rho: float, omega: float, order: float) -> float:
    checks.order("theorem_1", order)
    return order * rho if order < omega else math.inf


@states("T25 R68")
def G(u: ArrayLike, v: ArrayLike, *, order: float) -> Result[Any]:
    """(λ−1)·(lnΓ(v) − lnΓ(u))
    Source: [tCDP] equation (4); [RDP] appendix D.
    """
    one, other = _both("G", u, v)
    return equal((order - 1.0) * (gammaln(other) - gammaln(one)))


@states("T26 R68")
def H(u: ArrayLike, v: ArrayLike, *, order: float) -> Result[Any]:
    """lnΓ(u + (λ−1)(u − v)) − lnΓ(u), ∞ where u + (λ−1)(u − v) is not positive
    Source: [tCDP] equation (5); [RDP] appendix D.
    """
    one, other = _both("H", u, v)
    ahead = one + (order - 1.0) * (one - other)
    return equal(np.where(ahead > 0, gammaln(np.where(ahead > 0, ahead, 1.0)) - gammaln(one), math.inf))


def _both(owner: str, u: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    one, other = checks.amounts(owner, np.atleast_1d(u)), checks.amounts(owner, np.atleast_1d(v))
    same_size(owner, one, other)
    if not (one.all() and other.all()):
        raise InvalidArgument(f"{owner}: expected u and v above zero.")
    return one.reshape(np.shape(u)), other.reshape(np.shape(v))


@states("T32")
def equation_6(
    *, alpha: ArrayLike, gamma: float, delta: float, r: float = 1.0, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """ε by lemma 1 from the (ρ, ω) that theorem 1 has for this γ
    Source: [tCDP] equation (6).
    """
    line = theorem_1(alpha=alpha, gamma=gamma, r=r, l2_squared=l2_squared, linf=linf)
    return found(tcdp_to_epsilon(line.rho, line.omega, delta), _cost(delta, r, alpha, l2_squared, linf))


def _cost(delta: float, r: float, alpha: ArrayLike, l2_squared: float, linf: float) -> float | None:
    worst = pair(r, alpha, l2_squared, linf)
    return None if worst is None else worst.epsilon(delta)


@states("T34")
def equation_7(
    gamma: float, *, alpha: ArrayLike, delta: float, r: float = 1.0, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """f(γ) = ½·r²·Δ₂²·ψ′(α_m − γ)·(γ/(rΔ∞) + 1) + ln(1/δ)·rΔ∞/γ, convex, and a valid ε at any γ
    Source: [tCDP] equation (7).
    """
    line = theorem_1(alpha=alpha, gamma=gamma, r=r, l2_squared=l2_squared, linf=linf)
    return found(_f(line.rho, line.omega, delta))


def _f(rho: float, omega: float, delta: float) -> float:
    return rho * omega - math.log(delta) / (omega - 1.0)


@states("T35 T33 T30")
def theorem_2(
    *, alpha: ArrayLike, delta: float, r: float = 1.0, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """ε = f(γ_m) = min f(γ) over 0 < γ ≤ γ_M, where γ_M solves ln(1/δ) = ½·γ²·Δ₂²·ψ′(α_m − γ)/Δ∞²
    Source: [tCDP] theorem 2, equation (8), section 3.2; f of equation (7).

    >>> x = theorem_2(alpha=10, delta=1e-5)
    >>> round(x.printed, 3), round(x.exact, 3), round(x.gamma_m, 2), round(x.gamma_M, 2)
    (3.627, 1.877, 4.87, 6.19)
    """
    smallest, depth = float(np.min(alpha)), -math.log(delta)

    def excess(gamma: float) -> float:
        if gamma >= smallest:
            return math.inf
        rho, omega = _line(smallest, gamma, r, l2_squared, linf)
        return rho * (omega - 1.0) ** 2 - depth

    def f(gamma: float) -> float:
        return _f(*_line(smallest, gamma, r, l2_squared, linf), delta)

    last = safe_root(excess, safe=0.0, unsafe=smallest, tolerance=1e-12 * depth)
    epsilon, best = least(f, 1e-9 * last, last, steps=70)
    return found(epsilon, _cost(delta, r, alpha, l2_squared, linf), gamma_m=best, gamma_M=last)


@states("T60 T63")
def alpha_for(*, rho: float, gamma: float, r: float = 1.0) -> Result[float]:
    """α with ρ = ½·r²·Δ₂²·ψ′(α − γ): α − γ grows as r² from one on
    Source: [tCDP] appendices C and D.
    """
    wanted = rho / r**2
    middle = max(-math.log(wanted), -0.5 * math.log(wanted))  # ψ′(x) lies between 1/(2x) and 2/x² + 1/x
    rest = safe_root(
        lambda depth: trigamma(math.exp(depth)) / wanted - 1.0,
        safe=middle + 2.0,
        unsafe=-middle - 40.0,
        tolerance=1e-13,
    )
    return found(gamma + math.exp(rest))
