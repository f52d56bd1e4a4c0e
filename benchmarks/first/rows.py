"""The noise-aware posterior of the rows of a released conditional table: class × value, parents × child.

Each row is shrunk towards what the rows share, not towards an even distribution:

    row_j ~ Dirichlet(A·m),   c_j ~ Multinomial(n_j, row_j),   x_jk ~ noise around c_jk

with m the estimated distribution of the column totals and A averaged over its posterior. Row totals n_j are public,
or themselves estimated from the released rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.first import inputs
from benchmarks.first.noise import Noise
from benchmarks.first.result import Estimate, Interval
from benchmarks.first.row_posterior import RowPosterior
from benchmarks.first.strength import typical
from benchmarks.first.table import count_moments, estimate
from dpbayes.errors import InvalidArgument

OWNER = "estimate_rows"


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
        shape: A public guess at what the rows share, one share per column. It is the prior of what the rows
            turn out to share, and a wrong one is outvoted.
        level: Of the credible intervals; None leaves them out, which is many times faster.

    >>> from benchmarks.first.noise import GaussianNoise
    >>> found = estimate_rows([[41, 3], [38, 1], [0, 2]], GaussianNoise(sigma=3.0), total=85)
    >>> found.population.round(2).tolist()
    [[0.96, 0.04], [0.97, 0.03], [0.9, 0.1]]
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
    pooled = estimate(
        table.sum(axis=0),
        noise.pooled(0, table.shape),
        records=None if whole is None else int(whole),
        shape=None if shape is None else inputs.prior_shape(OWNER, shape, table.shape[1:]),
        level=None,
    )
    shares, certainty = pooled.population, pooled.strength * table.shape[1]
    rows = RowPosterior(
        values=noise.readable(table),
        noise=noise,
        totals=totals,
        doubt=np.sqrt(variances),
        shares=shares,
        certainty=certainty,
    )
    found = rows.settings()
    result = rows.answers(found, level)

    population = result["population"] / result["population"].sum(axis=1, keepdims=True)
    seen = result["empirical"].sum(axis=1, keepdims=True)
    return Estimate(
        counts=result["counts"],
        empirical=np.where(seen > 0, result["empirical"] / np.where(seen > 0, seen, 1.0), population),
        population=population,
        records=totals,
        strength=typical(found).strength / shares.size,
        level=level,
        counts_interval=Interval.named("counts", result, whole=True),
        empirical_interval=Interval.named("empirical", result),
        population_interval=Interval.named("population", result),
        notes=(
            "The records of each row are public."
            if public is not None
            else "The records of each row were estimated from the release.",
            "Rows were drawn towards their common distribution, itself estimated.",
            *pooled.notes[1:],
        ),
    )
