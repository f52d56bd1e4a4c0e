"""Tables that meet given margins: non-negative, and as near as can be to where they started."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.inference.residuals import Axes

CLOSE = 1e-7
"""Margins are met up to this many records, or up to rounding if there are very many."""

QUICK = 30
"""Sweeps after which a two-way table without zeros is finished in one step."""

FLOOR = 1e-3
"""No cell starts below this share of what its margins suggest, so that the margins can be met."""

Margins = Sequence[tuple[Axes, Floats]]


def _lacking(axes: Axes, margin: Axes) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(axes) if name not in margin)


def tolerance(margin: Floats) -> float:
    """How far the margins of agreeing tables may be apart, in records."""
    return max(CLOSE, 1e-13 * float(margin.sum()))


def moved(table: Floats, doubt: Floats, axes: Axes, margins: Margins, sweeps: int = 5) -> Floats:
    """What a margin lacks is shared out in proportion to the variances of its cells: the mean given the sum."""
    for _ in range(sweeps):
        for margin, target in margins:
            lacking = _lacking(axes, margin)
            whole = doubt.sum(axis=lacking, keepdims=True)
            gap = target.reshape(whole.shape) - table.sum(axis=lacking, keepdims=True)
            table = table + doubt * np.where(whole > 0, gap / np.where(whole > 0, whole, 1.0), 0.0)
    return table


def fitted(table: Floats, axes: Axes, margins: Margins, sweeps: int = 400) -> tuple[Floats, float]:
    """Proportional fitting to all margins in turn, and the largest gap that is left, in records; a dozen sweeps do."""
    largest = 0.0
    close = tolerance(margins[0][1])
    rounding = table.ndim == 2 and bool((table > 0).all()) and all(len(margin) == 1 for margin, _ in margins)
    for _ in range(min(sweeps, QUICK) if rounding else sweeps):
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
        return _rounded(table, rows, columns)
    return table, largest


def _rounded(table: Floats, rows: Floats, columns: Floats) -> tuple[Floats, float]:
    """A two-way table with exactly these margins: cells are lowered to fit, what is then lacking is spread evenly."""
    table = table * np.minimum(1.0, rows / np.maximum(table.sum(axis=1), 1e-300))[:, None]
    table = table * np.minimum(1.0, columns / np.maximum(table.sum(axis=0), 1e-300))
    lack, other = rows - table.sum(axis=1), columns - table.sum(axis=0)
    if lack.sum() > 0:
        table = table + np.outer(np.maximum(lack, 0.0), np.maximum(other, 0.0)) / max(float(other.sum()), 1e-300)
    gaps = np.abs(rows - table.sum(axis=1)).max(), np.abs(columns - table.sum(axis=0)).max()
    return table, float(max(gaps))
