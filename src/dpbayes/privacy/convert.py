"""From one notion of privacy to (ε, δ), never on the wrong side: roots and roundings, Rényi curves, Gaussian shifts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.normal import erfcx, quantile, quantiles

ERROR = 1e-12
"""The share to which functions of a number, and sums of some thousands, are right: what is stated is raised by it."""

ROUND_UP = 1.0 + ERROR

ULPS = 8.0 * 2.0**-53
"""Covers the rounding of a few operations, as a share of their largest terms."""

TOLERANCE = 1e-10
"""How near to what is wanted a search for parameters lands, relative to min(1, wanted)."""


def rounded_towards_infinity(exact: Fraction) -> float:
    """The smallest float that is not below this number.

    >>> rounded_towards_infinity(Fraction(1, 4)), rounded_towards_infinity(Fraction(1, 3)) * 3 > 1 - 1e-16
    (0.25, True)
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def exact_parts(parts: Sequence[float], number: float) -> list[float]:
    """The parts of an exact sum after one more number: no bits are lost, so ``math.fsum`` of the parts is that of all.

    A running total is then the same as a sum of all numbers so far, to the last bit.

    >>> parts = [0.1]
    >>> for _ in range(9):
    ...     parts = exact_parts(parts, 0.1)
    >>> math.fsum(parts) == math.fsum([0.1] * 10) == 1.0
    True
    """
    kept = []
    for part in parts:
        low, high = sorted((part, number), key=abs)
        number = high + low
        if math.isinf(number):
            return [number]
        if rest := low - (number - high):
            kept.append(rest)
    return [*kept, number]


def least_epsilon(profile: Callable[[float], float], delta: float, *, safe: float, unsafe: float = 0.0) -> float:
    """The smallest ε with δ(ε) ≤ delta, rounded up, below one that is known to be large enough."""
    target = math.log(delta)

    def gap(epsilon: float) -> float:
        value = profile(epsilon)
        return (math.log(value) if value > 0 else -math.inf) - target

    return safe_root(gap, safe=safe, unsafe=unsafe, tolerance=1e-13 * max(1.0, -target))


def safe_root(
    gap: Callable[[float], float], *, safe: float, unsafe: float, tolerance: float, steps: int = 200
) -> float:
    """A point with −tolerance ≤ gap ≤ 0, found between a safe end (gap ≤ 0) and an unsafe one (gap > 0).

    False position in Illinois' variant, with a bisection when the bracket shrinks too slowly. If the gap jumps
    over the tolerance, the last safe point before the jump is returned: never one on the unsafe side.

    >>> round(safe_root(lambda x: x * x - 2, safe=0.0, unsafe=2.0, tolerance=1e-12), 9)
    1.414213562
    """
    at_safe, at_unsafe = gap(safe), gap(unsafe)
    if at_unsafe <= 0:
        return unsafe
    pull_safe, pull_unsafe = at_safe, at_unsafe  # Illinois halves the pull of an end that stays put
    last_side, slow, width = 0, 0, abs(unsafe - safe)
    for _ in range(steps):
        if at_safe >= -tolerance:
            break
        middle = 0.5 * (safe + unsafe)
        if slow < 3 and math.isfinite(pull_safe) and math.isfinite(pull_unsafe):
            # aim half a tolerance into the safe side, where the search may stop
            share = (-pull_safe - 0.5 * tolerance) / (pull_unsafe - pull_safe)
            secant = safe + max(share, 0.0) * (unsafe - safe)
            middle = secant if min(safe, unsafe) < secant < max(safe, unsafe) else middle
        if middle in (safe, unsafe):
            break
        value = gap(middle)
        side = -1 if value <= 0 else 1
        if side < 0:
            safe, at_safe, pull_safe = middle, value, value
            pull_unsafe *= 0.5 if last_side == side else 1.0
        else:
            unsafe, pull_unsafe = middle, value
            pull_safe *= 0.5 if last_side == side else 1.0
        last_side = side
        slow = slow + 1 if abs(unsafe - safe) > 0.5 * width else 0
        width = abs(unsafe - safe)
    return safe


GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def least(value: Callable[[float], float], low: float, high: float, *, steps: int = 40) -> tuple[float, float]:
    """The smallest value of a function that falls and then rises, and where it is: a golden section.

    >>> round(least(lambda x: (x - 2.0) ** 2, 0.0, 5.0)[1], 6)
    2.0
    """
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = value(a), value(b)
    for _ in range(steps):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = value(b)
    return min((at_a, a), (at_b, b))


def renyi_to_epsilon(order: float, renyi: float, delta: float) -> float:
    """ε = D + ln(λ−1) − (ln δ + λ·ln λ)/(λ−1), at least 0.

    Symbols: λ order, D renyi.
    Source: [RDP] lemma 3 (from [CKS20] proposition 12).
    Adjacency: that of the Rényi bound.

    >>> round(renyi_to_epsilon(order=5, renyi=0.1, delta=1e-5), 6)
    2.352728
    """
    checks.order("renyi_to_epsilon", order)
    checks.probability("renyi_to_epsilon", delta=delta)
    if math.isinf(order) or math.isinf(renyi):
        return renyi
    less = order - 1.0
    chance, entropy = math.log(delta) / less, order * math.log(order) / less
    rounding = ULPS * (renyi + abs(math.log(less)) + abs(chance) + entropy)
    return max(renyi + math.log(less) - (chance + entropy) + rounding, 0.0)


