"""The posterior of every count of a table, given the total of each row and the strength of the prior.

A row of counts c with total n has the Dirichlet-multinomial prior of p ~ Dirichlet(a). That is the law of
independent negative binomials given their sum, whatever their common tilt τ:

    P(c) ∝ Π_k f(c_k; a_k) e^{τ c_k}    on Σ_k c_k = n,    f(c; a) = Γ(c+a) / (Γ(a) c!).

So cells decouple: each one has the law ∝ f(c; a_k) e^{τc} P(x_k | c), and τ is chosen so that the means add up to n.
What conditioning on the sum still changes is put back by the law of the sum of the other cells, which is described
by its mean and variance (``log_total``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpbayes._checks import Floats
from dpbayes.estimate.noise import Noise

Bools = NDArray[np.bool_]

NODES = 64
"""Nodes per cell; ranges of fewer whole counts are summed exactly."""

HEAD = 8
"""A long range that starts at zero keeps its first counts as nodes: the prior is not smooth there."""

NEGLIGIBLE = 24.0
"""A node is outside the range of a cell when its mass is e⁻²⁴ of the largest."""

FROZEN = 0.4
"""Where noise exceeds this share of the total, the likelihood stays constant above the total (see below)."""

MOST_PASSES = 40
"""Ranges are refitted at most so often; three times is usual."""

MOST_TRIES = 12
"""Tilts are refitted at most so often; twice is usual. A total that contradicts nearly exact cells is never met."""

MOST_STEPS = 40
"""Steps of Newton's method between two refits; four are usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPosterior:
    """Posterior masses on nodes, for rows × cells: ``mass`` sums to one over the last axis."""

    nodes: Floats
    spans: Floats
    """How many whole counts a node stands for."""
    mass: Floats
    mean: Floats
    variance: Floats
    log_evidence: Floats
    """ln P(released row | total, prior) up to a constant of the release."""


def log_prior(counts: Floats, strength: Floats) -> Floats:
    """f(c; a) = Γ(c+a)/(Γ(a) c!), its logarithm

    Symbols: c counts, a strength.
    Source: docs/explanation/estimate.md, model: the negative binomial weight without its tilt.
    Adjacency: none, this is post-processing.
    """
    return np.asarray(gammaln(counts + strength) - gammaln(strength) - gammaln(counts + 1))


def log_total(counts: Floats, mean: Floats, variance: Floats) -> Floats:
    """The logarithm of P(a sum of counts = c), from its mean and variance.

    A negative binomial law if overdispersed, exact when the release says nothing; else a normal one.
    """
    mean = np.maximum(mean, 1e-12)
    inside = np.maximum(counts, 0.0)
    shape = mean**2 / np.maximum(variance - mean, 1e-9 * mean + 1e-12)
    overdispersed = log_prior(inside, shape) - shape * np.log1p(mean / shape) + inside * np.log(mean / (mean + shape))
    normal = -0.5 * ((counts - mean) ** 2 / np.maximum(variance, 1e-12) + np.log1p(2 * np.pi * variance))
    return np.where(counts < 0, -np.inf, np.where(variance > mean, overdispersed, normal))


def grid(lower: Floats, upper: Floats, size: int) -> tuple[Floats, Floats]:
    """Nodes and weights with Σ weight·g(node) ≈ Σ g(c) over the whole counts from lower to upper.

    c(u) = lower + u + κ·max(u − h, 0)^q for u = 0, 1, …, with weight c′(u). Short ranges have κ = 0: an exact sum.
    Long ranges away from zero have h = 0, q = 1: evenly spaced. Long ranges from zero keep the first h counts, then
    spread out, with q so large that κ is about one.
    """
    extra = np.maximum(upper - lower - (size - 1), 0.0)[..., None]
    graded = (lower <= 0)[..., None]
    head = np.where(graded, HEAD, 0)
    reach = size - 1 - head
    power = np.where(graded, np.maximum(np.log(np.maximum(extra, 1)) / np.log(reach), 2.0), 1.0)
    rate = extra / reach**power
    steps = np.arange(size, dtype=np.float64)
    beyond = np.maximum(steps - head, 0.0)
    slope = rate * beyond ** (power - 1)
    return lower[..., None] + steps + slope * beyond, 1 + power * slope


