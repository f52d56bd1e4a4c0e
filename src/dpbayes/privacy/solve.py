"""One root finder for the whole library: it holds an end that is safe and never returns the other one."""

from __future__ import annotations

import math
from collections.abc import Callable


def safe_root(
    gap: Callable[[float], float], *, safe: float, unsafe: float, tolerance: float, steps: int = 200
) -> float:
    """A point with −tolerance ≤ gap ≤ 0, found between a safe end (gap ≤ 0) and an unsafe one (gap > 0).

    Illinois' variant of false position, with a bisection whenever that stalls. If the gap jumps over the
    tolerance, the last safe point before the jump is returned: the result is never on the unsafe side.

    >>> round(safe_root(lambda x: x * x - 2, safe=0.0, unsafe=2.0, tolerance=1e-12), 9)
    1.414213562
    """
    gap_safe, gap_unsafe = gap(safe), gap(unsafe)
    if gap_unsafe <= 0:
        return unsafe
    weight_safe, weight_unsafe = gap_safe, gap_unsafe
    for step in range(steps):
        if gap_safe >= -tolerance:
            break
        middle = 0.5 * (safe + unsafe)
        if step % 4 != 3 and math.isfinite(weight_unsafe) and math.isfinite(weight_safe):
            secant = safe - weight_safe * (unsafe - safe) / (weight_unsafe - weight_safe)
            # aim half a tolerance into the safe side, where the search may stop
            secant += 0.5 * tolerance * (safe - unsafe) / (weight_unsafe - weight_safe)
            if min(safe, unsafe) < secant < max(safe, unsafe):
                middle = secant
        if middle in (safe, unsafe):
            break
        value = gap(middle)
        if value <= 0:
            safe, gap_safe, weight_safe = middle, value, value
            weight_unsafe *= 0.5
        else:
            unsafe, weight_unsafe = middle, value
            weight_safe *= 0.5
    return safe
