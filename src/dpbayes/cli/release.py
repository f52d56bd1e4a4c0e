"""``dpbayes release``: the main job, from a table to a published distribution."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from dpbayes.cli import dry_run as trial
from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release, tell, working
from dpbayes.curator import Curator
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.answers import warnings
from dpbayes.jobs.request import Request
from dpbayes.report.folder import check_folder


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("release")(release_command)


@options.request
@options.curator
def release_command(
    curator: Curator,
    request: Request,
    out: options.NewFolder = None,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Publish tables of a private file under one guarantee.

    Example: dpbayes release survey.csv --schema survey.toml --marginal sex,income --epsilon 1 --delta 1e-6
    --ledger survey.ledger --out published
    """
    if out is None and numbers != "csv":
        raise InvalidArgument("release: --numbers goes with --out.")
    request = options.at_most_what_is_left(request, ledger=curator.remembers)
    if options.unlimited(request) and not dry_run:
        raise InvalidArgument("release: expected --epsilon, the most that may be paid, or a ledger.")
    if dry_run:
        with working(quiet=as_json):
            plan = curator.plan(request)
        affords = curator.check if curator.remembers else None
        trial.show(plan, affords=affords, out=out, already=curator.already(plan), as_json=as_json)
        return
    if out is not None:
        check_folder(out)
    with working(quiet=as_json):
        plan = curator.plan(request)
        for caution in warnings(plan):
            tell(f"Caution: {caution}", err=True)
        made = curator.release(plan, out=out, numbers=numbers)
    print_json(made.record()) if as_json else show_release(made, out)
