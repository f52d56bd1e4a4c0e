"""What a declared domain lacks: distributions over domains too wide to list; categories or edges that are bought."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release, tell, tell_people
from dpbayes.curator import Curator
from dpbayes.design.plan import Job
from dpbayes.jobs.categories import Categories
from dpbayes.jobs.edges import Edges, Quantiles, bought_attribute
from dpbayes.jobs.wide import Wide, WideDistribution
from dpbayes.mechanisms.lazy import Law
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.file import entry
from dpbayes.schema.marginal import Marginal


@options.target
@options.curator
def open_command(
    curator: Curator,
    target: Guarantee,
    marginal: Annotated[str, typer.Option(help="All attributes, those asked for most often first: sex,age,place.")],
    state: Annotated[Path, typer.Option(help="New file for the counts and the key. As private as the table.")],
    law: Annotated[
        Law, typer.Option(help="splits: α for each branch, accurate on wide domains. cells: α for each cell.")
    ] = "splits",
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
) -> None:
    """Pay once for a whole domain; afterwards any cell or table of it can be asked for.

    Example: dpbayes wide open survey.csv --schema survey.toml --marginal sex,age,region --epsilon 1 --delta 1e-6
    --ledger survey.ledger --state survey.wide
    """
    job = Wide(marginal=Marginal.parse(marginal), state=str(state), law=law, expected_records=expected_records)
    made = options.released(curator, job, target)
    tell(f"{made.choice}. {state} is as private as the table; answers are public: dpbayes wide ask.")


def ask_command(
    state: Annotated[Path, typer.Argument(help="The file that dpbayes wide open wrote.")],
    marginal: Annotated[str | None, typer.Option(help="A joint table: sex,age.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="A level to stay within, as sex=F; repeatable.")] = None,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """A share or a table of shares from the one draw that was paid for. The same question has the same answer.

    Example: dpbayes wide ask survey.wide --marginal age --where sex=female
    """
    if marginal is None and not where:
        raise InvalidArgument("wide: expected --marginal, --where or both.")
    asked = Marginal.parse(marginal) if marginal is not None else None
    if asked is not None and asked.given:
        raise InvalidArgument("wide: expected a joint table such as sex,age; divide its shares for conditional ones.")
    answer = WideDistribution.load(state).answer(() if asked is None else asked.names, dict(map(_level, where or [])))
    if out is not None:
        answer.save(out)
    print_json(answer.record()) if as_json else show_release(answer, out)


def _level(text: str) -> tuple[str, str]:
    name, sign, level = text.partition("=")
    if not sign or not name:
        raise InvalidArgument(f"wide: expected --where name=level, got {text!r}.")
    return name, level


Column = Annotated[str, typer.Option(help="The column to learn about.")]


@options.target
@options.curator
def categories(
    curator: Curator,
    target: Guarantee,
    column: Column,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the values of a column that many rows have, by noisy counts above a threshold.

    Example: dpbayes discover categories survey.csv --column region --schema survey.toml --epsilon 0.2 --delta 1e-8
    --ledger survey.ledger --out found
    """
    _buy(curator, Categories(column=column), target, out, as_json=as_json)


@options.target
@options.curator
def edges(
    curator: Curator,
    target: Guarantee,
    column: Column,
    bins: Annotated[int, typer.Option(help="How many bins of about equal size.")],
    low: Annotated[float, typer.Option(help="Publicly known lower end.")],
    high: Annotated[float, typer.Option(help="Publicly known upper end.")],
    numeric: Annotated[
        bool, typer.Option("--numeric", help="The column holds numbers, though the table, as a CSV file, says text.")
    ] = False,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Find edges that cut a number into bins of about equal size: private quantiles.

    A CSV file does not say which columns are numbers, and edges of dates or texts would be invented: --numeric says it.

    Example: dpbayes discover edges survey.csv --column age --bins 5 --low 0 --high 120 --numeric --schema survey.toml
    --epsilon 0.2 --ledger survey.ledger --out ages
    """
    cut = Quantiles(lower=low, upper=high, bins=bins)
    job = Edges(column=column, quantiles=cut, numeric=True if numeric else None)
    _buy(curator, job, target, out, as_json=as_json)


def _buy(curator: Curator, job: Job, target: Guarantee, out: options.NewFolder, *, as_json: bool) -> None:
    made = options.released(curator, job, target, out=out, quiet=as_json)
    if as_json:
        print_json(made.record())
        return
    show_release(made, out)
    if made.answers[0].values:
        kept = f"dpbayes schema adopt {out} --schema SCHEMA" if out is not None else "dpbayes schema adopt"
        tell_people(f"Lines for the schema ({kept} writes them):")
        tell(entry(bought_attribute(made, curator.schema)))
