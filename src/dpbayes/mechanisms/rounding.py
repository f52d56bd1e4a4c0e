"""Gammas on a public grid: how coarse it must be so that the doubles behind a published value tell nothing.

A sampler in doubles reaches finitely many values, and which ones depends on the shape, hence on the count. A published
value is safe when so many of them round to it that their number hardly differs between shapes. The counts of reachable
values are derived in docs/explanation/proofs/floating-point.md and checked in tests/mechanisms/test_rounding.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpbayes._checks import Floats

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

ENOUGH = 2.0**12
"""With fewer reachable values per published one, the loss may be off by more than 0.001: such releases are affected."""

_LOWEST = -1080
"""Below the exponent of every double."""

_OLD_STEPS = 20
"""0.1.0 rounded to a grid this many bits below the smallest standard deviation, at any size of the shapes."""


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


def float_leak(record: Mapping[str, object], *, grid: float | None = None, largest: float = 0.0) -> str | None:
    """What is wrong with the gammas of a ``dirichlet-1`` record, written by 0.1.0; None if nothing is.

    0.1.0 published gammas on a grid that falls behind the sampler's values, which are 3·shape·2⁻⁵² apart. Where fewer
    than ``ENOUGH`` of them share a step of the grid, a value tells which shapes could have made it.
    ``grid`` and the ``largest`` published gamma are known when a file is at hand; a ledger knows the record only.

    >>> float_leak({"mechanism": "dirichlet-1", "weight": 1.0, "concentration": 30.0}) is None
    True
    >>> float_leak({"mechanism": "dirichlet-1", "weight": 2.8e9, "concentration": 2.8e20})[:49]
    'the sampler reaches only 0.044 values per step of'
    """
    if record.get("mechanism") != "dirichlet-1":
        return None
    alphas, used = _old_grid(record, grid)
    points = points_of_first_version(record, grid=grid, largest=largest)
    if points >= ENOUGH:
        return None
    why = f"the sampler reaches only {points:.2g} values per step of the grid {used:g}"
    if points > 4.0:
        short = 2.0 * math.log((points + 1.0) / (points - 1.0))
        return (
            f"{why}, so a published value hints at the counts that made it, and the true ε may be {short:.2g} above "
            "the stated one. Count that, or withdraw the release and make it again with Gaussian noise"
        )
    weight: float = record["weight"]  # type: ignore[assignment]
    delta = leaked_delta(1.0, weight=weight, concentration=min(alphas), points=points)
    return (
        f"{why}, so a published value shows which counts can have made it: at ε=1 the true δ is about {delta:.2g}. It "
        "is not private: withdraw it, and release again with Gaussian noise"
    )


def points_of_first_version(record: Mapping[str, object], *, grid: float | None = None, largest: float = 0.0) -> float:
    """How many values of the sampler share a step of the grid in a ``dirichlet-1`` record, where they are fewest."""
    alphas, used = _old_grid(record, grid)
    return reachable_values(max(*alphas, largest), used)


def _old_grid(record: Mapping[str, object], grid: float | None) -> tuple[list[float], float]:
    alpha = record["concentration"]
    alphas = [float(value) for value in (alpha if isinstance(alpha, list) else [alpha])]  # type: ignore[arg-type]
    return alphas, grid or _power(min(alphas), _OLD_STEPS)


def reachable_values(shape: float, grid: float) -> float:
    """Values of the sampler for each step of a grid: grid·2⁵²/(3·shape), for shapes that are not small

    Symbols: 3·shape·2⁻⁵² is the distance of b·V³ for neighbouring doubles V ≥ 1; below V = 1 it is half of that.
    Source: docs/explanation/proofs/floating-point.md.
    Adjacency: none, this is a property of the sampler.
    """
    return grid * 2.0**52 / (3.0 * shape)


def leaked_delta(epsilon: float, *, weight: float, concentration: float, points: float) -> float:
    """An estimate of the δ of two gammas that differ by one record, when few sampler values share a step.

    The numbers of values in a step under the two shapes, n and n′, are taken as independent, each ``points`` rounded
    down or up at random; the loss is then that of real numbers, nearly Gaussian, plus ln(n/n′) for each of both cells.

    Symbols: ε epsilon; r weight, α concentration, so that the Gaussian has μ² = 2r²/α.
    Source: docs/explanation/proofs/floating-point.md.
    Adjacency: a replaced record.
    """
    excess: dict[float, float] = {}
    for held in (points, 2.0 * points):  # above the centre of the law, and below
        low, high = math.floor(held), math.floor(held) + 1
        chance = {low: high - held, high: held - low}
        for mine, p in chance.items():
            for other, q in chance.items():
                if mine:
                    loss = math.log(mine / other) if other else math.inf
                    excess[loss] = excess.get(loss, 0.0) + 0.5 * p * q * mine / held
    mu = weight * math.sqrt(2.0 / concentration)
    return min(
        sum(p * q * _gaussian_delta(epsilon - one - two, mu) for one, p in excess.items() for two, q in excess.items()),
        1.0,
    )


def _gaussian_delta(epsilon: float, mu: float) -> float:
    if math.isinf(epsilon):
        return 1.0
    from scipy.special import log_ndtr, ndtr

    return float(ndtr(0.5 * mu - epsilon / mu) - np.exp(epsilon + log_ndtr(-0.5 * mu - epsilon / mu)))


def _power(concentration: float, bits: int) -> float:
    """The power of two ``bits`` below √α, rounded down."""
    exponent = math.frexp(concentration)[1] - 1
    return 2.0 ** (exponent // 2 - bits)
