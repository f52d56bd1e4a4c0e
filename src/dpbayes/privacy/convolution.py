"""Laws of composed losses: sums of independent losses on multiples of one interval, by fast Fourier transforms.

The method is that of dp-accounting, whose numbers these are but for rounding. It is written here because loading that
library, and the parts of scipy that it needs, takes longer than a release of ten tables.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.pld import TAIL, Masses, Pld

CUT = 1e-15
"""Probability that may be moved to an infinite loss when two laws are composed: Fourier transforms leave noise just
below it in every tail."""


def compose(parts: Iterable[tuple[Pld, int]]) -> Pld:
    """All parts together, each repeated; the two smallest first, so that work stays near-linear."""
    listed = list(parts)
    if len(listed) == 1 and listed[0][1] == 1:
        return listed[0][0]
    interval = listed[0][0].interval
    if any(pld.interval != interval for pld, _ in listed):
        raise InvalidArgument("compose: expected losses on multiples of one interval.")
    heap: list[tuple[int, int, tuple[Masses, ...]]] = []
    for serial, (pld, times) in enumerate(listed):
        tail = TAIL if times * pld.size > 2**17 else 0.0  # finding the bounds of shorter laws takes longer
        made = tuple(repeated(each, times, tail) for each in pld.directions) if times > 1 else pld.directions
        heapq.heappush(heap, (made[0][1].size, serial, made))
    serial = len(heap)
    while len(heap) > 1:
        one, other = heapq.heappop(heap)[2], heapq.heappop(heap)[2]
        both = max(len(one), len(other))  # one direction stands for two that are the same
        made = tuple(together(one[min(at, len(one) - 1)], other[min(at, len(other) - 1)]) for at in range(both))
        serial += 1
        heapq.heappush(heap, (made[0][1].size, serial, made))
    return Pld(interval, heap[0][2])


def together(one: Masses, other: Masses, cut: float = CUT) -> Masses:
    """The law of the sum of two losses; half of ``cut`` may be raised at each end, at the upper one to infinity.

    p_k = Σ_i a_i·b_{k−i}, at infinity a + b − ab
    Symbols: a, b masses of the two.
    Source: [Dots] section 2, composition.
    Adjacency: that of the two losses.

    >>> together((0, np.array([0.5, 0.5]), 0.0), (-1, np.array([0.25, 0.75]), 0.0), 0.0)[1].round(3).tolist()
    [0.125, 0.5, 0.375]
    """
    (low, a, lost), (other_low, b, other_lost) = one, other
    size = a.size + b.size - 1
    fast = _fast_length(size)
    masses = np.fft.irfft(np.fft.rfft(a, fast) * np.fft.rfft(b, fast), fast)[:size]
    first = min(_prefix(masses, cut / 2), size - 1)
    last = max(size - _prefix(masses[::-1], cut / 2), first + 1)
    kept = masses[first:last].copy()
    kept[0] += masses[:first].sum()
    above = max(float(masses[last:].sum()), 0.0)
    return low + other_low + first, kept, lost + other_lost - lost * other_lost + above


def repeated(one: Masses, times: int, tail: float = 0.0) -> Masses:
    """The law of the sum of ``times`` such losses; with probability ``tail`` the sum counts as infinite instead.

    P[S ≥ s] ≤ exp(−ts)·M(t)^n and the same below bound the range outside of which ``tail`` lies.
    Symbols: n times, M moment generating function of one loss, t an order.
    Source: Chernoff's bound; [Dots] section 2, composition.
    Adjacency: that of the loss.
    """
    low, masses, lost = one
    first, last = 0, (masses.size - 1) * times
    if tail > 0:
        first, last = _bounds(masses, times, tail)
    size = last - first + 1
    fast = _fast_length(max(size, masses.size))
    powers = np.fft.irfft(np.fft.rfft(masses, fast) ** times, fast)
    found = np.roll(powers, -first)[:size]
    infinite = -math.expm1(times * math.log1p(-lost)) if lost < 1.0 else 1.0
    return low * times + first, found, tail + infinite


def _bounds(masses: Floats, times: int, tail: float, orders: int = 20) -> tuple[int, int]:
    """Multiples between which all but ``tail`` of the sum lies, half of it on each side, by Chernoff at some orders."""
    first, last = 0, (masses.size - 1) * times
    at = np.flatnonzero(masses > 0)
    logs = np.log(masses[at])
    for order in (np.arange(1, orders + 1) / masses.size).tolist():
        for sign in (1.0, -1.0):
            terms = logs + sign * order * at
            top = float(terms.max())
            moment = top + math.log(float(np.exp(terms - top).sum()))
            reach = (times * moment + math.log(2.0 / tail)) / order
            if sign > 0:
                last = min(last, math.ceil(reach))
            else:
                first = max(first, math.floor(-reach))
    return first, last


def _prefix(masses: Floats, most: float) -> int:
    """How many of the first masses sum to at most this."""
    above = np.cumsum(masses) > most
    return int(above.argmax()) if above.any() else masses.size


def _fast_length(size: int) -> int:
    """The least length ≥ size whose prime factors are 2, 3 and 5: transforms of it are fast."""
    best = 1 << max(size - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(-(-size // three) - 1, 0).bit_length())
            three *= 3
        five *= 5
    return best
