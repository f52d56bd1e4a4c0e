"""Exact chances on a computer: random bits compared with certified bounds of a number, never with a float.

A uniform U in [0, 1) is an endless row of random bits. To learn whether U < y it is enough to know so many bits of U
and such narrow bounds of y that the two cannot be confused; both are extended, without a limit, until that is so.
docs/explanation/proofs/integer-noise.md proves that what comes out has the law asked for, exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.errors import InvalidArgument

Words = Callable[[int], NDArray[np.uint64]]
"""A source of random bits: so many independent uniform 64-bit words."""

WORD = 64
GUARD = 64
"""Binary digits that bounds carry beyond the bits they are compared with."""


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Whole numbers low ≤ 2^bits·exp(−x) ≤ high, at most 2 apart; x = numerator/denominator ≥ 0

    The series of exp(−x/2ʲ) alternates, so its partial sums enclose it; squaring j times gives exp(−x).

    Symbols: x numerator/denominator, j halvings.
    Source: docs/explanation/proofs/integer-noise.md, lemma 1.
    Adjacency: none.
    """
    if numerator == 0:
        return 1 << bits, 1 << bits
    if numerator >= bits * denominator:  # exp(−x) < 2^−bits
        return 0, 1
    halvings = max((numerator // denominator).bit_length() + 8, 0)
    digits = bits + halvings + 32
    low_x = (numerator << digits) // (denominator << halvings)
    high_x = low_x + 1
    low = high = low_term = high_term = 1 << digits
    step = 0
    while high_term > 1:
        step += 1
        low_term = (low_term * low_x >> digits) // step
        high_term = ((high_term * high_x >> digits) + 1) // step + 1
        low, high = (low - high_term, high - low_term) if step % 2 else (low + low_term, high + high_term)
    low, high = low - high_term, high + high_term  # later terms are smaller and alternate
    for _ in range(halvings):
        low, high = low * low >> digits, (high * high >> digits) + 1
    return low >> (digits - bits), (high >> (digits - bits)) + 1


def bernoulli_exp(numerator: int, denominator: int, words: Words) -> bool:
    """True with probability exp(−x), exactly; x = numerator/denominator ≥ 0.

    >>> from dpbayes.mechanisms.noise import words
    >>> bernoulli_exp(0, 1, words(None)), bernoulli_exp(10**9, 1, words(None))
    (True, False)
    """
    if numerator < 0 or denominator <= 0:
        raise InvalidArgument("bernoulli_exp: expected numerator >= 0 and denominator > 0.")
    return below_exp(int(words(1)[0]), numerator, denominator, words)


def below_exp(first: int, numerator: int, denominator: int, words: Words) -> bool:
    """Whether a uniform number whose first 64 bits are given lies below exp(−x); more bits are drawn if need be.

    1 − x ≤ exp(−x) ≤ 1 − x + x²/2 decides most cases.

    Symbols: x numerator/denominator.
    Source: docs/explanation/proofs/integer-noise.md, theorem 1.
    Adjacency: none.
    """
    known, bits = first, WORD
    if numerator < denominator:
        x = (numerator << bits) // denominator
        linear = (1 << bits) - x
        if known < linear - 1:
            return True
        if known > linear + ((x + 1) ** 2 >> (bits + 1)) + 1:
            return False
    while True:
        low, high = exp_bounds(numerator, denominator, bits + GUARD)
        if known + 1 << GUARD <= low:
            return True
        if known << GUARD >= high:
            return False
        known, bits = known << WORD | int(words(1)[0]), bits + WORD


@dataclass(frozen=True, slots=True)
class Law:
    """Weights w(k) = exp(−(slope·k + bend·k(k−1)/2)/over) of k = 0, 1, 2, …: both kinds of integer noise, without sign.

    Discrete Laplace noise has the slope 1/b and no bend; discrete Gaussian noise the slope 1/2σ² and the bend 1/σ²,
    since k/2σ² + k(k−1)/2σ² = k²/2σ². A float is a fraction, so whole numbers say all of this exactly.

    With ``signed`` k stands for −k and k, and 0 for itself alone: zero has half of its weight.
    """

    slope: int
    bend: int
    over: int
    signed: bool = True

    @classmethod
    def gaussian(cls, sigma: float) -> Law:
        """P[k] ∝ exp(−k²/2σ²)."""
        numerator, denominator = sigma.as_integer_ratio()
        return cls(denominator**2, 2 * denominator**2, 2 * numerator**2)

    @classmethod
    def laplace(cls, scale: float) -> Law:
        """P[k] ∝ exp(−|k|/b)."""
        numerator, denominator = scale.as_integer_ratio()
        return cls(denominator, 0, numerator)

    def blocks(self, shift: int) -> Law:
        """The law of J whose weights are those of k = J·2^shift, which bound the weights of the block from there on."""
        size = 1 << shift
        slope = self.slope * size + self.bend * (size * (size - 1) // 2)
        return Law(slope, self.bend * size * size, self.over, signed=False)

    def exponent(self, start: int, place: int) -> tuple[int, int]:
        """The fraction x with w(start + place) = exp(−x)·w(start)."""
        return self.slope * place + self.bend * (start * place + place * (place - 1) // 2), self.over

    @property
    def entries(self) -> int:
        """About how many weights exceed e^−67 = 2^−96: the length of a table, a matter of speed alone."""
        by_slope = 67 * self.over // self.slope
        return min(by_slope, isqrt(134 * self.over // self.bend)) + 2 if self.bend else by_slope + 2

    def cumulative(self, bits: int) -> list[int]:
        """Whole numbers T with T_k ≤ 2^bits·P[K ≤ k] < T_k + 2, up to the k where hardly anything is left

        w_{k+1} = w_k·r_k and r_{k+1} = r_k·s, rounded down with P digits; each is at most its counted number of
        units too small, and what lies beyond the last weight is at most w/(1 − r).

        Symbols: w weights, r their ratios, s = exp(−bend), T the result.
        Source: docs/explanation/proofs/integer-noise.md, lemma 2.
        Adjacency: none.
        """
        digits = bits + GUARD + 1
        while True:
            found = self._cumulative(bits, digits)
            if found is not None:
                return found
            digits += WORD

    def _cumulative(self, bits: int, digits: int) -> list[int] | None:
        """The bounds with that many digits, or None where these are too few."""
        one = 1 << digits
        ratio, high_ratio = exp_bounds(self.slope, self.over, digits)
        factor, high_factor = exp_bounds(self.bend, self.over, digits)
        unit = max(high_ratio - ratio, high_factor - factor)
        weight, total = one, one >> self.signed
        totals = [total]
        while True:
            weight = weight * ratio >> digits
            if not weight >> 32:
                break
            ratio = ratio * factor >> digits
            total += weight
            totals.append(total)
        steps = len(totals)
        ratio_error = (unit + 1) * (steps + 1)  # each product adds the error of its factors and one unit
        weight_error = steps * (ratio_error + 1)
        total_error = steps * weight_error
        if ratio + ratio_error >= one:
            return None
        beyond = ((weight + weight_error) << digits) // (one - ratio - ratio_error) + 1
        low_inverse = (one << digits) // (total + total_error + beyond)
        high_inverse = (one << digits) // total + 1
        error = (total_error * high_inverse + total * (high_inverse - low_inverse) >> digits) + 2
        drop = digits - bits
        if error >> drop:
            return None
        return [each * low_inverse >> digits + drop for each in totals]


def place(cumulative: list[int], known: int) -> int | None:
    """The k whose share [P[K < k], P[K ≤ k]) surely holds every number with these first bits; None if unsure."""
    k = bisect_right(cumulative, known)
    sure = k < len(cumulative) and (k == 0 or known >= cumulative[k - 1] + 2)
    return k if sure else None


def invert(law: Law, known: int, bits: int, words: Words) -> int:
    """The k of a uniform number whose first bits are given, drawing further words until it is certain.

    Source: docs/explanation/proofs/integer-noise.md, theorem 1.
    """
    while (k := place(law.cumulative(bits), known)) is None:
        known, bits = known << WORD | int(words(1)[0]), bits + WORD
    return k
