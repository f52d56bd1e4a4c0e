"""How exact each table of a plan will be, in numbers and in sentences, before anything is paid or read.

Nothing is simulated and no row is read, so it takes milliseconds. Numbers are those of the linear law. Printed
estimates are cut at zero and helped by what the tables have in common, so they are often better, never promised to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpbayes.base.display import rounded_up
from dpbayes.design.design import Design, describe, half_error, searchable
from dpbayes.design.plan import Plan
from dpbayes.inference.intervals import reach
from dpbayes.inference.split import Kind, best_split
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.kinds import TableNoise
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS
from dpbayes.privacy.risk import cautions
from dpbayes.schema.marginal import Marginal

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForecast:
    """What to expect of one table that was asked for."""

    marginal: Marginal
    """Which table."""
    cells: int
    """How many numbers it has."""
    groups: int
    """How many rows it has, each with shares of its own; one in a joint table."""
    standard_error: float
    """Of a cell, in records."""
    records: float
    """± of a cell, in records: half the width of an interval of the job's level, 95 % by default."""
    points: float | None
    """± of a cell's share of all records, in percentage points; None if their number is not known or guessed."""
    group_records: float | None
    """The size of an average group of a conditional table, in records."""
    group_points: float | None
    """± of a share of one half within such a group, in percentage points."""
    readable_from: int
    """Cells, or groups of a conditional table, with fewer records are unreadable: the 95 % interval of the count, or of
    a share of one half within the group, reaches more than half of it to either side."""
    derived_from: Marginal | None
    """The measured table that it follows from, where it is not measured itself."""
    measured: bool
    """Whether it is measured itself."""


def forecast(plan: Plan) -> tuple[TableForecast, ...]:
    """What to expect of every table that a plan was asked for, in that order; none where there are no such tables."""
    design = design_of(plan)
    return () if design is None else tuple(_forecast(each, plan, design) for each in plan.wanted)


def widths(plan: Plan) -> list[str]:
    """How exact each table will be, in short: half the width of an interval, in points where that can be said."""
    said = []
    for each in forecast(plan):
        points = each.group_points if each.marginal.given else each.points
        said.append(f"{each.marginal} ± {each.records:.2g} records" if points is None else
                    f"{each.marginal} ± {points:.2g} points")  # fmt: skip
    return said


def design_of(plan: Plan) -> Design | None:
    """What a plan measures, what each table costs and gains, and how near that is to the best split there is.

    None where the plan draws no noisy tables.
    """
    made = [(table, plan.paid[by].mechanism) for table, by in zip(plan.tables, plan.places, strict=False)]
    if not made or not all(isinstance(mechanism, (Dirichlet, TableNoise)) for _, mechanism in made):
        return None
    return describe(plan.schema, plan.wanted, made, plan.records)


def _forecast(marginal: Marginal, plan: Plan, design: Design) -> TableForecast:
    schema, known = plan.schema, plan.records
    z = reach(getattr(plan.job, "level", 0.95))
    error = math.sqrt(design.variance(marginal.names))
    groups = math.prod(marginal.shape(schema)[: len(marginal.given)])
    typical = known / groups if known and marginal.given else None
    doubt = half_error(design, marginal.names, marginal.given) if marginal.given else error
    return TableForecast(
        marginal=marginal,
        cells=marginal.size(schema),
        groups=groups,
        standard_error=error,
        records=z * error,
        points=None if known is None else min(100 * z * error / known, 100.0),
        group_records=typical,
        group_points=None if typical is None else min(100 * z * doubt / typical, 100.0),
        # the 95 % interval reaches half of the number to either side
        readable_from=math.ceil(z * doubt / (0.5 * (0.5 if marginal.given else 1.0))),
        derived_from=design.derived.get(marginal),
        measured=marginal not in design.derived,
    )


def preview(plan: Plan) -> dict[str, Any]:
    """Mechanisms, cost and the error to expect in every table; public numbers only."""
    schema, gap, design = plan.schema, plan.target.gap(plan.cost), design_of(plan)
    gains = {} if design is None else design.gains()
    forecasts = {each.marginal: each for each in forecast(plan)}
    by = dict(zip(plan.tables, plan.places, strict=False))
    tables = []
    for marginal in plan.wanted:
        drawn = plan.paid[by[marginal]].mechanism.record() if marginal in by else None
        entry = {"table": str(marginal), "cells": marginal.size(schema), "mechanism": drawn}
        tables.append(entry | _errors(forecasts.get(marginal)))
    return {
        "job": plan.job.record(),
        "choice": plan.choice,
        "target": str(plan.target),
        "cost": rounded_up(plan.target.size + gap),
        "gap": gap,
        "paid": [{"mechanism": paid.mechanism.record(), "times": paid.times} for paid in plan.paid],
        "columns": [*([] if schema.person is None else [schema.person]), *plan.columns],
        "records_assumed": plan.records or REFERENCE_RECORDS,
        "tables": tables,
        "measured": [
            {
                "table": str(each.marginal),
                "share": each.share,
                "errors_without_it": gains[each.marginal],  # how many times as large
                "asked": each.asked,
            }
            for each in (() if design is None else design.measured)
        ],
        "over_optimum": None if design is None else design.over_optimum,
        "rows_read": 0,
    }


def _errors(found: TableForecast | None) -> dict[str, Any]:
    if found is None:
        return {"standard_deviation": None}
    return {
        "standard_deviation": found.standard_error,
        "plus_minus_records": found.records,
        "plus_minus_points": found.points,
        "group_records": found.group_records,
        "plus_minus_group_points": found.group_points,
        "readable_from": found.readable_from,
        "derived_from": None if found.derived_from is None else str(found.derived_from),
    }


