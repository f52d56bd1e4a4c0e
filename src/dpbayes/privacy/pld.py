"""Privacy loss distributions, built for dp-accounting and composed by it.

dp-accounting composes; here its inputs are made from what a theorem gives: atoms of the loss, an upper bound
on the privacy profile, or an (ε, δ) statement. Each is pessimistic: the made pair dominates the true one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dpbayes._checks import Floats
from dpbayes.privacy.solve import safe_root

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    Pld: TypeAlias = PrivacyLossDistribution
else:
    Pld = object

TAIL = 1e-20
"""Probability that may be moved to an infinite loss when a tail is cut."""

LONG = 2**17
"""Number of multiples from which composed tails are cut."""

Masses = tuple[int, Floats, float]
"""Lowest multiple of the interval, probabilities of it and the following multiples, mass at infinity."""


def from_masses(interval: float, removed: Masses, added: Masses | None = None) -> Pld:
    """A distribution from masses on multiples of ``interval``; one direction only when both are the same."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    def dense(masses: Masses) -> object:
        lowest, probabilities, infinity = masses
        return pld_pmf.DensePLDPmf(interval, lowest, probabilities, infinity, True)

    if added is None:
        return privacy_loss_distribution.PrivacyLossDistribution(dense(removed))
    return privacy_loss_distribution.PrivacyLossDistribution(dense(removed), dense(added))


def split(losses: Floats, probabilities: Floats, interval: float, first: int, last: int) -> Masses:
    """Atoms of the loss moved to the multiples first…last of ``interval``.

    A loss between two multiples is divided between them so that both P and Q keep their mass: the coarse
    pair dominates the true one, and agrees with it at every multiple. Losses below the range move up to its
    start, losses above it to infinity.

    Source: [Dots] algorithm 1.
    """
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


def from_atoms(losses: Floats, probabilities: Floats, interval: float) -> Pld:
    """A symmetric pair whose loss takes finitely many values."""
    return from_masses(interval, split(losses, probabilities, interval, *span(losses, probabilities, interval)))


def from_profile(profile: Callable[[Floats], Floats], interval: float, highest: float) -> Pld:
    """A symmetric pair whose δ(ε) is at most ``profile`` at every multiple of ``interval`` up to ``highest``.

    The true δ is a convex function of e^ε. Its values lie below the bound, hence below the largest convex
    function under the bound: that one is used, and chords between the multiples only round it up.

    Source: [Dots] algorithm 1; the convex hull is our remark, docs/explanation/proofs/composition.md.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    count = max(math.ceil(highest / interval), 1)
    epsilons = np.arange(count + 1, dtype=np.float64) * interval
    positive = _largest_convex_below(np.exp(epsilons), np.clip(profile(epsilons), 0.0, 1.0))
    # symmetric pairs have δ(−ε) = 1 − e^−ε (1 − δ(ε))
    negative = 1.0 - np.exp(-epsilons[:0:-1]) * (1.0 - positive[:0:-1])
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -count, count, np.concatenate([negative, positive])
    )
    return privacy_loss_distribution.PrivacyLossDistribution(pmf.to_dense_pmf())


def _largest_convex_below(x: Floats, y: Floats) -> Floats:
    """Values at x of the largest convex function below the points (x, y): Andrew's lower hull."""
    hull: list[int] = []
    for i in range(x.size):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.interp(x, x[hull], y[hull])


def from_statement(epsilon: float, delta: float, interval: float) -> Pld:
    """The worst pair that an (ε, δ) statement allows: with probability δ all is lost, else randomised response.

    Source: [KOV] theorem 3.3; [Dots] for the pair that dominates all (ε, δ)-DP mechanisms.
    """
    ceiling = math.ceil(epsilon / interval - 1e-12)
    truth = (1.0 - delta) / (1.0 + math.exp(-ceiling * interval))
    probabilities = np.zeros(2 * ceiling + 1)
    probabilities[0] += 1.0 - delta - truth
    probabilities[-1] += truth
    return from_masses(interval, (-ceiling, probabilities, delta))


def compose(parts: Iterable[tuple[Pld, int]]) -> Pld:
    """All parts together, each repeated; the two smallest first, so that work stays near-linear."""
    heap: list[tuple[int, int, Pld]] = []
    for serial, (pld, times) in enumerate(parts):
        # cutting tails costs more than it saves while the whole range is short
        tail = TAIL if times * _size(pld) > LONG else 0.0
        repeated = pld.self_compose(times, tail) if times > 1 else pld
        heapq.heappush(heap, (_size(repeated), serial, repeated))
    serial = len(heap)
    while len(heap) > 1:
        _, _, one = heapq.heappop(heap)
        _, _, other = heapq.heappop(heap)
        together = one.compose(other, TAIL if _size(one) + _size(other) > LONG else 0.0)
        serial += 1
        heapq.heappush(heap, (_size(together), serial, together))
    return heap[0][2]


def epsilon_of(pld: Pld, delta: float) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ delta; infinite if an infinite loss is likelier than that."""
    deltas = pld.get_delta_for_epsilon
    if float(deltas(0.0)) <= delta:
        return 0.0
    high = 1.0
    while float(deltas(high)) > delta:
        high *= 2.0
        if high > 1e6:
            return math.inf
    target = math.log(delta)

    def gap(epsilon: float) -> float:
        value = float(deltas(epsilon))
        return (math.log(value) if value > 0 else -math.inf) - target

    return safe_root(gap, safe=high, unsafe=0.5 * high if high > 1.0 else 0.0, tolerance=1e-13 * max(1.0, -target))


def _size(pld: Pld) -> int:
    return int(pld._pmf_remove.size)  # dp-accounting has no public way to ask
