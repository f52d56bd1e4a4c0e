"""Laws of counts: the prior of one cell, the sum of several, and what a posterior of cells consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from dpbayes._checks import Floats


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
    conditioned: bool = False
    """Whether each law already takes into account that the row adds up to its total."""


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
