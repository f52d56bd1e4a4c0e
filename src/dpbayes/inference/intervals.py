"""Intervals that cover at every true count: from the linear law, helped by a prior, never relying on it.

A cell is estimated by y ~ Normal(θ, V(θ)), V(θ) = v + bθ − qθ². For every θ a region of 1 − α is fixed, and the
interval holds the θ whose region holds y. So it covers with probability 1 − α whatever θ is. The regions may be placed
to make the interval short where a prior expects θ; a wrong prior makes it longer, not false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.normal import quantile
from dpbayes.inference.cut import FACTORS, STEP, Cells

SAME_DATA = 0.9
"""The prior comes from the same release, which costs coverage: so much of α is left (docs/explanation/estimate.md)."""

TAILS = 1 / (1 + np.exp(-np.linspace(-7.0, 7.0, 15)))
"""Shares of α that lie above a region, among which the best is searched."""

RELEVANT = 1e-3
"""Factors of a smaller prior weight do not shape the regions."""

WIDER = 2
"""So many neighbouring factors are taken together: the regions need no fine prior."""

MANY = 50_000
"""From so many cells on, those with the same estimate and nearly the same expectation share their intervals."""

ROUNDING = 1e-6
"""A number so near to a whole one, or in proportion to another one, is that one."""


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

    def take(self, rows: slice | Ints) -> Spread:
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


def assist(cells: Cells, law: Floats, spread: Spread, level: float) -> tuple[Floats, Floats]:
    """The interval whose regions [θ + √V·z_{α(1−s)}, θ + √V·z_{1−αs}] have the s that the prior predictive prefers.

    s(θ) minimises the prior probability of the region. On its upper end y is the lower end of the region of θ, so
    that θ belongs to the interval while p(y)/φ(z_l) < p(u)/φ(z_u); on its lower end the other way round.
    Symbols: p prior predictive density of y, z_l, z_u ends of the region in standard deviations, u its upper end.
    Source: [Pratt61]; [YuHoff18] section 2.
    Adjacency: none, this is post-processing.
    """
    regions = _Regions(law, (1 - level) * SAME_DATA)
    alike = _alike(cells, spread) if cells.center.size >= MANY else None
    if alike is None:
        return regions.ends(cells.center, cells.shape, cells.variance, spread)
    center, shape, below, above = alike
    same = Spread(constant=np.full(center.size, spread.constant[0]), linear=spread.linear, square=spread.square)
    lower, upper = regions.ends(center, shape, np.full(center.size, cells.variance[0]), same)
    return np.minimum(lower[below], lower[above]), np.maximum(upper[below], upper[above])


def _alike(cells: Cells, spread: Spread, fine: int = 128) -> tuple[Floats, Floats, Ints, Ints] | None:
    """Estimates and expectations on a grid, and for each cell the two points of the grid around its expectation.

    The grid has ``fine`` steps for each unit of the logarithm of the expectation.

    For tables of one variance whose estimates differ by whole numbers; None for others. A cell then gets the hull of
    two intervals. Each of them covers with probability 1 − α, as it does under any prior, so the hull does too. It
    also holds the interval for the cell's own expectation, as long as the ends move one way from point to point.
    """
    steps = cells.center - cells.center[0]
    estimate = np.rint(steps)
    uneven = max(float(np.ptp(each)) for each in (cells.variance, spread.constant))
    if np.abs(steps - estimate).max() > ROUNDING or uneven > ROUNDING * float(cells.variance[0]):
        return None
    expected = np.floor(np.log(np.maximum(cells.shape, 1e-12)) * fine)
    low, least = float(expected.min()), float(estimate.min())
    width = float(expected.max()) - low + 2
    kinds, of_cell = np.unique((estimate - least) * width + (expected - low), return_inverse=True)
    points, place = np.unique(np.concatenate([kinds, kinds + 1]), return_inverse=True)
    if points.size > cells.center.size // 2:
        return None
    center = cells.center[0] + least + points // width
    shape = np.exp((points % width + low) / fine)
    return center, shape, place[: kinds.size][of_cell], place[kinds.size :][of_cell]


class _Regions:
    """The regions that a prior prefers, and the intervals that follow from them."""

    def __init__(self, law: Floats, alpha: float) -> None:
        weights, factors = _group(law)
        kept = weights > RELEVANT * weights.max()
        self.weight, self.factor = np.log(weights[kept])[:, None], factors[kept][:, None]
        ends = [(quantile(alpha * (1 - tail)), quantile(1 - alpha * tail)) for tail in TAILS.tolist()]
        self.upper, self.lower = ends[::-1], [(high, low) for low, high in ends]
        """For ends of intervals: the end of a region that lies at y, and its other end, outermost regions first."""

    def ends(
        self, y: Floats, shape: Floats, variance: Floats, spread: Spread, block: int = 4096
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends, cell by cell, in blocks whose numbers stay in the cache of a processor."""
        lower, upper = np.empty(y.size), np.empty(y.size)
        for start in range(0, y.size, block):
            rows = slice(start, start + block)
            density = _Predictive.of(self, shape[rows], variance[rows])
            for end, sides in ((lower, self.lower), (upper, self.upper)):
                end[rows] = _outermost(sides, y[rows], spread.take(rows), density)
        return lower, upper


