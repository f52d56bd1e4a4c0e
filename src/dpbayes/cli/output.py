"""How commands print: JSON for programs, tables for people. All they print goes through here.

Names and categories come from files, and a terminal obeys what some characters say. So none of them is printed as such.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

import click

if TYPE_CHECKING:
    from dpbayes.cli.command import Run
    from dpbayes.release.format import Release

JSON = "Print JSON: command, version, found, result, warnings."

SHOWN_CELLS = 12
"""Cells of a table that a release shows on the terminal."""

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tabs and ends of lines, those that turn the direction of writing, and halves of pairs."""


def printable(text: str) -> str:
    r"""A text that a terminal shows and does not obey; what is escaped reads the same in JSON and TOML.

    >>> print(printable("\x1b[2Jred \u202e"))
    \u001b[2Jred \u202e
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def tell(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, on standard error if ``err``; without the end of a line unless ``nl``."""
    click.echo(printable(text), err=err, nl=nl)


def tell_programs(text: str) -> None:
    """Print data for another program as they are, and as a text where a person would see them."""
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def tell_people(text: str, *, bold: bool = False) -> None:
    """Print a line for people, broken where the terminal ends."""
    for line in printable(text).split("\n"):
        broken = textwrap.wrap(line, get_terminal_size().columns, break_on_hyphens=False, break_long_words=False)
        for part in broken or [""]:
            click.secho(part, bold=bold)


def tell_failure(said: object) -> None:
    """The sentence, or the JSON, of what went wrong."""
    tell(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), err=True)


def warn(run: Run, text: str) -> None:
    """Something to think over: a sentence on standard error, or a part of the JSON."""
    run.warnings.append(text)
    if not run.json:
        from dpbayes.base.display import WARNING

        tell(text if text.startswith(WARNING) else f"dpbayes: {text}", err=True)


def plain(value: Any) -> Any:
    """A value that JSON can hold: infinities and NaN, which it cannot, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    tell(json.dumps(plain(value), indent=2, ensure_ascii=False))


_telling: list[Callable[[str], None]] = []


def say(what: str) -> None:
    """Tell people at a terminal what is going on, while something is."""
    if _telling:
        _telling[-1](what)


@contextmanager
def working(run: Run) -> Iterator[None]:
    """A line on standard error that says what is going on, for people at a terminal."""
    if run.json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        _telling.append(status.update)
        try:
            yield
        finally:
            _telling.pop()


def number(value: object) -> str:
    """A number for people: six digits, infinity as a sign."""
    if isinstance(value, float):
        return ("∞" if value > 0 else "−∞") if math.isinf(value) else f"{value:.6g}"
    return str(value)


def print_table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], *, notes: Iterable[str] = ()
) -> None:
    """A table for people, with notes below it: the first column to the left, the others to the right."""
    heads = [_cell(column) for column in columns]
    lines = [[_cell(number(each)) for each in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(heads, *lines, strict=True)]
    room = max(get_terminal_size().columns - 3 * len(heads) - 1, 4 * len(heads))
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    tell_people(title, bold=True)
    for left, rule, cross, right, sides, block in (
        ("┏", "━", "┳", "┓", "┃", [heads]), ("┡", "━", "╇", "┩", "│", lines), ("└", "─", "┴", "┘", "", []),
    ):  # fmt: skip
        click.echo(left + cross.join(rule * (width + 2) for width in widths) + right)
        for line in block:
            folded = [_folded(text, width) for text, width in zip(line, widths, strict=True)]
            for depth in range(max(map(len, folded))):
                parts = [part[depth] if depth < len(part) else "" for part in folded]
                spaces = [" " * (width - _width(part)) for part, width in zip(parts, widths, strict=True)]
                padded = [parts[0] + spaces[0], *(s + part for s, part in zip(spaces[1:], parts[1:], strict=True))]
                click.echo(sides + sides.join(f" {each} " for each in padded) + sides)
    for note in notes:
        tell_people(note)


def _cell(text: str) -> str:
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _width(text: str) -> int:
    """The places that a terminal takes for it: two for a wide character, none for one that combines."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _folded(text: str, width: int) -> list[str]:
    return [text] if _width(text) <= width else textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def show_release(made: Release, out: Path | None) -> None:
    """A release for people: its tables, its promise, and where it stands in the ledger."""
    from dpbayes.base.display import plural
    from dpbayes.report.tables import lines
    from dpbayes.words import budget, promise
    from dpbayes.words.report import footnotes, title
    from dpbayes.words.view import View

    for table in made.asked:
        view, name = View(made, table), title(table.marginal)
        columns, rows = lines(view, SHOWN_CELLS)
        hidden = math.prod(len(levels) for levels in view.kept) - len(rows)
        notes = [f"… and {plural(hidden, 'more cell')}."] if hidden else []
        notes += [*footnotes(view), *map(promise.warning, table.notes)]
        print_table(name, (name, *columns), rows, notes=notes)
    for answer in made.answers:
        print_table(answer.name, (answer.name,), [(value,) for value in answer.values[:200]])
    tell_people(made.statement(), bold=True)
    tell_people(f"Mechanism: {made.choice}")
    if made.spending is not None:
        tell_people(f"Ledger: {budget.standing(made.spending)}")
    elif not made.lock:
        tell_people("No ledger remembers this release.")
    if out is not None:
        tell_people(f"Written to {out}: release.json, the numbers, report.html.")
