"""What a formula of a paper gives: the value as printed, the exact one, and which of them holds."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import numpy as np

from dpbayes._checks import Floats

T = TypeVar("T")

PAPERS = {"R": "RDP", "T": "tCDP", "F": "H-full", "A": "H-abstract", "N": "H-notes"}
"""The letter of a row, and the paper that the statement is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a paper: where it stands, what it says, the call that answers it, and its erratum."""

    row: str
    place: str
    says: str
    call: str
    erratum: str

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return PAPERS[self.row[0]]


@cache
def statements() -> dict[str, Statement]:
    """Every statement of the five documents, by row.

    >>> statements()["R33"].paper, statements()["R33"].place
    ('RDP', 'Thm 2')
    """
    text = files("dpbayes.papers").joinpath("statements.csv").read_text(encoding="utf-8")
    return {each["row"]: Statement(**each) for each in csv.DictReader(text.splitlines())}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result(Generic[T]):
    """A value of a paper. ``float(x)``, ``x[i]``, ``np.asarray(x)`` are what holds: the printed value if valid.

    ``rows`` are the statements that it answers, ``parts`` what belongs to it, as attributes under the paper's symbols.

    >>> x = Result("R33", 0.39, exact=1.0, valid=False, parts={"beta": 10})
    >>> float(x), x.printed, x.beta, x.place
    (1.0, 0.39, 10, '[RDP] Thm 2')
    """

    rows: str
    printed: T
    exact: T | None = None
    valid: bool = True
    corrected: T | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    def of(self, rows: str) -> Result[T]:
        """The same result as the answer of these rows."""
        return replace(self, rows=rows)

    @property
    def holds(self) -> T | None:
        """The printed value where it is valid, else the corrected one, else the exact one, None if neither is known."""
        if self.valid:
            return self.printed
        return self.exact if self.corrected is None else self.corrected

    @property
    def place(self) -> str:
        """Where it is printed."""
        first = statements()[self.rows.split()[0]]
        return f"[{first.paper}] {first.place}"

    @property
    def erratum(self) -> str | None:
        """What is wrong in print, from the table of statements."""
        return "; ".join(filter(None, dict.fromkeys(statements()[row].erratum for row in self.rows.split()))) or None

    def __float__(self) -> float:
        value: Any = self.holds
        if value is None:
            raise TypeError(f"{self.place}: the printed value does not hold, and nothing is known in its place.")
        return float(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.holds, dtype=dtype)

    def __getitem__(self, at: Any) -> Any:
        return np.asarray(self.holds)[at]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self.parts:
            return self.parts[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.parts})

    def __repr__(self) -> str:
        said = [f"printed {shown(self.printed)}" + ("" if self.valid else ", which does not hold")]
        said += [f"corrected {shown(self.corrected)}"] if self.corrected is not None else []
        said += [f"exact {shown(self.exact)}"] if self.exact is not None else []
        said += [f"{name} {shown(value)}" for name, value in self.parts.items() if not callable(value)]
        return f"{self.place}: " + ", ".join(said) + (f". Erratum: {self.erratum}" if self.erratum else "")


def shown(value: object) -> str:
    """A value to six digits."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return np.array2string(np.asarray(value), precision=6, threshold=12, separator=", ")
    return str(value)
