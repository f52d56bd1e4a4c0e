"""Edges that cut a number into bins of about equal size: private quantiles on a public grid; and how a schema
takes over what was discovered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument, ReleaseError, SchemaError
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, of_type, one_column
from dpbayes.mechanisms.selection import Selection, numbers_below
from dpbayes.privacy.calibrate import Family, calibrate
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Answer, Paid, Release
from dpbayes.schema.attribute import LONGEST_NOTE, Attribute
from dpbayes.schema.file import check_same, entry, with_attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.engine import Engine, Kind, check_column


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """``bins`` bins of about equal mass between public bounds; edges lie on a public grid of candidates.

    Values outside the bounds count as lying at them. The edges found reach from −∞ to ∞, so that no number falls
    outside them.
    """

    lower: float
    upper: float
    bins: int = 10
    candidates: int = 1001

    def __post_init__(self) -> None:
        checks.positive_integer("Quantiles", bins=self.bins, candidates=self.candidates)
        for name in ("lower", "upper"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (np.isfinite([self.lower, self.upper]).all() and self.lower < self.upper):
            raise InvalidArgument("Quantiles: expected finite public bounds, the lower one below the upper one.")
        if self.bins < 2 or self.candidates < self.bins:
            raise InvalidArgument("Quantiles: expected 2 bins or more, and at least as many candidates.")

    @property
    def selections(self) -> int:
        """How many edges are chosen privately."""
        return self.bins - 1

    @property
    def grid(self) -> tuple[float, ...]:
        """The public candidates."""
        return tuple(np.linspace(self.lower, self.upper, self.candidates).tolist())

    def provisional(self, attribute: Attribute) -> Attribute:
        """The attribute with as many edges as there will be at most, for planning."""
        edges = (-math.inf, *np.linspace(self.lower, self.upper, self.bins + 1)[1:-1].tolist(), math.inf)
        return relevel(attribute, edges=edges)

    def counted(self, name: str) -> Attribute:
        """A column cut at all candidates: the table of this attribute is all that ``edges`` needs."""
        return Attribute(name=name, edges=(-math.inf, *self.grid, math.inf))

    def edges(
        self, table: Engine, name: str, schema: Schema, selection: Selection, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Count the column on the grid, and choose every edge by one selection; equal ones are merged.

        Source: docs/explanation/proofs/discovery.md.
        """
        fine = schema.with_attributes([self.counted(name)])
        (counts,) = table.count(fine, [Marginal((name,))])
        in_bins = counts.array[: self.candidates + 1]  # neither missing values nor what is no number
        below, rows, numbers = np.cumsum(in_bins)[:-1], int(in_bins.sum()), numbers_below(rng)
        chosen = set()
        for rank in range(1, self.bins):
            spread = 2 * self.moved(selection.unit, rank)
            chosen.add(self.grid[selection.choose(self.scores(below, rows, rank), spread=spread, below=numbers)])
        return (-math.inf, *sorted(chosen), math.inf)

    def scores(self, below: Ints, rows: int, rank: int) -> list[int]:
        """|b·B(c) − j·n|: how far a candidate is from cutting off the j-th of b equal parts.

        Symbols: b bins, j rank, B(c) rows below the candidate c, n rows.
        Source: our proof in docs/explanation/proofs/discovery.md.
        Adjacency: enters through ``moved``.
        """
        return [int(score) for score in np.abs(self.bins * below - rank * rows)]

    def moved(self, unit: Unit, rank: int) -> int:
        """m·b under replace-one, m·max(j, b−j) under add-remove: the most that a person moves any score.

        Symbols: m max_rows, b bins, j rank.
        Source: our proof in docs/explanation/proofs/discovery.md.
        Adjacency: both, as stated.
        """
        per_row = self.bins if unit.replaces else max(rank, self.bins - rank)
        return unit.max_rows * per_row


def selection_for(target: Guarantee, unit: Unit, *, times: int = 1) -> Selection:
    """The sharpest selection that meets the target when made several times."""
    family = Family(
        name="selection", make=lambda sharpness: Selection(sharpness=sharpness, unit=unit), larger_is_safer=False
    )
    return calibrate(family, target, times=times)


