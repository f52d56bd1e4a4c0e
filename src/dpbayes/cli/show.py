"""``dpbayes show``: what a model file says and promises, with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpbayes.cli import options
from dpbayes.cli.columns import read_columns
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.coding import codes
from dpbayes.errors import InvalidArgument
from dpbayes.models.base import Model
from dpbayes.models.metrics import Scores, scores
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.release.format import Release


def show_command(
    model: options.ReleaseFile,
    node: Annotated[str | None, typer.Option(help="Show the table of this attribute.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it into an SVG, HTML, PNG or PDF file.")] = None,
    public_test: Annotated[
        str | None, typer.Option(help="Public records with known classes: accuracy, cross-entropy, calibration curve.")
    ] = None,
    bif: Annotated[Path | None, typer.Option(help="Write the network as a BIF file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show a fitted model: its promise, its tables, how well it predicts on public records.

    Example: dpbayes show network --node income --plot network.svg
    """
    read = Release.load(model).build()
    scored = None if public_test is None else _scores(read, public_test)
    if plot is not None:
        from dpbayes.plot import pictures
        from dpbayes.plot.canvas import stacked

        drawn = [pictures.network_picture(read.network, f"{read.kind} of {read.published.schema.id}")]
        drawn += [] if node is None else [pictures.table_picture(read.network, node, read.published.schema)]
        drawn += [] if scored is None else [pictures.calibration_picture(scored)]
        stacked(drawn, drawn[0].title).save(plot)
    if bif is not None:
        from dpbayes.models.network import to_bif

        bif.write_text(to_bif(read.network, read.published.schema.id), encoding="utf-8")
    summary = _summary(read, scored)
    if node is not None:
        summary["table"] = _table(read, node)
    if as_json:
        print_json(summary)
    else:
        _print(read, summary)


def _scores(model: Model, path: str) -> Scores:
    if not isinstance(model, NaiveBayesModel):
        raise InvalidArgument(f"show: --public-test goes with naive-bayes models, not with {model.kind}.")
    target = model.spec.target
    columns = read_columns(path, (*model.features, target))
    return scores(model.predict_log_proba(columns), codes(model.published.schema[target], columns[target]))


def _summary(model: Model, scored: Scores | None) -> dict[str, Any]:
    (release,) = model.published.releases
    summary: dict[str, Any] = {
        "kind": model.kind,
        "statement": release.statement(),
        "guarantee": dict(release.promise.record()),
        "unit": dict(release.unit.record()),
        "dataset": release.dataset,
        "created": release.created,
        "seeded": release.seeded,
        "choice": release.choice,
        "tables": [
            {
                "marginal": str(table.marginal),
                "cells": len(table.values),
                "mechanism": release.paid[table.by].mechanism.record(),
            }
            for table in release.tables
            if table.kind != "derived"
        ],
        "answers": {answer.name: list(answer.values) for answer in release.answers},
    }
    if scored is not None:
        summary["public test"] = {
            "records": scored.records,
            "accuracy": scored.accuracy,
            "cross_entropy": scored.cross_entropy,
        }
    return summary


def _table(model: Model, node: str) -> dict[str, Any]:
    network = model.network
    if node not in network.parents:
        raise InvalidArgument(f"show: there is no attribute {node!r} in the model. It has {', '.join(network.nodes)}.")
    return {
        "node": node,
        "given": list(network.parents[node]),
        "levels": list(network.levels[node]),
        "rows": network.tables[node].tolist(),
    }


def _print(model: Model, summary: dict[str, Any]) -> None:
    notes = [summary["statement"]]
    if "public test" in summary:
        test = summary["public test"]
        notes.append(
            f"On {test['records']:,} public records: accuracy {test['accuracy']:.4f}, "
            f"cross-entropy {test['cross_entropy']:.4f}."
        )
    rows = [(table["marginal"], table["cells"], table["mechanism"]["mechanism"]) for table in summary["tables"]]
    print_table(f"{model.kind} of {summary['dataset']}", ("table", "cells", "mechanism"), rows, notes=notes)
    if "table" in summary:
        table = summary["table"]
        shown = [(index, *row) for index, row in enumerate(table["rows"][:40])]
        print_table(f"{table['node']} given {', '.join(table['given']) or 'nothing'}", ("row", *table["levels"]), shown)
