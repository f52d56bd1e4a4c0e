"""Draws of noisy tables, for the tests of estimates. Not private: ordinary random numbers."""

from __future__ import annotations

import numpy as np

from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise


def drawn(counts, noise, rng):
    """One release of the counts, from the exact law of the noise."""
    counts = np.asarray(counts)
    if isinstance(noise, GaussianNoise):
        reach = int(12 * noise.sigma + 5)
        steps = np.arange(-reach, reach + 1)
        mass = np.exp(-0.5 * (steps / noise.sigma) ** 2)
        return counts + rng.choice(steps, p=mass / mass.sum(), size=counts.shape)
    if isinstance(noise, LaplaceNoise):
        stop = -np.expm1(-1 / noise.scale)
        return counts + rng.geometric(stop, counts.shape) - rng.geometric(stop, counts.shape)
    gammas = rng.standard_gamma(noise.weight * counts + noise.concentration)
    if isinstance(noise, GammaNoise) and noise.normalised:
        return gammas / gammas.sum(axis=-1, keepdims=True)
    return gammas


def divergence(truth, estimate):
    """Σ p ln(p/q) over the last axis, then averaged."""
    return float(np.sum(truth * np.log(np.maximum(truth, 1e-300) / estimate), axis=-1).mean())


def inside(truth, interval):
    """The share of cells whose truth lies in its interval."""
    return float(np.mean((truth >= interval.lower) & (truth <= interval.upper)))
