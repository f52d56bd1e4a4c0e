"""Privacy loss distributions, and their composition.

They are made from what a theorem gives: atoms of the loss, an upper bound on the privacy profile, or an (ε, δ)
statement. Each is pessimistic: the made pair dominates the true one. dp-accounting is loaded only where a profile has
to be connected, or an object of it is asked for, as loading it takes longer than most releases.

Losses on multiples of one interval are composed by fast Fourier transforms. The method is that of dp-accounting, whose
numbers these are but for rounding.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import ERROR, ULPS, least_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


TAIL = 1e-20
"""Probability that may be moved to an infinite loss when a tail is cut."""

ROUNDING = 5e-16
"""Moved to an infinite loss in every release: Fourier transforms that compose it may lose up to a fifth of this."""

Masses = tuple[int, Floats, float]
"""Lowest multiple of the interval, probabilities of it and the following multiples, mass at infinity."""


@dataclass(frozen=True, slots=True, eq=False)
class Pld:
    """The law of the privacy loss on multiples of ``interval``, once for each direction that differs.

    >>> pld = Pld(0.5, ((-1, np.array([0.4, 0.0, 0.6]), 0.0),))
    >>> round(pld.delta(0.0), 6)
    0.236082
    """

    interval: float
    directions: tuple[Masses, ...]

    def losses(self) -> list[tuple[Floats, Floats, float]]:
        """Losses in rising order, their probabilities and the mass at infinity, for each direction."""
        return [
            ((lowest + np.arange(probabilities.size, dtype=np.float64)) * self.interval, probabilities, infinity)
            for lowest, probabilities, infinity in self.directions
        ]

    def delta(self, epsilon: float) -> float:
        """E[(1 − e^{ε−L})₊] in the worse direction, L the loss."""
        worst = 0.0
        for lowest, probabilities, infinity in self.directions:
            first = max(math.floor(epsilon / self.interval) - lowest, 0)
            above = (lowest + np.arange(first, probabilities.size, dtype=np.float64)) * self.interval
            gained = -np.expm1(np.minimum(epsilon - above, 0.0))
            worst = max(worst, infinity + float(probabilities[first:] @ gained))
        return worst

    @property
    def size(self) -> int:
        """How many multiples a direction covers."""
        return int(self.directions[0][1].size)


def from_masses(interval: float, removed: Masses, added: Masses | None = None) -> Pld:
    """A distribution from masses on multiples of ``interval``; one direction only when both are the same."""
    both = (removed,) if added is None else (removed, added)
    return Pld(interval, tuple((lowest, masses, infinity + ROUNDING) for lowest, masses, infinity in both))


def raise_losses(losses: Floats) -> Floats:
    """The losses, each at least what it would be without the rounding of the few operations that make it."""
    return losses + ULPS * np.abs(losses)


def split(losses: Floats, probabilities: Floats, interval: float, first: int, last: int) -> Masses:
    """Atoms of the loss moved to the multiples first…last of ``interval``.

    A loss between two multiples is divided between them so that both P and Q keep their mass: the coarse
    pair dominates the true one, and agrees with it at every multiple. Losses below the range move up to its
    start, losses above it to infinity.

    Source: [Dots] algorithm 1.
    """
    losses = raise_losses(losses)
    cell = np.clip(np.floor(losses / interval), first - 1, last).astype(np.int64)
    inside = (cell >= first) & (cell < last)
    index, mass = cell[inside] - first, probabilities[inside]
    share = np.clip(np.expm1(cell[inside] * interval - losses[inside]) / np.expm1(-interval), 0.0, 1.0)
    masses: Floats = np.zeros(last - first + 1)
    masses += np.bincount(index, mass * (1.0 - share), masses.size)
    masses += np.bincount(index + 1, mass * share, masses.size)
    masses[0] += probabilities[cell < first].sum()
    return first, masses, float(probabilities[cell >= last].sum())


def span(losses: Floats, probabilities: Floats, interval: float) -> tuple[int, int]:
    """The multiples of ``interval`` between which all but TAIL of the probability lies on each side."""
    order = np.argsort(losses)
    losses, probabilities = losses[order], probabilities[order]
    low = losses[np.searchsorted(np.cumsum(probabilities), TAIL)]
    high = losses[::-1][np.searchsorted(np.cumsum(probabilities[::-1]), TAIL)]
    return math.floor(low / interval), math.ceil(high / interval) + 1


def from_atoms(losses: Floats, probabilities: Floats, interval: float, betrayed: float = 0.0) -> Pld:
    """A symmetric pair whose loss takes finitely many values, and with probability ``betrayed`` is infinite instead."""
    first, last = span(losses, probabilities, interval)
    lowest, masses, infinity = split(losses, (1.0 - betrayed) * probabilities, interval, first, last)
    return from_masses(interval, (lowest, masses, infinity + betrayed))


def from_profile(profile: Callable[[Floats], Floats], interval: float, highest: float) -> Pld:
    """A symmetric pair whose δ(ε) is at most ``profile`` at every multiple of ``interval`` up to ``highest``.

    The true δ is a convex function of e^ε over all ε. Its values lie below the bound, hence below the largest
    convex function under the bound: that one is used, and chords between the multiples only round it up.

    Source: [Dots] algorithm 1; the convex hull is our remark, docs/explanation/proofs/composition.md.
    """
    from dp_accounting.pld import pld_pmf

    count = max(math.ceil(highest / interval), 1)
    epsilons: Floats = np.arange(count + 1, dtype=np.float64) * interval
    positive = np.clip(profile(epsilons), 0.0, 1.0)
    # symmetric pairs have δ(−ε) = 1 − e^−ε (1 − δ(ε))
    negative = 1.0 - np.exp(-epsilons[:0:-1]) * (1.0 - positive[:0:-1])
    deltas = largest_convex_below(np.concatenate([negative, positive]), interval)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -count, count, np.minimum(deltas + ROUNDING, 1.0)
    )
    return Pld(interval, (_masses(pmf),))


def largest_convex_below(values: Floats, interval: float) -> Floats:
    """The largest convex function of e^ε below these values at successive multiples of ``interval``.

    Andrew's lower hull. With x = e^ε, (x_b − x_a)/(x_c − x_a) depends on differences of ε only: large ε do
    not overflow.
    """
    steps = interval * np.arange(values.size)
    decay, rise = np.exp(-steps), -np.expm1(-steps)
    y, decays, rises = values.tolist(), decay.tolist(), rise.tolist()
    hull: list[int] = []
    for c in range(values.size):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if y[b] - y[a] < (y[c] - y[a]) * decays[c - b] * rises[b - a] / rises[c - a]:
                break
            hull.pop()
        hull.append(c)
    index, knots = np.arange(values.size), np.array(hull)
    piece = np.clip(np.searchsorted(knots, index, side="right") - 1, 0, knots.size - 2)
    left, right = knots[piece], knots[piece + 1]
    share = decay[right - index] * rise[index - left] / rise[right - left]
    return np.asarray(values[left] * (1.0 - share) + values[right] * share)


def from_statement(epsilon: float, delta: float, interval: float) -> Pld:
    """The worst pair that an (ε, δ) statement allows: with probability δ all is lost, else randomised response.

    Source: [KOV] theorem 3.3; [Dots] for the pair that dominates all (ε, δ)-DP mechanisms.
    """
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    lie = truth * math.exp(-epsilon)
    first, last = math.floor(-epsilon / interval), math.ceil(epsilon / interval) + 1
    atoms = np.array([epsilon, -epsilon]), np.array([truth, lie])
    lowest, masses, infinity = split(*atoms, interval, first, last)
    return from_masses(interval, (lowest, masses, infinity + delta))


def delta_of(pld: Pld, epsilon: float, releases: int = 1) -> float:
    """δ(ε) of so many composed releases, rounded up: composed masses are sums of products, and their errors add up.

    Source: docs/explanation/proofs/numerics.md.
    """
    return min(pld.delta(epsilon) * (1.0 + 4e-10 + ERROR * releases), 1.0)


def epsilon_of(pld: Pld, delta: float, releases: int = 1) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ delta; infinite if an infinite loss is likelier than that."""
    if delta_of(pld, 0.0, releases) <= delta:
        return 0.0
    high = 1.0
    while delta_of(pld, high, releases) > delta:
        high *= 2.0
        if high > 1e6:
            return math.inf
    below = 0.5 * high if high > 1.0 else 0.0
    return least_epsilon(lambda epsilon: delta_of(pld, epsilon, releases), delta, safe=high, unsafe=below)


