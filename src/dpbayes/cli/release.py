"""``dpbayes release``: the main job, from a table to a published distribution."""

from __future__ import annotations

import itertools
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, progress
from dpbayes.curator import Curator, Proposal, Request
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.prior import Prior
from dpbayes.domain.schema import Schema
from dpbayes.errors import DpbayesError, InvalidArgument, ReleaseError
from dpbayes.export import check_folder, write_release
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS
from dpbayes.plan import Question, predicted_errors
from dpbayes.privacy.guarantee import rounded_down, rounded_up
from dpbayes.release import Release
from dpbayes.schema_file import read_schema
from dpbayes.tables.engine import needed
from dpbayes.tables.sources import open_table

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger

SHOWN_CELLS = 12


class Mechanism(StrEnum):
    """Mechanisms for tables."""

    AUTO = "auto"
    DIRICHLET = "dirichlet"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Product(StrEnum):
    """What the release is tuned for."""

    ESTIMATE = "estimate"
    DRAW = "draw"
    RECORDS = "records"


class Accounting(StrEnum):
    """Exact cost, or the papers' parameters."""

    EXACT = "exact"
    PUBLISHED = "published"


class Numbers(StrEnum):
    """Format of the numbers files."""

    CSV = "csv"
    PARQUET = "parquet"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("release")(release_command)


