"""Discrete Laplace (two-sided geometric) noise on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.mechanisms.kinds import Additive, TableNoise
from dpbayes.privacy.bounds import AtomicLoss, randomised_response, randomised_response_renyi
from dpbayes.privacy.convert import rounded_towards_infinity
from dpbayes.schema.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(Additive):
    """Released x = c + k, with P(k) ∝ exp(−|k|/scale) on the integers."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive("LaplaceNoise", scale=self.scale)

    def variance(self, counts: Floats) -> Floats:
        """½ sinh(1/2b)⁻², about 2b² for a large scale b."""
        return np.full(np.shape(counts), 0.5 / math.sinh(min(0.5 / self.scale, 300.0)) ** 2)

    def log_law(self, value: float, counts: Ints) -> Floats:
        """−|x − c|/scale."""
        return np.asarray(-np.abs(value - counts) / self.scale)


@dataclass(frozen=True, slots=True)
class Laplace(TableNoise):
    """Each count plus independent discrete Laplace noise, P[k] ∝ exp(−|k|/scale).

    A cell that moves by one is randomised response with ε = 1/scale, exactly. For more rows per person the
    pure guarantee Δ₁/scale is used.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> Laplace(scale=4, unit=Unit(adjacency=Adjacency.REPLACE_ONE)).renyi(float("inf"))
    0.5
    """

    kind = "laplace-1"
    name, split = "laplace", "laplace"
    law_in_words = "x = c + k for each cell with count c, k independent, P[k] ∝ exp(−|k|/scale) on the whole numbers"
    scale: float
    unit: Unit

    @classmethod
    def of_size(cls, size: float, unit: Unit, cells: int = 0, *, joint: bool = False) -> Laplace:  # noqa: ARG003
        """Of this scale."""
        return cls(scale=size, unit=unit)

    @property
    def exact(self) -> bool:
        """Whether every number is exact: one row per person."""
        return self.unit.max_rows == 1

    @property
    def _cells(self) -> tuple[int, float]:
        """How many independent randomised responses a neighbour meets, and the ε of each."""
        moved = self.unit.sensitivity.l1
        cells = int(moved) if self.exact else 1
        return cells, rounded_towards_infinity(Fraction(moved) / (cells * Fraction(self.scale)))

    def _loss(self) -> AtomicLoss:
        """The sum of the losses ±ε of the cells that move.

        Source: docs/explanation/proofs/composition.md.
        """
        cells, epsilon = self._cells
        one = randomised_response(epsilon)
        if cells == 1:
            return one
        truth, lie = one.probabilities
        return AtomicLoss(
            np.array([2.0 * epsilon, 0.0, -2.0 * epsilon]), np.array([truth**2, 2.0 * truth * lie, lie**2])
        )

    def renyi(self, order: float) -> float:
        """Rényi divergence of randomised response, for each cell that moves; Δ₁/scale at infinity.

        Symbols: scale as in P[k] ∝ exp(−|k|/scale).
        Source: [Mironov17] proposition 5; docs/explanation/proofs/composition.md.
        Adjacency: a replaced record moves two cells.
        """
        cells, epsilon = self._cells
        return cells * randomised_response_renyi(order, epsilon)

    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """ρ = ½ε² for each cell that moves.

        Symbols: ε = 1/scale.
        Source: [BS16] proposition 1.4.
        Adjacency: a replaced record moves two cells.
        """
        cells, epsilon = self._cells
        return cells * 0.5 * epsilon**2

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """Noisy counts, possibly negative: exact integer noise, secure unless a generator is handed in.

        What does not fit between −2⁶² and 2⁶³ − 1 is set to the nearer end.
        """
        from dpbayes.mechanisms import noise  # pricing needs no sampler

        return noise.laplace(checks.counts("Laplace", counts), self.scale, rng)

    def noise(self, shape: tuple[int, ...] = (-1,)) -> LaplaceNoise:  # noqa: ARG002 - the same in every cell
        """Independent and the same in every cell."""
        return LaplaceNoise(scale=self.scale)