@dataclass(frozen=True, slots=True, init=False)
class Edges(BaseJob):
    """Discover the edges of one numeric column: ``Edges("age", 0, 120, bins=5)``."""

    kind: ClassVar[str] = "edges"
    MAKES: ClassVar[Mapping[str, Make]] = {"edges": Make("one column that holds numbers", ("bounds", "bins"))}
    column: str
    quantiles: Quantiles
    numeric: bool | None = None
    """The owner's word that the column holds numbers, where the table does not say: in a CSV file all is text."""

    def __init__(
        self,
        column: str,
        lower: float | None = None,
        upper: float | None = None,
        bins: int = 10,
        *,
        quantiles: Quantiles | None = None,
        numeric: bool | None = None,
    ) -> None:
        """Edges between public bounds, which say that the column holds numbers; or with ``quantiles`` of their own."""
        if quantiles is None:
            if lower is None or upper is None:
                raise InvalidArgument('Edges: expected public bounds of the column, as in Edges("age", 0, 120).')
            quantiles, numeric = Quantiles(lower=lower, upper=upper, bins=bins), True
        for name, value in (("column", column), ("quantiles", quantiles), ("numeric", numeric)):
            object.__setattr__(self, name, value)

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Edges:  # noqa: ARG003 - for others
        """Whoever knows the bounds of a column knows that it holds numbers."""
        bounds = of_type(tuple[float, ...], "bounds", keys.get("bounds", ()))
        if len(bounds) != 2:
            raise InvalidArgument(
                "Edges: expected bounds, the publicly known ends of the column, as in --set bounds=0:120."
            )
        bins = of_type(int, "bins", keys.get("bins", 10))
        cut = Quantiles(lower=bounds[0], upper=bounds[1], bins=bins)
        return cls(column=one_column(kind, tables), quantiles=cut, numeric=True)

    @classmethod
    def after(cls, release: Release, schema: Schema, folder: Path | None) -> str:
        """How the schema takes over what was found."""
        return after_discovery(release, schema, folder)

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """One selection for each edge, all of them within the target."""
        made = selection_for(target, schema.unit, times=self.quantiles.selections)
        return Plan(
            job=self,
            schema=schema,
            target=target,
            paid=(Paid(mechanism=made, times=self.quantiles.selections),),
            choice=f"selection: {self.quantiles.selections} private quantiles",
            about=f"edges of {self.column}",
            columns=(),
        )

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a column that is not numeric, from metadata alone."""
        BaseJob.check(self, table, plan)
        check_edges(table, self.column)
        if check_column(self.column, table.columns(), "edges") is Kind.TEXT and not self.numeric:
            raise SchemaError(
                f"Edges: the table does not say whether {self.column!r} holds numbers, and edges of anything else "
                "would be charged but meaningless. If it does, say so with numeric=True."
            )

    def outlook(self, plan: Plan) -> tuple[str, ...]:
        """How far from equal parts the edges may be, before anything is paid.

        t = R·ln(m/β)/(ε·b): a candidate whose score exceeds the best one by more is chosen with probability β at most.

        Symbols: R spread of the scores, m candidates, β one in twenty, ε sharpness, b bins.
        Source: [MT07] theorem 6, for the score of docs/explanation/proofs/discovery.md.
        Adjacency: enters through R.
        """
        made: Selection = plan.paid[0].mechanism  # type: ignore[assignment]
        cut = self.quantiles
        spread = max(2 * cut.moved(made.unit, rank) for rank in range(1, cut.bins))
        off = math.ceil(spread * math.log(cut.candidates / 0.05) / (made.sharpness * cut.bins))
        known = plan.schema.records
        share = "" if not known else f" ({min(100 * off / known, 100):.3g} points)"
        return (
            f"Each edge of {self.column} cuts off its share to within ± {off:,} rows{share}, with a probability of "
            f"95 %, as far as its grid of {cut.candidates:,} candidates from {cut.lower:g} to {cut.upper:g} allows.",
        )

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Choose the edges."""
        made: Selection = plan.paid[0].mechanism  # type: ignore[assignment]
        found = self.quantiles.edges(table, self.column, plan.schema, made, rng)
        return Drawn(answers=(Answer(name=f"edges of {self.column}", by=0, values=found),))


JOB = Edges


def relevel(attribute: Attribute, **found: Sequence[object]) -> Attribute:
    """The attribute with discovered categories or edges: what named its own levels goes, be it a label or a rule."""
    bare = {"categories": (), "edges": (), "dates": (), "period": None, "codes": (), "labels": ()}
    usual = {"unknown": "other", "missing": "category"}
    rules = {key: rule for key, rule in usual.items() if getattr(attribute, key) in attribute.declared}
    return replace(attribute, **{**bare, **rules, **found})  # type: ignore[arg-type]  # by name


def check_edges(table: Engine, column: str) -> None:
    """Refuse a column that cannot have edges, from metadata alone."""
    columns = table.columns()
    kind = check_column(column, columns, "edges")
    # a source in which everything is text, as a CSV file, says nothing about its columns
    if kind is Kind.TEXT and any(each.kind is not Kind.TEXT for each in columns):
        raise SchemaError(
            f"Edges: column {column!r} holds text, and edges are for numbers. Cast it, or discover categories."
        )


def adopt(release: Release, text: str) -> tuple[str, Attribute]:
    """The text of a schema file with what a release discovered, and the attribute that was added or replaced.

    The rest of the file, comments included, stays as it is.
    """
    if release.kind not in ("categories", "edges"):
        raise ReleaseError(
            f"Schema: expected a release of categories or edges, got one of {release.kind}. Discover them with "
            "`dpbayes release --as categories`, or --as edges."
        )
    faults = [check for check in release.verify().checks if not check.passed]
    if faults:
        raise ReleaseError(f"Schema: the release does not verify: {faults[0].name}: {faults[0].detail}.")
    schema = Schema.from_toml(text)
    if (release.dataset, release.unit) != (schema.id, schema.unit):
        raise SchemaError(
            f"Schema: the release is about {release.dataset!r} ({release.unit}), the schema about {schema.id!r} "
            f"({schema.unit}). Use the schema that it was discovered with."
        )
    made = discovered_attribute(release, schema)
    changed = with_attribute(text, made)
    check_same(Schema.from_toml(changed), made)
    return changed, made


def after_discovery(release: Release, schema: Schema, folder: Path | None) -> str:
    """The lines for the schema, and the command that writes them."""
    if not release.answers[0].values:
        return ""
    where, lines = "RELEASE" if folder is None else str(folder), entry(discovered_attribute(release, schema))
    return f"Lines for the schema (dpbayes schema adopt {where} SCHEMA writes them):\n{lines}"


def discovered_attribute(release: Release, schema: Schema) -> Attribute:
    """The attribute that a release of categories or edges declares, with where it comes from."""
    (answer,) = release.answers
    name = str(release.job["column"])
    if not answer.values:
        raise ReleaseError(
            f"Schema: no category of {name!r} was common enough to be found. Declare them, or discover with a larger ε."
        )
    source = f"released {release.created[:10]} as {release.id}, {release.promise}"[:LONGEST_NOTE]
    known = schema[name] if name in schema.names else Attribute(name=name, categories=("?",))
    values = {release.kind: answer.values}
    return replace(relevel(known, **values), source=source)
