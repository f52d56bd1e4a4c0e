"""The linear law: the best linear unbiased estimate of every margin, with exact variances and covariances.

A table B with noise of variance s² per cell measures the residual of every C ⊆ B with precision 1/(s²·n_{B∖C}).
Measurements of one residual are averaged by precision, residuals of different sets do not touch each other, and any
margin, any sum of cells of any margins, and any covariance follow by putting residuals together.

Where the variance differs from cell to cell (gamma noise), residuals are still averaged with the mean variance of a
table, which keeps the estimate unbiased, and its variance is propagated from the variances of the cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.inference.measurement import (
    Axes,
    Measurement,
    Parts,
    Sizes,
    assemble,
    cells,
    centre,
    closure,
    even_covariance,
    inner,
    split,
    subsets,
    widen,
    without,
)

OWNER = "Posterior"

Functional = Mapping[Axes, Floats]
"""A sum of cells: weights for the cells of one or more tables."""

NEGLIGIBLE = 1e-9
"""A direction of an unmeasured residual, or a contradiction of public margins, relative to its scale, that is none."""

Bools = NDArray[np.bool_]


class NotEstimable(InvalidArgument):
    """No measurement tells; ``missing`` names the sets of axes that a new table must contain."""

    def __init__(self, missing: Sequence[Axes]) -> None:
        self.missing = tuple(missing)
        named = "; ".join(" × ".join(axes) if axes else "the number of records" for axes in self.missing)
        super().__init__(f"{OWNER}: the published tables do not determine this. Measure a table that contains {named}.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Uneven:
    """A measurement whose variance differs from cell to cell, and its weight in every residual."""

    axes: Axes
    variance: Floats
    slope: float
    weights: dict[Axes, float]


class LinearLaw:
    """Means, variances and covariances of all margins that the measurements determine."""

    def __init__(
        self,
        measurements: Sequence[Measurement],
        sizes: Sizes,
        records: float | None = None,
        zeros: Sequence[tuple[Axes, Bools]] = (),
    ) -> None:
        self.sizes = dict(sizes)
        self._place = {name: place for place, name in enumerate(self.sizes)}
        placed = [self._placed(each) for each in measurements]
        self.tables = closure([axes for axes, _, _ in placed])
        self.residuals: Parts = {}
        self.noise: dict[Axes, float] = {}
        self._uneven: list[_Uneven] = []
        self._combine(placed, records)
        self.zeros = self._extended(zeros)
        self._zero_gain: Parts = {}
        self._zero_score: Parts = {}
        self._zeros_kept = 0
        self._condition(self.zeros)

    def ordered(self, axes: Sequence[str]) -> Axes:
        """The axes in the agreed order; unknown ones are refused."""
        names = (axes,) if isinstance(axes, str) else tuple(axes)
        for name in names:
            if name not in self._place:
                near = get_close_matches(name, self.sizes, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(self.sizes)}."
                raise SchemaError(f"{OWNER}: there is no attribute {name!r}. {hint}")
        if len(set(names)) < len(names):
            raise InvalidArgument(f"{OWNER}: an axis is named twice. Name each axis once.")
        return tuple(sorted(names, key=self._place.__getitem__))

    def missing(self, axes: Axes) -> list[Axes]:
        """The largest sets of axes whose joint residual nobody measured; none if the margin is estimable."""
        # along an axis with one level a residual has no freedom
        free = [part for part in subsets(axes) if all(self.sizes[name] > 1 for name in part)]
        unknown = [part for part in free if part not in self.residuals]
        return [part for part in unknown if not any(set(part) < set(other) for other in unknown)]

    def mean(self, axes: Axes) -> Floats:
        """ĉ_A = Σ_{C⊆A} û_C / n_{A∖C}

        Symbols: û_C the precision-weighted mean of the measured residuals of C, n_S the number of cells of S.
        Source: docs/explanation/proofs/residual-basis.md.
        Adjacency: none, this is post-processing.
        """
        self._require(axes)
        return assemble(self.residuals, axes, self.sizes)

    def variance(self, axes: Axes) -> Floats:
        """v_A = Σ_{C⊆A} τ_C⁻¹ · Π_{i∈C} (1 − 1/n_i) · n_{A∖C}⁻², cell by cell where the noise is uneven.

        Symbols: τ_C precision of the residual of C, n_S the number of cells of S.
        Source: docs/explanation/proofs/residual-basis.md.
        Adjacency: none, this is post-processing.
        """
        return self.covariance_with_margin(axes, axes)

    def slope(self, axes: Axes) -> float:
        """How much the variance of a cell grows with one more record in it (gamma noise); zero for even noise."""
        return sum(
            each.slope * self._leverage(each, axes, axes, axes) ** 2
            for each in self._uneven
            if set(axes) <= set(each.axes)
        )

    def moments(self, functionals: Sequence[Functional]) -> tuple[Floats, Floats]:
        """Means and covariance matrix of sums of cells: Cov(a, b) = Σ_C τ_C⁻¹ ⟨α_C, β_C⟩ for even noise.

        Symbols: α_C = P_C Σ_A (sum of a_A over A∖C)/n_{A∖C}.
        Source: docs/explanation/proofs/residual-basis.md.
        Adjacency: none, this is post-processing.
        """
        coefficients = self._coefficients(functionals)
        mean = inner(coefficients, self.residuals, len(functionals))
        covariance = inner(coefficients, self._gain(coefficients), len(functionals))
        if self._zero_gain:
            reduction = inner(coefficients, self._zero_gain, len(functionals))
            covariance = covariance - reduction @ reduction.T
        return mean, (covariance + covariance.T) / 2

    def draws(self, tables: Sequence[Axes], number: int, rng: np.random.Generator) -> list[Floats]:
        """Normal draws of whole tables with the law's means and covariances; shared margins agree in every draw."""
        for axes in tables:
            self._require(axes)
        parts: Parts = {}
        for axes in closure([*tables, *self._zero_score]):
            if axes not in self.residuals:
                continue
            drawn = rng.standard_normal((number, *self._shape(axes))) * math.sqrt(self.noise[axes])
            for position in range(len(axes)):
                drawn = centre(drawn, position + 1)
            parts[axes] = self._free[axes] + drawn
        for each in self._uneven:
            error = rng.standard_normal((number, *each.variance.shape)) * np.sqrt(each.variance)
            for axes, part in split(error, each.axes).items():
                if axes in parts:
                    parts[axes] = parts[axes] + each.weights[axes] * part
        if self._zero_gain:
            score = inner(self._zero_score, parts, self._zeros_kept)
            for axes, gain in self._zero_gain.items():
                if axes in parts:
                    parts[axes] = parts[axes] - np.tensordot(score.T, gain, axes=1)
        return [assemble(parts, axes, self.sizes) for axes in tables]

    def _placed(self, measurement: Measurement) -> tuple[Axes, Floats, Measurement]:
        """Axes and values in the agreed order, read as counts."""
        axes = self.ordered(measurement.axes)
        expected = tuple(self.sizes[name] for name in measurement.axes)
        if measurement.values.shape != expected:
            raise InvalidArgument(
                f"{OWNER}: expected a table of shape {expected} for {', '.join(measurement.axes) or 'the total'}, "
                f"got {measurement.values.shape}."
            )
        order = [measurement.axes.index(name) for name in axes]
        return axes, np.transpose(measurement.noise.center(measurement.values), order), measurement

    def _combine(self, placed: list[tuple[Axes, Floats, Measurement]], records: float | None) -> None:
        """Average the measurements of every residual by precision; what is public is taken as it is."""
        exact: Parts = {} if records is None else {(): np.array(float(records))}
        noisy: list[tuple[Axes, Floats, Measurement, float]] = []
        for axes, values, measurement in placed:
            total = float(records) if records is not None else max(float(values.sum()), 0.0)
            level = np.full(measurement.values.shape, total / values.size)
            variance = float(measurement.noise.variance(level).mean())
            if variance > 0:
                noisy.append((axes, values, measurement, variance))
                continue
            for part, residual in split(values, axes).items():
                scale = NEGLIGIBLE * max(1.0, float(np.abs(values).sum()))
                if part in exact and np.abs(exact[part] - residual).max() > scale:
                    named = " × ".join(part) if part else "the number of records"
                    raise InvalidArgument(f"{OWNER}: the public margins contradict each other in {named}.")
                exact.setdefault(part, residual)
        precision: dict[Axes, float] = {}
        sums: Parts = {}
        for axes, values, _, variance in noisy:
            for part, residual in split(values, axes).items():
                weight = 1 / (variance * cells(without(axes, part), self.sizes))
                precision[part] = precision.get(part, 0.0) + weight
                sums[part] = sums[part] + weight * residual if part in sums else weight * residual
        self.residuals = {part: total / precision[part] for part, total in sums.items()} | exact
        self.noise = dict.fromkeys(self.residuals, 0.0)
        for axes, _, measurement, variance in noisy:
            weights = {
                part: 0.0
                if part in exact
                else 1 / (variance * cells(without(axes, part), self.sizes) * precision[part])
                for part in subsets(axes)
            }
            if measurement.noise.even:
                for part, weight in weights.items():
                    self.noise[part] += weight**2 * variance * cells(without(axes, part), self.sizes)
            else:
                self._uneven.append(self._uneven_of(axes, measurement, weights))
        self._free = dict(self.residuals)

    def _uneven_of(self, axes: Axes, measurement: Measurement, weights: dict[Axes, float]) -> _Uneven:
        counts = np.maximum(assemble(self.residuals, axes, self.sizes), 0.0)
        own = np.transpose(counts, [axes.index(name) for name in measurement.axes])
        variance = measurement.noise.variance(own)
        order = [measurement.axes.index(name) for name in axes]
        return _Uneven(
            axes=axes, variance=np.transpose(variance, order), slope=measurement.noise.slope(), weights=weights
        )

    def _extended(self, zeros: Sequence[tuple[Axes, Bools]]) -> dict[Axes, Bools]:
        """Cells that must be empty, in every measured table that contains their axes."""
        found: dict[Axes, Bools] = {}
        for names, where in zeros:
            axes = self.ordered(names)
            mask = np.asarray(where, dtype=bool)
            if mask.shape != tuple(self.sizes[name] for name in names):
                raise InvalidArgument(f"{OWNER}: structural zeros do not fit the levels of {', '.join(axes)}.")
            mask = np.transpose(mask, [tuple(names).index(name) for name in axes])
            for table in dict.fromkeys([axes, *self.tables]):
                if set(axes) <= set(table):
                    wide = np.broadcast_to(widen(mask, axes, table), self._shape(table)).astype(bool)
                    found[table] = found[table] | wide if table in found else wide
        return {axes: where for axes, where in found.items() if where.any()}

    def _require(self, axes: Axes) -> None:
        if missing := self.missing(axes):
            raise NotEstimable(missing)

    def _coefficients(self, functionals: Sequence[Functional]) -> Parts:
        """α_C of all sums of cells, stacked; residuals that nobody measured must not matter."""
        found: Parts = {}
        for row, functional in enumerate(functionals):
            for axes, weights in functional.items():
                scale = float(np.abs(weights).max(initial=0.0))
                for part, residual in split(np.asarray(weights, dtype=np.float64), axes).items():
                    coefficient = residual / cells(without(axes, part), self.sizes)
                    if part not in found:
                        found[part] = np.zeros((len(functionals), *coefficient.shape))
                    found[part][row] += np.where(np.abs(coefficient) > NEGLIGIBLE**2 * scale, coefficient, 0.0)
        largest = max((float(np.abs(value).max()) for value in found.values()), default=0.0)
        unknown = [
            part
            for part, value in found.items()
            if part not in self.residuals and np.abs(value).max() > NEGLIGIBLE * largest
        ]
        if unknown:
            raise NotEstimable([part for part in unknown if not any(set(part) < set(other) for other in unknown)])
        return {part: value for part, value in found.items() if part in self.residuals}

    def _gain(self, coefficients: Parts) -> Parts:
        """Covariances of all residuals with sums of cells, before zeros are conditioned on."""
        gain: Parts = {part: self.noise[part] * value for part, value in coefficients.items()}
        for each in self._uneven:
            touched = {part: each.weights[part] * value for part, value in coefficients.items() if part in each.weights}
            if not touched:
                continue
            pulled = sum(widen(value, part, each.axes) for part, value in touched.items())
            for part, value in split(each.variance * pulled, each.axes).items():
                if each.weights[part]:
                    gain[part] = gain[part] + each.weights[part] * value if part in gain else each.weights[part] * value
        return gain

    def _leverage(self, each: _Uneven, axes: Axes, shared: Axes, match: Axes) -> float:
        """The weight of a measured cell in an estimated one that agrees with it on ``match`` and nowhere else."""
        total = 0.0
        for part in subsets(shared):
            factor = each.weights[part] / cells(without(axes, part), self.sizes)
            for name in part:
                factor *= (1.0 if name in match else 0.0) - 1 / self.sizes[name]
            total += factor
        return total

    def covariance_with_margin(self, axes: Axes, margin: Axes) -> Floats:
        """Covariance of every cell of a table with its total in a margin of the table, in the table's shape.

        Σ_{C⊆J} τ_C⁻¹ · Π_{i∈C} (1 − 1/n_i) / (n_{A∖C}·n_{J∖C}), cell by cell where the noise is uneven
        Symbols: A axes, J margin, τ_C precision of the residual of C, n_S the number of cells of S.
        Source: docs/explanation/proofs/residual-basis.md.
        Adjacency: none, this is post-processing.
        """
        self._require(axes)
        found = np.full(self._shape(axes), even_covariance(self.noise, self.sizes, axes, margin))
        for each in self._uneven:
            shared = tuple(name for name in axes if name in each.axes)
            inside = tuple(name for name in shared if name in margin)
            absent = tuple(place for place, name in enumerate(each.axes) if name not in shared)
            summed = each.variance.sum(axis=absent)
            for match in subsets(shared):
                near = summed
                for place, name in enumerate(shared):
                    if name not in match:
                        near = near.sum(axis=place, keepdims=True) - near
                leverage = self._leverage(each, axes, shared, match) * self._leverage(each, margin, inside, match)
                found = found + leverage * widen(near, shared, axes)
        if self._zero_gain:
            table = assemble(self._zero_gain, axes, self.sizes)
            total = widen(assemble(self._zero_gain, margin, self.sizes), margin, axes)
            found = found - (table * total).sum(axis=0)
        return np.maximum(found, 0.0) if margin == axes else found

    def _condition(self, zeros: dict[Axes, Bools]) -> None:
        """û ← û − Cov(û, c_Z) Cov(c_Z)⁻¹ ĉ_Z: what is known of a table whose cells Z are empty."""
        largest = [axes for axes in zeros if not any(set(axes) < set(other) for other in zeros)]
        largest = [axes for axes in largest if not self.missing(axes)]
        number = sum(int(zeros[axes].sum()) for axes in largest)
        if number == 0 or number * sum(cells(axes, self.sizes) for axes in self.tables) > 2e7:
            return  # so many zeros only cut estimates and intervals
        functionals: list[Functional] = []
        for axes in largest:
            for cell in np.argwhere(zeros[axes]):
                weights = np.zeros(self._shape(axes))
                weights[tuple(cell)] = 1.0
                functionals.append({axes: weights})
        coefficients = self._coefficients(functionals)
        gain = self._gain(coefficients)
        covariance = inner(coefficients, gain, number)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        kept = values > NEGLIGIBLE * max(float(values.max()), 0.0)
        self._zeros_kept = int(kept.sum())
        root = (vectors[:, kept] / np.sqrt(values[kept])).T
        self._zero_score = {part: np.tensordot(root, value, axes=1) for part, value in coefficients.items()}
        self._zero_gain = {part: np.tensordot(root, value, axes=1) for part, value in gain.items()}
        score = inner(self._zero_score, self.residuals, self._zeros_kept)
        for part, batch in self._zero_gain.items():
            self.residuals[part] = self.residuals[part] - np.tensordot(score, batch, axes=1)

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.sizes[name] for name in axes)
