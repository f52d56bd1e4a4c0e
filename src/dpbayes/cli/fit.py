"""``dpbayes fit naive-bayes`` and ``dpbayes fit bayes-net``: from a private table to a model file."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbayes.cli import options
from dpbayes.cli.columns import read_columns
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument, TableError
from dpbayes.fitting import fit, plan_fit
from dpbayes.ledger.ledger import Ledger
from dpbayes.models.base import Model, ModelSpec
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.coding import codes
from dpbayes.models.files import AnyModel, save
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema_file import read_schema
from dpbayes.tables.sources import open_table
from dpbayes.temperature import fit_tempered


class Mechanism(StrEnum):
    """Mechanisms for the tables of a model."""

    AUTO = "auto"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    DIRICHLET = "dirichlet"


class Estimate(StrEnum):
    """Noise-aware posterior means, or the papers' single draw."""

    POSTERIOR = "posterior"
    DRAW = "draw"


class Accounting(StrEnum):
    """Exact cost, or the papers' parameters."""

    EXACT = "exact"
    PUBLISHED = "published"


TableArgument = Annotated[str, typer.Argument(help="CSV or Parquet path (globs too), or file.duckdb?table=name.")]
SchemaOption = Annotated[Path, typer.Option(help="Schema file that declares what is public.")]
OutOption = Annotated[Path, typer.Option(help="Model file to write, JSON.")]
LedgerOption = Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL address.")]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Fit without a ledger; nothing remembers the cost.")]
MechanismOption = Annotated[Mechanism, typer.Option(help="Which mechanism; auto takes the least noise.")]
EstimateOption = Annotated[Estimate, typer.Option(help="Posterior means, or the papers' single draw.")]
AccountingOption = Annotated[Accounting, typer.Option(help="Exact, or the papers' parameters.")]
Expected = Annotated[int | None, typer.Option(help="Public guess of the number of records.")]
Seed = Annotated[int | None, typer.Option(help="Repeatable draws, for tests; needs --not-private.")]
NotPrivate = Annotated[bool, typer.Option("--not-private", help="Accept that a seeded model is not private.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show mechanisms, cost and predicted error; read no rows.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Fit a model to a private table.", no_args_is_help=True)
    group.command("naive-bayes")(naive_bayes)
    group.command("bayes-net")(bayes_net)
    app.add_typer(group, name="fit")


def naive_bayes(
    table: TableArgument,
    schema: SchemaOption,
    target: Annotated[str, typer.Option(help="The attribute to predict.")],
    out: OutOption = Path("model.json"),
    feature: Annotated[
        list[str] | None, typer.Option(help="An attribute that predicts; all others if left out.")
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    mechanism: MechanismOption = Mechanism.AUTO,
    estimate: EstimateOption = Estimate.POSTERIOR,
    accounting: AccountingOption = Accounting.EXACT,
    tempered: Annotated[
        bool, typer.Option("--tempered", help="Spend a tenth of the budget on how far the model may trust itself.")
    ] = False,
    expected_records: Expected = None,
    seed: Seed = None,
    not_private: NotPrivate = False,
    dry_run: DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a private naive Bayes classifier.

    Example: dpbayes fit naive-bayes people.csv --schema people.toml --target income --epsilon 1 --delta 1e-6
    --ledger people.ledger --out model.json
    """
    spec = NaiveBayes(target=target, features=tuple(feature or ()), estimate=estimate.value)
    goal = options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    settings = {
        "mechanism": mechanism.value,
        "accounting": accounting.value,
        "expected_records": expected_records,
    }
    _fit(
        spec,
        table,
        schema,
        goal,
        out,
        ledger,
        no_ledger,
        seed,
        not_private,
        dry_run,
        as_json,
        settings,
        tempered=tempered,
    )


def bayes_net(
    table: TableArgument,
    schema: SchemaOption,
    graph: Annotated[Path, typer.Option(help="JSON file: [[parent, child], …], or an object with edges and nodes.")],
    out: OutOption = Path("model.json"),
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    mechanism: MechanismOption = Mechanism.AUTO,
    estimate: EstimateOption = Estimate.POSTERIOR,
    accounting: AccountingOption = Accounting.EXACT,
    expected_records: Expected = None,
    seed: Seed = None,
    not_private: NotPrivate = False,
    dry_run: DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit the tables of a private Bayesian network whose graph is given.

    Example: dpbayes fit bayes-net people.csv --schema people.toml --graph edges.json --epsilon 1 --delta 1e-6
    --ledger people.ledger --out network.json
    """
    try:
        text = graph.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"fit: cannot read the graph {str(graph)!r}.") from None
    spec = BayesNet.of(text, estimate=estimate.value)
    goal = options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    settings = {
        "mechanism": mechanism.value,
        "accounting": accounting.value,
        "expected_records": expected_records,
    }
    _fit(spec, table, schema, goal, out, ledger, no_ledger, seed, not_private, dry_run, as_json, settings)


def _fit(
    spec: Any,
    table: str,
    schema_path: Path,
    goal: Guarantee,
    out: Path,
    ledger: str | None,
    no_ledger: bool,
    seed: int | None,
    not_private: bool,
    dry_run: bool,
    as_json: bool,
    settings: dict[str, Any],
    *,
    tempered: bool = False,
) -> None:
    if (seed is None) == not_private:
        raise InvalidArgument("fit: --seed and --not-private go together: a seeded model is not private.")
    if not dry_run and seed is None and (ledger is None) != no_ledger:
        raise InvalidArgument("fit: expected --ledger to remember the cost, or --no-ledger to do without.")
    schema = read_schema(schema_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if dry_run:
            _preview(spec, schema, goal, settings, as_json)
        else:
            if not out.parent.is_dir():
                raise InvalidArgument(f"fit: the folder of {str(out)!r} does not exist. Create it first.")
            book = Ledger(ledger) if ledger is not None and seed is None else None
            common: dict[str, Any] = {
                "engine": open_table(table),
                "schema": schema,
                "target": goal,
                "ledger": book,
                "seed": seed,
            }
            model: AnyModel
            if tempered:
                model = fit_tempered(spec, coded=_coded(spec, table, schema), **common, **settings)
            else:
                model = fit(spec, **common, **settings)
            save(model, out)
            _report(model, out, as_json)
    for warning in caught:
        typer.echo(f"dpbayes: {warning.message}", err=True)


def _coded(spec: NaiveBayes, table: str, schema: Schema) -> dict[str, Any]:
    names = (*spec.predictors(schema), spec.target)
    for marginal in spec.marginals(schema):
        marginal.axes(schema)
    try:
        columns = read_columns(table, names)
    except TableError as problem:
        raise InvalidArgument(f"fit: --tempered reads records one by one. {problem}") from None
    return {name: codes(schema[name], columns[name]) for name in names}


def _preview(spec: ModelSpec[Model], schema: Schema, goal: Guarantee, settings: dict[str, Any], as_json: bool) -> None:
    records = settings.pop("expected_records")
    plan = plan_fit(spec, schema, goal, records=records, **settings)
    known = schema.records or records
    summary = {
        "kind": spec.kind,
        "target": goal.record(),
        "gap": goal.gap(plan.cost),
        "choice": plan.choice,
        "tables": [
            {"marginal": str(marginal), "cells": marginal.size(schema), "mechanism": mechanism.record()}
            for marginal, mechanism in zip(plan.marginals, plan.mechanisms, strict=True)
        ],
        "predicted_error": None if known is None else plan.predicted_error(schema, known),
        "rows_read": 0,
    }
    if as_json:
        print_json(summary)
        return
    rows = [(str(m), m.size(schema), str(k.record())) for m, k in zip(plan.marginals, plan.mechanisms, strict=True)]
    print_table("Dry run: no rows were read", ("table", "cells", "mechanism"), rows, notes=(plan.choice,))


def _report(model: AnyModel, out: Path, as_json: bool) -> None:
    published = model.published
    if as_json:
        print_json(
            {"model": str(out), "kind": model.kind, "statement": published.statement(), "tables": len(published.tables)}
        )
        return
    typer.echo(f"Wrote {out}: {model.kind} from {len(published.tables)} tables.")
    typer.echo(published.statement())
