"""Rows of two cells: one count is the total less the other, so that a single sum over counts is exact."""

from __future__ import annotations

import numpy as np

from benchmarks.first.laws import CellPosterior, log_prior
from benchmarks.first.noise import Noise
from benchmarks.first.quadrature import grid, moments, normalised, range_of_mass
from dpbayes._checks import Floats

MOST_PASSES = 40
"""Ranges are refitted at most so often; three times is usual."""

NOTHING = -1e30
"""The log mass of a node outside the range."""


def pair_posterior(noise: Noise, values: Floats, *, strength: Floats, totals: Floats, size: int) -> CellPosterior:
    """Posterior of rows × 2 cells.

    P(c | x, n) ∝ f(c; a₁) f(n − c; a₂) P(x₁ | c) P(x₂ | n − c)
    Symbols: c count of the first cell, n totals, a strength, x values, f as in ``log_prior``.
    Source: docs/explanation/estimate.md.
    Adjacency: none, this is post-processing.

    Each half of the range has nodes of its own, counted from its own end: the law may be steep at both.
    """
    other_noise = noise.take((slice(None), [1, 0]), values.shape)
    other_values, other_strength = values[:, ::-1], strength[:, ::-1]
    half = np.stack([np.floor(totals / 2), np.ceil(totals / 2) - 1], axis=1)
    lower, upper = np.zeros(values.shape), np.maximum(half, 0.0)
    for _ in range(MOST_PASSES):
        nodes, spans = grid(lower, upper, size)
        spans = np.where(nodes == half[..., None], (spans + 1) / 2, spans)
        others = np.maximum(totals[:, None, None] - nodes, 0.0)
        log_mass = (
            np.log(spans)
            + log_prior(nodes, strength[..., None])
            + log_prior(others, other_strength[..., None])
            + noise.log_likelihood(values, nodes)
            + other_noise.log_likelihood(other_values, others)
        )
        log_mass = np.where(nodes <= half[..., None], log_mass, NOTHING)
        lower, upper, stale = range_of_mass(lower, upper, half, nodes, log_mass)
        if not stale.any():
            break
    nodes = np.minimum(nodes, totals[:, None, None])
    first = np.concatenate([nodes[:, 0], totals[:, None] - nodes[:, 1]], axis=-1)
    mass, log_sum = normalised(log_mass.reshape(len(values), -1))
    both = np.stack([first, totals[:, None] - first], axis=1)
    mass = np.stack([mass, mass], axis=1)
    mean, variance = moments(both, mass)
    return CellPosterior(
        nodes=both,
        spans=np.stack([spans.reshape(len(values), -1)] * 2, axis=1),
        mass=mass,
        mean=mean,
        variance=variance,
        log_evidence=log_sum - log_prior(totals, strength.sum(axis=-1)),
        conditioned=True,
    )