def sentences(plan: Plan) -> tuple[str, ...]:
    """One sentence or two for each table that was asked for, or what another job says of itself.

    >>> from dpbayes import ApproxDP, Attribute, Unit, Schema, Tables
    >>> schema = Schema(id="s", unit=Unit(adjacency="replace-one"), records=10_000,
    ...                 attributes=(Attribute(name="sex", categories=("F", "M")),))
    >>> print(sentences(Tables("sex", mechanism="gaussian").plan(schema, ApproxDP(epsilon=1, delta=1e-6)))[0])
    Each count of sex ± 11 records, shares ± 0.1 points; groups below about 21 records will not be readable.
    """
    outlook = getattr(plan.job, "outlook", None)
    return outlook(plan) if outlook is not None else tuple(_sentence(each) for each in forecast(plan))


def _sentence(found: TableForecast) -> str:
    about, least = name_of(found.marginal), f"groups below about {whole(found.readable_from)} will not be readable"
    if found.marginal.given and found.group_points is not None and found.group_records is not None:
        size = whole(found.group_records)
        said = f"Shares of {about} ± {points(found.group_points)} in a group of average size ({size}); {least}."
    elif found.records == 0:
        said = f"The counts of {about} are public already."
    else:
        shares = "" if found.points is None else f", shares ± {points(found.points)}"
        said = f"Each count of {about} ± {whole(found.records)}{shares}; {least}."
    if found.derived_from is not None:
        said += f" It follows from {name_of(found.derived_from)}, so nothing is spent on it."
    return said


def remarks(plan: Plan) -> tuple[str, ...]:
    """What the split of the budget does: tables that others contain, and what leaving them out would gain."""
    design = design_of(plan)
    if design is None:
        return ()
    said = _redundant(plan, design)
    if design.added:
        listed = "; ".join(name_of(each) for each in design.added)
        said.append(f"Measured besides, because it makes the other tables more exact: {listed}.")
    return tuple(said)


def _redundant(plan: Plan, design: Design) -> list[str]:
    """Tables that others contain and that are measured all the same, with what the others would gain without them.

    The best split is found again for the other tables: its variances are in units of the whole budget, so both compare.
    """
    wanted = list(dict.fromkeys(design.ordered(each.names) for each in plan.wanted))
    inner = [each for each in plan.wanted if any(set(each.names) < set(other) for other in wanted)]
    # beyond 30 tables nothing is said: each takes a search
    if not inner or len(wanted) > 30 or not searchable(wanted):
        return []
    kind: Kind = "laplace" if design.laplace else "gaussian"
    measured, said = {each.marginal: each.share for each in design.measured}, []
    before = best_split(design.sizes, wanted, kind=kind, exact=design.exact).variance
    for each in inner:
        own, rest = design.ordered(each.names), [axes for axes in wanted if axes != design.ordered(each.names)]
        after = best_split(design.sizes, rest, kind=kind, exact=design.exact).variance
        ratios = [math.sqrt(after[axes] / before[axes]) for axes in rest if before[axes] > 0]
        gain = 1.0 - sum(ratios) / len(ratios) if ratios else 0.0
        if each in measured and gain >= 0.02:  # smaller ones are not worth a sentence
            larger = min(
                (other for other in plan.wanted if set(own) < set(other.names)), key=lambda one: len(one.names)
            )
            said.append(
                f"{name_of(each)} takes {measured[each]:.0%} of the guarantee, though {name_of(larger)} contains it. "
                f"Without it the other tables would be {gain:.0%} more exact on average, and it would still follow "
                "from them, less exactly."
            )
    return said


def warnings(plan: Plan) -> tuple[str, ...]:
    """Guard rails: about the guarantee, and about noise that hides a table. Public numbers only."""
    known = plan.records
    said = list(cautions(plan.target, plan.schema.unit, records=known))
    for each in forecast(plan):
        if not known or each.records <= 0:
            continue
        if each.records >= known:
            said.append(
                f"The noise on {name_of(each.marginal)} (± {whole(each.records)}) is larger than the whole table "
                f"({whole(known)})."
            )
        elif each.cells > 1 and each.records >= known / each.cells:
            said.append(
                f"The noise on each count of {name_of(each.marginal)} (± {whole(each.records)}) is larger than its "
                f"average cell ({whole(known / each.cells)}). Merge categories, or ask for a smaller table."
            )
    return tuple(said)


def of_the_limit(plan: Plan, account: Account, least: float = 0.0) -> tuple[float, str]:
    """Which share of its ledger's limit a plan takes; if not below the least, with what the other rule would take."""
    limit, charged = account.budget, account.charged
    share = limit.used(charged.plus(plan.cost)) - limit.used(charged)
    if not math.isfinite(share):
        return share, "It takes more than the limit."
    said = f"It takes {100 * share:.3g} % of the limit of {limit}"
    if share >= least and (other := limit.other_rule) is not None:
        costs = list(account.costs.values())
        apart = other.used([*costs, plan.cost]) - other.used(costs)
        told = f"{100 * apart:.3g} %" if math.isfinite(apart) else "more than all"
        said += f" by the rule {limit.rule!r} of this ledger; by the rule {other.rule!r} it would take {told}"
    return share, f"{said}."


def name_of(marginal: Marginal) -> str:
    """A table for people.

    >>> name_of(Marginal.parse("sex,age")), name_of(Marginal.parse("income|sex,age"))
    ('sex × age', 'income within sex × age')
    """
    of, given = " × ".join(marginal.of), " × ".join(marginal.given)
    return f"{of} within {given}" if given else of


def whole(number: float) -> str:
    """A number of records with its unit, rounded up to three digits.

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
