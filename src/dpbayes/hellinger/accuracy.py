"""How far a released posterior is from the true one, on average and step by step.

These numbers are computed from a table. For a private table they are private: use them on public guesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base.checks import Floats, Ints
from dpbayes.hellinger import calibration, candidates
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.hellinger.certificate import affordable
from dpbayes.hellinger.distance import beta_total_variation, bhattacharyya
from dpbayes.mechanisms import noise
from dpbayes.schema.unit import PrivacyUnit

ENUMERATED = 200_000
"""Up to this many candidates an expectation is a sum; beyond, an average of draws."""


class PosteriorMechanism(Protocol):
    """What releases a posterior: a prior, a public number of records, a law and a sampler."""

    @property
    def prior(self) -> tuple[float, ...]:
        """Parameters of the prior."""

    @property
    def total(self) -> int:
        """Public number of records."""

    def law(self, counts: ArrayLike) -> tuple[Ints, Floats]:
        """All candidates and their probabilities."""

    def draw_many(self, counts: ArrayLike, size: int, rng: np.random.Generator | None = None) -> Ints:
        """Independent candidate tables, one per row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Expected distances between what is released and the true posterior.

    ``total_variation`` holds two bounds of it, which are equal when there are two cells. ``standard_error`` is that of
    ``hellinger``: zero if it is a sum over all candidates, else from ``draws`` draws.
    """

    hellinger: float
    l1: float
    total_variation: tuple[float, float]
    standard_error: float
    draws: int


def expected(
    mechanism: PosteriorMechanism, counts: ArrayLike, *, draws: int = 2000, rng: np.random.Generator | None = None
) -> Accuracy:
    """E[H], E‖k − c‖₁ and E[TV] of one release: exact where the candidates can be listed, else by the sampler.

    A result that is no posterior (untruncated Laplace noise may give one) counts as H = TV = 1.

    Symbols: H Hellinger distance, TV total variation, c the true counts and k the released ones.
    Source: [H-notes] sections 4.2 and 4.3.
    Adjacency: none, this is about one table.
    """
    table = candidates.check_counts("expected", counts, len(mechanism.prior), mechanism.total)
    listable = getattr(mechanism, "truncated", True) and _few(mechanism)
    if listable:
        tables, shares = mechanism.law(table)
    else:
        tables = mechanism.draw_many(table, draws, noise.generator(rng))
        shares = np.full(draws, 1.0 / draws)
    distance, low, high = _distances(mechanism.prior, table, tables)
    mean = float(shares @ distance)
    error = 0.0 if listable else float(np.sqrt(shares @ (distance - mean) ** 2 / draws))
    return Accuracy(
        hellinger=mean,
        l1=float(shares @ np.abs(tables - table).sum(axis=1)),
        total_variation=(float(shares @ low), float(shares @ high)),
        standard_error=error,
        draws=0 if listable else draws,
    )


def step_probabilities(mechanism: PosteriorMechanism, counts: ArrayLike) -> Floats:
    """P[a release is t steps from the truth], t = 0, 1, …, n; a step moves one record.

    Symbols: n total.
    Source: [H-notes] section 4.4.
    Adjacency: none, this is about one table.
    """
    table = candidates.check_counts("step_probabilities", counts, len(mechanism.prior), mechanism.total)
    tables, shares = mechanism.law(table)
    steps = np.abs(tables - table).sum(axis=1) // 2
    return np.asarray(np.bincount(steps, shares, mechanism.total + 1), dtype=np.float64)


def distance_probabilities(mechanism: PosteriorMechanism, counts: ArrayLike) -> tuple[Floats, Floats]:
    """The values that H takes, and the probability of each: candidates at the same distance are added up.

    Symbols: H Hellinger distance.
    Source: [H-notes] section 4.4, where distances are taken for steps.
    Adjacency: none, this is about one table.
    """
    table = candidates.check_counts("distance_probabilities", counts, len(mechanism.prior), mechanism.total)
    tables, shares = mechanism.law(table)
    distance, _, _ = _distances(mechanism.prior, table, tables)
    values, group = np.unique(np.round(distance, 12), return_inverse=True)
    return values, np.asarray(np.bincount(group, shares), dtype=np.float64)


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
    unit: PrivacyUnit,
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
        "hellinger, proved": calibration.proved(**common, delta=delta, around=guesses),  # type: ignore[arg-type]
        "laplace": PosteriorLaplace.at(**common, truncated=False),  # type: ignore[arg-type]
        "laplace, truncated": PosteriorLaplace.at(**common, truncated=True),  # type: ignore[arg-type]
    }
    if affordable(prior, total):
        made["hellinger, certified"] = calibration.certified(**common, delta=delta, around=guesses)  # type: ignore[arg-type]
    source = noise.generator(rng)
    contenders = []
    for name, mechanism in made.items():
        values = [expected(mechanism, table, draws=draws, rng=source).hellinger for table in tables]
        contenders.append(Contender(name=name, mechanism=mechanism, hellinger=math.fsum(values) / len(values)))
    return sorted(contenders, key=lambda contender: contender.hellinger)


def _few(mechanism: PosteriorMechanism) -> bool:
    return candidates.number(mechanism.total, len(mechanism.prior)) <= ENUMERATED


def _distances(prior: tuple[float, ...], table: Ints, tables: Ints) -> tuple[Floats, Floats, Floats]:
    """H and bounds of TV for every row; 1 where a row is no posterior."""
    alpha = np.asarray(prior)
    valid = (alpha + tables > 0).all(axis=1)
    distance, low, high = np.ones(len(tables)), np.ones(len(tables)), np.ones(len(tables))
    if not valid.any():
        return distance, low, high
    rows = tables[valid]
    if rows.min() >= 0 and len(rows) > table.sum():
        divergence = candidates.divergences(prior, table, rows)
    else:
        divergence = bhattacharyya(alpha + rows, alpha + table)
    inside = np.sqrt(-np.expm1(-divergence))
    distance[valid] = inside
    if len(prior) == 2:
        low[valid] = high[valid] = beta_total_variation(alpha + rows, alpha + table)
    else:
        low[valid], high[valid] = inside**2, inside * np.sqrt(2.0 - inside**2)
    return distance, low, high
