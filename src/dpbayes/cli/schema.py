"""``dpbayes schema``: write, check and show what is public about a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpbayes.base.display import plural
from dpbayes.base.errors import SchemaError
from dpbayes.base.files import write
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, printable, tell
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.codebook import PRESETS
from dpbayes.schema.labels import labels
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, PrivacyUnit
from dpbayes.tables.declaring import KINDS
from dpbayes.tables.engine import Column, Kind

if TYPE_CHECKING:
    from dpbayes.schema.attribute import Attribute


_SHOWN_LEVELS = 8
_DECLARE = "Declare a column"

Table = Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a pattern of files.")]
SchemaFile = Annotated[Path, typer.Argument(help="A schema file in TOML.")]


def init(
    table: Table,
    out: Annotated[Path | None, typer.Option(help="Write to this new file instead of standard output.")] = None,
    name: Annotated[str | None, typer.Option("--id", help="Id of the data set; else the file's name.")] = None,
    codebook: Annotated[
        list[Path] | None,
        typer.Option(
            help="Code lists: CSV, JSON, Table Schema, CSVW, DDI (.xml), SPSS (.sav, .por), Stata (.dta); repeatable.",
            rich_help_panel=_DECLARE,
        ),
    ] = None,
    categories: Annotated[
        list[str] | None, typer.Option(help="sex=F,M (or F;M); repeatable.", rich_help_panel=_DECLARE)
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option(help="age=0,18,65,inf or age=0:80:10; repeatable.", rich_help_panel=_DECLARE),
    ] = None,
    dates: Annotated[
        list[str] | None,
        typer.Option(help="admitted=quarter:2019-01-01:2022-01-01, or days; repeatable.", rich_help_panel=_DECLARE),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            help="smokes=yes-no; also sex, sex-iso, months, weekdays, countries, ages-5, ages-10, income; repeatable.",
            rich_help_panel=_DECLARE,
        ),
    ] = None,
    closed: Annotated[
        list[str] | None,
        typer.Option(help="sex=M: no further levels, all else counts as M; repeatable.", rich_help_panel=_DECLARE),
    ] = None,
    from_public: Annotated[
        str | None,
        typer.Option(help="Take categories from this file, which is public already.", rich_help_panel=_DECLARE),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="A column that no release will use; repeatable.", rich_help_panel=_DECLARE)
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask about each column that is not declared yet.")] = False,
    adjacency: options.AdjacencyOption = "replace-one",
    max_rows: options.MaxRows = 1,
    person: Annotated[
        str | None, typer.Option(help="Column that identifies people.", rich_help_panel="Privacy unit")
    ] = None,
    records: Annotated[
        int | None, typer.Option(help="Number of records, if it is public.", rich_help_panel="Privacy unit")
    ] = None,
) -> None:
    """Write a schema from column names and types, and from what you declare: no rows are read.

    Example: dpbayes schema init survey.csv --categories sex=female,male --preset age=ages-10 --out first.toml
    """
    from dpbayes.tables.declaring import close, declare, from_codebooks, skeleton
    from dpbayes.tables.declaring import from_public as public_lists
    from dpbayes.tables.sources import dataset_name, open_table

    columns = open_table(table).columns()
    dropped = set(leave_out or ())
    if unknown := (dropped | ({person} if person else set())) - {column.name for column in columns}:
        raise SchemaError(f"Schema: the table has no column {min(unknown)!r}. Check the name.")
    columns = tuple(column for column in columns if column.name not in dropped and column.name != person)
    said = {"categories": categories, "edges": edges, "dates": dates, "preset": preset}
    known: dict[str, Attribute] = {}
    if from_public is not None:
        _refuse_private(from_public, table)
        known |= public_lists(from_public, columns)
    known |= from_codebooks(codebook or (), columns)
    known |= declare({kind: texts or () for kind, texts in said.items()}, columns)
    if ask:
        answers, skipped = ask_about([column for column in columns if column.name not in known])
        known |= answers
        columns = tuple(column for column in columns if column.name not in skipped)
    known |= close(closed or (), known)
    unit = PrivacyUnit(adjacency=Adjacency(adjacency), max_rows=max_rows, person=person)
    text = skeleton(columns, id=name or dataset_name(table) or "data", declared=known, unit=unit, records=records)
    left = [column.name for column in columns if column.name not in known]
    if not left:
        Schema.from_toml(text)  # whatever is wrong with it is said before it is written
    if out is None:
        tell(text, nl=False)
        return
    _write_new(out, text)
    _tell_written(out, table, left)


def _refuse_private(public: str, table: str) -> None:
    try:
        same = Path(public).samefile(table)
    except OSError:
        same = public == table
    if same:
        raise SchemaError(
            "Schema: --from-public names the table itself. Its values are private: declare them, or buy them with "
            "`dpbayes discover`."
        )


def _write_new(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SchemaError(f"Schema: {str(out)!r} exists already. Name a new file.") from None
    except OSError:
        raise SchemaError(f"Schema: {str(out)!r} cannot be written. Check the folder.") from None


def _tell_written(out: Path, table: str, left: list[str]) -> None:
    from dpbayes.tables.sources import public_address

    command = f"dpbayes schema check {out} {public_address(table)}"
    if not left:
        tell(f"Wrote {out}. Every column is declared. Check it with: {command}", err=True)
        return
    listed = ", ".join(left[:8]) + (", …" if len(left) > 8 else "")
    tell(f"Wrote {out}. Fill in the empty lists ({listed}), then run: {command}", err=True)


def adopt(
    release: options.ReleaseFile,
    schema: Annotated[Path, typer.Option(help="The schema file to write to.")],
    as_json: options.AsJson = False,
) -> None:
    """Write bought categories or edges into a schema file, with where they come from.

    Example: dpbayes schema adopt found --schema survey.toml
    """
    from dpbayes.jobs.edges import adopt
    from dpbayes.release.format import Release

    try:
        text = schema.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise SchemaError(f"Schema: {str(schema)!r} cannot be read as UTF-8 text. Check the name.") from None
    changed, attribute = adopt(Release.load(release), text)
    try:
        write(schema, changed)
    except OSError:
        raise SchemaError(f"Schema: {str(schema)!r} cannot be written. Check the folder.") from None
    if as_json:
        print_json({"attribute": attribute.table(), "digest": Schema.from_toml(changed).digest})
        return
    tell(
        f"Wrote {attribute.name} with {len(attribute.declared)} levels to {schema}. Let the data owner accept it: "
        f'dpbayes ledger accept LEDGER --schema {schema} --reason "{attribute.name} was bought"'
    )


def check(
    schema: SchemaFile,
    table: Annotated[str | None, typer.Argument(help="Check also that this table has the columns.")] = None,
    values: Annotated[
        bool, typer.Option("--values", help="For the owner: read the rows, and name columns with undeclared values.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check a schema and, with a table, that its columns fit: names and types only, unless --values is given.

    Example: dpbayes schema check survey.toml survey.csv
    """
    from dpbayes.tables.engine import check_schema
    from dpbayes.tables.sources import open_table, public_address

    declared = Schema.load(schema)
    if values:
        if table is None:
            raise SchemaError("Schema: --values goes with a table. Name it.")
        _check_values(declared, table)
        return
    if table is not None:
        check_schema(declared, open_table(table).columns())
        table = public_address(table)
    if as_json:
        print_json({"id": declared.id, "digest": declared.digest, "cells": declared.size, "table": table})
        return
    fits = "" if table is None else f" It fits {table}."
    tell(f"{schema} is a valid schema of {len(declared.attributes)} attributes.{fits}")


