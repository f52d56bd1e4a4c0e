"""``dpbayes posterior``: release a whole posterior; compare the mechanisms that can."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, show_release
from dpbayes.curator import Curator
from dpbayes.hellinger.calibration import crossover
from dpbayes.hellinger.certificate import certify
from dpbayes.jobs.posterior import Backing, DirichletPosterior, How, Score
from dpbayes.jobs.vector import Vector
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Release
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

Prior = Annotated[str, typer.Option(help="Parameters of the prior, separated by commas; one for all cells.")]
Around = Annotated[
    str | None, typer.Option(help="Hellinger: a public guess of the table, never the table itself, to tune for.")
]


@options.target
@options.curator
def release_command(
    curator: Curator,
    target: Guarantee,
    marginal: Annotated[str, typer.Option(help="Joint marginal, such as sex,income.")],
    prior: Prior = "1",
    mechanism: Annotated[
        How, typer.Option(help="How the posterior is released; auto takes the least expected error.")
    ] = "auto",
    calibration: Annotated[
        Backing, typer.Option(help="Hellinger: what backs the guarantee; best is certified where enumerable.")
    ] = "best",
    score: Annotated[Score, typer.Option(help="Exponential: how candidates are scored.")] = "hellinger",
    around: Around = None,
    even_if_noise: Annotated[
        bool, typer.Option("--even-if-noise", help="Hellinger: release even if it is mostly a table drawn at random.")
    ] = False,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Release the posterior of a table: its parameters, not one draw from it.

    Example: dpbayes posterior release survey.csv --schema survey.toml --marginal sex --prior 1 --epsilon 0.8
    --delta 1e-8 --ledger survey.ledger --out posterior
    """
    job = DirichletPosterior(
        marginal=Marginal.parse(marginal),
        prior=_numbers(prior),
        mechanism=mechanism,
        calibration=calibration,
        score=score,
        around=() if around is None else _whole_numbers(around),
        even_if_noise=even_if_noise,
    )
    made = options.released(curator, job, target, out=out, quiet=as_json)
    print_json(made.record()) if as_json else show_release(made, out)


