"""How commands print: JSON for programs, tables for people. All they print goes through here.

Names and categories come from files, and a terminal obeys what some characters say. So none of them is printed as such.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpbayes.base.display import plural
from dpbayes.release.format import Release
from dpbayes.report.tables import lines
from dpbayes.words import budget, promise
from dpbayes.words.report import footnotes, title
from dpbayes.words.view import View

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
    typer.echo(printable(text), err=err, nl=nl)


def tell_programs(text: str) -> None:
    """Print data for another program as they are, and as a text where a person would see them."""
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def tell_people(text: str, style: str | None = None) -> None:
    """Print a line for people."""
    Console().print(printable(text), style=style, highlight=False, markup=False)


def plain(value: Any) -> Any:
    """A value that JSON can hold: infinities and NaN, which it cannot, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_telling: list[Callable[[str], None]] = []


def say(what: str) -> None:
    """Tell people at a terminal what is going on, while something is."""
    if _telling:
        _telling[-1](what)


@contextmanager
def working(*, quiet: bool = False) -> Iterator[None]:
    """A line on standard error that says what is going on, for people at a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status("starting") as status:
        _telling.append(status.update)
        try:
            yield
        finally:
            _telling.pop()


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    tell(json.dumps(plain(value), indent=2, ensure_ascii=False))


def number(value: object) -> str:
    """A number for people: six digits, infinity as a sign."""
    if isinstance(value, float):
        return ("∞" if value > 0 else "−∞") if math.isinf(value) else f"{value:.6g}"
    return str(value)


def print_table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], *, notes: Iterable[str] = ()
) -> None:
    """A table for people, with notes below it."""
    table = Table()
    for index, column in enumerate(columns):
        table.add_column(_cell(column), justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(number(cell)) for cell in row))
    tell_people(title, "bold")
    Console().print(table)
    for note in notes:
        tell_people(note)


def _cell(text: str) -> str:
    return escape(printable(text).replace("\n", "\\n").replace("\t", "\\t"))


def show_release(made: Release, out: Path | None) -> None:
    """A release for people: its tables, its promise, and where it stands in the ledger."""
    for table in made.asked:
        view, name = View(made, table), title(table.marginal)
        columns, rows = lines(view, SHOWN_CELLS)
        hidden = math.prod(len(levels) for levels in view.kept) - len(rows)
        notes = [f"… and {plural(hidden, 'more cell')}."] if hidden else []
        notes += [*footnotes(view), *map(promise.warning, table.notes)]
        print_table(name, (name, *columns), rows, notes=notes)
    for answer in made.answers:
        print_table(answer.name, (answer.name,), [(value,) for value in answer.values[:200]])
    tell_people(made.statement(), "bold")
    tell_people(f"Mechanism: {made.choice}")
    if made.spending is not None:
        tell_people(f"Ledger: {budget.standing(made.spending)}")
    elif not made.lock:
        tell_people("No ledger remembers this release.")
    if out is not None:
        tell_people(f"Written to {out}: release.json, the numbers, report.html.")
