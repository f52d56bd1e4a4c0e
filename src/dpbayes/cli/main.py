"""The command line: one application, one place where errors become text."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from dpbayes.errors import DpbayesError

COMMANDS = ("calibrate", "cost", "example", "ledger", "plan", "schema", "verify")
"""Modules of this package; each adds its commands with ``register(app)``."""

app = typer.Typer(
    name="dpbayes",
    help="Publish what a sensitive table of categories says, without betraying anyone in it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"dpbayes {version('dpbayes')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Publish what a sensitive table of categories says, without betraying anyone in it."""


for _name in COMMANDS:
    import_module(f"dpbayes.cli.{_name}").register(app)


def run() -> None:
    """Entry point: an expected failure is one sentence and exit code 1."""
    try:
        app()
    except DpbayesError as problem:
        typer.echo(f"dpbayes: {problem}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("dpbayes: interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
