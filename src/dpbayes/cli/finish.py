"""``dpbayes finish``: complete releases that were paid for and interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release, tell, working
from dpbayes.curator import finish


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("finish")(finish_command)


def finish_command(
    ledger: Annotated[str, typer.Argument(help="Ledger file or PostgreSQL address.")],
    table: Annotated[
        str | None, typer.Option(help="The table, where its address held a password or it lay in memory.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to, instead of the one asked for.")] = None,
    forgo: Annotated[
        bool, typer.Option("--forgo", help="Give up what never read a row, and take its charge back.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Complete every release of a ledger that was interrupted after its charge. Nothing is charged again.

    Example: dpbayes finish people.ledger
    """
    with working(quiet=as_json):
        finished = finish(ledger, table=table, out=out, forgo=forgo)
    if as_json:
        print_json([release.record() for release in finished])
        return
    for release in finished:
        show_release(release, None)
    tell(f"{len(finished)} finished." if finished else "Nothing was left unfinished.")
