"""An engine over columns in memory, each turned into levels when it is first asked for and never before."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from dpbayes._checks import Ints
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.coding import codes
from dpbayes.domain.counts import Counts
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.domain.values import text_or_none
from dpbayes.errors import InvalidArgument
from dpbayes.tables.engine import Column, Kind, needed

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
