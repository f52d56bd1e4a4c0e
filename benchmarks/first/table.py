"""The noise-aware posterior of one released table."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.first import inputs
from benchmarks.first.cells import cell_posterior, conditioned
from benchmarks.first.lattice import Representatives, representatives
from benchmarks.first.laws import CellPosterior
from benchmarks.first.mixture import Answer, Component, answer
from benchmarks.first.noise import Noise
from benchmarks.first.result import Estimate, Interval
from benchmarks.first.strength import Setting, settings, typical
from dpbayes._checks import Floats

OWNER = "estimate"

TRUST = 0.95
"""Prior probability that a given shape is a better guide than the even one."""


def estimate(
    values: ArrayLike,
    noise: Noise,
    *,
    records: int | None = None,
    shape: ArrayLike | None = None,
    level: float | None = 0.95,
) -> Estimate:
    """Counts, shares of the records and shares of the population behind one released table, with intervals.

    p ~ Dirichlet(A·m),   c ~ Multinomial(N, p),   x_k ~ noise around c_k
    Symbols: x values, N records, m shape, A strength, averaged over its posterior. A given shape competes with the even
    one, and the answer is averaged over both: a wrong guess is outvoted by the release.
    Source: docs/explanation/estimate.md.
    Adjacency: none, this is post-processing. ``records`` is None where the unit keeps the number of records private.

    Args:
        values: The released numbers, in any shape.
        noise: How they came about.
        records: The public number of records, or None to estimate it along.
        shape: A public guess at the distribution, for the cells of ``values``; even by default.
        level: Of the credible intervals; None leaves them out.

    >>> from benchmarks.first.noise import GaussianNoise
    >>> found = estimate([41, 3, -2, 58], GaussianNoise(sigma=3.0), records=100)
    >>> found.counts.round(1).tolist(), found.records
    ([40.3, 1.7, 0.6, 57.4], 100.0)
    """
    table = inputs.released_values(OWNER, values, noise)
    shares = inputs.prior_shape(OWNER, shape, table.shape).ravel()
    total = inputs.record_number(OWNER, records)
    inputs.interval_level(OWNER, level)
    flat, noise = inputs.unnormalised(OWNER, table.ravel(), noise.take((...,), table.shape).reshaped((-1,)), total)
    cells = representatives(noise.readable(flat), shares, noise)
    found = _settings(cells, total)
    result = {name: part.reshape(table.shape) for name, part in _answer(cells, found, level).spread(cells).items()}
    middle = typical(found)
    guided = sum(setting.weight for setting in found if setting.shape == 0)
    population = result["population"] / result["population"].sum()
    seen = result["empirical"].sum()
    return Estimate(
        counts=result["counts"],
        empirical=result["empirical"] / seen if seen > 0 else population,
        population=population,
        records=middle.records if total is None else total,
        strength=middle.strength / table.size,
        level=level,
        counts_interval=Interval.named("counts", result, whole=True),
        empirical_interval=Interval.named("empirical", result),
        population_interval=Interval.named("population", result),
        notes=(
            "The number of records is public."
            if total is not None
            else "The number of records was estimated from the release.",
            f"The prior has the given shape with probability {guided:.3f}, else it is even."
            if shape is not None
            else "The prior was even.",
        ),
    )


def count_moments(values: Floats, noise: Noise, records: float | None) -> tuple[Floats, Floats]:
    """Posterior means and variances of the counts of a flat table."""
    cells = representatives(noise.readable(values), np.full(values.size, 1 / values.size), noise)
    result = _answer(cells, _settings(cells, records), None)
    return cells.spread(result.counts[0]), cells.spread(result.variance[0])


def _settings(cells: Representatives, records: float | None) -> list[Setting]:
    """Strengths of the prior, and numbers of records, that the release leaves possible."""
    center = cells.noise.center(cells.values)
    variance = cells.noise.spread(np.maximum(center, 0.0)) ** 2

    def log_evidence(shares: Floats, trust: float) -> Callable[[float, float], float]:
        return lambda strength, total: (
            float(_posterior(cells, strength * shares, total).log_evidence[0]) + math.log(trust)
        )

    return settings(
        [log_evidence(shares, trust) for shares, trust in _shapes(cells)],
        cells=cells.corners.shape[1],
        records=records,
        guess=(float(cells.copies @ center), math.sqrt(float(cells.copies @ variance))),
    )


def _shapes(cells: Representatives) -> list[tuple[Floats, float]]:
    """The shape that was given and the even one, with their prior probabilities; one of them if they are the same."""
    even = np.full_like(cells.shares, 1 / cells.corners.shape[1])
    return [(even, 1.0)] if np.allclose(cells.shares, even) else [(cells.shares, TRUST), (even, 1 - TRUST)]


def _posterior(cells: Representatives, strength: Floats, total: float) -> CellPosterior:
    return cell_posterior(
        cells.noise,
        cells.values[None],
        strength=strength[None],
        totals=np.array([total]),
        copies=cells.copies[None],
    )


def _answer(cells: Representatives, found: list[Setting], level: float | None) -> Answer:
    priors = [(setting.shape, setting.strength) for setting in found]
    shapes = [shares for shares, _ in _shapes(cells)]
    components = [
        Component(
            cells=conditioned(
                _posterior(cells, setting.strength * shapes[setting.shape], setting.records),
                np.array([setting.records]),
                cells.copies[None],
            ),
            shares=shapes[setting.shape][None],
            setting=priors.index((setting.shape, setting.strength)),
            strength=np.array([setting.strength]),
            totals=np.array([setting.records]),
            weight=setting.weight,
            interval_weight=setting.interval_weight,
        )
        for setting in found
    ]
    return answer(components, level)
