"""Tables of n records whose cells have independent laws, given that they add up: listed for two cells, else drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.sampler import ClosedSum, Line

Logs = Callable[[Ints], Floats]
"""The logarithm of a law of one count, up to a constant."""

DRAWS = 4800
"""Draws of a table, fewer where it has more than a hundred cells."""

LISTED = 200_000
"""Up to this many tables of two cells are listed, and nothing is drawn."""

MANY = 1000
"""Beyond this many cells their draws need not add up to n: a cell's law is off by about one part in d."""

DEPTH = 45.0
"""Weights below e^−45 of the largest are left out: 2⁻⁶⁵, far below the rounding of a sum of doubles."""


def product_law(
    logs: Sequence[Logs], total: int, near: Sequence[Ints], rng: np.random.Generator
) -> tuple[Ints, Floats, float]:
    """Tables c, Σc = n, of the law ∝ Π_i e^{l_i(c_i)}, their probabilities, and ln of the sum of all products.

    Tables of two cells are listed, others drawn.

    All cells but one are drawn independently; the last closes the sum and is accepted by its own factor, which is
    exact. The symbols: l logs, n total.
    """
    low, high = _windows(logs, total, near)
    if len(logs) == 2 and high[0] - low[0] < LISTED:
        first = np.arange(low[0], high[0] + 1)
        tables = np.column_stack([first, total - first])
        values = logs[0](tables[:, 0]) + logs[1](tables[:, 1])
        return tables, candidates.shares(values), float(np.logaddexp.reduce(values))
    lines = []
    for log, bottom, top, hint in zip(logs, low, high, near, strict=True):
        values = log(np.arange(bottom, top + 1))
        kept = _kept(values)
        lines.append(Line(values[kept[0] : kept[-1] + 1], int(bottom + kept[0]), int(hint[0])))
    number = int(np.clip(500_000 // len(logs), 200, DRAWS))
    if len(logs) > MANY:
        tables, mass = np.column_stack([line.draw(number, rng) for line in lines]), float("nan")
    else:
        law = ClosedSum(lines, total, int(np.argmax([line.moments()[1] for line in lines])))
        tables, rate = closed_draws(law, number, rng)
        mass = law.log_mass + float(np.log(rate))
    return tables, np.full(number, 1.0 / number), mass


def closed_draws(law: ClosedSum, number: int, rng: np.random.Generator) -> tuple[Ints, float]:
    """So many accepted tables, one per row, and the share of proposals that was accepted."""
    found: list[Ints] = []
    missing = number
    proposed = accepted = 0
    while missing > 0:
        tables, alive = law.propose(2 * number, rng)
        proposed, accepted = proposed + 2 * number, accepted + int(alive.sum())
        found.append(tables[alive][:missing])
        missing -= len(found[-1])
    return np.concatenate(found), accepted / proposed


def hints(seen: Sequence[Floats], prior: Sequence[float], total: int) -> list[Ints]:
    """Counts near which the law of each cell may be: what was released, what the prior expects, and the ends."""
    expected = np.asarray(prior) / np.sum(prior) * total
    rows = [np.clip(np.rint(each), 0, total).astype(np.int64) for each in (*seen, expected)]
    return [np.array([*column, 0, total]) for column in np.column_stack(rows)]


def _kept(values: Floats) -> Ints:
    """Where a logarithm can be told from that of zero."""
    kept = np.flatnonzero(values > values.max() - DEPTH)
    if not kept.size:
        raise InvalidArgument("Reading: no table of this size could have led to these released parameters.")
    return kept


def _windows(logs: Sequence[Logs], total: int, near: Sequence[Ints]) -> tuple[Ints, Ints]:
    """For each cell the counts whose weight can be told from zero; never too few, perhaps some too many."""
    steps = np.unique(np.append(np.geomspace(1, max(total, 2), 120).astype(np.int64), 0))
    low, high = np.zeros(len(logs), np.int64), np.zeros(len(logs), np.int64)
    for cell, (log, hint) in enumerate(zip(logs, near, strict=True)):
        grid = np.unique(np.clip(np.add.outer(hint, np.append(-steps, steps)).ravel(), 0, total))
        values = log(grid)
        kept = _kept(values)
        low[cell], high[cell] = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, grid.size - 1)]
    return np.maximum(low, total - (high.sum() - high)), np.minimum(high, total - (low.sum() - low))
