"""Intervals that cover at every true count: from the linear law, helped by a prior, never relying on it.

A cell is estimated by y ~ Normal(θ, V(θ)), V(θ) = v + bθ − qθ². For every θ a region of 1 − α is fixed, and the
interval holds the θ whose region holds y. So it covers with probability 1 − α whatever θ is. The regions may be placed
to make the interval short where a prior expects θ; a wrong prior makes it longer, not false.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes._checks import Floats
from dpbayes._normal import quantile
from dpbayes.inference.mixture import FACTORS, STEP, Cells

SAME_DATA = 0.9
"""The prior comes from the same release, which costs up to a point of coverage: α is lowered to this share of it."""

TAILS = 1 / (1 + np.exp(-np.linspace(-7.0, 7.0, 15)))
"""Shares of α that lie above a region, among which the best is searched."""

RELEVANT = 1e-3
"""Factors of a smaller prior weight do not shape the regions."""

WIDER = 2
"""So many neighbouring factors are taken together: the regions need no fine prior."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """V(θ) = constant + linear·θ − square·θ², cell by cell."""

    constant: Floats
    linear: float = 0.0
    square: float = 0.0

    def at(self, theta: Floats) -> Floats:
        """Variance of the estimate where the truth is θ."""
        return np.maximum(self.constant + self.linear * theta - self.square * theta**2, 1e-300)

    def end(self, y: Floats, z: float) -> Floats:
        """The θ with y = θ + z·√V(θ): the upper end of the interval for z < 0, the lower one for z > 0.

        (1 + z²q)θ² − (2y + z²b)θ + y² − z²v = 0
        Symbols: v, b, q of V(θ) = v + bθ − qθ².
        Source: the score interval; docs/explanation/proofs/residual-basis.md.
        Adjacency: none, this is post-processing.
        """
        lead = 1 + z**2 * self.square
        half = y + z**2 * self.linear / 2
        root = np.sqrt(np.maximum(half**2 - lead * (y**2 - z**2 * self.constant), 0.0))
        return np.asarray((half - np.sign(z) * root) / lead)

    def take(self, rows: slice) -> Spread:
        """The same for some of the cells."""
        return Spread(constant=self.constant[rows], linear=self.linear, square=self.square)


def symmetric(y: Floats, spread: Spread, level: float) -> tuple[Floats, Floats]:
    """The interval y ± z·√V(θ), solved for θ."""
    z = quantile(0.5 + level / 2)
    return spread.end(y, z), spread.end(y, -z)


def reach(level: float) -> float:
    """Half the width of an assisted interval of a large count, in standard deviations: the prior is of no help there.

    >>> round(reach(0.95), 3)
    2.005
    """
    return quantile(1 - (1 - level) * SAME_DATA / 2)


def assisted(cells: Cells, law: Floats, spread: Spread, level: float) -> tuple[Floats, Floats]:
    """The interval whose regions [θ + √V·z_{α(1−s)}, θ + √V·z_{1−αs}] have the s that the prior predictive prefers.

    s(θ) minimises the prior probability of the region. On its upper end y is the lower end of the region of θ, so
    that θ belongs to the interval while p(y)/φ(z_l) < p(u)/φ(z_u); on its lower end the other way round.
    Symbols: p prior predictive density of y, z_l, z_u ends of the region in standard deviations, u its upper end.
    Source: [Pratt61]; [YuHoff18] section 2.
    Adjacency: none, this is post-processing.
    """
    alpha = (1 - level) * SAME_DATA
    lower, upper = np.empty(cells.center.size), np.empty(cells.center.size)
    for start in range(0, lower.size, 4096):
        rows = slice(start, start + 4096)
        density = _Predictive(cells, law, rows)
        lower[rows], upper[rows] = _ends(cells.center[rows], spread.take(rows), density, alpha)
    return lower, upper


class _Predictive:
    """The law of the estimates of cells under the prior, before they were seen."""

    def __init__(self, cells: Cells, law: Floats, rows: slice) -> None:
        weights, factors = _gathered(law)
        kept = weights > RELEVANT * weights.max()
        self.level = cells.shape[rows, None] * factors[kept]
        spread = self.level + (WIDER * STEP * self.level) ** 2 + np.maximum(cells.variance[rows, None], 1e-12)
        self.weight = np.log(weights[kept]) - 0.5 * np.log(spread)
        self.precision = -0.5 / spread

    def log_density(self, y: Floats) -> Floats:
        """Up to a constant."""
        terms = y[:, None] - self.level
        np.square(terms, out=terms)
        terms *= self.precision
        terms += self.weight
        top = terms.max(axis=1)
        terms -= top[:, None]
        return np.asarray(top + np.log(np.exp(terms, out=terms).sum(axis=1)))


def _gathered(law: Floats) -> tuple[Floats, Floats]:
    """Fewer factors: zero, and groups of neighbours with their common weight and mean."""
    starts = np.concatenate([[0], np.arange(1, law.size, WIDER)])
    weights = np.add.reduceat(law, starts)
    return weights, np.add.reduceat(law * FACTORS, starts) / np.maximum(weights, 1e-300)


def _ends(y: Floats, spread: Spread, density: _Predictive, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper ends: the outermost θ at which the region stops holding y."""
    own = density.log_density(y)

    def outermost(tails: Floats, upper: bool) -> Floats:
        end = theta = margin = np.empty(0)
        for step, tail in enumerate(tails):
            low, high = quantile(alpha * (1 - tail)), quantile(1 - alpha * tail)
            near, far = (low, high) if upper else (high, low)
            last_theta, last_margin = theta, margin
            theta = spread.end(y, near)
            beyond = density.log_density(theta + np.sqrt(spread.at(theta)) * far)
            margin = beyond + far**2 / 2 - own - near**2 / 2
            if step == 0:
                end = theta
                continue
            left = (last_margin > 0) & (margin <= 0)
            part = np.where(left, last_margin / np.where(left, last_margin - margin, 1.0), 0.0)
            end = np.where(left, last_theta + part * (theta - last_theta), np.where(margin > 0, theta, end))
        return end

    return outermost(TAILS[::-1], upper=False), outermost(TAILS, upper=True)


def ratio(
    part: Floats,
    whole: Floats,
    variance: Floats,
    covariance: Floats,
    whole_variance: Floats,
    level: float,
    sampled: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """The θ in [0, 1] with (x − θn)² ≤ z²·(v_x − 2θ·cov + θ²·v_n + m·θ(1−θ)); all of [0, 1] if noise hides n.

    Symbols: x part, n whole, v_x, v_n, cov their variances and covariance, m records of the row (``sampled``), for
    the share of a population.
    Source: [Fieller54]; docs/explanation/proofs/residual-basis.md.
    Adjacency: none, this is post-processing.
    """
    z2 = quantile(0.5 + level / 2) ** 2
    lead = whole**2 - z2 * whole_variance + z2 * sampled
    half = part * whole - z2 * covariance + z2 * np.asarray(sampled) / 2
    last = part**2 - z2 * variance
    root = np.sqrt(np.maximum(half**2 - lead * last, 0.0))
    told = (whole > 0) & (whole**2 > z2 * whole_variance)
    safe = np.where(told, lead, 1.0)
    lower = np.where(told, (half - root) / safe, 0.0)
    upper = np.where(told, (half + root) / safe, 1.0)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
