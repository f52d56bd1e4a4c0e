"""The command line: one application, one place where errors become text."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from dpbayes.errors import DpbayesError

COMMANDS = (
    "calibrate",
    "cost",
    "discover",
    "doctor",
    "example",
    "fit",
    "ledger",
    "plan",
    "posterior",
    "predict",
    "release",
    "schema",
    "show",
    "synth",
    "verify",
)
"""Modules of this package; each adds the command of its name, and perhaps others, with ``register(app)``."""

HOME = {"audit": "posterior"}
"""Commands that live in the module of another one."""


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"dpbayes {version('dpbayes')}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Publish what a sensitive table of categories says, without betraying anyone in it."""


def application(command: str | None = None) -> typer.Typer:
    """The whole application, or only the part that one command needs: then only its libraries are loaded."""
    made = typer.Typer(name="dpbayes", no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
    made.callback()(root)
    module = HOME.get(command or "", command)
    wanted = () if command == "--version" else (module,) if module in COMMANDS else COMMANDS
    for name in wanted:
        import_module(f"dpbayes.cli.{name}").register(made)
    return made


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run() -> None:
    """Entry point: an expected failure is one sentence and exit code 1."""
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    command = sys.argv[1] if len(sys.argv) > 1 and not completing else None
    try:
        application(command)()
    except DpbayesError as problem:
        typer.echo(f"dpbayes: {problem}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("dpbayes: interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
