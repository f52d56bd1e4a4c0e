"""What one privacy promise protects: who counts as a neighbour, and how far a table can move."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument


class Adjacency(StrEnum):
    """Which data sets are neighbours."""

    REPLACE_ONE = "replace-one"
    """The records of one person are replaced by others: the number of records is public, unless people are named."""

    ADD_REMOVE = "add-remove"
    """The records of one person are added or deleted: the number of records is private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far a vector of counts moves between neighbours: ℓ₁, squared ℓ₂ and ℓ∞ distance."""

    l1: float
    l2_squared: float
    linf: float

    def __post_init__(self) -> None:
        checks.positive("Sensitivity", l1=self.l1, l2_squared=self.l2_squared, linf=self.linf)


@dataclass(frozen=True, slots=True)
class Unit:
    """One person: an adjacency, and the largest number of rows a person has in the table.

    ``person`` names the column that identifies people, where engines hold them to that number. Without it a person is
    whoever owns a row, by the owner's word: the two are different promises, and no ledger adds them up.

    >>> Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=2).sensitivity
    Sensitivity(l1=4, l2_squared=8, linf=2)
    """

    adjacency: Adjacency
    max_rows: int = 1
    person: str | None = None

    def __post_init__(self) -> None:
        if self.adjacency not in tuple(Adjacency):
            raise InvalidArgument(f"Unit: expected adjacency replace-one or add-remove, got {self.adjacency!r}.")
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        checks.positive_integer("Unit", max_rows=self.max_rows)
        object.__setattr__(self, "max_rows", int(self.max_rows))
        if self.person is not None and not (isinstance(self.person, str) and self.person and self.person.isprintable()):
            raise InvalidArgument("Unit: expected person to be the name of a column.")

    @property
    def replaces(self) -> bool:
        """Whether neighbours have the records of one person replaced, rather than added or removed."""
        return self.adjacency is Adjacency.REPLACE_ONE

    @property
    def fixed_size(self) -> bool:
        """Whether all neighbours have the same number of records, so that it is public.

        With a person column they need not: the rows that replace a person's may lack the person, and do not count.
        """
        return self.replaces and self.person is None

    @property
    def sensitivity(self) -> Sensitivity:
        """The only source of sensitivities: m rows move a table by (m, m², m), or by (2m, 2m², m) if replaced."""
        sides = 2 if self.replaces else 1
        rows = self.max_rows
        return Sensitivity(l1=sides * rows, l2_squared=sides * rows**2, linf=rows)

    def moved_by(self, scores: ArrayLike) -> Sensitivity:
        """How far f = Σ over rows of scores[cell] moves: m·max over cells i, j of ‖s_i − s_j‖, or of ‖s_i‖

        Symbols: m max_rows, s_i the scores of cell i. Raised by 10⁻⁹, which covers the rounding of the sums.
        Source: docs/explanation/proofs/conditional-tables.md, a sum over rows.
        Adjacency: differences of two cells for a replaced row, a cell's own scores for one that is added. With a person
        column both: the row that replaces a person's may name nobody, and then adds nothing.

        >>> Unit(adjacency=Adjacency.REPLACE_ONE).moved_by([[0.5, 0.0], [0.0, 2.0]]).l2_squared
        4.25000000425
        """
        table = np.asarray(scores, dtype=np.float64)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
            raise InvalidArgument("Unit: expected one row of finite scores for each cell.")
        others = table if self.replaces else table[:0]
        if not self.fixed_size:
            others = np.vstack([others, np.zeros_like(table[:1])])
        widest = np.zeros(3)
        for row in table:
            moved = np.abs(others - row)
            each = moved.sum(axis=1), np.square(moved).sum(axis=1), moved.max(axis=1)
            widest = np.maximum(widest, [part.max() for part in each])
        if not widest.all():
            raise InvalidArgument("Unit: all cells score the same, so nothing depends on the rows.")
        l1, l2_squared, linf = (float(part) * (1.0 + 1e-9) for part in widest)
        rows = self.max_rows
        return Sensitivity(l1=rows * l1, l2_squared=rows**2 * l2_squared, linf=rows * linf)

    def record(self) -> dict[str, str | int]:
        """JSON form."""
        fixed: dict[str, str | int] = {"adjacency": str(self.adjacency), "max_rows": self.max_rows}
        return fixed if self.person is None else fixed | {"person": self.person}

    @classmethod
    def from_record(cls, record: object) -> Unit:
        """Read the JSON form back."""
        if not isinstance(record, dict) or set(record) - {"person"} != {"adjacency", "max_rows"}:
            raise InvalidArgument("Unit: expected a record with adjacency and max_rows, and perhaps a person.")
        if record.get("person", "") is None:
            raise InvalidArgument("Unit: expected person to be the name of a column.")
        return cls(**record)

    @property
    def text(self) -> str:
        """As one writes it: ``replace-one``, ``add-remove:5``; a person column is named apart."""
        return str(self.adjacency) + (f":{self.max_rows}" if self.max_rows > 1 else "")

    @classmethod
    def of(cls, unit: object, person: str | None = None) -> Unit:
        """A unit, or the text of one: the adjacency, and after a colon the most rows of a person.

        >>> str(Unit.of("add-remove:5"))
        "add-remove, at most 5 rows per person, by the owner's word"
        """
        if isinstance(unit, cls):
            return unit
        form = re.fullmatch(r"(replace-one|add-remove)(?::([1-9]\d{0,8}))?", unit) if isinstance(unit, str) else None
        if form is None:
            raise InvalidArgument(
                f"Unit: expected the unit to be replace-one or add-remove, with the most rows of a person "
                f"after a colon, as in add-remove:5, got {unit!r}."
            )
        return cls(adjacency=Adjacency(form[1]), max_rows=int(form[2] or 1), person=person)

    def __str__(self) -> str:
        rows = "one row" if self.max_rows == 1 else f"{self.max_rows} rows"
        whose = "by the owner's word" if self.person is None else f"held to it by the column {self.person!r}"
        return f"{self.adjacency}, at most {rows} per person, {whose}"
