"""The fair baseline for experiments: what one would do with noisy counts without a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument


def clip_and_smooth(values: ArrayLike, constant: float) -> Floats:
    """p_k = (max(x_k, 0) + t)/Σ_j (max(x_j, 0) + t), within the last axis

    Symbols: x values, t constant.
    Source: docs/explanation/estimate.md; the papers' own baselines have t near zero.
    Adjacency: none, this is post-processing.

    >>> clip_and_smooth([7, -2, 1], 1.0).tolist()
    [0.7272727272727273, 0.09090909090909091, 0.18181818181818182]
    """
    _checks.positive("clip_and_smooth", constant=constant)
    counts = np.asarray(values, dtype=np.float64)
    if counts.ndim == 0 or counts.size == 0 or not np.isfinite(counts).all():
        raise InvalidArgument("clip_and_smooth: expected values as a non-empty array of finite numbers.")
    smoothed = np.maximum(counts, 0.0) + constant
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))
