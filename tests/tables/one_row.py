"""One row, one effect: ordinary rows among hostile ones, and what every source must make of each of them.

The marginal of a row's own number and a column shows the level of every single row. So hostile rows can be added, one
at a time or all together, and the levels of all other rows compared.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from tests.tables import reference

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.schema.values import text_of, text_or_none  # noqa: F401 - for those who import this

ROW = "row"
ONE = Unit(adjacency="replace-one")
BIG = 2**53
UNKNOWN = object()
"""Stands for a value that Python cannot hold: it is unknown."""

LETTERS = Attribute(name="v", categories=("F", "M", "true", "1", "2.50"), unknown="other", missing="category")
CLOSED = Attribute(name="v", categories=("F", "M", "1", "none of these"), closed="none of these")
CODES = Attribute(name="v", categories=(str(BIG), str(BIG + 1), "7"), unknown="other", missing="category")
CUT = Attribute(name="v", edges=(0, 2, 5, float("inf")), unknown="other", missing="category")
DAYS = Attribute(name="v", dates=("2020-01-01", "2021-01-01", "2022-01-01"), unknown="other", missing="category")
TRUTHS = Attribute(name="v", categories=("false", "true"), unknown="other", missing="category")


class Stubborn:
    """A value that cannot be written, compared or hashed."""

    __hash__ = None

    def __str__(self):
        raise ValueError("a secret")

    def __eq__(self, other):
        raise ValueError("a secret")


OBJECTS: list[object] = [
    b"F", b"\xe9", bytearray(b"M"), "\r", "F\rM", "a\nb", "x\x00", "\ud800", "", " ", '"', None, float("nan"),
    float("inf"), -float("inf"), 0.5, 1e308, 2.5, 1.0, 3, True, False, 2**70, -(2**63), 10**400, 10**5000, Decimal("1"),
    Decimal("NaN"), Decimal("sNaN"), Fraction(1, 2), 1j, dt.date(1, 1, 1), dt.date(2020, 6, 1), dt.date(9999, 12, 31),
    dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC), np.datetime64("2021-05-05"), np.datetime64("NaT"),
    np.datetime64("300000-01-01"), np.float32(0.5), np.int8(3), np.bool_(True), np.str_("F"), np.bytes_(b"M"), ["F"],
    ("F",), {}, object(), Stubborn(), "2020-02-30", "1e999", "nan", "x" * 100_000,
]  # fmt: skip
"""What a list or a column of objects may hold."""


@dataclass(frozen=True)
class Typed:
    """A typed column: ordinary values, hostile ones, and how they are declared."""

    attribute: Attribute
    type: pa.DataType
    ordinary: list[object]
    hostile: list[object]
    raw: tuple[pa.DataType, list[int]] = field(default_factory=lambda: (pa.int64(), []))
    """Hostile values below the type, as integers, that Python has no object for."""

    def columns(self) -> tuple[pa.Array, list[object]]:
        """All values, and the same as Python has them."""
        kind, raw = self.raw
        below = pa.array(raw, kind).view(self.type) if raw else pa.array([], self.type)
        known = pa.array([*self.ordinary, *self.hostile], self.type, from_pandas=False)
        return pa.concat_arrays([known, below]), [*self.ordinary, *self.hostile, *[UNKNOWN] * len(raw)]


DAY = dt.date(2020, 6, 1)
NOON = dt.datetime(2021, 6, 1, 12)
FAR = [2**63 - 1, -(2**63) + 1, 10**16, -(10**16)]
TYPED = {
    "text": Typed(
        LETTERS, pa.string(), ["F", "M", "F"],
        ["\r", "F\rM", "a\nb", "x\x00", "", " F", '"', None, "nan", "True", "1e999", "ü" * 50_000],
    ),
    "numbers as text": Typed(
        CUT, pa.string(), ["1", "3.5", "1e1"],
        ["\r1", "1\r", "nan", "inf", "-inf", "1e999", "9" * 400, None, "", "0x1", "1_0", "true", "1,5", "\x001"],
    ),
    "days as text": Typed(
        DAYS, pa.string(), ["2020-05-05", "2021-05-05", "2020-12-31"],
        ["2020-02-30", "0000-01-01", "99999-01-01", "\r", None, "", "now", "2020-06-01T24:00", "infinity", "-infinity"],
    ),
    "closed": Typed(CLOSED, pa.string(), ["F", "M", "1"], ["\r", "x\x00", "", "none", None, "nan", "ü" * 50_000]),
    "codes": Typed(CODES, pa.int64(), [BIG, BIG + 1, 7], [None, 2**63 - 1, -(2**63), 0]),
    "whole": Typed(CUT, pa.int64(), [1, 3, 10], [None, 2**63 - 1, -(2**63), 0]),
    "double": Typed(CUT, pa.float64(), [1.0, 3.5, 10.0], [float("nan"), float("inf"), -float("inf"), None, 1e308, 5e-324, -0.0]),  # noqa: E501
    "double codes": Typed(LETTERS, pa.float64(), [1.0, 2.5, 1.0], [float("nan"), float("inf"), None, 1e308, -0.0]),
    "single": Typed(CUT, pa.float32(), [1.0, 3.5, 10.0], [float("nan"), float("inf"), None, 3e38]),
    "truth": Typed(TRUTHS, pa.bool_(), [True, False, True], [None]),
    "day": Typed(DAYS, pa.date32(), [DAY, dt.date(2021, 1, 1), DAY], [None, dt.date.min, dt.date.max], (pa.int32(), [2**31 - 2, -(2**31) + 2, 5_000_000, -5_000_000])),  # noqa: E501
    "microseconds": Typed(DAYS, pa.timestamp("us"), [NOON, dt.datetime(2020, 1, 1), NOON], [None, dt.datetime.min, dt.datetime.max], (pa.int64(), [2**61, -(2**61)])),  # noqa: E501
    "milliseconds": Typed(DAYS, pa.timestamp("ms"), [NOON, dt.datetime(2020, 1, 1), NOON], [None, dt.datetime.min, dt.datetime.max], (pa.int64(), FAR)),  # noqa: E501
}  # fmt: skip
"""What every typed source can hold."""

UNSIGNED = Typed(CODES, pa.uint64(), [BIG, BIG + 1, 7], [None, 2**63, 2**64 - 1, 0])
SECONDS = Typed(DAYS, pa.timestamp("s"), [NOON, dt.datetime(2020, 1, 1), NOON], [None], (pa.int64(), FAR))
MORE_TYPED = {"unsigned": UNSIGNED, "seconds": SECONDS}
"""What tables in memory can hold besides."""


def numbers(rows: int) -> list[str]:
    return [f"r{row:03d}" for row in range(rows)]


def levels(engine, attributes: Sequence[Attribute], rows: int, unit: Unit = ONE) -> dict[str, list[str]]:
    """The level of every row in every column; there are as many rows as there should be, each counted once."""
    numbered = Attribute(name=ROW, categories=tuple(numbers(rows)), missing="other")
    schema = Schema(id="one row", unit=unit, attributes=(numbered, *attributes))
    counted = engine.count(schema, [Marginal((ROW, attribute.name)) for attribute in attributes])
    for counts in counted:
        assert counts.array[rows:].sum() == 0
        assert counts.array[:rows].sum(axis=1).tolist() == [1] * rows
    return {
        attribute.name: [attribute.levels[place] for place in counts.array[:rows].argmax(axis=1)]
        for attribute, counts in zip(attributes, counted, strict=True)
    }


def typed_table(columns: Mapping[str, Typed]) -> tuple[pa.Table, list[Attribute], dict[str, list[str]]]:
    """Ordinary rows, then hostile ones, in columns of many types; their attributes; and the level of every row."""
    made = {name: each.columns() for name, each in columns.items()}
    rows = max(len(values) for _, values in made.values())
    arrays = {
        name: pa.concat_arrays([array, pa.nulls(rows - len(array), array.type)]) for name, (array, _) in made.items()
    }
    attributes = [replace(each.attribute, name=name) for name, each in columns.items()]
    padded = {name: [*values, *[None] * (rows - len(values))] for name, (_, values) in made.items()}
    expected = {each.name: [level_of(each, value) for value in padded[each.name]] for each in attributes}
    return pa.table({ROW: numbers(rows), **arrays}), attributes, expected


def level_of(attribute: Attribute, value: object) -> str:
    """By counting by hand."""
    if value is UNKNOWN:
        return "other"
    found = reference.label(attribute, value)
    return attribute.levels[found] if isinstance(found, int) else found
