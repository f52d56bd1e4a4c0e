"""How a function becomes a command: its parameters are the options, what it returns is printed or is the JSON.

Positional parameters are arguments; those that go by name are options, whose meaning is in ``options``. A parameter
without a default must be given, unless it may be None. ``**asked: Unpack[Asked]`` stands for the options of ``Asked``.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.cli import ABOUT, COMMANDS, GROUPS, PANELS, options
from dpbayes.cli.output import JSON, print_json, tell, tell_people

if TYPE_CHECKING:
    from dpbayes.tables.beside import Beside


@dataclass
class Run:
    """One call of the command line."""

    json: bool = False
    found: Beside | None = None
    warnings: list[str] = field(default_factory=list)
    charging: bool = False
    """Whether a ledger may have been charged."""
    charged: bool = False
    """Whether a ledger was charged, so that there is something to finish."""

    def aftermath(self) -> str:
        """What to do about a charge after a failure."""
        if not self.charging or self.found is None:
            return ""
        command = f"`dpbayes ledger finish {self.found.record()['ledger']}`"
        return f" If the ledger was charged already, {command} completes the release, and charges nothing more."


@dataclass(frozen=True)
class Output:
    """What a command found: a value for JSON, and how people see it."""

    result: Any
    show: Callable[[], object] | None = None
    code: int = 0


def now() -> Run:
    """The call under way."""
    return click.get_current_context().find_object(Run) or Run()


def near(data: str, schema: Path | None = None, ledger: str | None = None) -> Beside:
    """What lies beside the data, told as the first line."""
    from dpbayes.tables.beside import beside

    run, found = now(), beside(data, schema, ledger)
    run.found = found
    if not run.json:
        tell_people(found.line)
    return found


def fresh(out: Path) -> Path:
    """A new file, refused if it is there."""
    if out.exists():
        raise ReleaseError(f"{click.get_current_context().command.name}: {str(out)!r} exists already. Name a new file.")
    return out


def useless(about: str, *names: str) -> None:
    """Refuse options that were typed and say nothing here."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = name.rstrip("_").replace("_", "-")
            raise InvalidArgument(f"{context.command.name}: --{option} says nothing about {about}. Leave it out.")