def moments(nodes: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of every cell."""
    mean = np.einsum("...j,...j->...", nodes, mass)
    centred = nodes - mean[..., None]
    return mean, np.einsum("...j,...j,...j->...", centred, centred, mass)


def cell_posterior(
    noise: Noise, values: Floats, *, strength: Floats, totals: Floats, copies: Floats, size: int = NODES
) -> CellPosterior:
    """Posterior of rows × cells: each row has a total, and ``copies`` cells like each one.

    ln P(x | n, a) = Σ_k K_k(τ) − τn + ln P_τ(Σc = n) − ln f(n; Σa),   K_k(τ) = ln Σ_c f(c; a_k) e^{τc} P(x_k | c)
    Symbols: x values, n totals, a strength, τ tilt with Σ_k K_k′(τ) = n.
    Source: saddlepoint form of the Dirichlet-multinomial evidence, docs/explanation/estimate.md.
    Adjacency: none, this is post-processing.

    No count exceeds the total, so the likelihood above it may be replaced at will. Under much noise it is held
    constant there: then the sum is exactly negative binomial where the release says nothing.
    """
    strength = np.broadcast_to(strength, values.shape)
    totals = np.maximum(totals, 1e-9)
    all_strength = (copies * strength).sum(axis=-1)
    tilt = np.log(totals / (totals + all_strength))
    center = np.maximum(noise.center(values), 0.0)
    spread = noise.spread(center)
    ceiling = np.where(spread > FROZEN * totals[:, None], totals[:, None], np.inf)
    limit = np.broadcast_to(np.ceil(totals * (8 + NEGLIGIBLE / all_strength))[:, None] + size, values.shape)
    lower = np.minimum(np.floor(np.maximum(noise.center(values) - 8 * spread, 0)), np.maximum(limit - 2 * size, 0))
    lower = np.where(lower < center / 8, 0.0, lower)
    upper = np.minimum(np.ceil(center + 8 * spread + 2), limit)
    nodes, spans, base = (np.empty((*values.shape, size)) for _ in range(3))
    stale = np.ones(values.shape, dtype=bool)
    reached, tries = False, 0
    for _ in range(MOST_PASSES):
        if stale.any():
            at, weight = grid(lower[stale], upper[stale], size)
            likelihood = noise.take((stale,), values.shape).log_likelihood(
                values[stale], np.minimum(at, ceiling[stale][..., None])
            )
            nodes[stale], spans[stale] = at, weight
            base[stale] = np.log(weight) + log_prior(at, strength[stale][..., None]) + likelihood
        elif reached or tries == MOST_TRIES:
            break
        else:
            tries += 1
            change, reached = _tilt_change(nodes, base + tilt[:, None, None] * nodes, totals, copies)
            tilt = tilt + change
        lower, upper, stale = _window(lower, upper, limit, nodes, base + tilt[:, None, None] * nodes)
        reached = reached and not stale.any()
    mass, log_sum = _normalised(base + tilt[:, None, None] * nodes)
    mean, variance = moments(nodes, mass)
    log_evidence = (
        (copies * log_sum).sum(axis=-1)
        - tilt * totals
        + log_total(totals, (copies * mean).sum(axis=-1), (copies * variance).sum(axis=-1))
        - log_prior(totals, all_strength)
    )
    return CellPosterior(nodes=nodes, spans=spans, mass=mass, mean=mean, variance=variance, log_evidence=log_evidence)


def conditioned(cells: CellPosterior, totals: Floats, copies: Floats) -> CellPosterior:
    """The marginal law of each count given that the row adds up to its total.

    Each law is multiplied by the law of the sum of the other cells. What the means then still lack of the total is
    shared out in proportion to the variances, as a tilt would share it.
    """
    total_variance = (copies * cells.variance).sum(axis=-1, keepdims=True)
    rest = np.maximum((copies * cells.mean).sum(axis=-1, keepdims=True) - cells.mean, 0.0)
    rest_variance = np.maximum(total_variance - cells.variance, 0.0)
    factor = log_total(totals[:, None, None] - cells.nodes, rest[..., None], rest_variance[..., None])
    with np.errstate(divide="ignore"):
        mass, _ = _normalised(np.log(cells.mass) + np.maximum(factor, -1e3))
    mean, _ = moments(cells.nodes, mass)
    lack = totals[:, None] - (copies * mean).sum(axis=-1, keepdims=True)
    shift = lack * cells.variance / np.maximum(total_variance, 1e-300)
    known = (rest_variance < 1e-6)[..., None]
    nodes = np.where(known, totals[:, None, None] - rest[..., None], cells.nodes + np.round(shift)[..., None])
    nodes = np.clip(nodes, 0.0, totals[:, None, None])
    return CellPosterior(
        nodes=nodes,
        spans=np.where(known, 1.0, cells.spans),
        mass=mass,
        mean=np.maximum(mean + shift, 0.0),
        variance=moments(nodes, mass)[1],
        log_evidence=cells.log_evidence,
    )


def _normalised(log_mass: Floats) -> tuple[Floats, Floats]:
    """Masses that sum to one over the last axis, and the logarithm of what they were divided by."""
    top = log_mass.max(axis=-1, keepdims=True)
    mass = np.exp(np.maximum(log_mass - top, -690.0))
    total = mass.sum(axis=-1, keepdims=True)
    mass /= total
    return mass, (top + np.log(total))[..., 0]


def _tilt_change(nodes: Floats, log_mass: Floats, totals: Floats, copies: Floats) -> tuple[Floats, bool]:
    """What to add to the tilt of each row so that its means add up to its total; and whether they then do.

    Newton's method on logarithms, in a bracket as wide as the nodes allow: no cell may move by more than three
    standard deviations.
    """
    start, variance = moments(nodes, _normalised(log_mass)[0])
    high = np.minimum(3 / np.sqrt(np.maximum(variance.max(axis=-1), 1e-300)), 1e4)
    low, change = -high, np.zeros(totals.size)
    copies = np.broadcast_to(copies, start.shape)
    mean, left = start, np.arange(totals.size)
    for _ in range(MOST_STEPS):
        reached = np.maximum((copies[left] * mean).sum(axis=-1), 1e-300)
        slope = np.maximum((copies[left] * variance).sum(axis=-1), 1e-9 * reached + 1e-300)
        lack = totals[left] - reached
        off = np.abs(lack) > 1e-4 * np.sqrt(slope) + 1e-9 * totals[left]
        left, reached, slope, lack = left[off], reached[off], slope[off], lack[off]
        if left.size == 0:
            return change, True
        low[left], high[left] = (
            np.where(lack > 0, change[left], low[left]),
            np.where(lack > 0, high[left], change[left]),
        )
        newton = change[left] + np.clip(np.log(totals[left] / reached), -4, 4) * reached / slope
        inside = (newton > low[left]) & (newton < high[left])
        change[left] = np.where(inside, newton, (low[left] + high[left]) / 2)
        rows = left if left.size < totals.size else slice(None)
        offset = nodes[rows] - start[rows][..., None]
        weight, _ = _normalised(log_mass[rows] + change[rows][:, None, None] * offset)
        moved = np.einsum("...j,...j->...", weight, offset)
        mean = start[rows] + moved
        variance = np.einsum("...j,...j,...j->...", weight, offset, offset) - moved**2
    return change, False


def _window(
    lower: Floats, upper: Floats, limit: Floats, nodes: Floats, log_mass: Floats
) -> tuple[Floats, Floats, Bools]:
    """The range that holds the mass of each cell, wider than before if mass sits at its edge; and what moved."""
    size = nodes.shape[-1]
    width = upper - lower
    keep = log_mass > log_mass.max(axis=-1, keepdims=True) - NEGLIGIBLE
    first = keep.argmax(axis=-1)
    last = size - 1 - keep[..., ::-1].argmax(axis=-1)
    cut_below = (first == 0) & (lower > 0)
    cut_above = (last == size - 1) & (upper < limit)
    low = np.take_along_axis(nodes, np.maximum(first - 1, 0)[..., None], -1)[..., 0]
    high = np.take_along_axis(nodes, np.minimum(last + 1, size - 1)[..., None], -1)[..., 0]
    low = np.where(cut_below, lower - width - size, low)
    high = np.where(cut_above, np.maximum(upper, high) + width + size, high)
    low = np.where(low < high / 8, 0.0, np.floor(low))
    high = np.minimum(np.ceil(high), limit)
    moved = cut_below | cut_above | ((width > size) & (high - low < 0.5 * width))
    return np.where(moved, np.maximum(low, 0), lower), np.where(moved, high, upper), moved
