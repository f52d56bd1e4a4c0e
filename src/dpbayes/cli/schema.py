"""``dpbayes schema``: write, check and extend what is public about a table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from dpbayes.base.display import plural
from dpbayes.base.errors import SchemaError
from dpbayes.base.files import write
from dpbayes.cli.command import Output, near
from dpbayes.cli.options import File, Text, Words
from dpbayes.cli.output import print_table, printable, tell, tell_people
from dpbayes.privacy.risk import percent
from dpbayes.release.format import Release
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.codebook import PRESETS
from dpbayes.schema.labels import labels
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.beside import beside
from dpbayes.tables.declaring import KINDS, declare, from_codebooks, skeleton
from dpbayes.tables.declaring import from_public as public_lists
from dpbayes.tables.engine import Column, Kind, check_schema, spelling
from dpbayes.tables.mending import not_utf8
from dpbayes.tables.sources import dataset_name, open_table, public_address

_SHOWN_LEVELS = 8
DROPPED = "Rows in the level (dropped) are counted with noise, and left out by models."


def init(
    table: str,
    *,
    codebook: tuple[Path, ...],
    categories: Words,
    edges: Words,
    dates: Words,
    preset: Words,
    from_public: Text,
    leave_out: Words,
    interactive: bool,
    unit: str,
    person: Text,
    records: int | None,
    out: File,
) -> Output:
    """It goes beside the table, with its name; --out - prints it instead.

    Example: dpbayes schema init survey.csv --categories sex=female,male --out -
    """
    columns = open_table(table).columns()
    if unknown := {*leave_out, *([person] if person else [])} - (names := {column.name for column in columns}):
        raise SchemaError(f"Schema: the table has no column {min(unknown)!r}. {spelling(min(unknown), names)}")
    columns = tuple(column for column in columns if column.name not in leave_out and column.name != person)
    said = {"categories": categories, "edges": edges, "dates": dates, "preset": preset}
    known: dict[str, Attribute] = {}
    if from_public is not None:
        _refuse_private(from_public, table)
        known |= public_lists(from_public, columns)
    known |= from_codebooks(codebook, columns)
    known |= declare(said, columns)
    if interactive:
        answers, skipped = ask_about([column for column in columns if column.name not in known])
        known |= answers
        columns = tuple(column for column in columns if column.name not in skipped)
    whose = Unit.of(unit, person)
    text = skeleton(columns, id=dataset_name(table) or "data", declared=known, unit=whose, records=records)
    left = [column.name for column in columns if column.name not in known]
    if not left:
        Schema.from_toml(text)  # whatever is wrong with it is said before it is written
    where = beside(table).new_schema if out is None else out
    if where is None:
        raise SchemaError("Schema: the table has no name that a schema could share. Name a new file with --out.")
    if str(where) != "-":
        if where.exists():
            raise SchemaError(f"Schema: {str(where)!r} exists already. Name a new file.")
        _write(where, text)

    def people() -> None:
        if str(where) == "-":
            tell(text, nl=False)
            return
        apart = [] if out is None else ["--schema", str(out)]
        command = shlex.join(["dpbayes", "schema", "check", public_address(table), *apart])
        if left:
            listed = ", ".join(left[:8]) + (", …" if len(left) > 8 else "")
            tell_people(f"Wrote {where}. Fill in the empty lists ({listed}), then run: {command}")
        else:
            tell_people(f"Wrote {where}. Every column of {public_address(table)} is declared. Check it with: {command}")

    return Output({"schema": str(where), "text": text, "undeclared": left}, people)


def _refuse_private(public: str, table: str) -> None:
    try:
        same = Path(public).samefile(table)
    except OSError:
        same = public == table
    if same:
        raise SchemaError(
            "Schema: --from-public names the table itself. Its values are private: declare them, or release them with "
            "`dpbayes release --as categories`."
        )


def _write(out: Path, text: str) -> None:
    try:
        write(out, text)
    except OSError:
        raise SchemaError(f"Schema: {str(out)!r} cannot be written. Check the folder.") from None


def adopt(release: Path, schema: Path) -> Output:
    """Where they come from is written beside them.

    Example: dpbayes schema adopt published/4 survey.toml
    """
    from dpbayes.jobs.edges import adopt as adopted

    try:
        text = schema.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise SchemaError(f"Schema: {str(schema)!r} cannot be read. `dpbayes schema init` writes one.") from None
    changed, attribute = adopted(Release.load(release), text)
    _write(schema, changed)
    said = (
        f"Wrote {attribute.name} with {len(attribute.declared)} levels to {schema}. Let the data owner accept it: "
        f'dpbayes ledger accept {schema} --about "{attribute.name} was released"'
    )
    return Output(
        {"attribute": attribute.table(), "digest": Schema.from_toml(changed).digest}, lambda: tell_people(said)
    )


def check(data: str, *, schema: File, ledger: Text, read_rows: bool) -> Output:
    """Looks at names and types of columns only, unless --read-rows is given.

    Example: dpbayes schema check survey.csv
    """
    found = near(data, schema, ledger)
    declared = Schema.load(found.need_schema())
    if found.table is not None:
        check_schema(declared, open_table(found.table).columns())
    levels = {attribute.name: list(attribute.levels) for attribute in declared.attributes}
    result = declared.record() | {"digest": declared.digest, "levels": levels, "cells": declared.size}
    said, code = [], 0
    if read_rows:
        if found.table is None:
            raise SchemaError("Schema: --read-rows goes with a table. Name it.")
        from dpbayes.curator import Curator

        curator = Curator(found.table, declared, found.ledger or "none")
        undeclared = curator.undeclared()
        code = int(any(declared[name].unknown == "refuse" for name in undeclared))
        shares = ", ".join(f"{name} ({percent(share)} of the rows)" for name, share in undeclared.items())
        said = [f"Values that are not declared occur in {shares}." if undeclared else "Every value is declared."]
        if any(declared[name].edges or declared[name].dates for name in undeclared):
            said.append("Numbers are read with a decimal point and no commas, days as 2026-01-31.")
        said += not_utf8(str(found.table))
        result["undeclared"] = undeclared
        if found.ledger is not None:
            result["changed"] = curator.changed()
            noticed = "The table has changed" if result["changed"] else "No change was noticed in the table"
            said.append(f"{noticed} since the ledger last saw these columns.")
        said.append("Keep this answer to yourself: it is not private.")

    def people() -> None:
        records = f" Records: {declared.records:,} (public)." if declared.records is not None else ""
        fits = "" if found.table is None else f" It fits {public_address(str(found.table))}."
        print_table(
            f"{declared.id}: {declared.size:,} cells",
            ("attribute", "levels", "which", "source"),
            [
                (attribute.name, len(attribute.levels), _listed(labels(attribute)), attribute.source or "-")
                for attribute in declared.attributes
            ],
            notes=(
                f"Unit: {declared.unit}.{records}",
                *([DROPPED] if any(each.drops for each in declared.attributes) else []),
                f"A valid schema of {plural(len(declared.attributes), 'attribute')}.{fits}",
                *said,
            ),
        )

    return Output(result, people, code)


def _listed(levels: tuple[str, ...]) -> str:
    shown = levels if len(levels) <= _SHOWN_LEVELS else (*levels[: _SHOWN_LEVELS - 2], "…", levels[-1])
    return " · ".join(shown)


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
        answer = click.prompt(question, default=USUAL.get(column.kind, "c"), err=True).strip().lower()[:1]
        if answer in ("l", "s"):
            return str(answer)
        if answer not in CHOICES:
            tell("Answer c, e, d, p, l or s.", err=True)
            continue
        kind = CHOICES[answer]
        try:
            return KINDS[kind](column.name, click.prompt(f"  {HOW[kind]}", err=True))
        except SchemaError as problem:
            tell(f"  {problem}", err=True)
