"""What a cost means for one person, in numbers that people can picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpbayes.jobs.base import Plan
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.studio import forecasts

BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The ε that a request is compared at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The same tables at one ε."""

    epsilon: float
    records: float
    """The largest ± of a cell."""
    verdict: str
    success: float
    """How often the best guess between two records of a person is right; one half is a coin."""
    fits: bool | None
    chosen: bool


def success(plan: Plan) -> float:
    """How often an attacker is right who knows all other rows and decides between two records of one person.

    The best test of two laws at total variation δ(0) is right with probability (1 + δ(0)) / 2.
    """
    return min((1.0 + float(plan.cost.delta(0.0))) / 2.0, 1.0)


def odds(plan: Plan) -> float | None:
    """The factor by which odds can change, where the target states one."""
    epsilon = getattr(plan.target, "epsilon", None)
    return None if epsilon is None or epsilon > 700.0 else math.exp(epsilon)


def alternatives(request: Request, plan: Plan, account: Account | None) -> list[Alternative]:
    """The request at several budgets, its own among them."""
    own = getattr(plan.target, "epsilon", None)
    if own is None or not forecasts.expected(plan):
        return []
    found = []
    for epsilon in sorted({*BUDGETS, float(own)}):
        other = (
            plan
            if epsilon == own
            else forecasts.planned(forecasts.with_epsilon(request, epsilon), plan.schema, account)
        )
        tables = forecasts.expected(other)
        order = ["good", "fair", "poor", ""]
        found.append(
            Alternative(
                epsilon=epsilon,
                records=max(each.table.records for each in tables),
                verdict=max((each.verdict for each in tables), key=order.index),
                success=success(other),
                fits=None if account is None else forecasts.affordable(other, account)[0],
                chosen=epsilon == own,
            )
        )
    return found
