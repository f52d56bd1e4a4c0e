"""What a job is: public and complete, so that it can be previewed, priced, stored and repeated.

A job says what it needs (``plan``: mechanisms and cost, from public numbers only) and how it is drawn once it is paid
for (``draw``). Charging, keeping, noting and finishing are the curator's, for every job alike. A new product is one new
module of this package whose ``JOB`` is its class; the module's name, with dashes, is the kind written in releases.
``MAKES`` says as what it is asked for (``--as``), of which tables, and with which keys; ``requested`` makes the job.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, get_args, get_origin, get_type_hints

import numpy as np

from dpbayes.base import checks, codec, display
from dpbayes.base.codec import READERS, Record
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError
from dpbayes.base.files import check_memory
from dpbayes.design.noise import draw_table, payments
from dpbayes.design.plan import Drawn, Job, Plan
from dpbayes.privacy.calibrate import both, check_guarantee
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Release, Table
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine, check_schema, pack

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account

HELPERS = ("base", "request")
"""Modules of this package that are no jobs."""

LOOSEST = 1e6
"""The largest ε or ρ that may be asked for; beyond it there is no noise left to compute with."""


Names = Sequence[str]
"""Tables, as they are named."""

Keys = Mapping[str, object]
"""What else a job is told."""


@dataclass(frozen=True, slots=True)
class Make:
    """A product, as it is asked for."""

    tables: str
    """Which tables are named, in words."""
    keys: tuple[str, ...] = ()
    """What else can be said: names of fields of the job, where it does not read them in its own way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a request is about and where it stands: not part of it, and needed by some jobs."""

    schema: Schema | None = None
    folder: Path = Path()
    """Where the files are that keys name."""
    stem: Path | None = None
    """What the names of the data set's files begin with."""


