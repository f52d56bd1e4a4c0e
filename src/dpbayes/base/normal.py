"""The normal law in double precision.

Small jobs come through here without scipy.special, which takes as long to load as Python, numpy and DuckDB together.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dpbayes.base.checks import Floats

_CENTRE, _TAIL, _FAR_TAIL = (
    tuple(tuple(float(number) for number in line.split()) for line in block)
    for block in (
        (
            "2509.0809287301226727 33430.575583588128105 67265.770927008700853 45921.953931549871457 "
            "13731.693765509461125 1971.5909503065514427 133.14166789178437745 3.3871328727963666080",
            "5226.4952788528545610 28729.085735721942674 39307.895800092710610 21213.794301586595867 "
            "5394.1960214247511077 687.18700749205790830 42.313330701600911252 1",
        ),
        (
            "7.7454501427834140764e-4 .0227238449892691845833 .241780725177450611770 1.27045825245236838258 "
            "3.64784832476320460504 5.76949722146069140550 4.63033784615654529590 1.42343711074968357734",
            "1.05075007164441684324e-9 5.475938084995344946e-4 .0151986665636164571966 .148103976427480074590 "
            ".689767334985100004550 1.67638483018380384940 2.05319162663775882187 1",
        ),
        (
            "2.01033439929228813265e-7 2.71155556874348757815e-5 .00124266094738807843860 .0265321895265761230930 "
            ".296560571828504891230 1.78482653991729133580 5.46378491116411436990 6.65790464350110377720",
            "2.04426310338993978564e-15 1.4215117583164458887e-7 1.8463183175100546818e-5 7.868691311456132591e-4 "
            ".0148753612908506148525 .136929880922735805310 .599832206555887937690 1",
        ),
    )
)
"""Numerators and denominators of [Wichura88], highest power first."""

_QUANTILE = NormalDist().inv_cdf


def quantile(probability: float) -> float:
    """Φ⁻¹(p), right to a few roundings for every p in (0, 1), and infinite at its ends.

    >>> round(quantile(0.975), 6), quantile(1.0)
    (1.959964, inf)
    """
    if 0.0 < probability < 1.0:
        return _QUANTILE(probability)
    return math.copysign(math.inf, probability - 0.5) if probability in (0.0, 1.0) else math.nan


def quantiles(probabilities: Floats) -> Floats:
    """Φ⁻¹ of each of an array, by the rational functions that ``quantile`` has too.

    q·R(0.180625 − q²), q = p − ½, where |q| ≤ 0.425; else ∓R(√(−ln min(p, 1 − p)) − c)
    Symbols: R a quotient of two polynomials of degree seven for each range; c = 1.6 or, beyond 5, 5.
    Source: [Wichura88], algorithm AS 241.
    Adjacency: none, this is a function of numbers.

    >>> quantiles(np.array([0.025, 0.5])).round(6).tolist()
    [-1.959964, 0.0]
    """
    inside = (probabilities > 0.0) & (probabilities < 1.0)
    p = np.where(inside, probabilities, 0.5)
    q = p - 0.5
    root = np.sqrt(-np.log(np.minimum(p, 1.0 - p)))
    tail = np.where(root <= 5.0, _quotient(_TAIL, root - 1.6), _quotient(_FAR_TAIL, root - 5.0))
    found = np.where(np.abs(q) <= 0.425, q * _quotient(_CENTRE, 0.180625 - q * q), np.copysign(tail, q))
    ends = np.where(probabilities == 0.0, -np.inf, np.where(probabilities == 1.0, np.inf, np.nan))
    return np.where(inside, found, ends)


def _quotient(polynomials: tuple[tuple[float, ...], ...], at: Floats) -> Floats:
    above, below = (_polynomial(each, at) for each in polynomials)
    return above / below


def _polynomial(coefficients: tuple[float, ...], at: Floats) -> Floats:
    found = np.full_like(at, coefficients[0])
    for each in coefficients[1:]:
        found *= at
        found += each
    return found


def erfcx(x: float) -> float:
    """exp(x²)·erfc(x) for x > −26, right to a few roundings.

    It is exp(h)·(1 + l)·erfc(x), where h + l = x² without rounding; beyond 25, as erfc underflows at 26.5, it is
    (1 − 1/(2x²) + 3/(2x²)² − 15/(2x²)³ + …)/(x·√π), of which seven terms leave less than a rounding.

    Source: [Dekker71] for the square in two parts; [AS64] 7.1.23 for the series.
    Adjacency: none, this is a function of numbers.

    >>> round(erfcx(1.0), 12), round(erfcx(1e6) * 1e6, 12)
    (0.427583576156, 0.564189583547)
    """
    if x > 25.0:
        step, term, total = 0.5 / (x * x), 1.0, 1.0
        for odd in range(1, 15, 2):
            term *= -odd * step
            total += term
        return total / (x * math.sqrt(math.pi))
    big = x * (2.0**27 + 1.0)
    head = big - (big - x)
    tail = x - head
    square = x * x
    rest = ((head * head - square) + 2.0 * head * tail) + tail * tail
    return math.exp(square) * (1.0 + rest) * math.erfc(x)
