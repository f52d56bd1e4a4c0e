"""Choosing, calibrating and drawing the mechanisms of tables: once, for every job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.kinds import TableNoise, noises
from dpbayes.mechanisms.tuning import (
    REFERENCE_RECORDS,
    Accounting,
    ConcentrationCurve,
    Purpose,
    dirichlet_draws,
    published_dirichlet,
)
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.calibrate import Family, calibrate, calibrate_all
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Paid, Table, TableKind
from dpbayes.release.posterior import measured_noise
from dpbayes.schema.counts import Counts
from dpbayes.schema.unit import PrivacyUnit

Wish = Literal["auto", "dirichlet", "gaussian", "laplace"]
WISHES: tuple[Wish, ...] = ("auto", "dirichlet", "gaussian", "laplace")

TableMechanism = Dirichlet | TableNoise | PseudoRecords

POWER = {"gaussian": 1 / 2, "laplace": 2 / 3}
"""How noise falls with a part of the budget: 1/σ² of Gaussian noise add up, and 1/scale of Laplace noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What tables a job wants, in public numbers, and how."""

    target: Guarantee
    unit: PrivacyUnit
    cells: tuple[int, ...]
    """The size of each table."""
    rows: tuple[int, ...] = ()
    """How many rows each table has, that are normalised apart; left out where it is not known yet which tables."""
    records: int | None = None
    """The number of records, or a public guess at it."""
    wish: Wish = "auto"
    purpose: Purpose = "estimate"
    accounting: Accounting = "exact"
    alongside: tuple[Priced, ...] = ()
    """What else the target has to cover."""

    def __post_init__(self) -> None:
        checks.one_of("Job", WISHES, mechanism=self.wish)
        checks.one_of("Job", ("draw", "estimate"), purpose=self.purpose)
        checks.one_of("Job", ("exact", "published"), accounting=self.accounting)
        if self.records is not None:
            checks.positive_integer("Job", expected_records=self.records)
        if self.wish != "dirichlet" and (self.purpose == "draw" or self.accounting == "published"):
            raise InvalidArgument(
                "Job: draws and the papers' parameters belong to the Dirichlet mechanism. Set mechanism='dirichlet', "
                "or ask for an estimate with exact accounting."
            )
        if self.alongside and self.accounting == "published":
            raise InvalidArgument("Job: the papers' parameters leave no budget for other releases.")

    @property
    def known(self) -> int:
        """The number of records to plan for."""
        return self.records or REFERENCE_RECORDS


def calibrated(need: Need, parts: Sequence[float] | None = None) -> tuple[tuple[TableMechanism, ...], str]:
    """One mechanism for each table, all of them together within the target, and why these.

    ``parts`` are shares of the budget in units of 1/σ², relative to each other; equal ones by default. ``auto`` takes
    Gaussian noise, or for a pure guarantee the smallest of those that have one.
    """
    if need.wish == "dirichlet":
        return _dirichlet(need, parts)
    shares = np.ones(len(need.cells)) if parts is None else np.asarray(parts, dtype=np.float64)
    tables = list(zip(need.cells, [many == 1 for many in need.rows] or [False] * len(need.cells), strict=True))
    kinds = noise_kinds(need.wish, need.target, need.unit)
    made = {
        kind.name: calibrate_noise(kind, need, tables, ((shares / shares.max()) ** -POWER[kind.split]).tolist())
        for kind in (kinds if need.target.pure else kinds[:1])
    }
    name = min(made, key=lambda each: sum(spread(mechanism) for mechanism in made[each]))
    why = "asked for" if need.wish != "auto" else f"least noise that meets {need.target}"
    return made[name], f"{name}: {why}; no data was read"


def noise_kinds(wish: Wish, target: Guarantee, unit: PrivacyUnit) -> tuple[type[TableNoise], ...]:
    """The kinds of noise to compare: the one that is asked for, or all that suit a target."""
    return tuple(kind for kind in noises() if (kind.suits(target, unit) if wish == "auto" else kind.name == wish))


def calibrate_noise(
    kind: type[TableNoise], need: Need, tables: Sequence[tuple[int, bool]], sizes: Sequence[float]
) -> tuple[TableNoise, ...]:
    """Noise in these proportions that just meets the target together; of each table its cells, and if it is joint."""

    def family(cells: int, joint: bool, factor: float) -> Family[TableNoise]:
        return Family(name=kind.name, make=lambda size: kind.of_size(size * factor, need.unit, cells, joint=joint))

    asked = [(*table, size) for table, size in zip(tables, sizes, strict=True)]
    families = {each: family(*each) for each in asked}
    return calibrate_all([families[each] for each in asked], need.target, alongside=need.alongside)


def _dirichlet(need: Need, parts: Sequence[float] | None) -> tuple[tuple[Dirichlet, ...], str]:
    releases, cells = len(need.cells), max(need.cells)
    if need.accounting == "published":
        made = published_dirichlet(need.target, need.unit, releases=releases, cells=cells, records=need.known)
        return (made,) * releases, "dirichlet: asked for, with the papers' parameters"
    if need.purpose == "draw":
        rows = need.rows or (1,) * releases
        tables = [(many, size // many) for many, size in zip(rows, need.cells, strict=True)]
        drawn = dirichlet_draws(
            need.target, need.unit, tables=tables, records=need.known, parts=parts, alongside=need.alongside
        )
        return drawn, "dirichlet: asked for; the weight of each table suits a draw of its size"
    beside = Cost.total(need.alongside) if need.alongside else None
    curve = ConcentrationCurve(target=need.target, unit=need.unit, releases=releases, alongside=beside)
    made = curve.best(purpose="estimate", cells=cells, records=need.known)
    return (made,) * releases, "dirichlet: asked for; its weight suits an estimate"


def alone(need: Need) -> float:
    """The standard deviation that one table would have with the whole budget: public numbers decide how to split it."""
    kind = noise_kinds("auto" if need.wish == "dirichlet" else need.wish, need.target, need.unit)[0]
    family = Family(name=kind.name, make=lambda size: kind.of_size(size, need.unit))
    return spread(calibrate(family, need.target, tolerance=1e-3))


def spread(mechanism: object, count: float = 0.0) -> float:
    """The standard deviation of the noise on a cell of this count."""
    return math.sqrt(float(measured_noise(mechanism).variance(np.array([count])).flat[0]))


def merged(mechanisms: Sequence[Priced]) -> tuple[tuple[Paid, ...], tuple[int, ...]]:
    """Equal mechanisms as one that is paid for several times, and the place of each in that list."""
    order: dict[Priced, int] = {}
    for mechanism in mechanisms:
        order.setdefault(mechanism, len(order))
    places = tuple(order[mechanism] for mechanism in mechanisms)
    return tuple(Paid(mechanism=each, times=places.count(at)) for each, at in order.items()), places


def drawn(counts: Counts, mechanism: TableMechanism, *, by: int, rng: np.random.Generator | None) -> Table:
    """One release of a table."""
    values = np.asarray(mechanism.values(counts.array, rng), dtype=np.float64).ravel()
    return Table(marginal=counts.marginal, by=by, kind=cast(TableKind, mechanism.tables[0]), values=values)
