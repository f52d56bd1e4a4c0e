"""The prior of a table's cells: each count is Poisson around a shape times a factor, and the factors are learned.

    c_k ~ Poisson(e_k·g_k),   g_k ~ Σ_j w_j δ(g_j),   ĉ_k ~ Normal(c_k, v_k)

The shape e is what the margins say (or a public guess); the law w of the factors is estimated from the cells
themselves by maximum likelihood, so a table that follows its shape is drawn to it and one that does not is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats

STEP = 0.25
"""Factors lie so far apart in logarithm; a component is as wide, so that together they are a smooth law."""

FACTORS = np.concatenate([[0.0], np.exp(np.arange(np.log(1e-3), np.log(1e3) + STEP / 2, STEP))])
"""From cells that are empty to cells with a thousand times what their margins suggest."""

WHOLE = 64
"""Where counts below this matter and the noise does not hide that they are whole, they are summed one by one."""

LOG_FACTORIALS = np.array([math.lgamma(count + 1.0) for count in range(WHOLE)])

FINE_VARIANCE = 10.0
"""Below this variance of the noise normal components would blur whole numbers (docs/explanation/estimate.md)."""

LEAST_VARIANCE = 1e-12
"""Noise below a millionth of a record is taken for that much: no density becomes a point."""

LEAST_SUM = 1e-290
"""Sums of whole counts below this have lost digits: the least normal double is 2e-308, and terms are far smaller."""

MOST_POOLED = 20_000
"""Cells that a law is learned from; more are thinned evenly."""


BLOCK = 2048
"""Cells of a large table that are worked on at a time: memory does not grow with their number, and caches serve."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factored:
    """Cells under each factor: its likelihood, and the posterior mean and mean square of the count."""

    likelihood: Floats
    """Of each factor, relative to the best one."""
    log_best: Floats
    """Logarithm of the likelihood of the best factor."""
    mean: Floats
    square: Floats

    @classmethod
    def of(cls, shape: Floats, center: Floats, variance: Floats, most: float) -> Factored:
        """Normal components of variance e·g + (h·e·g)², or exact sums over whole counts where these can be seen."""
        variance = np.maximum(variance, LEAST_VARIANCE)
        level = shape[:, None] * FACTORS
        prior = np.square(STEP * level)
        prior += level
        total = prior + variance[:, None]
        gap = center[:, None] - level
        prior /= total  # how far the mean goes from the level to the center
        mean = gap * prior
        mean += level
        np.maximum(mean, 0.0, out=mean)
        square = np.multiply(prior, variance[:, None], out=prior)
        square += np.square(mean)
        log_likelihood = np.square(gap, out=gap)
        log_likelihood /= total
        log_likelihood += np.log(total, out=total)
        log_likelihood *= -0.5
        fine = (variance < FINE_VARIANCE) & (center + 6 * np.sqrt(variance) < WHOLE)
        if fine.any():
            found = _whole(shape[fine], center[fine], variance[fine])
            log_likelihood[fine], mean[fine], square[fine] = found
        if shape.size and shape.max() * FACTORS[-1] > most:
            log_likelihood[level > np.maximum(most, shape)[:, None]] = -math.inf
        best = log_likelihood.max(axis=1)
        log_likelihood -= best[:, None]
        return cls(likelihood=np.exp(log_likelihood, out=log_likelihood), log_best=best, mean=mean, square=square)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cells of a table: what the margins say of them, and what the linear law does."""

    shape: Floats
    center: Floats
    variance: Floats
    most: float
    sample: Factored
    """All cells, or of a large table as many as ``MOST_POOLED``, thinned evenly."""

    @classmethod
    def of(cls, shape: Floats, center: Floats, variance: Floats, most: float = math.inf) -> Cells:
        """Factors that expect more than ``most`` records in a cell, the number of all, are ruled out."""
        kept = slice(None, None, max(1, -(-shape.size // MOST_POOLED)))
        sample = Factored.of(shape[kept], center[kept], variance[kept], most)
        return cls(shape=shape, center=center, variance=variance, most=most, sample=sample)

    @property
    def thinned(self) -> float:
        """The share of the cells that are in the sample."""
        return self.sample.log_best.size / max(self.shape.size, 1)

    def _blocks(self) -> Iterator[tuple[slice, Factored]]:
        if self.thinned == 1.0:
            yield slice(None), self.sample
            return
        for start in range(0, self.shape.size, BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, Factored.of(self.shape[rows], self.center[rows], self.variance[rows], self.most)

    def log_evidence(self, weights: Floats) -> float:
        """Logarithm of the likelihood of all cells under a law of factors."""
        parts = (part for _, part in self._blocks())
        return sum(float((np.log(part.likelihood @ weights) + part.log_best).sum()) for part in parts)

    def moments(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Posterior mean and variance of the counts, and posterior mean of the level e·g that they came from.

        Within a component the level is a gamma of mean e·g_j and relative width h. Given the count c it is then

            E[level | c] = e·g_j + (c − e·g_j)·h²·e·g_j/(1 + h²·e·g_j),

        so a large count speaks for itself, however coarse the grid of factors is.
        """
        mean, variance, level = (np.empty(self.shape.size) for _ in range(3))
        for rows, part in self._blocks():
            posterior = part.likelihood * weights
            posterior /= posterior.sum(axis=1, keepdims=True)
            mean[rows] = np.einsum("kj,kj->k", posterior, part.mean)
            variance[rows] = np.einsum("kj,kj->k", posterior, part.square) - mean[rows] ** 2
            center = self.shape[rows, None] * FACTORS
            width = STEP**2 * center
            pulled = part.mean - center
            pulled *= width
            width += 1
            pulled /= width
            pulled += center
            level[rows] = np.einsum("kj,kj->k", posterior, pulled)
        return mean, np.maximum(variance, 0.0), level


