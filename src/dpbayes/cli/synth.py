"""``dpbayes synth``: synthetic records from a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dpbayes.cli.output import print_json, print_table
from dpbayes.errors import InvalidArgument
from dpbayes.models.base import Published
from dpbayes.models.fidelity import fidelity
from dpbayes.models.files import load
from dpbayes.models.histogram import Histogram, HistogramModel
from dpbayes.models.synthetic import synthetic_table, write_table
from dpbayes.release import Release
from dpbayes.schema_file import read_schema


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("synth")(synth_command)


def synth_command(
    model: Annotated[Path, typer.Argument(help="Model file of dpbayes fit, or release file of dpbayes release.")],
    rows: Annotated[int, typer.Option(help="How many records; any number is free.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write.")],
    schema: Annotated[Path | None, typer.Option(help="Schema file; needed for a release file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable records; harmless, for the model is public.")] = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Independent records, instead of ones spread evenly over the model.")
    ] = False,
    report: Annotated[bool, typer.Option("--report", help="Print distances to what was released.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Draw synthetic records. They keep the model's guarantee and cost nothing.

    Example: dpbayes synth network.json --rows 100000 --out people.parquet --report
    """
    read = load(model) if schema is None else _histogram(model, schema)
    made = synthetic_table(read, rows, rng=np.random.default_rng(seed), even=not independent)
    write_table(made, out)
    if not report and not as_json:
        typer.echo(f"Wrote {rows:,} records to {out}. {read.published.statement()}")
        return
    columns = {name: made.column(name).to_numpy(zero_copy_only=False) for name in made.column_names}
    found = fidelity(read.published, columns)
    if as_json:
        print_json(found)
        return
    rows_shown = [
        (names, entry["distance"], entry["noise"])
        for kind in ("one-way", "two-way")
        for names, entry in found[kind].items()
    ]
    notes = ("A distance near the noise is as good as it gets.", read.published.statement())
    print_table("Total variation to the release", ("attributes", "distance", "noise alone"), rows_shown, notes=notes)


def _histogram(path: Path, schema: Path) -> HistogramModel:
    """The distribution of the first joint table of a release."""
    release = Release.load(path)
    joint = [table for table in release.tables if not table.asked.given and table.kind != "pseudo-records"]
    if not joint:
        raise InvalidArgument("synth: the release has no joint table to draw from. Fit a network instead.")
    published = Published.of(release.model_copy(update={"tables": joint[:1]}), read_schema(schema))
    return Histogram(attributes=joint[0].asked.of).build(published)
