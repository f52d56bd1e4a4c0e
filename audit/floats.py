"""Floating-point gammas: how many values the sampler can reach in one cell of the published grid, and who can be told.

numpy draws a gamma of shape a as b·V³, b = a − ⅓, with V = 1 + cX a double. So its values lie on a lattice that
depends on the shape. Where cells of the grid hold few lattice points, the published value says which shape made it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from audit.bounds import distinguish
from audit.products import UnverifiedError, claim, difference, pairs, published
from audit.result import Effort, Row, from_evidence, number
from dpbayes import ApproxDP, Curator, Dirichlet, Tables
from dpbayes.base.errors import DpbayesError

AREA = "floats"
ENOUGH = 2**20
"""Reachable values per cell of the grid, docs/explanation/numerics.md."""

OTHERS = 30
"""Further records in every cell."""

MOST = 64
"""Beyond this many lattice points in a cell their number tells next to nothing."""

Floats = NDArray[np.float64]


def run(effort: Effort) -> list[Row]:
    """Both questions, for numbers of records declared up to 10¹²."""
    declared = (10**3, 10**6, 10**7, 10**8, 10**9, 10**10, 10**12) if effort.thorough else (10**3, 10**6, 10**9)
    return [row for records in declared for row in _attacked(effort, records)]


def steps(values: Floats) -> Floats:
    """The grid that each published value lies on, read off the values: the lowest binary digit that is used.

    Values of one size share a grid, so the lowest digit of all of them is it.
    """
    fractions, exponents = np.frexp(values)
    digits = np.ldexp(fractions, 53).astype(np.int64)
    lowest = np.ldexp((digits & -digits).astype(np.float64), exponents - 53)
    found = np.empty_like(values)
    for exponent in np.unique(exponents):
        alike = exponents == exponent
        found[alike] = lowest[alike].min()
    return found


def lattice_points(values: Floats, grid: Floats, shape: float) -> Floats:
    """How many values of the sampler round to each published value: by going through them as the sampler does."""
    base = shape - 1.0 / 3.0
    start = np.cbrt(values / base)
    reach = int(np.ceil(np.max(grid) / (3.0 * base * 2.0**-53))) + 4
    found = np.zeros(values.shape)
    step = np.where(start >= 1.0, 2.0**-52, 2.0**-53)
    for j in range(-reach, reach + 1):
        v = np.rint(start / step) * step + j * step
        found += np.rint(base * (v * v * v) / grid) == values / grid
    return found


def points_per_cell(values: Floats, grid: Floats) -> float:
    """The fewest that round to any value: above its shape, where V has the spacing 2⁻⁵²."""
    return float(np.min(grid / (3.0 * values * 2.0**-52)))


def _attacked(effort: Effort, records: int) -> list[Row]:
    number_of_pairs = min(effort.pairs, 2_000)
    schema, table = pairs(number_of_pairs, others=OTHERS)
    target = ApproxDP(epsilon=1.0, delta=1e-6)
    asked = Tables("cell", mechanism="dirichlet")
    names = [f"{what} ({records:.0e} records declared)" for what in ("values per cell of the grid", "which cell")]
    try:
        release = published(Curator(table, replace(schema, records_guess=records)), asked, target)
    except DpbayesError:
        return [Row(area=AREA, attack=name, claim="safe or refused", measured="refused", holds=True) for name in names]
    except UnverifiedError:
        seen = "verification fails"
        return [Row(area=AREA, attack=names[0], claim=f"≥ {ENOUGH:,}", measured=seen, holds=False)]
    [found] = release.tables
    cells, made = found.values, release.paid[0].mechanism
    first, second = cells[: 2 * number_of_pairs].reshape(-1, 2).T
    if isinstance(made, Dirichlet):
        scores, reached = _loss(made, first, second), points_per_cell(cells, steps(cells))
    else:
        scores, reached = difference(first, second), np.inf
    middle = number_of_pairs // 2
    evidence = distinguish(scores[:middle], scores[middle:], [claim(target)])
    return [
        Row(
            area=AREA,
            attack=names[0],
            claim=f"≥ {ENOUGH:,}",
            measured=number(reached),
            holds=reached >= ENOUGH,
        ),
        from_evidence(AREA, names[1], evidence),
    ]


def _loss(made: Dirichlet, first: Floats, second: Floats) -> Floats:
    """The logarithm of how much likelier the first cell holds the record than the second."""
    weight, alpha = made.weight, made.smallest[0]
    scores = weight * (np.log(first) - np.log(second))
    grid = steps(np.stack([first, second]))
    if points_per_cell(np.stack([first, second]), grid) > MOST:
        return scores
    shapes = [weight * count + alpha for count in (OTHERS + 1, OTHERS)]
    for values, cell, sign in ((first, grid[0], 1.0), (second, grid[1], -1.0)):
        with_record, without = (lattice_points(values, cell, shape) for shape in shapes)
        with np.errstate(divide="ignore"):
            scores = scores + sign * np.clip(np.log(with_record) - np.log(without), -1e6, 1e6)
    return scores
