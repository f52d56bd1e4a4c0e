"""Rows of a published table, each drawn towards what the rows share: as far as the noise and the rows ask for.

    θ_j ~ Dirichlet(β·m),   c_j ~ Multinomial(n_j, θ_j),   x_jk ~ noise around c_jk

The strength β is averaged over its posterior on a grid (empirical Bayes with its uncertainty), so that a table of mere
noise gives every row the shared shape m, and a clear table gives every row its own. Cells decouple as in
``estimate.cells``: each count has the negative-binomial weight of its cell. The total of a row is known only as well as
the release says, so it enters as a soft condition, and one tilt for each row serves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from dpbayes._checks import Floats
from dpbayes.estimate.cells import grid, log_prior, moments
from dpbayes.estimate.noise import Noise
from dpbayes.estimate.result import Interval

LOG_STRENGTHS = np.arange(-2.0, 15.1, 1.0)
"""ln β, in records that the shared shape is worth in every row."""

LIKENESS = 0.25
"""The prior of ln β is ∝ β^¼: rows are alike until the release says otherwise. It decides where noise hides all."""

NODES = 40
TILT_STEPS = 4
BLOCK = 2**19
"""Nodes held in memory at once."""

FITTED_ROWS = 1024
"""β is fitted on at most so many rows, those with the largest totals."""

BULK = 2**18
"""Larger tables are looked up in a lattice of values and totals, at the typical strength."""

LATTICE = (160, 40)
"""Values and totals of that lattice."""

FORGOTTEN = 1e-3
"""Strengths with less posterior weight are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Population shares of every row, the mean of ln β, and credible intervals if a level was asked for."""

    shares: Floats
    log_strength: float
    interval: Interval | None = None


def shrunk_rows(
    values: Floats,
    noise: Noise,
    *,
    totals: Floats,
    doubt: float | Floats,
    shape: Floats,
    level: float | None = None,
) -> Rows:
    """E[θ | x], for rows × cells with totals known up to a standard deviation ``doubt``.

    E[θ_jk | x] = Σ_β w_β (E[c_jk | x, β] + β m_k)/(Σ_k E[c_jk | x, β] + β),   w_β ∝ β^¼ P(x | β)
    Symbols: θ shares, x values, c counts, m shape, n totals, β strength, w posterior weight.
    Source: docs/explanation/models.md, hierarchical posterior.
    Adjacency: none, this is post-processing.
    """
    values = noise.readable(values)
    totals = np.maximum(np.broadcast_to(totals, values.shape[:1]), 1e-6)
    doubts = np.broadcast_to(np.asarray(doubt, dtype=np.float64), totals.shape)
    fitted = np.sort(np.argsort(-totals, kind="stable")[:FITTED_ROWS])
    evidence = np.zeros(LOG_STRENGTHS.size)
    for block in _blocks(fitted, values.shape[1] * LOG_STRENGTHS.size):
        evidence += _posterior(values[block], noise, totals[block], doubts[block], shape, LOG_STRENGTHS)[0].sum(axis=1)
    if len(values) > 1:
        evidence += LIKENESS * LOG_STRENGTHS
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    kept = weights > FORGOTTEN
    strengths, weights = LOG_STRENGTHS[kept], weights[kept] / weights[kept].sum()
    if values.size > BULK and level is None:
        typical = float(weights @ strengths)
        return Rows(shares=_looked_up(values, noise, totals, shape, typical), log_strength=typical)
    shares, squares = np.empty(values.shape), np.empty(values.shape if level is not None else 0)
    for block in _blocks(np.arange(len(values)), values.shape[1] * strengths.size):
        _, means, variances = _posterior(values[block], noise, totals[block], doubts[block], shape, strengths)
        shares[block] = np.einsum("g,grk->rk", weights, means)
        if level is not None:
            squares[block] = np.einsum("g,grk->rk", weights, means**2 + variances)
    interval = None if level is None else _interval(shares, squares - shares**2, level)
    return Rows(shares=shares, log_strength=float(weights @ strengths), interval=interval)


def _looked_up(values: Floats, noise: Noise, totals: Floats, shape: Floats, log_strength: float) -> Floats:
    """E[θ | x, β] of a large table: E[c] of a cell depends on its value and its row's total, column by column."""
    beta = float(np.exp(log_strength))
    smallest, spread = max(float(totals.min()), 1e-3), float(noise.spread(np.zeros(1))[0])
    total_points = np.geomspace(smallest, max(float(totals.max()), 2 * smallest), LATTICE[1])
    row, row_part = _position(np.log(total_points), np.log(np.maximum(totals, smallest)))
    counts = np.empty(values.shape)
    for column in range(values.shape[1]):
        center = noise.center(values[:, column])
        low, high = (float(np.arcsinh(end / spread)) for end in (center.min() - 1, center.max() + 1))
        points = spread * np.sinh(np.linspace(low, high, LATTICE[0]))
        cells = noise.readable(noise.released(np.repeat(points, LATTICE[1])))[:, None]
        n, strength = np.tile(total_points, LATTICE[0]), np.array([log_strength])
        mean = _counts(cells, noise, n, np.full(n.size, np.inf), shape[column : column + 1], strength)[1]
        lattice = mean.reshape(LATTICE)
        at, part = _position(points, center)
        below = (1 - row_part) * lattice[at, row] + row_part * lattice[at, row + 1]
        above = (1 - row_part) * lattice[at + 1, row] + row_part * lattice[at + 1, row + 1]
        counts[:, column] = (1 - part) * below + part * above
    worth = counts.sum(axis=1, keepdims=True) + beta
    counts += beta * shape
    counts /= worth
    return counts


