"""What a request would give and cost, before anything is read or paid: noise, budgets, risk, and example rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from dpbayes.base.display import rounded_down
from dpbayes.base.errors import InvalidArgument
from dpbayes.curator import Curator
from dpbayes.design.forecast import TableForecast, design_of, forecast, remarks, sentences
from dpbayes.design.noise import least
from dpbayes.design.plan import Plan
from dpbayes.jobs.base import plan_of
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.ledger.history import already
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.risk import BLIND, Risk, chords, membership, success
from dpbayes.release.format import Release
from dpbayes.release.products import complete
from dpbayes.schema.attribute import DROPPED, MISSING, OTHER, Attribute
from dpbayes.schema.schema import Schema
from dpbayes.words.report import VERDICTS

SEED = 4
"""Every preview of a request looks the same: nobody takes its numbers for news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What to expect of one table, with a verdict."""

    table: TableForecast
    verdict: str
    """``good``, ``fair`` or ``poor``; empty where that cannot be said."""

    @property
    def points(self) -> float | None:
        """± of a share, in percentage points: of all records, or within an average group of a conditional table."""
        return self.table.points if self.table.group_points is None else self.table.group_points

    @property
    def note(self) -> str:
        """Where the table comes from, if it is not measured itself."""
        if self.table.measured:
            return ""
        larger = self.table.derived_from
        return "is public already" if larger is None else f"follows from {larger}, at no cost of its own"


@dataclass(frozen=True)
class Outlook:
    """A plan, and what follows from it; computed when it is first asked for."""

    plan: Plan
    account: Account | None

    @cached_property
    def expected(self) -> list[Expected]:
        """The error of every table asked for."""
        return [Expected(table=each, verdict=verdict(each, self.plan.records)) for each in forecast(self.plan)]

    @cached_property
    def said(self) -> tuple[str, ...]:
        """The plan in sentences, where its product is no table whose error has a column."""
        return () if self.expected else sentences(self.plan)

    @property
    def worst(self) -> float:
        """The largest ± of any table, in records."""
        if not self.expected:
            raise InvalidArgument("studio: no error can be forecast for this mechanism.")
        return max(each.table.records for each in self.expected)

    @cached_property
    def sharing(self) -> list[str]:
        """What is published already, and how the tables help each other, in sentences."""
        design = design_of(self.plan)
        before = [] if self.account is None else already(self.account, self.plan.wanted)
        said = [*before[:6], *remarks(self.plan)]
        if design is not None and len(design.asked) > 1 and design.over_separate < 0.995:
            gained = 100.0 * (1.0 - design.over_separate)
            said.append(f"Planned together, errors are {gained:.0f} % smaller than those of separate, equal tables.")
        return said

    @cached_property
    def fits(self) -> bool | None:
        """Whether the ledger allows it; None before there is one."""
        return None if self.account is None else self.account.affords(self.plan.cost)

    @property
    def before(self) -> float:
        """What still fits now."""
        return 0.0 if self.account is None else self.account.left()

    @cached_property
    def after(self) -> float:
        """What would still fit afterwards."""
        if self.account is None or not self.fits:
            return 0.0
        return self.account.budget.left(self.account.charged.plus(self.plan.cost))


@lru_cache(maxsize=256)
def outlook_of(request: Request, schema: Schema, account: Account | None) -> Outlook:
    """The plan as the ledger would price it. No table is opened."""
    if account is not None and account.unit != schema.unit:
        raise InvalidArgument("Ledger: the ledger protects another unit than the schema declares.")
    plan = plan_of(request.job(schema), schema, request.guarantee(account), account=account)
    return Outlook(plan=plan, account=account)


def verdict(table: TableForecast, known: int | None) -> str:
    """Good is a table whose cells are off by at most a tenth of an average cell, and fair up to half of it."""
    if not known:
        return ""
    part = table.records * table.cells / known
    return "good" if part <= 0.1 else "fair" if part <= 0.5 else "poor"


def cheapest(request: Request, schema: Schema, account: Account | None, within: float) -> Request:
    """The request with the smallest budget, from 10⁻⁴ to what is left, at which no cell is off by more, at 95 %."""
    if not (math.isfinite(within) and within > 0):
        raise InvalidArgument("studio: expected a number of records above 0.")

    def enough(target: Guarantee) -> bool:
        return outlook_of(replace(request, target=target, open_delta=False), schema, account).worst <= within

    asked, most = request.guarantee(account), 100.0 if account is None else float(rounded_down(account.left(), 3))
    target = least(asked.of_size(most), enough, lowest=1e-4, tolerance=0.01) if most > 1e-4 else None
    if target is None:
        left = f"{asked.letter} = {most:.3g}" + (", all that still fits the limit" if account is not None else "")
        raise InvalidArgument(f"studio: every count within ± {within:g} would take more than {left}. Ask for less.")
    return replace(request, target=target, open_delta=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The same tables at one ε."""

    epsilon: float
    records: float
    """The largest ± of a cell."""
    verdict: str
    success: float
    """How often the best attacker is right where a coin is right half of the time."""
    fits: bool | None
    chosen: bool


