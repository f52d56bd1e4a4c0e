"""Integer noise by inversion: 64 random bits, looked up in a table of whole numbers; exact, and fast in numpy.

The table holds certified bounds of the cumulative distribution (``exact.Law.cumulative``). A word that the bounds
cannot place, less than once in 10¹⁴ draws, takes further words and sharper bounds. Noise too wide for a table is drawn
in blocks: the block from a table, the place in it uniform, and the pair kept with the exact chance that corrects the
law.

Nothing here sees a count: how many words are drawn, and how long it takes, depends on the law and on chance alone.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from math import isqrt
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Ints
from dpbayes.mechanisms.exact import Law, Words, below_exp, invert

CHUNK = 2**14
"""Words that are looked up at a time; they stay in the processor's cache."""

MOST_ENTRIES = 2**15
"""The longest table: 12 ms to compute, a quarter of a megabyte."""

TABLES_KEPT = 16

_BITS = 63  # of a word; the first of the 64 is the sign
_MAGNITUDE = np.uint64(2**_BITS - 1)
_CELL_BITS = 15  # of the guide
_IN_CELL = np.uint64(_BITS - _CELL_BITS)
_WIDEST_SHIFT = 40  # so that a block and a place in it fit into 64 bits
_GUIDE_PAYS = 2**12
_INT64 = np.iinfo(np.int64)


class Table:
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
        fill = self._fill_in_blocks if self.shift else self._fill
        for start in range(0, drawn.size, CHUNK):
            fill(drawn[start : start + CHUNK], words)

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
        if bits.size < _GUIDE_PAYS:
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
            if self.shift <= _WIDEST_SHIFT:
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


def table_for(law: Law, cells: int, *, repeatable: bool) -> Table:
    """The table that draws so many cells soonest: a full one, or a shorter one in blocks; recent ones are kept.

    A full table is taken when a kept one is at hand, unless the draw must be ``repeatable`` whatever came before.
    Repeatable draws are simulations, which come in numbers: they take a full table unless it is long.
    Measured: an entry costs 0.35 µs, a cell 0.02 µs from a full table and 0.1 µs in blocks, and a block of a table with
    e entries sends one cell in e/30 through slower arithmetic of 5 µs.
    """
    entries = law.entries
    worthwhile = 256 + 12 * isqrt(cells) + cells // 4
    if entries <= min(MOST_ENTRIES, max(worthwhile, 2**12) if repeatable else worthwhile):
        return _kept(law, 0)
    if not repeatable and (law, 0) in _tables:
        return _kept(law, 0)
    wanted = min(max(20 * isqrt(cells), 128), MOST_ENTRIES)
    return _kept(law, (entries // wanted).bit_length())


_tables: OrderedDict[tuple[Law, int], Table] = OrderedDict()
_lock = Lock()


def _kept(law: Law, shift: int) -> Table:
    with _lock:
        table = _tables.pop((law, shift), None) or Table(law, shift)
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
