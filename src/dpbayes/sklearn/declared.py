"""What estimators take: frames, arrays and lists, each value as it is, and what is declared about their columns."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.jobs.edges import Quantiles
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.labels import values_of
from dpbayes.schema.values import plain, text_of

STANDARDISED = "standardised"
"""As ``edges``: every numeric column that declares nothing is cut at ``STANDARD_EDGES``."""

STANDARD_EDGES = (-np.inf, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, np.inf)
"""Fixed, so that they tell nothing; made for columns with mean 0 and variance 1."""

OWNER = "PrivateCategoricalNB"

Declared = Sequence[Any] | Mapping[str, Any] | None


class AssumedPublic(UserWarning):
    """Something that was not declared was taken for public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """The arguments ``categories``, ``edges`` and ``missing`` of an estimator."""

    categories: Declared
    edges: Declared | str
    missing: str

    def attributes(self, columns: Mapping[str, np.ndarray], typed: Mapping[str, Any]) -> list[Attribute]:
        """An attribute for each column; ``typed`` are the types of the columns of a frame, none for an array."""
        for argument, declared in (("categories", self.categories), ("edges", self.edges)):
            _check_names(argument, declared, tuple(columns))
        return [
            self._attribute(position, name, column, typed.get(name))
            for position, (name, column) in enumerate(columns.items())
        ]

    def wishes(self, columns: Sequence[str]) -> dict[str, Quantiles]:
        """Columns whose edges are to be bought."""
        entries = {name: self._edges(position, name) for position, name in enumerate(columns)}
        return {name: entry for name, entry in entries.items() if isinstance(entry, Quantiles)}

    def _attribute(self, position: int, name: str, column: np.ndarray, kind: Any) -> Attribute:
        declared, cut = _entry(self.categories, position, name), self._edges(position, name)
        if isinstance(declared, Attribute):
            return replace(declared, name=name)
        if declared is None and cut is None:
            declared = _levels_of(kind, name)
        if declared is not None:
            texts = tuple(text_of(plain(value)) for value in declared)
            return Attribute(name=name, categories=texts, missing=self.missing)
        return Attribute(name=name, edges=_cut(cut, self.edges, name, column, kind), missing=self.missing)

    def _edges(self, position: int, name: str) -> Any:
        return None if isinstance(self.edges, str) else _entry(self.edges, position, name)


def _cut(cut: Any, edges: Declared | str, name: str, column: np.ndarray, typed: Any) -> tuple[float, ...]:
    """The edges of a column. Decided by its type alone: a refusal that depended on one value would tell it."""
    kind = column.dtype.kind
    if kind in "Mm":
        raise SchemaError(
            f"{OWNER}: column {name!r} holds dates or durations, and edges are numbers. Hand in the year or the "
            "number of days, or declare the column in a schema."
        )
    if isinstance(cut, Quantiles):
        return (cut.lower, cut.upper)
    if cut is not None:
        return tuple(cut)
    numeric = re.search("int|float|double|decimal", str(typed).lower())  # with nulls, its values are objects
    if kind in "US" or (kind == "O" and typed is not None and not numeric):
        raise SchemaError(
            f"{OWNER}: column {name!r} holds texts and declares no categories. Reading them off the rows would "
            "publish them: pass categories=."
        )
    if edges != STANDARDISED:
        raise SchemaError(
            f"{OWNER}: column {name!r} holds numbers and declares neither edges nor categories. Pass edges=, buy edges "
            f"with dpbayes.jobs.Quantiles, or pass edges={STANDARDISED!r} if the columns have mean 0 and variance 1."
        )
    return STANDARD_EDGES


def _levels_of(kind: Any, name: str) -> list[Any] | None:
    """The categories that a type names: pandas' categoricals, polars' enums, booleans."""
    if getattr(kind, "kind", None) == "b" or str(kind) in {"Boolean", "boolean", "bool"}:
        return [False, True]
    named = getattr(kind, "categories", None)
    if named is None or type(kind).__name__ == "Categorical":  # of polars: whatever was read so far
        return None
    if type(kind).__name__ == "CategoricalDtype":
        warnings.warn(
            f"{OWNER}: the categories of column {name!r} were taken from its pandas type and are not protected. If "
            "they were read off the rows, as astype('category') does, declare categories= instead.",
            AssumedPublic,
            stacklevel=6,
        )
    return list(named)


def _check_names(argument: str, declared: Declared | str, columns: tuple[str, ...]) -> None:
    """Refuse declarations of columns that are not there, which may be misspelt."""
    if isinstance(declared, str):
        if declared != STANDARDISED or argument != "edges":
            raise SchemaError(f"{OWNER}: expected {argument} for each column, got the text {declared!r}.")
    elif isinstance(declared, Mapping):
        for name in declared:
            if name not in columns:
                raise SchemaError(
                    f"{OWNER}: {argument} names {name!r}, and there is no such column. "
                    f"The columns are {', '.join(columns[:20])}{' …' if len(columns) > 20 else ''}."
                )
    elif declared is not None and len(declared) != len(columns):
        raise SchemaError(
            f"{OWNER}: expected {argument} to have one entry for each of the {len(columns)} columns, got "
            f"{len(declared)}. Write None for a column without any."
        )


def _entry(declared: Declared, position: int, name: str) -> Any:
    if declared is None:
        return None
    return declared.get(name) if isinstance(declared, Mapping) else declared[position]


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
