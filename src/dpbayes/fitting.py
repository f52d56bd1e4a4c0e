"""Fit a model to a private table: calibrate all its tables at once, charge, count, draw, build."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from dpbayes import _checks
from dpbayes.domain.counts import Counts
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.ledger.ledger import Ledger, Receipt
from dpbayes.mechanisms import randomness
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.tuning import (
    REFERENCE_RECORDS,
    ConcentrationCurve,
    gaussian_noise,
    laplace_noise,
    published_dirichlet,
)
from dpbayes.models.base import Model, ModelSpec, NoisyTable, Published
from dpbayes.privacy.calibrate import Family, calibrate
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee, PureDP
from dpbayes.privacy.pld import Pld
from dpbayes.release import Spending
from dpbayes.tables.engine import Engine, check_public_totals, check_schema, needed

Wish = Literal["auto", "dirichlet", "gaussian", "laplace"]
WISHES = ("auto", "dirichlet", "gaussian", "laplace")
Accounting = Literal["exact", "published"]
Split = Literal["optimal", "equal"]

TableMechanism = Dirichlet | Gaussian | Laplace

M = TypeVar("M", bound=Model)

BLOCK = 2**18
"""Cells that are drawn at once."""


class MeaninglessBudget(UserWarning):
    """So little budget is left for each table that noise hides all records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """Calibrated mechanisms for the tables of a model. No data was read."""

    marginals: tuple[Marginal, ...]
    mechanisms: tuple[TableMechanism, ...]
    choice: str
    alongside: tuple[Priced, ...] = ()

    @property
    def cost(self) -> Cost:
        """What all tables cost, together with what is released alongside."""
        return Cost.total((*self.mechanisms, *self.alongside))

    def predicted_error(self, schema: Schema, records: int) -> float:
        """The mean total variation error of the noisy tables as they are, before any estimate: σ·D/(N·√(2π)).

        Symbols: σ noise of a cell, D cells, N records; a Gaussian error has mean size σ·√(2/π).
        Source: the half sum of the absolute errors of D cells, docs/explanation/models.md.
        Adjacency: none.
        """
        errors = [
            spread(mechanism, records / marginal.size(schema))
            * marginal.size(schema)
            / (records * math.sqrt(2.0 * math.pi))
            for marginal, mechanism in zip(self.marginals, self.mechanisms, strict=True)
        ]
        return float(np.mean(errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bundle:
    """Several mechanisms that are released together, priced as one."""

    cost: Cost

    @property
    def unit(self) -> PrivacyUnit:
        return self.cost.unit

    def renyi(self, order: float) -> float:
        return self.cost.renyi(order)

    def concentrated(self, omega: float) -> float:
        return self.cost.concentrated(omega)

    def delta(self, epsilon: float) -> float:
        return self.cost.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        return self.cost.epsilon(delta)

    def record(self) -> dict[str, object]:
        return {"releases": [mechanism.record() for mechanism, _ in self.cost.entries]}

    def pld(self, interval: float) -> Pld:  # noqa: ARG002 - a bundle is only ever priced alone
        return self.cost.pld()


def plan_fit(
    spec: ModelSpec[Model],
    schema: Schema,
    target: Guarantee,
    *,
    mechanism: Wish = "auto",
    accounting: Accounting = "exact",
    split: Split = "optimal",
    records: int | None = None,
    alongside: tuple[Priced, ...] = (),
) -> FitPlan:
    """Calibrate every table of a model against one target. Looks at public numbers only.

    ``auto`` takes Gaussian noise, or Laplace noise for a pure guarantee; a model that is a posterior draw needs the
    Dirichlet mechanism. ``equal`` gives every table the same budget. ``published`` uses the papers' parameters.
    """
    _checks.one_of("fit", WISHES, mechanism=mechanism)
    _checks.one_of("fit", ("exact", "published"), accounting=accounting)
    _checks.one_of("fit", ("optimal", "equal"), split=split)
    marginals = spec.marginals(schema)
    known = schema.records or records
    if spec.draws or mechanism == "dirichlet" or accounting == "published":
        if mechanism not in ("auto", "dirichlet"):
            raise InvalidArgument(
                f"fit: a posterior draw or the papers' parameters need the Dirichlet mechanism, got {mechanism!r}."
            )
        if alongside:
            raise InvalidArgument("fit: the papers' parameters leave no budget for other releases.")
        mechanisms: tuple[TableMechanism, ...] = _dirichlets(
            spec, schema, target, accounting, marginals, known or REFERENCE_RECORDS
        )
        choice = f"Dirichlet, {accounting} accounting"
    else:
        name, family = _quietest(schema.unit, target, mechanism)
        sigma = family.alone(target)
        equal = (1.0,) * len(marginals)
        parts = spec.shares(schema, sigma, known or REFERENCE_RECORDS) if split == "optimal" else equal
        mechanisms = family.calibrated(np.asarray(parts), target, alongside)
        choice = f"{name}: least noise that meets {target} for all {len(marginals)} tables; no data was read"
    plan = FitPlan(marginals=marginals, mechanisms=mechanisms, choice=choice, alongside=alongside)
    return _checked(plan, schema, known)


def fit(
    spec: ModelSpec[M],
    *,
    engine: Engine,
    schema: Schema,
    target: Guarantee,
    ledger: Ledger | None = None,
    mechanism: Wish = "auto",
    accounting: Accounting = "exact",
    split: Split = "optimal",
    expected_records: int | None = None,
    alongside: tuple[Priced, ...] = (),
    prepare: Callable[[], tuple[Engine, Schema]] | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> M:
    """Fit a model: everything that can be refused is refused first, then the ledger is charged, then the table read.

    If counting fails, nothing was drawn and the charge is voided. A ``seed`` makes the draws repeatable: such a model
    promises nothing, says so, and is never charged. ``alongside`` is what else the caller releases under the target;
    ``prepare`` runs after the charge and returns the table and schema to count, as when bin edges are bought.
    """
    say = progress or (lambda _: None)
    say("calibrating")
    attributes = needed(schema, spec.marginals(schema))
    check_schema(schema, engine.columns(), [attribute.name for attribute in attributes])
    plan = plan_fit(
        spec,
        schema,
        target,
        mechanism=mechanism,
        accounting=accounting,
        split=split,
        records=expected_records,
        alongside=alongside,
    )
    say("charging the ledger")
    receipt = _charge(ledger if seed is None else None, schema, plan, spec.kind)
    try:
        say("counting")
        if prepare is not None:
            engine, schema = prepare()
        counts = engine.count(schema, plan.marginals)
        for table in counts:
            check_public_totals(schema, table)
    except BaseException:
        if receipt is not None and ledger is not None and prepare is None:  # what it released stays paid for
            ledger.void(receipt, about="counting failed; nothing was drawn")
        raise
    say("drawing")
    published = Published(
        schema=schema,
        guarantee=target,
        accounting=accounting,
        choice=plan.choice,
        records=int(counts[0].array.sum()) if schema.unit.replaces else None,
        seeded=seed is not None,
        tables=_drawn(counts, plan.mechanisms, None if seed is None else np.random.default_rng(seed)),
        spending=_spending(ledger, receipt),
    )
    say("building")
    return spec.build(published)


def spread(mechanism: TableMechanism, count: float = 0.0) -> float:
    """Standard deviation of the noise on a cell of this count."""
    if isinstance(mechanism, Gaussian):
        return mechanism.sigma
    if isinstance(mechanism, Laplace):
        return math.sqrt(0.5) / math.sinh(min(0.5 / mechanism.scale, 300.0))
    return math.sqrt(mechanism.weight * count + mechanism.smallest[0]) / mechanism.weight


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoiseFamily:
    """Additive noise of one kind, for tables that share a budget by parts of 1/σ²."""

    one: Family[Gaussian] | Family[Laplace]
    power: float
    """How the parameter of a table falls with its part."""

    def alone(self, target: Guarantee) -> float:
        """The standard deviation that one table would have with the whole budget."""
        return spread(calibrate(self.one, target, tolerance=1e-3))  # type: ignore[misc]  # either family

    def calibrated(
        self, parts: np.ndarray, target: Guarantee, alongside: tuple[Priced, ...]
    ) -> tuple[TableMechanism, ...]:
        """The least noise whose tables meet the target together."""
        factors = (parts / parts.max()) ** -self.power

        def members(parameter: float) -> tuple[TableMechanism, ...]:
            return tuple(self.one.make(parameter * float(factor)) for factor in factors)

        tried: dict[_Bundle, float] = {}

        def bundle(parameter: float) -> _Bundle:
            made = _Bundle(cost=Cost.total((*members(parameter), *alongside)))
            tried[made] = parameter
            return made

        return members(tried[calibrate(Family(name=self.one.name, make=bundle, start=10.0), target)])


def _quietest(unit: PrivacyUnit, target: Guarantee, wish: Wish) -> tuple[str, _NoiseFamily]:
    """Gaussian noise, whose 1/σ² add up, or Laplace noise, whose 1/scale do: the best parts are D and D^⅔.

    Gaussian noise is preferred for several tables; where it cannot meet the target, as for a pure guarantee, Laplace.
    """
    families = {
        "gaussian": _NoiseFamily(one=gaussian_noise(unit), power=1 / 2),
        "laplace": _NoiseFamily(one=laplace_noise(unit), power=2 / 3),
    }
    if wish in families:
        return wish, families[wish]
    name = "laplace" if isinstance(target, PureDP) else "gaussian"
    return name, families[name]


def _dirichlets(
    spec: ModelSpec[Model],
    schema: Schema,
    target: Guarantee,
    accounting: Accounting,
    marginals: Sequence[Marginal],
    records: int,
) -> tuple[Dirichlet, ...]:
    cells, releases = max(marginal.size(schema) for marginal in marginals), len(marginals)
    if accounting == "published":
        made = published_dirichlet(target, schema.unit, releases=releases, cells=cells, records=records)
    else:
        curve = ConcentrationCurve(target=target, unit=schema.unit, releases=releases)
        made = curve.best(purpose="draw" if spec.draws else "estimate", cells=cells, records=records)
    return (made,) * releases


def _checked(plan: FitPlan, schema: Schema, records: int | None) -> FitPlan:
    """Warn where the noise of a typical table is larger than the table."""
    if records is not None and (error := plan.predicted_error(schema, records)) > 1.0:
        warnings.warn(
            f"fit: {len(plan.marginals)} tables share the budget, so that the noise in each is predicted to be "
            f"{error:.3g} times its whole mass. The model will know little more than class or column shares: ask for "
            "fewer attributes or a larger budget.",
            MeaninglessBudget,
            stacklevel=3,
        )
    return plan


def _charge(ledger: Ledger | None, schema: Schema, plan: FitPlan, kind: str) -> Receipt | None:
    if ledger is None:
        return None
    about = f"{kind}: " + "; ".join(str(marginal) for marginal in plan.marginals)
    return ledger.charge(schema.id, plan.cost, about=about[:1000])


def _spending(ledger: Ledger | None, receipt: Receipt | None) -> Spending | None:
    if ledger is None or receipt is None:
        return None
    ledger.confirm(receipt)
    account = ledger.account(receipt.dataset)
    return Spending(
        receipt=receipt.record(),
        spent=account.price(account.cost),
        limit=account.limit,
        left=account.left(),
        budget=dict(account.budget.record()),
    )


def _drawn(
    counts: Sequence[Counts], mechanisms: Sequence[TableMechanism], rng: np.random.Generator | None
) -> tuple[NoisyTable, ...]:
    return tuple(_draw(table, mechanism, rng) for table, mechanism in zip(counts, mechanisms, strict=True))


def _draw(counts: Counts, mechanism: TableMechanism, rng: np.random.Generator | None) -> NoisyTable:
    marginal, record = counts.marginal, dict(mechanism.record())
    if isinstance(mechanism, Dirichlet):
        from dpbayes.curator import _grid as grid_of

        grid = grid_of(mechanism)
        gammas = mechanism.gammas(counts.array, randomness.generator(rng))
        return NoisyTable(
            marginal=marginal, mechanism=record, values=np.maximum(np.rint(gammas / grid), 1.0) * grid, grid=grid
        )
    values = np.empty(counts.array.size)
    cells = counts.array.ravel()
    for start in range(0, cells.size, BLOCK):  # cells are independent, and OpenDP works on lists
        values[start : start + BLOCK] = mechanism.draw(cells[start : start + BLOCK], rng)
    return NoisyTable(marginal=marginal, mechanism=record, values=values.reshape(counts.array.shape))
