"""Draw many values at once, each from the row that its parents name."""

from __future__ import annotations

import numpy as np

from dpbayes._checks import Floats, Ints

_BUCKETS = 2**12
_LARGEST_TABLE = 2**22
"""Rows × buckets that a table of first guesses may have."""


def pick(shares: Floats, rows: Ints, rng: np.random.Generator, *, even: bool = False) -> Ints:
    """One value for each entry of ``rows``, by inversion of that row's cumulative shares.

    ``even`` spreads the values of each row over its shares instead of drawing them independently: every value alone has
    the same law, but each cell comes out within one of its expectation. They come from a stream of their own: whoever
    samples them with a generator of the same seed would otherwise pick the same strata again.

    A table of guesses gives the value of every bucket of uniform numbers that lies in one cell; the few numbers in
    other buckets walk up their row.

    >>> import numpy as np
    >>> pick(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1]), np.random.default_rng(0)).tolist()
    [0, 1, 1]
    """
    cumulative = np.cumsum(shares, axis=1)
    cumulative /= cumulative[:, -1:]
    uniform = _even(rows, len(shares), rng.spawn(1)[0]) if even else rng.random(len(rows))
    width = shares.shape[1]
    if len(shares) * _BUCKETS > _LARGEST_TABLE or len(rows) < _BUCKETS:
        return _by_search(cumulative, rows, uniform)
    starts = np.arange(_BUCKETS) / _BUCKETS
    first = np.stack([np.searchsorted(row, starts, side="right") for row in cumulative]).astype(np.int64)
    found = first.ravel()[rows * _BUCKETS + (uniform * _BUCKETS).astype(np.int64)]
    flat = cumulative.ravel()
    open_cells = np.arange(len(rows))
    while open_cells.size:
        at = found[open_cells]
        up = (at < width - 1) & (flat[rows[open_cells] * width + np.minimum(at, width - 1)] <= uniform[open_cells])
        open_cells = open_cells[up]
        found[open_cells] += 1
    return np.asarray(np.minimum(found, width - 1))


def _even(rows: Ints, number: int, rng: np.random.Generator) -> Floats:
    """Uniform numbers, those of one row in equal steps from a random start and in random order."""
    shuffled = rng.permutation(len(rows))
    short = rows.astype(np.uint16) if number <= 2**16 else rows
    order = shuffled[np.argsort(short[shuffled], kind="stable")]
    sorted_rows = rows[order]
    sizes = np.bincount(rows, minlength=number)
    place = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[sorted_rows]
    uniform = np.empty(len(rows))
    uniform[order] = (place + rng.random(number)[sorted_rows]) / sizes[sorted_rows]
    return uniform


def _by_search(cumulative: Floats, rows: Ints, uniform: Floats) -> Ints:
    """All rows laid end to end, row j between j and j + 1: one sorted search."""
    ends = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    found = np.searchsorted(ends, uniform + rows, side="right") - rows * cumulative.shape[1]
    return np.asarray(np.clip(found, 0, cumulative.shape[1] - 1))
