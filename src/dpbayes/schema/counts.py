"""The sensitive table that an engine returns, and one too wide to list, of which it returns the occupied cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Counts:
    """Exact counts with named axes. ``array`` is the only way to the numbers; printing never shows them.

    >>> import numpy as np
    >>> sex = Attribute(name="sex", categories=("F", "M"))
    >>> Counts(marginal=Marginal("sex"), axes=(sex,), array=np.array([3, 4, 1, 0]))
    Counts(sex: 4 levels)
    """

    marginal: Marginal
    axes: tuple[Attribute, ...]
    array: Ints

    def __post_init__(self) -> None:
        if tuple(axis.name for axis in self.axes) != self.marginal.names:
            raise InvalidArgument("Counts: expected one axis for each name of the marginal, in its order.")
        array = checks.counts("Counts", self.array).copy()  # the caller may go on writing
        if array.shape != self.shape:
            raise InvalidArgument(f"Counts: expected an array of shape {self.shape}, got {array.shape}.")
        array.flags.writeable = False
        object.__setattr__(self, "array", array)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.marginal.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{axis.name}: {len(axis.levels)} levels' for axis in self.axes)})"


LARGEST_DOMAIN = 2**62
"""Cells are numbered by 64-bit integers."""

_FEW = 2**20


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SparseCounts:
    """Numbers of the occupied cells (row-major, increasing) and their counts. Printing shows neither.

    >>> SparseCounts(shape=(1000, 10**9), cells=np.array([7, 10**9]), counts=np.array([2, 1]))
    SparseCounts(1,000 × 1,000,000,000 cells)
    """

    shape: tuple[int, ...]
    cells: Ints
    counts: Ints

    def __post_init__(self) -> None:
        if not self.shape or any(type(size) is not int or size < 1 for size in self.shape):
            raise InvalidArgument("SparseCounts: expected a shape of one axis or more, each with one level or more.")
        if math.prod(self.shape) > LARGEST_DOMAIN:
            raise InvalidArgument(f"SparseCounts: expected at most {LARGEST_DOMAIN:,} cells. Leave an axis out.")
        cells = np.asarray(self.cells, dtype=np.int64)
        counts = checks.counts("SparseCounts", self.counts) if len(self.counts) else np.zeros(0, dtype=np.int64)
        if cells.shape != counts.shape or cells.ndim != 1:
            raise InvalidArgument("SparseCounts: expected one count for each occupied cell.")
        if cells.size and (cells[0] < 0 or cells[-1] >= math.prod(self.shape) or np.any(np.diff(cells) <= 0)):
            raise InvalidArgument("SparseCounts: expected increasing numbers of cells that lie in the domain.")
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of_rows(cls, shape: tuple[int, ...], rows: Ints) -> SparseCounts:
        """Count rows of levels, one column for each axis."""
        cells, counts = np.unique(np.ravel_multi_index(tuple(np.asarray(rows).T), shape), return_counts=True)
        return cls(shape, cells, counts)

    @classmethod
    def total(cls, parts: Iterable[SparseCounts], shape: tuple[int, ...]) -> SparseCounts:
        """The sum of many parts. They are merged whenever as much waits as is merged, so each is sorted few times."""
        some, waiting = [cls(shape, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))], 0
        for part in parts:
            some.append(part)
            waiting += len(part.cells)
            if waiting > len(some[0].cells) + _FEW:
                some, waiting = [cls._sum(some, shape)], 0
        return cls._sum(some, shape)

    @classmethod
    def _sum(cls, parts: Sequence[SparseCounts], shape: tuple[int, ...]) -> SparseCounts:
        cells, place = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
        return cls(shape, cells, counts)

    @property
    def size(self) -> int:
        """Number of cells of the domain."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"SparseCounts({' × '.join(f'{size:,}' for size in self.shape)} cells)"
