"""Models: fitted to a private table, built from what is published, shown, and asked to predict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from dpbayes.base.codec import to_record
from dpbayes.base.errors import InvalidArgument, TableError
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, show_release, tell_programs
from dpbayes.curator import Curator
from dpbayes.design.noise import Wish
from dpbayes.jobs.model import Fit
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.fidelity import Scores, scores
from dpbayes.models.histogram import Histogram
from dpbayes.models.model import Model, ModelSpec
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.models.synthetic import write_table
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Release
from dpbayes.schema.labels import codes
from dpbayes.tables.sources import csv_header, file_source, parquet_names

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


def predict_command(
    model: options.ReleaseFile,
    table: Annotated[str, typer.Argument(help="CSV or Parquet file with new records.")],
    out: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file to write; CSV on standard output if left out.")
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add P(class) of every class.")] = False,
) -> None:
    """Predict the class of every record of a file. Free: the model is public already.

    Example: dpbayes predict model survey.csv --probabilities --out predicted.csv
    """
    import pyarrow as pa

    read = Release.load(model).build()
    if not isinstance(read, NaiveBayesModel):
        raise InvalidArgument(f"predict: expected a naive-bayes model, got {read.kind}. See `dpbayes show`.")
    log_proba = read.predict_log_proba(read_columns(table, read.features))
    best = np.array(read.classes, dtype=object)[log_proba.argmax(axis=1)]
    columns = {read.spec.target: pa.array(best, pa.string())}
    if probabilities:
        columns |= {f"P({level})": np.exp(log_proba[:, at]) for at, level in enumerate(read.classes)}
    predicted = pa.table(columns)
    if out is not None:
        write_table(predicted, out)
        return
    from pyarrow import csv

    buffer = pa.BufferOutputStream()
    csv.write_csv(predicted, buffer)
    tell_programs(buffer.getvalue().to_pybytes().decode("utf-8"))


def check_readable(path: str, names: Sequence[str]) -> None:
    """Refuse, from names alone, a file or columns that ``read_columns`` could not read. Reads no rows."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq"):
        raise TableError(f"Table: {path!r} is read record by record; its name must end in .csv or .parquet.")
    source = file_source(path)
    known = csv_header(source) if source.format == "csv" else parquet_names(source)
    if len(source.files) > 1:
        raise TableError(f"Table: {path!r} is read record by record; name one file.")
    for name in names:
        if name not in known:
            raise TableError(f"Table: there is no column {name!r} in {path!r}.")


def read_columns(path: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """These columns of a CSV file, as text, or of a Parquet file, as they are."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    check_readable(path, names)
    try:
        if path.lower().endswith(".csv"):
            text = csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            table = csv.read_csv(path, convert_options=text)
        else:
            table = parquet.read_table(path, columns=list(names))
    except OSError:
        raise TableError(f"Table: {path!r} cannot be read. Check that it exists and is complete.") from None
    except (pa.ArrowException, UnicodeError):
        raise TableError(f"Table: {path!r} is damaged, or not in the format that its name says.") from None
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
