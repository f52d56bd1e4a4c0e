"""The normal law in double precision.

Small jobs come through here without scipy.special, which takes as long to load as Python, numpy and DuckDB together.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dpbayes._checks import Floats

SERIES_FROM = 25.0
"""From here on seven terms of the asymptotic series of erfcx leave less than a rounding; erfc underflows at 26.5."""

ONE_BY_ONE = 200_000
"""So many quantiles are computed in the time that scipy takes to load; a process that asks for more loads it."""

_SPLIT = 2.0**27 + 1.0
_QUANTILE = NormalDist().inv_cdf
_asked = [0]


def quantile(probability: float) -> float:
    """Φ⁻¹(p), right to a few roundings for every p in (0, 1), and infinite at its ends.

    >>> round(quantile(0.975), 6), quantile(1.0)
    (1.959964, inf)
    """
    if 0.0 < probability < 1.0:
        return _QUANTILE(probability)
    return math.copysign(math.inf, probability - 0.5) if probability in (0.0, 1.0) else math.nan


def quantiles(probabilities: Floats) -> Floats:
    """Φ⁻¹ of each of an array; one by one or by scipy, which differ by a few roundings."""
    _asked[0] += probabilities.size
    if _asked[0] <= ONE_BY_ONE:
        return np.array([quantile(each) for each in probabilities.tolist()], dtype=np.float64)
    from scipy.special import ndtri

    return np.asarray(ndtri(probabilities))


def erfcx(x: float) -> float:
    """exp(x²)·erfc(x) for x > −26, right to a few roundings.

    It is exp(h)·(1 + l)·erfc(x), where h + l = x² without rounding; beyond 25, where erfc underflows, it is
    (1 − 1/(2x²) + 3/(2x²)² − 15/(2x²)³ + …)/(x·√π).

    Source: [Dekker71] for the square in two parts; [AS64] 7.1.23 for the series.
    Adjacency: none, this is a function of numbers.

    >>> round(erfcx(1.0), 12), round(erfcx(1e6) * 1e6, 12)
    (0.427583576156, 0.564189583547)
    """
    if x > SERIES_FROM:
        step, term, total = 0.5 / (x * x), 1.0, 1.0
        for odd in range(1, 15, 2):
            term *= -odd * step
            total += term
        return total / (x * math.sqrt(math.pi))
    big = x * _SPLIT
    head = big - (big - x)
    tail = x - head
    square = x * x
    rest = ((head * head - square) + 2.0 * head * tail) + tail * tail
    return math.exp(square) * (1.0 + rest) * math.erfc(x)
