"""Discrete Laplace noise that adds up to zero: the table keeps its public total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.exact import Law, bernoulli_exp
from dpbayes.mechanisms.kinds import TableNoise
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise
from dpbayes.privacy.bounds import AtomicLoss, randomised_response
from dpbayes.privacy.convert import rounded_towards_infinity
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.unit import Unit

MOST_CELLS = 256
"""Larger tables gain less than 0.3 % and would take more than 28 draws of the whole table: about √d/0.57."""

LARGEST_SCALE = 2.0**40
"""Up to here noise beyond 2⁵³ has a probability of e^−8192, so that sums of 256 numbers fit into 64 bits."""


def _growth(scale: float, cells: int) -> float:
    """g_d = x·P_d(x)/P_{d−1}(x) − 1, by g_{n+1} = [(2n+1)y + n(g_n − y)/(1 + g_n)]/(n+1) from g_1 = y

    Symbols: d cells, P_n Legendre polynomials, x = coth(1/scale), y = x² − 1. Nothing cancels, as g_n ≥ y.
    Source: docs/explanation/proofs/sum-zero.md, lemma 2.
    Adjacency: none.
    """
    found = y = math.sinh(min(1.0 / scale, 300.0)) ** -2
    for n in range(1, cells):
        found = ((2 * n + 1) * y + n * (found - y) / (1.0 + found)) / (n + 1)
    return found


def chance_of_loss(scale: float, cells: int) -> float:
    """P[loss = ε] = 1/((1 − e^−ε)·P_{d−1}(x)/P_{d−2}(x)), ε = 2/scale, rounded up, which only adds to δ

    Symbols: d cells, P_n Legendre polynomials, x = coth(1/scale).
    Source: docs/explanation/proofs/sum-zero.md, theorem 1.
    Adjacency: a replaced record moves one cell up and another one down; all such neighbours are alike.
    """
    ratio = (1.0 + _growth(scale, cells - 1)) * math.tanh(1.0 / scale)
    return -(1.0 + 1e-14 * cells) / (math.expm1(-2.0 / scale) * ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumZeroNoise(LaplaceNoise):
    """Released x = c + k with P(k) ∝ exp(−Σ|k|/scale) on the integers that add up to zero.

    Given the public total, it is Laplace noise in every cell: the joint likelihood is the product of their laws.
    """

    cells: int

    def variance(self, counts: Floats) -> Floats:
        """s² = g_d·d/(d + 1): the covariance is s²·(I − 11ᵀ/d), as of independent noise of variance s² given its sum

        Symbols: d cells, g_d as above.
        Source: docs/explanation/proofs/sum-zero.md, theorem 2.
        Adjacency: none, this is post-processing.
        """
        return np.full(np.shape(counts), _growth(self.scale, self.cells) * self.cells / (self.cells + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumZeroLaplace(TableNoise):
    """The whole joint table plus integer noise that adds up to zero, P[k] ∝ exp(−Σ|k|/scale).

    The K-norm mechanism of half the ℓ₁ norm, on integers. A replaced record moves the table along the lattice of the
    noise, so ε = 2/scale for one row per person. Its errors are up to 29 % smaller than those of independent noise of
    the same ε once that is corrected for the public total.

    Source: [HT10] section 4; docs/explanation/proofs/sum-zero.md.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> keeping = SumZeroLaplace(scale=4, cells=3, unit=unit)
    >>> keeping.renyi(float("inf")), int(keeping.draw([5, 0, 7]).sum())
    (0.5, 12)
    """

    kind = "sum-zero-laplace-1"
    tables = ("noisy-counts",)
    name, split = "sum-zero laplace", "laplace"
    closed = True
    law_in_words = (
        "x = c + k for each cell with count c, P[k] ∝ exp(−Σ|k|/scale) on the whole numbers that add up to zero, so "
        "the table keeps its public total"
    )
    scale: float
    cells: int
    unit: Unit

    def __post_init__(self) -> None:
        TableNoise.__post_init__(self)
        if not self.unit.fixed_size:
            raise InvalidArgument("SumZeroLaplace: expected a unit under which the number of records is public.")
        if not 2 <= self.cells <= MOST_CELLS:
            raise InvalidArgument(f"SumZeroLaplace: expected 2 to {MOST_CELLS} cells, got {self.cells}.")
        if self.scale > LARGEST_SCALE:
            raise InvalidArgument(f"SumZeroLaplace: expected scale <= {LARGEST_SCALE:g}, got {self.scale}.")

    @classmethod
    def suits(cls, target: Guarantee, unit: Unit) -> bool:
        """At δ > 0 independent noise is cheaper to compose."""
        return target.pure and unit.fixed_size

    @classmethod
    def of_size(cls, size: float, unit: Unit, cells: int = 0, *, joint: bool = False) -> TableNoise:
        """With at most the variance 2·size² of Laplace noise of this scale; where it cannot be used, that noise itself.

        s² ≤ b²·(2d − 1)/(d + 1), nearly attained for a large scale b
        Symbols: d cells.
        Source: docs/explanation/proofs/sum-zero.md, theorem 2.
        Adjacency: replace-one.
        """
        if not joint or not 2 <= cells <= MOST_CELLS:
            return Laplace.of_size(size, unit)
        return cls(scale=size * math.sqrt(2.0 * (cells + 1) / (2 * cells - 1)), cells=cells, unit=unit)

    @property
    def exact(self) -> bool:
        """Whether every number is exact: one row per person."""
        return self.unit.max_rows == 1

    @property
    def _pure(self) -> float:
        return rounded_towards_infinity(Fraction(self.unit.sensitivity.l1) / Fraction(self.scale))

    def _loss(self) -> AtomicLoss:
        """Loss ε, 0 or −ε; for several rows per person, that of any mechanism with this ε."""
        epsilon = self._pure
        largest = randomised_response(epsilon)
        if not self.exact:
            return largest
        p = min(chance_of_loss(self.scale, self.cells), float(largest.probabilities[0]))
        q = p * math.exp(-epsilon)
        return AtomicLoss(np.array([epsilon, 0.0, -epsilon]), np.array([p, max(1.0 - p - q, 0.0), q]))

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """Counts plus noise that adds up to zero: exact, and secure unless a generator is handed in.

        All cells but one get independent Laplace noise, the last one closes the sum, and the whole is kept with
        probability exp(−|k_d|/scale), else drawn again. Nothing of this depends on the counts.
        """
        from dpbayes.mechanisms import noise  # pricing needs no sampler

        table = checks.counts("SumZeroLaplace", counts)
        if table.size != self.cells:
            raise InvalidArgument(f"SumZeroLaplace: expected {self.cells} cells, got a table of shape {table.shape}.")
        if rng is None:
            noise.once()
        law, words, tries = Law.laplace(self.scale), noise.words(rng), math.isqrt(4 * self.cells)
        numerator, denominator = self.scale.as_integer_ratio()
        while True:
            for free in noise.draw(law, tries * (self.cells - 1), rng).reshape(tries, -1):
                last = -int(free.sum())
                if bernoulli_exp(abs(last) * denominator, numerator, words):
                    return noise.plus(table, np.append(free, last).reshape(table.shape))

    def noise(self, shape: tuple[int, ...] = (-1,)) -> SumZeroNoise:  # noqa: ARG002 - the same in every cell
        """As if independent and the same in every cell, given the total."""
        return SumZeroNoise(scale=self.scale, cells=self.cells)
