"""What a formula of a paper gives, printed and exact, and the figures and tables as they were computed again."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from dpbayes.base import display
from dpbayes.base.checks import Floats
from dpbayes.base.errors import DpbayesError, InvalidArgument

T = TypeVar("T")

PAPERS = {"R": "RDP", "T": "tCDP", "F": "H-full", "A": "H-abstract", "N": "H-notes"}
"""The letter of a row, and the paper that the statement is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a paper, and what answers it."""

    row: str
    """A letter for the paper and a number."""
    place: str
    """Where it stands."""
    says: str
    """What it says, in short."""
    call: str
    """Calls that answer it, with arguments that run, between semicolons."""
    also: str
    """Nouns of the library or pages that answer it; or "nothing:" and why."""
    figure: str
    """The experiment that looks at it."""
    erratum: str
    """What is wrong in print."""

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return PAPERS[self.row[0]]

    @property
    def calls(self) -> list[str]:
        """Each call that answers it."""
        return [call.strip() for call in self.call.split(";") if call.strip()]

    def __str__(self) -> str:
        answered = self.call or self.also or self.figure
        return f"{self.row} [{self.paper}] {self.place}: {self.says.rstrip('.')}. → {answered}"


@cache
def _rows() -> dict[str, Statement]:
    text = files("dpbayes.papers").joinpath("statements.csv").read_text(encoding="utf-8")
    return {each["row"]: Statement(**each) for each in csv.DictReader(text.splitlines())}


def statements(paper: str | None = None) -> tuple[Statement, ...]:
    """Every statement of the five documents, or of one.

    Args:
        paper: rdp, tcdp, h-full, h-abstract, h-notes; or hellinger, for the last three.

    >>> [statement.place for statement in statements("rdp")[32:34]]
    ['Theorem 2', 'Section 4, display']
    """
    known = {name.lower() for name in PAPERS.values()} | {"hellinger"}
    if paper is None:
        return tuple(_rows().values())
    asked = str(paper).lower()
    if asked not in known:
        raise InvalidArgument(f"papers: expected one of {', '.join(sorted(known))}, got {asked[:40]!r}.")
    chosen = ("h-full", "h-abstract", "h-notes") if asked == "hellinger" else (asked,)
    return tuple(each for each in _rows().values() if each.paper.lower() in chosen)


def errata(paper: str | None = None) -> tuple[Statement, ...]:
    """The statements of which something is wrong in print.

    Args:
        paper: As in ``statements``.

    >>> [statement.place for statement in errata("h-full") if statement.erratum.startswith("False")]
    ['Theorem 4.5']
    """
    return tuple(each for each in statements(paper) if each.erratum)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result(display.Shown, Generic[T]):
    """A value of a paper. ``float(x)``, ``x[i]``, ``np.asarray(x)`` are what holds: the printed value if valid.

    >>> x = Result("R33", 0.39, exact=1.0, valid=False, parts={"beta": 10})
    >>> float(x), x.printed, x.beta, x.place
    (1.0, 0.39, 10, '[RDP] Theorem 2')
    """

    rows: str
    """The statements that it answers."""
    printed: T
    """As the paper has it."""
    exact: T | None = None
    """The exact value, where one is known."""
    valid: bool = True
    """Whether the printed value holds."""
    corrected: T | None = None
    """What holds instead, if that is not the exact value."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """What belongs to it, as attributes under the paper's symbols."""

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
        first = _rows()[self.rows.split()[0]]
        return f"[{first.paper}] {first.place}"

    @property
    def erratum(self) -> str | None:
        """What is wrong in print, from the table of statements."""
        return " ".join(filter(None, dict.fromkeys(_rows()[row].erratum for row in self.rows.split()))) or None

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
        place, facts = self._facts()
        said = ", ".join(f"{name} {value}" for name, value in facts if name != "erratum")
        return f"{place}: {said}" + (f". Erratum: {self.erratum}" if self.erratum else "")

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        values = {"corrected": self.corrected, "exact": self.exact, **self.parts, "erratum": self.erratum}
        facts = [("printed", shown(self.printed) + ("" if self.valid else ", which does not hold"))]
        facts += [(name, shown(each)) for name, each in values.items() if each is not None and not callable(each)]
        return self.place, facts


def shown(value: object) -> str:
    """A value to six digits."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return np.array2string(np.asarray(value), precision=6, threshold=12, separator=", ")
    return str(value)


RESULTS = Path("experiments", "results")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reproduction:
    """A figure or table computed again: the claims of the paper with what was measured, rows and picture.

    ``str()`` says how each claim came out.
    """

    name: str
    """Paper and figure."""
    results: tuple[dict[str, Any], ...]
    """What the experiments stored: settings, claims, digests."""
    folder: Path
    """The checkout."""

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What the paper says, what was measured, and the verdict."""
        return [claim for result in self.results for claim in result["claims"]]

    @property
    def verdicts(self) -> Counter[str]:
        """How many claims of the paper agree, differ, or cannot be known."""
        return Counter(claim["verdict"] for claim in self.claims if not claim["ours"])

    @property
    def pictures(self) -> list[Path]:
        """The figures, as PNG files."""
        return [self.folder / "docs" / "reproduction" / f"{_slug(result)}.png" for result in self.results]

    @property
    def rows(self) -> list[Path]:
        """All that was measured, as Parquet files."""
        return [self.folder / RESULTS / f"{_slug(result)}.parquet" for result in self.results]

    def plot(self, path: str | Path) -> None:
        """Write its figure, a PNG file."""
        Path(path).write_bytes(self.pictures[0].read_bytes())

    def __repr__(self) -> str:
        said = [f"{claim['verdict']}: {claim['says']} Measured: {claim['measured']}." for claim in self.claims]
        return "\n".join([f"{self.name}, {', '.join(result['title'] for result in self.results)}", *said])


def figure(paper: str, number: int) -> Reproduction:
    """A figure of a paper, computed again.

    Args:
        paper: rdp, tcdp, h-full, h-abstract or h-notes.
        number: Its number in print.
    """
    return _reproduction(paper, f"Figure {number}")


def table(paper: str, number: int) -> Reproduction:
    """A table of a paper, computed again.

    Args:
        paper: rdp; the others have none.
        number: Its number in print.
    """
    return _reproduction(paper, f"Table {number}")


def _reproduction(paper: str, name: str) -> Reproduction:
    rows = [row for row in statements(paper) if re.search(rf"{name}\b", row.place)]
    if not rows:
        raise InvalidArgument(f"papers: {paper} has no {name.lower()}.")
    root = checkout()
    if root is None:
        raise DpbayesError(
            f"papers: the reproduction of {name.lower()} belongs to a checkout of dpbayes, which this is not. "
            "Clone the repository, or read the page Reproduction of the papers."
        )
    experiments = dict.fromkeys(row.figure for row in rows)
    found = (root / RESULTS / f"{each.replace('.', '-').replace('_', '-')}.json" for each in experiments)
    results = tuple(json.loads(path.read_text(encoding="utf-8")) for path in found)
    return Reproduction(name=f"[{rows[0].paper}] {name}", results=results, folder=root)


def checkout() -> Path | None:
    """The folder with the results: above this file, or above the folder at work."""
    folders = (*Path(__file__).resolve().parents, Path.cwd(), *Path.cwd().parents)
    return next((folder for folder in folders if (folder / RESULTS).is_dir()), None)


def _slug(result: dict[str, Any]) -> str:
    return str(result["experiment"]).replace(".", "-").replace("_", "-")
