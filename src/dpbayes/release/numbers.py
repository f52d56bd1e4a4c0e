"""Long lists of numbers: the seal and the digest name them by their hash, and a folder keeps them in Parquet files.

A list of more than ``LONG`` numbers stands in ``release.json`` as ``{"cells": …, "sha256": …}``, the hash of its
numbers as 64-bit little-endian integers or doubles. The numbers themselves are in a Parquet file that the release
names, as a column with that hash. So a file of a million cells stays small, and the seal still fixes every number.

Columns use the memory as it is: Arrow's own conversions load pandas, if it is installed, and functions for computing,
which take longer than a small release does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbayes.base.codec import Record, digest
from dpbayes.base.errors import InvalidArgument, ReleaseError

if TYPE_CHECKING:
    import pyarrow

LONG = 20_000
"""Lists up to this long are written out."""

PARTS = ("values", "lower", "upper")


def name_of(numbers: np.ndarray) -> Record:
    """What stands for a long list: its length, and the hash of its numbers.

    >>> name_of(np.array([1.0, 2.0]))["cells"]
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


def condense(table: Mapping[str, Any]) -> Record:
    """The record of a table with its long lists named, however it holds them: as lists or as arrays."""
    return _each_list(table, lambda numbers: name_of(_array(numbers)) if len(numbers) > LONG else _list(numbers))


def bits(table: Mapping[str, Any]) -> Record:
    """The same with shorter lists as their bits: two of them are equal where the files of both would be."""

    def told(listed: Any) -> object:
        held = _array(listed)
        return name_of(held) if held.size > LONG else [held.dtype.str, held.tobytes().hex()]

    return _each_list(table, told)


def write_out(table: Mapping[str, Any]) -> Record:
    """The record of a table with all its lists written out."""
    return _each_list(table, _list)


def look_up(table: object, files: Iterable[Path]) -> object:
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
                if (hashed := name_of(numbers)["sha256"]) in wanted:
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


def _list(numbers: Any) -> Any:
    return numbers.tolist() if isinstance(numbers, np.ndarray) else numbers


def _array(numbers: Any) -> np.ndarray:
    """Numbers that are all whole, or all floating-point: nothing else is written."""
    if isinstance(numbers, np.ndarray):
        return numbers
    kinds = set(map(type, numbers))
    if kinds not in (set(), {int}, {float}):
        raise InvalidArgument("Release: expected a list of numbers of one kind.")
    return np.array(numbers, dtype=np.int64 if kinds == {int} else np.float64)


LONGEST = 2**31 - 1
"""Bytes of text that an ordinary column of texts can hold."""


def column(values: np.ndarray) -> pyarrow.Array:
    """A column of whole or floating-point numbers.

    >>> column(np.array([1.5, 2.0])).to_pylist()
    [1.5, 2.0]
    """
    import pyarrow

    kinds = {"int32": pyarrow.int32(), "int64": pyarrow.int64(), "float64": pyarrow.float64()}
    buffer = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(kinds[values.dtype.name], values.size, [None, buffer])


def coded(codes: np.ndarray, levels: Sequence[str]) -> pyarrow.DictionaryArray:
    """A column of codes with the levels that they stand for.

    >>> coded(np.array([1, 0, 1]), ["F", "M"]).to_pylist()
    ['M', 'F', 'M']
    """
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(
        column(codes.astype(np.int32)), texts(levels, np.arange(len(levels), dtype=np.int32))
    )


def texts(levels: Sequence[str], codes: np.ndarray) -> pyarrow.Array:
    """A column of texts: the level of each code.

    >>> texts(["F", "M"], np.array([1, 0, 1])).to_pylist()
    ['M', 'F', 'M']
    """
    import pyarrow

    encoded = [level.encode() for level in levels]
    lengths = np.array([len(level) for level in encoded], dtype=np.int64)
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths[codes])])
    data = pyarrow.py_buffer(b"".join(map(encoded.__getitem__, codes.tolist())))
    large = ends[-1] > LONGEST
    kind = pyarrow.LargeStringArray if large else pyarrow.StringArray
    offsets = pyarrow.py_buffer(ends if large else ends.astype(np.int32))
    return kind.from_buffers(codes.size, offsets, data)


def harmless(text: str) -> str:
    """A text that a spreadsheet takes for text: one that it would compute starts with an apostrophe.

    Categories can be bought from private rows, and so be written by anybody.

    >>> harmless("=1+1"), harmless("-0.5"), harmless("@home"), harmless("a=b")
    ("'=1+1", '-0.5', "'@home", 'a=b')
    """
    if text[:1] not in ("=", "+", "-", "@", "\t", "\r"):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with underscores until no other has it in any case."""
    used = {other.casefold() for other in taken}
    while name.casefold() in used:
        name += "_"
    return name
