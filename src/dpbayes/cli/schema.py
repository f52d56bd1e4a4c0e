"""``dpbayes schema``: write, check and show what is public about a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, tell
from dpbayes.domain.display import plural
from dpbayes.domain.schema import Schema
from dpbayes.errors import SchemaError

_SHOWN_LEVELS = 8

Table = Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a pattern of files.")]
SchemaFile = Annotated[Path, typer.Argument(help="A schema file in TOML.")]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(no_args_is_help=True, help="Write, check and show what is public about a table.")
    group.command("init")(init)
    group.command("check")(check)
    group.command("show")(show)
    app.add_typer(group, name="schema")


def init(
    table: Table,
    out: Annotated[Path | None, typer.Option(help="Write to this new file instead of standard output.")] = None,
    name: Annotated[str | None, typer.Option("--id", help="Id of the data set; else the file's name.")] = None,
) -> None:
    """Write a commented schema to fill in, from column names and types only: no rows are read.

    Example: dpbayes schema init people.parquet --out people.toml
    """
    from dpbayes.tables.skeleton import skeleton
    from dpbayes.tables.sources import dataset_name, open_table, public_address

    text = skeleton(open_table(table).columns(), id=name or dataset_name(table) or "data")
    if out is None:
        tell(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SchemaError(f"Schema: {str(out)!r} exists already. Name a new file.") from None
    except OSError:
        raise SchemaError(f"Schema: {str(out)!r} cannot be written. Check the folder.") from None
    tell(
        f"Wrote {out}. Fill in the empty lists, then run: dpbayes schema check {out} {public_address(table)}", err=True
    )


def check(
    schema: SchemaFile,
    table: Annotated[str | None, typer.Argument(help="Check also that this table has the columns.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a schema and, with a table, that its columns fit: names and types only, no rows are read.

    Example: dpbayes schema check people.toml people.parquet
    """
    from dpbayes.tables.engine import check_schema
    from dpbayes.tables.sources import open_table, public_address

    declared = Schema.load(schema)
    if table is not None:
        check_schema(declared, open_table(table).columns())
        table = public_address(table)
    if as_json:
        print_json({"id": declared.id, "digest": declared.digest, "cells": declared.size, "table": table})
        return
    fits = "" if table is None else f" It fits {table}."
    tell(f"{schema} is a valid schema of {len(declared.attributes)} attributes.{fits}")


def show(schema: SchemaFile, as_json: options.AsJson = False) -> None:
    """Show attributes, levels and the privacy unit of a schema.

    Example: dpbayes schema show people.toml
    """
    declared = Schema.load(schema)
    if as_json:
        levels = {attribute.name: list(attribute.levels) for attribute in declared.attributes}
        print_json(declared.record() | {"digest": declared.digest, "levels": levels, "cells": declared.size})
        return
    print_table(
        f"{declared.id}: {declared.size:,} cells",
        ("attribute", "levels", "which"),
        [(attribute.name, len(attribute.levels), _listed(attribute.levels)) for attribute in declared.attributes],
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
