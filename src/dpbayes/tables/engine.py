"""What every counting engine does: it looks at columns, counts tables in one scan, and returns only counts.

An engine turns each needed value into a small code against the *declared* levels (``Attribute.level_of_code``
says what codes mean), counts a few wide tables of codes (``pack``), and lets ``unpack`` sum them out into the tables
asked for. So no engine decides where unknown, missing or dropped values go. ``CodedTable`` is the engine over columns
in memory.

Scanning costs the same for one table or forty, but each counted table costs one pass over the codes. So marginals
contained in others are never counted, and the rest are merged while a table has at most ``PACKED_CELLS`` cells: its
keys fit 16 bits and its counts fit the processor's first caches.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument, SchemaError, TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts, SparseCounts
from dpbayes.schema.labels import codes
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.public import summed
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.schema.values import text_or_none


class Kind(StrEnum):
    """What sort of values a column holds, whatever the engine calls its type."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Column:
    """The name and the type of a column: metadata, no rows."""

    name: str
    kind: Kind


class Engine(Protocol):
    """A table somewhere, and the few questions that dpbayes asks about it."""

    def columns(self) -> tuple[Column, ...]:
        """Names and types. Reads no rows."""

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals, from one scan of the columns they need. Sensitive."""

    def values(self, column: str, unit: Unit, person: str | None = None) -> dict[str, int]:
        """The texts in a column that are not missing, and their rows. Sensitive: only discovery uses it."""

    def fingerprint(self, columns: Sequence[str]) -> str:
        """A digest of these columns, whatever the order of rows. Sensitive: kept with the ledger only."""


@runtime_checkable
class ListingEngine(Engine, Protocol):
    """An engine that can list the occupied cells of a domain too wide for a table."""

    def occupied(self, schema: Schema, marginal: Marginal) -> SparseCounts:
        """The occupied cells of one marginal. Sensitive, and as large as the number of different rows."""


@runtime_checkable
class CodingEngine(Engine, Protocol):
    """An engine that can hand out records one by one, as positions among declared levels."""

    def codes(self, schema: Schema, names: Sequence[str]) -> Iterator[dict[str, Ints]]:
        """Batches of records, for each attribute their levels. Sensitive: only the choice of a temperature uses it."""


_FITS = {
    "categories": frozenset(Kind) - {Kind.UNSUPPORTED},
    "edges": frozenset({Kind.TEXT, Kind.INTEGER, Kind.NUMBER}),
    "dates": frozenset({Kind.TEXT, Kind.DATE, Kind.TIMESTAMP}),
    "person": frozenset({Kind.TEXT, Kind.INTEGER}),
}


def check_names(names: Sequence[str]) -> None:
    """Refuse column names that an engine could mistake for each other.

    The message has their places, not the names: the first line of a CSV file without a header is a private row.
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        other = seen.setdefault(name.casefold(), place)
        if other != place:
            raise TableError(
                f"Table: the names of its columns {other} and {place} cannot be told apart. Rename one of them; if it "
                "is a CSV file without a header line, add one."
            )


def check_schema(schema: Schema, columns: Sequence[Column], names: Sequence[str] | None = None) -> None:
    """Check that a table has what a schema declares, from metadata alone."""
    for name in schema.names if names is None else names:
        attribute = schema[name]
        check_column(name, columns, "edges" if attribute.edges else "dates" if attribute.dates else "categories")
    if schema.person is not None:
        check_column(schema.person, columns, "person")


def check_column(name: str, columns: Sequence[Column], use: str = "categories") -> Kind:
    """The kind of one column, after checking that it exists and suits its use."""
    known = {column.name: column.kind for column in columns}
    if name not in known:
        raise TableError(f"Table: there is no column {name!r}. {spelling(name, known)}")
    if known[name] not in _FITS[use]:
        raise SchemaError(
            f"Schema: column {name!r} has the type {known[name]}, which does not go with {use}. "
            f"Cast it to one of {', '.join(sorted(_FITS[use]))}."
        )
    return known[name]


def spelling(name: str, known: Iterable[str]) -> str:
    """Point to a name that differs in case or spelling marks only; any other may be a value in a row without header."""
    plain = {re.sub(r"[\W_]", "", column).casefold(): column for column in known}
    near = plain.get(re.sub(r"[\W_]", "", name).casefold())
    if near is not None:
        return f"Did you mean {near!r}?"
    return "Check the name; in a CSV file also the delimiter, and that the first line names the columns."


