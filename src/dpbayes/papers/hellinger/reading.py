"""What a released posterior says: by Bayes' rule and the noise of its mechanism, or taken as it is, as the papers do.

P(counts | released) ∝ P(released | counts)·DirichletMultinomial(counts | prior). Summed over all tables where they can
be listed, else as ``inference.released`` reads it for the products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.distance import Laws
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.inference.released import Reading, reading

__all__ = ["Coverage", "Naive", "Posterior"]

LISTED = 30_000_000
"""Pairs of tables and candidates that are listed."""


@dataclass(frozen=True, slots=True)
class Naive:
    """A Dirichlet law read cell by cell."""

    parameters: tuple[float, ...]

    @property
    def mean(self) -> Floats:
        """Expected shares."""
        return np.asarray(self.parameters) / math.fsum(self.parameters)

    def interval(self, level: float = 0.95) -> Floats:
        """Central intervals of the shares, one per row."""
        from scipy.special import betaincinv

        checks.probability("interval", level=level)
        values, tail = np.asarray(self.parameters), 0.5 * (1.0 - level)
        ends = (betaincinv(values, values.sum() - values, at) for at in (tail, 1.0 - tail))
        return np.column_stack([*ends])


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The shares behind a release, given its noise; ``naive`` is the released law, which ignores it."""

    reading: Reading
    naive: Naive

    @property
    def mean(self) -> Floats:
        """Expected shares."""
        return self.reading.mean

    def interval(self, level: float = 0.95) -> Floats:
        """Central intervals of the shares, one per row."""
        return np.column_stack(self.reading.interval(level))


@lru_cache(maxsize=16)
def read(made: Hellinger | PosteriorLaplace | PosteriorExponential, released: tuple[float, ...]) -> Posterior:
    """The posterior of a release, exact where tables can be listed."""
    naive = Naive(released)
    if not isinstance(made, Hellinger) or candidates.number(made.total, len(made.prior)) ** 2 > LISTED:
        return Posterior(reading=reading(made, released), naive=naive)
    joint = _joint(made)
    k = candidates.check_counts("posterior", np.subtract(released, made.prior), len(made.prior), made.total)
    tables = joint.laws.rows.all_tables()
    weights = candidates.shares(joint.logs(tuple(k.tolist())))
    exact = Reading(prior=np.asarray(made.prior), total=made.total, counts=tables, weights=weights)
    return Posterior(reading=exact, naive=naive)


class Joint:
    """The law of tables and releases together, for a prior that the tables follow."""

    def __init__(self, made: Hellinger) -> None:
        from scipy.special import gammaln

        self.laws = Laws.of(made.prior, made.total, made.sharpness, made.smoothing)
        tables = self.laws.rows.all_tables()
        logs = (gammaln(np.add(made.prior, tables)) - gammaln(tables + 1.0)).sum(axis=1)
        exponents, normalisers = np.array([self.laws.exponent(tuple(table)) for table in tables.tolist()]).T
        self._exponents, self._logs = exponents, np.log(candidates.shares(logs)) - normalisers

    def logs(self, k: tuple[int, ...]) -> Floats:
        """Ln P(c, k) for every table c."""
        return np.asarray(self._logs - self._exponents * self.laws.rows.distances(k))  # H is symmetric


_joint = lru_cache(maxsize=4)(Joint)


class Coverage(NamedTuple):
    """How often intervals hold the first share: those of the posterior given the noise, and of the released law."""

    aware: float
    naive: float


def covered(made: Hellinger, level: float) -> Coverage:
    """Summed over all tables and releases of the joint law."""
    from scipy.special import betainc

    joint = _joint(made)
    tables = joint.laws.rows.all_tables()
    both = np.array([np.bincount(tables[:, 0], np.exp(joint.logs(tuple(k)))) for k in tables.tolist()])  # of k and c₁
    mass, whole = both.sum(axis=1), made.total + math.fsum(made.prior)
    a = made.prior[0] + np.arange(made.total + 1.0)
    grid = np.linspace(0.0, 1.0, 801)
    chances = both @ betainc(a[:, None], whole - a[:, None], grid) / mass[:, None]

    def below(x: Floats) -> Floats:
        return np.asarray((both * betainc(a, whole - a, x[:, None])).sum(axis=1))

    def quantile(tail: float) -> Floats:
        at, rows = np.clip((chances < tail).sum(axis=1), 1, grid.size - 1), np.arange(len(tables))
        low, high, start, end = grid[at - 1], grid[at], chances[rows, at - 1], chances[rows, at]
        for _ in range(3):
            x = low + (tail - start) / (end - start) * (high - low)
            chance = below(x) / mass
            left = chance < tail
            low, start = np.where(left, x, low), np.where(left, chance, start)
            high, end = np.where(left, high, x), np.where(left, end, chance)
        return np.asarray(x)

    released = np.array([Naive(tuple(np.add(made.prior, k))).interval(level)[0] for k in tables]).T
    ends = [quantile(0.5 * (1.0 - level)), quantile(0.5 * (1.0 + level))]
    aware, naive = (float((below(upper) - below(lower)).sum()) for lower, upper in (ends, released))
    return Coverage(aware, naive)
