"""``dpbayes discover``: buy categories or bin edges that are not public knowledge."""

from __future__ import annotations

from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release, tell, tell_people
from dpbayes.curator import Curator
from dpbayes.design.plan import Job
from dpbayes.jobs.categories import Categories
from dpbayes.jobs.edges import Edges, Quantiles, bought
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.tables.declaring import section

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
        tell(section(bought(made, curator.schema)), nl=False)
