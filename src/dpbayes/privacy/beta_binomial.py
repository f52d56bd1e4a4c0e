"""The dominating pair of pseudo-records: two beta-binomial laws on 0…m, so a loss with m + 1 values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.atoms import AtomicLoss
from dpbayes.privacy.loggamma import loss_at_mode_up
from dpbayes.privacy.pld import TAIL, Pld, from_profile
from dpbayes.privacy.solve import ERROR, ROUND_UP

MOST_ATOMS = 2**20
"""The most records for which all m + 1 losses are listed."""

BLOCK = 1024
"""Numbers are summed by blocks of so many, and only up to four of them where Stirling's series is as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaBinomialPair:
    """P = BetaBinomial(m; first + r, second) against Q = BetaBinomial(m; first, second + r).

    ``records`` is m. With first ≠ second both assignments of the two cells count, and the worse is stated.

    Source: our proof, docs/explanation/proofs/pseudo-records.md.
    """

    weight: float
    first: float
    second: float
    records: int

    @property
    def pure(self) -> float:
        """ε(m) = lnΓ(α+r+m) − lnΓ(α+r) − lnΓ(α+m) + lnΓ(α), α the smaller of the two

        Symbols: r weight, α concentration, m records.
        Source: our proof, docs/explanation/proofs/pseudo-records.md.
        Adjacency: a replaced record; the proof shows the same bound for one added or removed.
        """
        return pure_loss(self.weight, min(self.first, self.second), self.records)

    def laws(self) -> tuple[AtomicLoss, ...]:
        """The privacy loss in each direction; one law when both directions are the same."""
        one = _law(self.weight, self.first, self.second, self.records)
        return (one,) if self.first == self.second else (one, _law(self.weight, self.second, self.first, self.records))

    def renyi(self, order: float) -> float:
        """D_λ = ln Σ_k P(k)·e^{(λ−1)L(k)}/(λ−1); ε(m) at infinity

        Symbols: λ order, L the losses.
        Source: our proof, docs/explanation/proofs/pseudo-records.md.
        Adjacency: a replaced record.
        """
        if math.isinf(order):
            return self.pure
        return min(max(law.renyi(order) for law in self.laws()), self.pure)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = Σ_k P(k)·(1 − e^{ε−L(k)})₊, the larger over the directions; 0 from ε(m) on."""
        return 0.0 if epsilon >= self.pure else max(law.delta(epsilon) for law in self.laws())

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ delta, rounded up."""
        return min(max(law.epsilon(delta) for law in self.laws()), self.pure)

    def pld(self, interval: float) -> Pld:
        """The loss on multiples of ``interval``; two directions are merged into one symmetric pair."""
        laws = self.laws()
        if len(laws) == 1:
            return laws[0].pld(interval)
        highest = max(law.epsilon(TAIL) for law in laws)
        return from_profile(
            lambda epsilons: np.array([self.delta(float(epsilon)) for epsilon in epsilons]), interval, highest
        )


def pure_loss(weight: float, concentration: float, records: int) -> float:
    """ε(m) = Σ_{l<m} ln(1 + r/(α+l)), rounded up; for many records by Stirling's series instead

    Symbols: r weight, α concentration, m records.
    Source: our proof, docs/explanation/proofs/pseudo-records.md.
    Adjacency: one record, however it changes.

    >>> round(pure_loss(1.0, 10.0, 100), 6)  # ln(1 + m/α) when r = 1
    2.397895
    """
    if records <= 4 * BLOCK or weight > records:
        return float(_sums(weight, concentration, min(records, MOST_ATOMS))[-1]) * ROUND_UP + max(
            (records - MOST_ATOMS) * math.log1p(weight / (concentration + MOST_ATOMS)), 0.0
        )
    # lnΓ(x+r) − lnΓ(x) = r·ln(x+r) − (the loss at the mode)
    rise = weight * math.log1p(records / (concentration + weight))
    total = rise + loss_at_mode_up(concentration, weight) - loss_at_mode_up(concentration + records, weight)
    return total * (1.0 + 10.0 * ERROR)


@lru_cache(maxsize=8)
def _law(weight: float, gains: float, loses: float, records: int) -> AtomicLoss:
    """L(k) = Σ_{l<k} ln(1 + r/(α+l)) − Σ_{l<m−k} ln(1 + r/(β+l)) and P(k), k = 0…m, α gains, β loses.

    Probabilities are summed from their ratios, outward from the mean: ln P(k+1)/P(k) = ln(1 + excess/below) with
    below = (k+1)(b+m−k−1) and excess = m(a−1) − k(a+b−2) − (b−1), where a = α + r, b = β.
    """
    up, down = _sums(weight, gains, records), _sums(weight, loses, records)[::-1]
    losses = up - down + ERROR * (up + down)
    a, b, m = gains + weight, loses, records
    k = np.arange(m, dtype=np.float64)
    steps = np.log1p((m * (a - 1.0) - k * (a + b - 2.0) - (b - 1.0)) / ((k + 1.0) * (b + (m - 1.0 - k))))
    middle = round(m * a / (a + b))
    logs = np.concatenate([-_running(steps[:middle][::-1])[::-1], [0.0], _running(steps[middle:])])
    probabilities = np.exp(logs - logs.max())
    # what would underflow is too much, never too little
    return AtomicLoss(losses, np.maximum(probabilities / probabilities.sum(), 1e-300))


def _sums(weight: float, concentration: float, records: int) -> Floats:
    """Σ_{l<k} ln(1 + r/(α+l)) for k = 0…m: logarithms of ratios of rising factorials."""
    return np.concatenate([[0.0], _running(np.log1p(weight / (concentration + np.arange(records, dtype=np.float64))))])


def _running(values: Floats) -> Floats:
    """Running sums, by blocks: errors grow with the length of a block, not of the whole."""
    if values.size <= BLOCK:
        return np.cumsum(values)
    whole = -(-values.size // BLOCK)
    blocks = np.zeros((whole, BLOCK))
    blocks.ravel()[: values.size] = values
    inside = np.cumsum(blocks, axis=1)
    before = np.concatenate([[0.0], np.cumsum(inside[:-1, -1])])
    return np.asarray((inside + before[:, None]).ravel()[: values.size])