def key_value(text: str) -> tuple[str, Any]:
    """One key with its value, which is TOML or else text.

    >>> key_value("bins=5"), key_value("bounds=0:120"), key_value("title=Income by sex")
    (('bins', 5), ('bounds', '0:120'), ('title', 'Income by sex'))
    """
    import tomllib

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidArgument(f"set: expected KEY=VALUE, as in --set title='Income by sex', got {text!r}.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return name.strip(), value.strip()


def prepare() -> None:
    """Warnings are sentences too."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore", RuntimeWarning)  # arithmetic at extremes; python -W shows them
    warnings.formatwarning = lambda message, *_, **__: f"dpbayes: {message}\n"


class Number(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A number in the words of every other face."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        if isinstance(value, float):
            return value
        from dpbayes.base import checks  # with numpy

        return checks.number(ctx.command.name or "" if ctx else "", param.opts[0] if param else "", value)


TYPES: dict[Any, Any] = {str: str, int: int, float: Number(), Path: click.Path(path_type=Path), bool: bool}


class Command(click.Command):
    """A command whose answer is JSON if that is asked for."""

    def invoke(self, ctx: click.Context) -> int:
        """Run it, and print what it found."""
        run = now()
        with warnings.catch_warnings(record=run.json) as caught:
            answer: Output = super().invoke(ctx)
        if run.json:
            run.warnings += [str(each.message) for each in caught or ()]
            from importlib.metadata import version

            found = None if run.found is None else run.found.record()
            print_json({"command": self.name, "version": version("dpbayes"), "found": found,
                        "result": answer.result, "warnings": run.warnings})  # fmt: skip
        elif answer.show is not None:
            answer.show()
        return answer.code

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, an example, arguments and options; and the list that a command has of its own."""
        about, *examples = inspect.cleandoc(self.help or "").split("\n\n")
        formatter.write_usage(f"dpbayes {self.name}", " ".join(self.collect_usage_pieces(ctx)))
        for paragraph in (about, *examples):
            formatter.write_paragraph()
            formatter.write_text(" ".join(paragraph.split()))
        named = [each for each in self.params if isinstance(each, click.Argument)]
        if named:
            with formatter.section("Arguments"):
                formatter.write_dl([(str(each.metavar), options.ARGUMENTS[str(each.name)]) for each in named])
        with formatter.section("Options"):
            offered = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
            formatter.write_dl([record for each in offered if (record := each.get_help_record(ctx))])
        listed = getattr(self.callback, "listed", None)
        if listed is not None:
            title, rows = listed()
            with formatter.section(title):
                formatter.write_dl(rows)


def command(name: str, function: Callable[..., Output]) -> Command:
    """The command that a function is: the sentence of the list, then its docstring, are its help."""
    parts: dict[str, tuple[str, Any]] = {}
    given = []
    for each in inspect.signature(function).parameters.values():
        hint = options.ALIASES.get(str(each.annotation), str(each.annotation))
        if each.kind is each.VAR_KEYWORD:
            asked = getattr(options, hint.removeprefix("Unpack[").rstrip("]").rpartition(".")[2])
            parts |= {
                key: (getattr(part, "__forward_arg__", str(part)), each.empty)
                for key, part in _annotations(asked).items()
            }
        elif each.kind is each.KEYWORD_ONLY:
            parts[each.name] = (hint, each.default)
        else:
            many, needed = hint.startswith("tuple"), each.default is each.empty
            shown = each.name.rstrip("_").removesuffix("s" * many).upper() + "…" * many
            given.append(
                click.Argument(
                    [each.name],
                    nargs=-1 if many else 1,
                    required=needed,
                    **({} if needed or many else {"default": each.default}),
                    type=TYPES[Path] if hint.startswith("Path") else str,
                    metavar=shown if needed else f"[{shown}]",
                )
            )
    made = [_option(key, hint) for key, (hint, _) in parts.items()]
    said = f"{COMMANDS[name][1]}\n\n{inspect.cleandoc(function.__doc__ or '')}"
    return Command(name, params=[*given, *made, _json()], callback=function, help=said)


def _annotations(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed([kind, *getattr(kind, "__orig_bases__", ())]):
        found |= getattr(base, "__annotations__", {})
    return found


def _option(name: str, hint: str) -> click.Option:
    listed = options.OPTIONS[name]
    hint = options.ALIASES.get(hint, hint)
    flag, required = listed.type is bool, listed.default is None and not listed.many and "None" not in hint
    spelt = [f"--{name.rstrip('_').replace('_', '-')}", *([listed.short] if listed.short else []), name]
    kind = click.Choice(listed.type) if isinstance(listed.type, tuple) else TYPES[listed.type]
    form: dict[str, Any] = {"is_flag": True} if flag else {"type": kind}
    if listed.default is not None:  # click takes None for a default too
        form["default"] = listed.default
    return click.Option(
        spelt,
        **form,
        multiple=listed.many,
        required=required and not flag,
        help=listed.help + (f" ({options.MANY})" if listed.many else ""),
        metavar=listed.metavar or None,
        show_default=listed.default is not None and not flag,
    )


def _json() -> click.Option:
    return click.Option(["--json", "_json"], is_flag=True, help=JSON, expose_value=False)


class Commands(click.Group):
    """Commands that are loaded when they are called."""

    def __init__(self, name: str, words: Mapping[str, str], about: str) -> None:
        super().__init__(name, help=about, params=[_json()], no_args_is_help=True)
        self.words = dict(words)
        """Each word, and the whole name of the command, or of the group, that it calls."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click asks
        """The words, as they are listed."""
        return list(self.words)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click asks
        """Load one."""
        name = self.words.get(cmd_name)
        if name in GROUPS:
            return Commands(
                name, {each.split()[1]: each for each in COMMANDS if each.startswith(f"{name} ")}, GROUPS[name]
            )
        return None if name is None else loaded(name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command; of an old one, its new name; of an unknown one, the nearest."""
        if args and args[0] not in self.words and not args[0].startswith("-"):
            from dpbayes.cli.old import renamed

            name = "" if self.name == "dpbayes" else f"{self.name} "
            raise InvalidArgument(
                renamed([*name.split(), *args])
                or f"there is no command {name}{args[0]}. {_nearest(args[0], self.words, name)}"
            )
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as click asks
        """All commands, from what is known without loading any."""
        root = self.name == "dpbayes"
        formatter.write_usage("dpbayes" if root else f"dpbayes {self.name}", "COMMAND …")
        formatter.write_paragraph()
        formatter.write_text(str(self.help))
        for title, words in (PANELS if root else {"Commands": tuple(self.words)}).items():
            with formatter.section(title):
                formatter.write_dl([(word, GROUPS.get(word) or COMMANDS[self.words[word]][1]) for word in words])
        formatter.write_paragraph()
        formatter.write_text(
            "dpbayes COMMAND --help shows options and an example; --json prints JSON; --version the version."
        )


def application(run: Run) -> int:
    """Run the command line; the exit code."""
    group = root()
    if "_DPBAYES_COMPLETE" in os.environ:
        group.main(prog_name="dpbayes")
    try:
        with group.make_context("dpbayes", sys.argv[1:], obj=run) as context:
            code: int = group.invoke(context)
            return code
    except click.exceptions.NoArgsIsHelpError as problem:
        tell(problem.ctx.get_help() if problem.ctx else "")
        return 2
    except click.UsageError as problem:
        raise InvalidArgument(_sentence(problem)) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.Exit as stop:
        return stop.exit_code


def root() -> Commands:
    """All commands."""
    return Commands("dpbayes", {word: word for words in PANELS.values() for word in words}, ABOUT)


def loaded(name: str) -> Command:
    """One command, with its module."""
    module = import_module(f"dpbayes.cli.{COMMANDS[name][0]}")
    function = name.rsplit(maxsplit=1)[-1]
    return command(name, getattr(module, function, None) or getattr(module, f"{function}_"))


def _sentence(problem: click.UsageError) -> str:
    """Wrong usage in one sentence; of an old option, what took its place."""
    where = f"{problem.ctx.command.name}: " if problem.ctx is not None and problem.ctx.command.name else ""
    if isinstance(problem, click.NoSuchOption):
        from dpbayes.cli.old import OPTIONS as GONE

        if problem.option_name in GONE:
            return f"{where}{problem.option_name} is gone since 0.2.0: {GONE[problem.option_name]}."
        assert problem.ctx is not None
        known = [name for each in problem.ctx.command.params for name in each.opts if name.startswith("--")]
        return f"{where}there is no option {problem.option_name}. {_nearest(problem.option_name, known)}"
    said = " ".join(problem.format_message().split())
    return where + said[0].lower() + said[1:]


def _nearest(name: str, known: Iterable[str], before: str = "") -> str:
    from difflib import get_close_matches  # takes long to load, and is needed once something is wrong

    near = get_close_matches(name, known, n=1)
    return f"Did you mean {before}{near[0]}?" if near else f"There is {', '.join(sorted(known))}."
