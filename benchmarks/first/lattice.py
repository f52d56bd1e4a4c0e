"""Many cells, few different ones: work on representatives, then spread the answers over the cells.

Cells with the same released value, prior share and concentration have the same posterior. Where a table has too many
different ones, a lattice stands for them: the fit sees each cell as a weighted mean of the lattice points around it,
and the cell's answer is the same weighted mean of their answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.first.noise import GammaNoise, Noise
from dpbayes._checks import Floats, Ints

MOST_VALUES = 256
MOST_SHARES = 32
"""Up to so many different values and shares are kept as they are."""

STEP = 0.2
"""Distance of lattice values, in standard deviations of the noise …"""

KNEE = 30.0
"""… up to this many of them; from there on it grows in proportion."""

LOG_STEP = 0.1
"""Distance of lattice points in the logarithm of shares and concentrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Representatives:
    """Different cells, how many real cells each one stands for, and the way back."""

    values: Floats
    shares: Floats
    noise: Noise
    copies: Floats
    corners: Ints
    """For each real cell the representatives around it: shape (corners, cells)."""
    weights: Floats
    """Their weights, which add up to one for each cell."""

    def spread(self, answers: Floats) -> Floats:
        """Answers for the real cells."""
        return np.asarray(np.einsum("ij,ij->j", answers[self.corners], self.weights))

    def spread_shares(self, answers: Floats) -> Floats:
        """The same for shares, which differ by orders of magnitude: on the scale of logarithms."""
        logarithms = self.spread(np.log(np.maximum(answers, 1e-300)))
        return np.where(logarithms < -600, 0.0, np.exp(logarithms))


def representatives(values: Floats, shares: Floats, noise: Noise) -> Representatives:
    """The different cells among the given ones, or a lattice around them if there are too many."""
    if values.size <= 2:
        return _themselves(values, shares, noise)
    few = values.size <= MOST_VALUES
    concentration = np.asarray(noise.concentration if isinstance(noise, GammaNoise) else 1.0)
    axes = [
        _axis(noise.center(values), MOST_VALUES, lambda low, high: _value_lattice(noise, low, high)),
        _axis(shares, MOST_VALUES if few else MOST_SHARES, _log_lattice),
        _axis(np.broadcast_to(concentration, values.shape), MOST_VALUES if few else MOST_SHARES, _log_lattice),
    ]
    keys, weights = [np.zeros(values.size, dtype=np.int64)], [np.ones(values.size)]
    for points, lower, fraction in axes:
        sides = [(lower, 1 - fraction), (lower + 1, fraction)] if fraction.any() else [(lower, 1.0)]
        keys = [key * points.size + side for key in keys for side, _ in sides]
        weights = [weight * part for weight in weights for _, part in sides]
    found, corners = np.unique(np.stack(keys), return_inverse=True)
    stacked = np.stack(weights)
    if found.size > values.size:
        return _themselves(values, shares, noise)
    rest, third = np.divmod(found, axes[2][0].size)
    first, second = np.divmod(rest, axes[1][0].size)
    if isinstance(noise, GammaNoise):
        noise = replace(noise, concentration=axes[2][0][third])
    return Representatives(
        values=noise.released(axes[0][0][first]),
        shares=axes[1][0][second],
        noise=noise,
        copies=np.asarray(np.bincount(corners.ravel(), stacked.ravel(), found.size), dtype=np.float64),
        corners=corners.reshape(stacked.shape),
        weights=stacked,
    )


def _themselves(values: Floats, shares: Floats, noise: Noise) -> Representatives:
    """Every cell represents itself."""
    return Representatives(
        values=values,
        shares=shares,
        noise=noise,
        copies=np.ones(values.size),
        corners=np.arange(values.size)[None],
        weights=np.ones((1, values.size)),
    )


def _axis(column: Floats, most: int, lattice: Callable[[float, float], Floats]) -> tuple[Floats, Ints, Floats]:
    """Points along one axis, the point below each cell, and how far the cell is on its way to the next."""
    points, lower = np.unique(column, return_inverse=True)
    if points.size <= most:
        return points, lower, np.zeros(column.size)
    points = lattice(float(points[0]), float(points[-1]))
    lower = np.clip(np.searchsorted(points, column, side="right") - 1, 0, points.size - 2)
    return points, lower, np.clip((column - points[lower]) / np.diff(points)[lower], 0.0, 1.0)


def _value_lattice(noise: Noise, low: float, high: float) -> Floats:
    ends = np.arcsinh(noise.coordinate(np.array([low, high])) / KNEE) * (KNEE / STEP)
    index = np.arange(np.floor(ends[0]) - 1, np.ceil(ends[1]) + 2)
    return np.unique(noise.center_at(KNEE * np.sinh(index * (STEP / KNEE))))


def _log_lattice(low: float, high: float) -> Floats:
    index = np.arange(np.floor(np.log(low) / LOG_STEP), np.ceil(np.log(high) / LOG_STEP) + 2)
    return np.exp(index * LOG_STEP)
