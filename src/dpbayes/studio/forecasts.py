"""What a request would give and cost, before anything is read or paid: plans, noise, and the budget for an accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, cast

from dpbayes.design.forecast import TableForecast, design_of, forecast, remarks, sentences
from dpbayes.design.plan import Plan
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.base import planned as plan_of
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.ledger.history import already
from dpbayes.privacy.guarantee import Guarantee, rounded_down

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger

MOST_SAID = 6
"""Sentences about tables that are published already; more are no help."""

LEAST, MOST = 1e-4, 100.0
"""The ε that are looked at for an accuracy; a ledger allows fewer."""

STEPS = 12
"""Plans that are made for an accuracy."""

GOOD, FAIR = 0.1, 0.5
"""A table reads well if its cells are off by at most a tenth of an average cell, and is rough up to half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What to expect of one table, with a verdict."""

    table: TableForecast
    verdict: str
    """``good``, ``fair`` or ``poor``; empty where that cannot be said."""

    @property
    def words(self) -> str:
        """The verdict in words."""
        return {"good": "reads well", "fair": "rough", "poor": "mostly noise", "": "size unknown"}[self.verdict]

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
        known = self.plan.records
        return [Expected(table=each, verdict=verdict(each, known)) for each in forecast(self.plan)]

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
        said = [*before[:MOST_SAID], *remarks(self.plan)]
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
        return self.account.budget.left([*self.account.costs.values(), self.plan.cost])


def planned(request: Request, schema: Schema, account: Account | None) -> Outlook:
    """The plan as the ledger would price it. No table is opened."""
    if account is not None and account.unit != schema.unit:
        raise InvalidArgument("Ledger: the ledger protects another unit than the schema declares.")
    head = account.head.hash if account is not None else ""
    return _planned(request.to_toml(), schema, head, None if account is None else _Account(account))


class _Account:
    """What planning asks of a ledger, answered by one account; a cache does not compare it: its head does that."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def account(self, _dataset: str) -> Account:
        """The account."""
        return self._account

    def priced(self, _dataset: str, target: Guarantee) -> Guarantee:
        """A target as the ledger prices it."""
        return self._account.priced(target)

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Account)


@lru_cache(maxsize=256)
def _planned(text: str, schema: Schema, _head: str, held: _Account | None) -> Outlook:
    request = Request.from_toml(text)
    made = plan_of(request.job(schema), schema, request.target, ledger=cast("Ledger | None", held))
    return Outlook(plan=made, account=None if held is None else held.account(schema.id))


def verdict(table: TableForecast, known: int | None) -> str:
    """How the noise compares with an average cell."""
    if not known:
        return ""
    part = table.records * table.cells / known
    return "good" if part <= GOOD else "fair" if part <= FAIR else "poor"


def solved(request: Request, schema: Schema, account: Account | None, within: float) -> Request:
    """The request with the smallest ε, up to what is left, at which no cell is off by more, at 95 %.

    Noise falls about as 1/ε. So a few steps of that rule are enough, kept between an ε that is too small and one that
    is large enough; they are counted, so that the search ends.
    """
    if not (math.isfinite(within) and within > 0):
        raise InvalidArgument("studio: expected a number of records above 0.")
    low, high = LEAST, MOST if account is None else float(rounded_down(account.left(), 3))
    if high <= low or planned(with_epsilon(request, high), schema, account).worst > within:
        left = f"ε = {high:.3g}" + (", all that still fits the budget" if account is not None else "")
        raise InvalidArgument(f"studio: every count within ± {within:g} would take more than {left}. Ask for less.")
    epsilon = min(max(getattr(request.guarantee(), "epsilon", 1.0), low), high)
    for _ in range(STEPS):
        found = planned(with_epsilon(request, epsilon), schema, account).worst
        low, high = (epsilon, high) if found > within else (low, epsilon)
        by_rule, between = (float(f"{each:.3g}") for each in (epsilon * found / (0.985 * within), (low * high) ** 0.5))
        epsilon = by_rule if low < by_rule < high else between
        if 0.97 * within <= found <= within or not low < epsilon < high:
            break
    return with_epsilon(request, high)


def with_epsilon(request: Request, epsilon: float) -> Request:
    """The same request at another ε."""
    target = request.guarantee()
    if target.epsilon_delta is None:
        raise InvalidArgument("studio: an accuracy can be solved for under ε, or under ε and δ.")
    return replace(request, target=target.of_size(epsilon))
