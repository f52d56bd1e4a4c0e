"""Integer noise: OpenDP's samplers for releases, numpy ones of the same law for seeded experiments.

OpenDP's modules are imported one by one: its prelude would load scikit-learn, pandas and polars, for seconds.
"""

from __future__ import annotations

import math

import numpy as np

from dpbayes._checks import Ints


def gaussian(counts: Ints, sigma: float, rng: np.random.Generator | None) -> Ints:
    """Counts plus discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²)."""
    if rng is not None:
        return counts + _seeded_gaussian(counts.shape, sigma, rng)
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l2_distance(T="f64")
    return _release(measurements.make_gaussian(*space, sigma), counts)


def laplace(counts: Ints, scale: float, rng: np.random.Generator | None) -> Ints:
    """Counts plus discrete Laplace noise, P[k] ∝ exp(−|k|/scale)."""
    if rng is not None:
        return counts + _seeded_laplace(counts.shape, scale, rng)
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64")
    return _release(measurements.make_laplace(*space, scale), counts)


def _release(measurement: object, counts: Ints) -> Ints:
    noisy = measurement(counts.ravel().tolist())  # type: ignore[operator]  # OpenDP ships no types
    return np.asarray(noisy, dtype=np.int64).reshape(counts.shape)


def _seeded_laplace(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> Ints:
    """The difference of two geometric variables."""
    leave = -math.expm1(-1.0 / scale)
    return np.asarray(rng.geometric(leave, shape) - rng.geometric(leave, shape), dtype=np.int64)


def _seeded_gaussian(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Ints:
    """Rejection from discrete Laplace noise.

    Source: [CKS20] algorithm 3, in floating point.
    """
    noise = np.empty(math.prod(shape), dtype=np.int64)
    scale = math.floor(sigma) + 1.0
    open_cells = np.arange(noise.size)
    while open_cells.size:
        proposal = _seeded_laplace((open_cells.size,), scale, rng)
        excess = np.abs(proposal) - sigma**2 / scale
        accepted = rng.random(open_cells.size) < np.exp(-(excess**2) / (2.0 * sigma**2))
        noise[open_cells[accepted]] = proposal[accepted]
        open_cells = open_cells[~accepted]
    return noise.reshape(shape)
