"""Options that several commands share. A command names one parameter, and gets the options that make it up."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from dpbayes import curator as curators
from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument
from dpbayes.cli.dry_run import show
from dpbayes.cli.output import say, tell, working
from dpbayes.curator import Curator
from dpbayes.design.forecast import warnings as cautions
from dpbayes.design.noise import Wish, loosest
from dpbayes.jobs.request import Request
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.privacy.calibrate import adaptive_limit, guarantee_of
from dpbayes.privacy.guarantee import Guarantee, Limit, Rule
from dpbayes.release.format import Release
from dpbayes.schema.unit import Adjacency, PrivacyUnit, Sensitivity
from dpbayes.words import promise

_READERS = "For readers of the release"

F = TypeVar("F", bound=Callable[..., None])

AdjacencyName = Literal["replace-one", "add-remove"]

Adaptive = Annotated[
    Rule | None,
    typer.Option(help="Price (ε, δ) as the limit of a ledger with this rule does.", rich_help_panel="Guarantee"),
]
PricedBy = Annotated[
    str | None, typer.Option("--ledger", help="Price (ε, δ) as this ledger does.", rich_help_panel="Guarantee")
]
PricedFor = Annotated[
    str | None, typer.Option("--dataset", help="With --ledger: id of the data set.", rich_help_panel="Guarantee")
]

Epsilon = Annotated[float | None, typer.Option(help="ε of the guarantee.", rich_help_panel="Guarantee")]
Delta = Annotated[float | None, typer.Option(help="δ, for (ε, δ).", rich_help_panel="Guarantee")]
Order = Annotated[float | None, typer.Option(help="Rényi order, for RDP.", rich_help_panel="Guarantee")]
Rho = Annotated[float | None, typer.Option(help="ρ, for zCDP and tCDP.", rich_help_panel="Guarantee")]
Omega = Annotated[float | None, typer.Option(help="ω, for tCDP.", rich_help_panel="Guarantee")]
AdjacencyOption = Annotated[
    AdjacencyName, typer.Option("--adjacency", help="Which data sets are neighbours.", rich_help_panel="Privacy unit")
]
MaxRows = Annotated[
    int, typer.Option("--max-rows", help="Rows that one person has at most.", rich_help_panel="Privacy unit")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TableAddress = Annotated[
    str, typer.Argument(help="CSV or Parquet path (globs too), file.duckdb?table=name, postgresql://… or spark://…")
]
SchemaFile = Annotated[Path, typer.Option(help="Schema file that declares what is public.")]
LedgerAddress = Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL address.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show mechanisms, cost and predicted error; read no rows.")]
NewFolder = Annotated[Path | None, typer.Option(help="New folder for release.json, the numbers and report.html.")]
L2Squared = Annotated[
    float | None,
    typer.Option("--l2-squared", help="Dirichlet: Δ₂² of a vector that is no table of counts; goes with --linf."),
]
Linf = Annotated[float | None, typer.Option("--linf", help="Dirichlet: Δ∞ of that vector.")]
RequestFile = Annotated[
    Path | None, typer.Option(help="Request file: tables, guarantee, title, purpose. Other options win over it.")
]
Wants = Annotated[
    list[str] | None,
    typer.Option(
        help="How exact a table has to be: 'income|sex ± 1 point' or 'region ± 50 records'; repeatable. The guarantee "
        "is then the most that is allowed, and the least that is needed is taken."
    ),
]
ReleaseFile = Annotated[Path, typer.Argument(help="A release: its JSON file, or the folder that holds it.")]


def target(command: F) -> F:
    """Give a command the options of a guarantee, as its parameter ``target``."""
    return _composed(command, "target", guarantee)


def limit(command: F) -> F:
    """Give a command the options of a guarantee, as its parameter ``limit``."""
    return _composed(command, "limit", guarantee)


def priced_target(command: F) -> F:
    """Give a command the options of a guarantee and of the ledger that prices it, as its parameter ``target``."""
    return _composed(command, "target", _priced)


def unit(command: F) -> F:
    """Give a command the options of a privacy unit, as its parameter ``unit``."""
    return _composed(command, "unit", _unit)


def curator(command: F) -> F:
    """Give a command the options of a private table with schema and ledger, as its parameter ``curator``.

    A dry run is the curator's: the command goes as far as its release, and what it would be is printed instead.
    """

    @wraps(command)
    def run(curator: Curator, **given: Any) -> None:
        try:
            command(curator=curator, **given)
        except curators.DryRun as trial:
            show(trial, as_json=given.get("as_json", False))

    return _composed(run, "curator", curator_of)  # type: ignore[return-value]  # the signature is the command's


def released(
    curator: Curator, job: object, target: Guarantee | None = None, *, quiet: bool = False, **more: Any
) -> Release:
    """Make a release, and say before the charge what to think over and how much of the ledger it takes."""
    with warnings.catch_warnings(record=True) as caught, working(quiet=quiet):
        warnings.simplefilter("always", UserWarning)
        plan = curator.plan(job, target)
    for warning in caught:
        tell(f"dpbayes: {warning.message}", err=True)
    if not curator.dry_run:
        curator.check(plan, more.get("out"))  # what is refused is refused in one sentence
        if curator.remembers and not quiet and more.get("out", ...) is None:
            raise InvalidArgument("release: expected --out, a new folder for the release, or --json to print it.")
        for said in (*cautions(plan), *curator.much(plan)):
            tell(promise.warning(said), err=True)
    with working(quiet=quiet):
        return curator.release(plan, **more)


def numbers(owner: str, text: str) -> float | tuple[float, ...]:
    """One number, or several separated by commas.

    >>> numbers("cost", "2.5"), numbers("cost", "1,2")
    (2.5, (1.0, 2.0))
    """
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f"{owner}: expected numbers separated by commas, got {text!r}.") from None
    return found if len(found) > 1 else found[0]


def sensitivity(owner: str, l2_squared: float | None, linf: float | None) -> Sensitivity | None:
    """How far a vector moves that is no table of counts; its ℓ₁ distance matters to no Dirichlet mechanism."""
    if l2_squared is None and linf is None:
        return None
    if l2_squared is None or linf is None:
        raise InvalidArgument(f"{owner}: --l2-squared and --linf go together.")
    checks.positive(owner, l2_squared=l2_squared, linf=linf)
    return Sensitivity(l1=l2_squared / linf, l2_squared=l2_squared, linf=linf)


def request(command: F) -> F:
    """Give a command the options of a request of tables, as its parameter ``request``: flags win over the file."""
    return _composed(command, "request", _request)


def guarantee(
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    order: Order = None,
    rho: Rho = None,
    omega: Omega = None,
) -> Limit:
    """The guarantee that the options name, or a sentence about what is missing."""
    return guarantee_of(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)


def _priced(
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    order: Order = None,
    rho: Rho = None,
    omega: Omega = None,
    adaptive: Adaptive = None,
    ledger: PricedBy = None,
    dataset: PricedFor = None,
) -> Guarantee:
    asked = guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    return priced(asked, adaptive=adaptive, ledger=ledger, dataset=dataset)


def priced(asked: Guarantee, *, adaptive: Rule | None, ledger: str | None, dataset: str | None) -> Guarantee:
    """The target as the ledger that will be charged prices it, or one with this rule would."""
    if ledger is None and dataset is None:
        return asked if adaptive is None else adaptive_limit(asked, adaptive)
    if ledger is None or dataset is None or adaptive is not None:
        raise InvalidArgument("Guarantee: expected --ledger with --dataset, or --adaptive, not both.")
    from dpbayes.ledger.ledger import Ledger

    return Ledger(ledger).priced(dataset, asked)


def at_most_what_is_left(request: Request, *, ledger: bool) -> Request:
    """A request for accuracies that names no limit: with a ledger, what is left there is the limit."""
    return replace(request, target=None) if ledger and unlimited(request) else request


def unlimited(request: Request) -> bool:
    """Whether accuracies are wanted at any price."""
    return bool(request.want) and request.target is not None and request.target == loosest(request.target)


def _request(
    *,
    request: RequestFile = None,
    marginal: Annotated[
        list[str] | None, typer.Option(help="sex,income (joint) or income|sex (conditional); repeatable.")
    ] = None,
    want: Wants = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    order: Order = None,
    rho: Rho = None,
    omega: Omega = None,
    mechanism: Annotated[
        Wish | None, typer.Option(help="Which mechanism; auto, the default, lets the planner choose.")
    ] = None,
    product: Annotated[
        Literal["estimate", "draw", "records"] | None,
        typer.Option(help="estimate (the default), one posterior draw, or pseudo-records."),
    ] = None,
    accounting: Annotated[
        Accounting | None, typer.Option(help="exact, the default, or the papers' parameters.")
    ] = None,
    pseudo_records: Annotated[int | None, typer.Option(help="How many pseudo-records to draw.")] = None,
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="CSV with a column for each attribute and one named share: a public guess; repeatable."),
    ] = None,
    level: Annotated[float | None, typer.Option(help="Level of the intervals; 0.95 if left out.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.", rich_help_panel=_READERS)] = None,
    author: Annotated[str | None, typer.Option(help="Who publishes.", rich_help_panel=_READERS)] = None,
    contact: Annotated[str | None, typer.Option(help="Where to ask.", rich_help_panel=_READERS)] = None,
    purpose: Annotated[str | None, typer.Option(help="What it is for.", rich_help_panel=_READERS)] = None,
    supersedes: Annotated[
        str | None,
        typer.Option(help="Earlier release that this one replaces: its id or its folder.", rich_help_panel=_READERS),
    ] = None,
) -> Request:
    """The request file, if there is one, with what the flags say instead."""
    asked = Request() if request is None else Request.load(request)
    numbers = {"epsilon": epsilon, "delta": delta, "order": order, "rho": rho, "omega": omega}
    said = any(number is not None for number in numbers.values())
    target = None
    if said and (want or asked.want) and epsilon is None and rho is None:
        target = loosest(guarantee_of(**{**numbers, "epsilon": 1.0}))  # the least at this δ is looked for
    elif said:
        target = guarantee_of(**numbers)
    return asked.with_changes(
        tables=tuple(marginal) if marginal else None,
        want=tuple(want) if want else None,
        target=target,
        mechanism=mechanism,
        product=product,
        accounting=accounting,
        pseudo_records=pseudo_records,
        expected_records=expected_records,
        prior=tuple(str(path.absolute()) for path in prior) if prior else None,
        level=level,
        title=title,
        author=author,
        contact=contact,
        purpose=purpose,
        supersedes=None if supersedes is None else _release_id(supersedes),
    )


def _release_id(named: str) -> str:
    """The id of a release, given as such or as its file or folder."""
    return Release.load(named).id if Path(named).exists() else named


def _unit(*, adjacency: AdjacencyOption = "replace-one", max_rows: MaxRows = 1) -> PrivacyUnit:
    return PrivacyUnit(adjacency=Adjacency(adjacency), max_rows=max_rows)


def curator_of(
    table: TableAddress,
    *,
    schema: SchemaFile,
    ledger: LedgerAddress = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Do without a ledger: nothing remembers the cost.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests; needs --not-private.")] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Accept that a seeded release is not private.")
    ] = False,
    dry_run: DryRun = False,
) -> Curator:
    """The private table that the options name, with its schema and its ledger."""
    if (seed is None) == not_private:
        raise InvalidArgument("dpbayes: --seed and --not-private go together: a seeded release is not private.")
    if seed is not None and ledger is not None:
        raise InvalidArgument("dpbayes: a seeded release is never charged. Leave --ledger out.")
    if not dry_run and seed is None and (ledger is None) != no_ledger:
        raise InvalidArgument("dpbayes: expected --ledger to remember the cost, or --no-ledger to do without.")
    return Curator(table, schema, "none" if ledger is None else ledger, seed=seed, progress=say, dry_run=dry_run)


def _composed(command: F, name: str, make: Callable[..., object]) -> F:
    """A command whose parameter ``name`` is made by a function from options of its own, which nobody else has."""
    parts = inspect.signature(make, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)
    assert not set(parts) & (set(own.parameters) - {name}), "an option has one reader"

    def run(**given: Any) -> None:
        made = make(**{part: given.pop(part) for part in parts})
        command(**{name: made}, **given)

    listed = {key: part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for key, part in parts.items()}
    kept = {
        key: part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for key, part in own.parameters.items() if key != name
    }
    together = {**listed, **kept} if next(iter(own.parameters)) == name else {**kept, **listed}
    run.__signature__ = inspect.Signature(list(together.values()))  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {key: part.annotation for key, part in together.items()}
    run.__doc__, run.__name__, run.__module__ = command.__doc__, command.__name__, command.__module__
    return run  # type: ignore[return-value]
