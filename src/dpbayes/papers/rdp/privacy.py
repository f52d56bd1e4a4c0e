"""[RDP] section 3 and appendices A to D: Algorithm 1, what it promises, and what it costs exactly.

Plain arrays are taken as public: nothing is charged. ``Tables(…, accounting="published")`` serves private rows.
Exact values are those of counts in which one record is replaced (Δ₂² = 2, Δ∞ = 1, the default), or added or removed
(Δ₂² = Δ∞ = 1). For other vectors nothing exact is known, and ``exact`` is None.

Symbols: f counts or another vector, λ order, r weight, α alpha, Δ₂² l2_squared, Δ∞ linf, u and v Dirichlet parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln

from dpbayes._checks import Floats, non_negative, positive
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.hellinger import distance
from dpbayes.mechanisms.utility import expected_kl
from dpbayes.papers.checked import above_one, equal, found, states, vector
from dpbayes.papers.rdp.definitions import dirichlet_mechanism
from dpbayes.papers.result import Result
from dpbayes.privacy import bounds
from dpbayes.privacy.convert import renyi_to_delta, renyi_to_epsilon
from dpbayes.privacy.pair import GammaPair

__all__ = [
    "algorithm_1",
    "equation_5",
    "equation_6",
    "equation_10",
    "equation_11",
    "equation_12",
    "exact_delta",
    "exact_epsilon",
    "exact_renyi",
    "lemma_2",
    "lemma_3",
    "phi",
    "proposition_3",
    "remark_1",
    "remark_2",
    "renyi",
    "synthesise",
    "theorem_1",
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
