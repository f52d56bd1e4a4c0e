"""An engine over columns in memory that are positions among declared levels already."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpbayes.domain.counts import Counts
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.tables.engine import Column, Kind


class CodedTable:
    """Columns of codes by name. They cannot be discovered or fingerprinted: their texts are gone."""

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = columns

    def columns(self) -> tuple[Column, ...]:
        """Names and types."""
        return tuple(Column(name, Kind.INTEGER) for name in self._columns)

    def count(self, schema: Schema, marginals: Sequence[Marginal]) -> tuple[Counts, ...]:
        """Exact tables for all marginals."""
        return tuple(self._counted(schema, marginal) for marginal in marginals)

    def _counted(self, schema: Schema, marginal: Marginal) -> Counts:
        shape = marginal.shape(schema)
        key = np.ravel_multi_index([self._columns[name] for name in marginal.names], shape)
        return Counts(marginal, marginal.axes(schema), np.bincount(key, minlength=math.prod(shape)).reshape(shape))

    def values(self, column: str, unit: PrivacyUnit, person: str | None = None) -> dict[str, int]:  # noqa: ARG002 - Engine
        """Codes have no texts."""
        raise InvalidArgument("CodedTable: codes have no texts to discover.")

    def fingerprint(self, columns: Sequence[str]) -> str:  # noqa: ARG002 - Engine
        """Codes in memory are not fingerprinted."""
        raise InvalidArgument("CodedTable: a table in memory has no fingerprint.")
