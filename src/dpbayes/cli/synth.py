"""``dpbayes synth``: synthetic records of a private table in one command, or from releases, free."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.dry_run import show
from dpbayes.cli.output import print_json, print_table, say, tell, working
from dpbayes.curator import DryRun
from dpbayes.jobs.request import Request
from dpbayes.models.fidelity import fidelity, shortfall
from dpbayes.models.histogram import Histogram
from dpbayes.models.latent import LatentModel
from dpbayes.models.model import Model, Published, built, distribution
from dpbayes.models.several import FEWEST, Several
from dpbayes.models.synthetic import check_place, columns_of, synthetic_table, writable, write_table
from dpbayes.release.format import Release

if TYPE_CHECKING:
    import pyarrow as pa


def synth_command(
    source: Annotated[str, typer.Argument(help="A release, its file or folder; with --schema, a private table.")],
    rows: Annotated[int, typer.Option(help="How many records; any number is free.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write.")],
    seed: Annotated[int | None, typer.Option(help="Repeatable records; harmless, for the model is public.")] = None,
    sets: Annotated[
        int | None,
        typer.Option(help="This many sets, in files numbered from 1: their differences tell how sure a number is."),
    ] = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Independent records, instead of ones spread evenly over the model.")
    ] = False,
    croissant: Annotated[
        Path | None, typer.Option(help="Also write metadata for machine learning: a Croissant JSON file.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Print distances to what was released.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    fidelity_page: Annotated[
        Path | None, typer.Option("--fidelity", help="HTML page to write: which pairs of attributes can be trusted.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file: then the source is a private table.")] = None,
    request: Annotated[
        Path | None, typer.Option(help="Private table: request file with synthetic = true. Other options win over it.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Private table: the attribute that others will predict.")] = None,
    published: Annotated[
        Path | None, typer.Option(help="Private table: new folder for what is released, to draw more records from.")
    ] = None,
    ledger: options.LedgerAddress = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Do without a ledger: nothing remembers the cost.")
    ] = False,
    dry_run: options.DryRun = False,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
) -> None:
    """Draw synthetic records from a release, at no cost; or release what is needed of a private table first.

    Example: dpbayes synth survey.csv --schema survey.toml --target income --epsilon 1 --delta 1e-6
    --ledger survey.ledger --published measured --rows 100000 --out records.parquet
    """
    spent = {"epsilon": epsilon, "delta": delta, "order": order, "rho": rho, "omega": omega}
    said = any(number is not None for number in spent.values())
    _checked(rows, out, sets, [page for page in (fidelity_page, croissant) if page], alone=report or as_json)
    if schema is None:
        if said or ledger is not None or no_ledger or target or published or request:
            raise InvalidArgument("synth: a guarantee, --request, --ledger, --target and --published go with --schema.")
        found = Published.of(Release.load(source))
    else:
        asked = _asked(request, target, spent)
        curator = options.curator_of(source, schema=schema, ledger=ledger, no_ledger=no_ledger, dry_run=dry_run)
        try:
            made = options.released(curator, asked, out=published, estimates=published is not None, quiet=as_json)
        except DryRun as trial:
            show(trial, as_json=as_json)
            return
        found = Published.of(made)
    with working(quiet=as_json):
        say("fitting the model to what was released")
        model = _model(found)
        sets = _possible(model, sets)
        if sets is not None:
            say(f"drawing {sets} sets of {rows:,} records, each from a model of its own")
            _several(model, rows, sets, seed, out)
        else:
            say(f"drawing {rows:,} records")
            records = synthetic_table(model, rows, rng=np.random.default_rng(seed), even=not independent)
            say("writing them")
            write_table(records, out)
    for remark in shortfall(model) if isinstance(model, LatentModel) else ():
        tell(f"dpbayes: {remark}", err=True)
    if sets is not None:
        tell(f"Wrote {sets} sets of {rows:,} records to {_numbered(out, 1, sets)} and so on. {found.statement()}")
        return
    if fidelity_page is not None:
        from dpbayes.report.companions import write_fidelity

        write_fidelity(found.releases[0], fidelity_page)
    if croissant is not None:
        from dpbayes.report.companions import croissant_json

        croissant.write_text(croissant_json(found.releases[0], out, records.schema, rows), encoding="utf-8")
    if not report and not as_json:
        tell(f"Wrote {rows:,} records to {out}. {found.statement()}")
        return
    _show_distances(found, records, as_json=as_json)


def _asked(request: Path | None, target: str | None, spent: dict[str, float | None]) -> Request:
    """What the request file says, if there is one, with what the options say instead."""
    asked = Request(synthetic=True) if request is None else Request.load(request)
    if asked.synthetic is False:
        raise InvalidArgument("synth: expected a request with synthetic = true. Give one of tables to release.")
    said = any(number is not None for number in spent.values())
    guarantee = options.guarantee(**spent) if said or asked.target is None else None
    return asked.with_changes(synthetic=target, target=guarantee)


def _show_distances(found: Published, made: pa.Table, *, as_json: bool) -> None:
    """How far the records are from the release, table by table."""
    distances = fidelity(found, columns_of(made))
    if as_json:
        print_json(distances)
        return
    rows_shown = [
        (names, entry["distance"], entry["noise"])
        for kind in ("one-way", "two-way")
        for names, entry in distances[kind].items()
    ]
    notes = ("A distance near the noise is as good as it gets.", found.statement())
    print_table("Total variation to the release", ("attributes", "distance", "noise alone"), rows_shown, notes=notes)


def _model(found: Published) -> Model:
    """The model that was measured for, or the largest joint table."""
    if "model" in found.releases[0].job:
        return built(found.releases)
    return Histogram(attributes=distribution(found.tables).marginal.of).build(found)


def _checked(rows: int, out: Path, sets: int | None, pages: list[Path], *, alone: bool) -> None:
    """Refuse what would be refused after the charge: how many records, and where they and their pages go."""
    checks.positive_integer("synth", rows=rows)
    writable(out)
    for page in pages:
        check_place(page)
    if sets is not None:
        checks.positive_integer("synth", sets=sets)
        if alone or pages:
            raise InvalidArgument(
                "synth: --fidelity, --croissant, --report and --json go with one set, not with --sets."
            )
        if sets < FEWEST:
            raise InvalidArgument(f"synth: expected {FEWEST} sets or more, got {sets}. Fewer cannot show a spread.")


def _possible(model: Model, sets: int | None) -> int | None:
    """None where the budget came to a model without fits: one set is written then, because it is paid for."""
    if sets is None or not isinstance(model, LatentModel) or model.fits is not None:
        return sets
    tell(
        f"dpbayes: the model came to {model.described}, and has no fits whose differences could tell how sure a number "
        "is. So one set is written. Ask the posterior of the release for intervals of the tables that were measured.",
        err=True,
    )
    return None


def _several(model: Model, rows: int, sets: int, seed: int | None, out: Path) -> None:
    """Sets from as many models, each in a file of its own."""
    if not isinstance(model, LatentModel):
        raise InvalidArgument("synth: --sets needs a release for synthetic records of a whole table.")
    made = Several.of(model, sets).tables(rows, rng=np.random.default_rng(seed))
    for number, table in enumerate(made, start=1):
        write_table(table, _numbered(out, number, sets))


def _numbered(path: Path, number: int, most: int) -> Path:
    """records.csv becomes records-01.csv, records-02.csv, …"""
    return path.with_stem(f"{path.stem}-{number:0{len(str(most))}d}")
