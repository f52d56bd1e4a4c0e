"""Questions about columns at the terminal. Answers are declared, never looked up in rows."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dpbayes.cli.output import printable, tell
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.presets import PRESETS
from dpbayes.errors import SchemaError
from dpbayes.tables.declaring import KINDS
from dpbayes.tables.engine import Column, Kind

CHOICES = {"c": "categories", "e": "edges", "d": "dates", "p": "preset"}

HOW = {
    "categories": "Categories, separated by commas (or semicolons), as F,M",
    "edges": "Edges, as 0,18,65,inf, or first:last:step, as 0:100:10",
    "dates": "Days, as quarter:2019-01-01:2022-01-01 or 2019-01-01,2022-01-01",
    "preset": f"Known list, one of {', '.join(PRESETS)}",
}

USUAL = {Kind.INTEGER: "e", Kind.NUMBER: "e", Kind.DATE: "d", Kind.TIMESTAMP: "d"}


def ask_about(columns: Sequence[Column]) -> tuple[dict[str, Attribute], set[str]]:
    """The declarations that were given, and the columns to leave out; others are filled in later."""
    found: dict[str, Attribute] = {}
    skipped: set[str] = set()
    tell("For each column: c categories, e edges, d dates, p a known list, l leave out, s fill in later.", err=True)
    for column in columns:
        if column.kind is Kind.UNSUPPORTED:
            continue
        made = _asked(column)
        if made == "l":
            skipped.add(column.name)
        elif isinstance(made, Attribute):
            found[column.name] = made
    return found, skipped


def _asked(column: Column) -> Attribute | str:
    while True:
        question = f"{printable(column.name)} ({column.kind})"
        answer = typer.prompt(question, default=USUAL.get(column.kind, "c"), err=True).strip().lower()[:1]
        if answer in ("l", "s"):
            return str(answer)
        if answer not in CHOICES:
            tell("Answer c, e, d, p, l or s.", err=True)
            continue
        kind = CHOICES[answer]
        try:
            return KINDS[kind](column.name, typer.prompt(f"  {HOW[kind]}", err=True))
        except SchemaError as problem:
            tell(f"  {problem}", err=True)
