"""Find the points of a lattice that matter for a one-peaked density of one or two unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable

Point = tuple[float, ...]

DROP = 6.5
"""Points e^6.5 times lower than the peak are left out."""

MOST_POINTS = 300
"""A walk ends after so many points; a peak has a few dozen."""


def explore(
    log_density: Callable[[Point], float], *, start: Point, steps: Point, smallest: Point, largest: Point
) -> tuple[list[Point], float]:
    """Points around the peak of a density, evenly spaced, and the volume of each: sums over them are integrals.

    The step along each axis is fitted to the width of the peak, between ``smallest`` and ``largest``.
    """
    known: dict[Point, float] = {}

    def density(point: Point) -> float:
        if point not in known:
            known[point] = log_density(point)
        return known[point]

    for _ in range(3):
        peak = _climb(density, start, steps)
        fitted = tuple(
            _fitted_step(density, peak, axis, *limits)
            for axis, limits in enumerate(zip(steps, smallest, largest, strict=True))
        )
        if fitted == steps:
            break
        start, steps = peak, fitted
    return _flood(density, peak, steps), math.prod(steps)


def _moved(point: Point, axis: int, by: float) -> Point:
    return (*point[:axis], point[axis] + by, *point[axis + 1 :])


def _climb(density: Callable[[Point], float], point: Point, steps: Point) -> Point:
    """Go uphill to a point whose neighbours along the axes are not higher."""
    for _ in range(MOST_POINTS):
        neighbours = [_moved(point, axis, side * step) for axis, step in enumerate(steps) for side in (1, -1)]
        best = max(neighbours, key=density)
        if density(best) <= density(point):
            break
        point = best
    return point


def _fitted_step(
    density: Callable[[Point], float], peak: Point, axis: int, step: float, smallest: float, largest: float
) -> float:
    """A step of one standard deviation or so: the density falls by a factor e^−0.3 to e^−1.2."""
    for _ in range(MOST_POINTS):
        falls = [density(peak) - density(_moved(peak, axis, side * step)) for side in (1, -1)]
        inside = [fall for fall in falls if math.isfinite(fall)]
        fall = sum(inside) / len(inside) if inside else math.inf
        if fall > 1.2 and step / 2 >= smallest:
            halvings = 1 if math.isinf(fall) else math.ceil(0.5 * math.log2(fall / 1.2))
            step = max(step / 2**halvings, smallest)
        elif fall < 0.3 and 2 * step <= largest:
            step *= 2
        else:
            break
    return step


def _flood(density: Callable[[Point], float], peak: Point, steps: Point) -> list[Point]:
    """The points connected to the peak that are not negligible."""

    def at(index: Point) -> Point:
        return tuple(x + i * step for x, i, step in zip(peak, index, steps, strict=True))

    origin = (0.0,) * len(steps)
    heights = {origin: density(peak)}
    frontier = [origin]
    while frontier and len(heights) < MOST_POINTS:
        index = frontier.pop(0)
        for axis in range(len(steps)):
            for side in (1, -1):
                neighbour = _moved(index, axis, side)
                if neighbour not in heights:
                    heights[neighbour] = density(at(neighbour))
                    if heights[neighbour] > max(heights.values()) - DROP:
                        frontier.append(neighbour)
    top = max(heights.values())
    return [at(index) for index, height in heights.items() if height > top - DROP]
