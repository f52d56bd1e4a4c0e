"""How strong the prior is: two weak priors on its strength, and the walk over what the release says about it.

A table with d cells has p ~ Dirichlet(A·m), with A the strength and β = A/d the records per cell that it is worth.
Where the release tells A, priors on it hardly matter. Where noise hides it, no single choice serves both products:
a good estimate presumes an even table (shrink noise), an honest interval must allow for an uneven one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.first.explore import explore
from dpbayes._checks import Floats

LEAST = 0.05
MOST = 1e9
"""The strength of a table stays between these: at the ends one cell has all records, or p is m."""


FORGOTTEN = 3e-3
"""Settings with less weight can be left out."""


def log_beta_prime(value: float, *, first: float, second: float, scale: float) -> float:
    """v^a/(s + v)^(a+b), the density of ln v when v/(s + v) ~ Beta(a, b), its logarithm up to a constant

    Symbols: v value, a first, b second, s scale.
    Source: docs/explanation/estimate.md, products: the beta prime law.
    Adjacency: none, this is post-processing.
    """
    return first * math.log(value) - (first + second) * math.log(scale + value)


def log_prior_of_estimates(strength: float, cells: int) -> float:
    """β/(10+β) ~ Beta(1, 2): half of β lies below 4, where tables are uneven, half above."""
    return log_beta_prime(strength / cells, first=1.0, second=2.0, scale=10.0)


def log_prior_of_intervals(strength: float) -> float:
    """A/(50+A) ~ Beta(½, 2): leans towards few cells that hold nearly everything."""
    return log_beta_prime(strength, first=0.5, second=2.0, scale=50.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One possible strength and number of records, and how much it counts."""

    strength: float
    records: float
    shape: int
    """Which of the shapes offered."""
    weight: float
    """Posterior weight for estimates."""
    interval_weight: float
    """Posterior weight for intervals."""


def settings(
    log_evidences: Sequence[Callable[[float, float], float]],
    *,
    cells: int,
    records: float | None,
    guess: tuple[float, float] = (1.0, 1.0),
) -> list[Setting]:
    """The strengths that a release leaves possible; and the numbers of records, if ``records`` is not public.

    There is one evidence for each shape of the prior. All numbers of records are alike a priori; ``guess`` is the
    number of records and its standard deviation, from which the walk starts.
    """
    walks = [_walk(log_evidence, cells=cells, records=records, guess=guess) for log_evidence in log_evidences]
    heights = np.array([height for walk in walks for _, height in walk])
    weights = np.exp(heights - heights.max(axis=0))
    weights /= weights.sum(axis=0)
    points = [(*point, shape) for shape, walk in enumerate(walks) for point, _ in walk]
    return [
        Setting(
            strength=strength, records=total, shape=shape, weight=float(weight), interval_weight=float(interval_weight)
        )
        for (strength, total, shape), (weight, interval_weight) in zip(points, weights, strict=True)
    ]


def _walk(
    log_evidence: Callable[[float, float], float], *, cells: int, records: float | None, guess: tuple[float, float]
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Strengths with numbers of records, and the logarithms of their two weights, up to a constant of the release."""
    evidence: dict[tuple[float, ...], float] = {}

    def unpacked(point: tuple[float, ...]) -> tuple[float, float]:
        return math.exp(point[0]) * cells, records if records is not None else point[1]

    def log_priors(point: tuple[float, ...]) -> tuple[float, float]:
        strength, _ = unpacked(point)
        return log_prior_of_estimates(strength, cells), log_prior_of_intervals(strength)

    def log_density(point: tuple[float, ...]) -> float:
        strength, total = unpacked(point)
        if not LEAST <= strength <= MOST or total < 0:
            return -math.inf
        evidence[point] = log_evidence(strength, total)
        return evidence[point] + float(np.logaddexp(*log_priors(point)))

    if records is not None:
        points, volume = explore(log_density, start=(0.0,), steps=(1.0,), smallest=(0.02,), largest=(1.0,))
    else:
        step = max(round(guess[1] / 2), 1.0)
        points, volume = explore(
            log_density,
            start=(0.0, max(round(guess[0]), step)),
            steps=(1.0, step),
            smallest=(0.02, 1.0),
            largest=(1.0, math.inf),
        )
    found = []
    for point in points:
        for_estimates, for_intervals = log_priors(point)
        height = evidence[point] + math.log(volume)
        found.append((unpacked(point), (height + for_estimates, height + for_intervals)))
    return found


def relevant(found: list[Setting]) -> list[Setting]:
    """The settings without those that hardly count, with weights that again add up to one."""
    kept = np.array([[setting.weight, setting.interval_weight] for setting in found])
    kept = np.where(kept > FORGOTTEN, kept, 0.0)
    kept /= kept.sum(axis=0)
    return [
        replace(setting, weight=float(weight), interval_weight=float(interval_weight))
        for setting, (weight, interval_weight) in zip(found, kept, strict=True)
        if weight > 0 or interval_weight > 0
    ]


def typical(found: list[Setting]) -> Setting:
    """One setting in place of many: the geometric mean of the strengths, the mean number of records."""
    weights: Floats = np.array([setting.weight for setting in found])
    return Setting(
        strength=float(np.exp(weights @ np.log([setting.strength for setting in found]))),
        records=float(weights @ [setting.records for setting in found]),
        shape=found[int(weights.argmax())].shape,
        weight=1.0,
        interval_weight=1.0,
    )
