"""One declared column: its categories or bins, and where every other value goes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise

from dpbayes.domain import display
from dpbayes.domain.values import is_missing, number_in, number_of, plain, text_of
from dpbayes.errors import SchemaError

OTHER = "other"
MISSING = "missing"
DROPPED = "(dropped)"

_UNKNOWN_GOES = {"other": OTHER, "drop": DROPPED}
_MISSING_GOES = {"other": OTHER, "category": MISSING, "drop": DROPPED}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Attribute:
    """A column with declared categories, or a number cut at declared edges into bins [a, b).

    The levels are the axis of every table that contains the attribute: what was declared, then whichever of
    ``missing``, ``other`` and ``(dropped)`` the rules need. No value is left out, so a table sums to all its rows.

    >>> Attribute(name="sex", categories=("F", "M")).levels
    ('F', 'M', 'other')
    >>> Attribute(name="age", edges=(0, 18, float("inf")), unknown="drop", missing="category").levels
    ('[0, 18)', '[18, inf)', 'missing', '(dropped)')
    """

    name: str
    categories: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    unknown: str = "other"
    missing: str = "other"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not _storable(self.name):
            raise SchemaError(f"Schema: expected an attribute's name to be text, got {self.name!r}.")
        if _is_text(self.categories) or _is_text(self.edges):
            raise SchemaError(f"Schema: attribute {self.name!r} needs its categories or edges as a list.")
        if not self.categories and not self.edges:
            raise SchemaError(f"Schema: attribute {self.name!r} declares nothing. Give it categories or edges.")
        if self.categories and self.edges:
            raise SchemaError(f"Schema: attribute {self.name!r} has categories and edges. Keep one of them.")
        object.__setattr__(self, "categories", tuple(self._category(value) for value in self.categories))
        object.__setattr__(self, "edges", tuple(self._edge(value) for value in self.edges))
        self._check_distinct()
        self._check_rule("unknown", self.unknown, _UNKNOWN_GOES)
        self._check_rule("missing", self.missing, _MISSING_GOES)

    def __repr__(self) -> str:
        return display.shortened(f"Attribute({self.name!r}: {display.listed(self.levels)})")

    def _repr_html_(self) -> str:
        return display.as_html(f"Attribute {self.name!r}", [("levels", display.listed(self.levels))])

    @property
    def declared(self) -> tuple[str, ...]:
        """The categories, or the labels of the bins."""
        if self.categories:
            return self.categories
        return tuple(f"[{_plain(low)}, {_plain(high)})" for low, high in pairwise(self.edges))

    @property
    def levels(self) -> tuple[str, ...]:
        """All positions on the axis. A declared category named *other* or *missing* takes those values in."""
        declared = self.declared
        wanted = {_UNKNOWN_GOES[self.unknown], _MISSING_GOES[self.missing]}
        return declared + tuple(
            level for level in (MISSING, OTHER, DROPPED) if level in wanted and level not in declared
        )

    @property
    def drops(self) -> bool:
        """Whether the last level is the reserved one that counts dropped rows."""
        return self.levels[-1] == DROPPED

    @property
    def splits_missing(self) -> bool:
        """Whether missing values go elsewhere than unknown ones, so that engines must tell them apart."""
        return _MISSING_GOES[self.missing] != _UNKNOWN_GOES[self.unknown]

    @property
    def level_of_code(self) -> tuple[int, ...]:
        """Where each code that an engine counts belongs among the levels.

        Codes are the position among the declared values, then one for missing values if ``splits_missing``,
        then one for unknown values.
        """
        levels = self.levels
        reserved = [levels.index(_MISSING_GOES[self.missing])] if self.splits_missing else []
        return (*range(len(self.declared)), *reserved, levels.index(_UNKNOWN_GOES[self.unknown]))

    def level(self, value: object) -> int:
        """The level of one value, by the same rule that engines apply to a whole table.

        >>> age = Attribute(name="age", edges=(0, 18, 65))
        >>> [age.levels[age.level(value)] for value in (17.9, 18, "64", 65, None)]
        ['[0, 18)', '[18, 65)', '[18, 65)', 'other', 'other']
        """
        value = plain(value)
        if is_missing(value) or (self.edges and isinstance(value, str) and value.strip(" ").lower() == "nan"):
            return self.levels.index(_MISSING_GOES[self.missing])
        position = self._bin(value) if self.edges else self._position(value)
        return self.levels.index(_UNKNOWN_GOES[self.unknown]) if position is None else position

    def table(self) -> dict[str, object]:
        """The declaration as plain values, for TOML and JSON."""
        values: dict[str, object] = (
            {"categories": list(self.categories)} if self.categories else {"edges": list(self.edges)}
        )
        return {"name": self.name, **values, "unknown": self.unknown, "missing": self.missing}

    def _position(self, value: object) -> int | None:
        if isinstance(value, (float, Decimal)):
            number, numbers = number_of(value), [number_in(category) for category in self.categories]
            return numbers.index(number) if number is not None and number in numbers else None
        text = text_of(value)
        return self.categories.index(text) if text in self.categories else None

    def _bin(self, value: object) -> int | None:
        number = number_of(value)
        if number is None or not math.isfinite(number) or not self.edges[0] <= number < self.edges[-1]:
            return None
        return sum(number >= edge for edge in self.edges) - 1

    def _category(self, value: object) -> str:
        if not isinstance(value, (str, int, date)):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has the category {value!r}. Write it as text, in quotes."
            )
        text = text_of(value)
        if not _storable(text) or text == DROPPED:
            raise SchemaError(f"Schema: attribute {self.name!r} cannot have the category {text!r}. Rename.")
        return text

    def _edge(self, value: object) -> float:
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise SchemaError(f"Schema: attribute {self.name!r} has the edge {value!r}. Edges are numbers.")
        return number + 0.0  # no negative zero

    def _check_distinct(self) -> None:
        if repeated := _first_repeated(self.categories):
            raise SchemaError(f"Schema: attribute {self.name!r} repeats the category {repeated!r}. Keep one.")
        if self.edges and (len(self.edges) < 2 or any(low >= high for low, high in pairwise(self.edges))):
            raise SchemaError(f"Schema: attribute {self.name!r} needs two or more edges, each above the one before it.")

    def _check_rule(self, key: str, rule: object, rules: Iterable[str]) -> None:
        if rule not in tuple(rules):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has {key} = {rule!r}. Choose one of {', '.join(rules)}."
            )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _storable(text: str) -> bool:
    """Text that every engine can hold: no NUL, and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(number)


def _first_repeated(values: tuple[str, ...]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
