"""Levels and their words: "65 and over" for [65, inf); and columns of any kind as positions among the levels.

The one place where a level gets its words; positions follow the one rule of ``Attribute.level``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.schema.attribute import DROPPED, MISSING, OTHER, Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.values import is_missing, plain

RESERVED = {DROPPED: "dropped", MISSING: "not stated", OTHER: "other"}
"""Levels that nobody declared, in words."""


def labels(attribute: Attribute) -> tuple[str, ...]:
    """The levels of an attribute for people, in the order of the axis: its labels, where the schema has them.

    A bin says where it ends: a schema does not know whether a column holds whole numbers only, and 79.5 is in [60, 80).
    It may give labels of its own. No two levels read the same, and none reads as the name of another.

    >>> labels(Attribute(name="age", edges=(float("-inf"), 18, 25, 65, float("inf"))))
    ('under 18', '18 to under 25', '25 to under 65', '65 and over', 'not stated', 'other')
    >>> labels(Attribute(name="pay", edges=(0, 0.5, 1000, 30000), unknown="drop"))
    ('0 to under 0.5', '0.5 to under 1,000', '1,000 to under 30,000', 'not stated', 'dropped')
    >>> labels(Attribute(name="sex", categories=("1", "2"), labels={"1": "male", "2": "female"}))
    ('male', 'female', 'not stated', 'other')
    """
    said, levels = dict(attribute.labels), attribute.levels
    declared = _declared(attribute)
    words = [*declared, *(RESERVED[level] for level in levels[len(declared) :])]
    found = [said.get(level, word) for level, word in zip(levels, words, strict=True)]
    times = Counter((*found, *(level for level, word in zip(levels, found, strict=True) if level != word)))
    taken = {word for word in times if times[word] == 1}
    for place, word in enumerate(found):
        if times[word] > 1:
            found[place] = _free(f"{word} ({levels[place]})", taken)
            taken.add(found[place])
    return tuple(found)


def places(attribute: Attribute) -> dict[str, int]:
    """Which level a text means: its name in the schema, or else its label.

    >>> places(Attribute(name="sex", categories=("1", "2"), labels={"1": "male", "2": "1"}, unknown="drop"))
    {'male': 0, '1 (2)': 1, 'not stated': 2, 'dropped': 3, '1': 0, '2': 1, 'missing': 2, '(dropped)': 3}
    """
    words = {word: place for place, word in enumerate(labels(attribute))}
    return words | {level: place for place, level in enumerate(attribute.levels)}


def _declared(attribute: Attribute) -> tuple[str, ...]:
    if attribute.dates and attribute.period is None:
        last = [day - timedelta(days=1) for day in attribute.dates[1:]]
        return tuple(f"{low} to {high}" for low, high in zip(attribute.dates, last, strict=False))
    if not attribute.edges:
        return attribute.declared
    most = max((abs(edge) for edge in attribute.edges if not math.isinf(edge)), default=0.0)
    return tuple(_bin(low, high, most) for low, high in pairwise(attribute.edges))


def _bin(low: float, high: float, most: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(low):
        return f"under {number(high, most)}"
    if math.isinf(high):
        return f"{number(low, most)} and over"
    return f"{number(low, most)} to under {number(high, most)}"


def number(value: float, most: float = 0.0) -> str:
    """A number of a schema for people; years keep four digits together, unless a larger number stands beside them.

    >>> number(1990.0), number(15000.0), number(-0.25), number(1000.0, most=15000.0)
    ('1990', '15,000', '−0.25', '1,000')
    """
    whole, grouped = value.is_integer() and abs(value) < 1e15, "," if max(abs(value), most) >= 1e4 else ""
    text = f"{int(value):{grouped}}" if whole else repr(value)
    return text.replace("-", "−", 1) if value < 0 else text


def _free(word: str, taken: set[str]) -> str:
    """The word, with apostrophes until no other level has it."""
    while word in taken:
        word += "'"
    return word


Codes = NDArray[np.int64]

_LOOKED_UP = 2**16
"""Integers that span less than this are coded by a table."""


def coded(schema: Schema, rows: object, names: Sequence[str], who: str) -> dict[str, Codes]:
    """The levels of some columns of a mapping, a frame or an Arrow table."""
    found = getattr(rows, "column_names", getattr(rows, "columns", rows))
    if not (isinstance(found, Iterable) and hasattr(rows, "__getitem__")) or isinstance(found, (str, bytes)):
        raise InvalidArgument(f"{who}: expected records as columns by name, or as a frame.")
    here = {str(name) for name in found}
    for name in names:
        if name not in here:
            raise SchemaError(f"{who}: there is no column {name!r}. The model needs {', '.join(names)}.")
    return {name: codes(schema[name], rows[name]) for name in names}


def codes(attribute: Attribute, column: object) -> Codes:
    """The level of every value of a column; values that were not declared follow the attribute's rule.

    >>> codes(Attribute(name="sex", categories=("F", "M")), ["M", "F", None, "?"]).tolist()
    [1, 0, 2, 3]
    """
    values = values_of(column)
    if values.dtype.kind in "iub" and values.size:
        return _integer_codes(attribute, values)
    if values.dtype.kind == "f" and attribute.edges:
        return _binned(attribute, values)
    distinct: dict[tuple[type, object], int] = {}
    found = np.empty(len(values), dtype=np.int64)
    for position, value in enumerate(values.tolist()):
        known = plain(value)
        key = None if is_missing(known) else known
        level = distinct.get((type(key), key))
        if level is None:
            level = distinct[type(key), key] = attribute.level(key)
        found[position] = level
    return found


def values_of(column: object) -> np.ndarray:
    """The values of a column, each as it is: no value decides what the others are read as.

    An array keeps its type. So does a typed column without nulls; with nulls it becomes one of objects, since NumPy
    would turn whole numbers into doubles. Everything else is a column of objects.
    """
    values = np.asarray(column) if hasattr(column, "__array__") else None
    declared = str(getattr(column, "dtype", getattr(column, "type", getattr(values, "dtype", "")))).lower()
    became_double = "float" not in declared and "double" not in declared  # as whole numbers beside nulls do
    if values is None or values.ndim != 1 or (values.dtype.kind == "f" and became_double):
        listed = getattr(column, "to_pylist", getattr(column, "to_list", lambda: column))()
        values = np.fromiter(cast("Iterable[object]", listed), dtype=object)
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] in {"ns", "ps", "fs", "as"}:
        return values.astype("datetime64[us]")  # finer ones become plain integers in Python
    return values


def _integer_codes(attribute: Attribute, values: np.ndarray) -> Codes:
    values = np.ascontiguousarray(values)  # a column of a matrix is read once, not at every step
    low, high = int(values.min()), int(values.max())
    if high - low < _LOOKED_UP:
        kind = bool if values.dtype.kind == "b" else int
        table = np.array([attribute.level(kind(value)) for value in range(low, high + 1)], dtype=np.int64)
        if low:  # what is unsigned may lie beyond the signed
            values = values - values.dtype.type(low) if values.dtype.kind == "u" else values.astype(np.int64) - low
        return table.take(values.astype(np.int64, copy=False))
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([attribute.level(value) for value in distinct.tolist()], dtype=np.int64)[inverse]


def _binned(attribute: Attribute, values: np.ndarray) -> Codes:
    edges = np.asarray(attribute.edges)
    found = np.searchsorted(edges, values, side="right") - 1
    outside = ~np.isfinite(values) | (values < edges[0]) | (values >= edges[-1])
    found[outside] = attribute.level(np.inf)
    found[np.isnan(values)] = attribute.level(None)
    return found.astype(np.int64)
