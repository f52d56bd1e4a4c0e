"""Sums over counts, for many cells at once: nodes that stand for ranges of counts, and the tilts of whole rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpbayes._checks import Floats

Bools = NDArray[np.bool_]

HEAD = 8
"""A long range that starts at zero keeps its first counts as nodes: the prior is not smooth there."""

NEGLIGIBLE = 24.0
"""A node is outside the range of a cell when its mass is e⁻²⁴ of the largest."""

MOST_STEPS = 40
"""Steps of Newton's method between two refits; four are usual."""


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


def normalised(log_mass: Floats) -> tuple[Floats, Floats]:
    """Masses that sum to one over the last axis, and the logarithm of what they were divided by."""
    top = log_mass.max(axis=-1, keepdims=True)
    mass = np.exp(np.maximum(log_mass - top, -690.0))
    total = mass.sum(axis=-1, keepdims=True)
    mass /= total
    return mass, (top + np.log(total))[..., 0]


def tilt_change(nodes: Floats, log_mass: Floats, totals: Floats, copies: Floats) -> tuple[Floats, bool]:
    """What to add to the tilt of each row so that its means add up to its total; and whether they then do.

    Newton's method on logarithms, in a bracket as wide as the nodes allow: no cell may move by more than three
    standard deviations.
    """
    start, variance = moments(nodes, normalised(log_mass)[0])
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
        weight, _ = normalised(log_mass[rows] + change[rows][:, None, None] * offset)
        moved = np.einsum("...j,...j->...", weight, offset)
        mean = start[rows] + moved
        variance = np.einsum("...j,...j,...j->...", weight, offset, offset) - moved**2
    return change, False


def range_of_mass(
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
