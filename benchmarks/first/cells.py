"""The posterior of every count of a table, given the total of each row and the strength of the prior.

A row of counts c with total n has the Dirichlet-multinomial prior of p ~ Dirichlet(a). That is the law of
independent negative binomials given their sum, whatever their common tilt τ:

    P(c) ∝ Π_k f(c_k; a_k) e^{τ c_k}    on Σ_k c_k = n,    f(c; a) = Γ(c+a) / (Γ(a) c!).

So cells decouple: each one has the law ∝ f(c; a_k) e^{τc} P(x_k | c), and τ is chosen so that the means add up to n.
What conditioning on the sum still changes is put back by the law of the sum of the other cells, which is described
by its mean and variance (``log_total``).
"""

from __future__ import annotations

import numpy as np

from benchmarks.first.laws import CellPosterior, log_prior, log_total
from benchmarks.first.noise import Noise
from benchmarks.first.pairs import pair_posterior
from benchmarks.first.quadrature import NEGLIGIBLE, grid, moments, normalised, range_of_mass, tilt_change
from dpbayes._checks import Floats

__all__ = ["NODES", "cell_posterior", "conditioned", "grid", "log_prior", "moments"]

NODES = 64
"""Nodes per cell; ranges of fewer whole counts are summed exactly."""

FROZEN = 0.4
"""Where noise exceeds this share of the total, the likelihood stays constant above the total (see below)."""

MOST_PASSES = 40
"""Ranges are refitted at most so often; three times is usual."""

MOST_TRIES = 12
"""Tilts are refitted at most so often; twice is usual. A total that contradicts nearly exact cells is never met."""


def cell_posterior(
    noise: Noise, values: Floats, *, strength: Floats, totals: Floats, copies: Floats, size: int = NODES
) -> CellPosterior:
    """Posterior of rows × cells: each row has a total, and ``copies`` cells like each one. Rows of two are exact.

    ln P(x | n, a) = Σ_k K_k(τ) − τn + ln P_τ(Σc = n) − ln f(n; Σa),   K_k(τ) = ln Σ_c f(c; a_k) e^{τc} P(x_k | c)
    Symbols: x values, n totals, a strength, τ tilt with Σ_k K_k′(τ) = n.
    Source: saddlepoint form of the Dirichlet-multinomial evidence, docs/explanation/estimate.md.
    Adjacency: none, this is post-processing.

    No count exceeds the total, so the likelihood above it may be replaced at will. Under much noise it is held
    constant there: then the sum is exactly negative binomial where the release says nothing.
    """
    strength = np.broadcast_to(strength, values.shape)
    totals = np.maximum(totals, 1e-9)
    if values.shape[1] == 2 and (copies == 1).all():
        return pair_posterior(noise, values, strength=strength, totals=totals, size=size)
    all_strength = (copies * strength).sum(axis=-1)
    limit = np.ceil(totals * (8 + NEGLIGIBLE / all_strength))[:, None] + size
    start = np.log(totals / (totals + all_strength))
    nodes, spans, log_mass, tilt = _tilted(noise, values, strength, totals, copies, limit, start, size)
    mass, log_sum = normalised(log_mass)
    mean, variance = moments(nodes, mass)
    log_evidence = (
        (copies * log_sum).sum(axis=-1)
        - tilt * totals
        + log_total(totals, (copies * mean).sum(axis=-1), (copies * variance).sum(axis=-1))
        - log_prior(totals, all_strength)
    )
    return CellPosterior(nodes=nodes, spans=spans, mass=mass, mean=mean, variance=variance, log_evidence=log_evidence)


def _tilted(
    noise: Noise,
    values: Floats,
    strength: Floats,
    totals: Floats,
    copies: Floats,
    limit: Floats,
    tilt: Floats,
    size: int,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Nodes, their spans, unnormalised log masses, and tilts: ranges and tilts are refitted in turn until both hold."""
    center = np.maximum(noise.center(values), 0.0)
    spread = noise.spread(center)
    ceiling = np.where(spread > FROZEN * totals[:, None], totals[:, None], np.inf)
    lower = np.minimum(np.floor(np.maximum(noise.center(values) - 8 * spread, 0)), np.maximum(limit - 2 * size, 0))
    lower = np.where(lower < center / 8, 0.0, lower)
    upper = np.minimum(np.ceil(center + 8 * spread + 2), limit)
    nodes, spans, base = (np.empty((*values.shape, size)) for _ in range(3))
    stale = np.ones(values.shape, dtype=bool)
    reached, tries = False, 0
    for _ in range(MOST_PASSES):
        if stale.any():
            at, span = grid(lower[stale], upper[stale], size)
            allowed = np.minimum(at, ceiling[stale][..., None])
            likelihood = noise.take((stale,), values.shape).log_likelihood(values[stale], allowed)
            nodes[stale], spans[stale] = at, span
            base[stale] = np.log(span) + log_prior(at, strength[stale][..., None]) + likelihood
        elif reached or tries == MOST_TRIES:
            break
        else:
            tries += 1
            change, reached = tilt_change(nodes, base + tilt[:, None, None] * nodes, totals, copies)
            tilt = tilt + change
        lower, upper, stale = range_of_mass(lower, upper, limit, nodes, base + tilt[:, None, None] * nodes)
        reached = reached and not stale.any()
    return nodes, spans, base + tilt[:, None, None] * nodes, tilt


def conditioned(cells: CellPosterior, totals: Floats, copies: Floats) -> CellPosterior:
    """The marginal law of each count given that the row adds up to its total.

    Each law is multiplied by the law of the sum of the other cells. What the means then still lack of the total is
    shared out in proportion to the variances, as a tilt would share it.
    """
    if cells.conditioned:
        return cells
    total_variance = (copies * cells.variance).sum(axis=-1, keepdims=True)
    rest = np.maximum((copies * cells.mean).sum(axis=-1, keepdims=True) - cells.mean, 0.0)
    rest_variance = np.maximum(total_variance - cells.variance, 0.0)
    factor = log_total(totals[:, None, None] - cells.nodes, rest[..., None], rest_variance[..., None])
    with np.errstate(divide="ignore"):
        mass, _ = normalised(np.log(cells.mass) + np.maximum(factor, -1e3))
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
        conditioned=True,
    )
