"""``dpbayes sign`` and ``keys``: who published a release?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import tell
from dpbayes.release.format import Release
from dpbayes.release.signature import new_key, sign


def keys_command(
    name: Annotated[Path, typer.Argument(help="Where to write: NAME.key and NAME.pub.")],
) -> None:
    """Make a key pair for signatures. Keep the .key file secret; publish the .pub file.

    Example: dpbayes keys office
    """
    secret, public = new_key(name)
    text = public.read_text(encoding="utf-8").splitlines()[1]
    tell(f"Written: {secret}, which only you can read, and {public}.")
    tell(f"Anyone can check your signatures with: dpbayes verify FOLDER --key {text}")


def sign_command(
    folder: options.ReleaseFile,
    key: Annotated[Path, typer.Option(help="Your secret key, as dpbayes keys or minisign -GW writes it.")],
    comment: Annotated[str, typer.Option(help="A line that is signed too.")] = "",
) -> None:
    """Sign a release and, through its hashes, all files beside it. Works offline.

    Example: dpbayes sign published --key office.key
    """
    Release.load(folder)
    tell(f"Written: {sign(folder, key, comment=comment)}")