def _position(points: Floats, values: Floats) -> tuple[np.ndarray, Floats]:
    """The point below each value, and how far the value is on its way to the next."""
    at = np.clip(np.searchsorted(points, values, side="right") - 1, 0, points.size - 2)
    return at, np.clip((values - points[at]) / (points[at + 1] - points[at]), 0.0, 1.0)


def _interval(mean: Floats, variance: Floats, level: float) -> Interval:
    """Central intervals of the Beta laws that have these means and variances, widened to hold the mean if skewed."""
    variance = np.clip(variance, 1e-15, 0.999 * mean * (1.0 - mean))
    strength = mean * (1.0 - mean) / variance - 1.0
    tail = (1.0 - level) / 2.0
    low, high = (betaincinv(mean * strength, (1.0 - mean) * strength, at) for at in (tail, 1.0 - tail))
    return Interval(lower=np.minimum(low, mean), upper=np.maximum(high, mean))


def pooled_shape(values: Floats, noise: Noise, *, total: float, doubt: float) -> Floats:
    """What the rows share: the distribution of their sum, itself drawn towards an even one."""
    pooled = noise.pooled(0, values.shape)
    even = np.full(values.shape[1], 1.0 / values.shape[1])
    summed = values.sum(axis=0, keepdims=True)
    return shrunk_rows(summed, pooled, totals=np.array([total]), doubt=doubt, shape=even).shares.ravel()


def _blocks(rows: np.ndarray, width: int) -> list[np.ndarray]:
    size = max(1, BLOCK // (width * NODES))
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _posterior(
    values: Floats, noise: Noise, totals: Floats, doubts: Floats, shape: Floats, log_strengths: Floats
) -> tuple[Floats, Floats, Floats]:
    """Log P(x_j | β) of every row, then mean and variance of θ given β: arrays of strengths × rows (× cells).

    Given its count, a share is Beta(c + βm, n − c + β(1 − m)).
    """
    log_evidence, mean, variance = _counts(values, noise, totals, doubts, shape, log_strengths)
    beta = np.exp(log_strengths)[:, None, None]
    worth = mean.sum(axis=-1, keepdims=True) + beta
    share = (mean + beta * shape) / worth
    return log_evidence, share, variance / worth**2 + share * (1.0 - share) / (worth + 1.0)


def _counts(
    values: Floats, noise: Noise, totals: Floats, doubts: Floats, shape: Floats, log_strengths: Floats
) -> tuple[Floats, Floats, Floats]:
    """Log P(x_j | β) of every row, then mean and variance of every count."""
    beta = np.exp(log_strengths)[:, None, None]
    n = totals[:, None]
    cell_strength = np.broadcast_to(beta * shape, (log_strengths.size, *values.shape))[..., None]
    nodes, spans = grid(*_window(values, noise, n * shape, 1.0 + n / beta), NODES)
    log_odds = np.log(n / (n + beta))[..., None]
    log_mass = log_prior(nodes, cell_strength) + nodes * log_odds + noise.log_likelihood(values, nodes) + np.log(spans)
    log_mass += cell_strength * np.log(beta / (n + beta))[..., None]
    tilt, mean, variance, log_sum = _soft_total(log_mass, nodes, totals, doubts)
    gap = mean.sum(axis=-1) - totals
    log_evidence = log_sum.sum(axis=-1) - tilt * mean.sum(axis=-1) - 0.5 * (gap / doubts) ** 2
    return log_evidence, mean, variance


def _window(values: Floats, noise: Noise, expected: Floats, dispersion: Floats) -> tuple[Floats, Floats]:
    """Counts that both the prior and the noise allow; where they disagree, all that either allows."""
    spread = np.sqrt(expected * dispersion)
    low, high = np.maximum(expected - 9 * spread, 0), expected + 9 * spread + 30 * dispersion
    center = noise.center(values)
    reach = 8 * noise.spread(np.maximum(center, 0)) + 2
    seen_low, seen_high = np.maximum(center - reach, 0), np.maximum(center + reach, 1)
    apart = np.minimum(high, seen_high) < np.maximum(low, seen_low)
    lower = np.where(apart, np.minimum(low, seen_low), np.maximum(low, seen_low))
    upper = np.where(apart, np.maximum(high, seen_high), np.minimum(high, seen_high))
    return np.floor(np.where(lower < upper / 8, 0.0, lower)), np.ceil(upper)


def _soft_total(
    log_mass: Floats, nodes: Floats, totals: Floats, doubts: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The tilt τ = (n − Σ E_τ[c])/ς² of each row by Newton's method; then mean, variance and ln Σ_c of every cell.

    Symbols: n totals, ς doubts.
    Source: mean-field form of the condition Σc ~ Normal(n, ς²), docs/explanation/models.md.
    Adjacency: none, this is post-processing.
    """
    tilt = np.zeros(log_mass.shape[:2])
    precision = 1.0 / np.maximum(doubts, 1e-3) ** 2
    for step in range(TILT_STEPS + 1):
        tilted = log_mass + tilt[..., None, None] * nodes
        top = tilted.max(axis=-1, keepdims=True)
        mass = np.exp(tilted - top)
        total = mass.sum(axis=-1, keepdims=True)
        mean, variance = moments(nodes, mass / total)
        if step == TILT_STEPS:
            break
        wrong = tilt + (mean.sum(axis=-1) - totals) * precision
        slope = 1.0 + variance.sum(axis=-1) * precision
        limit = 2.0 / np.sqrt(variance.sum(axis=-1) + 1e-12)
        tilt = tilt - np.clip(wrong / slope, -limit, limit)
    return tilt, mean, variance, (top + np.log(total))[..., 0]
