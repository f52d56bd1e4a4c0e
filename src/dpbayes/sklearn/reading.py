"""How estimators take what they are handed: frames, arrays and lists, each value as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpbayes.domain.coding import values_of
from dpbayes.errors import InvalidArgument

_HARMLESS = re.compile(
    r"(The feature names should match|X has \d+ features|Found array with|Sparse data was passed).*"
    r"|Expected 2D array, got \w+ array instead|Complex data not supported"
    r"|Input y contains (NaN|infinity)|Unknown label type: [\w-]+",
    re.DOTALL,
)
"""What scikit-learn says without quoting a row; of messages that go on with rows, the beginning."""


def checked(check: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a check by scikit-learn or NumPy. Of what it says, only what quotes no row is passed on."""
    try:
        return check(*arguments, **options)
    except Exception as problem:
        said = _HARMLESS.match(str(problem))
    if said is None:
        raise InvalidArgument("PrivateCategoricalNB: expected X as a table of records, and y as one column of classes.")
    shape = " Reshape your data: one row for each record, one column for each value."
    raise InvalidArgument(said[0].rstrip(".") + "." + (shape if said[0].startswith("Expected") else ""))


def matrix(rows: Sequence[Any], declared: Iterable[object]) -> Any:
    """Records in lists as a matrix of objects: NumPy would take one type for all of them.

    Without records, only what is declared for each column tells how many columns there are.
    """
    sized = [row for row in rows if isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1]
    wide = {len(row) for row in (sized or (each for each in declared if isinstance(each, (list, tuple))))}
    if len(wide) != 1 or len(sized) < len(rows):
        return rows
    found: np.ndarray = np.empty((len(rows), *wide), dtype=np.object_)
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            found[place, column] = value
    return found


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a frame of pandas, polars or Arrow; what has no text for a name is named by its place."""
    if hasattr(frame, "iloc"):
        texts = all(isinstance(name, str) for name in frame.columns)
        return {str(name) if texts else f"x{at}": frame.iloc[:, at] for at, name in enumerate(frame.columns)}
    return {name: frame[name] for name in getattr(frame, "column_names", frame.columns)}


def types(X: Any) -> dict[str, Any]:
    """The types of the columns of a frame, by name; empty for an array."""
    columns = columns_of(X) if hasattr(X, "columns") else {}
    return {name: getattr(column, "dtype", getattr(column, "type", None)) for name, column in columns.items()}


def labels_of(y: Any) -> Any:
    """Classes as one column of values; a list of one value is that value."""
    if isinstance(y, (list, tuple)):
        one = (each[0] if isinstance(each, (list, tuple)) and len(each) == 1 else each for each in y)
        return np.fromiter(one, dtype=object, count=len(y))
    if hasattr(y, "columns"):
        columns = list(columns_of(y).values())
        return values_of(columns[0]) if len(columns) == 1 else y
    return y if isinstance(y, np.ndarray) else values_of(y)


def equal_positions(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The position of the class that equals each value; past the last for a value that equals none."""
    place = {label: position for position, label in enumerate(labels.tolist())}

    def position(value: object) -> int:
        with suppress(Exception):  # a value that cannot be compared is none of the classes
            return place.get(value, len(labels))
        return len(labels)

    return np.fromiter(map(position, y.tolist()), dtype=np.int64, count=len(y))
