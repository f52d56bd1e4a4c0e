"""What readers get from a draw: estimates with intervals, groups, and remarks. Post-processing, at no cost.

Everything here is a function of a release alone, so ``verify`` computes it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpbayes.inference.measurement import GammaNoise, Noise
from dpbayes.release.format import Group, Product, Release, Table
from dpbayes.release.posterior import NOISY, Posterior, measured_noise

FAR = 6.0
"""Gaussian noise strays this many standard deviations in fewer than one of 10⁸ cells."""


def completed(release: Release) -> Release:
    """The release with everything that follows from its draw. Its tables are estimated together, so that they agree."""
    posterior = Posterior(release)
    return replace(release, tables=tuple(_completed(release, table, posterior) for table in release.tables))


def _completed(release: Release, table: Table, posterior: Posterior) -> Table:
    if table.kind not in NOISY:
        return table
    noise = measured_noise(release.paid[table.by].mechanism, table.marginal.shape(release.schema))
    made = _products(release, table, noise, posterior)
    groups = _groups(release, table, made["counts"], noise)
    return replace(table, products=made, groups=groups, notes=_misfits(release, table, noise))


def _products(release: Release, table: Table, noise: Noise, posterior: Posterior) -> dict[str, Product]:
    """The draw (Dirichlet only) and the estimates of counts, shares of these records and shares of the population.

    In a conditional table shares are within rows: they sum to one for each combination of what is given.
    """
    values, marginal = release.array(table), table.marginal
    made: dict[str, Product] = {}
    if isinstance(noise, GammaNoise):
        rows = values.reshape(int(np.prod(values.shape[: len(marginal.given)])), -1)
        made["draw"] = Product(values=(rows / rows.sum(axis=1, keepdims=True)).ravel())
    found = posterior.table(marginal, level=release.level)
    for name, part in (("counts", found.counts), ("empirical", found.records), ("population", found.population)):
        made[name] = Product(values=part.values.ravel(), lower=part.lower.ravel(), upper=part.upper.ravel())
    return made


def _groups(release: Release, table: Table, counts: Product, noise: Noise) -> tuple[Group, ...]:
    """For each row of a conditional table: estimated records, and the share of what was drawn that is prior or noise.

    The share is dα/(rN + dα) for a Dirichlet draw, so small groups are drawn towards an even distribution; for
    integer noise it is the share of noise in the variance of the row's total.

    Source: [tCDP], potential negative societal impacts (small populations); [RDP] equation (3).
    """
    if not table.marginal.given:
        return ()
    given = [axis.levels for axis in release.axes(table)[: len(table.marginal.given)]]
    rows = counts.values.reshape(int(np.prod([len(levels) for levels in given])), -1)
    listed = []
    for index, row in enumerate(rows):
        position = np.unravel_index(index, [len(levels) for levels in given])
        records = float(max(row.sum(), 0.0))
        listed.append(
            Group(
                levels=tuple(levels[int(at)] for levels, at in zip(given, position, strict=True)),
                records=records,
                prior_share=_prior_share(noise, records, row.size),
            )
        )
    return tuple(listed)


def _prior_share(noise: Noise, records: float, cells: int) -> float:
    if isinstance(noise, GammaNoise):
        prior = cells * float(np.mean(noise.concentration))
        return prior / (noise.weight * records + prior)
    variance = cells * float(noise.variance(np.zeros(1))[0])
    return variance / (variance + records) if records + variance > 0 else 1.0


def _misfits(release: Release, table: Table, noise: Noise) -> tuple[str, ...]:
    """Declared totals that the published values contradict by more than ``FAR`` standard deviations of their noise.

    Only published values are looked at, so this costs nothing; the counts themselves are never compared.
    """
    values, schema = release.array(table), release.schema
    counts = noise.center(values)
    variance = noise.variance(np.maximum(counts, 0.0))
    found = []
    if schema.records is not None:
        known = release.records is not None
        away = abs((release.records if known else float(counts.sum())) - schema.records)  # type: ignore[operator]
        if away > (0.0 if known else FAR * float(np.sqrt(variance.sum()))):
            found.append("The published values do not fit the number of records that the schema declares.")
    names = table.marginal.names
    for margin in schema.margins:
        if set(margin.of) <= set(names):
            others = tuple(axis for axis, name in enumerate(names) if name not in margin.of)
            left = [name for name in names if name in margin.of]
            turn = [left.index(name) for name in margin.of]
            seen, spread = (part.sum(axis=others).transpose(turn).ravel() for part in (counts, variance))
            if (np.abs(seen - np.asarray(margin.totals, dtype=np.float64)) > FAR * np.sqrt(spread)).any():
                what = ", ".join(margin.of)
                found.append(f"The published values do not fit the totals of {what} that the schema declares.")
    return tuple(found)
