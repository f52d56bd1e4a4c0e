"""Files of numbers for people: readable labels, digits that the noise supports, and no cell that a program would run.

Parquet keeps the levels of the schema and every digit, as release.json does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpbayes.domain.labels import labels
from dpbayes.release import numbers
from dpbayes.release.format import WHOLE, Release, Table
from dpbayes.release.table import TableView
from dpbayes.report.rounding import for_files

Numbers = Literal["csv", "parquet"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a text starts with that spreadsheets take for a formula."""

DESCRIPTIONS = {
    "released": "What was drawn and published; everything else is computed from it.",
    "released_parameter": "A parameter of the posterior as it was released, with the noise in it: no estimate.",
    "draw": "One draw of the shares from the posterior.",
    "counts": "Estimated number of records.",
    "empirical": "Estimated share of these records; in a conditional table, within the group.",
    "population": "Estimated share of the population that these records come from; in a conditional table, within the "
    "group.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a file of numbers."""

    name: str
    kind: Literal["text", "integer", "number"]
    cells: np.ndarray
    """Numbers, or places in ``words``."""
    description: str
    words: tuple[str, ...] = ()
    """What the levels of a column of texts are called."""

    @property
    def plain(self) -> list[Any]:
        """The cells as Python has them."""
        listed = self.cells.tolist()
        return [self.words[at] for at in listed] if self.kind == "text" else listed


def columns(release: Release, table: Table) -> list[Column]:
    """The columns of a table for people, one row per cell: labels, what was released, and estimates with intervals."""
    axes = release.axes(table)
    shape = tuple(len(axis.levels) for axis in axes)
    positions = np.unravel_index(np.arange(math.prod(shape)), shape)
    found = []
    for axis, position in zip(axes, positions, strict=True):
        words = tuple(defused(word) for word in labels(axis))
        role = "Which group: a level of" if axis.name in table.marginal.given else "A level of"
        said = f"{role} {axis.name}."
        found.append(Column(name=defused(axis.name), kind="text", cells=position, description=said, words=words))
    taken = [axis.name for axis in axes]
    level = f"{100 * release.level:g} % interval"

    def add(name: str, cells: np.ndarray, description: str, *, whole: bool = False) -> None:
        free = numbers.free_name(name, taken)
        taken.append(free)
        typed = cells.astype(np.int64 if whole else np.float64)
        found.append(Column(name=free, kind="integer" if whole else "number", cells=typed, description=description))

    if table.kind != "derived":
        add(table.drawn_as, table.values, DESCRIPTIONS[table.drawn_as], whole=table.kind in WHOLE)
    for name, product in table.products.items():
        values, lower, upper = for_files(product.values, product.lower, product.upper)
        said = " ".join(filter(None, (DESCRIPTIONS.get(name, name), product.note)))
        add(name, values, said)
        if lower is not None and upper is not None:
            add(f"{name}_lower", lower, f"Lower end of the {level} of {name}.")
            add(f"{name}_upper", upper, f"Upper end of the {level} of {name}.")
    return found


def defused(text: str) -> str:
    """A text that spreadsheets show and do not run: one that starts like a formula gets an apostrophe first.

    >>> defused("=1+1"), defused("65 and over")
    ("'=1+1", '65 and over')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def write_numbers(release: Release, table: Table, path: Path, kind: Numbers) -> None:
    """One file of numbers: CSV for people, Parquet for programs."""
    import pyarrow

    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(TableView(release, table).to_arrow(), path)
        return
    from pyarrow import csv

    found = columns(release, table)
    parts = [
        numbers.texts([numbers.harmless(word) for word in each.words], each.cells)
        if each.words
        else numbers.column(each.cells)
        for each in found
    ]
    csv.write_csv(pyarrow.table(parts, names=[numbers.harmless(each.name) for each in found]), path)
