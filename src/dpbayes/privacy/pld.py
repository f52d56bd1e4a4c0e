"""Privacy loss distributions.

They are made from what a theorem gives: atoms of the loss, an upper bound on the privacy profile, or an (ε, δ)
statement. Each is pessimistic: the made pair dominates the true one. dp-accounting is loaded only where a profile has
to be connected, or an object of it is asked for, as loading it takes longer than most releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.solve import ERROR, ULPS, least_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

TAIL = 1e-20
"""Probability that may be moved to an infinite loss when a tail is cut."""

ROUNDING = 5e-16
"""Moved to an infinite loss in every release: Fourier transforms that compose it may lose up to a fifth of this."""

SAFETY = 4e-10
"""Added to a composed δ, as a share of it."""

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


def raised(losses: Floats) -> Floats:
    """The losses, each at least what it would be without the rounding of the few operations that make it."""
    return losses + ULPS * np.abs(losses)


def split(losses: Floats, probabilities: Floats, interval: float, first: int, last: int) -> Masses:
    """Atoms of the loss moved to the multiples first…last of ``interval``.

    A loss between two multiples is divided between them so that both P and Q keep their mass: the coarse
    pair dominates the true one, and agrees with it at every multiple. Losses below the range move up to its
    start, losses above it to infinity.

    Source: [Dots] algorithm 1.
    """
    losses = raised(losses)
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
    return min(pld.delta(epsilon) * (1.0 + SAFETY + ERROR * releases), 1.0)


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


def accounted(pld: Pld) -> PrivacyLossDistribution:
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