def release_command(
    table: Annotated[
        str, typer.Argument(help="CSV or Parquet path (globs too), file.duckdb?table=name, postgresql://… or spark://…")
    ],
    schema: Annotated[Path, typer.Option(help="Schema file that declares what is public.")],
    marginal: Annotated[list[str], typer.Option(help="sex,income (joint) or income|sex (conditional); repeatable.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL address.")] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Release without a ledger; nothing remembers it.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for release.json, the numbers and report.html.")] = None,
    mechanism: Annotated[
        Mechanism, typer.Option(help="Which mechanism; auto lets the planner choose.")
    ] = Mechanism.AUTO,
    product: Annotated[
        Product, typer.Option(help="estimate, one posterior draw, or pseudo-records.")
    ] = Product.ESTIMATE,
    accounting: Annotated[Accounting, typer.Option(help="Exact, or the papers' parameters.")] = Accounting.EXACT,
    pseudo_records: Annotated[int | None, typer.Option(help="How many pseudo-records to draw.")] = None,
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="CSV with a column for each attribute and one named share: a public guess; repeatable."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the credible intervals.")] = 0.95,
    numbers: Annotated[Numbers, typer.Option(help="Format of the numbers files.")] = Numbers.CSV,
    engine: Annotated[
        str | None, typer.Option(help="duckdb, postgresql or spark; chosen from the table's address if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests; needs --not-private.")] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Accept that a seeded release is not private.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show mechanism, cost and predicted error; read no rows.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Publish tables of a private file under one guarantee.

    Example: dpbayes release people.csv --schema people.toml --marginal sex,income --epsilon 1 --delta 1e-6
    --ledger people.ledger --out published
    """
    if (seed is None) == not_private:
        raise InvalidArgument("release: --seed and --not-private go together: a seeded release is not private.")
    if seed is not None and ledger is not None:
        raise InvalidArgument("release: a seeded release is never charged. Leave --ledger out.")
    if not dry_run and seed is None and (ledger is None) != no_ledger:
        raise InvalidArgument("release: expected --ledger to remember the cost, or --no-ledger to do without.")
    if out is None and numbers is not Numbers.CSV:
        raise InvalidArgument("release: --numbers goes with --out.")
    if out is not None and not dry_run:
        check_folder(out)
    declared = read_schema(schema)
    request = Request(
        marginals=tuple(Marginal.parse(text) for text in marginal),
        target=options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega),
        mechanism="dirichlet" if product is not Product.ESTIMATE and mechanism is Mechanism.AUTO else mechanism.value,
        purpose="estimate" if product is Product.ESTIMATE else "draw",
        accounting=accounting.value,
        expected_records=expected_records,
        pseudo_records=_pseudo_records(product, pseudo_records, declared),
        priors=tuple(_prior(path, declared) for path in prior or ()),
        level=level,
    )
    with progress(quiet=as_json) as say:
        book = None if ledger is None else _opened(ledger)
        curator = Curator(
            engine=open_table(table, engine=engine), schema=declared, ledger=book, seed=seed, progress=say
        )
        if dry_run:
            proposal = curator.propose(request)
            say("predicting")
            summary = _preview(proposal, declared)
        else:
            made = curator.release(request)
            if out is not None:
                say("writing")
                _write(made, out, numbers)
    if dry_run:
        print_json(summary) if as_json else _show_preview(summary)
        return
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        _show(made, out, first="draw" if product is Product.DRAW else "empirical")
    with progress(quiet=as_json) as say:
        say("comparing the table with the last release")
        _warn_of_changes(curator, request)


def _pseudo_records(product: Product, asked: int | None, schema: Schema) -> int | None:
    if product is not Product.RECORDS:
        if asked is not None:
            raise InvalidArgument("release: --pseudo-records goes with --product records.")
        return None
    return (schema.records or REFERENCE_RECORDS) if asked is None else asked


def _opened(ledger: str) -> Ledger:
    from dpbayes.ledger.ledger import Ledger  # only here: databases take long to load, and some releases need none

    return Ledger(ledger)


def _prior(path: Path, schema: Schema) -> Prior:
    try:
        return Prior.from_csv(path.read_text(encoding="utf-8"), schema)
    except (OSError, UnicodeError):
        raise InvalidArgument(f"release: the prior {str(path)!r} cannot be read as UTF-8 text.") from None


def _write(made: Release, out: Path, numbers: Numbers) -> None:
    """Write the folder. If that fails now, print what was drawn: it is paid for, and cannot be drawn again."""
    try:
        write_release(made, out, numbers=numbers.value)
    except ReleaseError:
        typer.echo(made.to_json(), nl=False)
        typer.echo("dpbayes: the folder could not be written; release.json is on standard output. Keep it.", err=True)
        raise


def _warn_of_changes(curator: Curator, request: Request) -> None:
    """Say whether the table has changed; the release is out by now, so nothing here may fail it."""
    try:
        if curator.remember(request.marginals):
            typer.echo("dpbayes: the table has changed since the ledger last saw these columns.", err=True)
    except DpbayesError as problem:
        typer.echo(f"dpbayes: could not tell whether the table has changed. {problem}", err=True)


def _preview(proposal: Proposal, schema: Schema) -> dict[str, object]:
    request, mechanism = proposal.request, proposal.mechanism
    records = schema.records or request.expected_records or REFERENCE_RECORDS
    tables = []
    for marginal in request.marginals:
        cells = max(marginal.size(schema), 2)
        question = Question(
            cells=cells,
            records=records,
            target=request.target,
            unit=schema.unit,
            releases=len(request.marginals),
        )
        errors = {
            measure: predicted_errors(mechanism, question, measure=measure, product=request.purpose)
            for measure in ("kl", "tv", "linf")
        }
        tables.append({"marginal": str(marginal), "cells": cells, "predicted_error": errors})
    cost = proposal.cost
    delta = getattr(request.target, "delta", None)
    return {
        "mechanism": mechanism.record(),
        "choice": proposal.choice,
        "target": request.target.record(),
        "gap": request.target.gap(cost),
        "epsilon_at_delta": None if delta is None else cost.epsilon(delta),
        "releases": cost.releases,
        "columns_read": [
            *([] if schema.person is None else [schema.person]),
            *(attribute.name for attribute in needed(schema, request.marginals)),
        ],
        "records_assumed": records,
        "tables": tables,
        "rows_read": 0,
    }


def _show_preview(summary: dict[str, object]) -> None:
    tables: list[dict[str, object]] = summary["tables"]  # type: ignore[assignment]
    rows = []
    for table in tables:
        errors: dict[str, float] = table["predicted_error"]  # type: ignore[assignment]
        rows.append((table["marginal"], table["cells"], errors["kl"], errors["tv"], errors["linf"]))
    columns_read: list[str] = summary["columns_read"]  # type: ignore[assignment]
    print_table(
        "Dry run: no rows were read",
        ("marginal", "cells", "KL", "total variation", "largest difference"),
        rows,
        notes=(
            f"Mechanism: {summary['mechanism']}",
            f"Why: {summary['choice']}",
            f"Columns that a release would read: {', '.join(columns_read)}. "
            f"Errors are predicted for {summary['records_assumed']:,} records.",
        ),
    )


def _show(made: Release, out: Path | None, *, first: str) -> None:
    for table in made.tables:
        shown: dict[str, list[str]] = {table.kind: [str(value) for value in table.values[:SHOWN_CELLS]]}
        if found := table.products.get(first):
            listed = {f"{first} share": found.values, "from": found.lower, "to": found.upper}
            shown = {name: [f"{value:.4f}" for value in part[:SHOWN_CELLS]] for name, part in listed.items() if part}
        cells = itertools.product(*(axis.levels for axis in table.axes))
        rows = [(" · ".join(cell), *numbers) for cell, *numbers in zip(cells, *shown.values(), strict=False)]
        hidden = len(table.values) - len(rows)
        notes = [f"… and {hidden:,} more cells."] if hidden else []
        print_table(f"{table.asked}", (str(table.asked), *shown), rows, notes=notes)
    console = Console(markup=False)
    console.print(made.statement(), style="bold", highlight=False)
    console.print(f"Mechanism: {made.choice}", highlight=False)
    if made.ledger is not None:
        console.print(
            f"Ledger: {rounded_up(made.ledger.spent, 4)} of {made.ledger.limit:g} spent; a release of up to "
            f"{rounded_down(made.ledger.left, 4)} still fits.",
            highlight=False,
        )
    else:
        console.print("No ledger remembers this release.", highlight=False)
    if out is not None:
        console.print(f"Written to {out}: release.json, the numbers, report.html.", highlight=False)