class BaseJob(codec.WithKind):
    """What most jobs share: their JSON form by fields, and a table that has the columns of the plan."""

    __slots__ = ()
    place: ClassVar[str] = "job"
    MAKES: ClassVar[Mapping[str, Make]] = {}

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Self:  # noqa: ARG003 - for others
        """The job of a request: of one joint table, or of one column, whatever its field is called."""
        made = cast(Any, cls)
        if "column" in cls.__slots__:
            return made(column=one_column(kind, tables), **typed(cls, keys))  # type: ignore[no-any-return]
        return made(marginal=one_joint(kind, tables), **typed(cls, keys))  # type: ignore[no-any-return]

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a table that lacks a column of the plan, or what the schema declares of it."""
        check_schema(plan.schema, table.columns(), plan.columns)

    def _paying(self, schema: Schema, target: Guarantee, mechanisms: Sequence[Priced], **said: Any) -> Plan:
        """The plan that pays for these mechanisms, equal ones together."""
        paid, places = payments(mechanisms)
        return Plan(job=cast(Job, self), schema=schema, target=target, paid=paid, places=places, **said)


def kinds() -> tuple[str, ...]:
    """The kinds of jobs there are: the modules of this package that define one."""
    import dpbayes.jobs as package

    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return tuple(name.replace("_", "-") for name in names if name not in HELPERS)


def requestable() -> dict[str, type[BaseJob]]:
    """Everything that can be asked for, and the job that makes it."""
    jobs = [import_module(f"dpbayes.jobs.{kind.replace('-', '_')}").JOB for kind in kinds()]
    return {name: job for job in jobs for name in job.MAKES}


def maker(product: str) -> type[BaseJob]:
    """The job that makes a product; its own module is enough if that has its name."""
    module = f"dpbayes.jobs.{product.replace('-', '_')}"
    if product.replace("-", "").isalpha() and find_spec(module) and hasattr(import_module(module), "JOB"):
        found = import_module(module).JOB
        if product in found.MAKES:
            return cast("type[BaseJob]", found)
    known = requestable()
    if product not in known:
        raise InvalidArgument(f"as: there is nothing called {product!r} to release. {display.nearest(product, known)}")
    return known[product]


def one_joint(kind: str, tables: Sequence[str]) -> Marginal:
    """The joint table that a product is made of."""
    if len(tables) != 1:
        raise InvalidArgument(
            f"{kind}: expected one joint table, such as sex,income, got {len(tables)}. Choose one table."
        )
    return Marginal.parse(tables[0])


def one_column(kind: str, tables: Sequence[str]) -> str:
    """The column that a product is made of."""
    found = one_joint(kind, tables)
    if len(found.names) != 1:
        raise InvalidArgument(f"{kind}: expected one column, got {tables[0]!r}. Name one column, such as region.")
    return found.names[0]


def typed(job: type, keys: Mapping[str, object]) -> dict[str, Any]:
    """The values of fields as their types ask for: texts of numbers are read, and one value stands for a list of it."""
    hints = get_type_hints(job)
    return {name: of_type(hints[name], name, value) for name, value in keys.items()}


def of_type(hint: Any, name: str, value: object) -> Any:
    """One value of this type, written as in a request; ``0:120`` and ``0,120`` are two numbers."""
    options = [each for each in get_args(hint) if each is not type(None)] if get_origin(hint) is not None else []
    if get_origin(hint) is tuple:
        many = value.replace(":", ",").split(",") if isinstance(value, str) else value
        many = many if isinstance(many, (list, tuple)) else [many]
        return tuple(of_type(options[0], name, each) for each in many)
    if len(options) == 1 and type(None) in get_args(hint):
        return of_type(options[0], name, value)
    if hint in (float, int) and isinstance(value, str):
        number = checks.number("Request", name, value)
        value = int(number) if hint is int and number.is_integer() else number
    return codec.from_record(hint, value, name)


def job_from_record(record: Record) -> Job:
    """The job that wrote this record."""
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind not in kinds():
        raise ReleaseError(
            f"Job: expected a kind that is one of {', '.join(kinds())}. A newer dpbayes may know others."
        )
    made = import_module(f"dpbayes.jobs.{str(kind).replace('-', '_')}").JOB
    gone = ("kind", "expected_records", "split")  # the last two are of 0.2.0, which planned by them
    return cast(Job, made.from_record({key: value for key, value in record.items() if key not in gone}))


def plan_of(job: Job, schema: Schema, target: Guarantee | None, *, account: Account | None = None) -> Plan:
    """A job calibrated to a target, as the account of the data set prices it. Looks at public things only.

    Where the job wants accuracies, the target is the most that is allowed, by default what is left in the ledger.
    """

    def priced(asked: Guarantee) -> Guarantee:
        return asked if account is None else account.priced(asked)

    wants = bool(getattr(job, "want", ()))
    if target is None and wants and account is not None:
        target = account.rest()
    if target is None:
        most = ", or a ledger, since accuracies need a limit" if wants else ""
        raise InvalidArgument(f"Curator: expected a target, such as dp.ApproxDP(1.0, 1e-6){most}.")
    check_guarantee("Curator", target)
    if target.size > LOOSEST:
        raise InvalidArgument(f"Curator: expected a guarantee up to {LOOSEST:g}, got {target}.")
    for name in ("order", "omega"):
        if math.isinf(getattr(target, name, None) or 1.0):
            raise InvalidArgument(f"Curator: expected a finite {name}; ask for pure DP or zCDP instead.")
    if wants:
        target = cast("Wanting", job).least(schema, target, priced)
    asked = priced(target)
    plan = job.plan(schema, asked)
    if asked is not target and target.gap(plan.cost) > 0:  # the ledger proves more than whoever has the release alone
        plan = job.plan(schema, both(asked, target))
    return replace(plan, target=target)


class Storing(Protocol):
    """A job with a private side that outlives the draw."""

    def store(self, private: bytes, release: Release) -> None:
        """Put it where it belongs. The draw is kept, so the same may be stored again, and nothing else."""


class Wanting(Protocol):
    """A job that may want accuracies instead of a guarantee."""

    def least(self, schema: Schema, most: Guarantee, priced: Callable[[Guarantee], Guarantee]) -> Guarantee:
        """The least guarantee that gives what is wanted."""


def plan_record(plan: Plan) -> Record:
    """JSON form of a plan, to be drawn later."""
    return {**codec.fields_record(plan, without=("account",)), "job": plan.job.record()}


def plan_from_record(record: object) -> Plan:
    """Read the JSON form back; what does not fit is refused in one sentence."""
    try:
        return codec.from_fields(Plan, record, "plan")
    except DpbayesError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise ReleaseError("Plan: a part of it is missing or malformed.") from None


READERS[Job] = lambda record: job_from_record(cast(Record, record))


def check_tables(schema: Schema, marginals: Sequence[Marginal]) -> None:
    """Refuse tables that no engine counts, that memory does not hold, or that the schema declares, all of them."""
    pack(schema, marginals)
    check_memory(sum(each.size(schema) for each in marginals))
    if all(any(set(each.names) <= set(margin.of) for margin in schema.margins) for each in marginals):
        listed = display.listed([str(each) for each in marginals])
        raise InvalidArgument(
            f"Tables: the schema declares all totals of {listed}, so they are public already and nothing is to be "
            "released. Ask for other tables."
        )


def count_and_draw(
    table: Engine, schema: Schema, marginals: Sequence[Marginal], plan: Plan, rng: np.random.Generator | None
) -> Drawn:
    """Count all marginals in one scan, and draw each by its mechanism."""
    counts = table.count(schema, marginals)
    tables = tuple(
        draw_table(counted, plan.paid[by].mechanism, by=by, rng=rng)  # type: ignore[arg-type]  # the plan put it there
        for counted, by in zip(counts, plan.places, strict=False)
    )
    records = int(counts[0].array.sum()) if schema.unit.fixed_size else None
    return Drawn(tables=_as_asked(tables, plan.asked) if plan.asked else tables, records=records)


def _as_asked(measured: Sequence[Table], asked: Sequence[Marginal]) -> tuple[Table, ...]:
    """Tables in the order asked for: drawn, or derived from others; then those that only help."""
    drawn_ones = {table.marginal: table for table in measured}
    empty = np.empty(0)
    listed = [drawn_ones.get(each) or Table(marginal=each, by=-1, kind="derived", values=empty) for each in asked]
    helping = (replace(table, asked=False) for table in measured if table.marginal not in asked)
    return (*listed, *helping)
