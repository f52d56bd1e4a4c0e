"""A plan: which mechanisms draw what a job asks for, at what cost, and why. The job is drawn once it is paid for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from dpbayes.base import display
from dpbayes.base.codec import Record
from dpbayes.base.display import rounded_down
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Answer, Paid, Table
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(display.Shown):
    """A calibrated job: which mechanisms, at what cost, and why. No data was read."""

    job: Job
    schema: Schema
    target: Guarantee
    paid: tuple[Paid, ...]
    choice: str
    about: str
    """One line for the ledger."""
    columns: tuple[str, ...]
    """The attributes that will be read."""
    tables: tuple[Marginal, ...] = ()
    """The tables that will be counted and drawn."""
    asked: tuple[Marginal, ...] = ()
    """The tables that were asked for, where they are not the same: some follow from others, some only help."""
    places: tuple[int, ...] = ()
    """Which of the mechanisms draws each table, and then each of the other things."""
    lock: str = ""
    """Names the charge in the ledger."""
    publication: dict[str, str] = field(default_factory=dict)
    """What the release says about itself: title, author, contact, purpose, supersedes."""
    account: Any = field(default=None, init=False, compare=False)
    """The account that it would be charged to, as it was when this was planned; no part of what is stored."""

    @property
    def wanted(self) -> tuple[Marginal, ...]:
        """The tables that readers get."""
        return self.asked or self.tables

    @property
    def records(self) -> int | None:
        """The number of records, declared or guessed."""
        return self.schema.expected

    @property
    def cells(self) -> int:
        """The cells of all tables in it."""
        return sum(each.size(self.schema) for each in {*self.tables, *self.asked})

    @property
    def cost(self) -> Cost:
        """What the whole job costs."""
        return Cost.total(Cost.of(paid.mechanism, paid.times) for paid in self.paid)

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        drawn = [f"{paid.times:,} × {paid.mechanism.record()['mechanism']}" for paid in self.paid]
        facts = [("plan", f"{self.job.kind} of {self.schema.id}"), ("choice", self.choice)]
        facts += [("draws", display.listed(drawn)), ("reads", display.listed(self.columns))]
        said = [display.listed(display.door("widths", self)) or self.about, str(self.target), *self._leaves()]
        return "; ".join([*said, "no row read"]), facts

    def _leaves(self) -> list[str]:
        """What would be left after it, in the ledger that it was planned for."""
        if self.account is None:
            return []
        left = self.account.budget.left(self.account.charged.plus(self.cost))
        return [f"leaves {rounded_down(left, 3)}" if left > 0 else "leaves nothing"]

    def __repr__(self) -> str:
        return self._facts()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a job drew: public from the moment it is kept."""

    tables: tuple[Table, ...] = ()
    answers: tuple[Answer, ...] = ()
    records: int | None = None
    """The number of records, where it is the same for all neighbours."""
    schema: Schema | None = None
    """The schema of the tables, where the job bought some of it."""
    job: Record | None = None
    """What the release says of the job, where that is not all of it."""
    private: bytes = field(default=b"", repr=False)
    """What has to outlive the draw and never leaves; the job puts it where it belongs once the draw is kept."""


class Job(Protocol):
    """A product that can be asked for."""

    kind: ClassVar[str]

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate. Looks at public numbers only; refuses what cannot be done."""

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a table that does not suit, from metadata alone, before anything is paid."""

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Read the table and draw: the only place where a job sees rows. Nothing leaves but what is drawn."""

    def record(self) -> Record:
        """JSON form, with its ``kind``."""
