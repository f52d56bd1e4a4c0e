"""``dpbayes verify``: does a release keep its promise?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, tell


def verify_command(
    release: Annotated[Path, typer.Argument(help="A release: its file or folder; - reads standard input.")],
    ledger: Annotated[
        str | None, typer.Option(help="Check the charge too: a ledger file, or postgresql://user@host/database.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Check the signature too: the publisher's public key, or its file.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price a release of any kind again, and recompute its numbers, from its file alone.

    Example: dpbayes verify published --ledger survey.ledger --key office.pub
    """
    from dpbayes.release.format import Release
    from dpbayes.release.signature import SUFFIX
    from dpbayes.release.verify import verify

    piped = str(release) == "-"
    read = Release.from_json(typer.get_binary_stream("stdin").read()) if piped else Release.load(release)
    folder = None if piped else release if release.is_dir() else release.parent
    found = verify(read, ledger=ledger, folder=folder if read.files or key else None, key=key)
    if as_json:
        print_json(found.record())
    else:
        tell(str(found))
        tell(read.statement() if found.ok else "This release does not verify: do not rely on its promise.")
        if key is None and folder is not None and (folder / f"release.json{SUFFIX}").exists():
            tell("It is signed. To check by whom, give the publisher's public key with --key.")
    if not found.ok:
        raise typer.Exit(1)
