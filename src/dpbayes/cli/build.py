"""``dpbayes build``: models from what is published already. Free."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.codec import to_record
from dpbayes.errors import InvalidArgument
from dpbayes.models.base import Model, ModelSpec
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.histogram import Histogram
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.release.format import Release

Kind = Literal["naive-bayes", "bayes-net", "histogram"]


def build_command(
    kind: Annotated[Kind, typer.Argument(help="Which model.")],
    releases: Annotated[list[Path], typer.Argument(help="Releases of one data set: files or folders.")],
    target: Annotated[str | None, typer.Option(help="naive-bayes: the attribute to predict.")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="naive-bayes: an attribute that predicts.")] = None,
    graph: Annotated[Path | None, typer.Option(help="bayes-net: JSON file of edges; learned if left out.")] = None,
    attribute: Annotated[list[str] | None, typer.Option(help="histogram: an attribute of the joint table.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Build a model from releases that hold its tables, at no cost, and print its tables.

    Example: dpbayes build naive-bayes published --target income
    """
    spec = specification(kind, target=target, features=feature, graph=graph, attributes=attribute)
    model = spec.build([Release.load(path) for path in releases])
    network = model.network
    if as_json:
        print_json({"model": to_record(spec), "statement": model.published.statement(), "tables": to_record(network)})
        return
    rows = [(node, ", ".join(parents) or "-", network.tables[node].size) for node, parents in network.parents.items()]
    print_table(
        f"{kind} of {model.published.schema.id}", ("node", "given", "cells"), rows, notes=[model.published.statement()]
    )


def specification(
    kind: Kind,
    *,
    target: str | None = None,
    features: list[str] | None = None,
    graph: Path | None = None,
    attributes: list[str] | None = None,
) -> ModelSpec[Model]:
    """The model that the options name."""
    if kind == "naive-bayes":
        if target is None:
            raise InvalidArgument("build: naive-bayes needs --target, the attribute to predict.")
        return NaiveBayes(target=target, features=tuple(features or ()))
    if kind == "bayes-net":
        if graph is None:
            return BayesNet()
        return BayesNet.of(graph.read_text(encoding="utf-8"))
    if not attributes:
        raise InvalidArgument("build: histogram needs --attribute, once for each attribute.")
    return Histogram(attributes=tuple(attributes))