# dp-accounting has no public way to ask for what is in its distributions: these three read and write their fields.


def to_accounting(pld: Pld) -> PrivacyLossDistribution:
    """The same distribution as an object of dp-accounting."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    made = (pld_pmf.DensePLDPmf(pld.interval, *masses, True) for masses in pld.directions)
    return privacy_loss_distribution.PrivacyLossDistribution(*made)


def read(made: PrivacyLossDistribution, interval: float) -> Pld:
    """The same distribution as an object of ours."""
    pmfs = [made._pmf_remove] if made._symmetric else [made._pmf_remove, made._pmf_add]
    return Pld(interval, tuple(_masses(pmf) for pmf in pmfs))


def _masses(pmf: object) -> Masses:
    dense = pmf.to_dense_pmf()  # type: ignore[attr-defined]  # the library has no types
    return int(dense._lower_loss), np.asarray(dense._probs, dtype=np.float64), float(dense._infinity_mass)


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
        made = tuple(repeat(each, times, tail) for each in pld.directions) if times > 1 else pld.directions
        heapq.heappush(heap, (made[0][1].size, serial, made))
    serial = len(heap)
    while len(heap) > 1:
        one, other = heapq.heappop(heap)[2], heapq.heappop(heap)[2]
        both = max(len(one), len(other))  # one direction stands for two that are the same
        made = tuple(together(one[min(at, len(one) - 1)], other[min(at, len(other) - 1)]) for at in range(both))
        serial += 1
        heapq.heappush(heap, (made[0][1].size, serial, made))
    return Pld(interval, heap[0][2])


def together(one: Masses, other: Masses, cut: float = 1e-15) -> Masses:
    """The law of the sum of two losses; half of ``cut`` may be raised at each end, at the upper one to infinity.

    Fourier transforms leave noise just below the ``cut`` in every tail.

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


def repeat(one: Masses, times: int, tail: float = 0.0) -> Masses:
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
