"""Long lists of numbers: the seal and the digest name them by their hash, and a folder keeps them in Parquet files.

A list of more than ``LONG`` numbers stands in ``release.json`` as ``{"cells": …, "sha256": …}``, the hash of its
numbers as 64-bit little-endian integers or doubles. The numbers themselves are in a Parquet file that the release
names, as a column with that hash. So a file of a million cells stays small, and the seal still fixes every number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpbayes.domain.codec import Record, digest
from dpbayes.errors import InvalidArgument, ReleaseError

LONG = 20_000
"""Lists up to this long are written out."""

PARTS = ("values", "lower", "upper")


def named(numbers: np.ndarray) -> Record:
    """What stands for a long list: its length, and the hash of its numbers.

    >>> named(np.array([1.0, 2.0]))["cells"]
    2
    """
    kind = "<i8" if np.issubdtype(numbers.dtype, np.integer) else "<f8"
    if kind == "<f8" and not np.isfinite(numbers).all():
        raise InvalidArgument("Release: expected finite numbers.")
    return {"cells": int(numbers.size), "sha256": digest(np.ascontiguousarray(numbers, dtype=kind).tobytes())}


def with_products(table: Record, products: Mapping[str, Any]) -> Record:
    """The record of a table with its products as arrays."""
    if not products:
        return table
    listed = {
        name: {part: held for part in PARTS if (held := getattr(product, part)) is not None}
        | ({"note": product.note} if product.note else {})
        for name, product in products.items()
    }
    return {**table, "products": listed}


def condensed(table: Mapping[str, Any]) -> Record:
    """The record of a table with its long lists named, however it holds them: as lists or as arrays."""
    return _each_list(table, lambda numbers: named(_array(numbers)) if len(numbers) > LONG else _listed(numbers))


def written(table: Mapping[str, Any]) -> Record:
    """The record of a table with all its lists written out."""
    return _each_list(table, _listed)


def found(table: object, files: Iterable[Path]) -> object:
    """The record of a table with every named list in its place, looked up by its hash among the files.

    What does not look like a table, or like a name, is left for the reader to refuse.
    """
    if not isinstance(table, dict):
        return table
    wanted = _names(table)
    if not wanted:
        return table
    columns: dict[str, np.ndarray] = {}
    for file in files:
        if not wanted.keys() <= columns.keys():
            columns |= _columns(file, wanted.keys() - columns.keys())
    if any(name not in columns or not LONG < columns[name].size == cells for name, cells in wanted.items()):
        raise ReleaseError(
            "Release: numbers of a large table are missing, or were changed. They lie in Parquet files beside "
            "release.json: name the folder that holds all of them, as they were written."
        )
    return _each_list(table, lambda numbers: columns[numbers["sha256"]] if _is_name(numbers) else numbers)


def _names(table: Record) -> dict[str, object]:
    """The hashes that stand for lists, and how long they say these are."""
    names: dict[str, object] = {}

    def note(numbers: Any) -> Any:
        if _is_name(numbers):
            names[numbers["sha256"]] = numbers["cells"] if type(numbers["cells"]) is int else None
        return numbers

    _each_list(table, note)
    return names


def _is_name(numbers: object) -> bool:
    return isinstance(numbers, dict) and numbers.keys() == {"cells", "sha256"} and isinstance(numbers["sha256"], str)


def _columns(file: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    """The columns of numbers in a Parquet file that have one of these hashes."""
    import pyarrow
    from pyarrow import parquet

    kept: dict[str, np.ndarray] = {}
    try:
        held = parquet.ParquetFile(file)
        for name in held.schema_arrow.names:
            kind = held.schema_arrow.field(name).type
            if kind in (pyarrow.int64(), pyarrow.float64()):
                chunks = held.read(columns=[name]).column(0).chunks
                numbers = np.concatenate([np.from_dlpack(chunk) for chunk in chunks]) if chunks else np.zeros(0)
                numbers.flags.writeable = False
                if (hashed := named(numbers)["sha256"]) in wanted:
                    kept[hashed] = numbers
    except (OSError, pyarrow.ArrowException, BufferError, InvalidArgument, ValueError):  # names that are not UTF-8
        return kept
    return kept


def _each_list(table: Mapping[str, Any], change: Callable[[Any], Any]) -> Record:
    """The record with every list of numbers changed: the values, and the parts of the products."""
    made = dict(table)
    if "values" in made:
        made["values"] = change(made["values"])
    if isinstance(products := made.get("products"), dict):
        made["products"] = {
            name: {part: change(held) if part in PARTS and held is not None else held for part, held in product.items()}
            if isinstance(product, dict)
            else product
            for name, product in products.items()
        }
    return made


def _listed(numbers: Any) -> Any:
    return numbers.tolist() if isinstance(numbers, np.ndarray) else numbers


def _array(numbers: Any) -> np.ndarray:
    """Numbers that are all whole, or all floating-point: in a long list nothing else is written."""
    if isinstance(numbers, np.ndarray):
        return numbers
    kinds = set(map(type, numbers))
    if kinds not in ({int}, {float}):
        raise InvalidArgument("Release: expected a list of numbers of one kind.")
    return np.array(numbers, dtype=np.int64 if kinds == {int} else np.float64)
