"""Gammas on a public grid: how coarse it must be so that the doubles behind a published value tell nothing.

A sampler in doubles reaches finitely many values, and which ones depends on the shape, hence on the count. A published
value is safe when so many of them round to it that their number hardly differs between shapes. The counts of reachable
values are derived in docs/explanation/proofs/floating-point.md and checked in tests/mechanisms/test_rounding.py.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats

DIGITS = 30
"""A rounded gamma has at most this many binary digits: then 2⁵²⁻³⁰/3 doubles of the sampler round to it, or more."""

STEPS = 6
"""A step lies this many bits below the standard deviation: of the smallest gamma, √α, and of the value itself, √z."""

FINEST = 2.0**-16
"""The grid for concentrations below one, where the logarithm of a gamma tells the count; no grid is finer."""

LARGEST_CONCENTRATION = 2.0**49
"""About 5.6·10¹⁴: beyond it, a value of 30 digits is coarser than a twentieth of the noise."""

LARGEST_WEIGHT = 2.0**32
LARGEST_SHAPE = 2.0**52
"""Counts are cut where r·c + α would exceed this: the shape itself is then rounded by 2⁻²⁵ of the noise at most."""

_LOWEST = -1080
"""Below the exponent of every double."""


def grid_for(concentration: float) -> float:
    """The public grid for a smallest concentration: a power of two, 1/64 to 1/128 of the standard deviation √α.

    >>> grid_for(100.0), grid_for(0.5) == FINEST
    (0.125, True)
    """
    return FINEST if concentration < 1.0 else _power(concentration, STEPS)


def rounded(values: Floats, grid: float) -> Floats:
    """To the nearest multiple of the step at each value, and at least one step of the grid.

    >>> rounded(np.array([0.0, 0.6, 1000.3]), 0.25).tolist()
    [0.25, 0.5, 1000.25]
    """
    step = _steps(grid)[np.frexp(values)[1] - _LOWEST]
    found: Floats = values / step
    np.rint(found, out=found)
    found *= step
    return np.maximum(found, grid, out=found)


@lru_cache(maxsize=16)
def _steps(grid: float) -> Floats:
    """The step for values in [2^(e−1), 2^e), for all exponents e of doubles: a power of two, never below the grid.

    From 1 on it is √z/64 or a little less, so that it keeps up with the noise of large counts, and at least z·2⁻³⁰.
    """
    exponent = np.arange(_LOWEST, 1026)
    own = np.where(exponent < 1, -2000, np.maximum((exponent - 1) // 2 - STEPS, exponent - DIGITS))
    return np.maximum(np.ldexp(1.0, own), grid)


def reachable_values(shape: float, grid: float) -> float:
    """Values of the sampler for each step of a grid: grid·2⁵²/(3·shape), for shapes that are not small

    Symbols: 3·shape·2⁻⁵² is the distance of b·V³ for neighbouring doubles V ≥ 1; below V = 1 it is half of that.
    Source: docs/explanation/proofs/floating-point.md.
    Adjacency: none, this is a property of the sampler.
    """
    return grid * 2.0**52 / (3.0 * shape)


def _power(concentration: float, bits: int) -> float:
    """The power of two ``bits`` below √α, rounded down."""
    exponent = math.frexp(concentration)[1] - 1
    return 2.0 ** (exponent // 2 - bits)
