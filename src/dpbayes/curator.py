"""The only place where private rows, ledger and randomness meet: one transaction for every job.

    draft on disk → charge → read → draw → draw on disk → note in the ledger → estimates, files

One thing is read before the charge: how many rows there are, where all neighbours have the same number and the schema
declares it.
Nothing is printed, written or returned before the draw is on disk. Until then an interrupted release is drawn again
under the same charge; from then on it is completed from the draw (``dpbayes.ledger.kept`` says why that is sound).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from dpbayes.base import display
from dpbayes.base.codec import Record, canonical, digest
from dpbayes.base.errors import DpbayesError, InvalidArgument, LedgerError, SchemaError, Unfinished
from dpbayes.base.files import check_disk, check_folder
from dpbayes.design.forecast import of_the_limit
from dpbayes.design.plan import Job, Plan
from dpbayes.jobs.base import plan_of, plan_record
from dpbayes.jobs.request import Request
from dpbayes.ledger.history import check_superseded, line
from dpbayes.mechanisms.noise import software
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Release, now
from dpbayes.release.products import complete
from dpbayes.release.words import checked
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.beside import beside
from dpbayes.tables.engine import Engine
from dpbayes.tables.sources import open_table, public_address

if TYPE_CHECKING:
    from dpbayes.jobs.base import Storing
    from dpbayes.ledger.kept import Slot
    from dpbayes.ledger.ledger import Ledger, Receipt
    from dpbayes.models.model import Model, ModelSpec

STEPS = ("calibrating", "charging the ledger", "counting and drawing", "estimating", "writing")
"""What a release goes through, as its progress is told."""


class DryRun(DpbayesError):  # noqa: N818 - no error: the answer of a dry run
    """What the curator of a dry run answers in place of a release: what would be released, charged and written."""

    def __init__(self, plan: Plan, ledger: Ledger | None, out: Path | None) -> None:
        super().__init__("Curator: a dry run reads no rows, charges nothing and writes nothing.")
        self.plan, self.ledger, self.out = plan, ledger, out

    def obstacles(self) -> tuple[DpbayesError, ...]:
        """What would refuse the release if it were asked for now."""
        checks: list[Callable[[], None]] = [
            lambda: check_price(self.plan, self.ledger),
            lambda: check_room(self.plan, self.ledger, self.out),
        ]
        found = []
        for check in checks:
            try:
                check()
            except DpbayesError as problem:
                found.append(problem)
        return tuple(found)


class Curator(display.Shown):
    """Holds the table, its schema and the ledger, and makes releases.

    Args:
        table: a path or address, a frame, an open connection's engine: whatever can be counted.
        schema: what is public about it, as a ``Schema`` or its file; left out, the file that bears the table's name.
        ledger: what remembers the cost, as a ``Ledger``, a path or an address. Left out, it is the file that bears the
            table's name, and without one nothing is released; ``"none"`` remembers nothing, as for a table in memory.
        seed: makes draws repeatable; such a release is stamped as not private and is never charged.
        progress: is told what is going on.
        dry_run: plans and checks only; it raises ``DryRun`` where others would charge, read rows or write.
    """

    def __init__(
        self,
        table: object,
        schema: Schema | str | Path | None = None,
        ledger: Ledger | str | Path | None = None,
        *,
        seed: int | None = None,
        progress: Callable[[str], None] | None = None,
        dry_run: bool = False,
    ) -> None:
        if seed is not None and (type(seed) is not int or seed < 0):
            raise InvalidArgument(f"Curator: expected seed to be a whole number >= 0, got {seed!r}.")
        table = Path(table) if isinstance(table, PathLike) else table
        self._near = beside(table, schema, ledger)
        declared = self._near.need_schema()
        self.schema = declared if isinstance(declared, Schema) else Schema.load(declared)
        self._address = address(table)
        self._engine: Engine = open_table(table)
        self._ledger = opened(self._near.ledger)
        self._seed = seed
        self._say = progress or (lambda _: None)
        self.dry_run = dry_run

    def __repr__(self) -> str:
        remembered = "no ledger" if self._ledger is None else f"ledger {self._ledger.name}"
        return f"Curator({self.schema.id!r}, {len(self.schema.attributes)} attributes, {remembered})"

    def _facts(self) -> tuple[str, display.Facts]:
        return repr(self), [("attributes", display.listed(self.schema.names)), ("unit", str(self.schema.unit))]

    def plan(
        self, job: Job | object, target: Guarantee | None = None, *, about: Mapping[str, str] | None = None
    ) -> Plan:
        """Calibrate a job or a request. Looks at the schema, the column names and the ledger's rule, never at rows."""
        said, account = dict(about or {}), None if self._ledger is None else self._ledger.standing(self.schema.id)
        if isinstance(job, Request):
            target, said = target or job.guarantee(account), {**job.about, **said}
            job = job.job(self.schema)
        self._at("calibrating")
        asked = as_job(job)
        if (suiting := getattr(asked, "suiting", None)) is not None:
            asked = suiting(self._engine)
        plan = plan_of(asked, self.schema, target, account=account)
        plan.job.check(self._engine, plan)
        plan = replace(plan, publication=checked(said))
        object.__setattr__(plan, "account", account)
        return plan

    def check(self, plan: Plan, out: str | Path | None = None) -> None:
        """Refuse what would be refused if this plan were released now. Charges nothing, reads no rows."""
        check_price(plan, self._ledger)
        check_room(plan, self._ledger, out)

    def _check_size(self, plan: Plan) -> None:
        """Refuse a table of another size than is declared, and charge nothing.

        All neighbours have this size, so whether it is the declared one, and what it is, follow from the unit's promise
        alone: a loss of 0 (docs/explanation/ledger.md, what is compared before a charge). Where the size is private,
        with a person column too, nothing is compared. The ledger speaks first, before a row is read: under its own unit
        the size may be private. Whatever else keeps the table from being counted is told after the charge.
        """
        known = [name for name in plan.columns if name in plan.schema.names]
        declared, found = plan.schema.records, None
        if declared is None or not plan.schema.unit.fixed_size or not known:
            return
        check_price(plan, self._ledger if self._seed is None else None)
        self._may_read()
        with suppress(Exception):
            (counts,) = self._engine.count(plan.schema, [Marginal((known[0],))])
            found = int(counts.array.sum())
        if found is not None and found != declared:
            raise SchemaError(
                f"Schema: it declares records = {declared:,}, and the table has {display.plural(found, 'row')}. "
                "Correct the one that is wrong; nothing was charged."
            )

    @property
    def remembers(self) -> bool:
        """Whether a ledger remembers the cost."""
        return self._ledger is not None

    def much(self, plan: Plan) -> list[str]:
        """A sentence about a plan that takes half of the ledger's limit or more."""
        if self._ledger is None:
            return []
        share, said = of_the_limit(plan, self._ledger.standing(self.schema.id), least := 0.5)
        return [said] if share >= least else []

    def _trusted(self, plan: Plan) -> Plan:
        if plan.schema != self.schema or plan.lock:
            raise InvalidArgument("Curator: expected a plan of this curator's own. Plan the job again.")
        plan.job.check(self._engine, plan)
        return plan

    def release(
        self,
        job: Job | object,
        target: Guarantee | None = None,
        *,
        about: Mapping[str, str] | None = None,
        out: str | Path | None = None,
        numbers: Literal["csv", "parquet"] = "csv",
        estimates: bool = True,
    ) -> Release:
        """Make a release: plan it, pay for it, draw it, and write it to the folder ``out`` if there is one.

        A plan of this curator's own may be given instead of a job. A ``Request`` brings its own target. Where a job
        wants accuracies, the target is the most that is allowed, by default what is left in the ledger, and the least
        that is needed is paid and promised. ``about`` is for readers: title, author, contact, purpose, supersedes.
        Without ``estimates`` it holds what was drawn and no more; they are computed when it is saved.
        """
        plan = self._trusted(job) if isinstance(job, Plan) else self.plan(job, target, about=about)
        if self.dry_run:
            raise DryRun(plan, self._ledger, None if out is None else Path(out))
        if self._ledger is None and self._seed is None:
            self._near.need_ledger()
        check_room(plan, self._ledger, out)
        self._check_size(plan)
        goes = None if out is None else destination(out, numbers)
        if self._ledger is None or self._seed is not None:
            release, private = self._draw(plan)
            _store(plan, private, release)
            return self._completed(release, goes, estimates=estimates)
        draft = {"plan": plan_record(plan), "table": self._address, "goes": goes}
        if replaced := plan.publication.get("supersedes"):
            check_superseded(self._ledger.standing(self.schema.id), replaced, plan.wanted)
        with self._ledger.kept.begin(draft) as slot:
            try:
                self._at("charging the ledger")
                receipt = self._ledger.charge(
                    self.schema.id, plan.cost, about=_line(plan), schema=self.schema.digest, key=slot.key
                )
            except DpbayesError:
                with suppress(LedgerError):  # an answer that got lost may have been a yes: then the draft stays
                    if self._ledger.receipt(slot.key) is None:
                        slot.done()
                raise
            made = self.under(receipt, replace(plan, lock=digest(slot.key)), slot, goes, estimates=estimates)
            if not slot.over:
                warnings.warn(
                    "Ledger: the release is complete, but the ledger could not note what was drawn, so that nobody can "
                    "check the two against each other. Mend the cause, then run `dpbayes ledger finish`.",
                    stacklevel=2,
                )
            return made

    def changed(self) -> bool:
        """Whether the table has changed since the last time this was asked. A fact about the rows, for the owner only.

        Keeps a digest of the declared columns under a secret key in the ledger, and publishes none.
        """
        self._may_read()
        if self._ledger is None:
            raise InvalidArgument("Curator: expected a ledger, which remembers what the table was like.")
        columns = list(self.schema.names)
        found = self._engine.fingerprint(columns)
        comparable = canonical([found.partition(":")[0], columns])  # the same engine, version and columns
        return self._ledger.remember_fingerprint(self.schema.id, found, of=comparable)

    def undeclared(self) -> dict[str, float]:
        """Attributes whose column holds values that are not declared, with the share of rows. For the owner only."""
        self._may_read()
        split = tuple(replace(each, unknown="drop", missing="category", labels=()) for each in self.schema.attributes)
        unit = replace(self.schema.unit, person=None)
        apart = Schema(id=self.schema.id, unit=unit, attributes=split)
        counted = self._engine.count(apart, [Marginal((each.name,)) for each in split])
        pairs = zip(split, (counts.array for counts in counted), strict=True)
        return {each.name: float(rows[-1] / rows.sum()) for each, rows in pairs if rows[-1] > 0}

    def under(
        self, receipt: Receipt, plan: Plan, slot: Slot, goes: Record | None, *, estimates: bool = True
    ) -> Release:
        """Everything that follows a charge. The draft stays until the ledger has noted what was drawn."""
        try:
            text = slot.kept()
            release = self._drawn_and_kept(plan, slot) if text is None else Release.from_json(text)
            noted = self._noted(release, receipt)
            _store(plan, slot.private(), release)
            finished = self._completed(replace(release, spending=receipt.spending), goes, estimates=estimates)
        except Unfinished:
            raise
        except DpbayesError as problem:
            raise Unfinished(
                f"{problem} The charge and the release are kept. Fix the cause, then run `dpbayes ledger finish`."
            ) from None
        if noted:
            slot.done()
        return finished

    def _completed(self, drawn: Release, goes: Record | None, *, estimates: bool = True) -> Release:
        """Everything that follows from the draw: estimates, files. A folder that holds this release is left alone."""
        finished = drawn
        if estimates or goes is not None:
            self._at("estimating")
            finished = complete(drawn)
        if goes is None:
            return finished
        folder = Path(goes["folder"])
        if (folder / "release.json").is_file() and Release.load(folder).digest() == drawn.digest():
            return finished
        self._at("writing")
        finished.save(folder, numbers=goes["numbers"])
        return finished

    def _at(self, step: str) -> None:
        """Tell what is being done and how far it is; the same whatever the rows are."""
        self._say(f"{step}, step {STEPS.index(step) + 1} of {len(STEPS)}")

    def _drawn_and_kept(self, plan: Plan, slot: Slot) -> Release:
        slot.reading()
        release, private = self._draw(plan)
        slot.keep(release.to_json(), private)
        return release

    def _noted(self, release: Release, receipt: Receipt) -> bool:
        """Whether the ledger notes the draw. One that has gone away is told later, by ``dpbayes ledger finish``."""
        assert self._ledger is not None
        try:
            self._ledger.confirm(receipt, digest=release.digest())
        except LedgerError:  # a charge without this note counts as well
            return False
        return True

    def _may_read(self) -> None:
        """Every way to the rows passes here."""
        if self.dry_run:
            raise InvalidArgument("Curator: a dry run reads no rows. Leave dry_run out.")

    def _draw(self, plan: Plan) -> tuple[Release, bytes]:
        self._may_read()
        self._at("counting and drawing")
        rng = None if self._seed is None else np.random.default_rng(self._seed)
        drawn = plan.job.draw(self._engine, plan, rng)
        release = Release(
            job=drawn.job or plan.job.record(),
            schema=drawn.schema or plan.schema,
            promise=plan.target,
            choice=plan.choice,
            paid=plan.paid,
            records=drawn.records,
            seeded=self._seed is not None,
            created=now(),
            about=plan.publication,
            software=software(),
            tables=drawn.tables,
            answers=drawn.answers,
            lock=plan.lock,
        )
        return release, drawn.private


