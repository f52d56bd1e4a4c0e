"""What is public about a table besides its levels: totals, combinations that cannot occur, attributes within others.

Totals agree with the schema and with each other. A release measures impossible combinations as it measures all others;
what is made of it knows that they are empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.errors import SchemaError
from dpbayes.base.toml import Faults, checked_table, text_list
from dpbayes.schema.attribute import Attribute

if TYPE_CHECKING:
    from dpbayes.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A table of totals that is public knowledge, row-major over the levels of its attributes."""

    of: tuple[str, ...]
    totals: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of))
        object.__setattr__(self, "totals", tuple(self.totals))
        if not all(type(total) is int and total >= 0 for total in self.totals):
            raise SchemaError("Schema: expected the totals of a margin to be whole numbers, zero or above.")

    def table(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {"of": list(self.of), "totals": list(self.totals)}


def read_margin(entry: object, faults: Faults) -> Margin:
    """One [[margin]] of a schema file."""
    table = checked_table(entry, where="a [[margin]]", required=("of", "totals"), faults=faults)
    faults.raise_all(SchemaError)
    if not isinstance(table["totals"], list):
        raise SchemaError("Schema: a margin needs totals as a list in brackets.")
    return Margin(of=text_list(table["of"], "of in a [[margin]]"), totals=tuple(table["totals"]))


def check_margins(schema: Schema) -> None:
    """Refuse totals that do not fit the levels, the number of records, what is impossible, or each other."""
    for margin in schema.margins:
        shape = [len(schema[name].levels) for name in margin.of]
        if len(margin.totals) != math.prod(shape):
            raise SchemaError(
                f"Schema: the margin of {', '.join(margin.of)} needs {math.prod(shape)} totals, one for each "
                f"combination of levels, got {len(margin.totals)}. `dpbayes schema check` lists them."
            )
        if schema.records is not None and sum(margin.totals) != schema.records:
            raise SchemaError(f"Schema: the margin of {', '.join(margin.of)} does not add up to records.")
        totals, zeros = np.reshape(margin.totals, shape), schema.zeros(margin.of)
        if zeros is not None and totals[zeros].any():
            raise SchemaError(
                f"Schema: the margin of {', '.join(margin.of)} has people in a combination that the schema calls "
                "impossible. Correct one of them."
            )
        _check_agreement(schema, margin, totals)


def _check_agreement(schema: Schema, margin: Margin, totals: np.ndarray) -> None:
    """Margins that share attributes have the same totals of them."""
    for other in schema.margins[: schema.margins.index(margin)]:
        shared = [name for name in margin.of if name in other.of]
        theirs = np.reshape(other.totals, [len(schema[name].levels) for name in other.of])
        if not np.array_equal(summed(totals, margin.of, shared), summed(theirs, other.of, shared)):
            about = f"the totals of {', '.join(shared)}" if shared else "the number of records"
            raise SchemaError(
                f"Schema: the margins of {', '.join(other.of)} and of {', '.join(margin.of)} contradict each other "
                f"in {about}. Correct one of them."
            )


def summed(array: np.ndarray, names: Sequence[str], kept: Sequence[str]) -> np.ndarray:
    """An array with named axes summed out to some of them, in the order of ``kept``."""
    left = [name for name in names if name in kept]
    total = array.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept))
    return np.asarray(total).transpose([left.index(name) for name in kept])


Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """Levels of two attributes or more that never occur together: ``{"age": ("child",), "marital": ("married",)}``."""

    levels: dict[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", {name: tuple(levels) for name, levels in self.levels.items()})
        if len(self.levels) < 2 or not all(self.levels.values()):
            raise SchemaError("Schema: expected an impossible combination to name levels of two attributes or more.")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it is about."""
        return tuple(self.levels)

    def table(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {name: list(levels) for name, levels in self.levels.items()}

    def mask(self, attributes: Mapping[str, Attribute]) -> Bools:
        """Which cells are impossible, with an axis for each of its attributes."""
        found = np.ones((), dtype=bool)
        for name, levels in self.levels.items():
            attribute = attributes[name]
            chosen = np.zeros(len(attribute.levels), dtype=bool)
            chosen[[_place(attribute, level, "an [[impossible]]") for level in levels]] = True
            found = np.logical_and.outer(found, chosen)
        return found

    @classmethod
    def read(cls, entry: object) -> Impossible:
        """From a section of a schema file: a key for each attribute, a level or a list of levels."""
        if not isinstance(entry, dict):
            raise SchemaError("Schema: write each impossible combination as its own [[impossible]] section.")
        levels = {name: (given,) if isinstance(given, str) else given for name, given in entry.items()}
        for name, given in levels.items():
            if not isinstance(given, (list, tuple)) or not all(isinstance(level, str) for level in given):
                raise SchemaError(
                    f"Schema: expected the levels of {name!r} in an [[impossible]] to be a list of texts."
                )
        return cls(levels=levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """An attribute whose declared levels each lie in one level of another: counties within states."""

    inner: str
    outer: str
    map: dict[str, str]
    """For each declared level of the inner attribute, the level of the outer one that it lies in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "map", dict(self.map))
        if self.inner == self.outer:
            raise SchemaError(f"Schema: {self.inner!r} cannot lie within itself. Name two attributes.")

    @property
    def names(self) -> tuple[str, str]:
        """The attributes that it is about."""
        return self.inner, self.outer

    def table(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {"inner": self.inner, "outer": self.outer, "map": dict(self.map)}

    def mask(self, attributes: Mapping[str, Attribute]) -> Bools:
        """Which cells are impossible: a declared inner level with another declared outer one.

        Missing and unknown values of either go with everything.
        """
        inner, outer = attributes[self.inner], attributes[self.outer]
        lacking = [level for level in inner.declared if level not in self.map]
        if lacking:
            raise SchemaError(
                f"Schema: the map of a [[within]] does not say in which {outer.name} {lacking[0]!r} lies."
            )
        found = np.zeros((len(inner.levels), len(outer.levels)), dtype=bool)
        for level, home in self.map.items():
            place, lies = _place(inner, level, "a [[within]]"), _place(outer, home, "a [[within]]")
            found[place, : len(outer.declared)] = True
            found[place, lies] = False
        return found

    @classmethod
    def read(cls, entry: object) -> Within:
        """From a section of a schema file."""
        table = checked_table(entry, where="a [[within]]", required=("inner", "outer", "map"))
        inner, outer, lies = (table[key] for key in ("inner", "outer", "map"))
        if not isinstance(inner, str) or not isinstance(outer, str):
            raise SchemaError("Schema: expected inner and outer of a [[within]] to be names of attributes.")
        if not isinstance(lies, dict) or not all(isinstance(home, str) for home in lies.values()):
            raise SchemaError(f"Schema: expected map of a [[within]] to give a {outer} for each {inner}.")
        return cls(inner=inner, outer=outer, map=lies)


Structure = Impossible | Within


def mask(declared: Iterable[Structure], attributes: Mapping[str, Attribute], names: Sequence[str]) -> Bools | None:
    """Cells of the table on ``names`` that cannot be filled; None if there are none."""
    found: Bools | None = None
    for each in declared:
        if set(each.names) <= set(names):
            own = each.mask(attributes)
            order = [each.names.index(name) for name in names if name in each.names]
            index = tuple(slice(None) if name in each.names else None for name in names)
            wide = np.transpose(own, order)[index]
            found = wide if found is None else found | wide
    if found is None or not found.any():
        return None
    return np.broadcast_to(found, [len(attributes[name].levels) for name in names]).copy()


def check(declared: Iterable[Structure], attributes: Mapping[str, Attribute]) -> None:
    """Refuse declarations about attributes or levels that there are not."""
    for each in declared:
        for name in each.names:
            if name not in attributes:
                section = "an [[impossible]]" if isinstance(each, Impossible) else "a [[within]]"
                raise SchemaError(f"Schema: {section} names {name!r}. {_nearest(name, attributes, 'attribute')}")
        each.mask(attributes)


def _place(attribute: Attribute, level: str, section: str) -> int:
    if level in attribute.levels:
        return attribute.levels.index(level)
    raise SchemaError(
        f"Schema: {section} names the level {level!r} of {attribute.name!r}. "
        f"{_nearest(level, attribute.levels, 'level')}"
    )


def _nearest(name: str, known: Iterable[str], what: str) -> str:
    listed = list(known)
    near = get_close_matches(name, listed, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There is no such {what}; there are {', '.join(listed[:12])}."
