"""What readers get from a drawn table: draws, estimates with intervals, groups. Post-processing, at no cost."""

from __future__ import annotations

import numpy as np

from dpbayes._checks import Floats
from dpbayes.domain.marginal import Marginal
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise, Noise
from dpbayes.estimate.result import Interval
from dpbayes.estimate.table import estimate
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.release import Axis, Group, Product

TableMechanism = Dirichlet | Gaussian | Laplace


def noise_of(mechanism: TableMechanism) -> Noise:
    """The public description of a mechanism's noise, from which an estimate is made."""
    if isinstance(mechanism, Dirichlet):
        alpha = mechanism.concentration
        return GammaNoise(weight=mechanism.weight, concentration=np.array(alpha) if isinstance(alpha, tuple) else alpha)
    if isinstance(mechanism, Gaussian):
        return GaussianNoise(sigma=mechanism.sigma)
    return LaplaceNoise(scale=mechanism.scale)


def products(
    values: Floats,
    mechanism: TableMechanism,
    marginal: Marginal,
    *,
    records: int | None,
    row_records: Floats | None = None,
    shape: Floats | None = None,
    level: float = 0.95,
) -> dict[str, Product]:
    """The draw (Dirichlet only) and the noise-aware estimates of counts, shares and the population's shares.

    In a conditional table shares are within rows: they sum to one for each combination of ``given``. A public guess at
    the ``shape`` of the distribution, or of what the rows share, guides the estimates.
    """
    made: dict[str, Product] = {}
    rows = int(np.prod(values.shape[: len(marginal.given)]))
    table = values.reshape(rows, -1)
    if isinstance(mechanism, Dirichlet):
        made["draw"] = Product(values=(table / table.sum(axis=1, keepdims=True)).ravel().tolist())
    if marginal.given:
        from dpbayes.estimate.rows import estimate_rows

        noise = noise_of(mechanism)
        found = estimate_rows(table, noise, records=row_records, total=records, shape=shape, level=level)
    else:
        found = estimate(table[0], noise_of(mechanism), records=records, shape=shape, level=level)
    made["counts"] = _product(found.counts, found.counts_interval)
    made["empirical"] = _product(found.empirical, found.empirical_interval)
    made["population"] = _product(found.population, found.population_interval)
    return made


def _product(values: Floats, interval: Interval | None) -> Product:
    if interval is None:
        return Product(values=values.ravel().tolist())
    return Product(
        values=values.ravel().tolist(), lower=interval.lower.ravel().tolist(), upper=interval.upper.ravel().tolist()
    )


def groups(axes: list[Axis], marginal: Marginal, counts: Product, mechanism: TableMechanism) -> list[Group] | None:
    """For each row of a conditional table: estimated records, and the share of a draw that is prior, not data.

    The share is dα/(rN + dα) for a Dirichlet draw, so small groups are drawn towards an even distribution; for
    integer noise it is the share of noise in the variance of the row's total.

    Source: [tCDP], potential negative societal impacts (small populations); [RDP] equation (3).
    """
    if not marginal.given:
        return None
    given = [axis.levels for axis in axes[: len(marginal.given)]]
    table = np.asarray(counts.values).reshape(int(np.prod([len(levels) for levels in given])), -1)
    listed = []
    for index, row in enumerate(table):
        position = np.unravel_index(index, [len(levels) for levels in given])
        records = float(max(row.sum(), 0.0))
        listed.append(
            Group(
                levels=[levels[int(at)] for levels, at in zip(given, position, strict=True)],
                records=records,
                prior_share=_prior_share(mechanism, records, row.size),
            )
        )
    return listed


def _prior_share(mechanism: TableMechanism, records: float, cells: int) -> float:
    if isinstance(mechanism, Dirichlet):
        alpha = mechanism.concentration
        prior = cells * (alpha if isinstance(alpha, float) else float(np.mean(alpha)))
        return prior / (mechanism.weight * records + prior)
    spread = mechanism.sigma if isinstance(mechanism, Gaussian) else np.sqrt(2.0) * mechanism.scale
    noise = cells * float(spread) ** 2
    return noise / (noise + records) if records + noise > 0 else 1.0
