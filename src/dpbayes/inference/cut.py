"""Non-negative estimates that agree: every margin of every table is the table of that margin.

Tables are settled from small to large. A table starts from the posterior means of its cells under the learned prior
and is then raked to its settled margins; a larger table never changes a smaller one, so margins stay unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.mixture import Cells, common_law, own_law
from dpbayes.inference.raking import FLOOR, Margins, fitted, moved, tolerance
from dpbayes.inference.residuals import Axes, subsets

TRUST = 0.95
"""Prior probability that a public guess is a better shape than what the margins say (docs/explanation/estimate.md)."""

MIXES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
"""Where margins of a table of three axes or more contradict each other, they are mixed with independence so far."""


@dataclass(slots=True, kw_only=True, eq=False)
class Settled:
    """Agreeing tables of counts and of population levels, and the prior that each table was drawn to."""

    counts: dict[Axes, Floats] = field(default_factory=dict)
    levels: dict[Axes, Floats] = field(default_factory=dict)
    """N times the share of the population."""
    cells: dict[Axes, Cells] = field(default_factory=dict)
    laws: dict[Axes, Floats] = field(default_factory=dict)


def settled(law: LinearLaw, guesses: Mapping[Axes, Floats], most: int | None = None) -> Settled:
    """Estimates of all tables that the law determines, or of those with at most so many axes, from small to large."""
    found = Settled()
    tables = [axes for axes in law.tables if not law.missing(axes)]
    total = np.array(max(float(law.mean(())), 0.0)) if () in law.residuals else None
    if total is None:
        return found
    found.counts[()] = found.levels[()] = total
    largest = max((len(axes) for axes in tables), default=0)
    for order in range(1, (largest if most is None else min(most, largest)) + 1):
        _settle_order(found, law, [axes for axes in tables if len(axes) == order], guesses)
    return found


def _settle_order(found: Settled, law: LinearLaw, tables: list[Axes], guesses: Mapping[Axes, Floats]) -> None:
    """All tables of one order: learn their common law, then each one's own, and rake to the margins."""
    most = float(found.counts[()])
    open_cells = {axes: ~law.zeros[axes].ravel() if axes in law.zeros else None for axes in tables}
    for axes in tables:
        found.cells[axes] = _cells(law, axes, _shape(found.counts, axes, law, None), open_cells[axes], most)
    common = common_law([found.cells[axes] for axes in tables])
    counts, levels = {}, {}
    for axes in tables:
        found.laws[axes] = own_law(found.cells[axes], common)
        mean, variance, level = found.cells[axes].moments(found.laws[axes])
        if axes in guesses:
            guided = _cells(law, axes, _shape(found.counts, axes, law, guesses[axes]), open_cells[axes], most)
            guided_law = own_law(guided, common)
            odds = guided.log_evidence(guided_law) - found.cells[axes].log_evidence(found.laws[axes])
            trust = 1 / (1 + (1 - TRUST) / TRUST * np.exp(-np.clip(odds, -500, 500)))
            other = guided.moments(guided_law)
            spread = trust * (1 - trust) * (mean - other[0]) ** 2
            mean, variance, level = (
                (1 - trust) * own + trust * new for own, new in zip((mean, variance, level), other, strict=True)
            )
            variance = variance + spread
            if trust > 0.5:
                found.cells[axes], found.laws[axes] = guided, guided_law
        shape = [law.sizes[name] for name in axes]
        floor = np.maximum(_filled(found.cells[axes].shape, open_cells[axes]), 1e-12).reshape(shape) * FLOOR
        floor = np.minimum(floor, np.minimum(np.sqrt(law.variance(axes)), 1e-3))
        floor = np.where(law.zeros.get(axes, False), 0.0, floor)
        start, doubt, level = (_filled(part, open_cells[axes]).reshape(shape) for part in (mean, variance, level))
        start = np.maximum(start, floor)
        raked = moved(start, doubt, axes, _margins(found.counts, axes))
        counts[axes] = np.maximum(raked, 0.05 * start)
        levels[axes] = np.maximum(level, floor)
    _agree(found.counts, counts)
    _agree(found.levels, levels)


def _cells(law: LinearLaw, axes: Axes, shape: Floats, kept: NDArray[np.bool_] | None, most: float) -> Cells:
    parts = (shape.ravel(), law.mean(axes).ravel(), law.variance(axes).ravel())
    cells, center, variance = (part if kept is None else part[kept] for part in parts)
    return Cells.of(cells, center, variance, most)


def _filled(values: Floats, kept: NDArray[np.bool_] | None) -> Floats:
    """Structural zeros put back."""
    if kept is None:
        return values
    table = np.zeros(kept.size)
    table[kept] = values
    return table


def _margins(tables: Mapping[Axes, Floats], axes: Axes) -> Margins:
    """The settled margins of a table with one axis less."""
    return [(kept, tables[kept]) for kept in combinations(axes, len(axes) - 1)]


def _shape(tables: Mapping[Axes, Floats], axes: Axes, law: LinearLaw, guess: Floats | None) -> Floats:
    """What the margins suggest: even, independent, or ones fitted to them; or a guess fitted to them."""
    size = [law.sizes[name] for name in axes]
    start = np.ones(size) if guess is None else guess * float(tables[()]) / guess.sum()
    if axes in law.zeros:
        start = np.where(law.zeros[axes], 0.0, start)
    margins = [(kept, np.maximum(target, 1e-9)) for kept, target in _margins(tables, axes)]
    return fitted(start, axes, margins, sweeps=20)[0]  # where tables start need not be exact


def _agree(settled_tables: dict[Axes, Floats], starts: dict[Axes, Floats], passes: int = 12) -> None:
    """Rake all tables of one order to their margins, which give way a little where they contradict each other.

    Margins of a table of three axes or more may contradict each other, as no table may have them all. Then the table
    takes the nearest margins that it can have, and all that share them are raked again, until none has to give way.
    After so many ``passes`` all are mixed.
    """
    close = tolerance(settled_tables[()])
    settled_tables.update(starts)
    for mix in (0.0, *MIXES):
        if mix:
            _mix(settled_tables, mix)
        for attempt in range(passes):
            failed = False
            for axes in sorted(settled_tables if attempt or mix else starts, key=len):
                if axes in starts or len(axes) > 2:
                    table, gap = fitted(settled_tables[axes], axes, _margins(settled_tables, axes))
                    settled_tables[axes] = table
                    if gap > close:
                        failed = True
                        _give_way(settled_tables, axes)
            if not failed:
                return


def _give_way(settled_tables: dict[Axes, Floats], axes: Axes) -> None:
    """The margins of a table become those that it can have; one-way margins stay, if it has more than two axes."""
    kept = [((name,), settled_tables[(name,)]) for name in axes] if len(axes) > 2 else [((), settled_tables[()])]
    near, _ = fitted(settled_tables[axes], axes, kept)
    for part in subsets(axes):
        if len(part) > (1 if len(axes) > 2 else 0):
            settled_tables[part] = near.sum(axis=tuple(place for place, name in enumerate(axes) if name not in part))


def _mix(settled_tables: dict[Axes, Floats], share: float) -> None:
    """All tables of two axes or more, mixed with the product of their one-way margins: agreement is kept."""
    total = max(float(settled_tables[()]), 1e-300)
    for axes, table in settled_tables.items():
        if len(axes) > 1:
            product = reduce(np.multiply.outer, [settled_tables[(name,)] / total for name in axes])
            settled_tables[axes] = (1 - share) * table + share * total * product