def renyi_to_delta(order: float, renyi: float, epsilon: float) -> float:
    """δ = exp((λ−1)(D−ε))·(1−1/λ)^λ/(λ−1), at most 1.

    Symbols: λ order, D renyi.
    Source: [RDP] lemma 3 (from [CKS20] proposition 12).
    Adjacency: that of the Rényi bound.
    """
    checks.order("renyi_to_delta", order)
    checks.non_negative("renyi_to_delta", epsilon=epsilon)
    if math.isinf(renyi) or math.isinf(order):
        return 0.0 if renyi <= epsilon else 1.0
    less = order - 1.0
    shrunk = math.log(less / order) if order < 2.0 else math.log1p(-1.0 / order)  # ln(1 − 1/λ), no digit lost
    exponent = less * (renyi - epsilon) + order * shrunk - math.log(less)
    rounding = ULPS * (less * (renyi + abs(renyi - epsilon)) + 2.0 + abs(math.log(less)))
    return min(math.exp(min(exponent + rounding, 0.0)) * (1.0 + ULPS), 1.0)


def tcdp_to_epsilon(rho: float, omega: float, delta: float) -> float:
    """ε = ρ + 2√(ρ·ln(1/δ)) if ln(1/δ) ≤ (ω−1)²ρ, else ρω + ln(1/δ)/(ω−1).

    Symbols: ρ rho, ω omega; ω = inf is zCDP.
    Source: [tCDP] lemma 1 (from [BDRS18] lemma 6).
    Adjacency: that of the bound.

    >>> round(tcdp_to_epsilon(rho=0.1, omega=math.inf, delta=1e-5), 6)
    2.245966
    """
    checks.probability("tcdp_to_epsilon", delta=delta)
    checks.order("tcdp_to_epsilon", omega)
    if math.isinf(rho):
        return math.inf
    depth = -math.log(delta)
    if depth <= (omega - 1.0) ** 2 * rho:
        return rho + 2.0 * math.sqrt(rho * depth)
    return rho * omega + depth / (omega - 1.0)


def tcdp_to_delta(rho: float, omega: float, epsilon: float) -> float:
    """The least δ that the line ρ·λ gives at any order below ω."""

    def at(order: float) -> float:
        return renyi_to_delta(order, rho * order, epsilon) if order < omega else 1.0

    return at(best_order(at))


def statement_to_delta(epsilon: float, delta: float, at: float) -> float:
    """δ(ε′) = δ + (1−δ)·(e^ε − e^ε′)⁺/(1 + e^ε): the largest profile that an (ε, δ) statement allows.

    Symbols: ε epsilon, δ delta, ε′ at.
    Source: [KOV] theorem 3.3, the pair that dominates all (ε, δ)-DP mechanisms.
    Adjacency: that of the statement.
    """
    if at >= epsilon:
        return delta
    return min((delta + (1.0 - delta) * -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))) * ROUND_UP, 1.0)


