"""Wide distributions: a domain of up to 10¹⁸ cells, paid for once, and answered cell by cell when asked."""

from __future__ import annotations

import io
import json
import math
import secrets
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, ClassVar

import numpy as np

from dpbayes.base import checks, codec, files
from dpbayes.base.checks import Floats
from dpbayes.base.codec import Record
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError, SchemaError, TableError, TargetUnreachable
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, one_joint, plan_from_record, plan_record, typed
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.lazy import Law, LazyDirichlet
from dpbayes.mechanisms.noise import software
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS, ConcentrationCurve
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import COMMITMENT, Answer, Paid, Release, Table, now
from dpbayes.schema.counts import SparseCounts
from dpbayes.schema.labels import places
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine, ListingEngine

FORMAT = "dpbayes-wide-3"

EARLIER = "dpbayes-wide-2"
"""Of 0.2.0, which did not note the key: its answers cannot be tied to their charge."""

LEAST_CONCENTRATION = 2.0**-6
"""Below it, too few values of the sampler share a published share (docs/explanation/wide.md)."""


UNREADABLE = (
    DpbayesError, ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError,
    ValueError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What a damaged archive of arrays may raise; a NotImplementedError and a RecursionError are RuntimeErrors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide(BaseJob):
    """One draw over all cells of a joint marginal; put the attributes that are asked for most often first.

    ``law`` is explained at ``LazyDirichlet``. ``state`` names the new file for the counts and the key of the draw: it
    is as private as the table, and every answer comes out of it. It is written after the draw is kept.
    """

    kind: ClassVar[str] = "wide"
    MAKES: ClassVar[Mapping[str, Make]] = {
        "wide": Make("one joint table, what is asked for most often first", ("law",))
    }
    marginal: Marginal
    state: str
    law: Law = "splits"

    def __post_init__(self) -> None:
        object.__setattr__(self, "marginal", Marginal.of_text(self.marginal))
        object.__setattr__(self, "state", str(self.state))
        checks.one_of("Wide", ("cells", "splits"), law=self.law)
        if self.marginal.given:
            raise InvalidArgument("Wide: expected a joint marginal such as sex,age,place, widest attributes last.")

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Wide:
        """The state lies beside the table, and bears its name."""
        if setting.stem is None:
            raise InvalidArgument("Wide: the table has no name that the state could share. Name one file or table.")
        state = str(setting.stem.with_name(f"{setting.stem.name}.wide"))
        return cls(marginal=one_joint(kind, tables), state=state, **typed(cls, keys))

    def after(self, release: Release, schema: Schema, folder: Path | None) -> str:  # noqa: ARG002 - as in other jobs
        """What the state is for."""
        return f"{self.state} is as private as the table. Its answers are public: dpbayes ask {self.state} QUESTION."

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate the draw, and see that its state can be written."""
        where = Path(self.state).absolute()
        if not str(where).isprintable():
            raise InvalidArgument("Wide: expected a name of printable text for the state. Choose another one.")
        if where.exists():
            raise InvalidArgument(f"Wide: {self.state!r} exists already. Choose another name for the state.")
        if not where.parent.is_dir():
            raise InvalidArgument(f"Wide: there is no folder for {self.state!r}. Make it first.")
        shape = self.marginal.shape(schema)
        releases, cells = (1, math.prod(shape)) if self.law == "cells" else (len(shape), max(shape))
        curve = ConcentrationCurve(target=target, unit=schema.unit, releases=releases)
        records = schema.expected or REFERENCE_RECORDS
        made = curve.best(purpose="draw", cells=cells, records=records)
        if made.smallest[0] < LEAST_CONCENTRATION:
            raise TargetUnreachable(
                f"Wide: {target} is so loose that doubles cannot carry the draw: its concentration would be below "
                f"{LEAST_CONCENTRATION:g}. Ask for a stricter guarantee."
            )
        return Plan(
            job=replace(self, state=str(where)),  # it is finished from wherever somebody stands
            schema=schema,
            target=target,
            paid=(Paid(mechanism=made, times=releases),),
            choice=f"dirichlet: one draw over {math.prod(shape):,} cells, the law of {self.law}",
            about=f"wide: {self.marginal}",
            columns=self.marginal.names,
        )

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a table that lacks a column, or whose occupied cells cannot be listed."""
        BaseJob.check(self, table, plan)
        if not isinstance(table, ListingEngine):
            raise TableError("Wide: this engine cannot list occupied cells. Export the columns to Parquet first.")

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """List the occupied cells and choose the key, which decide every answer; the hash of the key is published.

        A state that this very charge has left is the draw, since answers may have come out of it: until 0.2.0 it was
        written before the draw was kept.
        """
        if Path(self.state).exists():
            made = WideDistribution.load(self.state)
            if not plan.lock or made.plan.lock != plan.lock:
                raise _taken(self.state)
        else:
            made = WideDistribution(
                plan=plan,
                counts=table.occupied(plan.schema, self.marginal),  # type: ignore[attr-defined]  # checked before
                key=secrets.token_bytes(32) if rng is None else rng.bytes(32),
                seeded=rng is not None,
            )
        return Drawn(job=self._public(), answers=(made.commitment,), private=made.content())

    def store(self, private: bytes, release: Release) -> None:
        """Write the state, now that its draw is kept: only from here on are there answers."""
        made = WideDistribution.read(io.BytesIO(private), self.state)
        if release.answers != (made.commitment,):
            raise ReleaseError("Wide: what was kept is not the key of this draw. Restore the folder of draws.")
        where = Path(self.state)
        if where.exists() and WideDistribution.load(where).plan.lock != made.plan.lock:
            raise _taken(self.state)
        opened = {"created": release.created, "software": release.software, "about": release.about}
        replace(made, opened=opened | {"key": made.commitment.values[0]}).save(where)

    def _public(self) -> Record:
        """What is published of it."""
        return {key: value for key, value in self.record().items() if key != "state"}


JOB = Wide


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WideDistribution:
    """The private side of a wide release: counts and key. Keep it where the table is kept; its answers are public."""

    plan: Plan
    counts: SparseCounts = field(repr=False)
    key: bytes = field(repr=False)
    seeded: bool = False
    opened: Record = field(default_factory=dict)
    """What the release that opened it says beyond its answers: with it they can be tied to the note of the ledger."""

    @property
    def commitment(self) -> Answer:
        """Fixes the key and tells nothing about it, nor about the table."""
        return Answer(name=COMMITMENT, by=0, values=(codec.digest(b"dpbayes wide key " + self.key),))

    @property
    def job(self) -> Wide:
        """What was asked for."""
        return self.plan.job  # type: ignore[return-value]

    def answer(self, names: Sequence[str], where: Mapping[str, str] | None = None) -> Release:
        """A release of the table of some attributes among the records with the levels ``where``, paid for already."""
        shares = np.asarray(self.table(names, where)).ravel()
        job = self.job._public() | ({"opened": self.opened} if self.opened else {})
        tables: tuple[Table, ...] = ()
        answers: tuple[Answer, ...] = ()
        if where or not names:
            fixed = ", ".join(f"{name}={level}" for name, level in (where or {}).items())
            answers = (Answer(name=f"{','.join(names) or 'share'} where {fixed}", by=0, values=tuple(shares.tolist())),)
        else:
            tables = (Table(marginal=Marginal(tuple(names)), by=0, kind="shares", values=shares),)
        return Release(
            job=job,
            schema=self.plan.schema,
            promise=self.plan.target,
            choice=self.plan.choice,
            paid=self.plan.paid,
            seeded=self.seeded,
            created=now(),
            software=software(),
            tables=tables,
            answers=answers,
            lock=self.plan.lock,
        )

    def table(self, names: Sequence[str], where: Mapping[str, str] | None = None) -> Floats:
        """The table of some attributes, among the records with the levels ``where``, as shares of all records."""
        position = {name: number for number, name in enumerate(self.job.marginal.names)}
        axes, fixed = self.job.marginal.axes(self.plan.schema), {}
        for name, level in (where or {}).items():
            axis = axes[_position(position, name)]
            if (place := places(axis).get(level)) is None:
                raise SchemaError(f"Wide: {name!r} has no level {level!r}. See `dpbayes schema check`.")
            fixed[position[name]] = place
        return self.lazy().marginal([_position(position, name) for name in names], fixed)

    def lazy(self) -> LazyDirichlet:
        """The draw itself, whose cells are numbered by levels."""
        made: Dirichlet = self.plan.paid[0].mechanism  # type: ignore[assignment]
        return LazyDirichlet(made, self.counts, key=self.key, law=self.job.law)

    def __repr__(self) -> str:
        return f"WideDistribution({self.job.marginal}: {self.counts.size:,} cells, {self.plan.target})"

    def content(self) -> bytes:
        """Its file."""
        about = {
            "format": FORMAT,
            "plan": plan_record(self.plan),
            "key": self.key.hex(),
            "seeded": self.seeded,
            "opened": self.opened,
        }
        made = io.BytesIO()
        np.savez(made, about=json.dumps(about), cells=self.counts.cells, counts=self.counts.counts)
        return made.getvalue()

    def save(self, path: Path) -> None:
        """Write it whole to a new file that only its owner can read."""
        try:
            files.write(path, self.content(), private=True)
        except OSError as problem:
            raise ReleaseError(f"Wide: {str(path)!r} cannot be written: {problem.strerror}.") from None

    @classmethod
    def load(cls, path: str | Path) -> WideDistribution:
        """Read what ``save`` wrote."""
        try:
            with Path(path).open("rb") as raw:
                return cls.read(raw, path)
        except OSError:
            raise ReleaseError(f"Wide: {str(path)!r} cannot be read. Check the path and its permissions.") from None

    @classmethod
    def read(cls, raw: IO[bytes], path: str | Path) -> WideDistribution:
        """Read what is, or will be, the file of this name."""
        try:
            with np.load(raw, allow_pickle=False) as file:
                text = np.asarray(file["about"], dtype="<U").tobytes()  # numpy does not look whether it is Unicode
                about = json.loads(text.decode("utf-32-le"))
                cells, counts = file["cells"], file["counts"]
            if about["format"] not in (FORMAT, EARLIER):
                raise ReleaseError(f"Wide: {str(path)!r} was written by another version. Expected {FORMAT}.")
            plan = plan_from_record(about["plan"])
            shape = plan.job.marginal.shape(plan.schema)  # type: ignore[attr-defined]
            sparse = SparseCounts(shape, cells, counts)
            key, seeded, opened = bytes.fromhex(about["key"]), bool(about["seeded"]), dict(about.get("opened", {}))
            return cls(plan=plan, counts=sparse, key=key, seeded=seeded, opened=opened)
        except (OSError, ReleaseError):
            raise
        except UNREADABLE:
            raise ReleaseError(f"Wide: {str(path)!r} is not a wide distribution, or is damaged.") from None


def _taken(state: str) -> ReleaseError:
    return ReleaseError(f"Wide: {state!r} exists already, and is not of this charge. Move it away.")


def _position(position: Mapping[str, int], name: str) -> int:
    if name not in position:
        raise SchemaError(f"Wide: there is no attribute {name!r} in it. It has {', '.join(position)}.")
    return position[name]
