"""``dpbayes release``: the main job, from a table to a published distribution."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release
from dpbayes.curator import Curator
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.request import Request


@options.request
@options.curator
def release_command(
    curator: Curator,
    request: Request,
    out: options.NewFolder = None,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    as_json: options.AsJson = False,
) -> None:
    """Publish tables of a private file under one guarantee.

    Example: dpbayes release survey.csv --schema survey.toml --marginal sex,income --epsilon 1 --delta 1e-6
    --ledger survey.ledger --out published
    """
    if out is None and numbers != "csv":
        raise InvalidArgument("release: --numbers goes with --out.")
    request = options.at_most_what_is_left(request, ledger=curator.remembers)
    if options.unlimited(request) and not curator.dry_run:
        raise InvalidArgument("release: expected --epsilon, the most that may be paid, or a ledger.")
    made = options.released(curator, request, out=out, numbers=numbers, quiet=as_json)
    print_json(made.record()) if as_json else show_release(made, out)
