"""[RDP] sections 1 and 2: divergences of two laws P and Q, and the Dirichlet mechanism as an exponential mechanism.

Symbols: f counts or another vector, N their sum, d their number, y a distribution, r weight, α alpha, λ order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, xlogy

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative, positive
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.utility import distribution
from dpbayes.papers.checked import above_one, counted, equal, found, same_size, states, vector
from dpbayes.papers.result import Result
from dpbayes.privacy.bounds import trigamma

__all__ = [
    "cross_entropy",
    "definition_2_1",
    "definition_2_2",
    "definition_2_3",
    "dirichlet_mechanism",
    "equation_2",
    "equation_3",
    "equation_4",
    "equation_13",
    "kl",
    "lemma_1",
    "privacy_loss",
]  # fmt: skip


def _losses(owner: str, P: ArrayLike, Q: ArrayLike) -> tuple[Floats, Floats]:
    """P(y) and ln P(y)/Q(y) where P(y) > 0; ∞ where Q(y) is zero."""
    p, q = same_size(owner, distribution(owner, P), distribution(owner, Q))
    with np.errstate(divide="ignore"):
        return p[p > 0], np.log(p[p > 0]) - np.log(q[p > 0])


@states("R1")
def kl(p: ArrayLike, q: ArrayLike) -> Result[float]:
    """D_KL(p‖q) = Σ p·ln(p/q), in nats
    Source: [RDP] section 1, whose example is printed in base 10.

    >>> round(float(kl([0.5, 0.5], [0.4, 0.6])), 4)
    0.0204
    """
    chance, loss = _losses("kl", p, q)
    return equal(float((chance * loss).sum()))


@states("R3 T12", epsilon=non_negative)
def definition_2_1(P: ArrayLike, Q: ArrayLike, *, epsilon: float) -> Result[float]:
    """δ(ε) = max Σ (P − e^ε·Q)⁺ over both directions: the least δ with which P and Q are (ε, δ)-close
    Source: [RDP] definition 2.1, equation (1); [tCDP] definition 2.1.
    """
    sides = (_losses("definition_2_1", *pair) for pair in ((P, Q), (Q, P)))
    return equal(max(float((chance * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()) for chance, loss in sides))


@states("R4 T13", order=above_one)
def definition_2_2(P: ArrayLike, Q: ArrayLike, *, order: float) -> Result[float]:
    """D_λ(P‖Q) = ln Σ P^λ·Q^(1−λ)/(λ−1), ∞ where P has an outcome that Q has not
    Source: [RDP] definition 2.2; [tCDP] definition 2.2.
    """
    chance, loss = _losses("definition_2_2", P, Q)
    if math.isinf(order):
        return equal(float(loss.max()))
    return equal(float(np.logaddexp.reduce(np.log(chance) + (order - 1.0) * loss) / (order - 1.0)))


@states("R5", order=above_one)
def definition_2_3(P: ArrayLike, Q: ArrayLike, *, order: float) -> Result[float]:
    """ε(λ) = max(D_λ(P‖Q), D_λ(Q‖P)): P and Q are (λ, ε)-RDP apart
    Source: [RDP] definition 2.3.
    """
    return equal(max(float(definition_2_2(P, Q, order=order)), float(definition_2_2(Q, P, order=order))))


@states("R6")
def privacy_loss(P: ArrayLike, Q: ArrayLike) -> Result[Floats]:
    """Z = ln P(y)/Q(y) at each outcome of P; ``probability`` is P(y) there, ``mean`` is D_KL(P‖Q)
    Source: [RDP] section 2.1; [tCDP] section 2.1.
    """
    chance, loss = _losses("privacy_loss", P, Q)
    return equal(loss, probability=chance, mean=float((chance * loss).sum()))


@states("R7")
def lemma_1(*pairs: tuple[float, float]) -> Result[float]:
    """(λ₁, ε₁) and (λ₂, ε₂) compose to (min λ, Σ ε): ``order`` and ``epsilon``, for any number of pairs
    Source: [RDP] lemma 1.
    """
    orders, spent = pairs_of("lemma_1", pairs)
    for order in orders:
        checks.order("lemma_1", order)
    return found(math.fsum(spent), order=float(min(orders)), epsilon=math.fsum(spent))


def pairs_of(owner: str, pairs: tuple[tuple[float, float], ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The first numbers of pairs, and the second ones, which are prices."""
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise InvalidArgument(f"{owner}: expected one or more pairs of numbers.")
    first, second = zip(*pairs, strict=True)
    for value in second:
        non_negative(owner, price=value)
    return first, second


