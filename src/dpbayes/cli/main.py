"""The command line: one application, one place where errors become text."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from importlib import import_module
from itertools import pairwise
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError

COMMANDS = {
    "build": "models:build_command",
    "calibrate": "experts:calibrate_command",
    "cost": "experts:cost_command",
    "discover categories": "wide:categories",
    "discover edges": "wide:edges",
    "doctor": "start:doctor",
    "estimate": "published:estimate_command",
    "example": "start:example_command",
    "export": "published:export_command",
    "finish": "release:finish_command",
    "fit naive-bayes": "models:naive_bayes",
    "fit bayes-net": "models:bayes_net",
    "keys": "published:keys_command",
    "ledger init": "ledger:init",
    "ledger budget": "ledger:budget",
    "ledger accept": "ledger:accept",
    "ledger charge": "ledger:charge",
    "ledger changed": "ledger:changed",
    "ledger show": "ledger:show",
    "ledger verify": "ledger:verify",
    "ledger export": "ledger:export",
    "papers": "papers:papers_command",
    "plan": "plan:plan_command",
    "posterior release": "posterior:release_command",
    "posterior draw": "posterior:draw_command",
    "posterior compare": "posterior:compare_command",
    "posterior certify": "posterior:certify_command",
    "predict": "models:predict_command",
    "release": "release:release_command",
    "risk": "experts:risk_command",
    "schema init": "schema:init",
    "schema adopt": "schema:adopt",
    "schema check": "schema:check",
    "schema show": "schema:show",
    "show": "models:show_command",
    "sign": "published:sign_command",
    "studio": "studio:studio_command",
    "synth": "synth:synth_command",
    "verify": "published:verify_command",
    "wide open": "wide:open_command",
    "wide ask": "wide:ask_command",
}
"""Each command, and the module of this package with the function that it is."""

GROUPS = {
    "discover": "Buy categories or bin edges that are not public knowledge.",
    "fit": "Fit a model to a private table.",
    "ledger": "Budgets, what was spent, and the proof of it.",
    "posterior": "Release whole posteriors, and compare ways to do it.",
    "schema": "Write, check and show what is public about a table.",
    "wide": "Distributions over domains too wide to list.",
}
"""What commands of two words share."""

INTERRUPTED = 130
UNFINISHED = "If the ledger was charged already, `dpbayes finish` completes the release, and charges nothing more."
UNEXPECTED = 70
TRACEBACK = "DPBAYES_TRACEBACK"
"""Environment variable that asks for the traceback of an unexpected failure."""


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        from dpbayes.cli.output import tell

        tell(f"dpbayes {version('dpbayes')}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Publish what a sensitive table of categories says, without exposing anyone in it."""


class _Root(TyperGroup):
    """The commands; a number that cannot be read is told in the words of every other face."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # of typer's own click
        """Run a command; typer has its own words for other wrong usage."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as problem:
            names = getattr(problem.param, "opts", [])
            for word, after in pairwise([*sys.argv, ""]):
                name, _, value = word.partition("=")
                if name in names and "," in (value or after):
                    checks.number(ctx.invoked_subcommand or "dpbayes", name, value or after)
            raise


def application(command: str | None = None) -> typer.Typer:
    """The whole application, or only the part that one command needs: then only its libraries are loaded."""
    made = typer.Typer(
        name="dpbayes", cls=_Root, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False
    )
    made.callback()(root)
    known = {words.split()[0] for words in COMMANDS}
    groups = {name: typer.Typer(no_args_is_help=True, help=said) for name, said in GROUPS.items()}
    for words, place in COMMANDS.items():
        first, _, second = words.partition(" ")
        if command != "--version" and (command not in known or first == command):
            module, _, function = place.partition(":")
            groups.get(first, made).command(second or first)(getattr(import_module(f"dpbayes.cli.{module}"), function))
    for name, group in groups.items():
        if group.registered_commands:
            made.add_typer(group, name=name)
    return made


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run() -> None:
    """Entry point: every failure is one sentence. An unexpected one is not quoted: it may hold private values."""
    gc.set_threshold(200_000, 50, 50)  # a command lives shortly: looking for garbage while it loads is in vain
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidy up as after Ctrl-C
    if not sys.warnoptions:
        warnings.simplefilter("ignore", RuntimeWarning)  # arithmetic at extremes; python -W shows them
    warnings.formatwarning = lambda message, *_, **__: f"dpbayes: {message}\n"  # in one sentence, as everything else
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    command = sys.argv[1] if len(sys.argv) > 1 and not completing else None
    try:
        application(command)()
    except DpbayesError as problem:
        _stop(str(problem), 1)
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:  # typer has its own words for wrong usage
            raise
        charged = any(word.startswith("--ledger") for word in sys.argv)
        _stop("interrupted." + f" {UNFINISHED}" * charged, INTERRUPTED)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as problem:
        _stop(f"the system refused: {os.strerror(problem.errno or 0)}.", 1)
    except MemoryError:
        _stop("memory ran out. Ask for fewer cells, or free some memory.", 1)
    except Exception as problem:
        if TRACEBACK in os.environ:
            raise
        _stop(
            f"an unexpected {type(problem).__name__}, a fault of dpbayes. Its text stays hidden, since it may quote "
            f"private values; set {TRACEBACK}=1 to see where it happened, and report it.",
            UNEXPECTED,
        )


def _stop(sentence: str, code: int) -> NoReturn:
    from dpbayes.cli.output import tell  # not before it is needed, as Rich takes its time

    tell("dpbayes: " + sentence.removeprefix("dpbayes: "), err=True)
    sys.exit(code)
