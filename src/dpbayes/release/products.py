"""What readers get from a draw: estimates with intervals, groups, and remarks. Post-processing, at no cost.

Everything here is a function of a release alone, so ``verify`` computes it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpbayes.base.display import listed
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.numbers import TableEstimate
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.kinds import Noise
from dpbayes.release.estimates import NOISY, Posterior, measured_noise, released
from dpbayes.release.format import Group, Product, Release, Table
from dpbayes.schema.attribute import OTHER, Attribute
from dpbayes.schema.labels import labels
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.public import summed

FAR = 6.0
"""Gaussian noise strays this many standard deviations in fewer than one of 10⁸ cells."""


def complete(release: Release) -> Release:
    """The release with everything that follows from its draw. Its tables are estimated together, so that they agree."""
    posterior = Posterior(release)
    return replace(release, tables=tuple(_complete(release, table, posterior) for table in release.tables))


def _complete(release: Release, table: Table, posterior: Posterior) -> Table:
    if table.kind == "derived":
        made = _estimates(release, table, posterior)
        return replace(table, products=made, groups=_groups(release, table, made["counts"], None, posterior))
    if table.kind not in NOISY or not table.asked:
        return table
    if table.kind == "parameters":
        return replace(table, products=_read(release, table))
    noise = measured_noise(release.paid[table.by].mechanism, table.marginal.shape(release.schema))
    made = _draw(release, table, noise) | _estimates(release, table, posterior)
    groups = _groups(release, table, made["counts"], noise, posterior)
    notes = (*_misfits(release, table, noise), *_cautions(release, table, posterior))
    return replace(table, products=made, groups=groups, notes=notes)


def _read(release: Release, table: Table) -> dict[str, Product]:
    """The law of the counts behind a released posterior, in the terms of every other table."""
    try:
        found = released(release, table)
    except InvalidArgument:  # the law of its noise is not known: what was drawn is all there is
        return {}
    whole = max(release.records or 0, 1)
    counts = (found.expected_counts, *found.interval(release.level, of="counts"))
    shares = (found.mean, *found.interval(release.level))
    parts = {"counts": counts, "empirical": tuple(part / whole for part in counts), "population": shares}
    return {name: Product(values=values, lower=lower, upper=upper) for name, (values, lower, upper) in parts.items()}


def _cautions(release: Release, table: Table, posterior: Posterior) -> tuple[str, ...]:
    """Those about the attributes that this table is the first to hold, unless the schema declares their totals."""
    asked = [each for each in release.tables if each.asked and each.kind in NOISY]
    earlier = {name for each in asked[: asked.index(table)] for name in each.marginal.names}
    earlier |= {name for margin in release.schema.margins for name in margin.of}
    return tuple(
        said
        for name in table.marginal.names
        if name not in earlier
        for said in cautions(release.schema[name], posterior.table(Marginal((name,)), level=release.level))
    )


def _draw(release: Release, table: Table, noise: Noise) -> dict[str, Product]:
    """The papers' posterior draw, of gammas."""
    if not isinstance(noise, GammaNoise):
        return {}
    values = release.array(table)
    rows = values.reshape(int(np.prod(values.shape[: len(table.marginal.given)])), -1)
    return {"draw": Product(values=(rows / rows.sum(axis=1, keepdims=True)).ravel())}


def _estimates(release: Release, table: Table, posterior: Posterior) -> dict[str, Product]:
    """Estimates of counts, shares of these records and shares of the population.

    In a conditional table shares are within rows: they sum to one for each combination of what is given.
    """
    found = posterior.table(table.marginal, level=release.level)
    named = (("counts", found.counts), ("empirical", found.records), ("population", found.population))
    return {
        name: Product(values=part.values.ravel(), lower=part.lower.ravel(), upper=part.upper.ravel(), note=part.note)
        for name, part in named
    }


def _groups(
    release: Release, table: Table, counts: Product, noise: Noise | None, posterior: Posterior
) -> tuple[Group, ...]:
    """For each row of a conditional table: estimated records, and the share of what was drawn that is prior or noise.

    The share is dα/(rN + dα) for a Dirichlet draw, so small groups are drawn towards an even distribution; for
    integer noise it is the share of noise in the variance of the row's total, as all tables together know it.

    Source: [tCDP], potential negative societal impacts (small populations); [RDP] equation (3).
    """
    given = table.marginal.given
    if not given:
        return ()
    levels = [axis.levels for axis in release.axes(table)[: len(given)]]
    shape = [len(each) for each in levels]
    rows = counts.values.reshape(int(np.prod(shape)), -1)
    doubt = posterior.joint.linear(given)[1].ravel()
    groups = []
    for index, row in enumerate(rows):
        records = float(max(row.sum(), 0.0))
        if isinstance(noise, GammaNoise):
            prior, weight = row.size * float(np.mean(noise.concentration)), noise.weight
        else:
            prior, weight = float(doubt[index]), 1.0
        groups.append(
            Group(
                levels=tuple(each[int(at)] for each, at in zip(levels, np.unravel_index(index, shape), strict=True)),
                records=records,
                prior_share=prior / (weight * records + prior) if weight * records + prior > 0 else 1.0,
            )
        )
    return tuple(groups)


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
    zeros = schema.zeros(names)
    if zeros is not None and (np.abs(counts[zeros]) > FAR * np.sqrt(variance[zeros])).any():
        found.append("The published values do not fit the combinations that the schema declares impossible.")
    for margin in schema.margins:
        if set(margin.of) <= set(names):
            seen, spread = (summed(part, names, margin.of).ravel() for part in (counts, variance))
            if (np.abs(seen - np.asarray(margin.totals, dtype=np.float64)) > FAR * np.sqrt(spread)).any():
                what = ", ".join(margin.of)
                found.append(f"The published values do not fit the totals of {what} that the schema declares.")
    return tuple(found)


def cautions(attribute: Attribute, found: TableEstimate) -> tuple[str, ...]:
    """Sentences about one attribute, from its published shares alone: free, and the same for every reader.

    Where noise hides whether a level is empty, the upper end of its interval is large, and nothing is said.
    """
    shares, levels, names = found.records, attribute.levels, labels(attribute)
    said = []
    if OTHER in levels[len(attribute.declared) :]:
        at = levels.index(OTHER)
        if shares.values[at] > 0.05 and shares.lower[at] > 0:  # so many are worth a look at the list
            what = "values that the schema does not list"
            what += "" if attribute.splits_missing else ", or missing ones"
            said.append(
                f"{attribute.name}: {_percent(shares.values[at])} of the records ({_percent(shares.lower[at])} to "
                f"{_percent(shares.upper[at])}) are {names[at]!r}: {what}. Compare the schema with the column."
            )
    most = 0.01 / len(levels)  # surely less than this part of an even share looks empty
    empty = [at for at in range(len(attribute.declared)) if shares.lower[at] <= 0 and shares.upper[at] < most]
    if empty:
        upper, which = max(float(shares.upper[at]) for at in empty), listed([names[at] for at in empty])
        said.append(
            f"{attribute.name}: hardly any record, at most {_percent(upper)}, is {which}, "
            "although the schema declares it. Check the spelling."
        )
    return tuple(said)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
