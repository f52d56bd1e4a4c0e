"""The mechanisms that these experiments compare, and how far from the true posterior their releases are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes import ApproxDP, Gaussian, Laplace, PureDP, Unit, calibrate
from dpbayes.hellinger import Hellinger, calibration
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.hellinger.candidates import PosteriorMechanism
from dpbayes.hellinger.certificate import affordable
from dpbayes.hellinger.distance import hellinger
from dpbayes.hellinger.mechanism import _distances as distances_of_tables
from dpbayes.hellinger.mechanism import expected
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.tuning import gaussian_noise, laplace_noise
from dpbayes.schema import Adjacency
from experiments.estimates import noise_aware as estimated

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
Floats = NDArray[np.float64]


def paper_laplace(prior: tuple[float, ...], total: int, epsilon: float) -> PosteriorLaplace:
    """The papers' baseline: noise of scale 2/ε on every count but the last, then truncated to a table of n records."""
    return PosteriorLaplace(prior=prior, total=total, scale=2.0 / epsilon, truncated=True, unit=UNIT)


def readings(prior: tuple[float, ...], total: int, epsilon: float, delta: float) -> dict[str, Hellinger]:
    """The published mechanism, and the other ways in which its text can be read.

    [H-abstract] section 4 measures the distance of data sets by ℓ₁ between histograms, twice the number of records that
    differ, so γ counts twice. [H-notes] section 4.4 has weights exp(−εH/S), without the 2 of the definition.
    """
    published = calibration.published(prior=prior, total=total, epsilon=epsilon, delta=delta, unit=UNIT)

    def read(sharpness: float, smoothing: float) -> Hellinger:
        return Hellinger(
            prior=prior, total=total, sharpness=sharpness, smoothing=smoothing, calibration="proved", unit=UNIT
        )

    return {
        "paper": published,
        "paper, l1": read(epsilon, 2.0 * published.smoothing),
        "paper, no 2": read(2.0 * epsilon, published.smoothing),
        "paper, l1, no 2": read(2.0 * epsilon, 2.0 * published.smoothing),
    }


def noise_aware(
    mechanism: Laplace | Gaussian, prior: tuple[float, ...], counts: Floats, runs: int, rng: np.random.Generator
) -> Floats:
    """Parameters α + E[counts | noisy counts] of ``runs`` releases with noise on every count; n is public."""
    total = int(np.sum(counts))
    return np.array(prior) + np.array([estimated(mechanism.draw(counts, rng), mechanism, total) for _ in range(runs)])


def fair_laplace(epsilon: float) -> Laplace:
    """Pure ε on all counts."""
    return calibrate(laplace_noise(UNIT), PureDP(epsilon=epsilon))


def fair_gaussian(epsilon: float, delta: float) -> Gaussian:
    """(ε, δ) on all counts."""
    return calibrate(gaussian_noise(UNIT), ApproxDP(epsilon=epsilon, delta=delta))


def distances(prior: tuple[float, ...], counts: Floats, parameters: Floats) -> Floats:
    """Hellinger distance of each released posterior from the true one."""
    return np.asarray(hellinger(parameters, np.array(prior) + counts))


def described(values: Floats) -> dict[str, float]:
    """Mean, its standard error, and the quantiles of a box plot."""
    quantiles = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))
    return {
        "mean": float(values.mean()),
        "error": float(values.std(ddof=1) / np.sqrt(values.size)),
        **dict(zip(("lowest", "lower", "median", "upper", "highest"), quantiles.tolist(), strict=True)),
    }


def split(total: int, shares: list[float]) -> NDArray[np.int64]:
    """Counts in these proportions; the last cell takes the rounding."""
    counts = np.floor(total * np.array(shares) / np.sum(shares)).astype(np.int64)
    counts[-1] += total - counts.sum()
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One mechanism in a comparison, with its expected distance averaged over the reference tables."""

    name: str
    mechanism: PosteriorMechanism
    hellinger: float


def crossover(
    *,
    prior: tuple[float, ...],
    total: int,
    epsilon: float,
    delta: float,
    unit: Unit,
    around: ArrayLike | None = None,
    draws: int = 500,
    rng: np.random.Generator | None = None,
) -> list[Contender]:
    """Which mechanism releases the more accurate posterior: all of them at (ε, δ), the best first.

    Expected H is averaged over public tables: ``around`` (one table or several), or draws from the prior.
    `certified` is left out where its certificate cannot be enumerated. Every contender here is proven to be
    (ε, δ)-DP, so `published` is not among them.

    Source: the first open question of [H-abstract] section 6.
    """
    guesses = None if around is None else np.atleast_2d(np.asarray(around)).tolist()
    tables = calibration.references(prior, total, guesses)
    common = {"prior": prior, "total": total, "epsilon": epsilon, "unit": unit}
    made: dict[str, PosteriorMechanism] = {
        "hellinger, proved": calibration.proved(**common, delta=delta, around=guesses),
        "laplace": PosteriorLaplace.at(**common, truncated=False),
        "laplace, truncated": PosteriorLaplace.at(**common, truncated=True),
    }
    if affordable(prior, total):
        made["hellinger, certified"] = calibration.certified(**common, delta=delta, around=guesses)
    source = noise.generator(rng)
    contenders = []
    for name, mechanism in made.items():
        values = [expected(mechanism, table, draws=draws, rng=source).hellinger for table in tables]
        contenders.append(Contender(name=name, mechanism=mechanism, hellinger=math.fsum(values) / len(values)))
    return sorted(contenders, key=lambda contender: contender.hellinger)


def distance_probabilities(mechanism: PosteriorMechanism, counts: ArrayLike) -> tuple[Floats, Floats]:
    """The values that H takes, and the probability of each: candidates at the same distance are added up.

    Symbols: H Hellinger distance.
    Source: [H-notes] section 4.4, where distances are taken for steps.
    Adjacency: none, this is about one table.
    """
    table = mechanism.table(counts)
    tables, shares = mechanism.law(table)
    distance, _, _ = distances_of_tables(mechanism.prior, table, tables)
    values, group = np.unique(np.round(distance, 12), return_inverse=True)
    return values, np.asarray(np.bincount(group, shares), dtype=np.float64)
