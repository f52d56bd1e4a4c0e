"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def plain(value: Any) -> Any:
    """A value that JSON can hold: infinities and NaN, which it cannot, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is going on, for people at a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield status.update


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def number(value: object) -> str:
    """A number for people: six digits, infinity as a sign."""
    if isinstance(value, float):
        return "∞" if math.isinf(value) else f"{value:.6g}"
    return str(value)


def print_table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], *, notes: Iterable[str] = ()
) -> None:
    """A table for people, with notes below it."""
    table = Table()
    for index, column in enumerate(columns):
        table.add_column(escape(column), justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(number(cell)) for cell in row))
    console = Console()
    console.print(title, style="bold", highlight=False, markup=False)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False, markup=False)
