"""``dpbayes discover``: buy categories or bin edges that are not public knowledge."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json
from dpbayes.errors import InvalidArgument
from dpbayes.ledger.ledger import Ledger
from dpbayes.privacy.cost import Cost
from dpbayes.tables.discovery import CategoryDiscovery, EdgeDiscovery
from dpbayes.tables.engine import check_column
from dpbayes.tables.sources import open_table

Table = Annotated[str, typer.Argument(help="CSV or Parquet path (globs too), or file.duckdb?table=name.")]
Column = Annotated[str, typer.Option(help="The column to learn about.")]
Dataset = Annotated[str, typer.Option(help="Id of the data set in the ledger.")]
LedgerPath = Annotated[str | None, typer.Option("--ledger", help="Ledger file or PostgreSQL address.")]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Buy without a ledger; nothing remembers it.")]
Person = Annotated[str | None, typer.Option(help="Column that identifies people, to bound their rows.")]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(no_args_is_help=True, help="Buy categories or bin edges that are not public knowledge.")
    group.command("categories")(categories)
    group.command("edges")(edges)
    app.add_typer(group, name="discover")


def categories(
    table: Table,
    column: Column,
    epsilon: Annotated[float, typer.Option(help="ε of the discovery.")],
    delta: Annotated[float, typer.Option(help="δ of the discovery.")],
    dataset: Dataset,
    adjacency: options.AdjacencyOption,
    max_rows: options.MaxRows = 1,
    person: Person = None,
    ledger: LedgerPath = None,
    no_ledger: NoLedger = False,
) -> None:
    """Find the values of a column that many rows have, by noisy counts above a threshold.

    Example: dpbayes discover categories people.csv --column region --epsilon 0.2 --delta 1e-7 --dataset people
    --adjacency replace-one --ledger people.ledger
    """
    asked = CategoryDiscovery(
        column=column, epsilon=epsilon, delta=delta, unit=options.unit(adjacency, max_rows), person=person
    )
    found = _buy(asked, table, dataset, ledger, no_ledger)
    print_json(
        {"column": column, "categories": sorted(found), "threshold": asked.threshold, "cost": asked.cost().record()}
    )


def edges(
    table: Table,
    column: Column,
    bins: Annotated[int, typer.Option(help="How many bins of about equal size.")],
    low: Annotated[float, typer.Option(help="Publicly known lower end.")],
    high: Annotated[float, typer.Option(help="Publicly known upper end.")],
    epsilon: Annotated[float, typer.Option(help="ε of the discovery.")],
    dataset: Dataset,
    adjacency: options.AdjacencyOption,
    max_rows: options.MaxRows = 1,
    person: Person = None,
    ledger: LedgerPath = None,
    no_ledger: NoLedger = False,
) -> None:
    """Find edges that cut a number into bins of about equal size: private quantiles.

    Example: dpbayes discover edges people.csv --column age --bins 5 --low 0 --high 120 --epsilon 0.2 --dataset people
    --adjacency replace-one --ledger people.ledger
    """
    asked = EdgeDiscovery(
        column=column,
        bins=bins,
        low=low,
        high=high,
        epsilon=epsilon,
        unit=options.unit(adjacency, max_rows),
        person=person,
    )
    found = _buy(asked, table, dataset, ledger, no_ledger)
    written = [edge if math.isfinite(edge) else str(edge) for edge in map(float, found)]  # as schema files write them
    print_json({"column": column, "edges": written, "cost": asked.cost().record()})


def _buy(
    asked: CategoryDiscovery | EdgeDiscovery, table: str, dataset: str, ledger: str | None, no_ledger: bool
) -> tuple[str, ...] | tuple[float, ...]:
    """Check the column, charge, then draw. Only a failure before any row is read leaves nothing charged."""
    if (ledger is None) != no_ledger:
        raise InvalidArgument("discover: expected --ledger to remember the cost, or --no-ledger to do without.")
    engine = open_table(table)
    check_column(asked.column, engine.columns(), "edges" if isinstance(asked, EdgeDiscovery) else "categories")
    cost = Cost.of(asked.cost())
    receipt = None
    if ledger is not None:
        book = Ledger(ledger)
        receipt = book.charge(dataset, cost, about=f"discover {asked.column}"[:1000])
    found = asked.draw(engine)
    if receipt is not None:
        book.confirm(receipt)
    return found
