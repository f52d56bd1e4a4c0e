"""``dpbayes wide``: distributions over domains too wide to list."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, progress
from dpbayes.domain.marginal import Marginal
from dpbayes.errors import InvalidArgument
from dpbayes.ledger.ledger import Ledger
from dpbayes.schema_file import read_schema
from dpbayes.tables.sources import open_table
from dpbayes.wide import WideDistribution, open_wide

wide = typer.Typer(no_args_is_help=True, help="Distributions over domains too wide to list.")


class Law(StrEnum):
    """Concentration of the draw."""

    SPLITS = "splits"
    CELLS = "cells"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(wide, name="wide")


@wide.command("open")
def open_command(
    table: Annotated[str, typer.Argument(help="CSV or Parquet path (globs too), or file.duckdb?table=name.")],
    schema: Annotated[Path, typer.Option(help="Schema file that declares what is public.")],
    marginal: Annotated[str, typer.Option(help="All attributes, those asked for most often first: sex,age,place.")],
    state: Annotated[Path, typer.Option(help="New file for the counts and the key. As private as the table.")],
    ledger: Annotated[str, typer.Option(help="Ledger file or PostgreSQL address.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    law: Annotated[
        Law, typer.Option(help="splits: α for each branch, accurate on wide domains. cells: α for each cell.")
    ] = Law.SPLITS,
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Counting engine.")] = None,
) -> None:
    """Pay once for a whole domain; afterwards any cell or table of it can be asked for.

    Example: dpbayes wide open people.parquet --schema people.toml --marginal sex,age,place --epsilon 1 --delta 1e-6
    --ledger people.ledger --state people.wide
    """
    if state.exists():
        raise InvalidArgument(f"wide: {str(state)!r} exists already. Choose another name for --state.")
    if not state.parent.is_dir():
        raise InvalidArgument(f"wide: there is no folder {str(state.parent)!r} for --state. Make it first.")
    with progress() as say:
        say("counting")
        made = open_wide(
            engine=open_table(table, engine=engine),
            schema=read_schema(schema),
            marginal=Marginal.parse(marginal),
            target=options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega),
            ledger=Ledger(ledger),
            law=law.value,
            expected_records=expected_records,
        )
        made.save(state)
    typer.echo(
        f"{made.counts.size:,} cells, weight r = {made.mechanism.weight:.4g}, concentration α = "
        f"{made.mechanism.concentration:.4g} for each {'cell' if law is Law.CELLS else 'branch'}. {state} is as "
        "private as the table; answers are public: dpbayes wide ask."
    )


@wide.command("ask")
def ask_command(
    state: Annotated[Path, typer.Argument(help="The file that dpbayes wide open wrote.")],
    marginal: Annotated[str | None, typer.Option(help="A joint table: sex,age.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="A level to stay within, as sex=F; repeatable.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """A share or a table of shares from the one draw that was paid for. The same question has the same answer.

    Example: dpbayes wide ask people.wide --marginal age --where sex=F
    """
    found = WideDistribution.load(state)
    if marginal is None and not where:
        raise InvalidArgument("wide: expected --marginal, --where or both.")
    asked = Marginal.parse(marginal) if marginal is not None else None
    if asked is not None and asked.given:
        raise InvalidArgument("wide: expected a joint table such as sex,age; divide its shares for conditional ones.")
    names = () if asked is None else asked.names
    fixed = dict(_level(text) for text in where or [])
    table = found.table(names, fixed)
    levels = [axis.levels for axis in asked.axes(found.schema)] if asked is not None else []
    if as_json:
        print_json({"names": names, "where": fixed, "levels": levels, "shares": table.tolist(), "seeded": found.seeded})
        return
    cells = product(*levels)
    rows = [(*cell, float(share)) for cell, share in zip(cells, table.ravel(), strict=True)]
    print_table("Shares", [*names, "share"], rows, notes=["Not private: seeded."] if found.seeded else [])


def _level(text: str) -> tuple[str, str]:
    name, sign, level = text.partition("=")
    if not sign or not name:
        raise InvalidArgument(f"wide: expected --where name=level, got {text!r}.")
    return name, level
