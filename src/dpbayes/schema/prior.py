"""A public guess at a distribution, such as last year's shares or a neighbour's census."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.errors import SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.labels import labels
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

SHARE = "share"
"""The column of a prior file that holds the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Positive numbers for all cells of the attributes ``of``, row-major; they need not add up to one.

    It must come from public knowledge: a guess that was made from the private table leaks it.
    """

    of: tuple[str, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        Marginal(self.of)
        if not self.shares or not all(math.isfinite(share) and share > 0 for share in self.shares):
            raise SchemaError("Prior: expected every share > 0 and finite. A cell that may be empty needs a small one.")
        object.__setattr__(self, "of", tuple(self.of))
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))

    @classmethod
    def from_csv(cls, text: str, schema: Schema) -> Prior:
        r"""Read a table with a column for each attribute, one called ``share``, and a row for each cell.

        >>> from dpbayes.schema.attribute import Attribute
        >>> from dpbayes.schema.unit import PrivacyUnit
        >>> attributes = (Attribute(name="sex", categories=("F", "M"), unknown="drop", missing="drop"),)
        >>> schema = Schema(id="survey", unit=PrivacyUnit(adjacency="replace-one"), attributes=attributes)
        >>> Prior.from_csv("sex,share\nM,48\nF,51\n(dropped),1\n", schema).shares
        (51.0, 48.0, 1.0)
        """
        rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        try:
            names = tuple(name for name in rows.fieldnames or () if name != SHARE)
            if SHARE not in (rows.fieldnames or ()) or not names:
                raise SchemaError(f"Prior: expected columns named like the attributes, and one named {SHARE!r}.")
            axes = Marginal(names).axes(schema)
            given = _shares(rows, names)
        except csv.Error:
            raise SchemaError("Prior: the file is not CSV with commas and double quotes.") from None
        cells = list(product(*(axis.levels for axis in axes)))
        given = {_levels(axes, cell): share for cell, share in given.items()}
        for cell in cells:
            if cell not in given:
                raise SchemaError(f"Prior: there is no share for {_named(names, cell)}. Give every declared cell one.")
        if len(given) > len(cells):
            stranger = next(cell for cell in given if cell not in set(cells))
            raise SchemaError(f"Prior: the schema has no cell {_named(names, stranger)}. Use its levels.")
        return cls(of=names, shares=tuple(given[cell] for cell in cells))

    def serves(self, marginal: Marginal) -> bool:
        """Whether it is about what the marginal counts: in a conditional one, about what its rows share."""
        return set(self.of) == set(marginal.of)

    def shape(self, marginal: Marginal, schema: Schema) -> Floats:
        """Shares that add up to one, in the order of the marginal's own axes, flat."""
        levels = Marginal(self.of).shape(schema)
        if math.prod(levels) != len(self.shares):
            raise SchemaError(f"Prior: expected {math.prod(levels)} shares for {', '.join(self.of)}.")
        table = np.asarray(self.shares).reshape(levels).transpose([self.of.index(name) for name in marginal.of])
        return np.asarray(table.ravel() / table.sum())


def _shares(rows: csv.DictReader[str], names: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    given: dict[tuple[str, ...], float] = {}
    for row in rows:
        cell = tuple(row[name] for name in names)
        try:
            share = float(row[SHARE])
        except (TypeError, ValueError):
            raise SchemaError(f"Prior: expected a number as the share of {_named(names, cell)}.") from None
        if cell in given:
            raise SchemaError(f"Prior: {_named(names, cell)} is there twice.")
        given[cell] = share
    return given


def _levels(axes: tuple[Attribute, ...], cell: tuple[str, ...]) -> tuple[str, ...]:
    """The levels of a cell, whose file may have the labels that people read, as files of numbers do."""
    said = (dict(zip(labels(axis), axis.levels, strict=True)) | {each: each for each in axis.levels} for axis in axes)
    return tuple(levels.get(word, word) for levels, word in zip(said, cell, strict=True))


def _named(names: tuple[str, ...], cell: tuple[str, ...]) -> str:
    return ", ".join(f"{name}={level!r}" for name, level in zip(names, cell, strict=True))
