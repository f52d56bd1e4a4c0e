"""What every counting engine does: it looks at columns, counts tables in one scan, and returns only counts.

An engine turns each needed value into a small code against the *declared* levels (``Attribute.level_of_code``
says what codes mean), counts a few wide tables of codes (``packing.pack``), and lets ``packing.unpack`` sum
them out into the tables asked for. So no engine decides where unknown, missing or dropped values go.
``CodedTable`` is the engine over columns in memory.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np

from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument, SchemaError, TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts, SparseCounts
from dpbayes.schema.labels import codes
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import PrivacyUnit
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

    def values(self, column: str, unit: PrivacyUnit, person: str | None = None) -> dict[str, int]:
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
    known = {column.name: column.kind for column in columns}
    for name in schema.names if names is None else names:
        attribute = schema[name]
        use = "edges" if attribute.edges else "dates" if attribute.dates else "categories"
        _check_column(name, use, known)
    if schema.person is not None:
        _check_column(schema.person, "person", known)


def check_column(name: str, columns: Sequence[Column], use: str = "categories") -> Kind:
    """The kind of one column, after checking that it exists and suits its use."""
    return _check_column(name, use, {column.name: column.kind for column in columns})


def _check_column(name: str, use: str, known: Mapping[str, Kind]) -> Kind:
    if name not in known:
        raise TableError(f"Table: there is no column {name!r}. {_hint(name, known)}")
    if known[name] not in _FITS[use]:
        raise SchemaError(
            f"Schema: column {name!r} has the type {known[name]}, which does not go with {use}. "
            f"Cast it to one of {', '.join(sorted(_FITS[use]))}."
        )
    return known[name]


def _hint(name: str, known: Mapping[str, Kind]) -> str:
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

    def values(self, column: str, unit: PrivacyUnit, person: str | None = None) -> dict[str, int]:  # noqa: ARG002 - Engine
        """Columns in memory are not discovered."""
        raise InvalidArgument("CodedTable: a table in memory has no texts to discover here. Hand in a frame.")

    def fingerprint(self, columns: Sequence[str]) -> str:  # noqa: ARG002 - Engine
        """Columns in memory are not fingerprinted."""
        raise InvalidArgument("CodedTable: a table in memory has no fingerprint.")
