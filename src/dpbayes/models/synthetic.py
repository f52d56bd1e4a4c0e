"""Synthetic records from a built model: any number of them, at no cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpbayes.base import checks, files
from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.model import Model
from dpbayes.schema.attribute import DROPPED, MISSING, Attribute
from dpbayes.schema.values import number_in

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = (".csv", ".parquet")


def synthetic_table(model: Model, rows: int, *, rng: np.random.Generator | None = None, even: bool = True) -> pa.Table:
    """Records as an Arrow table with the schema's types.

    Categories are dictionary-encoded text, bins uniform numbers within their edges (an infinite end gives its finite
    edge), missing values null. Records that the model would drop, and combinations that the schema declares impossible,
    are drawn again. ``even`` records follow the model more closely than independent ones: their tables have no sampling
    noise beyond rounding. They are drawn from a stream of their own: a sample of them that is taken with a generator of
    the same seed is as random as any other.
    """
    import pyarrow as pa

    checks.positive_integer("synthetic", rows=rows)
    generator = np.random.default_rng() if rng is None else rng.spawn(1)[0]
    schema = model.published.schema
    drawn = _kept(model, rows, generator, even)
    return pa.table({name: _column(schema[name], drawn[name], generator) for name in schema.names if name in drawn})


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write CSV or Parquet, as the name says; whole, or not at all."""
    target = writable(path)

    def write(under_way: Path) -> None:
        from pyarrow import csv, parquet

        text = target.suffix.lower() == ".csv"
        shown = plain_text(table) if text else table
        with (csv.CSVWriter if text else parquet.ParquetWriter)(under_way, shown.schema) as sink:
            for at in range(0, max(len(shown), 1), 2**20):  # between two parts, row groups of Parquet, Ctrl-C is heard
                sink.write_table(shown.slice(at, 2**20))

    try:
        files.write(target, write)
    except OSError as problem:
        raise InvalidArgument(f"synthetic: cannot write {str(path)!r}: {problem.strerror}.") from None


def writable(path: str | Path) -> Path:
    """Refuse a file that records could not be written to, before anything is paid for them."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidArgument(f"synthetic: expected a file that ends in {' or '.join(FORMATS)}, got {target.name!r}.")
    return check_place(target)


def check_place(path: Path) -> Path:
    """Refuse a file whose folder is not there, or whose name is that of a folder."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidArgument(f"synthetic: {str(path)!r} cannot be written. Check the folder.")
    return path


def _kept(model: Model, rows: int, rng: np.random.Generator, even: bool) -> dict[str, Ints]:
    """Coded records without any that has a dropped value or cannot occur."""
    schema = model.published.schema
    impossible = {each.names: schema.zeros(each.names) for each in schema.structure}
    parts: list[dict[str, Ints]] = []
    have, ask = 0, rows
    while have < rows:
        drawn = model.sample(ask, rng, even=even)
        good = np.ones(ask, dtype=bool)
        for name, column in drawn.items():
            if schema[name].drops:
                good &= column != len(schema[name].levels) - 1
        for names, cells in impossible.items():
            if cells is not None and set(names) <= set(drawn):
                good &= ~cells[tuple(drawn[name] for name in names)]
        if not good.any() and ask >= 10_000:
            raise InvalidArgument(
                "synthetic: the model drops all its records, or all are impossible; nothing can be drawn from it."
            )
        parts.append(drawn if good.all() else {name: column[good] for name, column in drawn.items()})
        have += int(good.sum())
        ask = max(2 * (rows - have), 10_000)
    if len(parts) == 1 and have == rows:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts])[:rows] for name in parts[0]}


def _column(attribute: Attribute, codes: Ints, rng: np.random.Generator) -> pa.Array:
    import pyarrow as pa

    absent = [position for position, level in enumerate(attribute.levels) if level == MISSING]
    null = (
        np.isin(codes, absent) if absent and MISSING not in attribute.categories else np.zeros(len(codes), dtype=bool)
    )
    if attribute.edges:
        return _numbers(attribute, codes, null, rng)
    words = pa.array([level for level in attribute.levels if level != DROPPED], pa.string())
    indices = pa.array(codes.astype(np.int32), mask=null)
    text = pa.DictionaryArray.from_arrays(indices, words)
    if all(_is_integer(word) for word in attribute.categories) and attribute.levels == attribute.categories:
        return text.cast(pa.string()).cast(pa.int64())
    return text


def _numbers(attribute: Attribute, codes: Ints, null: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """A uniform number in every bin; whole where the edges are whole. What lies outside all bins is null."""
    import pyarrow as pa

    edges = np.asarray(attribute.edges)
    low, high = edges[:-1].copy(), edges[1:].copy()
    low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    high = np.where(np.isfinite(high), high, low)
    outside = codes >= len(low)
    position = np.where(outside, 0, codes)
    values = low[position] + rng.random(len(codes)) * (high - low)[position]
    below = np.nextafter(high, -np.inf)[position]  # rounding never leaves the bin
    values = np.where((low < high)[position], np.minimum(values, below), values)
    if all(float(edge).is_integer() for edge in attribute.edges if math.isfinite(edge)):
        values = np.floor(values).astype(np.int64)
    return pa.array(values, mask=null | outside)


def _is_integer(word: str) -> bool:
    number = number_in(word)
    return number is not None and number.is_integer() and str(int(number)) == word and abs(number) < 2**53


def columns_of(table: pa.Table) -> dict[str, np.ndarray]:
    """Columns of records as arrays. Dictionaries become text first: of their nulls NumPy would make the last word."""
    plain = plain_text(table)
    return {name: plain.column(name).to_numpy(zero_copy_only=False) for name in plain.column_names}


def plain_text(table: pa.Table) -> pa.Table:
    """CSV knows no dictionaries."""
    import pyarrow as pa

    columns = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names)
