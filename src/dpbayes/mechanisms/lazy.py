"""A Dirichlet draw over a domain too wide to list: every cell exists from the start, and is computed when asked for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import LARGEST_SHAPE, Dirichlet
from dpbayes.mechanisms.noise import KeyedStreams
from dpbayes.privacy.cost import Cost
from dpbayes.schema.counts import SparseCounts

BITS = 26
"""Shares of a split are multiples of 2⁻²⁶: at least 2⁵²⁻²⁶/3 values of the sampler round to the same one."""

LARGEST_TOTAL = 2.0**70
"""Of the concentrations of all cells: beyond it, rounding the shapes of the first splits would show."""

TINY = 0.1
"""Below this concentration a split is drawn in logarithms: all its gammas may underflow."""

Law = Literal["cells", "splits"]


@dataclass(frozen=True, slots=True)
class _Step:
    """One split of the tree: a run of levels of an axis into ``branches`` runs of ``width`` levels each."""

    axis: int
    branches: int
    width: int


class LazyDirichlet:
    """One draw, of which any cell and any marginal can be asked for, again and again, at one price.

    The axes make a tree: the first axis splits the whole, the next one each of its levels, and so on. A split is a
    Dirichlet draw of its own, from the stream that a secret key gives to that place in the tree, so the same question
    always has the same answer and answers agree with each other.

    ``law="cells"``: y ~ Dirichlet(r·c + α) over all cells, as the mechanism draws it on a table that fits in memory. A
    split then has the concentration α·(cells below) on each branch. One release.
    ``law="splits"``: the same α on every branch of every split, whatever lies below. This is one conditional table for
    each axis, given those before it, drawn row by row when asked: as many releases as axes, and on a wide domain far
    more accurate, because α is not multiplied by the number of cells.

    Source: aggregation of the Dirichlet distribution; docs/explanation/wide.md.

    >>> from dpbayes import Unit
    >>> unit = Unit(adjacency="replace-one")
    >>> counts = SparseCounts.of_rows((1000, 1000, 10**6), np.array([[7, 7, 7]] * 5))
    >>> wide = LazyDirichlet(Dirichlet(weight=1, concentration=10, unit=unit), counts, key=bytes(32))
    >>> first, _ = wide.shares(np.array([[7, 7, 7], [0, 0, 0]]))
    >>> bool(first == wide.shares(np.array([[7, 7, 7]]))[0])
    True
    """

    def __init__(self, mechanism: Dirichlet, counts: SparseCounts, *, key: bytes, law: Law = "cells") -> None:
        if isinstance(mechanism.concentration, tuple) or mechanism.least_count:
            raise InvalidArgument("LazyDirichlet: expected one concentration for all cells, and no least count.")
        checks.one_of("LazyDirichlet", ("cells", "splits"), law=law)
        if not isinstance(key, bytes) or len(key) != 32:
            raise InvalidArgument("LazyDirichlet: expected a key of 32 bytes, as secrets.token_bytes(32) makes it.")
        total = float(mechanism.concentration) * (math.prod(counts.shape) if law == "cells" else max(counts.shape))
        if total > LARGEST_TOTAL:
            raise InvalidArgument(
                "LazyDirichlet: expected concentrations that add up to 10^21 at most. Take the law of splits, or a "
                "smaller domain."
            )
        self.mechanism = mechanism
        self.law: Law = law
        self.shape = counts.shape
        self._cells = counts.cells
        self._before = np.concatenate([[0], np.cumsum(counts.counts)])
        self._below = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        self._steps = tuple(step for axis, levels in enumerate(self.shape) for step in _steps(axis, levels))
        self._streams = tuple(
            KeyedStreams(hashlib.blake2b(number.to_bytes(2), key=key, digest_size=32, person=b"dpbayes.lazy").digest())
            for number in range(len(self._steps))
        )

    @property
    def cost(self) -> Cost:
        """What all answers together cost."""
        return Cost.of(self.mechanism, 1 if self.law == "cells" else len(self.shape))

    def shares(self, cells: ArrayLike) -> Floats:
        """The shares of some cells, each given by its levels: one row for each cell, one column for each axis."""
        rows = np.asarray(cells)
        if rows.ndim != 2 or rows.shape[1] != len(self.shape) or rows.dtype.kind not in "iu":
            raise InvalidArgument(f"LazyDirichlet: expected rows of {len(self.shape)} levels, as whole numbers.")
        if rows.size and (rows.min() < 0 or np.any(rows >= np.array(self.shape))):
            raise InvalidArgument("LazyDirichlet: expected levels that count from 0 and lie in the domain.")
        return self._shares(rows)

    def marginal(self, axes: Sequence[int], where: Mapping[int, int] | None = None) -> Floats:
        """The table of some axes, summed over the others; ``where`` fixes the levels of further axes.

        The tree is opened down to the last axis that is named, so what is asked for often should come first.
        """
        fixed = dict(where or {})
        named = [*axes, *fixed]
        if not named or len(set(named)) < len(named) or not set(named) <= set(range(len(self.shape))):
            raise InvalidArgument(f"LazyDirichlet: expected different axes from 0 to {len(self.shape) - 1}.")
        if any(not 0 <= level < self.shape[axis] for axis, level in fixed.items()):
            raise InvalidArgument("LazyDirichlet: expected levels that count from 0 and lie in the domain.")
        ranges = [(fixed[axis],) if axis in fixed else range(self.shape[axis]) for axis in range(max(named) + 1)]
        places = math.prod(map(len, ranges))
        if places > (most := 2_000_000):
            raise InvalidArgument(
                f"LazyDirichlet: this answer needs {places:,} places of the tree, more than {most:,}. Put what "
                "you ask for before the other axes, or fix some of those."
            )
        sizes = [len(levels) for levels in ranges]
        rows = np.stack([each.ravel() for each in np.meshgrid(*ranges, indexing="ij")], axis=1)
        table = self._shares(rows).reshape(sizes)
        table = table.sum(axis=tuple(axis for axis in range(len(sizes)) if axis not in axes))
        return np.asarray(table.transpose([sorted(axes).index(axis) for axis in axes]))

    def _shares(self, rows: Ints) -> Floats:
        """The share of each place in the tree: rows of levels of the first axes."""
        shares = np.ones(len(rows))
        starts = np.zeros(len(rows), dtype=np.int64)
        inside = np.zeros(len(rows), dtype=np.int64)
        for number, step in enumerate(self._steps):
            if step.axis == rows.shape[1]:
                break
            nodes, node_of_row = np.unique(starts, return_inverse=True)
            branch = (rows[:, step.axis] - inside) // step.width
            chosen = np.empty((len(nodes), step.branches))
            for first in range(0, len(nodes), 4096):
                chosen[first : first + 4096] = self._split(number, nodes[first : first + 4096])
            shares *= chosen[node_of_row, branch]
            starts += branch * (step.width * self._below[step.axis])
            inside = inside + branch * step.width if step.width > 1 else np.zeros_like(inside)
        return shares

    def _split(self, number: int, nodes: Ints) -> Floats:
        """How each of some nodes of a step divides: nodes × branches, each row a Dirichlet draw of its own.

        A node is named by the number of its first cell. Branches beyond the last level of the axis get nothing. The
        shares are rounded here, before anything is made of them, so that no number of answers shows more.
        """
        step = self._steps[number]
        levels, below = self.shape[step.axis], self._below[step.axis]
        first = (nodes // below) % levels
        edges = np.minimum(first[:, None] + step.width * np.arange(step.branches + 1), levels)
        starts = nodes[:, None] + (edges - first[:, None]) * below
        counts = np.diff(self._before[np.searchsorted(self._cells, starts)], axis=1)
        counts = np.minimum(counts, int(LARGEST_SHAPE / self.mechanism.weight))  # a public cut, as the mechanism's own
        alpha = float(self.mechanism.concentration) * (below if self.law == "cells" else 1)  # type: ignore[arg-type]
        shapes = self.mechanism.weight * counts + alpha * np.diff(edges, axis=1)
        at = self._streams[number].at
        z: Floats = np.empty_like(shapes)
        for row, node in enumerate(nodes.tolist()):
            at(node).standard_gamma(shapes[row], out=z[row])
        for tiny in np.flatnonzero(shapes.max(axis=1) < TINY):  # all may underflow, but not their logarithms:
            # ln z = ln z⁺ − e/a, relative to the largest, with z⁺ ~ Gamma(a + 1), e exponential
            rng, row = at(int(nodes[tiny])), shapes[tiny]
            with np.errstate(divide="ignore"):
                logs = np.log(rng.standard_gamma(row + 1.0)) - rng.standard_exponential(row.shape) / row
            z[tiny] = np.exp(logs - logs.max())
        z /= z.sum(axis=1, keepdims=True)
        return _rounded(z, shapes > 0)


def _steps(axis: int, levels: int) -> list[_Step]:
    """Steps that take an axis apart, none with more than 64 branches."""
    number = next(number for number in count(1) if 64**number >= levels)
    branches = next(branches for branches in count(1) if branches**number >= levels)
    return [_Step(axis, branches, branches ** (number - 1 - step)) for step in range(number)]


def _rounded(shares: Floats, present: NDArray[np.bool_]) -> Floats:
    """Shares as multiples of 2⁻²⁶, at least one of them for every branch that is there, and normalised again."""
    steps = np.maximum(np.rint(np.ldexp(shares, BITS)), present)
    return np.asarray(steps / steps.sum(axis=1, keepdims=True))
