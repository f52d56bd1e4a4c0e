"""Estimates as 0.1.0 made them, each table alone, from one of its files."""

from __future__ import annotations

import numpy as np

from benchmarks.first.noise import GammaNoise, GaussianNoise
from benchmarks.first.result import Interval
from benchmarks.first.rows import estimate_rows
from benchmarks.first.table import estimate
from dpbayes._checks import Floats
from dpbayes.domain import codec
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.prior import Prior
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.release.format import Product, Release, Table


def first_estimates(release: Release, table: Table) -> dict[str, Product]:
    """Counts, shares of these records and shares of the population, from one table of a file of 0.1.0."""
    values, marginal, noise = release.array(table), table.marginal, _noise(release.paid[table.by].mechanism)
    rows = values.reshape(int(np.prod(values.shape[: len(marginal.given)])), -1)
    shape = _guess(release, marginal)
    if marginal.given:
        totals = _row_records(release, marginal)
        found = estimate_rows(rows, noise, records=totals, total=release.records, shape=shape, level=release.level)
    else:
        found = estimate(rows[0], noise, records=release.records, shape=shape, level=release.level)
    return {
        "counts": _product(found.counts, found.counts_interval),
        "empirical": _product(found.empirical, found.empirical_interval),
        "population": _product(found.population, found.population_interval),
    }


def _product(values: Floats, interval: Interval | None) -> Product:
    if interval is None:
        return Product(values=values.ravel())
    return Product(values=values.ravel(), lower=interval.lower.ravel(), upper=interval.upper.ravel())


def _guess(release: Release, marginal: Marginal) -> Floats | None:
    """The public guess at what a marginal counts, if the job has one."""
    priors = codec.from_record(tuple[Prior, ...], release.job.get("priors", []), "job.priors")
    return next((prior.shape(marginal, release.schema) for prior in priors if prior.serves(marginal)), None)


def _row_records(release: Release, marginal: Marginal) -> Floats | None:
    """Totals of the rows of a conditional table, where the schema declares them public."""
    for margin in release.schema.margins:
        if margin.of == marginal.given:
            return np.asarray(margin.totals, dtype=np.float64)
    return None


def _noise(mechanism: object) -> GammaNoise | GaussianNoise:
    match mechanism:
        case Dirichlet(weight=weight, concentration=alpha, grid=grid):
            concentration = np.array(alpha) if isinstance(alpha, tuple) else alpha
            return GammaNoise(weight=weight, concentration=concentration, floor=grid)
        case Gaussian(sigma=sigma):
            return GaussianNoise(sigma=sigma)
    raise TypeError(f"no file of 0.1.0 in the tests has a table drawn by {type(mechanism).__name__}")
