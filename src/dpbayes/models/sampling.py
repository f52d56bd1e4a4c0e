"""Draw many values at once, each from the row that its parents name."""

from __future__ import annotations

import numpy as np

from dpbayes._checks import Floats, Ints

BLOCK = 2**14
"""Values that are found together: few enough for a processor to have all numbers at hand."""


def pick(shares: Floats, rows: Ints, rng: np.random.Generator, *, even: bool = False) -> Ints:
    """One value for each entry of ``rows``, by inversion of that row's cumulative shares.

    ``even`` spreads the values of each row over its shares instead of drawing them independently: every value alone has
    the same law, but each cell comes out within one of its expectation. They come from a stream of their own: whoever
    samples them with a generator of the same seed would otherwise pick the same strata again.

    Values are found many at a time, by halving what is left of their rows: one comparison for every power of two
    that a row is long.

    >>> import numpy as np
    >>> pick(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1]), np.random.default_rng(0)).tolist()
    [0, 1, 1]
    """
    uniform = _even(rows, len(shares), rng.spawn(1)[0]) if even else rng.random(len(rows))
    width = shares.shape[1]
    ends = np.full((len(shares), 1 << (width - 1).bit_length()), np.inf)
    np.cumsum(shares, axis=1, out=ends[:, :width])
    ends[:, :width] /= ends[:, [width - 1]]
    ends[:, width - 1] = np.inf  # whatever rounding does, no value lies beyond
    found = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        found[part] = _searched(ends, rows[part], uniform[part])
    return found


def _searched(ends: Floats, rows: Ints, uniform: Floats) -> Ints:
    """How many ends of its row each number has passed; rows are as long as a power of two."""
    flat, first = ends.ravel(), rows * ends.shape[1]
    found, step = first.copy(), ends.shape[1] // 2
    while step:
        found += step * (flat[found + (step - 1)] <= uniform)
        step //= 2
    return np.asarray(found - first)


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
