"""Few wide tables instead of many narrow ones: marginals that share a table are summed out of it.

Scanning costs the same for one table or forty, but each counted table costs one pass over the codes. So
marginals contained in others are never counted, and the rest are merged while a table has at most
``PACKED_CELLS`` cells: its keys fit 16 bits and its counts fit the processor's first caches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Ints
from dpbayes.base.errors import SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.public import summed
from dpbayes.schema.schema import Schema

PACKED_CELLS = 2**13
LARGEST_TABLE = 2**28

_SHORT_KEYS = 2**16


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A table of codes that contains several marginals; axes in the order of the schema."""

    axes: tuple[Attribute, ...]
    names: tuple[str, ...] = field(init=False)
    shape: tuple[int, ...] = field(init=False)
    """Codes per axis; counted once, as every batch of rows asks for them."""
    size: int = field(init=False)

    def __post_init__(self) -> None:
        shape = tuple(len(axis.level_of_code) for axis in self.axes)
        object.__setattr__(self, "names", tuple(axis.name for axis in self.axes))
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "size", math.prod(shape))


def pack(schema: Schema, marginals: Sequence[Marginal]) -> tuple[PackedTable, ...]:
    """Tables that together contain every marginal: first fit, from the largest marginal to the smallest."""
    order = {name: position for position, name in enumerate(schema.names)}
    wanted = {frozenset(axis.name for axis in marginal.axes(schema)) for marginal in marginals}
    codes = {name: len(schema[name].level_of_code) for name in frozenset().union(*wanted)}

    def cells(names: Iterable[str]) -> int:
        return math.prod(codes[name] for name in names)

    def table(names: frozenset[str]) -> PackedTable:
        return PackedTable(tuple(schema[name] for name in sorted(names, key=order.__getitem__)))

    size = {names: cells(names) for names in wanted}
    for names in wanted:
        if size[names] > LARGEST_TABLE:
            raise SchemaError(
                f"Marginal: {', '.join(table(names).names)} has {size[names]:,} cells; one table holds at "
                f"most {LARGEST_TABLE:,}. Declare fewer categories, or ask for smaller marginals."
            )
    packed: list[frozenset[str]] = []
    sizes: list[int] = []
    for names in sorted(wanted, key=lambda names: (-size[names], sorted(names))):
        if any(names <= other for other in packed):
            continue
        growth = [cells(names - other) for other in packed]
        fitting = [place for place, grown in enumerate(growth) if sizes[place] * grown <= PACKED_CELLS]
        if fitting:
            best = min(fitting, key=growth.__getitem__)
            packed[best] |= names
            sizes[best] *= growth[best]
        else:
            packed.append(names)
            sizes.append(size[names])
    return tuple(table(names) for names in packed)


def add_rows(cells: Ints, table: PackedTable, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> None:
    """Count a batch of rows into the cells of a table; codes come counted from one.

    The codes of a row are the digits of its key in a mixed base. Unsigned arithmetic wraps around, so it does
    not matter that a key is too large until the ones are taken off all its digits.
    """
    short = table.size <= _SHORT_KEYS
    key = _key(table, codes, np.dtype(np.uint16 if short else np.uint32))
    if short:
        cells += np.bincount(key, minlength=table.size)
    else:
        np.add.at(cells, key, 1)


def split(tables: Sequence[PackedTable], cells: Ints) -> list[Ints]:
    """The cells of each table, from those of all tables one after the other."""
    return np.split(cells, np.cumsum([table.size for table in tables])[:-1])


def unpack(
    schema: Schema, marginals: Sequence[Marginal], tables: Sequence[PackedTable], counted: Sequence[Ints]
) -> tuple[Counts, ...]:
    """Sum the counted tables of codes out into the marginals, and move every code to its level."""
    return tuple(_marginal_counts(schema, marginal, tables, counted) for marginal in marginals)


def _marginal_counts(
    schema: Schema, marginal: Marginal, tables: Sequence[PackedTable], counted: Sequence[Ints]
) -> Counts:
    axes = marginal.axes(schema)
    containing = [number for number, table in enumerate(tables) if set(table.names) >= set(marginal.names)]
    chosen = min(containing, key=lambda number: tables[number].size)
    array = summed(counted[chosen].reshape(tables[chosen].shape), tables[chosen].names, marginal.names)
    for position, axis in enumerate(axes):
        array = _to_levels(array, position, axis)
    return Counts(marginal, axes, array)


def _key(
    table: PackedTable, codes: Mapping[str, NDArray[np.unsignedinteger]], dtype: np.dtype[np.unsignedinteger]
) -> NDArray[np.unsignedinteger]:
    key = codes[table.names[0]].astype(dtype)
    ones = 1
    for name, base in zip(table.names[1:], table.shape[1:], strict=True):
        key *= dtype.type(base)
        key += codes[name].astype(dtype, copy=False)
        ones = ones * base + 1
    key -= dtype.type(ones % 2 ** (8 * dtype.itemsize))
    return key


def _to_levels(array: Ints, position: int, axis: Attribute) -> Ints:
    """Add up the codes of one axis that belong to the same level."""
    level_of_code = axis.level_of_code
    if level_of_code == tuple(range(len(axis.levels))):
        return array
    leading = np.moveaxis(array, position, 0)
    levels = np.zeros((len(axis.levels), *leading.shape[1:]), dtype=np.int64)
    np.add.at(levels, list(level_of_code), leading)
    return np.moveaxis(levels, 0, position)
