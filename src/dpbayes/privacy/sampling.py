"""Amplification by a secret random sample: what a release costs whose table counts only some rows, nobody knows which.

Everything follows from the pair (P, Q) of the release without sampling (docs/explanation/proofs/sampling.md). By
Poisson sampling every row is in with probability γ, and neighbours differ by an added row; a sample of fixed size is
the share γ of a public number of rows, and neighbours differ by a replaced one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.bounds import AtomicLoss, renyi_weights
from dpbayes.privacy.convert import ROUND_UP
from dpbayes.privacy.pld import Masses, Pld, from_masses, span, split

Curve = Callable[[float], float]


def sampled_delta(delta: Curve, epsilon: float, rate: float) -> float:
    """δ(ε) = max{ γ·δ₀(ln(1 + (e^ε − 1)/γ)), (1 − (1−γ)e^ε)₊·δ₀(ln(γe^ε/(1 − (1−γ)e^ε))) }

    Symbols: γ rate, δ₀ the profile without sampling, both directions.
    Source: docs/explanation/proofs/sampling.md, theorem 1; [ZDW22].
    Adjacency: an added row with Poisson sampling; a replaced one with a sample of fixed size.

    >>> from dpbayes.privacy.bounds import randomised_response
    >>> round(sampled_delta(randomised_response(1.0).delta, 0.0, 0.1), 6)  # a tenth of tanh(1/2)
    0.046212
    """
    above = epsilon + math.log1p((1.0 - rate) * -math.expm1(-epsilon) / rate)  # the same, without overflow
    gaining = rate * delta(above * (1.0 - 1e-15))
    left = 1.0 - (1.0 - rate) * math.exp(epsilon) if epsilon < -math.log1p(-rate) else 0.0
    losing = left * delta(max(epsilon + math.log(rate / left) - 1e-15 / left, 0.0)) if left > 0.0 else 0.0
    return min(max(gaining, losing) * ROUND_UP, 1.0)


def sampled_pure(epsilon: float, rate: float) -> float:
    """ε′ = ln(1 + γ(e^ε − 1))

    Symbols: γ rate, ε pure.
    Source: docs/explanation/proofs/sampling.md, theorem 1.
    Adjacency: that of the sample.

    >>> round(sampled_pure(1.0, 0.1), 6)
    0.158565
    """
    if math.isinf(epsilon):
        return math.inf
    return min((epsilon + math.log(rate + (1.0 - rate) * math.exp(-epsilon))) * ROUND_UP + 1e-15, epsilon)


def sampled_pld(pld: Pld, rate: float, interval: float, *, replaces: bool) -> Pld:
    """The loss L′ = ln(1 − γ + γe^L) of ((1−γ)Q + γP, Q), and −ln(1 − γ + γe^−L) of (P, (1−γ)P + γQ)

    for Poisson sampling; for a sample of fixed size the first one's positive losses, mirrored.

    Symbols: γ rate, L the loss without sampling.
    Source: docs/explanation/proofs/sampling.md, theorem 1; [ZDW22].
    Adjacency: as above.
    """
    if replaces:
        if len(pld.directions) != 1:
            raise InvalidArgument("Subsampled: expected a symmetric loss under replace-one.")
        return from_masses(interval, _mirror(*_gaining(pld, 0, rate), rate * pld.directions[0][2], interval))
    removed, lost = _gaining(pld, 0, rate), rate * pld.directions[0][2]
    return from_masses(interval, _on_grid(*removed, lost, interval), _on_grid(*_losing(pld, rate), interval))


def sampled_loss(loss: AtomicLoss, rate: float) -> tuple[AtomicLoss, AtomicLoss]:
    """The losses of ((1−γ)Q + γP, Q) and of (P, (1−γ)P + γQ), (P, Q) a pair with a bounded loss

    Symbols: γ rate.
    Source: docs/explanation/proofs/sampling.md, theorem 1.
    Adjacency: an added row with Poisson sampling.
    """
    mixed = loss.probabilities * (rate + (1.0 - rate) * np.exp(-loss.losses))
    gaining, losing = _mixture(loss.losses, rate), -_mixture(-loss.losses, rate)
    return AtomicLoss(gaining, mixed), AtomicLoss(losing, loss.probabilities)


def _gaining(pld: Pld, direction: int, rate: float) -> tuple[Floats, Floats]:
    """Losses of ((1−γ)Q + γP, Q), and their probabilities under the mixture."""
    losses, p, _ = pld.losses()[direction]
    p = np.maximum(p, 0.0)
    q = p * np.exp(-losses)
    alone = max(1.0 - float(q.sum()), 0.0)  # what only Q does
    mixed = np.append((1.0 - rate) * q + rate * p, (1.0 - rate) * alone)
    shifted = np.append(_mixture(losses, rate), math.log1p(-rate))
    return shifted, mixed


def _losing(pld: Pld, rate: float) -> tuple[Floats, Floats, float]:
    """Losses of (P, (1−γ)P + γQ) under P, and the mass at infinity: none, as the row may be left out."""
    losses, p, lost = pld.losses()[-1]
    return np.append(-_mixture(-losses, rate), -math.log1p(-rate)), np.append(np.maximum(p, 0.0), lost), 0.0


def _mixture(losses: Floats, rate: float) -> Floats:
    """ln(1 − γ + γe^L), without overflow, with every digit where L is small."""
    small = np.log1p(rate * np.expm1(np.minimum(losses, 1.0)))
    large = losses + np.log(rate + (1.0 - rate) * np.exp(-np.maximum(losses, 1.0)))
    return np.asarray(np.where(losses <= 1.0, small, large))


def _on_grid(losses: Floats, masses: Floats, lost: float, interval: float) -> Masses:
    low, found, beyond = split(losses, masses, interval, *span(losses, masses, interval))
    return low, found, beyond + lost


def _mirror(losses: Floats, masses: Floats, lost: float, interval: float) -> Masses:
    """The symmetric law with these positive losses."""
    up = losses > 0
    p, q = masses[up], masses[up] * np.exp(-losses[up])
    rest = max(1.0 - float(p.sum()) - float(q.sum()) - lost, 0.0)
    return _on_grid(np.concatenate([losses[up], [0.0], -losses[up]]), np.concatenate([p, [rest], q]), lost, interval)


def sampled_renyi(renyi: Curve, order: float, rate: float, other: Curve | None) -> float:
    """(λ−1)·D_λ ≤ ln(1 + γ(e^{(λ−1)D} − 1)); at whole λ ≤ ln(1 + Σ_{k=2}^λ C(λ,k)·γ^k·(1−γ)^{λ−k}·(e^{(k−1)D_k} − 1))

    in the direction of an added row, and with four times the sum for a sample of fixed size, where ``other`` is None.
    Between whole orders (λ−1)·D_λ lies below its chord. ``other`` is e^{(λ−1)D_λ} − 1 of a removed row.

    Symbols: γ rate, D_k the divergence without sampling at order k, both directions; D that at λ.
    Source: docs/explanation/proofs/sampling.md, theorem 2.
    Adjacency: an added row with Poisson sampling; a replaced one with a sample of fixed size.

    >>> round(sampled_renyi(lambda order: order / 2, 2.0, 0.01, lambda order: 0.0), 9)  # ln(1 + γ²(e − 1))
    0.000171813
    """
    exponent = (order - 1.0) * renyi(order)
    found = exponent + math.log(rate) + 1e-12 if exponent > 600.0 else math.log1p(rate * math.expm1(exponent))
    if order <= 128:  # beyond, convexity alone speaks
        low, high = math.floor(order), math.ceil(order)
        first, last = (_whole(renyi, end, rate, other) for end in (low, high))
        if math.isfinite(last):
            found = min(found, first + (order - low) * (last - first))
    return found / (order - 1.0) * ROUND_UP


def _whole(renyi: Curve, order: int, rate: float, other: Curve | None) -> float:
    """(λ−1)·D_λ at a whole order."""
    if order == 1:
        return 0.0
    if not math.isfinite(renyi(float(order))):
        return math.inf
    logs = []
    for k in range(2, order + 1):
        exponent = (k - 1) * renyi(float(k))
        grown = exponent + math.log(-math.expm1(-exponent))
        chosen = math.lgamma(order + 1) - math.lgamma(k + 1) - math.lgamma(order - k + 1)
        logs.append(grown + chosen + k * math.log(rate) + (order - k) * math.log1p(-rate))
    top = max(logs)
    total = top + math.log(math.fsum(math.exp(each - top) for each in logs)) + 1e-11
    if total > 600.0:
        return total + math.log(5.0)
    summed = math.exp(total)
    return math.log1p(4.0 * summed if other is None else max(summed, other(float(order))))


def removed_moment(pld: Pld, rate: float) -> Curve:
    """λ ↦ E_P[e^{(λ−1)L′}] − 1 of (P, (1−γ)P + γQ), whose loss is at most −ln(1 − γ)

    Symbols: γ rate, P the release without the row.
    Source: docs/explanation/proofs/sampling.md, theorem 2.
    Adjacency: an added row with Poisson sampling.
    """
    losses, masses, _ = _losing(pld, rate)

    def moment(order: float) -> float:
        if (order - 1.0) * float(losses.max()) > 600.0:
            return math.inf
        return float(masses @ renyi_weights(losses, order)) * (1.0 + 1e-10) + (order - 1.0) * 1e-14

    return moment
