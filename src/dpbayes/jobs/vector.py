"""A posterior draw of any vector that is a sum over rows: Dirichlet(r·f + α) for real f."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, one_joint, typed
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS, ConcentrationCurve
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Answer, Paid
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector(BaseJob):
    """One draw y ~ Dirichlet(r·f + α), where f adds up ``scores[cell]`` over all rows of a table.

    ``scores`` has a line for each cell of ``marginal``, row-major, and a column for each of the ``entries`` of f; all
    are public numbers, zero or above. How far f can move follows from them, and is priced by the published bound.
    Weight and concentrations are chosen, unless both are given: then the cost must meet the target as it is.

    Source: [RDP] section 4, f any vector with known sensitivities.
    """

    kind: ClassVar[str] = "vector"
    MAKES: ClassVar[Mapping[str, Make]] = {"vector": Make("one joint table", ("scores", "weight", "concentration"))}
    marginal: Marginal
    entries: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]
    weight: float | None = None
    concentration: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "marginal", Marginal.of_text(self.marginal))
        object.__setattr__(self, "entries", tuple(self.entries))
        object.__setattr__(self, "scores", tuple(tuple(float(score) for score in line) for line in self.scores))
        object.__setattr__(self, "concentration", tuple(float(alpha) for alpha in self.concentration))
        if len(set(self.entries)) < len(self.entries) or len(self.entries) < 2:
            raise InvalidArgument("Vector: expected the names of two entries or more, all different.")
        # the sensitivity compares every two cells: more would take long
        if not 0 < len(self.scores) <= 4096 or any(len(line) != len(self.entries) for line in self.scores):
            raise InvalidArgument(
                f"Vector: expected up to 4,096 lines of scores, each with {len(self.entries)} numbers."
            )
        for line in self.scores:
            checks.non_negative("Vector", **dict(zip(self.entries, line, strict=True)))
        if (self.weight is None) != (not self.concentration) or len(self.concentration) not in (
            0,
            1,
            len(self.entries),
        ):
            raise InvalidArgument("Vector: expected a weight with one concentration or one per entry, or neither.")

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Vector:
        """The scores are a CSV file: the table's attributes, then a column of numbers for each entry of f."""
        others = {name: value for name, value in keys.items() if name != "scores"}
        table, file = one_joint(kind, tables), keys.get("scores")
        if not isinstance(file, str) or setting.schema is None:
            raise InvalidArgument("Vector: expected scores, a CSV file, and the schema, which says what they are of.")
        entries, scores = _scores(setting.folder / file, table, setting.schema)
        return cls(marginal=table, entries=entries, scores=scores, **typed(cls, others))

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Derive the sensitivity from the scores, and calibrate."""
        cells = self.marginal.size(schema)
        if len(self.scores) != cells:
            raise InvalidArgument(f"Vector: expected scores for {cells} cells of {self.marginal}.")
        made = self._mechanism(schema, target)
        return Plan(
            job=self,
            schema=schema,
            target=target,
            paid=(Paid(mechanism=made),),
            choice="dirichlet: a vector is drawn by no other mechanism; priced by the published bound",
            about=f"draw of {', '.join(self.entries[:10])} from {self.marginal}",
            columns=self.marginal.names,
        )

    def _mechanism(self, schema: Schema, target: Guarantee) -> Dirichlet:
        moved = schema.unit.moved_by(self.scores)
        if self.weight is not None:
            alpha = self.concentration if len(self.concentration) > 1 else self.concentration[0]
            made = Dirichlet(weight=self.weight, concentration=alpha, unit=schema.unit, sensitivity=moved)
            if not target.gap(Cost.of(made)) <= 0:
                raise InvalidArgument(
                    f"Vector: this weight and these concentrations cost more than {target}. Lower the weight, raise "
                    "the concentrations, or leave both out."
                )
            return made
        records = schema.expected or REFERENCE_RECORDS
        total = max(round(records * float(np.sum(self.scores)) / len(self.scores)), 1)
        curve = ConcentrationCurve(target=target, unit=schema.unit, sensitivity=moved)
        return curve.best(purpose="draw", cells=len(self.entries), records=total)

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Count, add up the scores, and draw; the gammas are published, which say as much as the draw."""
        (counts,) = table.count(plan.schema, [self.marginal])
        totals: Floats = counts.array.ravel().astype(np.float64) @ np.asarray(self.scores)
        made: Dirichlet = plan.paid[0].mechanism  # type: ignore[assignment]  # the plan put it there
        values = tuple(float(value) for value in made.gammas(totals, rng))
        answer = Answer(name=f"gammas of {', '.join(self.entries)}", by=0, values=values)
        return Drawn(answers=(answer,), records=plan.schema.records if plan.schema.unit.fixed_size else None)


def _scores(path: Path, marginal: Marginal, schema: Schema) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """The public scores of every cell, from a CSV file; cells that are not in it score nothing."""
    axes = marginal.axes(schema)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error):
        raise InvalidArgument(f"Vector: {path} cannot be read as CSV with a header.") from None
    if header[: len(axes)] != list(marginal.names):
        raise InvalidArgument(f"Vector: expected the first columns of {path} to be {', '.join(marginal.names)}.")
    entries = tuple(header[len(axes) :])
    table = np.zeros((*marginal.shape(schema), len(entries)))
    for number, line in enumerate(lines, start=2):
        levels, numbers = line[: len(axes)], line[len(axes) :]
        try:
            cell = tuple(axis.levels.index(level) for axis, level in zip(axes, levels, strict=True))
            table[cell] = [float(text) for _, text in zip(entries, numbers, strict=True)]
        except ValueError:
            raise InvalidArgument(
                f"Vector: line {number} of {path} needs declared levels and {len(entries)} numbers."
            ) from None
    return entries, tuple(tuple(line) for line in table.reshape(-1, len(entries)).tolist())


JOB = Vector
