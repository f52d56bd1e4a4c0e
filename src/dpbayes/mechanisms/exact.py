"""Exact integer noise: random bits compared with certified bounds of a number, never with a float.

A uniform U in [0, 1) is an endless row of random bits. To learn whether U < y it is enough to know so many bits of U
and such narrow bounds of y that the two cannot be confused; both are extended, without a limit, until that is so.

Noise is drawn by inversion: 64 bits, looked up in a table of certified bounds of the cumulative distribution. A word
that the bounds cannot place, less than once in 10¹⁴ draws, takes further words and sharper bounds. Noise too wide for a
table is drawn in blocks: the block from a table, the place in it uniform, and the pair kept with the exact chance that
corrects the law. docs/explanation/proofs/integer-noise.md proves that what comes out has the law asked for, exactly.

Nothing here sees a count: how many words are drawn, and how long it takes, depends on the law and on chance alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument

Words = Callable[[int], NDArray[np.uint64]]
"""A source of random bits: so many independent uniform 64-bit words."""

WORD = 64
GUARD = 64
"""Binary digits that bounds carry beyond the bits they are compared with."""


def exp_bounds(numerator: int, denominator: int, bits: int, spare: int = 32) -> tuple[int, int]:
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
    digits = bits + halvings + spare
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


TABLES_KEPT = 16

_BITS = 63  # of a word; the first of the 64 is the sign
_MAGNITUDE = np.uint64(2**_BITS - 1)
_CELL_BITS = 15  # of the guide
_IN_CELL = np.uint64(_BITS - _CELL_BITS)
_INT64 = np.iinfo(np.int64)


class InversionTable:
    """Draws from one law, k = J·2^shift + place with J from the table."""

    def __init__(self, law: Law, shift: int) -> None:
        self.law = law
        self.shift = shift
        self.blocks = law.blocks(shift) if shift else law
        listed = self.blocks.cumulative(_BITS)
        self.bounds = np.array(listed[: _end(listed)], dtype=np.uint64)

    @cached_property
    def guide(self) -> Ints:
        """The J of each value of a word's first bits after the sign; −1 where they do not settle it."""
        cells = 1 << _CELL_BITS
        first = (self.bounds >> _IN_CELL).view(np.int64)
        last = (self.bounds + np.uint64(1) >> _IN_CELL).view(np.int64)
        settled = np.cumsum(np.bincount(first, minlength=cells))
        settled[first] = settled[np.minimum(last, cells - 1)] = -1
        return settled

    def surely_kept(self, blocks: Ints, places: Ints, lots: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Where a lot lies below 2⁶⁴·(1 − x), and so below 2⁶⁴·exp(−x), whatever the digits that follow.

        x ≤ place·(slope + bend·(J·B + B/2))/over, in whole numbers rounded up; nothing is sure where that exceeds 1.

        Symbols: x the exponent of a place in block J, B = 2^shift.
        Source: docs/explanation/proofs/integer-noise.md, theorem 2.
        Adjacency: none.
        """
        size, most = 1 << self.shift, 2**64 - 1
        first = (self.law.slope + self.law.bend * (size // 2) << 64) // self.law.over + 1
        step = (self.law.bend * size << 64) // self.law.over + 1
        reach = (most // size - first) // step + 1
        if reach <= 0:
            return np.zeros(blocks.size, dtype=bool)
        x = (blocks.view(np.uint64) * np.uint64(step) + np.uint64(first)) * places.view(np.uint64)
        return (lots < np.uint64(most) - x) & (blocks < reach)

    def fill(self, drawn: Ints, words: Words) -> None:
        """Independent draws into every place of a flat array; beyond 64 bits, the nearest number that fits."""
        fill, chunk = self._fill_in_blocks if self.shift else self._fill, 2**14  # words that stay in the cache
        for start in range(0, drawn.size, chunk):
            fill(drawn[start : start + chunk], words)

    def _fill(self, drawn: Ints, words: Words) -> None:
        bits = words(drawn.size)
        places, unsure = self._places(bits)
        negative = bits > _MAGNITUDE
        drawn[:] = np.where(negative, -places, places)
        for at in unsure.tolist():
            k = invert(self.law, int(bits[at] & _MAGNITUDE), _BITS, words)
            drawn[at] = _fitting(-k if negative[at] else k)

    def _places(self, bits: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """The J of each word, and the numbers of those words that the bounds cannot place for certain."""
        known = bits & _MAGNITUDE
        if bits.size < 2**12:
            return self._search(known)
        places = self.guide.take((known >> _IN_CELL).view(np.int64), mode="clip")
        rest = np.flatnonzero(places < 0)
        places[rest], unsure = self._search(known[rest])
        return places, rest[unsure]

    def _search(self, known: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        places = np.searchsorted(self.bounds, known, side="right")
        below = self.bounds[places - 1] + np.uint64(2)
        return places, np.flatnonzero((known < below) & (places > 0) | (places == len(self.bounds)))

    def _fill_in_blocks(self, drawn: Ints, words: Words) -> None:
        """Rejection: J by its weight, a uniform place in the block, kept with probability w(k)/w(J·B)."""
        still = np.arange(drawn.size)
        while still.size:
            bits, places, lots = words(3 * still.size).reshape(3, -1)
            blocks, unsure = self._places(bits)
            negative = bits > _MAGNITUDE
            doubtful = set(unsure.tolist())
            sure, kept = np.zeros((2, still.size), dtype=bool)
            # a block and a place in it then fit into 64 bits
            if self.shift <= 40:
                inside = (places >> np.uint64(64 - self.shift)).view(np.int64)
                k = (blocks << self.shift) + inside
                sure = self.surely_kept(blocks, inside, lots)
                sure[unsure] = False
                kept = sure & ~(negative & (k == 0))  # −0 is not 0 once more
                drawn[still] = np.where(negative, -k, k)
            for at in np.flatnonzero(~sure).tolist():
                block = int(blocks[at])
                if at in doubtful:
                    block = invert(self.blocks, int(bits[at] & _MAGNITUDE), _BITS, words)
                place = self._place(int(places[at]), words)
                found = (block << self.shift) + place
                x = self.law.exponent(block << self.shift, place)
                kept[at] = (found or not negative[at]) and below_exp(int(lots[at]), *x, words)
                drawn[still[at]] = _fitting(-found if negative[at] else found)
            still = still[~kept]

    def _place(self, word: int, words: Words) -> int:
        """A uniform place in a block, from one word or as many as it has bits."""
        bits = 64
        while bits < self.shift:
            word, bits = word << 64 | int(words(1)[0]), bits + 64
        return word >> (bits - self.shift)


def table_for(law: Law, cells: int, *, repeatable: bool) -> InversionTable:
    """The table that draws so many cells soonest: a full one, or a shorter one in blocks; recent ones are kept.

    A full table is taken when a kept one is at hand, unless the draw must be ``repeatable`` whatever came before.
    Repeatable draws are simulations, which come in numbers: they take a full table unless it is long.
    Measured: an entry costs 0.35 µs, a cell 0.02 µs from a full table and 0.1 µs in blocks, and a block of a table with
    e entries sends one cell in e/30 through slower arithmetic of 5 µs.
    """
    entries, most = law.entries, 2**15  # the longest table takes 12 ms, and a quarter of a megabyte
    worthwhile = 256 + 12 * isqrt(cells) + cells // 4
    if entries <= min(most, max(worthwhile, 2**12) if repeatable else worthwhile):
        return _kept(law, 0)
    if not repeatable and (law, 0) in _tables:
        return _kept(law, 0)
    wanted = min(max(20 * isqrt(cells), 128), most)
    return _kept(law, (entries // wanted).bit_length())


_tables: OrderedDict[tuple[Law, int], InversionTable] = OrderedDict()
_lock = Lock()


def _kept(law: Law, shift: int) -> InversionTable:
    with _lock:
        table = _tables.pop((law, shift), None) or InversionTable(law, shift)
        _tables[law, shift] = table
        if len(_tables) > TABLES_KEPT:
            _tables.popitem(last=False)
        return table


def _end(listed: list[int]) -> int:
    """Bounds within two units of 1 place nothing: the first of them closes the table. The last is always one."""
    full = (1 << _BITS) - 2
    return next(k + 1 for k, bound in enumerate(listed) if bound >= full)


def _fitting(k: int) -> int:
    return min(max(k, _INT64.min), _INT64.max)
