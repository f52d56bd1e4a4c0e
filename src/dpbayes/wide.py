"""Wide distributions: a domain of up to 10¹⁸ cells, paid for once, and answered cell by cell when asked."""

from __future__ import annotations

import json
import math
import os
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.sparse import SparseCounts
from dpbayes.errors import InvalidArgument, LedgerError, ReleaseError, TableError
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.lazy import Law, LazyDirichlet
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS, ConcentrationCurve
from dpbayes.privacy.guarantee import Guarantee, guarantee_from_record
from dpbayes.tables.engine import Engine, check_schema

FORMAT = "dpbayes-wide-1"


@runtime_checkable
class WideEngine(Engine, Protocol):
    """An engine that can list the occupied cells of a domain too wide for a table."""

    def occupied(self, schema: Schema, marginal: Marginal) -> SparseCounts:
        """The occupied cells of one marginal. Sensitive, and as large as the number of different rows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WideDistribution:
    """A distribution over the attributes of a marginal, of which any cell or table can be asked for.

    It holds the private counts and the key of the draw: keep it where the table is kept. Its answers are public.
    """

    schema: Schema
    marginal: Marginal
    target: Guarantee
    counts: SparseCounts
    mechanism: Dirichlet
    law: Law
    key: bytes
    seeded: bool = False

    def share(self, levels: Mapping[str, str]) -> float:
        """The share of the records with these levels; attributes that are not named are summed over."""
        return float(self.table((), levels))

    def table(self, names: Sequence[str], where: Mapping[str, str] | None = None) -> Floats:
        """The table of some attributes, among the records with the levels ``where``, as shares of all records."""
        position = {name: number for number, name in enumerate(self.marginal.names)}
        fixed = {}
        for name, level in (where or {}).items():
            axis = self.marginal.axes(self.schema)[self._position(position, name)]
            if level not in axis.levels:
                raise InvalidArgument(f"WideDistribution: {name!r} has no level {level!r}. See `dpbayes schema show`.")
            fixed[position[name]] = axis.levels.index(level)
        return self.lazy().marginal([self._position(position, name) for name in names], fixed)

    def lazy(self) -> LazyDirichlet:
        """The draw itself, whose cells are numbered by levels."""
        return LazyDirichlet(self.mechanism, self.counts, key=self.key, law=self.law)

    def _position(self, position: Mapping[str, int], name: str) -> int:
        if name not in position:
            raise InvalidArgument(
                f"WideDistribution: there is no attribute {name!r} in it. It has {', '.join(position)}."
            )
        return position[name]

    def __repr__(self) -> str:
        return f"WideDistribution({self.marginal}: {self.counts.size:,} cells, {self.target})"

    def save(self, path: Path) -> None:
        """Write it to a new file that only its owner can read. The file is as private as the table."""
        about = {
            "format": FORMAT,
            "schema": self.schema.record(),
            "marginal": self.marginal.record(),
            "target": self.target.record(),
            "mechanism": self.mechanism.record(),
            "law": self.law,
            "key": self.key.hex(),
            "seeded": self.seeded,
        }
        try:
            created = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise ReleaseError(f"Wide: {str(path)!r} exists already. Choose another name.") from None
        except OSError as problem:
            raise ReleaseError(f"Wide: {str(path)!r} cannot be written: {problem.strerror}.") from None
        try:
            with os.fdopen(created, "wb") as file:
                np.savez(file, about=json.dumps(about), cells=self.counts.cells, counts=self.counts.counts)
        except BaseException as problem:
            path.unlink(missing_ok=True)  # nothing half-written, least of all private counts
            if not isinstance(problem, OSError):
                raise
            raise ReleaseError(f"Wide: {str(path)!r} cannot be written: {problem.strerror}.") from None

    @classmethod
    def load(cls, path: Path) -> WideDistribution:
        """Read what ``save`` wrote."""
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                cells, counts = file["cells"], file["counts"]
            if about["format"] != FORMAT:
                raise ReleaseError(f"Wide: {str(path)!r} was written by another version. Expected {FORMAT}.")
            schema, marginal = Schema.from_record(about["schema"]), Marginal.from_record(about["marginal"])
            return cls(
                schema=schema,
                marginal=marginal,
                target=guarantee_from_record(about["target"]),
                counts=SparseCounts(marginal.shape(schema), cells, counts),
                mechanism=Dirichlet.from_record(about["mechanism"]),
                law=about["law"],
                key=bytes.fromhex(about["key"]),
                seeded=bool(about["seeded"]),
            )
        except OSError:
            raise ReleaseError(f"Wide: {str(path)!r} cannot be read. Check the path and its permissions.") from None
        except (ValueError, KeyError, TypeError, zipfile.BadZipFile):
            raise ReleaseError(f"Wide: {str(path)!r} is not a wide distribution, or is damaged.") from None


def mechanism_for(
    schema: Schema, marginal: Marginal, target: Guarantee, *, law: Law = "splits", expected_records: int | None = None
) -> Dirichlet:
    """The Dirichlet mechanism that meets the target over the whole domain; no data is read."""
    _checks.one_of("Wide", ("cells", "splits"), law=law)
    shape = marginal.shape(schema)
    if marginal.given:
        raise InvalidArgument("Wide: expected a joint marginal such as sex,age,place, widest attributes last.")
    records = schema.records or expected_records or REFERENCE_RECORDS
    releases, cells = (1, math.prod(shape)) if law == "cells" else (len(shape), max(shape))
    curve = ConcentrationCurve(target=target, unit=schema.unit, releases=releases)
    return curve.best(purpose="draw", cells=cells, records=records)


def open_wide(
    *,
    engine: Engine,
    schema: Schema,
    marginal: Marginal,
    target: Guarantee,
    ledger: Ledger | None,
    law: Law = "splits",
    expected_records: int | None = None,
    seed: int | None = None,
) -> WideDistribution:
    """Charge the ledger once for the whole domain, list its occupied cells, and hand out a key for the draw.

    ``law`` is explained at ``LazyDirichlet``. If listing fails, nothing was answered and the charge is voided.
    """
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**256):
        raise InvalidArgument(f"Wide: expected seed to be a whole number from 0 to 2^256, got {seed!r}.")
    mechanism = mechanism_for(schema, marginal, target, law=law, expected_records=expected_records)
    check_schema(schema, engine.columns(), marginal.names)
    if not isinstance(engine, WideEngine):
        raise TableError("Wide: this engine cannot list occupied cells. Export the columns to Parquet first.")
    empty = SparseCounts.total([], marginal.shape(schema))
    cost = LazyDirichlet(mechanism, empty, key=bytes(32), law=law).cost
    private = ledger if seed is None else None
    receipt = None if private is None else private.charge(schema.id, cost, about=f"wide: {marginal}"[:1000])
    try:
        counts = engine.occupied(schema, marginal)
    except BaseException:
        if private is not None and receipt is not None:
            private.void(receipt, about="counting failed; nothing was drawn")
        raise
    if private is not None and receipt is not None:
        with suppress(LedgerError):  # only a note: a charge without it counts as well
            private.confirm(receipt)
    return WideDistribution(
        schema=schema,
        marginal=marginal,
        target=target,
        counts=counts,
        mechanism=mechanism,
        law=law,
        key=secrets.token_bytes(32) if seed is None else seed.to_bytes(32),
        seeded=seed is not None,
    )