@options.target
@options.curator
def draw_command(
    curator: Curator,
    target: Guarantee,
    marginal: Annotated[str, typer.Option(help="The table whose rows are scored, such as sector,hours.")],
    scores: Annotated[
        Path, typer.Option(help="CSV: the table's attributes, then a column of numbers for each entry of f.")
    ],
    weight: Annotated[float | None, typer.Option(help="Fix the weight r; goes with --concentration.")] = None,
    concentration: Annotated[
        str | None, typer.Option(help="Fix α: one number, or one for each entry separated by commas.")
    ] = None,
    expected_records: Annotated[
        int | None, typer.Option(help="A public guess at the number of records, where the schema declares none.")
    ] = None,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw from Dirichlet(r·f + α) for a vector f that adds up public scores over the rows.

    Example: dpbayes posterior draw survey.csv --schema survey.toml --marginal sex --scores scores.csv
    --epsilon 1 --delta 1e-6 --ledger survey.ledger --out drawn
    """
    table = Marginal.parse(marginal)
    entries, lines = _scores(scores, table, curator.schema)
    alpha = () if concentration is None else options.numbers("posterior", concentration)
    job = Vector(
        marginal=table,
        entries=entries,
        scores=lines,
        weight=weight,
        concentration=alpha if isinstance(alpha, tuple) else (alpha,),
        expected_records=expected_records,
    )
    made = options.released(curator, job, target, out=out, quiet=as_json)
    if as_json:
        print_json(made.record())
        return
    (answer,) = made.answers
    gammas = np.asarray(answer.values, dtype=np.float64)
    rows = list(zip(entries, (gammas / gammas.sum()).tolist(), gammas.tolist(), strict=True))
    notes = [made.statement(), f"Mechanism: {made.choice}."]
    print_table("Posterior draw", ("entry", "share", "gamma"), rows, notes=notes)


def _scores(path: Path, marginal: Marginal, schema: Schema) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """The public scores of every cell, from a CSV file; cells that are not in it score nothing."""
    axes = marginal.axes(schema)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error):
        raise InvalidArgument(f"posterior: {path} cannot be read as CSV with a header.") from None
    if header[: len(axes)] != list(marginal.names):
        raise InvalidArgument(f"posterior: expected the first columns of {path} to be {', '.join(marginal.names)}.")
    entries = tuple(header[len(axes) :])
    table = np.zeros((*marginal.shape(schema), len(entries)))
    for number, line in enumerate(lines, start=2):
        levels, numbers = line[: len(axes)], line[len(axes) :]
        try:
            cell = tuple(axis.levels.index(level) for axis, level in zip(axes, levels, strict=True))
            table[cell] = [float(text) for text in numbers]
        except ValueError:
            raise InvalidArgument(
                f"posterior: line {number} of {path} needs declared levels and {len(entries)} numbers."
            ) from None
    return entries, tuple(tuple(line) for line in table.reshape(-1, len(entries)).tolist())


@options.unit
def compare_command(
    unit: object,
    records: Annotated[int, typer.Option(help="Public number of records of the table.")],
    prior: Annotated[str, typer.Option(help="Parameters of the prior, one for each cell, separated by commas.")],
    epsilon: Annotated[float, typer.Option(help="ε of the guarantee.")],
    delta: Annotated[float, typer.Option(help="δ of the guarantee.")],
    around: Around = None,
    as_json: options.AsJson = False,
) -> None:
    """Expected Hellinger distance of every mechanism, from public numbers only.

    Example: dpbayes posterior compare --records 98 --prior 1,1 --epsilon 0.8 --delta 1e-8
    """
    guess = None if around is None else list(_whole_numbers(around))
    found = crossover(prior=_numbers(prior), total=records, epsilon=epsilon, delta=delta, unit=unit, around=guess)  # type: ignore[arg-type]
    if as_json:
        print_json([{"mechanism": each.name, "expected_hellinger": each.hellinger} for each in found])
        return
    rows = [(each.name, each.hellinger) for each in found]
    notes = ("Averaged over public reference tables; no data was read.",)
    print_table(
        f"Expected Hellinger distance at ε={epsilon:g}, δ={delta:g}", ("mechanism", "expected H"), rows, notes=notes
    )


def certify_command(release: options.ReleaseFile, as_json: options.AsJson = False) -> None:
    """Derive the certificate of a released posterior again, and say whether its claim holds.

    Example: dpbayes posterior certify posterior
    """
    read = Release.load(release)
    made = read.paid[0].mechanism
    if not hasattr(made, "smoothing") or not math.isfinite(made.smoothing):
        raise InvalidArgument("posterior: only a Hellinger mechanism that promises something has a certificate.")
    delta = read.promise.exception
    derived = certify(made.prior, made.total, sharpness=made.sharpness, smoothing=made.smoothing, delta=delta)  # type: ignore[attr-defined]
    claimed = read.promise.size
    exact = derived.epsilon if not delta else derived.epsilon_at_delta
    result = {"verified": bool(exact <= claimed), "claimed_epsilon": claimed, "certificate": derived.record()}
    if as_json:
        print_json(result)
        return
    rows = [("claimed ε", claimed), ("pure ε", derived.epsilon), (f"ε at δ={delta:g}", derived.epsilon_at_delta)]
    notes = (
        f"The claim {'holds' if result['verified'] else 'does not hold'}.",
        f"Worst pair of tables: {list(derived.table)} and {list(derived.neighbour)}.",
    )
    print_table("Certificate, derived again", ("quantity", "value"), rows, notes=notes)


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument("posterior: expected whole numbers separated by commas.") from None


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(np.float64(part).item() for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f"posterior: expected numbers separated by commas, got {text!r}.") from None
