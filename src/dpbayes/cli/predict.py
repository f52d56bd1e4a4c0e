"""``dpbayes predict``: classes of new records, by a naive Bayes model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dpbayes.cli import options
from dpbayes.cli.columns import read_columns
from dpbayes.cli.output import tell_programs
from dpbayes.errors import InvalidArgument
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.models.synthetic import write_table
from dpbayes.release.format import Release


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
