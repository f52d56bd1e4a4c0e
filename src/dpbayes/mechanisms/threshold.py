"""Keeping categories whose noisy count exceeds a threshold: what is published are the categories, never the counts."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Mechanism
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.privacy.convert import ROUND_UP
from dpbayes.privacy.pld import Pld
from dpbayes.schema.unit import Unit

LARGEST = 2**50
"""The largest threshold that is tried: no table has that many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(Mechanism):
    """The categories whose count plus discrete Laplace noise is above ``threshold``; one that nobody has is never kept.

    A person has at most ``unit.max_rows`` rows, in as many categories. A category that only one person has betrays
    them when it is kept: that is δ. All other categories cost what their noise costs.

    Source: our proof, docs/explanation/proofs/discovery.md.

    >>> from dpbayes import Unit
    >>> made = threshold_for(epsilon=1.0, delta=1e-6, unit=Unit(adjacency="add-remove"))
    >>> made.threshold, f"{made.least_delta:.3g}"
    (14, '6.08e-07')
    """

    kind = "laplace-threshold-1"
    scale: float
    threshold: int
    unit: Unit

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if not self.unit.max_rows <= self.threshold <= LARGEST:
            raise InvalidArgument(
                f"Threshold: expected a threshold of at least the {self.unit.max_rows} rows that one person can have "
                f"and at most 2^50, got {self.threshold}."
            )

    @property
    def exact(self) -> bool:
        """Whether the cost of the noise is exact: one row per person. The least δ is exact for any number of rows."""
        return self._noise.exact

    @property
    def least_delta(self) -> float:
        """The δ that no ε avoids: the probability that a category of one person only is published."""
        return betrayal(scale=self.scale, threshold=self.threshold, rows=self.unit.max_rows)

    @property
    def noise_epsilon(self) -> float:
        """The pure ε of the noise, Δ₁/scale, which holds together with the least δ."""
        return self._noise.renyi(math.inf)

    @property
    def _noise(self) -> Laplace:
        return Laplace(scale=self.scale, unit=self.unit)

    def renyi(self, order: float) -> float:  # noqa: ARG002
        """Infinite at every order: a category of one person is never kept without them."""
        return math.inf

    def concentrated(self, omega: float) -> float:  # noqa: ARG002
        """Infinite, as every Rényi divergence is."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """δ(ε) = D + (1 − D)·δ_noise(ε)

        Symbols: D least_delta, δ_noise that of discrete Laplace noise on the counts.
        Source: our proof, docs/explanation/proofs/discovery.md.
        Adjacency: enters through the noise; D is the same for both.
        """
        least = self.least_delta
        return least + (1.0 - least) * self._noise.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ; infinite below the least δ."""
        least = self.least_delta
        if delta < least:
            return math.inf
        rest = (delta - least) / (1.0 - least) if least < 1.0 else 0.0
        return self._noise.epsilon(rest) if rest > 0.0 else self.noise_epsilon

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``: that of the noise, and the least δ at infinity."""
        return self._noise._loss().pld(interval, betrayed=self.least_delta)

    def but_for(self) -> tuple[Laplace, float]:
        """The noise, which is pure, and the chance D that a category betrays its only person instead.

        Source: our proof, docs/explanation/proofs/discovery.md, theorem 1.
        """
        return self._noise, self.least_delta

    def found(self, rows: int) -> float:
        """P[rows + Z > T]: how likely a category that this many rows have is kept.

        Symbols: T threshold, Z discrete Laplace noise.
        Source: docs/explanation/proofs/discovery.md, the noise of a threshold.
        Adjacency: none.
        """
        return _kept(rows, self.scale, self.threshold) if rows >= 1 else 0.0

    def hidden(self, chance: float = 0.05) -> tuple[int, int]:
        """Up to how many rows a category stays hidden, and from how many it is found, each but for this chance."""
        q = math.exp(-1.0 / self.scale)
        reach = max(math.ceil(math.log(chance * (1.0 + q)) / math.log(q)), 1)
        return max(self.threshold + 1 - reach, 0), self.threshold + reach

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[np.bool_]:
        """Which categories are kept. Only the kept ones may be published, in an order that tells nothing."""
        table = checks.counts("Threshold", counts)
        kept: NDArray[np.bool_] = (noise.laplace(table, self.scale, rng) > self.threshold) & (table > 0)
        return kept


def threshold_for(*, epsilon: float, delta: float, unit: Unit) -> Threshold:
    """The least noise for this ε, and with it the smallest threshold for this δ."""
    checks.positive("Threshold", epsilon=epsilon)
    checks.probability("Threshold", delta=delta)
    scale = math.nextafter(unit.sensitivity.l1 / epsilon, math.inf)  # so that Δ₁/scale is not above ε
    tried = range(unit.max_rows, LARGEST + 1)
    found = bisect_left(tried, True, key=lambda at: betrayal(scale=scale, threshold=at, rows=unit.max_rows) <= delta)
    if found == len(tried):
        raise TargetUnreachable(f"Threshold: no threshold meets delta = {delta} at epsilon = {epsilon}. Raise epsilon.")
    return Threshold(scale=scale, threshold=tried[found], unit=unit)


def betrayal(*, scale: float, threshold: int, rows: int) -> float:
    """D = max(p(m), 1 − (1 − p(1))^m), the chance that some category of one person alone is kept

    Symbols: m rows, p(c) the chance to keep a category of count c, above the threshold T.
    Source: our proof, docs/explanation/proofs/discovery.md.
    Adjacency: both, and the same for both.
    """
    alone, spread = _kept(rows, scale, threshold), _kept(1, scale, threshold)
    spread = -math.expm1(rows * math.log1p(-spread))  # below 1/(1 + q), as one row is not above T
    return min(max(alone, spread, sys.float_info.min) * ROUND_UP, 1.0)


def _kept(count: int, scale: float, threshold: int) -> float:
    """P[c + Z > T] = q^{T−c+1}/(1+q) for c ≤ T, else 1 − q^{c−T}/(1+q), q = e^{−1/scale}

    Symbols: c count, T threshold, Z the noise, P[Z = k] ∝ q^|k|.
    Source: the geometric series; docs/explanation/proofs/discovery.md.
    Adjacency: none.
    """
    share = 1.0 / (1.0 + math.exp(-1.0 / scale))
    if count <= threshold:
        return math.exp(-(threshold - count + 1) / scale) * share
    return 1.0 - math.exp(-(count - threshold) / scale) * share