@dataclass(frozen=True, slots=True, eq=False)
class _Predictive:
    """The law of the estimates of cells under the prior, before they were seen: a column for each cell."""

    level: Floats
    precision: Floats
    weight: Floats

    @classmethod
    def of(cls, regions: _Regions, shape: Floats, variance: Floats) -> _Predictive:
        level = regions.factor * shape
        spread = level + (WIDER * STEP * level) ** 2 + np.maximum(variance, 1e-12)
        return cls(level, -0.5 / spread, regions.weight - 0.5 * np.log(spread))

    def take(self, cells: Ints) -> _Predictive:
        """That of some of the cells."""
        return _Predictive(*(each.take(cells, axis=1) for each in (self.level, self.precision, self.weight)))

    def log_density(self, y: Floats) -> Floats:
        """Up to a constant."""
        terms = y - self.level
        np.square(terms, out=terms)
        terms *= self.precision
        terms += self.weight
        top = terms.max(axis=0)
        terms -= top
        return np.asarray(top + np.log(np.exp(terms, out=terms).sum(axis=0)))


def _group(law: Floats) -> tuple[Floats, Floats]:
    """Fewer factors: zero, and groups of neighbours with their common weight and mean."""
    starts = np.concatenate([[0], np.arange(1, law.size, WIDER)])
    weights = np.add.reduceat(law, starts)
    return weights, np.add.reduceat(law * FACTORS, starts) / np.maximum(weights, 1e-300)


def _outermost(sides: Sequence[tuple[float, float]], y: Floats, spread: Spread, density: _Predictive) -> Floats:
    """The outermost θ at which the region stops holding y, between the last that does not and the first that does."""
    end, own = np.empty(y.size), density.log_density(y)
    cells: Ints = np.arange(y.size)
    found = np.zeros(y.size, dtype=bool)
    beyond = missing = np.empty(0)
    for place, (near, far) in enumerate(sides):
        theta = spread.end(y, near)
        margin = density.log_density(theta + np.sqrt(spread.at(theta)) * far) + far**2 / 2 - own - near**2 / 2
        new = (margin > 0) & ~found
        if place == 0:
            end[cells[new]] = theta[new]
        else:
            part = margin[new] / (margin[new] - missing[new])
            end[cells[new]] = theta[new] + part * (beyond[new] - theta[new])
        found |= new
        if 2 * np.count_nonzero(found) > found.size:  # go on with the others only
            left = np.flatnonzero(~found)
            y, own, theta, margin = (each[left] for each in (y, own, theta, margin))
            cells, found = cells[left], found[left]
            spread, density = spread.take(left), density.take(left)
        beyond, missing = theta, margin
    end[cells[~found]] = beyond[~found]
    return end


def whole(values: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Ends of intervals of whole numbers: the nearest whole numbers, a half outward, and around the printed values.

    A whole number is in an interval as often as among the whole numbers in it. Where noise is whole as well,
    P[|k| ≤ m] is near to 2Φ((m + ½)/σ) − 1 (continuity correction), which takes m ≥ zσ − ½. The nearest whole numbers
    outside L + ½ and U − ½ satisfy both.
    """
    return (
        np.minimum(np.floor(lower + 0.5 + ROUNDING), np.floor(values + ROUNDING)),
        np.maximum(np.ceil(upper - 0.5 - ROUNDING), np.ceil(values - ROUNDING)),
    )


def half_step(variance: Floats, level: float, step: float = 1.0) -> Floats:
    """What is added to the variance of a sum of whole noise, so that z·sd grows by half a step: s·√v/z + s²/(4z²)

    Symbols: s step, v variance, z the normal quantile of the level.
    Source: docs/explanation/proofs/population.md, continuity.
    Adjacency: none, this is post-processing.
    """
    z = quantile(0.5 + level / 2)
    return np.where(variance > 0, step * np.sqrt(np.maximum(variance, 0.0)) / z + (step / z) ** 2 / 4, 0.0)


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

    Symbols: x part, n whole, v_x, v_n, cov their variances and covariance, m records of the row times the rows of one
    person (``sampled``), for the share of a population.
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