def learned(likelihood: Floats, start: Floats, steps: int, prior: Floats | float = 0.0) -> Floats:
    """The law of factors that makes the cells most likely, by expectation and maximisation.

    einsum, because matrices of this size are too small for the threads of a matrix product: these would mostly wait.
    """
    weights = start
    for _ in range(steps):
        weights = weights * np.einsum("kj,k->j", likelihood, 1 / np.einsum("kj,j->k", likelihood, weights)) + prior
        weights = weights / weights.sum()
    return weights


def common_law(tables: list[Cells]) -> Floats:
    """The law of factors of all tables of an order together; an even one counts like a cell, lest few settle it.

    Steps and cells, here and in ``own_law``: docs/explanation/estimate.md, constants.
    """
    stacked = np.concatenate([table.sample.likelihood for table in tables])
    thinned = stacked[:: max(1, -(-stacked.shape[0] // MOST_POOLED))]
    even = np.full(FACTORS.size, 1 / FACTORS.size)
    return learned(thinned, even, steps=60, prior=even)


def own_law(table: Cells, common: Floats, cells: float = 10.0) -> Floats:
    """The law of factors of one table, in which the common one counts like so many cells."""
    smooth = 0.99 * common + 0.01 / FACTORS.size
    return learned(table.sample.likelihood, smooth, steps=30, prior=cells * table.thinned * smooth)


def _whole(shape: Floats, center: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """The same by sums over whole counts; cells of nearly the same shape share one table of Poisson laws.

    Sums that doubles cannot hold are those of counts that a factor all but rules out: there the nearest count is all.
    """
    counts = np.arange(WHOLE, dtype=np.float64)
    gaps = (center[:, None] - counts) ** 2 / variance[:, None]
    nearest, least = gaps.argmin(axis=1), gaps.min(axis=1)
    near = np.exp(-0.5 * (gaps - least[:, None]))
    bins = np.round(np.log(np.maximum(shape, 1e-9)) / 0.05).astype(np.int64)
    log_likelihood, mean, square = (np.empty((shape.size, FACTORS.size)) for _ in range(3))
    for each in np.unique(bins):
        own = bins == each
        level = np.exp(each * 0.05) * FACTORS[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_law = np.where(level > 0, counts * np.log(level) - level - LOG_FACTORIALS, -np.inf)
        log_law[:, 0] = -level[:, 0]
        law = np.exp(log_law)
        total = near[own] @ law.T
        lost = total < LEAST_SUM
        total[lost] = 1.0
        log_likelihood[own] = np.where(lost, log_law.T[nearest[own]], np.log(total))
        mean[own] = np.where(lost, counts[nearest[own], None], (near[own] * counts) @ law.T / total)
        square[own] = np.where(lost, counts[nearest[own], None] ** 2, (near[own] * counts**2) @ law.T / total)
    return log_likelihood - 0.5 * (least + np.log(variance))[:, None], mean, square
