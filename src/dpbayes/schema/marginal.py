"""Which table is asked for: a joint one, or a conditional one; and public guesses at it, such as last year's shares."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.labels import labels
from dpbayes.schema.schema import Schema

_NAME = r'"(?:[^"]|"")*"|[^",|]+'
_NAMES = rf"(?:{_NAME})(?:,(?:{_NAME}))*"
_FORM = re.compile(rf"(?P<of>{_NAMES})(?:\|(?P<given>{_NAMES}))?")


@dataclass(frozen=True, slots=True)
class Marginal:
    """A joint table of the attributes ``of``, or one of ``of`` for each combination of ``given``.

    Axes come in the order *given first, then of*, so the rows of a conditional table are its leading axes.

    >>> str(Marginal.parse("income|sex,age"))
    'income|sex,age'
    >>> Marginal.parse("income|sex,age").names
    ('sex', 'age', 'income')
    """

    of: tuple[str, ...]
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for side in ("of", "given"):
            names = getattr(self, side)
            names = (names,) if isinstance(names, str) else tuple(names)
            object.__setattr__(self, side, names)
        if not self.of or not all(isinstance(name, str) and name for name in self.names):
            raise SchemaError("Marginal: expected one attribute name or more, as in sex,income or income|sex.")
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"Marginal: {self} names an attribute twice. Name each attribute once.")

    @classmethod
    def parse(cls, text: str) -> Marginal:
        """Read ``sex,income`` or ``income|sex,age``; names with ``,``, ``|`` or ``"`` go in double quotes."""
        form = _FORM.fullmatch(text.strip())
        if form is None:
            read = _FORM.match(text.strip())
            raise SchemaError(
                f"Marginal: cannot read {text!r} from character {read.end() + 1 if read else 1} on. "
                "Write names with commas, as in sex,income, "
                "and what to condition on after a bar, as in income|sex,age."
            )
        return cls(_split(form["of"]), _split(form["given"] or ""))

    @classmethod
    def of_text(cls, marginal: str | Marginal) -> Marginal:
        """A marginal, or the text of one."""
        if isinstance(marginal, cls):
            return marginal
        if not isinstance(marginal, str):
            raise InvalidArgument(
                f"Marginal: expected a table as text, got {marginal!r}. Give each its own text, as in "
                "Tables('region', 'income|sex')."
            )
        return cls.parse(marginal)

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names in axis order."""
        return self.given + self.of

    def axes(self, schema: Schema) -> tuple[Attribute, ...]:
        """The attributes in axis order; an error names one that the schema does not have."""
        known = {attribute.name: attribute for attribute in schema.attributes}
        for name in self.names:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                none = "It declares none yet. Declare it, or release its categories (`--as categories`)."
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(known)}." if known else none
                raise SchemaError(f"Marginal: the schema has no attribute {name!r}. {hint}")
        return tuple(known[name] for name in self.names)

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes(schema))

    def size(self, schema: Schema) -> int:
        """Number of cells, as an exact integer of any size."""
        return math.prod(self.shape(schema))

    def rows(self, schema: Schema) -> int:
        """Number of combinations of the given attributes: rows that are normalised apart."""
        return math.prod(self.shape(schema)[: len(self.given)])

    def kept(self, schema: Schema) -> tuple[slice, ...]:
        """Which cells stand for kept rows: ``table[kept]`` is without the levels that count dropped ones."""
        return tuple(slice(0, len(axis.levels) - axis.drops) for axis in self.axes(schema))

    def record(self) -> dict[str, list[str]]:
        """JSON form."""
        return {"of": list(self.of), "given": list(self.given)}

    @classmethod
    def from_record(cls, record: object) -> Marginal:
        """Read the JSON form back."""
        if not isinstance(record, dict) or set(record) != {"of", "given"}:
            raise SchemaError("Marginal: expected a record with of and given.")
        if not all(isinstance(record[side], list) for side in record):
            raise SchemaError("Marginal: expected of and given to be lists of names.")
        return cls(tuple(record["of"]), tuple(record["given"]))

    def __str__(self) -> str:
        sides = [",".join(_quoted(name) for name in side) for side in (self.of, self.given) if side]
        return "|".join(sides)


def _split(names: str) -> tuple[str, ...]:
    found = re.findall(_NAME, names)
    return tuple(name[1:-1].replace('""', '"') if name.startswith('"') else name.strip() for name in found)


def _quoted(name: str) -> str:
    plain = re.fullmatch(r'[^",|]+', name) and name == name.strip()
    return name if plain else '"' + name.replace('"', '""') + '"'


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
        >>> from dpbayes.schema.unit import Unit
        >>> attributes = (Attribute(name="sex", categories=("F", "M"), unknown="drop", missing="drop"),)
        >>> schema = Schema(id="survey", unit=Unit(adjacency="replace-one"), attributes=attributes)
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
