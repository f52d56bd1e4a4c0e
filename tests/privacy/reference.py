"""Truth by brute precision: formulas that share nothing with the library, in mpmath where digits matter.

Parameters are taken as exact binary numbers, so that the last digit of a float is not an excuse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import gammaln

Floats = NDArray[np.float64]

DIGITS = 120
"""lnΓ(1e12) has 14 digits before the point and its second difference can start 34 after it."""

PROFILE_DIGITS = 60
"""Tails are computed relative to themselves; P[t > t*] − e^ε Q[t > t*] cancels four digits at α = 1e8."""


def exact_renyi(p: Sequence[object], q: Sequence[object], order: object) -> mp.mpf:
    """D_λ(Dirichlet(p) ‖ Dirichlet(q)) by the beta functions, ∞ outside its domain."""
    with mp.workdps(DIGITS):
        a, b, order = [mp.mpf(x) for x in p], [mp.mpf(x) for x in q], mp.mpf(order)
        mixed = [order * x + (1 - order) * y for x, y in zip(a, b, strict=True)]
        if min(mixed) <= 0:
            return mp.inf
        value = _log_beta(mixed) - order * _log_beta(a) - (1 - order) * _log_beta(b)
        return value / (order - 1)


def gamma_renyi(p: Sequence[object], q: Sequence[object], order: object) -> mp.mpf:
    """D_λ between products of gamma laws: the draw before it is normalised."""
    with mp.workdps(DIGITS):
        order, total = mp.mpf(order), mp.mpf(0)
        for x, y in zip(p, q, strict=True):
            a, b = mp.mpf(x), mp.mpf(y)
            mixed = order * a + (1 - order) * b
            if mixed <= 0:
                return mp.inf
            total += mp.loggamma(mixed) - order * mp.loggamma(a) - (1 - order) * mp.loggamma(b)
        return total / (order - 1)


def replaced_renyi(weight: object, first: object, second: object, order: object) -> mp.mpf:
    """The dominating pair of a replaced record: cell ``first`` gains and cell ``second`` loses."""
    with mp.workdps(DIGITS):
        r, a, b = mp.mpf(weight), mp.mpf(first), mp.mpf(second)
        return gamma_renyi([a + r, b], [a, b + r], order)


def added_renyi(weight: object, concentration: object, order: object) -> mp.mpf:
    """D_λ(Gamma(α + r) ‖ Gamma(α))."""
    with mp.workdps(DIGITS):
        return gamma_renyi([mp.mpf(concentration) + mp.mpf(weight)], [concentration], order)


def removed_renyi(weight: object, concentration: object, order: object) -> mp.mpf:
    """D_λ(Gamma(α) ‖ Gamma(α + r))."""
    with mp.workdps(DIGITS):
        return gamma_renyi([concentration], [mp.mpf(concentration) + mp.mpf(weight)], order)


def replaced_delta(weight: object, first: object, second: object, epsilon: object) -> mp.mpf:
    """δ(ε) = P[t > t*] − e^ε Q[t > t*], t ~ Beta(first + r, second) under P, Beta(first, second + r) under Q."""
    with mp.workdps(PROFILE_DIGITS):
        r, a, b, epsilon = (mp.mpf(x) for x in (weight, first, second, epsilon))
        constant = mp.loggamma(a) - mp.loggamma(a + r) + mp.loggamma(b + r) - mp.loggamma(b)
        odds = mp.e ** ((epsilon - constant) / r)  # of t*, because the loss is r·logit(t) + constant
        below = 1 / (1 + odds)
        return beta_cdf(below, b, a + r) - mp.e**epsilon * beta_cdf(below, b + r, a)


def added_delta(weight: object, concentration: object, epsilon: object) -> mp.mpf:
    """δ(ε) of Gamma(α + r) against Gamma(α): one record added."""
    with mp.workdps(PROFILE_DIGITS):
        r, a, epsilon = (mp.mpf(x) for x in (weight, concentration, epsilon))
        threshold = mp.e ** ((epsilon + mp.loggamma(a + r) - mp.loggamma(a)) / r)
        return gamma_tail(a + r, threshold) - mp.e**epsilon * gamma_tail(a, threshold)


def removed_delta(weight: object, concentration: object, epsilon: object) -> mp.mpf:
    """δ(ε) of Gamma(α) against Gamma(α + r): one record removed."""
    with mp.workdps(PROFILE_DIGITS):
        r, a, epsilon = (mp.mpf(x) for x in (weight, concentration, epsilon))
        threshold = mp.e ** ((mp.loggamma(a + r) - mp.loggamma(a) - epsilon) / r)
        return gamma_cdf(a, threshold) - mp.e**epsilon * gamma_cdf(a + r, threshold)


def beta_cdf(x: mp.mpf, a: mp.mpf, b: mp.mpf) -> mp.mpf:
    """I_x(a, b), by its continued fraction on the side where that converges."""
    if x * (a + b + 2) > a + 1:
        return 1 - _beta_fraction(1 - x, b, a)
    return _beta_fraction(x, a, b)


def gamma_cdf(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    """P[Gamma(a) ≤ x]."""
    return _gamma_lower_fraction(a, x) if x < a + 1 else 1 - _gamma_fraction(a, x)


def gamma_tail(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    """P[Gamma(a) > x]."""
    return _gamma_fraction(a, x) if x > a + 1 else 1 - _gamma_lower_fraction(a, x)


def two_cell_pmf(one: Sequence[mp.mpf], shifts: tuple[int, int]) -> dict[mp.mpf, mp.mpf]:
    """Probabilities of the loss when cells with this noise, given on −n…n, move by ``shifts``; tails are cut."""
    n = (len(one) - 1) // 2
    law: dict[mp.mpf, mp.mpf] = {}
    moved = [s for s in shifts if s]
    for ks in product(range(-n + 1, n), repeat=len(moved)):
        probability, other = mp.mpf(1), mp.mpf(1)
        for k, s in zip(ks, moved, strict=True):
            probability *= one[k + n]
            other *= one[k + n + s]
        loss = mp.log(probability / other)
        key = mp.mpf(mp.nstr(loss, 40))
        law[key] = law.get(key, mp.mpf(0)) + probability
    return law


def law_delta(law: dict[mp.mpf, mp.mpf], epsilon: object) -> mp.mpf:
    """E[(1 − e^{ε−L})₊] of an enumerated loss."""
    return mp.fsum(p * -mp.expm1(mp.mpf(epsilon) - loss) for loss, p in law.items() if loss > epsilon)


def law_renyi(law: dict[mp.mpf, mp.mpf], order: object) -> mp.mpf:
    """ln E[e^{(λ−1)L}]/(λ−1) of an enumerated loss."""
    less = mp.mpf(order) - 1
    return mp.log(mp.fsum(p * mp.exp(less * loss) for loss, p in law.items())) / less


def discrete_gaussian(sigma: object, reach: int) -> list[mp.mpf]:
    """Probabilities on −reach…reach, normalised over all integers that matter at this precision."""
    sigma = mp.mpf(sigma)
    far = reach + int(mp.ceil(sigma * mp.sqrt(2 * mp.mp.dps * mp.log(10)))) + 2
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-far, far + 1)}
    total = mp.fsum(weights.values())
    return [weights[k] / total for k in range(-reach, reach + 1)]


def discrete_laplace(scale: object, reach: int) -> list[mp.mpf]:
    """Probabilities (1−q)/(1+q)·q^|k| on −reach…reach, q = e^{−1/scale}."""
    q = mp.exp(-1 / mp.mpf(scale))
    return [(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)]


def neighbours(counts: Sequence[int], *, replace: bool, least: int = 0) -> Iterable[tuple[int, ...]]:
    """Every table one record away, both sides respecting the public lower bound."""
    cells = range(len(counts))
    moves = [(i, j) for i in cells for j in cells if i != j] if replace else [(i, None) for i in cells]
    for i, j in moves:
        other = list(counts)
        other[i] -= 1
        if j is not None:
            other[j] += 1
        if other[i] >= least:
            yield tuple(other)
        if j is None:
            other[i] += 2
            yield tuple(other)


def relative_error(value: float, truth: mp.mpf) -> float:
    """(value − truth)/truth, negative when the value is too small."""
    return float((mp.mpf(value) - truth) / truth)


def _log_beta(parameters: Sequence[mp.mpf]) -> mp.mpf:
    return mp.fsum(mp.loggamma(x) for x in parameters) - mp.loggamma(mp.fsum(parameters))


def _lentz(first: mp.mpf, terms: Iterable[tuple[mp.mpf, mp.mpf]]) -> mp.mpf:
    """first + a₁/(b₁ + a₂/(b₂ + …)), by the modified Lentz method."""
    tiny, tolerance = mp.mpf(10) ** (-20 * mp.mp.dps), mp.mpf(10) ** (5 - mp.mp.dps)
    value = first or tiny
    c, d = value, mp.mpf(0)
    for a, b in terms:
        d = 1 / ((b + a * d) or tiny)
        c = (b + a / c) or tiny
        value *= c * d
        if abs(c * d - 1) < tolerance:
            return value
    raise ArithmeticError("the continued fraction did not converge")


def _beta_fraction(x: mp.mpf, a: mp.mpf, b: mp.mpf) -> mp.mpf:
    def terms() -> Iterable[tuple[mp.mpf, mp.mpf]]:
        yield mp.mpf(1), mp.mpf(1)
        for m in range(10**6):
            if m:
                yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), mp.mpf(1)
            yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), mp.mpf(1)

    front = a * mp.log(x) + b * mp.log1p(-x) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(a + b)
    return mp.exp(front) / a * _lentz(mp.mpf(0), terms())


def _gamma_fraction(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    def terms() -> Iterable[tuple[mp.mpf, mp.mpf]]:
        yield mp.mpf(1), x + 1 - a
        for m in range(1, 10**6):
            yield -m * (m - a), x + 2 * m + 1 - a

    return mp.exp(a * mp.log(x) - x - mp.loggamma(a)) * _lentz(mp.mpf(0), terms())


def _gamma_lower_fraction(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    def terms() -> Iterable[tuple[mp.mpf, mp.mpf]]:
        for m in range(10**6):
            yield -(a + m) * x, a + 2 * m + 1
            yield (m + 1) * x, a + 2 * m + 2

    return mp.exp(a * mp.log(x) - x - mp.loggamma(a)) / _lentz(a, terms())


def loss_grid(rise: float, fall: float | None, weight: float, points: int = 4001) -> tuple[Floats, Floats]:
    """Losses (up to a constant) and probabilities on an even grid of the sufficient statistic, in floats.

    The statistic is logit(t), t ~ Beta(rise, fall), or ln z, z ~ Gamma(rise) if ``fall`` is None. Both have
    analytic densities that vanish at both ends, for which equal weights converge faster than any power.
    """
    slopes = (rise, 1.0 if fall is None else fall)
    spread = math.sqrt(1.0 / rise + (0.0 if fall is None else 1.0 / fall))
    mode = math.log(rise) if fall is None else math.log(rise / fall)
    reach = [min(45.0 / slope + 12.0 * spread, 1e6) for slope in slopes]
    y = np.linspace(mode - reach[0], mode + (min(reach[1], 12.0 * spread + 6.0) if fall is None else reach[1]), points)
    log_density = rise * y - (np.exp(y) if fall is None else (rise + fall) * np.logaddexp(0.0, y))
    density = np.exp(log_density - log_density.max())
    return weight * y, density / density.sum()


def replaced_loss(weight: float, first: float, second: float, points: int = 4001) -> tuple[Floats, Floats]:
    """Loss of a replaced record and its probabilities: ``first`` gains, ``second`` loses."""
    losses, probabilities = loss_grid(first + weight, second, weight, points)
    constant = gammaln(first) - gammaln(first + weight) + gammaln(second + weight) - gammaln(second)
    return losses + constant, probabilities


def changed_loss(weight: float, concentration: float, *, added: bool, points: int = 4001) -> tuple[Floats, Floats]:
    """Loss of a record added to, or removed from, a cell."""
    step = gammaln(concentration + weight) - gammaln(concentration)
    losses, probabilities = loss_grid(concentration + weight if added else concentration, None, weight, points)
    return (losses - step if added else step - losses), probabilities


def joint_delta(one: tuple[Floats, Floats], other: tuple[Floats, Floats], epsilon: float) -> float:
    """δ(ε) of two independent losses together, by the double sum over both grids."""
    order = np.argsort(other[0])
    losses, masses = other[0][order], other[1][order]
    above = np.append(masses[::-1].cumsum()[::-1], 0.0)
    # e^{−L} relative to the largest loss, so that nothing overflows
    tilted = np.append((masses * np.exp(losses[0] - losses))[::-1].cumsum()[::-1], 0.0)
    start = np.searchsorted(losses, epsilon - one[0], side="right")
    value = above[start] - np.exp(epsilon - one[0] - losses[0]) * tilted[start]
    return float((one[1] * np.clip(value, 0.0, None)).sum())


def optimistic_delta(loss: tuple[Floats, Floats], times: int, interval: float, epsilon: float) -> float:
    """A lower bound on δ(ε) of ``times`` releases, but for 1e-14: every loss rounded down, or dropped if rare."""
    kept = loss[1] > 1e-19
    cell = np.floor(loss[0][kept] / interval).astype(np.int64)
    lowest = int(cell.min())
    one = np.bincount(cell - lowest, loss[1][kept])
    total, start = one, lowest
    for _ in range(times - 1):
        total, start = fftconvolve(total, one), start + lowest
    losses = (start + np.arange(total.size)) * interval
    above = losses > epsilon
    return float(-(total[above] * np.expm1(epsilon - losses[above])).sum())
