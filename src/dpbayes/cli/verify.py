"""``dpbayes verify``: does a release keep its promise?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify_command)


def verify_command(
    release: Annotated[Path, typer.Argument(help="The file release.json; - reads standard input.")],
    ledger: Annotated[
        str | None, typer.Option(help="Check the charge too: a ledger file, or postgresql://user@host/database.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price a release again, and recompute its estimates, from its file alone.

    Example: dpbayes verify out/release.json --ledger census.ledger
    """
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.release import Release
    from dpbayes.verify import verify

    read = Release.from_json(typer.get_binary_stream("stdin").read()) if str(release) == "-" else Release.load(release)
    found = verify(read, ledger=None if ledger is None else Ledger(ledger))
    if as_json:
        print_json(found.record())
    else:
        for check in found.checks:
            typer.echo(str(check))
        typer.echo(read.statement() if found.ok else "This release does not verify: do not rely on its promise.")
    if not found.ok:
        raise typer.Exit(1)
