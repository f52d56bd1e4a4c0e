"""Which noise tables get, once for every job: how exact they are wanted, and mechanisms chosen, calibrated and drawn.

A wanted accuracy is ``income|sex ± 1 point`` or ``region ± 50 records``, and takes the least guarantee that gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np

from dpbayes.base import checks
from dpbayes.base.display import rounded_up
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.inference.intervals import reach
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
from dpbayes.release.estimates import measured_noise
from dpbayes.release.format import Paid, Table, TableKind
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit

Wish = Literal["auto", "dirichlet", "gaussian", "laplace"]
WISHES: tuple[Wish, ...] = ("auto", "dirichlet", "gaussian", "laplace")

TableMechanism = Dirichlet | TableNoise | PseudoRecords

POWER = {"gaussian": 1 / 2, "laplace": 2 / 3}
"""How noise falls with a part of the budget: 1/σ² of Gaussian noise add up, and 1/scale of Laplace noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What tables a job wants, in public numbers, and how."""

    target: Guarantee
    unit: Unit
    cells: tuple[int, ...]
    """The size of each table."""
    rows: tuple[int, ...] = ()
    """How many rows each table has, that are normalised apart; left out where it is not known yet which tables."""
    merging: tuple[bool, ...] = ()
    """Whether each table may turn out smaller, since equal edges are merged once they are bought."""
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
            checks.positive_integer("Job", records=self.records)
        if self.wish != "dirichlet" and (self.purpose == "draw" or self.accounting == "published"):
            raise InvalidArgument(
                "Job: draws and the papers' parameters belong to the Dirichlet mechanism. Set mechanism='dirichlet', "
                "or ask for an estimate with exact accounting."
            )
        if self.alongside and self.accounting == "published":
            raise InvalidArgument("Job: the papers' parameters leave nothing for other releases.")

    @property
    def known(self) -> int:
        """The number of records to plan for."""
        return self.records or REFERENCE_RECORDS


def mechanisms_for(need: Need, parts: Sequence[float] | None = None) -> tuple[tuple[TableMechanism, ...], str]:
    """One mechanism for each table, all of them together within the target, and why these.

    ``parts`` are shares of the budget in units of 1/σ², relative to each other; equal ones by default. ``auto`` takes
    Gaussian noise, or for a pure guarantee the smallest of those that have one.
    """
    if need.wish == "dirichlet":
        return _dirichlet(need, parts)
    shares = np.ones(len(need.cells)) if parts is None else np.asarray(parts, dtype=np.float64)
    rows, merging = (each or (0,) * len(need.cells) for each in (need.rows, need.merging))
    joint = [many == 1 and not smaller for many, smaller in zip(rows, merging, strict=True)]
    tables = tuple(zip(need.cells, joint, strict=True))
    kinds = noise_kinds(need.wish, need.target, need.unit)
    made = {
        kind.name: calibrate_noise(
            cast(Any, kind), need, tables, tuple(((shares / shares.max()) ** -POWER[kind.split]).tolist())
        )
        for kind in (kinds if need.target.pure else kinds[:1])
    }
    name = min(made, key=lambda each: sum(spread(mechanism) for mechanism in made[each]))
    why = "asked for" if need.wish != "auto" else f"least noise that meets {need.target}"
    return made[name], f"{name}: {why}; no data was read"


def noise_kinds(wish: Wish, target: Guarantee, unit: Unit) -> tuple[type[TableNoise], ...]:
    """The kinds of noise to compare: the one that is asked for, or all that suit a target."""
    return tuple(kind for kind in noises() if (kind.suits(target, unit) if wish == "auto" else kind.name == wish))


@lru_cache(maxsize=64)
def calibrate_noise(
    kind: type[TableNoise], need: Need, tables: tuple[tuple[int, bool], ...], sizes: tuple[float, ...]
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


def noise(cells: int, sigma: float, records: float) -> float:
    """Mean total variation that noise alone makes in a table: D·σ/(N·√(2π)).

    Symbols: D cells, σ sigma, N records; a Gaussian error has the mean size σ·√(2/π).
    Source: docs/explanation/synthetic.md, the plan.
    Adjacency: none; public or published numbers only.
    """
    return cells * sigma / (records * math.sqrt(2.0 * math.pi))


def payments(mechanisms: Sequence[Priced]) -> tuple[tuple[Paid, ...], tuple[int, ...]]:
    """Equal mechanisms as one that is paid for several times, and the place of each in that list."""
    order: dict[Priced, int] = {}
    for mechanism in mechanisms:
        order.setdefault(mechanism, len(order))
    places = tuple(order[mechanism] for mechanism in mechanisms)
    return tuple(Paid(mechanism=each, times=places.count(at)) for each, at in order.items()), places


def draw_table(counts: Counts, mechanism: TableMechanism, *, by: int, rng: np.random.Generator | None) -> Table:
    """One release of a table."""
    values = np.asarray(mechanism.values(counts.array, rng), dtype=np.float64).ravel()
    return Table(marginal=counts.marginal, by=by, kind=cast(TableKind, mechanism.tables[0]), values=values)


OWNER = "accuracy"

_FORM = re.compile(
    r"\s*(?:(?P<table>.+?)\s*)??(?:±|\+/?-)?\s*(?P<number>\.?\d[\d.,]*)\s*"
    r"(?P<unit>records?|(?:percentage\s+)?points?|%)\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """How exact a table has to be: half the width of the intervals of its cells.

    Points of a conditional table are those of a share of one half, in a group of average size; points of a joint
    table are those of a cell's share of all records.
    """

    marginal: Marginal
    half: float
    unit: Literal["records", "points"]

    def __str__(self) -> str:
        unit = self.unit.removesuffix("s") if self.half == 1 else self.unit
        return f"{self.marginal} ± {self.half:.12g} {unit}"

    @property
    def group(self) -> tuple[str, ...]:
        """Within which attributes shares are meant."""
        return self.marginal.given if self.unit == "points" else ()

    def error(self, schema: Schema, level: float) -> float:
        """The standard error that is wanted, in records."""
        self.marginal.axes(schema)
        z = reach(level)
        if self.unit == "records":
            return self.half / z
        known = schema.expected
        if known is None:
            raise InvalidArgument(
                f"{OWNER}: points of {self.marginal} need the number of records. Declare records in the schema, "
                "or a guess: records_guess."
            )
        groups = math.prod(self.marginal.shape(schema)[: len(self.marginal.given)])
        return self.half / 100 * known / groups / z


def wants(given: Mapping[str, str] | Sequence[str]) -> tuple[Want, ...]:
    """Wanted accuracies by table, or as texts that name their table.

    >>> [str(each) for each in wants({"income|sex": "± 1 point", "region": "50 records"})]
    ['income|sex ± 1 point', 'region ± 50 records']
    >>> str(wants(["income|sex +- 0.5 points"])[0])
    'income|sex ± 0.5 points'
    """
    texts = [f"{table} ± {half}" for table, half in given.items()] if isinstance(given, Mapping) else list(given)
    if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"{OWNER}: expected texts such as 'region ± 50 records', or one for each table.")
    found = tuple(_want(text) for text in texts)
    for number, each in enumerate(found):
        if any(each.marginal == other.marginal for other in found[:number]):
            raise InvalidArgument(f"{OWNER}: {each.marginal} is named twice. Say once how exact it has to be.")
    return found


def is_want(text: str) -> bool:
    """Whether a table is named with the accuracy wanted."""
    return re.search(r"±|\+/?-", text) is not None


def _want(text: str) -> Want:
    form = _FORM.fullmatch(re.sub(r"±\s*(±|\+/?-)", "±", text))
    if form is None or form["table"] is None:
        raise InvalidArgument(
            f"{OWNER}: cannot read {text!r}. Write a table, ± and a number of records or points, as in "
            "'region ± 50 records' or 'income|sex ± 1 point'."
        )
    half = checks.number(OWNER, f"the number in {text!r}", form["number"])
    if not half > 0:
        raise InvalidArgument(f"{OWNER}: expected a number above 0 in {text!r}.")
    unit: Literal["records", "points"] = "records" if form["unit"].startswith("record") else "points"
    return Want(marginal=Marginal.parse(form["table"]), half=half, unit=unit)


def loosest(cap: Guarantee) -> Guarantee:
    """The same notion of privacy without a limit to speak of: an ε or ρ of 100,000."""
    return cap.of_size(1e5)


def least(
    cap: Guarantee, enough: Callable[[Guarantee], bool], *, lowest: float = 1e-9, tolerance: float = 1e-9
) -> Guarantee | None:
    """The smallest guarantee of the cap's notion that is ``enough``, rounded up to four digits; None if above the cap.

    What is looked at lies above ``lowest``; the logarithm of the size is found up to a ``tolerance``.
    """
    if not enough(cap):
        return None
    low, high = math.log(lowest), math.log(cap.size)
    while high - low >= tolerance:
        middle = (low + high) / 2
        if enough(cap.of_size(math.exp(middle))):
            high = middle
        else:
            low = middle
    return cap.of_size(min(float(rounded_up(math.exp(high), 4)), cap.size))


def out_of_reach(needed: Guarantee | None, cap: Guarantee, reached: Sequence[str]) -> TargetUnreachable:
    """The sentence for accuracies that a guarantee does not allow."""
    much = f"it needs {needed}" if needed is not None else "no guarantee of this kind is enough for it"
    return TargetUnreachable(
        f"{OWNER}: this accuracy is out of reach: {much}, and at most {cap} is allowed. "
        f"With that, {'; '.join(reached)}. Ask for less, or allow more."
    )
