"""``dpbayes fit naive-bayes`` and ``dpbayes fit bayes-net``: from a private table to a model that anyone can build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release
from dpbayes.curator import Curator
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.mechanisms import Wish
from dpbayes.jobs.model import Fit
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.privacy.guarantee import Guarantee

Estimate = Annotated[Literal["posterior", "draw"], typer.Option(help="Posterior means, or the papers' single draw.")]
Mechanism = Annotated[Wish, typer.Option(help="Which mechanism; auto takes the least noise.")]
AccountingOption = Annotated[Accounting, typer.Option(help="Exact, or the papers' parameters.")]
Expected = Annotated[int | None, typer.Option(help="Public guess of the number of records.")]


@options.target
@options.curator
def naive_bayes(
    curator: Curator,
    target: Guarantee,
    class_: Annotated[str, typer.Option("--target", help="The attribute to predict.")],
    feature: Annotated[
        list[str] | None, typer.Option(help="An attribute that predicts; all others if left out.")
    ] = None,
    out: options.NewFolder = None,
    mechanism: Mechanism = "auto",
    estimate: Estimate = "posterior",
    accounting: AccountingOption = "exact",
    tempered: Annotated[
        bool | None,
        typer.Option(
            "--tempered/--not-tempered",
            help="Spend a tenth of the budget on how far the model may trust itself; by default where that helps.",
        ),
    ] = None,
    expected_records: Expected = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a private naive Bayes classifier.

    Example: dpbayes fit naive-bayes survey.csv --schema survey.toml --target income --epsilon 1 --delta 1e-6
    --ledger survey.ledger --out model
    """
    job = Fit(
        model=NaiveBayes(target=class_, features=tuple(feature or ()), estimate=estimate),
        mechanism=mechanism,
        accounting=accounting,
        expected_records=expected_records,
        tempered=tempered,
    )
    _fit(curator, job, target, out, as_json=as_json)


@options.target
@options.curator
def bayes_net(
    curator: Curator,
    target: Guarantee,
    graph: Annotated[
        Path | None,
        typer.Option(help="JSON file: [[parent, child], …], or an object with edges and nodes; learned if left out."),
    ] = None,
    out: options.NewFolder = None,
    mechanism: Mechanism = "auto",
    estimate: Estimate = "posterior",
    accounting: AccountingOption = "exact",
    expected_records: Expected = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a private Bayesian network: the tables of a given graph, or all pairs, from which a tree is learned.

    Example: dpbayes fit bayes-net survey.csv --schema survey.toml --epsilon 1 --delta 1e-6
    --ledger survey.ledger --out network
    """
    job = Fit(
        model=BayesNet(estimate=estimate) if graph is None else BayesNet.of(_text(graph), estimate=estimate),
        mechanism=mechanism,
        accounting=accounting,
        expected_records=expected_records,
    )
    _fit(curator, job, target, out, as_json=as_json)


def _text(graph: Path) -> str:
    try:
        return graph.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"fit: cannot read the graph {str(graph)!r}.") from None


def _fit(curator: Curator, job: Fit, target: Guarantee, out: Path | None, *, as_json: bool) -> None:
    made = options.released(curator, job, target, out=out, quiet=as_json)
    print_json(made.record()) if as_json else show_release(made, out)