def coin(plan: Plan) -> float:
    """How often the best attacker is right about a question that a coin would decide; it needs δ(0) alone."""
    first = float(plan.cost.delta(0.0))
    return membership(lambda _: first)


def risk_of(plan: Plan) -> Risk:
    """What the best attacker can do."""
    profile = chords(np.linspace(0.0, 12.0, 48), plan.cost.delta)
    guesses = tuple((blind, success(profile, blind)) for blind in BLIND if blind != 0.5)  # a coin has its own number
    return Risk(membership=coin(plan), guesses=guesses)


def alternatives(request: Request, outlook: Outlook) -> list[Alternative]:
    """The request at several budgets, its own among them."""
    plan, account = outlook.plan, outlook.account
    own = getattr(plan.target, "epsilon", None)
    if own is None or not outlook.expected:
        return []
    found = []
    # each has to be planned, so many tables are compared at fewer
    budgets = (0.25, 0.5, 1.0, 2.0, 4.0) if len(request.tables) <= 40 else (own / 2, own * 2)
    order = list(VERDICTS)
    for epsilon in sorted({*budgets, float(own)}):
        asked = replace(request, target=request.guarantee(account).of_size(epsilon), open_delta=False)
        other = outlook if epsilon == own else outlook_of(asked, plan.schema, account)
        found.append(
            Alternative(
                epsilon=epsilon,
                records=other.worst,
                verdict=max((each.verdict for each in other.expected), key=order.index),
                success=coin(other.plan),
                fits=other.fits,
                chosen=epsilon == own,
            )
        )
    return found


def rehearsal(schema: Schema, request: Request, account: Account | None) -> Release:
    """The first twenty tables of the release on up to 100,000 example rows; as it is seeded, it says it is not private.

    Each has the noise that all tables together would have.
    """
    job, target = request.job(schema), request.guarantee(account)
    marginals = request.marginals
    names = sorted({name for marginal in marginals for name in marginal.names}, key=schema.names.index)
    many = min(schema.expected or 10_000, 100_000)
    size = many if request.product == "posterior" else None
    public = replace(
        schema.project(names), person=None, unit=replace(schema.unit, person=None), records=size, margins=()
    )
    rng = np.random.default_rng(SEED)
    rows = pa.table({name: _column(public[name], many, rng) for name in names})
    curator = Curator(rows, public, seed=SEED)
    rule = target if account is None else account.priced(target)
    made = curator.release(job, rule, about=request.about, estimates=False)
    return complete(replace(made, promise=target, tables=made.tables[:20]))


def _column(attribute: Attribute, many: int, rng: np.random.Generator) -> pa.Array:
    """Values with random shares that no table has a part in, independent of every other column."""
    levels = list(attribute.levels)
    weights = rng.gamma(2.0, size=len(levels))
    for place, level in enumerate(levels):
        if level in (OTHER, MISSING, DROPPED) and level not in attribute.declared:
            weights[place] = 0.02 * weights.sum() / len(levels)
    chosen = rng.choice(len(levels), size=many, p=weights / weights.sum())
    values = [_value(attribute, place, level) for place, level in enumerate(levels)]
    return pa.array(values, pa.string()).take(pa.array(chosen))


def _value(attribute: Attribute, place: int, level: str) -> str | None:
    """A value that the schema counts at this level."""
    if attribute.edges and place < len(attribute.edges) - 1:
        low, high = attribute.edges[place], attribute.edges[place + 1]
        return repr(float(low if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0))
    if level in attribute.declared:
        return level
    return None if level == MISSING else "\u2060not listed"
