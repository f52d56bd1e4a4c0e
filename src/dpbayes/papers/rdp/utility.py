"""[RDP] section 4 and appendix E: how far a Dirichlet draw is from its table in KL divergence.

Symbols: q ~ Dirichlet(βp + α), p shares, d their number, α alpha, β beta = r·N_f for Algorithm 1, η eta, λ order, ε
epsilon, r weight, W Lambert's function. Sample sizes are for one replaced record (Δ₂² = 2, Δ∞ = 1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from dpbayes._checks import positive
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.utility import distribution, kl_tail, log_moment
from dpbayes.papers.checked import equal, found, states
from dpbayes.papers.rdp.privacy import lemma_2
from dpbayes.papers.result import Result

__all__ = [
    "equation_14", "equation_15", "equation_16", "lambert_bound", "sample_complexity", "sample_size", "theorem_2",
]  # fmt: skip


@states("R33 R34", alpha=positive)
def theorem_2(p: ArrayLike, *, alpha: float, beta: float, eta: float) -> Result[float]:
    """P[KL(p‖q) > η] ≤ exp(−βη²/(2(2+η)(4+3η))) for β ≥ dα/(e^(η/2) − 1), else 1; the proof needs α ≥ ½
    ``bound`` is the print where it is proved, else 1. ``exact`` is never below the truth: at most 10⁻⁷ of itself above
    it, or 2·10⁻⁹ where η is below the mean of KL.
    Source: [RDP] theorem 2 and the display after it.

    >>> x = theorem_2([0.001] * 1000, alpha=0.1, beta=10, eta=5)
    >>> round(x.printed, 4), x.valid, float(x), round(x.exact, 6)
    (0.3907, False, 1.0, 1.0)
    """
    cells = distribution("theorem_2", p)
    proved = beta >= cells.size * alpha / math.expm1(0.5 * eta)
    printed = math.exp(-beta * lambert_bound(eta).exponent) if proved else 1.0
    valid, exact = alpha >= 0.5 or not proved, kl_tail(cells, beta=beta, concentration=alpha, eta=eta)
    return found(printed, exact, valid=valid, corrected=1.0, bound=printed if valid else 1.0)


@states("R35")
def sample_size(*, eta: float, failure: float, d: int, order: float, epsilon: float) -> Result[int]:
    """N = max(dα/(e^(η/2) − 1), 2(2+η)(4+3η)·ln(1/failure)/η²)/r, from which theorem 2 gives P[KL > η] ≤ failure
    Source: [RDP] section 4, the first sample size, with its constants and the r and α of algorithm 1.
    """
    made = lemma_2(order=order, epsilon=epsilon)
    needed = max(d * made.alpha / math.expm1(0.5 * eta), -math.log(failure) / lambert_bound(eta).exponent)
    return found(math.ceil(needed / made.r), r=made.r, alpha=made.alpha)


@states("R40 R38 R39 R41")
def sample_complexity(*, eta: float, order: float, epsilon: float, d: int) -> Result[float]:
    """N_f = Ω(1/(εη²) + d(λ−1)/(e^(η/2) − 1)) if ε ≥ 1, Ω(√(λ/ε)·[1/η² + d/(e^(η/2) − 1)]) if ε < 1, constants 1
    An order of growth is no bound. ``premise`` says whether r > 1 if ε ≥ 1, and r ≤ 1 if ε < 1, as the print has it;
    ``by_equations`` takes the true r and α instead: 1/(rη²) + dα/(r(e^(η/2) − 1)).
    Source: [RDP] section 4, the display of both cases.
    """
    made, spread = lemma_2(order=order, epsilon=epsilon), math.expm1(0.5 * eta)
    if epsilon >= 1:
        printed = 1.0 / (epsilon * eta**2) + d * (order - 1.0) / spread
    else:
        printed = math.sqrt(order / epsilon) * (1.0 / eta**2 + d / spread)
    exactly = (1.0 / eta**2 + d * made.alpha / spread) / made.r
    premise = (made.r > 1) == (epsilon >= 1)
    return found(printed, premise=premise, by_equations=exactly, r=made.r, alpha=made.alpha)


@states("R72", alpha=positive)
def equation_14(p: ArrayLike, *, alpha: float, beta: float, eta: float, t: float) -> Result[float]:
    """P[KL(p‖q) > η] ≤ e^(−tη)·E[e^(t·KL)] for t ≥ 0, in gamma functions; ∞ from where the moment ends
    Source: [RDP] equation (14).
    """
    cells = distribution("equation_14", p)
    ends = (beta * cells + alpha <= t * cells).any()
    return equal(math.inf if ends else float(np.exp(log_moment(cells, beta, alpha, eta, np.array([t + 0j])).real[0])))


@states("R73", alpha=positive)
def equation_15(t: float, *, alpha: float, beta: float, eta: float, d: int) -> Result[float]:
    """f(t) = −tη + t·ln((β + dα)/(β − t)), above the logarithm of equation (14) for 0 ≤ t < β if α ≥ ½
    Source: [RDP] equation (15).
    """
    if t >= beta:
        raise InvalidArgument(f"equation_15: expected t below beta, got {t!r}.")
    value = -t * eta + t * math.log((beta + d * alpha) / (beta - t))
    return found(value, valid=alpha >= 0.5, corrected=math.inf)


@states("R74", alpha=positive)
def equation_16(*, alpha: float, beta: float, eta: float, d: int) -> Result[float]:
    """e^f(t*) = exp(−β(1 − 1/W)(W − 1)) at t* = β(1 − 1/W), W = W(βe^(1+η)/(β + dα)); a bound if α ≥ ½ and t* ≥ 0
    Source: [RDP] appendix E, before and in equation (16).
    """
    w = float(lambertw(beta * math.exp(1.0 + eta) / (beta + d * alpha)).real)
    t = beta * (1.0 - 1.0 / w)
    return found(math.exp(-t * (w - 1.0)), valid=alpha >= 0.5 and t >= 0, corrected=1.0, t=t)


@states("R75")
def lambert_bound(eta: float) -> Result[float]:
    """W(e^(1+η/2)) ≥ 1 + η/(2(2+η)), and so the ``exponent`` η²/(2(2+η)(4+3η)) of theorem 2
    Source: [RDP] appendix E, after equation (16).
    """
    rate = eta**2 / (2.0 * (2.0 + eta) * (4.0 + 3.0 * eta))
    return found(1.0 + eta / (2.0 * (2.0 + eta)), float(lambertw(math.exp(1.0 + 0.5 * eta)).real), exponent=rate)
