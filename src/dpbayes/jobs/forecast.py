"""How exact each table of a plan will be, before anything is paid or read: from the linear law alone.

Nothing is simulated and no row is read, so it takes milliseconds. Numbers are those of the linear law. Printed
estimates are cut at zero and helped by what the tables have in common, so they are often better, never promised to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpbayes.domain.marginal import Marginal
from dpbayes.inference.intervals import reach
from dpbayes.jobs.base import Plan
from dpbayes.jobs.design import half_error
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.release.design import Design, described

READABLE = 0.5
"""A number whose 95 % interval reaches more than half of it to either side is called unreadable."""

HALF = 0.5
"""Of shares within groups, one of a half is forecast, as is usual in surveys."""

NOISY = (Dirichlet, Gaussian, Laplace)


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


def design_of(plan: Plan) -> Design | None:
    """What a plan measures, what each table costs and gains, and how near that is to the best split there is.

    None where the plan draws no noisy tables.
    """
    made = [(table, plan.paid[by].mechanism) for table, by in zip(plan.tables, plan.places, strict=False)]
    if not made or not all(isinstance(mechanism, NOISY) for _, mechanism in made):
        return None
    return described(plan.schema, plan.wanted, made, expected(plan))


def expected(plan: Plan) -> int | None:
    """The number of records, declared or guessed."""
    return plan.schema.records or getattr(plan.job, "expected_records", None)


def _forecast(marginal: Marginal, plan: Plan, design: Design) -> TableForecast:
    schema, known = plan.schema, expected(plan)
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
        readable_from=math.ceil(z * doubt / (READABLE * (HALF if marginal.given else 1.0))),
        derived_from=design.derived.get(marginal),
        measured=marginal not in design.derived,
    )
