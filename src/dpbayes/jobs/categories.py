"""Which texts occur often in a column: those whose count plus noise is above a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dpbayes.base.errors import InvalidArgument
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Make
from dpbayes.jobs.edges import after_discovery
from dpbayes.mechanisms.threshold import Threshold, threshold_for
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Answer, Paid, Release
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.engine import Engine, check_column


@dataclass(frozen=True, slots=True)
class Categories(BaseJob):
    """Discover the categories of one column. Rare texts stay hidden, whatever they are.

    The threshold is the smallest one that meets δ. With a person column, at most ``max_rows`` rows of each person are
    counted; without it, that bound is the owner's promise.
    """

    kind: ClassVar[str] = "categories"
    MAKES: ClassVar[Mapping[str, Make]] = {"categories": Make("one column")}
    column: str

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """The least noise for ε, and the smallest threshold for δ."""
        epsilon, delta = target.epsilon_delta or (0.0, 0.0)
        if not delta:
            raise InvalidArgument(
                "Categories: expected an (ε, δ) guarantee: a text that one person has may appear with δ."
            )
        made = _threshold(target, epsilon, delta, schema.unit)
        return Plan(
            job=self,
            schema=schema,
            target=target,
            paid=(Paid(mechanism=made),),
            choice=f"threshold: texts that about {made.threshold} rows have are found half the time, rarer ones seldom",
            about=f"categories of {self.column}",
            columns=(),
        )

    def outlook(self, plan: Plan) -> tuple[str, ...]:
        """What will be found and what will stay hidden, before anything is paid."""
        made: Threshold = plan.paid[0].mechanism  # type: ignore[assignment]
        hidden, found = made.hidden()
        known = plan.schema.records
        share = "" if not known else f" ({100 * found / known:.2g} % of all)"
        rarely = f"with {hidden:,} rows or fewer" if hidden > 0 else "of which the noise hides one in twenty"
        return (
            f"Categories of {self.column} {rarely} stay hidden, and those with {found:,} rows or more{share} are "
            "found, each with a probability of 95 % at least.",
            f"The threshold is {made.threshold:,} rows. How many categories will be found is not known yet.",
        )

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a column that is not there, or is of no use, from metadata alone."""
        BaseJob.check(self, table, plan)
        check_column(self.column, table.columns(), "categories")

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """The texts found, in alphabetical order; their noisy counts are thrown away."""
        made: Threshold = plan.paid[0].mechanism  # type: ignore[assignment]
        counted = table.values(self.column, plan.schema.unit, plan.schema.person)
        kept = made.draw(np.fromiter(counted.values(), dtype=np.int64, count=len(counted)), rng) if counted else ()
        found = tuple(sorted(text for text, keep in zip(counted, kept, strict=True) if keep))
        return Drawn(answers=(Answer(name=f"categories of {self.column}", by=0, values=found),))

    @classmethod
    def after(cls, release: Release, schema: Schema, folder: Path | None) -> str:
        """How the schema takes over what was found."""
        return after_discovery(release, schema, folder)


JOB = Categories


def _threshold(
    target: Guarantee, epsilon: float, delta: float, unit: Unit, *, steps: int = 16, near: float = 1.01
) -> Threshold:
    """The threshold for (ε, δ), or a higher one with a smaller δ where that uses less of a ledger's limit.

    A limit sets little of its δ aside for such betrayals, and a threshold that is higher by a few rows takes far less.
    δ is halved in ``steps``: at 2⁻¹⁶ of it a threshold is higher by eleven scales. Of those that use up to ``near``
    times what the best one does, the lowest is taken.
    """
    asked = threshold_for(epsilon=epsilon, delta=delta, unit=unit)
    if (charged := target.charged) is None:
        return asked
    higher = [threshold_for(epsilon=epsilon, delta=delta * 0.5**step, unit=unit) for step in range(steps)]
    parts = [charged.limit.used(charged.plus(Cost.of(made))) for made in higher]
    return next(made for made, part in zip(higher, parts, strict=True) if part <= near * min(parts))
