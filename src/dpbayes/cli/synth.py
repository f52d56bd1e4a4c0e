"""``dpbayes synth``: synthetic records from releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, tell
from dpbayes.models.base import Published, built, distribution
from dpbayes.models.fidelity import fidelity
from dpbayes.models.histogram import Histogram
from dpbayes.models.synthetic import synthetic_table, write_table
from dpbayes.release.format import Release


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("synth")(synth_command)


def synth_command(
    release: options.ReleaseFile,
    rows: Annotated[int, typer.Option(help="How many records; any number is free.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write.")],
    seed: Annotated[int | None, typer.Option(help="Repeatable records; harmless, for the model is public.")] = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Independent records, instead of ones spread evenly over the model.")
    ] = False,
    croissant: Annotated[
        Path | None, typer.Option(help="Also write metadata for machine learning: a Croissant JSON file.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Print distances to what was released.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Draw synthetic records from a fitted model, or from the largest joint table of a release. They cost nothing.

    Example: dpbayes synth network --rows 100000 --out people.parquet --report
    """
    published = Published.of(Release.load(release))
    if published.releases[0].kind == "model":
        model = built(published.releases)
    else:
        model = Histogram(attributes=distribution(published.tables).marginal.of).build(published)
    made = synthetic_table(model, rows, rng=np.random.default_rng(seed), even=not independent)
    write_table(made, out)
    if croissant is not None:
        from dpbayes.report.croissant import croissant_json

        croissant.write_text(croissant_json(published.releases[0], out, made.schema, rows), encoding="utf-8")
    if not report and not as_json:
        tell(f"Wrote {rows:,} records to {out}. {published.statement()}")
        return
    columns = {name: made.column(name).to_numpy(zero_copy_only=False) for name in made.column_names}
    found = fidelity(published, columns)
    if as_json:
        print_json(found)
        return
    rows_shown = [
        (names, entry["distance"], entry["noise"])
        for kind in ("one-way", "two-way")
        for names, entry in found[kind].items()
    ]
    notes = ("A distance near the noise is as good as it gets.", published.statement())
    print_table("Total variation to the release", ("attributes", "distance", "noise alone"), rows_shown, notes=notes)
