"""What a request would give and cost, before anything is read or paid: plans, noise, and the budget for an accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.errors import DpbayesError, InvalidArgument
from dpbayes.jobs.base import Plan
from dpbayes.jobs.mechanisms import spread
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, PureDP

GOOD, FAIR = 0.1, 0.5
"""A table reads well if its cells are off by at most a tenth of an average cell, and is rough up to half of it."""

_Z = 1.959963984540054
"""Half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What to expect of one table."""

    marginal: Marginal
    cells: int
    records: float
    """± of a cell, in records: half a 95 % interval."""
    points: float | None
    """± of a cell's share, in percentage points; None if nobody guesses the number of records."""
    verdict: str
    """``good``, ``fair`` or ``poor``; empty where that cannot be said."""
    readable_from: int
    """Fewer records than this are hidden by noise."""
    follows_from: str = ""
    """A larger table that has this one in it."""

    @property
    def words(self) -> str:
        """The verdict in words."""
        return {"good": "reads well", "fair": "rough", "poor": "mostly noise", "": "size unknown"}[self.verdict]


def planned(request: Request, schema: Schema, account: Account | None) -> Plan:
    """The plan as the ledger would price it. No table is opened."""
    if account is not None and account.unit != schema.unit:
        raise InvalidArgument("Ledger: the ledger protects another unit than the schema declares.")
    head = account.head.hash if account is not None else ""
    return _planned(request.to_toml(), schema, head, _Account(account))


class _Account:
    """An account that a cache does not compare: its head does that."""

    def __init__(self, account: Account | None) -> None:
        self.account = account

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Account)


@lru_cache(maxsize=256)
def _planned(text: str, schema: Schema, _head: str, held: _Account) -> Plan:
    request = Request.from_toml(text)
    target = request.guarantee()
    rule = target if held.account is None else held.account.priced(target)
    return replace(request.job(schema).plan(schema, rule), target=target)


def expected(plan: Plan, request: Request) -> list[Expected]:
    """The noise on every table asked for."""
    schema = plan.schema
    known = schema.records or request.expected_records
    found = []
    for marginal, by in zip(plan.tables, plan.places, strict=False):
        cells = marginal.size(schema)
        half = _Z * spread(plan.paid[by].mechanism, (known or 0) / cells)
        larger = [other for other in plan.tables if set(marginal.names) < set(other.names)]
        found.append(
            Expected(
                marginal=marginal,
                cells=cells,
                records=half,
                points=None if not known else min(100.0 * half / known, 100.0),
                verdict=verdict(half, known, cells),
                readable_from=math.ceil(2.0 * half),
                follows_from=str(larger[0]) if larger else "",
            )
        )
    return found


def verdict(half: float, records: int | None, cells: int) -> str:
    """How the noise compares with an average cell."""
    if not records:
        return ""
    part = half * cells / records
    return "good" if part <= GOOD else "fair" if part <= FAIR else "poor"


def worst(request: Request, schema: Schema, account: Account | None) -> float:
    """The largest ± of any table, in records."""
    return max(each.records for each in expected(planned(request, schema, account), request))


def solved(request: Request, schema: Schema, account: Account | None, within: float) -> Request:
    """The request with the smallest ε at which no cell is off by more, at 95 %.

    Noise falls about as 1/ε, so a few steps of that rule, each rounded up, are enough.
    """
    if not (math.isfinite(within) and within > 0):
        raise InvalidArgument("studio: expected a number of records above 0.")
    epsilon = getattr(request.guarantee(), "epsilon", 1.0)
    for _ in range(12):
        found = worst(with_epsilon(request, epsilon), schema, account)
        if 0.97 * within <= found <= within:
            break
        epsilon = min(max(epsilon * found / (0.985 * within), 1e-4), 1e4)
    rounded = float(f"{epsilon:.3g}")
    while worst(with_epsilon(request, rounded), schema, account) > within:
        rounded = float(f"{rounded * 1.01:.3g}")
        if rounded > 1e4:
            raise InvalidArgument("studio: no budget makes these tables that exact. Ask for less.")
    return with_epsilon(request, rounded)


def with_epsilon(request: Request, epsilon: float) -> Request:
    """The same request at another ε."""
    target = request.guarantee()
    made: Guarantee
    if isinstance(target, ApproxDP):
        made = ApproxDP(epsilon=epsilon, delta=target.delta)
    elif isinstance(target, PureDP):
        made = PureDP(epsilon=epsilon)
    else:
        raise InvalidArgument("studio: an accuracy can be solved for under ε, or under ε and δ.")
    return replace(request, target=made)


def affordable(plan: Plan, account: Account | None) -> tuple[bool, float, float]:
    """Whether the ledger allows it, and what is left before and after."""
    if account is None:
        return True, 0.0, 0.0
    before = account.left()
    try:
        fits = account.affords(plan.cost)
        after = account.budget.left([*account.costs.values(), plan.cost]) if fits else 0.0
    except DpbayesError:
        return False, before, before
    return fits, before, after