def check_price(plan: Plan, ledger: Ledger | None) -> None:
    """Refuse what the ledger would refuse if it were charged for this plan now."""
    if ledger is not None:
        account = ledger.check(plan.schema.id, plan.cost, schema=plan.schema.digest)
        if replaced := plan.publication.get("supersedes"):
            check_superseded(account, replaced, plan.wanted)


def check_room(plan: Plan, ledger: Ledger | None, out: str | Path | None) -> None:
    """Refuse a folder that is not free, and disks that will not hold the release."""
    written = [] if out is None else [check_folder(out)]
    check_disk(plan.cells, written if ledger is None else [*written, ledger.kept.folder])


def _store(plan: Plan, private: bytes, release: Release) -> None:
    """The private side of a draw goes where it belongs, now that the draw is kept."""
    if private:
        cast("Storing", plan.job).store(private, release)


def destination(out: str | Path, numbers: str) -> Record:
    """Where a release goes, as its draft says it; a folder whose name no file can hold is refused before the charge."""
    folder = str(Path(out).absolute())
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("Curator: expected a folder whose name is UTF-8 text. Choose another name.") from None
    return {"folder": folder, "numbers": numbers}


def _line(plan: Plan) -> str:
    """What the ledger remembers a charge by."""
    said = plan.publication
    return line(plan.about, title=said.get("title", ""), supersedes=said.get("supersedes", ""))


def address(table: object) -> str | None:
    """Where the table is, to find it again from any folder; None if it lies in memory."""
    if not isinstance(table, (str, Path)):
        return None
    shown = public_address(str(table))
    return shown if "://" in shown else str(Path(shown).absolute())


def as_job(asked: object) -> Job:
    """A job, or the specification of a model, which is fitted with the usual options."""
    if hasattr(asked, "plan") and hasattr(asked, "draw"):
        return cast(Job, asked)
    if hasattr(asked, "marginals") and hasattr(asked, "build"):
        from dpbayes.jobs.model import Fit  # with its models, which tables do not need

        return Fit(model=cast("ModelSpec[Model]", asked), **getattr(asked, "options", {}))
    raise InvalidArgument(f"Curator: expected a job such as Tables or NaiveBayes, got a {type(asked).__name__}.")


def opened(ledger: Ledger | str | Path | None) -> Ledger | None:
    """A ledger, by its name if need be."""
    if not isinstance(ledger, (str, Path)):
        return ledger
    from dpbayes.ledger.ledger import Ledger  # only here: databases take long to load, and some releases need none

    return Ledger(ledger)
