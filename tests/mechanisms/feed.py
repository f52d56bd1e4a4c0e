"""Random words that a test chooses, and the truth about integer noise in many digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np

DIGITS = 150


class Feed:
    """Hands out the given words and remembers how many were taken."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)
        self.taken = 0

    def __call__(self, count: int) -> np.ndarray:
        self.taken += count
        given, self.words = self.words[:count], self.words[count:]
        assert len(given) == count, "more words were asked for than the test expects"
        return np.array(given, dtype=np.uint64)


def weight(kind: str, scale: float, k: int) -> mp.mpf:
    """exp(−k²/2σ²) or exp(−|k|/b)."""
    exact = mp.mpf(Fraction(scale).numerator) / Fraction(scale).denominator
    return mp.exp(-mp.mpf(k * k) / (2 * exact**2)) if kind == "gaussian" else mp.exp(-abs(mp.mpf(k)) / exact)


def magnitudes(kind: str, scale: float, reach: int) -> list[mp.mpf]:
    """P[|K| ≤ k] for k = 0 … reach."""
    weights = [weight(kind, scale, k) for k in range(reach + 1)]
    sums, total = [], weights[0] / 2
    for each in [mp.mpf(0), *weights[1:]]:
        total += each
        sums.append(total)
    k, whole = reach + 1, total
    while (more := weight(kind, scale, k)) > mp.mpf(10) ** -DIGITS * mp.mpf(10) ** -20:
        whole, k = whole + more, k + 1
    return [each / whole for each in sums]
