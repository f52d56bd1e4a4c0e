"""``dpbayes plan`` and ``release``: the one command that reads rows and is charged for them, and its dry run."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dpbayes.base.errors import (
    BudgetExceeded,
    DpbayesError,
    InvalidArgument,
    ReleaseError,
    SchemaError,
    TargetUnreachable,
    Unfinished,
)
from dpbayes.cli.command import Output, Run, key_value, near, now
from dpbayes.cli.output import say, show_release, tell, tell_people, warn, working
from dpbayes.curator import STEPS, Curator, DryRun
from dpbayes.design.forecast import of_the_limit, preview, remarks, sentences
from dpbayes.design.forecast import warnings as cautions
from dpbayes.design.noise import is_want
from dpbayes.jobs.base import plan_of, requestable
from dpbayes.jobs.request import FILES, Request, asked_for
from dpbayes.ledger.history import already
from dpbayes.privacy.risk import Risk
from dpbayes.release.format import Release
from dpbayes.release.words import ABOUT
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import public_address
from dpbayes.words import promise

if TYPE_CHECKING:
    from dpbayes.cli.options import File, ReleaseOptions, Words
    from dpbayes.design.plan import Plan
    from dpbayes.ledger.account import Account
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.tables.beside import Beside

PUBLISHED = Path("published")
"""Where releases go whose folder is not named: 1, 2, …"""


def plan(data: str, tables: Words = (), **asked: Unpack[ReleaseOptions]) -> Output:
    """Exactly what `dpbayes release` would do, with a curator that cannot draw. The last line is the `release` to type.
    The exit code is 3 if the limit does not allow it.

    Example: dpbayes plan survey.csv 'income|sex ± 1 point' 'region ± 50 records'
    """
    return _made(data, tables, None, asked, dry=True)


def release(
    data: str,
    tables: Words = (),
    *,
    out: File,
    dry_run: bool,
    insecure_seed: int | None,
    **asked: Unpack[ReleaseOptions],
) -> Output:
    """Without --out the release goes to published/1, published/2, …: the next number that is free. Nothing is charged
    before the guarantee is printed, and nothing is drawn before it is charged.

    Example: dpbayes release survey.csv region 'income|sex' --epsilon 1

    Example: dpbayes release survey.csv income --as naive-bayes --epsilon 1

    Example: dpbayes release survey.csv income --as synthetic --epsilon 1

    Example: dpbayes release survey.csv region --as categories --epsilon 0.5

    Example: dpbayes release survey.csv age --as edges --epsilon 0.2 --set bounds=16:120 --set bins=5

    Example: dpbayes release survey.csv sex --as posterior --epsilon 0.8 --delta 0 --set prior=0.5

    Example: dpbayes release survey.csv age 'education|age' 'income|age,education' --as network --epsilon 1

    Example: dpbayes release survey.csv region,sex --as wide --epsilon 0.5
    """
    return _made(data, tables, out, asked, dry=dry_run, seed=insecure_seed)


def products() -> tuple[str, list[tuple[str, str]]]:
    """What ``--as`` makes, of which tables, and with which keys."""
    listed = [(name, job.MAKES[name]) for name, job in requestable().items()]
    return "--as KIND", [
        (name, f"Tables named: {make.tables}." + (f" --set {', '.join(make.keys)}." if make.keys else ""))
        for name, make in listed
    ]


plan.listed = release.listed = products  # type: ignore[attr-defined]  # shown below the options


def _request(tables: tuple[str, ...], asked: ReleaseOptions, found: Beside) -> Request:
    """The request file, if there is one, with what the options say instead."""
    file = asked["request"]
    request = Request(stem=found.stem) if file is None else replace(Request.load(file), stem=found.stem)
    try:
        return _with_options(request, tables, asked)
    except (InvalidArgument, SchemaError) as problem:
        raise InvalidArgument(str(problem)) from None


def _with_options(request: Request, tables: tuple[str, ...], asked: ReleaseOptions) -> Request:
    said: dict[str, Any] = {"tables": tables or None, "product": asked["as_"]}
    wanted = any(map(is_want, tables or request.tables))
    epsilon, delta, guarantee = asked["epsilon"], asked["delta"], asked["guarantee"]
    in_file = request.target.epsilon_delta if request.target is not None and guarantee is None else None
    if in_file is not None and (epsilon is None) != (delta is None):  # the other number is that of the file
        epsilon = in_file[0] if epsilon is None else epsilon
        delta = in_file[1] if delta is None and not request.open_delta else delta
    said |= asked_for(epsilon, delta, guarantee, wanted=wanted)
    request = request.with_changes(**said)
    keys = dict(request.keys)
    for text in asked["set_"]:
        name, value = key_value(text)
        if name in ABOUT:
            said_text = str(value)
            if name == "supersedes" and Path(said_text).exists():
                said_text = Release.load(said_text).id
            request = request.with_changes(**{name: said_text})
        elif name in ("tables", "as", "epsilon", "delta", "guarantee"):
            raise InvalidArgument(f"set: {name} is an option or an argument of its own.")
        else:
            keys[name] = _absolute(value) if name in FILES else value
    return request.with_changes(keys=keys)


def _absolute(value: Any) -> Any:
    """Files that an option names start from here, those of the request file from there."""
    if isinstance(value, list):
        return [_absolute(each) for each in value]
    return str(Path(value).absolute()) if isinstance(value, str) and Path(value).suffix else value


def _made(
    data: str, tables: tuple[str, ...], out: Path | None, asked: ReleaseOptions, *, dry: bool, seed: int | None = None
) -> Output:
    """Plan the release, and make it unless it is a dry run."""
    run, found = now(), near(data, asked["schema"], asked["ledger"])
    schema = Schema.load(found.need_schema())
    place = found.ledger if dry or seed is not None else found.need_ledger()
    book = _opened(place)
    account = None if book is None else book.account(schema.id)
    request = _request(tables, asked, found)
    if request.unlimited and account is None and not dry:
        raise InvalidArgument("release: expected --epsilon, the most that may be charged, or a ledger.")
    with working(run):
        told = _telling(run, charged=book is not None and seed is None)
        curator = None
        if found.table is not None:
            curator = Curator(
                found.table, schema, "none" if book is None else book, seed=seed, progress=told, dry_run=dry
            )
        elif not dry:
            raise InvalidArgument(f"release: expected the table itself, got {data}. Name the table.")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                plan = _planned(request, schema, account) if curator is None else curator.plan(request)
        except TargetUnreachable as problem:
            if request.unlimited and account is not None:  # what is left is not enough
                raise BudgetExceeded(str(problem)) from None
            raise
    for each in caught:
        warn(run, str(each.message))
    origin = request.origin(account)
    if dry or curator is None:
        line = None if found.table is None else _line(str(found.table), tables, out, asked, seed)
        return _dry(DryRun(plan, book, out), account, origin, line)
    curator.check(plan, out)  # what is refused is refused in one sentence
    for said in (*cautions(plan), *curator.much(plan)):
        warn(run, promise.warning(said))
    if not run.json:
        tell_people(f"Guarantee: {plan.target}{origin}.")
    folder = _reserved() if out is None else out
    try:
        with working(run):
            made = curator.release(plan, out=folder)
            after = plan.job.after(made, schema, folder) if hasattr(plan.job, "after") else ""
    except BaseException as problem:
        if out is None and not run.charging and not isinstance(problem, Unfinished):
            with suppress(OSError):  # others may have taken the next number
                folder.rmdir()
                PUBLISHED.rmdir()
        raise

    def show() -> None:
        show_release(made, folder)
        if after:
            tell(after)

    return Output({"folder": str(folder), "release": made.record() if run.json else None}, show)


def _opened(place: str | Path | None) -> Ledger | None:
    if place is None:
        return None
    from dpbayes.ledger.ledger import Ledger  # only here: databases take long to load

    return Ledger(place)


def _telling(run: Run, *, charged: bool) -> Callable[[str], None]:
    """Tells people what is going on, and notes when the ledger is charged."""

    def told(step: str) -> None:
        run.charging = run.charging or (charged and step.startswith(STEPS[1]))
        run.charged = run.charged or (charged and step.startswith(STEPS[2]))
        say(step)

    return told


def _planned(request: Request, schema: Schema, account: Account | None) -> Plan:
    """The plan without the table, where only its schema is here."""
    made = plan_of(request.job(schema), schema, request.guarantee(account), account=account)
    return replace(made, publication=request.about)


def _reserved() -> Path:
    """The next free number, taken before anything is charged: nobody else gets it."""
    taken = [int(each.name) for each in PUBLISHED.glob("*") if each.name.isdecimal()]
    number = max(taken, default=0)
    while True:
        number += 1
        try:
            (PUBLISHED / str(number)).mkdir(parents=True)
        except FileExistsError:
            if PUBLISHED.exists() and not PUBLISHED.is_dir():
                raise ReleaseError("release: published is a file here. Name a new folder with --out.") from None
            continue
        return PUBLISHED / str(number)


def _line(table: str, tables: tuple[str, ...], out: Path | None, asked: ReleaseOptions, seed: int | None) -> str:
    """The release to type for what was planned, quoted for a shell; passwords are left to be filled in."""
    said = ["dpbayes", "release", public_address(table), *tables]
    for name, value in [*asked.items(), ("out", out), ("insecure_seed", seed)]:
        option = f"--{name.rstrip('_').replace('_', '-')}"
        for each in value if isinstance(value, tuple) else () if value is None else (value,):
            text = f"{each:.17g}" if isinstance(each, float) and each.is_integer() else str(each)
            said += [option, public_address(text) if name == "ledger" else text]
    return shlex.join(said)


def _dry(trial: DryRun, account: Account | None, origin: str, line: str | None) -> Output:
    """What the release would say, what it costs, and whether anything stands in its way."""
    plan, found = trial.plan, trial.obstacles()
    said = [*([] if account is None else already(account, plan.wanted)), *remarks(plan)]
    used = None if account is None else of_the_limit(plan, account)[1]
    result: dict[str, Any] = preview(plan) | {
        "sentences": list(sentences(plan)),
        "remarks": said,
        "warnings": list(cautions(plan)),
        "refused": [str(each) for each in found],
        "ledger_affords": None if account is None else not any(str(each).startswith("Ledger") for each in found),
        "limit": used,
        "command": None if found else line,
    }
    if wanted := list(getattr(plan.job, "want", ())):
        result |= {"want": wanted, "least": plan.target.record()}
    code = 0 if not found else 3 if any(isinstance(each, BudgetExceeded) for each in found) else 1
    return Output(result, lambda: _show(trial, said, used, found, origin, line), code)


def _show(
    trial: DryRun,
    said: list[str],
    used: str | None,
    found: tuple[DpbayesError, ...],
    origin: str,
    line: str | None,
) -> None:
    plan = trial.plan
    priced = preview(plan)
    tell_people("Dry run: no rows were read and nothing was charged.", bold=True)
    for sentence in sentences(plan):
        tell_people(f"• {sentence}")
    if plan.wanted:
        tell_people("± is half a 95 % interval. Numbers below a readable size are published too, and say so.")
    for remark in said:
        tell_people(remark)
    least = " It is the least that gives the wanted accuracies." if getattr(plan.job, "want", ()) else ""
    tell_people(f"Cost: {plan.target}{origin}.{least} Why: {plan.choice}.")
    if used:
        tell_people(used)
    for sentence in Risk.of(plan.cost, blind=()).sentences(taking_part=not plan.schema.unit.replaces):
        tell_people(sentence)
    read = priced["columns"] or [getattr(plan.job, "column", "none")]
    tell_people(f"Columns that a release would read: {', '.join(read)}.")
    if not found:
        book = "No ledger is named" if trial.ledger is None else "The limit of the ledger allows it"
        tell_people(f"{book}{', and the folder is free' if trial.out is not None else ''}.")
    for caution in cautions(plan):
        tell_people(promise.warning(caution), bold=True)
    for each in found:
        tell(f"dpbayes: it would be refused. {each}", err=True)
    if line is not None and not found:
        tell(f"To make it: {line}")