def needed(schema: Schema, marginals: Sequence[Marginal]) -> tuple[Attribute, ...]:
    """The attributes that some marginal uses, in the order of the schema."""
    used = {axis.name for marginal in marginals for axis in marginal.axes(schema)}
    return tuple(attribute for attribute in schema.attributes if attribute.name in used)


_KINDS = {"i": Kind.INTEGER, "u": Kind.INTEGER, "f": Kind.NUMBER, "b": Kind.BOOLEAN, "M": Kind.TIMESTAMP}
_KINDS |= {"O": Kind.NUMBER}  # suits every attribute, and what is no number counts as unknown


class CodedTable:
    """Columns by name: arrays of values, or functions that return the levels of every record.

    They cannot be discovered or fingerprinted.
    """

    def __init__(self, columns: Mapping[str, np.ndarray | Callable[[], Ints]]) -> None:
        self._columns = columns
        self._coded: dict[Attribute, Ints] = {}

    def columns(self) -> tuple[Column, ...]:
        """Names and types; columns of Python objects may hold anything that an attribute asks for."""
        kinds = {name: getattr(getattr(column, "dtype", None), "kind", "i") for name, column in self._columns.items()}
        return tuple(Column(name, _KINDS.get(kind, Kind.TEXT)) for name, kind in kinds.items())

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals."""
        kept = self._kept(schema, [attribute.name for attribute in needed(schema, marginals)])
        return tuple(self._counted(schema, marginal, kept) for marginal in marginals)

    def codes(self, schema: Schema, names: Sequence[str]) -> Iterator[dict[str, Ints]]:
        """All records at once."""
        kept = self._kept(schema, names)
        yield {name: self._levels(schema[name])[kept] for name in names}

    def _counted(self, schema: Schema, marginal: Marginal, kept: Ints | slice) -> Counts:
        shape = marginal.shape(schema)
        key = np.ravel_multi_index([self._levels(axis)[kept] for axis in marginal.axes(schema)], shape)
        return Counts(marginal, marginal.axes(schema), np.bincount(key, minlength=math.prod(shape)).reshape(shape))

    def _kept(self, schema: Schema, names: Sequence[str]) -> Ints | slice:
        """The rows that count: of each person the ``max_rows`` with the smallest hashes, as in every engine."""
        if schema.person is None:
            return slice(None)
        columns = np.stack([self._levels(schema[name]) for name in names], axis=1)
        rows: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
        people = self._columns[schema.person]
        people = people() if callable(people) else people
        for place, (person, levels) in enumerate(zip(people.tolist(), columns.tolist(), strict=True)):
            if (known := text_or_none(person)) is not None:
                hashed = hashlib.md5(",".join([known, *map(str, levels)]).encode(), usedforsecurity=False)
                rows[known].append((hashed.digest(), place))
        kept = [place for each in rows.values() for _, place in sorted(each)[: schema.unit.max_rows]]
        return np.array(kept, dtype=np.int64)

    def _levels(self, attribute: Attribute) -> Ints:
        if attribute not in self._coded:
            column = self._columns[attribute.name]
            self._coded[attribute] = column() if callable(column) else codes(attribute, column)
        return self._coded[attribute]

    def values(self, column: str, unit: Unit, person: str | None = None) -> dict[str, int]:  # noqa: ARG002 - Engine
        """Columns in memory are not discovered."""
        raise InvalidArgument("CodedTable: a table in memory has no texts to discover here. Hand in a frame.")

    def fingerprint(self, columns: Sequence[str]) -> str:  # noqa: ARG002 - Engine
        """Columns in memory are not fingerprinted."""
        raise InvalidArgument("CodedTable: a table in memory has no fingerprint.")


PACKED_CELLS = 2**13


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
        if size[names] > (most := 2**28):
            raise SchemaError(
                f"Marginal: {', '.join(table(names).names)} has {size[names]:,} cells; one table holds at "
                f"most {most:,}. Declare fewer categories, or ask for smaller marginals."
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
    short = table.size <= 2**16  # of 16 bits
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
