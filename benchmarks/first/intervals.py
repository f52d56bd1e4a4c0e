"""Intervals of mixtures: of counts on nodes, and of probabilities that are Beta given the count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, logit, ndtri

from dpbayes._checks import Floats, Ints

Bools = NDArray[np.bool_]

NEAR = 0.2
"""One-sided intervals are tried where an end of the central one is so much nearer to the boundary than the other."""

CLOSE = 2e-3
"""Quantiles are solved to this accuracy, in normal scores of their probability."""

FAR = 6.0
"""A mixture so many standard deviations away from zero and one is described by one Beta law with its moments."""

FARTHEST = -690.0
"""Shares with a smaller logit are zero."""

MOST_STEPS = 60
"""Of the solver; ten are usual."""

ATOMS = 12
"""A mixture of Beta laws with one strength of the prior is first gathered into at most so many."""


def node_interval(nodes: Floats, spans: Floats, mass: Floats, level: float, top: Floats) -> tuple[Floats, Floats]:
    """Ends of the interval of each cell, from arrays of shape (cells, nodes) in any order.

    A node spreads its mass over its span; a span of zero is a single point. So the distribution function is made of
    straight lines and jumps, and is inverted exactly. Nothing lies above ``top``.
    """
    half, spreads = spans / 2, spans > 0
    density = np.where(spreads, mass / np.where(spreads, spans, 1.0), 0.0)
    point = np.where(spreads, 0.0, mass)
    places = np.concatenate([nodes - half, nodes + half], axis=-1)
    order = np.argsort(places, axis=-1)
    changes = np.concatenate([density, -density], axis=-1), np.concatenate([point, np.zeros_like(point)], axis=-1)
    places, changes_of_slope, jumps = (np.take_along_axis(array, order, axis=-1) for array in (places, *changes))
    slope = np.maximum(np.cumsum(changes_of_slope, axis=-1), 0.0)
    climbs = slope[:, :-1] * np.diff(places, axis=-1)
    reached = np.cumsum(jumps, axis=-1)
    reached[:, 1:] += np.cumsum(climbs, axis=-1)

    def quantile(probability: float, cells: Bools) -> Floats:
        crossed = np.clip((reached[cells] < probability).sum(axis=-1), 1, places.shape[-1] - 1)[:, None]
        arrays = (array[cells] for array in (places, reached, slope))
        place, below, rise = (np.take_along_axis(array, crossed - 1, axis=-1)[:, 0] for array in arrays)
        end = np.take_along_axis(places[cells], crossed, axis=-1)[:, 0]
        missing = np.maximum(probability - below, 0.0)
        return np.asarray(np.clip(place + missing / np.maximum(rise, 1e-300), 0.0, np.maximum(end, 0.0)))

    return _interval(quantile, level, top)


def share_interval(parts: list[tuple[Floats, Floats, Floats]], level: float) -> tuple[Floats, Floats]:
    """Ends of the interval of mixtures of Beta(first, second): parts with arrays of shape (cells, components)."""
    gathered = [_gathered(*part) for part in parts]
    first, second, mass = (np.concatenate(arrays, axis=-1) for arrays in zip(*gathered, strict=True))

    total = first + second
    mean = (mass * first / total).sum(axis=-1)
    square = (mass * first * (first + 1) / (total * (total + 1))).sum(axis=-1)
    variance = np.maximum(square - mean**2, 1e-30)
    far = np.minimum(mean, 1 - mean) > FAR * np.sqrt(variance)
    sharpness = mean * (1 - mean) / variance - 1

    def quantile(probability: float, cells: Bools) -> Floats:
        ends = np.empty(far.size)
        alike, mixed = cells & far, cells & ~far
        ends[alike] = betaincinv((mean * sharpness)[alike], ((1 - mean) * sharpness)[alike], probability)
        ends[mixed] = _beta_quantile(first[mixed], second[mixed], mass[mixed], probability)
        return ends[cells]

    return _interval(quantile, level, np.ones(far.size))


def _interval(quantile: Callable[[float, Bools], Floats], level: float, top: Floats) -> tuple[Floats, Floats]:
    """The shortest of three intervals of the same mass: central, down to zero, up to the top.

    Most cells get the central one. A cell that may well be empty gets one that says so, since a law that rises
    towards zero has no lower end worth naming.
    """
    tail = (1 - level) / 2
    everywhere = np.ones(top.shape, dtype=bool)
    lower, upper = quantile(tail, everywhere), quantile(1 - tail, everywhere)
    floor = lower < NEAR * upper
    ceiling = top - upper < NEAR * (top - lower)
    if floor.any():
        end = quantile(level, floor)
        shorter = end < (upper - lower)[floor]
        lower[floor], upper[floor] = np.where(shorter, 0.0, lower[floor]), np.where(shorter, end, upper[floor])
    if ceiling.any():
        start = quantile(1 - level, ceiling)
        shorter = top[ceiling] - start < (upper - lower)[ceiling]
        lower[ceiling] = np.where(shorter, start, lower[ceiling])
        upper[ceiling] = np.where(shorter, top[ceiling], upper[ceiling])
    upper = np.minimum(upper, top)
    return np.minimum(lower, upper), upper


def _gathered(first: Floats, second: Floats, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """The same mixtures with fewer components: those of nearly the same shape are merged.

    The scale is logarithmic for small shapes and follows the standard deviation of large ones.
    """
    cells = first.shape[0]
    scale = np.where(first < 1, np.log(first), 2 * (np.sqrt(first) - 1))
    material = mass > 1e-7
    low = np.where(material, scale, np.inf).min(axis=-1, keepdims=True)
    high = np.where(material, scale, -np.inf).max(axis=-1, keepdims=True)
    place = np.clip((scale - low) / np.maximum(high - low, 1e-9) * ATOMS, 0, ATOMS - 1).astype(np.int64)
    key = (place + ATOMS * np.arange(cells)[:, None]).ravel()

    def collect(amount: Floats) -> Floats:
        collected = np.bincount(key, weights=amount.ravel(), minlength=cells * ATOMS)
        return np.asarray(collected, dtype=np.float64).reshape(cells, ATOMS)

    total = collect(mass)
    full = total > 0
    first, second = (
        np.where(full, collect(mass * shape) / np.where(full, total, 1.0), 1.0) for shape in (first, second)
    )
    return first, second, total


def _beta_quantile(first: Floats, second: Floats, mass: Floats, probability: float) -> Floats:
    """Solve Σ mass·I_t(first, second) = probability for the logit of t, by the Illinois method.

    The quantile of a mixture lies between those of its components.
    """
    if first.shape[0] == 0:
        return np.empty(0)
    cell, part = np.nonzero(mass > 1e-4)
    first, second, mass = first[cell, part], np.maximum(second[cell, part], 1e-9), mass[cell, part]
    mass = mass / np.bincount(cell, weights=mass)[cell]

    def gap(position: Floats, at: Ints) -> Floats:
        own = np.isin(cell, at) if at.size < position.size else slice(None)
        share = _share(position)[cell[own]]
        below = np.bincount(cell[own], mass[own] * betainc(first[own], second[own], share), position.size)[at]
        return np.asarray(ndtri(np.clip(below, 1e-300, 1 - 1e-16)) - ndtri(probability))

    ends = np.clip(logit(np.clip(betaincinv(first, second, probability), 1e-300, 1 - 1e-16)), FARTHEST - 1, 36.0)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    low, high = np.minimum.reduceat(ends, starts) - 1e-3, np.maximum.reduceat(ends, starts) + 1e-3
    left = np.arange(low.size)
    low_gap, high_gap = np.minimum(gap(low, left), -1e-9), np.maximum(gap(high, left), 1e-9)
    middle = (low * high_gap - high * low_gap) / (high_gap - low_gap)
    for _ in range(MOST_STEPS):
        found = gap(middle, left)
        unsolved = (np.abs(found) > CLOSE) & (high - low > 1e-12 * (1 + np.abs(low)))[left]
        left, found = left[unsolved], found[unsolved]
        if left.size == 0:
            break
        below, above = left[found < 0], left[found >= 0]
        low[below], low_gap[below], high_gap[below] = middle[below], found[found < 0], high_gap[below] / 2
        high[above], high_gap[above], low_gap[above] = middle[above], found[found >= 0], low_gap[above] / 2
        middle[left] = ((low * high_gap - high * low_gap) / (high_gap - low_gap))[left]
    return _share(middle)


def _share(position: Floats) -> Floats:
    """The inverse of the logit."""
    return np.where(position < FARTHEST, 0.0, 1 / (1 + np.exp(-np.maximum(position, FARTHEST))))