def _check_values(declared: Schema, table: str) -> None:
    from dpbayes.curator import Curator

    found = Curator(table, declared).undeclared()
    remark = "Keep this answer to yourself: it is not private."
    if not found:
        tell(f"Every value is declared. {remark}")
        return
    tell(f"Values that are not declared occur in {', '.join(found)}. {remark}")
    if any(declared[name].unknown == "refuse" for name in found):
        raise typer.Exit(1)


def show(schema: SchemaFile, as_json: options.AsJson = False) -> None:
    """Show attributes, levels, sources and the privacy unit of a schema.

    Example: dpbayes schema show survey.toml
    """
    declared = Schema.load(schema)
    if as_json:
        levels = {attribute.name: list(attribute.levels) for attribute in declared.attributes}
        print_json(declared.record() | {"digest": declared.digest, "levels": levels, "cells": declared.size})
        return
    print_table(
        f"{declared.id}: {declared.size:,} cells",
        ("attribute", "levels", "which", "source"),
        [
            (attribute.name, len(attribute.levels), _listed(labels(attribute)), attribute.source or "-")
            for attribute in declared.attributes
        ],
        notes=(_unit_note(declared), *_drop_note(declared)),
    )


def _listed(levels: tuple[str, ...]) -> str:
    shown = levels if len(levels) <= _SHOWN_LEVELS else (*levels[: _SHOWN_LEVELS - 2], "…", levels[-1])
    return " · ".join(shown)


def _drop_note(schema: Schema) -> tuple[str, ...]:
    drops = any(attribute.drops for attribute in schema.attributes)
    return ("Rows in the level (dropped) are counted with noise, and left out by models.",) if drops else ()


def _unit_note(schema: Schema) -> str:
    enforced = "promised by the owner" if schema.person is None else f"enforced by column {schema.person}"
    records = f" Records: {schema.records:,} (public)." if schema.records is not None else ""
    return (
        f"Unit: {schema.unit.adjacency}, at most {plural(schema.unit.max_rows, 'row')} per person, {enforced}.{records}"
    )


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