@states("R8")
def equation_2(loss: ArrayLike, *, beta: float, mu: ArrayLike | None = None) -> Result[Floats]:
    """P(y) ∝ e^(−β·ℓ(y))·μ(y), the exponential mechanism over finitely many outcomes; μ is even by default
    Source: [RDP] equation (2).
    """
    losses = vector("equation_2", "loss", loss)
    base = np.ones(losses.size) if mu is None else same_size("equation_2", losses, counted("equation_2", mu))[1]
    weights = base * np.exp(-beta * np.maximum(losses - losses[base > 0].min(), 0.0))
    return equal(weights / weights.sum())


@states("R9 T20")
def dirichlet_mechanism(
    f: ArrayLike, *, r: float, alpha: ArrayLike, rng: np.random.Generator | None = None
) -> Result[Floats]:
    """ℓ = D_KL, β = r·N and μ = Dirichlet(α) give y ~ Dirichlet(r·f + α): the value is r·f + α, ``draw`` is one y
    Source: [RDP] section 2.2, first display; [tCDP] section 2.3.
    """
    shapes = parameters("dirichlet_mechanism", f, r, alpha)
    drawn = noise.standard_gamma(shapes, rng)
    return equal(shapes, parameters=shapes, draw=drawn / drawn.sum())


def parameters(owner: str, f: ArrayLike, r: float, alpha: ArrayLike) -> Floats:
    """The value r·f + α."""
    cells, each = vector(owner, "counts", f), np.asarray(alpha, dtype=np.float64)
    return np.asarray(r * cells + (each if each.ndim == 0 else same_size(owner, cells, each)[1]))


def mean_error(owner: str, f: ArrayLike, r: float, alpha: ArrayLike) -> Floats:
    """E[y_i] − f_i/N, with E[y_i] = (r·f_i + α_i)/(r·N + Σα)."""
    cells, shapes = counted(owner, f), parameters(owner, f, r, alpha)
    return np.asarray(shapes / shapes.sum() - cells / cells.sum())


@states("R10", alpha=positive)
def equation_3(f: ArrayLike, *, r: float, alpha: float) -> Result[Floats]:
    """|E[y_i] − f_i/N| = α·|N − d·f_i|/(N·(r·N + d·α)); ``signed`` has the sign
    Source: [RDP] equation (3).
    """
    signed = mean_error("equation_3", f, r, alpha)
    return equal(np.abs(signed), signed=signed)


@states("R12")
def cross_entropy(f: ArrayLike, y: ArrayLike) -> Result[float]:
    """−Σ f·ln y/N, which is the ``entropy`` of f/N and D_KL(f/N‖y) above it
    Source: [RDP] section 2.2, second application.
    """
    cells, law = same_size("cross_entropy", counted("cross_entropy", f), distribution("cross_entropy", y))
    shares = cells / cells.sum()
    return equal(float(-xlogy(shares, law).sum()), entropy=float(-xlogy(shares, shares).sum()))


@states("R14 R13 T21", x=positive)
def equation_4(x: float) -> Result[float]:
    """1/x + 1/(2x²) < ψ′(x) < 1/x + 1/x²: ``lower``, ``exact`` and ``upper``
    Source: [RDP] equation (4), section 2.3; [tCDP] section 2.4.
    """
    upper = 1.0 / x + 1.0 / x**2
    return found(upper, trigamma(x), lower=1.0 / x + 0.5 / x**2, upper=upper)


@states("R71", x=positive)
def equation_13(x: float) -> Result[float]:
    """ln(x − ½) < ψ(x) < ln x: ``lower``, ``exact`` and ``upper``; up to ½ nothing bounds it from below
    Source: [RDP] equation (13).
    """
    return found(math.log(x), float(digamma(x)), lower=math.log(x - 0.5) if x > 0.5 else -math.inf, upper=math.log(x))
