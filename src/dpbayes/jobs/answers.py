"""A plan in sentences: how exact each table will be, in records and percentage points, and what to think over."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from dpbayes.domain.marginal import Marginal
from dpbayes.inference.design import best_split
from dpbayes.jobs.base import Plan
from dpbayes.jobs.forecast import TableForecast, design_of, expected, forecast
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.cautions import cautions
from dpbayes.privacy.guarantee import Limit
from dpbayes.release.design import Design, searchable

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account

TELLING = 0.02
"""A gain in exactness below this share is not mentioned."""

MANY = 30
"""Beyond this many tables, nothing is said about what leaving out one of them gains: each takes a search."""


def sentences(plan: Plan) -> tuple[str, ...]:
    """One sentence or two for each table that was asked for, or what another job says of itself.

    >>> from dpbayes import ApproxDP, Attribute, PrivacyUnit, Schema, Tables
    >>> schema = Schema(id="s", unit=PrivacyUnit(adjacency="replace-one"), records=10_000,
    ...                 attributes=(Attribute(name="sex", categories=("F", "M")),))
    >>> print(sentences(Tables("sex", mechanism="gaussian").plan(schema, ApproxDP(epsilon=1, delta=1e-6)))[0])
    Each count of sex ± 11 records, shares ± 0.1 points; groups below about 21 records will not be readable.
    """
    outlook = getattr(plan.job, "outlook", None)
    return outlook(plan) if outlook is not None else tuple(_sentence(each) for each in forecast(plan))


def _sentence(found: TableForecast) -> str:
    about, least = named(found.marginal), f"groups below about {whole(found.readable_from)} will not be readable"
    if found.marginal.given and found.group_points is not None and found.group_records is not None:
        size = whole(found.group_records)
        said = f"Shares of {about} ± {points(found.group_points)} in a group of average size ({size}); {least}."
    elif found.records == 0:
        said = f"The counts of {about} are public already."
    else:
        shares = "" if found.points is None else f", shares ± {points(found.points)}"
        said = f"Each count of {about} ± {whole(found.records)}{shares}; {least}."
    if found.derived_from is not None:
        said += f" It follows from {named(found.derived_from)}, so no budget goes to it."
    return said


def remarks(plan: Plan) -> tuple[str, ...]:
    """What the split of the budget does: tables that others contain, and what leaving them out would gain."""
    design = design_of(plan)
    if design is None:
        return ()
    said = _redundant(plan, design)
    if design.added:
        listed = "; ".join(named(each) for each in design.added)
        said.append(f"Measured besides, because it makes the other tables more exact: {listed}.")
    return tuple(said)


def _redundant(plan: Plan, design: Design) -> list[str]:
    """Tables that others contain and that are measured all the same, with what the others would gain without them.

    The best split is found again for the other tables: its variances are in units of the whole budget, so both compare.
    """
    wanted = list(dict.fromkeys(design.ordered(each.names) for each in plan.wanted))
    inner = [each for each in plan.wanted if any(set(each.names) < set(other) for other in wanted)]
    if not inner or len(wanted) > MANY or not searchable(wanted):
        return []
    kind: Literal["laplace", "gaussian"] = "laplace" if design.laplace else "gaussian"
    measured, said = {each.marginal: each.share for each in design.measured}, []
    before = best_split(design.sizes, wanted, kind=kind, exact=design.exact).variance
    for each in inner:
        own, rest = design.ordered(each.names), [axes for axes in wanted if axes != design.ordered(each.names)]
        after = best_split(design.sizes, rest, kind=kind, exact=design.exact).variance
        ratios = [math.sqrt(after[axes] / before[axes]) for axes in rest if before[axes] > 0]
        gain = 1.0 - sum(ratios) / len(ratios) if ratios else 0.0
        if each in measured and gain >= TELLING:
            larger = min(
                (other for other in plan.wanted if set(own) < set(other.names)), key=lambda one: len(one.names)
            )
            said.append(
                f"{named(each)} takes {measured[each]:.0%} of the budget, though {named(larger)} contains it. Without "
                f"it the other tables would be {gain:.0%} more exact on average, and it would still follow from them, "
                "less exactly."
            )
    return said


def warnings(plan: Plan) -> tuple[str, ...]:
    """Guard rails: about the guarantee, and about noise that hides a table. Public numbers only."""
    known = expected(plan)
    said = list(cautions(plan.target, plan.schema.unit, records=known))
    for each in forecast(plan):
        if not known or each.records <= 0:
            continue
        if each.records >= known:
            said.append(
                f"The noise on {named(each.marginal)} (± {whole(each.records)}) is larger than the whole table "
                f"({whole(known)})."
            )
        elif each.cells > 1 and each.records >= known / each.cells:
            said.append(
                f"The noise on each count of {named(each.marginal)} (± {whole(each.records)}) is larger than its "
                f"average cell ({whole(known / each.cells)}). Merge categories, or ask for a smaller table."
            )
    return tuple(said)


def of_the_limit(plan: Plan, account: Account) -> tuple[float, str]:
    """Which share of its ledger's limit a plan takes; in a sentence, with what the other rule would take."""
    limit, costs = account.budget, list(account.costs.values())

    def taken(by: Limit) -> float:
        return by.used([*costs, plan.cost]) - by.used(costs)

    if not math.isfinite(share := taken(limit)):
        return share, "It takes more than the limit."
    said = f"It takes {100 * share:.3g} % of the limit of {limit}"
    if isinstance(limit, AdaptiveDP):
        other = replace(limit, rule="renyi" if limit.rule == "gaussian" else "gaussian", order=None)
        apart = taken(other)
        told = f"{100 * apart:.3g} %" if math.isfinite(apart) else "more than all"
        said += f" by the rule {limit.rule!r} of this ledger; by the rule {other.rule!r} it would take {told}"
    return share, f"{said}."


def named(marginal: Marginal) -> str:
    """A table for people.

    >>> named(Marginal.parse("sex,age")), named(Marginal.parse("income|sex,age"))
    ('sex × age', 'income within sex × age')
    """
    of, given = " × ".join(marginal.of), " × ".join(marginal.given)
    return f"{of} within {given}" if given else of


def whole(number: float) -> str:
    """Records for people, rounded up to what they are worth.

    >>> whole(11.2), whole(1234.5), whole(0.3)
    ('12 records', '1,240 records', '1 record')
    """
    rounded = max(-int(-number // 1), 1)
    if rounded >= 1000:
        rounded = -(-rounded // 10) * 10
    return "1 record" if rounded == 1 else f"{rounded:,} records"


def points(number: float) -> str:
    """Percentage points for people, two digits.

    >>> points(0.0812), points(3.14), points(1)
    ('0.081 points', '3.1 points', '1 point')
    """
    text = f"{number:.2g}"
    return f"{text} point" + ("" if text == "1" else "s")
