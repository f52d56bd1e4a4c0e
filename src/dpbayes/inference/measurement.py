"""What was published about a private table, the residual basis that splits it, and tables that meet given margins.

A table is the sum of parts, one for each subset of its axes, that know nothing of each other. The part that
belongs to the axes C is the margin on C, centred along every axis of C. Centred parts of different sets are orthogonal,
whatever table they come from, and a table is put together again from them:

    c_A = Σ_{C⊆A} u_C / n_{A∖C},   u_C = P_C (margin of c on C),   P_C = ⊗_{i∈C} (I − 11ᵀ/n_i).

Axes are named; a set of axes is a tuple of names in one agreed order. Arrays may carry leading batch axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.kinds import Additive, Noise

Axes = tuple[str, ...]
Sizes = Mapping[str, int]
Parts = dict[Axes, Floats]


def subsets(axes: Axes) -> Iterator[Axes]:
    """All subsets, smallest first, each in the order of ``axes``."""
    for size in range(len(axes) + 1):
        yield from combinations(axes, size)


def closure(tables: Sequence[Axes]) -> list[Axes]:
    """All tables and all their margins, smallest first, without repetition."""
    found: dict[Axes, None] = {}
    for axes in tables:
        found.update(dict.fromkeys(subsets(axes)))
    return sorted(found, key=len)


def cells(axes: Sequence[str], sizes: Sizes) -> int:
    """n_A, the number of cells of a table."""
    return math.prod(sizes[name] for name in axes)


def without(axes: Axes, removed: Axes) -> Axes:
    """A∖C."""
    return tuple(name for name in axes if name not in removed)


def split(table: Floats, axes: Axes) -> Parts:
    """The residuals u_C of a table for all C ⊆ axes; batch axes lead.

    >>> parts = split(np.array([[1.0, 2.0], [3.0, 6.0]]), ("a", "b"))
    >>> float(parts[()]), parts[("a",)].tolist(), parts[("a", "b")].tolist()
    (12.0, [-3.0, 3.0], [[0.5, -0.5], [-0.5, 0.5]])
    """
    lead = table.ndim - len(axes)
    parts: Parts = {(): table}
    for position in reversed(range(len(axes))):
        halves: Parts = {}
        for kept, part in parts.items():
            total = part.sum(axis=lead + position)
            halves[kept] = total
            halves[(axes[position], *kept)] = part - np.expand_dims(
                total / part.shape[lead + position], lead + position
            )
        parts = halves
    return parts


def centre(table: Floats, axis: int) -> Floats:
    """The table less its mean along an axis."""
    return np.asarray(table - table.mean(axis=axis, keepdims=True))


def assemble(parts: Parts, axes: Axes, sizes: Sizes) -> Floats:
    """The table Σ_{C⊆axes} u_C / n_{axes∖C}; residuals that are not there are zero. Batch axes lead.

    >>> parts = split(np.array([[1.0, 2.0], [3.0, 6.0]]), ("a", "b"))
    >>> assemble(parts, ("b",), {"a": 2, "b": 2}).tolist()
    [4.0, 8.0]
    """
    current: dict[Axes, Floats | None] = {kept: parts.get(kept) for kept in subsets(axes)}
    lead = next((part.ndim - len(kept) for kept, part in current.items() if part is not None), 0)
    for position, name in enumerate(axes):
        joined: dict[Axes, Floats | None] = {}
        for kept in subsets(axes[position + 1 :]):
            with_axis, without_axis = current[(name, *kept)], current[kept]
            if without_axis is not None:
                mean = np.expand_dims(without_axis / sizes[name], lead + position)
                if with_axis is None:
                    joined[kept] = np.repeat(mean, sizes[name], axis=lead + position)
                else:
                    joined[kept] = with_axis + mean
            else:
                joined[kept] = with_axis
        current = joined
    found = current[()]
    return np.zeros([sizes[name] for name in axes]) if found is None else found


def inner(batch: Parts, parts: Parts, number: int) -> Floats:
    """Σ_C ⟨batch_C, parts_C⟩: one number per row of the batch, or a matrix if ``parts`` is a batch too."""
    found: Floats | float = 0.0
    for part, value in batch.items():
        if part in parts:
            flat = value.reshape(number, -1)
            other = parts[part]
            wide = other.reshape(-1, flat.shape[1])
            found = found + (flat @ wide.T if other.ndim > len(part) else flat @ wide[0])
    return np.asarray(found)


def widen(table: NDArray[Any], axes: Axes, into: Axes) -> NDArray[Any]:
    """A table, with any batch axes leading, shaped so that it broadcasts along the axes that it lacks."""
    lead = table.ndim - len(axes)
    index = (slice(None),) * lead + tuple(slice(None) if name in axes else None for name in into)
    return table[index]


def even_noise(sizes: Sizes, measured: Sequence[tuple[Axes, float]], exact: Sequence[Axes] = ()) -> dict[Axes, float]:
    """τ_C⁻¹ of every residual that the tables measure: τ_C = Σ_{B⊇C} 1/(s_B²·n_{B∖C}), and infinite within ``exact``

    Symbols: s_B² variance of a cell of the measured table B, n_S the number of cells of S.
    Source: docs/explanation/proofs/residual-basis.md, theorem 1.
    Adjacency: a public number of records is the exact table ().

    >>> even_noise({"a": 2, "b": 5}, [(("a", "b"), 4.0)], exact=[()])
    {('a',): 20.0, ('b',): 8.0, ('a', 'b'): 4.0, (): 0.0}
    """
    known = set(closure(exact))
    precision: dict[Axes, float] = {}
    for axes, variance in measured:
        for part in subsets(axes):
            if part not in known:
                precision[part] = precision.get(part, 0.0) + 1 / (variance * cells(without(axes, part), sizes))
    return {part: 1 / value for part, value in precision.items()} | dict.fromkeys(known, 0.0)


def even_covariance(noise: Mapping[Axes, float], sizes: Sizes, axes: Axes, margin: Axes) -> float:
    """Σ_{C⊆J} τ_C⁻¹ · Π_{i∈C} (1 − 1/n_i) / (n_{A∖C}·n_{J∖C}): a cell of A with its total in the margin J

    Symbols: τ_C⁻¹ ``noise`` of the residual of C, n_S the number of cells of S; J = A gives the variance of a cell.
    Source: docs/explanation/proofs/residual-basis.md.
    Adjacency: none, this is post-processing.
    """
    found = 0.0
    for part in subsets(margin):
        if part in noise and (factor := math.prod(1 - 1 / sizes[name] for name in part)):
            rest = cells(without(axes, part), sizes) * cells(without(margin, part), sizes)
            found += noise[part] * factor / rest
    return found


Margins = Sequence[tuple[Axes, Floats]]


def _lacking(axes: Axes, margin: Axes) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(axes) if name not in margin)


def tolerance(margin: Floats) -> float:
    """How far the margins of agreeing tables may be apart, in records; up to rounding if there are very many."""
    return max(1e-7, 1e-13 * float(margin.sum()))


def share_gaps(table: Floats, doubt: Floats, axes: Axes, margins: Margins, sweeps: int = 5) -> Floats:
    """What a margin lacks is shared out in proportion to the variances of its cells: the mean given the sum."""
    for _ in range(sweeps):
        for margin, target in margins:
            lacking = _lacking(axes, margin)
            whole = doubt.sum(axis=lacking, keepdims=True)
            gap = target.reshape(whole.shape) - table.sum(axis=lacking, keepdims=True)
            table = table + doubt * np.where(whole > 0, gap / np.where(whole > 0, whole, 1.0), 0.0)
    return table


def fit_margins(table: Floats, axes: Axes, margins: Margins, sweeps: int = 400) -> tuple[Floats, float]:
    """Proportional fitting to all margins in turn, and the largest gap that is left, in records; a dozen sweeps do.

    After 30 sweeps a two-way table without zeros is finished in one step.
    """
    largest = 0.0
    close = tolerance(margins[0][1])
    rounding = table.ndim == 2 and bool((table > 0).all()) and all(len(margin) == 1 for margin, _ in margins)
    for _ in range(min(sweeps, 30) if rounding else sweeps):
        largest = 0.0
        for margin, target in margins:
            lacking = _lacking(axes, margin)
            whole = table.sum(axis=lacking, keepdims=True)
            wanted = target.reshape(whole.shape)
            largest = max(largest, float(np.abs(wanted - whole).max(initial=0.0)))
            table = table * np.where(whole > 0, wanted / np.where(whole > 0, whole, 1.0), 0.0)
        if largest <= close:
            return table, largest
    if rounding:
        rows, columns = (target for _, target in sorted(margins, key=lambda each: axes.index(each[0][0])))
        return _finish(table, rows, columns)
    return table, largest


def _finish(table: Floats, rows: Floats, columns: Floats) -> tuple[Floats, float]:
    """A two-way table with exactly these margins: cells are lowered to fit, what is then lacking is spread evenly."""
    table = table * np.minimum(1.0, rows / np.maximum(table.sum(axis=1), 1e-300))[:, None]
    table = table * np.minimum(1.0, columns / np.maximum(table.sum(axis=0), 1e-300))
    lack, other = rows - table.sum(axis=1), columns - table.sum(axis=0)
    if lack.sum() > 0:
        table = table + np.outer(np.maximum(lack, 0.0), np.maximum(other, 0.0)) / max(float(other.sum()), 1e-300)
    gaps = np.abs(rows - table.sum(axis=1)).max(), np.abs(columns - table.sum(axis=0)).max()
    return table, float(max(gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(Additive):
    """No noise: a public margin, or one that was published in the clear."""

    def variance(self, counts: Floats) -> Floats:
        """None."""
        return np.zeros(np.shape(counts))

    def log_law(self, value: float, counts: Ints) -> Floats:
        """0 at the value, −∞ elsewhere."""
        return np.where(counts == value, 0.0, -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """One published table: its axes, the numbers as they were drawn, and the noise in them.

    A conditional table is the joint table of all its axes here.
    """

    axes: Axes
    values: Floats
    noise: Noise

    def __post_init__(self) -> None:
        axes = tuple(self.axes)
        values = np.asarray(self.values, dtype=np.float64)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "values", values)
        if len(set(axes)) < len(axes):
            raise InvalidArgument("Measurement: an axis is named twice. Name each axis once.")
        if values.ndim != len(axes) or values.size == 0:
            raise InvalidArgument(f"Measurement: expected values with {len(axes)} axes, got {values.ndim}.")
        if not np.isfinite(values).all():
            raise InvalidArgument("Measurement: expected finite values.")
