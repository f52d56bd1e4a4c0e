"""The dominating pair of pseudo-records: two beta-binomial laws on 0…m, so a loss with m + 1 values.

Rényi divergences of gamma laws are gaps in the convexity of lnΓ. Written as differences of lnΓ they lose
every digit once the arguments are large (at α = 1e6, r = 1 nothing is left). Here each of them is a sum of
positive terms: explicit ones while the argument is small, Stirling's series above ``STIRLING_FROM``.
The derivation is in docs/explanation/proofs/numerics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.bounds import AtomicLoss
from dpbayes.privacy.convert import ERROR, ROUND_UP
from dpbayes.privacy.pld import TAIL, Pld, from_profile

STIRLING_FROM = 64.0
"""Above this, two terms of Stirling's remainder leave a relative error below 4e-13 in every gap."""


def log1p_deficit(x: Floats) -> Floats:
    """X − ln(1 + x) for x ≥ 0, accurate also where both are nearly equal.

    With s = x/(2+x), ln(1+x) = 2·artanh(s) and x = 2s/(1−s), so the difference is
    2s·(s/(1−s) − s²/3 − s⁴/5 − …), where nothing cancels while x ≤ ½.
    """
    small = np.minimum(x, 0.5)
    s = small / (2.0 + small)
    square = s * s
    tail = np.zeros_like(s)
    for k in range(11, 0, -1):
        tail = square * (1.0 / (2 * k + 1) + tail)
    return np.where(x <= 0.5, 2.0 * s * (s / (1.0 - s) - tail), x - np.log1p(x))


def log1p_excess(x: Floats, deficit: Floats) -> Floats:
    """(1 + x)·ln(1 + x) − x for x ≥ 0 from x − ln(1 + x), accurate also where both are nearly equal."""
    small = np.minimum(x, 0.5)
    return np.where(x <= 0.5, small * small - (1.0 + small) * deficit, (1.0 + x) * np.log1p(x) - x)


def jensen_gap(x: Floats | float, left: Floats | float, right: Floats | float) -> Floats:
    """right·g(x) + left·g(x+left+right) − (left+right)·g(x+left) with g = lnΓ; never negative.

    Valid for x, left, right > 0; relative error below 1e-12. Arguments broadcast.

    Symbols: the point x+left divides [x, x+left+right]; the gap is the height of the chord above lnΓ there,
    times left+right.
    Source: our proof, docs/explanation/proofs/numerics.md.
    Adjacency: none, this is a function of numbers.

    >>> float(jensen_gap(1.0, 1.0, 1.0))  # lnΓ(1) + lnΓ(3) − 2 lnΓ(2) = ln 2
    0.693147180559...
    """
    start, a, b = np.broadcast_arrays(
        np.asarray(x, np.float64), np.asarray(left, np.float64), np.asarray(right, np.float64)
    )
    steps = np.maximum(np.ceil(STIRLING_FROM - start), 0.0)
    k = np.arange(steps.max(initial=0.0))
    x, a, b = np.concatenate([start[..., None] + k, (start + steps)[..., None]], axis=-1), a[..., None], b[..., None]
    middle = x + a
    p, q = a / x, b / middle
    deficits = log1p_deficit(np.stack([p, q]))
    terms = x * (q * log1p_excess(p, deficits[0]) + p * deficits[1])  # the gaps of −ln
    total: Floats = np.where(k < steps[..., None], terms[..., :-1], 0.0).sum(axis=-1)
    x, a, b, middle, p, q = x[..., -1], a[..., 0], b[..., 0], middle[..., -1], p[..., -1], q[..., -1]
    # the gap of Stirling's series (x − ½)·ln x − x + 1/(12x) − 1/(360x³)
    of_x_log_x = x * middle * (p * log1p_excess(q, deficits[1, ..., -1]) + q * deficits[0, ..., -1])
    u, v, w = 1.0 / x, 1.0 / middle, 1.0 / (middle + b)
    of_reciprocal = a * b * (a + b) * u * v * w
    of_cube = of_reciprocal * (u * u + v * v + w * w + u * v + u * w + v * w)
    rest: Floats = of_x_log_x + 0.5 * terms[..., -1] + of_reciprocal / 12.0 - of_cube / 360.0
    total += rest
    return total


def loss_at_mode_up(concentration: float, weight: float) -> float:
    """r·ln(α+r) − [lnΓ(α+r) − lnΓ(α)]: privacy loss at the mode of ln z, z ~ Gamma(α+r), against Gamma(α).

    Symbols: α concentration, r weight.
    Source: our proof, docs/explanation/proofs/dominating-pair.md.
    Adjacency: one record added to the cell.
    """
    shift, logs = _shift(concentration, weight)
    a, ratio = concentration + shift, np.asarray(weight / (concentration + shift))
    above = a * log1p_deficit(ratio) + 0.5 * np.log1p(ratio) - _remainder_step(a, weight)
    return float(above - weight * np.log1p(shift / (concentration + weight)) + logs)


def loss_at_mode_down(concentration: float, weight: float) -> float:
    """[lnΓ(α+r) − lnΓ(α)] − r·ln α: privacy loss at the mode of ln z, z ~ Gamma(α), against Gamma(α+r).

    Symbols: α concentration, r weight.
    Source: our proof, docs/explanation/proofs/dominating-pair.md.
    Adjacency: one record removed from the cell.
    """
    shift, logs = _shift(concentration, weight)
    a, ratio = concentration + shift, np.asarray(weight / (concentration + shift))
    above = a * log1p_excess(ratio, log1p_deficit(ratio)) - 0.5 * np.log1p(ratio) + _remainder_step(a, weight)
    return float(above + weight * np.log1p(shift / concentration) - logs)


def _shift(concentration: float, weight: float) -> tuple[float, float]:
    """Steps n up to Stirling's range and Σ ln(1 + r/(α+k)), k < n: the recursion Γ(x+1) = xΓ(x) n times."""
    steps = max(np.ceil(STIRLING_FROM - concentration), 0.0)
    return float(steps), float(np.log1p(weight / (concentration + np.arange(steps))).sum())


def _remainder_step(a: float, step: float) -> float:
    """μ(a+step) − μ(a) for Stirling's remainder μ(x) = 1/(12x) − 1/(360x³) + …, without cancellation."""
    u, v = 1.0 / a, 1.0 / (a + step)
    return -step * u * v * (1.0 / 12.0 - (u * u + u * v + v * v) / 360.0)


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
