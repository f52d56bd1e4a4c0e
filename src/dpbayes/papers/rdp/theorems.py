"""[RDP] sections 3 and 4 and the appendices: Algorithm 1, what it promises, costs exactly, and how far its draws are.

Plain arrays are taken as public: nothing is charged. ``Tables(…, accounting="published")`` serves private rows.
Exact values are those of counts in which one record is replaced (Δ₂² = 2, Δ∞ = 1, the default), or added or removed
(Δ₂² = Δ∞ = 1). For other vectors nothing exact is known, and ``exact`` is None.
Sample sizes are for one replaced record.

Symbols: f counts or another vector, λ order, r weight, α alpha, Δ₂² l2_squared, Δ∞ linf, u and v Dirichlet parameters;
q ~ Dirichlet(βp + α), p shares, d their number, β beta = r·N_f for Algorithm 1, η eta, ε epsilon, W Lambert's function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln, lambertw

from dpbayes.base.checks import Floats, non_negative, positive
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import distance
from dpbayes.mechanisms.utility import distribution, expected_kl, kl_tail, log_moment
from dpbayes.papers.checked import above_one, equal, found, states, vector
from dpbayes.papers.rdp.definitions import dirichlet_mechanism
from dpbayes.papers.result import Result
from dpbayes.privacy import bounds
from dpbayes.privacy.convert import renyi_to_delta, renyi_to_epsilon
from dpbayes.privacy.pair import GammaPair

__all__ = [
    "algorithm_1", "equation_5", "equation_6", "equation_10", "equation_11", "equation_12", "equation_14",
    "equation_15", "equation_16", "exact_delta", "exact_epsilon", "exact_renyi", "lambert_bound", "lemma_2",
    "lemma_3", "phi", "proposition_3", "remark_1", "remark_2", "renyi", "sample_complexity", "sample_size",
    "synthesise", "theorem_1", "theorem_2",
]  # fmt: skip


def pair(r: float, alpha: ArrayLike, l2_squared: float = 2.0, linf: float = 1.0) -> GammaPair | None:
    """The worst neighbours of a table of counts, if the sensitivities are those of one."""
    if (l2_squared, linf) not in ((2.0, 1.0), (1.0, 1.0)):
        return None
    first, second = np.sort(np.broadcast_to(alpha, 2) if np.ndim(alpha) == 0 else np.asarray(alpha))[:2].astype(float)
    return GammaPair(weight=float(r), first=float(first), second=float(second) if l2_squared == 2.0 else None)


def _known(r: float, alpha: ArrayLike, l2_squared: float = 2.0, linf: float = 1.0) -> GammaPair:
    worst = pair(r, alpha, l2_squared, linf)
    if worst is None:
        raise InvalidArgument("Dirichlet: expected l2_squared=2 or 1 and linf=1; no exact price of others is known.")
    return worst


@states("R25 R27")
def algorithm_1(
    f: ArrayLike, *, order: float, epsilon: float, l2_squared: float = 2.0, linf: float = 1.0,
    rng: np.random.Generator | None = None,
) -> Result[float]:  # fmt: skip
    """ε = ½·λ·r²·Δ₂²·ψ′(1 + 3(λ−1)rΔ∞) for r, α = 1 + 4(λ−1)rΔ∞; ``draw`` is one y ~ Dirichlet(r·f + α)
    The printed value is ε, the price at this order; ``exact_epsilon`` is what the draw costs.
    Source: [RDP] algorithm 1.

    >>> y = algorithm_1([11, 8, 65, 25, 38, 0], order=5, epsilon=1)
    >>> round(y.r, 4), round(y.alpha, 3), round(y.exact_epsilon, 3)
    (2.4412, 40.059, 0.74)
    """
    cells = vector("algorithm_1", "counts", f)
    r, alpha = bounds.algorithm_1(order=order, epsilon=epsilon, l2_squared=l2_squared, linf=linf)
    worst, total = pair(r, alpha, l2_squared, linf) if (cells == np.floor(cells)).all() else None, float(cells.sum())
    exact = None if worst is None else worst.renyi(order)
    far = expected_kl(cells / total, records=total, weight=r, concentration=alpha) if total else None
    made = dirichlet_mechanism(cells, r=r, alpha=alpha, rng=rng)
    return found(float(epsilon), exact, r=r, alpha=alpha, exact_epsilon=exact, expected_kl=far, **made.parts)


@states("R22")
def synthesise(
    f: ArrayLike, *, size: int, order: float, epsilon: float, rng: np.random.Generator | None = None
) -> Result[float]:
    """One ``draw`` of algorithm 1, then any number of ``records`` from it, cells by number, at no further cost
    Source: [RDP] section 2.4, on post-processing.
    """
    made = algorithm_1(f, order=order, epsilon=epsilon, rng=rng)
    return found(made.printed, made.exact, **made.parts, records=records(made.draw, size, rng))


def records(y: Floats, size: int, rng: np.random.Generator | None) -> Any:
    """Records of a distribution whose draw is paid."""
    return (np.random.default_rng() if rng is None else rng).choice(y.size, size, p=y)


def _line_1(b: float = 0.0, **more: Any) -> Result[float]:
    r, alpha = bounds.algorithm_1(least_count=b, **more)
    return found(r, r=r, alpha=alpha, exact_epsilon=_known(r, alpha + r * b).renyi(more["order"]))


@states("R26")
def lemma_2(*, order: float, epsilon: float) -> Result[float]:
    """The only r > 0 with ε = ½·λ·r²·Δ₂²·ψ′(1 + 3(λ−1)rΔ∞)
    Source: [RDP] lemma 2, appendix C.
    """
    return _line_1(order=order, epsilon=epsilon)


@states("R28 R29")
def remark_1(*, order: float, epsilon: float, g: Callable[[float], float] | None = None) -> Result[float]:
    """ε = ½·λ·r²·Δ₂²·ψ′(1 + g(r)), α = 1 + g(r) + (λ−1)rΔ∞; for g = 0, the default, r = √(2ε/(λ·Δ₂²·ψ′(1)))
    Source: [RDP] remark 1.
    """

    def slack(r: float) -> float:
        value = 0.0 if g is None else g(r)
        non_negative("remark_1", g=value)
        return value

    return _line_1(order=order, epsilon=epsilon, slack=slack)


@states("R30")
def remark_2(*, order: float, epsilon: float, b: float) -> Result[float]:
    """ε = ½·λ·r²·Δ₂²·ψ′(1 + r·b + 3(λ−1)rΔ∞): a public bound b on the counts allows a larger r; α as in algorithm 1
    Source: [RDP] remark 2.
    """
    return _line_1(b, order=order, epsilon=epsilon)


@states("R27 R69 R70", alpha=positive)
def theorem_1(
    *, r: float, order: float, alpha: float | None = None, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """D_λ ≤ ½·λ·r²·Δ₂²·ψ′(α − (λ−1)rΔ∞), ∞ unless α > (λ−1)rΔ∞; α is that of algorithm 1 unless it is given
    Source: [RDP] theorem 1, appendix D.
    """
    prior = float(equation_6(r, order=order, linf=linf)) if alpha is None else alpha
    worst = pair(r, prior, l2_squared, linf)
    printed = bounds.trigamma_bound(order, weight=r, concentration=prior, l2_squared=l2_squared, linf=linf)
    return found(printed, None if worst is None else worst.renyi(order), r=r, alpha=prior)


@states("R36")
def equation_5(r: float, *, order: float, l2_squared: float = 2.0, linf: float = 1.0) -> Result[float]:
    """ε(r) = ½·λ·r²·Δ₂²·ψ′(1 + 3(λ−1)rΔ∞), increasing in r
    Source: [RDP] equation (5).
    """
    return theorem_1(r=r, order=order, l2_squared=l2_squared, linf=linf)


@states("R37")
def equation_6(r: float, *, order: float, linf: float = 1.0) -> Result[float]:
    """α(r) = 1 + 4(λ−1)rΔ∞
    Source: [RDP] equation (6).
    """
    return equal(1.0 + 4.0 * (order - 1.0) * r * linf)


@states("R31")
def renyi(u: ArrayLike, v: ArrayLike, *, order: float) -> Result[float]:
    """D_λ(Dirichlet(u)‖Dirichlet(v)), ∞ unless u + (λ−1)(u − v) > 0
    Source: [RDP] section 3.2, the curves of figure 2.
    """
    one, other = vector("renyi", "u", u, above=True), vector("renyi", "v", v, above=True)
    return equal(float(distance.renyi(one, other, order)))


@states("R66 T24")
def equation_11(u: ArrayLike, v: ArrayLike, *, order: float) -> Result[float]:
    """E[(P/P′)^(λ−1)] = (B(v)/B(u))^(λ−1)·B(u + (λ−1)(u − v))/B(u), P = Dirichlet(u), P′ = Dirichlet(v)
    Source: [RDP] equation (11); [tCDP] equations (3) and (18).
    """
    return equal(float(np.exp((order - 1.0) * float(renyi(u, v, order=order)))))


@states("R67 T55")
def equation_12(u: ArrayLike, v: ArrayLike, *, order: float) -> Result[float]:
    """Ln E[(P/P′)^(λ−1)] = Σ (G + H)(u_i, v_i) − (G + H)(Σu, Σv) = (λ−1)·D_λ, with the G and H of ``tcdp``
    Source: [RDP] equation (12); [tCDP] equation (19).
    """
    return equal((order - 1.0) * float(renyi(u, v, order=order)))


@states("R32", order=above_one)
def exact_renyi(
    order: float, *, r: float, alpha: ArrayLike, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """D_λ of the worst neighbours, which theorem 1 bounds
    Source: docs/explanation/proofs/exact-renyi.md.
    """
    return equal(_known(r, alpha, l2_squared, linf).renyi(order))


@states("R64 R17", epsilon=non_negative)
def exact_delta(
    epsilon: float, *, r: float, alpha: ArrayLike, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """The smallest δ for this ε; at ε = 0 the total variation of the worst neighbours
    Source: docs/explanation/proofs/exact-profile.md.
    """
    return equal(_known(r, alpha, l2_squared, linf).delta(epsilon))


@states("R64")
def exact_epsilon(
    delta: float, *, r: float, alpha: ArrayLike, l2_squared: float = 2.0, linf: float = 1.0
) -> Result[float]:
    """The smallest ε for this δ
    Source: docs/explanation/proofs/exact-profile.md.
    """
    return equal(_known(r, alpha, l2_squared, linf).epsilon(delta))


@states("R60", alpha=positive)
def proposition_3(*, epsilon: float, r: float, alpha: float, d: int) -> Result[float]:
    """Ln P/P′ = ln[Γ(α+r)Γ(dα)/(Γ(α)Γ(dα+r))] − r·ln y₁ for (0, …, 0) and (1, 0, …, 0): it passes any ε near y₁ = 0
    It does so below ``y1``, with ``probability`` for a draw of the empty table. The print has −ln y₁.
    Source: [RDP] proposition 3.
    """
    constant = float(gammaln(alpha + r) - gammaln(alpha) + gammaln(d * alpha) - gammaln(d * alpha + r))
    y1 = math.exp((constant - epsilon) / r)
    chance = float(betainc(alpha, (d - 1) * alpha, min(y1, 1.0))) if d > 1 else 0.0
    return found(math.exp(constant - epsilon), y1, valid=r == 1, y1=y1, probability=chance)


@states("R62 R63", epsilon=non_negative)
def lemma_3(
    *, order: float, epsilon: float, delta: float | None = None, epsilon_hat: float | None = None
) -> Result[float]:
    """δ = e^((λ−1)(ε − ε̂))·(1 − 1/λ)^λ/(λ−1), or solved for ε̂: (λ, ε)-RDP gives (ε̂, δ)-DP
    Source: [RDP] lemma 3, appendix B.
    """
    if delta is not None and epsilon_hat is None:
        return found(renyi_to_epsilon(order, epsilon, delta))
    if epsilon_hat is None or delta is not None:
        raise InvalidArgument("lemma_3: expected delta or epsilon_hat, one of them.")
    return found(renyi_to_delta(order, epsilon, epsilon_hat))


@states("R64")
def equation_10(*, r: float, order: float, delta: float, l2_squared: float = 2.0, linf: float = 1.0) -> Result[float]:
    """ε̂ = ½·λ·r²·Δ₂²·ψ′(1 + 3(λ−1)rΔ∞) + ln(λ−1) − (ln δ + λ·ln λ)/(λ−1), at least 0
    Source: [RDP] equation (10).
    """
    spent = theorem_1(r=r, order=order, l2_squared=l2_squared, linf=linf)
    worst = pair(r, spent.alpha, l2_squared, linf)
    exact = None if worst is None else worst.epsilon(delta)
    return found(renyi_to_epsilon(order, spent.printed, delta), exact, **spent.parts)


@states("R65", x=non_negative)
def phi(x: float) -> Result[float]:
    """φ(x) = x²·ψ′(1 + x), which rises from 0 to ∞; so line 1 of algorithm 1 has one root
    Source: [RDP] appendix C.
    """
    return equal(x * x * bounds.trigamma(1.0 + x))


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
