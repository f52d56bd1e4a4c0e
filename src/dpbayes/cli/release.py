"""``dpbayes release``: the main job, from a table to a published distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_preview, show_release, working
from dpbayes.curator import Curator
from dpbayes.domain.prior import Prior
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.mechanisms import Wish
from dpbayes.jobs.preview import preview
from dpbayes.jobs.tables import Tables
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.report.folder import check_folder


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("release")(release_command)


@options.target
@options.curator
def release_command(
    curator: Curator,
    target: Guarantee,
    marginal: Annotated[list[str], typer.Option(help="sex,income (joint) or income|sex (conditional); repeatable.")],
    out: options.NewFolder = None,
    mechanism: Annotated[Wish, typer.Option(help="Which mechanism; auto lets the planner choose.")] = "auto",
    product: Annotated[
        Literal["estimate", "draw", "records"], typer.Option(help="estimate, one posterior draw, or pseudo-records.")
    ] = "estimate",
    accounting: Annotated[Accounting, typer.Option(help="Exact, or the papers' parameters.")] = "exact",
    pseudo_records: Annotated[int | None, typer.Option(help="How many pseudo-records to draw.")] = None,
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="CSV with a column for each attribute and one named share: a public guess; repeatable."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Publish tables of a private file under one guarantee.

    Example: dpbayes release people.csv --schema people.toml --marginal sex,income --epsilon 1 --delta 1e-6
    --ledger people.ledger --out published
    """
    if out is None and numbers != "csv":
        raise InvalidArgument("release: --numbers goes with --out.")
    job = Tables(
        *marginal,
        mechanism=mechanism,
        product=product,
        accounting=accounting,
        pseudo_records=pseudo_records,
        expected_records=expected_records,
        priors=tuple(_prior(path, curator.schema) for path in prior or ()),
        level=level,
    )
    if dry_run:
        with working(quiet=as_json):
            found = preview(curator.plan(job, target))
        print_json(found) if as_json else show_preview(found)
        return
    if out is not None:
        check_folder(out)
    with working(quiet=as_json):
        made = curator.release(job, target, out=out, numbers=numbers)
    print_json(made.record()) if as_json else show_release(made, out)


def _prior(path: Path, schema: Schema) -> Prior:
    try:
        return Prior.from_csv(path.read_text(encoding="utf-8"), schema)
    except (OSError, UnicodeError):
        raise InvalidArgument(f"release: the prior {str(path)!r} cannot be read as UTF-8 text.") from None
