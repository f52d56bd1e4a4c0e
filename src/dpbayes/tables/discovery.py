"""Buying what is not public: categories by a thresholded noisy count, edges by private quantiles.

Each discovery states its cost before it reads anything, so that it is charged like any release, and then draws once.
The noise and the privacy maps are OpenDP's; sensitivities come from the privacy unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbayes import _checks
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms.stated import Stated
from dpbayes.tables.engine import Engine

_LARGEST_THRESHOLD = 2**50
_HAIR = 1.0 + 1e-9  # OpenDP rounds its maps up; this much more noise keeps them below the target.


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryDiscovery:
    """Which texts occur often in a column: those whose count plus Laplace noise passes a threshold.

    Rare texts stay hidden, whatever they are; the threshold is the smallest one that meets δ. With ``person``, at
    most ``unit.max_rows`` rows of each person are counted; without it, that bound is the owner's promise.

    >>> unit = PrivacyUnit(adjacency="add-remove")
    >>> CategoryDiscovery(column="job", epsilon=1.0, delta=1e-6, unit=unit).threshold
    14
    """

    column: str
    epsilon: float
    delta: float
    unit: PrivacyUnit
    person: str | None = None

    def __post_init__(self) -> None:
        _checks.positive("CategoryDiscovery", epsilon=self.epsilon)
        _checks.probability("CategoryDiscovery", delta=self.delta)

    @property
    def threshold(self) -> int:
        """The smallest threshold that meets δ: a public number of rows."""
        low, high = 0, _LARGEST_THRESHOLD
        if self._stated(high)[1] > self.delta:
            raise TargetUnreachable(f"CategoryDiscovery: no threshold meets delta = {self.delta}. Raise epsilon.")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._stated(middle)[1] <= self.delta else (middle, high)
        return high

    def cost(self) -> Stated:
        """What to charge before drawing.

        (ε, δ) of a Laplace threshold at (ℓ₀, ℓ₁, ℓ∞), where a person changes at most ℓ₀ = ℓ₁ counts.
        Symbols: ℓ₁ sensitivity.l1, ℓ∞ sensitivity.linf.
        Source: our proof in docs/explanation/proofs/discovery.md; the map is OpenDP's.
        Adjacency: enters through the sensitivity.
        """
        epsilon, delta = self._stated(self.threshold)
        return Stated(epsilon_stated=epsilon, delta_stated=delta, unit=self.unit, what=f"categories of {self.column}")

    def draw(self, engine: Engine) -> tuple[str, ...]:
        """The texts found, in alphabetical order; their noisy counts are thrown away."""
        counted = engine.values(self.column, self.unit, self.person)
        return tuple(sorted(self._measurement(self.threshold)(counted)))

    def _measurement(self, threshold: int) -> Callable[[dict[str, int]], dict[str, int]]:
        dp = _opendp()
        counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
        distance = dp.l01inf_distance(dp.absolute_distance(T="i64"))
        scale = self.unit.sensitivity.l1 / self.epsilon * _HAIR
        measurement: Callable[[dict[str, int]], dict[str, int]] = dp.m.make_laplace_threshold(
            counts, distance, scale=scale, threshold=threshold
        )
        return measurement

    def _stated(self, threshold: int) -> tuple[float, float]:
        moved = self.unit.sensitivity
        distance = (int(moved.l1), int(moved.l1), int(moved.linf))
        epsilon, delta = self._measurement(threshold).map(distance)  # type: ignore[attr-defined]
        return float(epsilon), float(delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDiscovery:
    """Edges that cut a numeric column into bins of about equal size, chosen from a declared public grid.

    The grid has ``steps`` equal steps from ``low`` to ``high``; values outside count as its ends. The edges
    returned reach from −∞ to ∞, so that no number falls outside them.
    """

    column: str
    bins: int
    low: float
    high: float
    epsilon: float
    unit: PrivacyUnit
    steps: int = 1000
    person: str | None = None

    def __post_init__(self) -> None:
        _checks.positive("EdgeDiscovery", epsilon=self.epsilon)
        _checks.positive_integer("EdgeDiscovery", bins=self.bins, steps=self.steps)
        if self.bins < 2:
            raise InvalidArgument(f"EdgeDiscovery: expected bins of 2 or more, got {self.bins!r}.")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidArgument(f"EdgeDiscovery: expected finite low < high, got {self.low!r} and {self.high!r}.")

    @property
    def candidates(self) -> tuple[float, ...]:
        """The public grid."""
        return tuple(float(edge) for edge in np.linspace(self.low, self.high, self.steps + 1))

    def cost(self) -> Stated:
        """What to charge before drawing: the sum of the pure ε of all quantiles."""
        total = math.fsum(self._selection(rank).map(self._moved(rank)) for rank in range(1, self.bins))
        epsilon = math.nextafter(total, math.inf)
        return Stated(epsilon_stated=epsilon, delta_stated=0.0, unit=self.unit, what=f"edges of {self.column}")

    def draw(self, engine: Engine) -> tuple[float, ...]:
        """The edges chosen, in order; equal ones are merged, so that there may be fewer bins than asked for."""
        grid = self.candidates
        attribute = Attribute(name=self.column, edges=(-math.inf, *grid, math.inf))
        schema = Schema(id="discovery", unit=self.unit, attributes=(attribute,), person=self.person)
        (counts,) = engine.count(schema, [Marginal((self.column,))])
        in_bins = counts.array[: len(grid) + 1]  # neither missing values nor text that is no number
        below, rows = np.cumsum(in_bins)[:-1], int(in_bins.sum())
        chosen = {grid[self._selection(rank)(self._scores(below, rows, rank))] for rank in range(1, self.bins)}
        return (-math.inf, *sorted(chosen), math.inf)

    def _scores(self, below: _checks.Ints, rows: int, rank: int) -> list[int]:
        """|b·B(c) − j·n|: how far a candidate is from cutting off the j-th of b equal parts.

        Symbols: b bins, j rank, B(c) rows below the candidate c, n rows.
        Source: our proof in docs/explanation/proofs/discovery.md.
        Adjacency: enters through ``_moved``.
        """
        return [int(score) for score in np.abs(self.bins * below - rank * rows)]

    def _moved(self, rank: int) -> int:
        """m·b under replace-one, m·max(j, b−j) under add-remove: the most that a person moves any score.

        Symbols: m max_rows, b bins, j rank.
        Source: our proof in docs/explanation/proofs/discovery.md.
        Adjacency: both, as stated.
        """
        per_row = self.bins if self.unit.replaces else max(rank, self.bins - rank)
        return self.unit.max_rows * per_row

    def _selection(self, rank: int) -> Any:
        """The smallest score after noise, of scale 2Δ/ε for each quantile's share of ε."""
        dp = _opendp()
        scale = 2.0 * self._moved(rank) * (self.bins - 1) / self.epsilon * _HAIR
        scores = dp.vector_domain(dp.atom_domain(T="i64"))
        return dp.m.make_noisy_max(scores, dp.linf_distance(T="i64"), dp.max_divergence(), scale=scale, negate=True)


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp
