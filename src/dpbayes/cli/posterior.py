"""``dpbayes posterior`` releases a whole posterior; ``dpbayes audit`` derives its certificate again."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.cli.posterior_source import Source, of_table, typed
from dpbayes.domain.unit import Adjacency, PrivacyUnit
from dpbayes.errors import InvalidArgument, ReleaseError
from dpbayes.mechanisms.hellinger import calibration as calibrations
from dpbayes.mechanisms.hellinger import candidates
from dpbayes.mechanisms.hellinger.accuracy import crossover
from dpbayes.mechanisms.hellinger.certificate import affordable, certify
from dpbayes.mechanisms.hellinger.exponential import PosteriorExponential
from dpbayes.mechanisms.hellinger.mechanism import Hellinger
from dpbayes.mechanisms.posterior_laplace import PosteriorLaplace
from dpbayes.mechanisms.records import from_record
from dpbayes.privacy.guarantee import ApproxDP, PureDP
from dpbayes.schema_file import read_schema

LEVEL = 0.95
AGREE = 1e-7
"""How near a certificate that is derived again must come."""

Posterior = Hellinger | PosteriorExponential | PosteriorLaplace


class Kind(StrEnum):
    """Mechanisms that release a posterior."""

    HELLINGER = "hellinger"
    LOCAL = "hellinger-local"
    EXPONENTIAL = "exponential"
    LAPLACE = "laplace"
    IMPROVED_LAPLACE = "improved-laplace"


class Calibration(StrEnum):
    """What backs the guarantee of the Hellinger mechanism."""

    BEST = "best"
    CERTIFIED = "certified"
    PROVED = "proved"
    PUBLISHED = "published"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("posterior")(posterior_command)
    app.command("audit")(audit_command)


def posterior_command(
    prior: Annotated[str, typer.Option(help="Parameters of the prior, separated by commas; one for all cells.")],
    epsilon: Annotated[float, typer.Option(help="ε of the guarantee.", rich_help_panel="Guarantee")],
    counts: Annotated[str | None, typer.Option(help="The private table: counts separated by commas.")] = None,
    table: Annotated[str | None, typer.Option(help="Or a file to count; needs --schema and --marginal.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file that declares what is public.")] = None,
    marginal: Annotated[str | None, typer.Option(help="Joint marginal, such as sex,income.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger that remembers the cost of a --table.")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Release a --table without a ledger.")] = False,
    delta: options.Delta = None,
    mechanism: Annotated[Kind, typer.Option(help="How the posterior is released.")] = Kind.HELLINGER,
    calibration: Annotated[
        Calibration, typer.Option(help="Hellinger: what backs the guarantee; best is certified where enumerable.")
    ] = Calibration.BEST,
    score: Annotated[str, typer.Option(help="Exponential: hellinger, kl or total-variation.")] = "hellinger",
    around: Annotated[
        str | None, typer.Option(help="A public guess of the table, never the table itself, to tune for.")
    ] = None,
    compare: Annotated[
        bool, typer.Option(help="Compare the mechanisms instead; of the table only its size is used.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of an experiment; needs --not-private.")] = None,
    not_private: Annotated[bool, typer.Option("--not-private", help="An experiment on public data.")] = False,
    adjacency: options.AdjacencyOption = Adjacency.REPLACE_ONE,
    max_rows: options.MaxRows = 1,
    as_json: options.AsJson = False,
) -> None:
    """Release the posterior of a table: its parameters, not one draw from it.

    Example: dpbayes posterior --counts 49,49 --prior 1,1 --epsilon 0.8 --delta 1e-8
    """
    if seed is not None and not not_private:
        raise InvalidArgument("posterior: expected --not-private with --seed. Who knows the seed can undo the noise.")
    if seed is not None and seed < 0:
        raise InvalidArgument(f"posterior: expected seed to be a whole number >= 0, got {seed}.")
    source = _source(
        counts, table, schema, marginal, ledger, no_ledger or not_private, options.unit(adjacency, max_rows)
    )
    alpha = _numbers("prior", prior)
    alpha = alpha * source.cells if len(alpha) == 1 else alpha
    guess = None if around is None else [_whole_numbers(around)]
    if counts is not None:
        candidates.check_counts("posterior", _whole_numbers(counts), len(alpha), source.total)
    if compare:
        _compare(alpha, source.total, epsilon, delta, source.unit, guess, as_json)
        return
    made = _mechanism(mechanism, calibration, score, alpha, source.total, epsilon, delta, source.unit, guess)
    if mechanism is Kind.LOCAL and not not_private:
        raise InvalidArgument(
            "posterior: local sensitivity protects nobody, so a release with it is refused. "
            "For an experiment on public data add --not-private."
        )
    rng = np.random.default_rng(seed) if not_private else None
    parameters = made.draw(source.read(made), rng)
    source.drawn()
    result = _result(made, parameters, delta, seeded=not_private) | {"levels": source.levels}
    if as_json:
        print_json(result)
        return
    rows = [
        (source.levels[cell] if source.levels else cell + 1, parameter, *(_shown(result, cell) or ("-", "-", "-")))
        for cell, parameter in enumerate(result["parameters"])
    ]
    print_table("Released posterior", ("cell", "parameter", "mean", "2.5 %", "97.5 %"), rows, notes=result["statement"])


def _source(
    counts: str | None,
    table: str | None,
    schema: Path | None,
    marginal: str | None,
    ledger: str | None,
    no_ledger: bool,
    unit: PrivacyUnit,
) -> Source:
    if counts is not None and table is None and schema is None and marginal is None and ledger is None:
        return typed(_whole_numbers(counts), unit)
    if counts is not None or table is None or schema is None or marginal is None:
        raise InvalidArgument("posterior: expected --counts, or --table with --schema and --marginal.")
    if (ledger is None) != no_ledger:
        raise InvalidArgument("posterior: expected --ledger to remember the cost, or --no-ledger to do without.")
    return of_table(table, read_schema(schema), marginal, ledger)


def audit_command(
    file: Annotated[Path, typer.Argument(help="JSON of a released posterior; - reads standard input.")],
    as_json: options.AsJson = False,
) -> None:
    """Derive the certificate of a released posterior again, and say whether its claim holds.

    Example: dpbayes audit posterior.json
    """
    made, stated = _recorded(file)
    if made.calibration == "none" or not affordable(made.prior, made.total):
        raise InvalidArgument("audit: this mechanism claims nothing, or has too many candidates to enumerate.")
    delta = made.certificate.delta if made.certificate is not None else stated.get("delta", made.delta_published or 0.0)
    derived = certify(made.prior, made.total, sharpness=made.sharpness, smoothing=made.smoothing, delta=delta)
    pure = math.isfinite(made.renyi(math.inf))
    claimed = stated.get("epsilon", made.renyi(math.inf) if pure or not delta else made.epsilon(delta))
    exact = derived.epsilon if pure else derived.epsilon_at_delta
    if made.certificate is not None and not _agrees(made.certificate.record(), derived.record()):
        raise ReleaseError(
            "audit: the stored certificate is not the one that enumeration gives. Do not trust the release."
        )
    result = {
        "verified": exact <= claimed + AGREE,
        "calibration": made.calibration,
        "claimed_epsilon": claimed,
        "certificate": derived.record(),
    }
    if as_json:
        print_json(result)
        return
    notes = (
        f"Calibration: {made.calibration}. The claim {'holds' if result['verified'] else 'does not hold'}.",
        f"Worst pair of tables: {list(derived.table)} and {list(derived.neighbour)}.",
    )
    rows = [("claimed ε", claimed), ("pure ε", derived.epsilon), (f"ε at δ={delta:g}", derived.epsilon_at_delta)]
    print_table("Certificate, derived again", ("quantity", "value"), rows, notes=notes)


def _mechanism(
    kind: Kind,
    calibration: Calibration,
    score: str,
    prior: tuple[float, ...],
    total: int,
    epsilon: float,
    delta: float | None,
    unit: PrivacyUnit,
    guess: list[list[int]] | None,
) -> Posterior:
    """The mechanism that the options name."""
    if kind is Kind.EXPONENTIAL:
        return PosteriorExponential(prior=prior, total=total, sharpness=epsilon, score=score, unit=unit)
    if kind in (Kind.LAPLACE, Kind.IMPROVED_LAPLACE):
        truncated = kind is Kind.IMPROVED_LAPLACE
        return PosteriorLaplace.at(prior=prior, total=total, epsilon=epsilon, unit=unit, truncated=truncated)
    if kind is Kind.LOCAL:
        return calibrations.with_local(prior=prior, total=total, epsilon=epsilon, unit=unit)
    if calibration is Calibration.BEST:
        calibration = Calibration.CERTIFIED if _certifiable(prior, total) else Calibration.PROVED
    if calibration is Calibration.CERTIFIED:
        return calibrations.certified(
            prior=prior, total=total, epsilon=epsilon, delta=delta or 0.0, unit=unit, around=guess
        )
    if delta is None and calibration is Calibration.PROVED:
        return calibrations.with_global(prior=prior, total=total, epsilon=epsilon, unit=unit)
    if delta is None:
        raise InvalidArgument("posterior: expected --delta, which the published calibration needs.")
    if calibration is Calibration.PROVED:
        return calibrations.proved(prior=prior, total=total, epsilon=epsilon, delta=delta, unit=unit, around=guess)
    return calibrations.published(prior=prior, total=total, epsilon=epsilon, delta=delta, unit=unit)


def _certifiable(prior: tuple[float, ...], total: int) -> bool:
    return len(prior) >= 2 and total >= 1 and affordable(prior, total)


def _result(made: Posterior, parameters: np.ndarray, delta: float | None, *, seeded: bool) -> dict[str, Any]:
    """What is published: parameters, their mean and interval, and what is promised by what."""
    promise = _guarantee(made, delta)
    backing = made.calibration if isinstance(made, Hellinger) else "proved"
    valid = bool((parameters > 0).all())
    return {
        "format": "dpbayes-posterior",
        "version": 1,
        "parameters": parameters.tolist(),
        "mean": (parameters / parameters.sum()).tolist() if valid else None,
        "interval": _interval(parameters) if valid else None,
        "level": LEVEL,
        "guarantee": None if promise is None or seeded else promise.record(),
        "calibration": backing,
        "mechanism": made.record(),
        "seeded": seeded,
        "statement": _statement(str(promise), backing, seeded=seeded, valid=valid, promised=promise is not None),
    }


def _guarantee(made: Posterior, delta: float | None) -> PureDP | ApproxDP | None:
    """Pure where it is, else at δ; None where nothing is protected."""
    pure = made.renyi(math.inf)
    if math.isfinite(pure):
        return PureDP(epsilon=pure)
    if delta is not None and math.isfinite(made.epsilon(delta)):
        return ApproxDP(epsilon=made.epsilon(delta), delta=delta)
    return None


def _statement(promise: str, backing: str, *, seeded: bool, valid: bool, promised: bool) -> list[str]:
    """The promise in plain sentences."""
    backed = {
        "certified": "found by enumerating every pair of neighbouring tables; dpbayes audit derives it again",
        "proved": "by a theorem that is proved in the documentation",
        "published": "as printed in the paper, whose proof has a gap; prefer certified or proved",
        "none": "nothing",
    }[backing]
    sentences = []
    if seeded or not promised:
        sentences.append("This is an experiment, not a private release.")
    else:
        sentences.append(
            f"Replacing one record changes the law of this release within {promise} ({backing}: {backed})."
        )
    if not valid:
        sentences.append("A parameter is not positive: the noise made this no posterior. Use improved-laplace.")
    return sentences


def _interval(parameters: np.ndarray) -> list[list[float]]:
    """Equal-tailed intervals of the shares: each is Beta(p, Σp − p)."""
    from scipy.special import betaincinv

    rest = parameters.sum() - parameters
    tail = 0.5 * (1.0 - LEVEL)
    ends = np.column_stack([betaincinv(parameters, rest, tail), betaincinv(parameters, rest, 1.0 - tail)])
    return [[float(low), float(high)] for low, high in ends]


def _shown(result: dict[str, Any], cell: int) -> tuple[float, float, float] | None:
    if result["mean"] is None:
        return None
    return (result["mean"][cell], *result["interval"][cell])


def _compare(
    prior: tuple[float, ...],
    total: int,
    epsilon: float,
    delta: float | None,
    unit: PrivacyUnit,
    guess: list[list[int]] | None,
    as_json: bool,
) -> None:
    """Expected Hellinger distance of each mechanism for a table of this size."""
    if delta is None:
        raise InvalidArgument("posterior: expected --delta with --compare.")
    found = crossover(
        prior=prior, total=total, epsilon=epsilon, delta=delta, unit=unit, around=None if guess is None else guess[0]
    )
    if as_json:
        print_json([{"mechanism": each.name, "expected_hellinger": each.hellinger} for each in found])
        return
    print_table(
        f"Expected Hellinger distance at {ApproxDP(epsilon=epsilon, delta=delta)}",
        ("mechanism", "expected H"),
        [(each.name, each.hellinger) for each in found],
        notes=("Averaged over public reference tables; nothing of the private table was used but its size.",),
    )


def _recorded(file: Path) -> tuple[Hellinger, dict[str, float]]:
    """The Hellinger mechanism in a JSON file, and the numbers of the guarantee stated there."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        content = json.loads(text)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise ReleaseError(f"audit: cannot read {file} as JSON.") from problem
    record = content.get("mechanism") if isinstance(content, dict) else None
    made = from_record(record if isinstance(record, dict) else content)
    if not isinstance(made, Hellinger):
        raise InvalidArgument("audit: only Hellinger mechanisms have a certificate; the cost of others is a theorem.")
    guarantee = content.get("guarantee") if isinstance(content, dict) else None
    numbers = guarantee if isinstance(guarantee, dict) else {}
    return made, {key: float(value) for key, value in numbers.items() if isinstance(value, (int, float))}


def _agrees(stored: dict[str, object], derived: dict[str, object]) -> bool:
    """The numbers of two certificates; ties may put the worst pair elsewhere."""
    keys = ("epsilon", "delta", "epsilon_at_delta")
    return all(math.isclose(float(str(stored[key])), float(str(derived[key])), abs_tol=AGREE) for key in keys)


def _whole_numbers(text: str) -> list[int]:
    """Counts; a message never repeats them."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument("posterior: expected counts as whole numbers separated by commas.") from None


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f"posterior: expected {name} as numbers separated by commas, got {text!r}.") from None
