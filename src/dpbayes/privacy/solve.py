"""Never on the wrong side: a root finder that holds a safe end, and floats that are not below an exact number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

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