def best_order(value: Callable[[float], float], *, lowest: float = 1.0 + 1e-6, highest: float = 1e7) -> float:
    """The order λ that makes ``value`` smallest: a grid in ln(λ−1), then a golden section around its best point.

    Any order gives a valid bound, so a missed minimum costs tightness, never privacy.

    >>> round(best_order(lambda order: (order - 3.0) ** 2), 4)
    3.0
    """
    left, right, points = math.log(lowest - 1.0), math.log(highest - 1.0), 48
    grid = [left + (right - left) * i / (points - 1) for i in range(points)]

    def at(x: float) -> float:
        return value(1.0 + math.exp(x))

    values = [at(x) for x in grid]
    best = min(range(points), key=values.__getitem__)
    found = least(at, grid[max(best - 1, 0)], grid[min(best + 1, points - 1)])
    return 1.0 + math.exp(min(found, (values[best], grid[best]))[1])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), rounded up

    computed as ½·exp(−x²)·[erfcx(x) − erfcx(y)], x, y = (ε/μ ∓ μ/2)/√2; for small μ, where the difference cancels, as
    the integral of −erfcx′(t) = 2/√π − 2t·erfcx(t).

    Symbols: μ shift of a Gaussian in units of its standard deviation.
    Source: [DRS22] corollary 2.13.
    Adjacency: none; of the pair N(0, 1) and N(μ, 1), in either direction.

    >>> round(gaussian_delta(0.2, 0.5), 6)
    0.000513
    """
    x, y = (epsilon / mu - 0.5 * mu) / math.sqrt(2.0), (epsilon / mu + 0.5 * mu) / math.sqrt(2.0)
    scale = math.exp(-min(x * x, 1000.0))
    if mu < 0.5:
        half = 0.5 * mu / math.sqrt(2.0)
        at = epsilon / (mu * math.sqrt(2.0)) + half * NODES
        slopes = [2.0 / math.sqrt(math.pi) - 2.0 * t * erfcx(t) for t in at.tolist()]
        bracket = half * float(WEIGHTS @ slopes)
        value = 0.5 * scale * bracket
    elif x < 0:
        value = 0.5 * (math.erfc(x) - scale * erfcx(y))
    else:
        value = 0.5 * scale * (erfcx(x) - erfcx(y))
    return min(max(value * (1.0 + 1e-9), math.ulp(0.0)), 1.0)  # it is right to 1e-11 of itself


@lru_cache(maxsize=4096)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 with δ_μ(ε) ≤ delta, rounded up.

    >>> round(gaussian_epsilon(0.2, 1e-6), 3)
    0.834
    """
    if not math.isfinite(mu) or mu > 1e6:
        return math.inf
    if mu <= 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    target = math.log(delta)
    high = mu * (0.5 * mu + math.sqrt(-2.0 * target))  # there Φ(μ/2 − ε/μ) alone is below delta
    return safe_root(
        lambda epsilon: math.log(gaussian_delta(mu, epsilon)) - target,
        safe=high * (1.0 + 1e-9),
        unsafe=0.0,
        tolerance=1e-13 * max(1.0, -target),
    )


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ with δ_μ(ε) ≤ delta, rounded down: the Gaussian limit of an (ε, δ) guarantee.

    >>> round(gaussian_mu(1.0, 1e-6), 4)
    0.2367
    """
    target = math.log(delta)

    def gap(log_mu: float) -> float:
        return math.log(gaussian_delta(math.exp(log_mu), epsilon)) - target

    low = math.log(min(delta, 1.0))  # δ_μ(ε) ≤ δ_μ(0) ≤ 0.4·μ
    high = math.log(2.0 * math.sqrt(epsilon) + 2.0 * math.sqrt(-2.0 * target) + 20.0)
    while gap(high) <= 0:
        high += 1.0
    return math.exp(safe_root(gap, safe=low, unsafe=high, tolerance=1e-13 * max(1.0, -target)))


def pure_mu(epsilon: float) -> float:
    """μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up: the least Gaussian shift that covers every ε-private mechanism

    Symbols: ε of pure differential privacy.
    Source: docs/explanation/proofs/adaptive.md, lemma 2, for randomised response, which covers them all ([KOV]).
    Adjacency: that of the ε.

    >>> round(pure_mu(0.1), 4)
    0.1253
    """
    if epsilon > 700.0:
        return math.inf
    if epsilon < 1e-5:  # 2·Φ⁻¹(½ + ¼·tanh(ε/2)·2) is below this, and a float near ½ has no digits left
        return 1.2533141373155003 * epsilon * (1.0 + 1e-9)
    return -2.0 * quantile(1.0 / (1.0 + math.exp(epsilon))) * (1.0 + 1e-9)


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of the region of test errors of a loss that takes finitely many values, for tests with loss > 0.

    ``beta`` is the chance of a loss of at least this much, infinite losses included; ``rest`` is 1 − beta, summed from
    the other end; ``alpha`` is the same chance on the other data set.
    """

    alpha: Floats
    beta: Floats
    rest: Floats

    @classmethod
    def of(cls, losses: Floats, probabilities: Floats, infinity: float = 0.0) -> Corners:
        """From losses in rising order and their probabilities."""
        p = np.maximum(probabilities, 0.0)
        first = int(np.searchsorted(losses, 0.0, side="right"))
        below = np.concatenate([[0.0], np.cumsum(p)])[first:-1]
        above, tilted = p[first:], p[first:] * np.exp(-losses[first:])
        return cls(np.cumsum(tilted[::-1])[::-1], infinity + np.cumsum(above[::-1])[::-1], below)

    def mu(self, delta: float) -> float:
        """The largest Φ⁻¹((β − δ₀)/(1 − δ₀)) − Φ⁻¹(α/(1 − δ₀)) of all corners, rounded up

        Corners with β ≤ δ₀ or α ≥ 1 − δ₀ are covered by any shift.

        Symbols: δ₀ delta, the chance with which everything may be lost.
        Source: docs/explanation/proofs/adaptive.md, lemma 2.
        Adjacency: that of the loss.
        """
        open_ = (self.beta > delta) & (self.alpha < 1.0 - delta)  # a test that always errs tells nothing
        if not open_.any():
            return 0.0
        alpha, beta = self.alpha[open_] / (1.0 - delta), (self.beta[open_] - delta) / (1.0 - delta)
        rest = self.rest[open_] / (1.0 - delta)
        nearer = quantiles(np.where(beta < 0.5, beta, np.minimum(rest, 0.5)))  # 1 − beta has more digits than beta
        found = float((np.where(beta < 0.5, nearer, -nearer) - quantiles(alpha)).max())
        return found * (1.0 + 1e-9) + 4e-15 * self.beta.size if found > 0 else 0.0
