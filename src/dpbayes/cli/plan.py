"""``dpbayes plan``: predicted error of every mechanism, from public numbers only."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, say, tell_people, working
from dpbayes.design.noise import loosest
from dpbayes.design.ranking import MEASURES, Measure, Ranking, ranking
from dpbayes.jobs.request import Request
from dpbayes.privacy.guarantee import PureDP
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import PrivacyUnit

_NO_SCHEMA = "Without --schema."

BAR_WIDTH = 40


@options.request
@options.unit
def plan_command(
    unit: PrivacyUnit,
    request: Request,
    schema: Annotated[Path | None, typer.Option(help="Schema file: plan the tables of a request.")] = None,
    ledger: options.PricedBy = None,
    out: Annotated[Path | None, typer.Option(help="With --schema: is this folder free?")] = None,
    cells: Annotated[int | None, typer.Option(help=f"Number of cells of the table. {_NO_SCHEMA}")] = None,
    records: Annotated[int | None, typer.Option(help=f"Number of records, or a guess of it. {_NO_SCHEMA}")] = None,
    releases: Annotated[int, typer.Option(help=f"How many releases share the guarantee. {_NO_SCHEMA}")] = 1,
    measure: Annotated[Measure, typer.Option(help=f"How error is measured. {_NO_SCHEMA}")] = "kl",
    error: Annotated[
        float | None, typer.Option(help=f"Also find the records needed for this error. {_NO_SCHEMA}")
    ] = None,
    failure: Annotated[
        float, typer.Option(help=f"Probability with which the error may be larger. {_NO_SCHEMA}")
    ] = 0.05,
    evenness: Annotated[
        float, typer.Option(help=f"Guess of the shape: p ~ Dirichlet(evenness, …); small is uneven. {_NO_SCHEMA}")
    ] = 1.0,
    adaptive: options.Adaptive = None,
    dataset: options.PricedFor = None,
    chart: Annotated[
        Path | None, typer.Option(help=f"Also draw a chart: .svg, .html, .png or .pdf. {_NO_SCHEMA}")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how exact the tables of a request will be; or rank the mechanisms for a table of any size.

    Reads no data. With a schema it answers in records and percentage points, and the exit code tells whether the
    ledger would take the release.

    Example: dpbayes plan --schema survey.toml --marginal income --epsilon 1 --delta 1e-6 --ledger survey.ledger

    Example: dpbayes plan --schema survey.toml --want 'income|sex ± 1 point' --want 'region ± 50 records' --delta 1e-6
    """
    if schema is not None:
        _plan_tables(request, Schema.load(schema), ledger, out, as_json=as_json)
        return
    if request.want:
        raise InvalidArgument("plan: expected --schema, which says how large the tables are, with --want.")
    if cells is None or records is None or out is not None:
        raise InvalidArgument("plan: expected --schema with tables, or --cells and --records.")
    target = options.priced(request.guarantee(), adaptive=adaptive, ledger=ledger, dataset=dataset)
    with working(quiet=as_json):
        say("simulating releases of made-up tables")
        found = ranking(
            cells=cells,
            records=records,
            target=target,
            unit=unit,
            releases=releases,
            measure=measure,
            failure=failure,
            evenness=evenness,
            error=error,
        )
    if chart is not None:
        from dpbayes.plot.pictures import errors_picture

        rows = [(p.label, p.mean, p.quantile) for p in found.predictions]
        title, axis = f"Predicted error at {target}", MEASURES[measure]
        picture = errors_picture(rows, found.choice.label, failure=failure, measure=axis, title=title, why=found.why)
        picture.save(chart)
    if as_json:
        question = {
            "cells": cells,
            "records": records,
            "releases": releases,
            "measure": measure,
            "failure": failure,
            "evenness": evenness,
            "target": target.record(),
            "unit": unit.record(),
            "error": error,
        }
        print_json({"question": question, **_record(found)})
        return
    _print(
        found,
        f"{MEASURES[measure]} at {target}: {cells} cells, {records:,} records, {plural(releases, 'release')}, "
        f"{unit.adjacency}",
        failure,
        error,
    )


def _plan_tables(request: Request, schema: Schema, ledger: str | None, out: Path | None, *, as_json: bool) -> None:
    from dpbayes.cli import dry_run
    from dpbayes.curator import DryRun
    from dpbayes.jobs.base import plan_of
    from dpbayes.ledger.ledger import Ledger

    request = options.at_most_what_is_left(request, ledger=ledger is not None)
    target = request.target if request.want else request.guarantee()
    book = None if ledger is None else Ledger(ledger)
    if book is None and target is None:
        target = loosest(PureDP(epsilon=1.0))
    account = None if book is None else book.account(schema.id)
    made = replace(plan_of(request.job(schema), schema, target, account=account), publication=request.about)
    dry_run.show(DryRun(made, book, out), as_json=as_json)


def _record(found: Ranking) -> dict[str, object]:
    return {
        "choice": found.choice.label,
        "why": found.why,
        "predictions": [
            {
                "label": p.label,
                "mechanism": p.mechanism.record(),
                "product": p.product,
                "mean": p.mean,
                "standard_error": p.standard_error,
                "quantile": p.quantile,
                "records_needed": p.records_needed,
            }
            for p in found.predictions
        ],
        "impossible": [{"label": label, "reason": reason} for label, reason in found.impossible],
    }


def _parameters(record: dict[str, object]) -> str:
    letters = {"weight": "r", "concentration": "α", "sigma": "σ", "scale": "b"}
    return ", ".join(f"{letters[key]}={value:.4g}" for key, value in record.items() if key in letters)


def _print(found: Ranking, title: str, failure: float, error: float | None) -> None:
    columns = ["mechanism, product", "parameters", "error", "±", f"{1 - failure:.0%} below"]
    rows: list[list[object]] = [
        [p.label, _parameters(p.mechanism.record()), f"{p.mean:.3g}", f"{p.standard_error:.1g}", f"{p.quantile:.3g}"]
        for p in found.predictions
    ]
    if error is not None:
        columns.append(f"records for {error:g}")
        for row, p in zip(rows, found.predictions, strict=True):
            row.append("> 10¹²" if p.records_needed is None else f"{p.records_needed:,}")
    print_table(title, columns, rows)
    highest, lowest = (math.log10(found.predictions[at].mean) for at in (-1, 0))
    for p in found.predictions:
        length = BAR_WIDTH * (math.log10(p.mean) - lowest + 0.3) / max(highest - lowest + 0.3, 1e-9)
        tell_people(f"{p.label:>30} {'█' * max(round(length), 1)} {p.mean:.3g}")
    tell_people("(bars on a logarithmic scale; shorter is better)", "dim")
    for label, reason in found.impossible:
        tell_people(f"{label}: {reason}.")
    tell_people(found.why, "bold")
