"""The noise-aware posterior of the rows of a released conditional table: class × value, parents × child.

Each row is shrunk towards what the rows share, not towards an even distribution:

    row_j ~ Dirichlet(A·m),   c_j ~ Multinomial(n_j, row_j),   x_jk ~ noise around c_jk

with m the estimated distribution of the column totals and A averaged over its posterior. Row totals n_j are public,
or themselves estimated from the released rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpbayes._checks import Floats, Ints
from dpbayes.errors import InvalidArgument
from dpbayes.estimate import inputs
from dpbayes.estimate.cells import CellPosterior, cell_posterior, conditioned
from dpbayes.estimate.lattice import representatives
from dpbayes.estimate.mixture import Answer, Component, answer
from dpbayes.estimate.noise import Noise
from dpbayes.estimate.result import Estimate, Interval
from dpbayes.estimate.strength import Setting, settings, typical
from dpbayes.estimate.table import count_moments, estimate

OWNER = "estimate_rows"

BLOCK = 4096
"""Cells treated at once; longer rows are described by representatives."""

FITTED = 8192
"""The strength of the prior is fitted on so many cells, in the rows with the largest totals."""

AVERAGED = 65536
"""Up to so many cells the answers are averaged over strengths; beyond, the strength is known well enough."""

FORGOTTEN = 3e-3
"""Strengths with less weight are left out of the average."""


def estimate_rows(
    values: ArrayLike,
    noise: Noise,
    *,
    records: ArrayLike | None = None,
    total: int | None = None,
    shape: ArrayLike | None = None,
    level: float | None = 0.95,
) -> Estimate:
    """Counts, shares within rows, and shares of the rows' populations, with intervals.

    E[row_jk] = (E[c_jk] + A m_k)/(n_j + A)
    Symbols: c counts, n records of the row, m shape, A strength, averaged over its posterior.
    Source: docs/explanation/estimate.md, rows.
    Adjacency: none, this is post-processing.

    Args:
        values: The released numbers, rows × cells.
        noise: How they came about.
        records: Public totals of the rows, or None to estimate them.
        total: The public number of records of the whole table, if only that is public.
        shape: A public guess at what the rows share, one share per column; estimated from the release by default.
        level: Of the credible intervals; None leaves them out, which is many times faster.

    >>> from dpbayes.estimate.noise import GaussianNoise
    >>> found = estimate_rows([[41, 3], [38, 1], [0, 2]], GaussianNoise(sigma=3.0), total=85)
    >>> found.population.round(2).tolist()
    [[0.93, 0.07], [0.96, 0.04], [0.92, 0.08]]
    """
    table = inputs.released_values(OWNER, values, noise)
    if table.ndim != 2:
        raise InvalidArgument(f"{OWNER}: expected rows × cells, got {table.ndim} dimensions.")
    inputs.interval_level(OWNER, level)
    whole = inputs.record_number(OWNER, total)
    public = None if records is None else inputs.row_records(OWNER, records, table.shape[0])
    table, noise = inputs.unnormalised(OWNER, table, noise, public)
    if public is None:
        totals, variances = count_moments(table.sum(axis=1), noise.pooled(1, table.shape), whole)
    else:
        totals, variances, whole = public, np.zeros(public.size), float(public.sum())
    if shape is None:
        whole_records = None if whole is None else int(whole)
        pooled = estimate(table.sum(axis=0), noise.pooled(0, table.shape), records=whole_records, level=None)
        shares, certainty = pooled.population, pooled.strength * table.shape[1]
    else:
        shares, certainty = inputs.prior_shape(OWNER, shape, table.shape[1:]), math.inf
    rows = _Rows(
        values=noise.readable(table),
        noise=noise,
        totals=totals,
        doubt=np.sqrt(variances),
        shares=shares,
        certainty=certainty,
    )
    found = rows.settings()
    result = rows.answers(found if table.size <= AVERAGED else [typical(found)], level)

    seen = result["empirical"].sum(axis=1, keepdims=True)
    return Estimate(
        counts=result["counts"],
        empirical=np.where(seen > 0, result["empirical"] / np.where(seen > 0, seen, 1.0), result["population"]),
        population=result["population"] / result["population"].sum(axis=1, keepdims=True),
        records=totals,
        strength=typical(found).strength / shares.size,
        level=level,
        counts_interval=Interval.named("counts", result),
        empirical_interval=Interval.named("empirical", result),
        population_interval=Interval.named("population", result),
        notes=(
            "The records of each row are public."
            if public is not None
            else "The records of each row were estimated from the release.",
            "Rows were drawn towards the given shape."
            if shape is not None
            else "Rows were drawn towards their common distribution, itself estimated.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Some rows of a table: all their cells, or representatives of the cells of one long row."""

    values: Floats
    noise: Noise
    shares: Floats
    copies: Floats
    totals: Floats
    doubt: Floats
    spread: Callable[[Answer], dict[str, Floats]]

    def posterior(self, strength: Floats, totals: Floats) -> CellPosterior:
        return cell_posterior(
            self.noise, self.values, strength=strength[:, None] * self.shares, totals=totals, copies=self.copies
        )

    def component(self, setting: int, strength: Floats, totals: Floats, weight: float, in_intervals: float) -> Component:
        return Component(
            setting=setting,
            cells=conditioned(self.posterior(strength, totals), totals, self.copies),
            strength=strength,
            totals=totals,
            weight=weight,
            interval_weight=in_intervals,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A conditional table, what is known of its row totals, and what its rows share."""

    values: Floats
    noise: Noise
    totals: Floats
    doubt: Floats
    """Standard deviations of the row totals; zero where they are public."""
    shares: Floats
    certainty: float
    """The records that the prior of the shares is worth; infinite if they were given."""

    def information(self, strength: float) -> Floats:
        """n′A/(n′ + A): the records that each row is worth as a witness of what the rows share.

        n′ = n/(1 + dν/(n(1 − Σm²))) is what is left of n records under noise of variance ν.
        Symbols: n totals, A strength, m shares, d columns.
        Source: docs/explanation/estimate.md, rows.
        Adjacency: none, this is post-processing.
        """
        noise = np.mean(self.noise.spread(self.totals[:, None] * self.shares) ** 2, axis=1) * self.shares.size
        uneven = max(1 - float(self.shares @ self.shares), 1e-9)
        left = self.totals**2 / np.maximum(self.totals + noise / uneven, 1e-300)
        return left * strength / (left + strength)

    def settings(self) -> list[Setting]:
        """Strengths of the prior that the release leaves possible.

        The shape m was estimated from the same rows. Its uncertainty enters by Laplace's method: ln P(x | A) loses
        ½(d − 1) ln(1 + M/A₀), with M the rows' information on m and A₀ the certainty of its prior.
        """
        fitted = np.sort(np.argsort(-self.totals, kind="stable")[: max(FITTED // self.shares.size, 1)])
        blocks = [self.block(rows) for rows in self.parts(fitted)]

        def log_evidence(strength: float, _: float) -> float:
            information = float(self.information(strength)[fitted].sum())
            return sum(
                float(block.posterior(np.full(block.totals.size, strength), block.totals).log_evidence.sum())
                for block in blocks
            ) - 0.5 * (self.shares.size - 1) * math.log1p(information / self.certainty)

        return settings(log_evidence, cells=self.shares.size, records=0.0)

    def predictive(self, strength: float) -> Floats:
        """A′ of every row: 1/A′ = 1/A + 1/(A₀ + Σ of the other rows' information), for intervals."""
        information = self.information(strength)
        others = np.maximum(information.sum() - information, 0.0) + self.certainty
        return 1 / (1 / strength + 1 / others)

    def answers(self, found: list[Setting], level: float | None) -> dict[str, Floats]:
        """Answers for all rows, block by block."""
        answers: dict[str, Floats] = {}
        predictive = [self.predictive(setting.strength) for setting in found]
        for rows in self.parts(np.arange(self.totals.size)):
            block = self.block(rows)
            components = [
                block.component(index, np.full(rows.size, setting.strength), block.totals, setting.weight, 0.0)
                for index, setting in enumerate(found)
                if setting.weight > FORGOTTEN
            ]
            if level is not None:
                components += [
                    block.component(index, predictive[index][rows], totals, 0.0, share * setting.interval_weight)
                    for totals, share in _possible(block.totals, block.doubt)
                    for index, setting in enumerate(found)
                    if setting.interval_weight > FORGOTTEN
                ]
            for name, part in block.spread(answer(components, block.shares, level)).items():
                answers.setdefault(name, np.empty(self.values.shape))[rows] = part
        return answers

    def parts(self, rows: Ints) -> list[Ints]:
        """The given rows, a few at a time."""
        size = max(BLOCK // self.shares.size, 1)
        return [rows[start : start + size] for start in range(0, rows.size, size)]

    def block(self, rows: Ints) -> _Block:
        noise = self.noise.take((rows,), self.values.shape)
        if self.shares.size <= BLOCK:
            return _Block(
                values=self.values[rows],
                noise=noise,
                shares=self.shares[None],
                copies=np.ones((1, self.shares.size)),
                totals=self.totals[rows],
                doubt=self.doubt[rows],
                spread=Answer.arrays,
            )
        cells = representatives(self.values[rows[0]], self.shares, noise.reshaped((-1,)))
        return _Block(
            values=cells.values[None],
            noise=cells.noise,
            shares=cells.shares[None],
            copies=cells.copies[None],
            totals=self.totals[rows],
            doubt=self.doubt[rows],
            spread=lambda part: part.spread(cells),
        )


def _possible(totals: Floats, doubt: Floats) -> list[tuple[Floats, float]]:
    """Three totals with the given means and standard deviations, and their weights; one if there is no doubt."""
    if not doubt.any():
        return [(totals, 1.0)]
    step = math.sqrt(3) * doubt
    return [(totals, 2 / 3), (np.maximum(totals - step, 0.0), 1 / 6), (totals + step, 1 / 6)]
