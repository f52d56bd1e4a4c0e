"""What experiments and benchmarks make of a single released table: the noise-aware estimate, and the fair baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.inference import Measurement, Posterior, TableEstimate
from dpbayes.release.estimates import measured_noise

Floats = NDArray[np.float64]


def posterior(values: ArrayLike, mechanism: object, records: int | None) -> Posterior:
    """The engine of releases, on one table of cells that a mechanism drew."""
    drawn = np.asarray(values, dtype=np.float64)
    measured = Measurement(axes=("cell",), values=drawn, noise=measured_noise(mechanism))
    return Posterior([measured], {"cell": drawn.size}, records=records)


def noise_aware(values: ArrayLike, mechanism: object, records: int) -> Floats:
    """The estimated counts of one table."""
    return posterior(values, mechanism, records).settled.counts[("cell",)]


def with_intervals(values: ArrayLike, mechanism: object, records: int) -> TableEstimate:
    """Counts, shares of the records and shares of the population, with 95 % intervals."""
    return posterior(values, mechanism, records).estimate(("cell",))


def clip_and_smooth(values: ArrayLike, constant: float) -> Floats:
    """p_k = (max(x_k, 0) + t)/Σ_j (max(x_j, 0) + t), within the last axis: what one would do without a model.

    The papers' own baselines have t near zero.
    """
    smoothed = np.maximum(np.asarray(values, dtype=np.float64), 0.0) + constant
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))
