"""Losses of finitely many values, and costs known only through Rényi divergences.

The first are those of noise on integers, randomised response and plain statements. From divergences follows what the
best order says; the papers' bound on a draw is one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import TargetUnreachable
from dpbayes.privacy.convert import ERROR, best_order, least_epsilon, renyi_to_delta, renyi_to_epsilon, safe_root
from dpbayes.privacy.pld import TAIL, Pld, from_atoms, from_profile, largest_convex_below

ROUND_UP = 1.0 + 100.0 * ERROR
"""Covers the rounding of sums over up to a million atoms."""


@dataclass(frozen=True, eq=False)
class AtomicLoss:
    """Losses, none of them rounded down, and their probabilities under P; the pair is the same in both directions."""

    losses: Floats
    probabilities: Floats

    @classmethod
    def of_profile(cls, deltas: Floats, highest: float) -> AtomicLoss:
        """The pair whose δ is at most ``deltas`` at equal steps of ε from 0 to ``highest``, and straight in e^ε between

        p_i = (δ_{i+1} − δ_i)/(e^h − 1) − (δ_i − δ_{i−1})/(1 − e^{−h}) for ε_i > 0, p_i·e^{−ε_i} for −ε_i, the rest at 0

        Symbols: h the step. The last δ is 0: the loss is bounded.
        Source: [Dots] algorithm 1; docs/explanation/proofs/hellinger.md, section 4.
        Adjacency: that of the profile, which holds in both directions.
        """
        step, steps = highest / (len(deltas) - 1), len(deltas) - 1
        at = step * np.arange(steps + 1)
        below = 1.0 - np.exp(-at[:0:-1]) * (1.0 - deltas[:0:-1])  # a symmetric pair has δ(−ε) = 1 − e^−ε(1 − δ(ε))
        above = largest_convex_below(np.concatenate([below, deltas]), step)[steps:]
        rises = np.append(np.diff(above), 0.0)
        p = np.maximum(rises[1:] / math.expm1(step) - rises[:-1] / -math.expm1(-step), 0.0)
        q = p * np.exp(-at[1:])
        rest = max(1.0 - math.fsum(p) - math.fsum(q), 0.0)
        return cls(np.concatenate([at[1:], [0.0], -at[1:]]), np.concatenate([p, [rest], q]))

    def delta(self, epsilon: float) -> float:
        """E[(1 − e^{ε−L})₊], rounded up."""
        above = self.losses > epsilon
        value = 0.0 - float((self.probabilities[above] * np.expm1(epsilon - self.losses[above])).sum())
        return min(value * ROUND_UP, 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, rounded up."""
        return least_epsilon(self.delta, delta, safe=float(self.losses.max()))

    def renyi(self, order: float) -> float:
        """D_λ = ln(1 + Σ P·[e^{(λ−1)L} − 1 − (λ−1)(1 − e^{−L})])/(λ−1), rounded up

        Symbols: λ order, L the losses. The last part adds up to zero, as Σ P·e^{−L} = 1, and no term is negative.
        Source: docs/explanation/proofs/pseudo-records.md.
        Adjacency: that of the pair.
        """
        less, largest = order - 1.0, float(self.losses.max())
        if math.isinf(order):
            return largest
        if less * largest > 300.0:
            logs = np.log(self.probabilities, where=self.probabilities > 0, out=np.full(self.losses.shape, -np.inf))
            logs += less * self.losses
            highest = float(logs.max())
            found = highest + math.log(float(np.exp(logs - highest).sum()))
        else:
            found = math.log1p(float((self.probabilities * renyi_weights(self.losses, order)).sum()))
        return min(ROUND_UP * found / less, largest)

    def pld(self, interval: float, betrayed: float = 0.0) -> Pld:
        """The loss on multiples of ``interval``; with probability ``betrayed`` it is infinite instead."""
        return from_atoms(self.losses, self.probabilities, interval, betrayed)


def renyi_weights(losses: Floats, order: float) -> Floats:
    """e^{(λ−1)L} − 1 − (λ−1)(1 − e^{−L}), with every digit also where L is small

    Symbols: λ order, L losses.
    Source: docs/explanation/proofs/pseudo-records.md.
    Adjacency: none.
    """
    less = order - 1.0
    tilted = less * losses
    near = (np.abs(losses) < 0.01) & (np.abs(tilted) < 0.01)
    terms: Floats = np.expm1(tilted) + less * np.expm1(-losses)
    x, y = -losses[near], tilted[near]
    terms[near] = sum((y**n + less * x**n) / math.factorial(n) for n in range(7, 1, -1))
    return terms


def randomised_response(epsilon: float) -> AtomicLoss:
    """The pair that dominates every ε-DP mechanism: loss ±ε, positive with probability 1/(1+e^−ε).

    Source: [KOV] theorem 3.3 with δ = 0.
    """
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return AtomicLoss(np.array([epsilon, -epsilon]), np.array([truth, truth * math.exp(-epsilon)]))


def randomised_response_renyi(order: float, epsilon: float) -> float:
    """D_λ = ln[(e^{λε} + e^{(1−λ)ε})/(1 + e^ε)]/(λ−1); ε at infinite order

    Symbols: λ order.
    Source: [Mironov17] proposition 5 with p = 1/(1+e^−ε).
    Adjacency: any that the ε holds for.

    >>> round(randomised_response_renyi(2, 1.0), 6)
    0.735326
    """
    if math.isinf(order):
        return epsilon
    if order * epsilon > 30.0:  # relative to λε, so that large orders do not overflow
        rest = math.log1p(math.exp((1.0 - 2.0 * order) * epsilon)) - math.log1p(math.exp(-epsilon))
        divergence = epsilon + rest / (order - 1.0)
    else:  # the same as ln[cosh((λ−½)ε)/cosh(ε/2)]/(λ−1), where nothing cancels
        growth = 2.0 * math.sinh(0.5 * order * epsilon) * math.sinh(0.5 * (order - 1.0) * epsilon)
        divergence = math.log1p(growth / math.cosh(0.5 * epsilon)) / (order - 1.0)
    return min(divergence * (1.0 + 1e-15), epsilon)


@dataclass(frozen=True)
class RenyiBound:
    """A bound on the divergence for orders up to ``last_order``, and what it implies."""

    curve: Callable[[float], float]
    last_order: float = math.inf

    def renyi(self, order: float) -> float:
        """The bound itself; infinite from the last order on."""
        return self.curve(order) if order < self.last_order else math.inf

    def epsilon(self, delta: float) -> float:
        """ε by the best order.

        Source: [RDP] lemma 3.
        """
        return renyi_to_epsilon(*self._best(lambda o, d: renyi_to_epsilon(o, d, delta)), delta)

    def delta(self, epsilon: float) -> float:
        """δ by the best order.

        Source: [RDP] lemma 3.
        """
        return renyi_to_delta(*self._best(lambda o, d: renyi_to_delta(o, d, epsilon)), epsilon)

    def _best(self, value: Callable[[float, float], float]) -> tuple[float, float]:
        highest = min(self.last_order, 1e7)
        order = best_order(lambda at: value(at, self.renyi(at)), highest=highest)
        return order, self.renyi(order)

    def concentrated(self, omega: float) -> float:
        """ρ(ω) ≤ max_i D(λ_{i+1})/λ_i over a grid of orders from 1 to ω

        Symbols: ω omega, D the Rényi divergence, which does not fall with the order.
        Source: [BDRS18] definition 1.
        Adjacency: that of the bound.
        """
        if math.isinf(omega):
            return math.inf
        orders: list[float] = (1.0 + np.geomspace(1e-6, omega - 1.0, 400)).tolist()
        above = [self.renyi(order) for order in orders]
        return max(value / below for value, below in zip(above, [1.0, *orders[:-1]], strict=True))

    def pld(self, interval: float) -> Pld:
        """A distribution that dominates every mechanism with these divergences."""
        return from_profile(self._profile, interval, self.epsilon(TAIL))

    def _profile(self, epsilons: Floats) -> Floats:
        """δ at many ε: the smallest over a fixed grid of orders, each of which is a valid bound."""
        orders, divergences = self._grid
        less = orders - 1.0
        constant = orders * np.log1p(-1.0 / orders) - np.log(less) + less * divergences
        return np.asarray(np.exp(np.minimum(constant - less * epsilons[:, None], 0.0)).min(axis=1))

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        orders = 1.0 + np.geomspace(1e-3, min(self.last_order - 1.0, 1e5) * (1 - 1e-9), 200)
        divergences = np.array([self.renyi(float(order)) for order in orders])
        usable = np.isfinite(divergences)
        return orders[usable], divergences[usable]


def trigamma(x: float) -> float:
    """ψ′(x) = Σ 1/(x+k)², the Hurwitz zeta function at 2."""
    from scipy.special import zeta

    return float(zeta(2.0, x))


def trigamma_bound(order: float, *, weight: float, concentration: float, l2_squared: float, linf: float) -> float:
    """ε(λ) = ½·λ·r²·Δ₂²·ψ′(α − (λ−1)·r·Δ∞)        valid while α > (λ−1)·r·Δ∞, else ∞

    Symbols: λ order, r weight, α concentration (the smallest), Δ₂² l2_squared, Δ∞ linf.
    Source: [RDP] appendix D, last display; [tCDP] appendix A.
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> round(trigamma_bound(2, weight=1, concentration=5, l2_squared=2, linf=1), 6)
    0.567646
    """
    rest = concentration - (order - 1.0) * weight * linf
    return 0.5 * order * weight**2 * l2_squared * trigamma(rest) if rest > 0 else math.inf


def algorithm_1(
    *,
    order: float,
    epsilon: float,
    l2_squared: float = 2.0,
    linf: float = 1.0,
    slack: Callable[[float], float] | None = None,
    least_count: float = 0.0,
) -> tuple[float, float]:
    """(r, α) with ε = ½·λ·r²·Δ₂²·ψ′(1 + g(r)) and α = 1 + g(r) + (λ−1)·r·Δ∞

    where g(r) = 3(λ−1)rΔ∞ unless another ``slack`` g is given. A public bound c > b on the counts
    (``least_count``) adds r·b to the argument of ψ′, and nothing to α.

    Symbols: λ order, r weight, α concentration, Δ₂² l2_squared, Δ∞ linf, g slack, b least_count.
    Source: [RDP] algorithm 1, remark 1 (any g), remark 2 (b).
    Adjacency: enters only through Δ₂² and Δ∞.

    >>> weight, concentration = algorithm_1(order=5, epsilon=0.1)
    >>> round(weight, 4), round(concentration, 3)
    (0.2776, 5.441)
    """
    checks.order("algorithm_1", order)
    checks.positive("algorithm_1", epsilon=epsilon, l2_squared=l2_squared, linf=linf)
    checks.non_negative("algorithm_1", least_count=least_count)

    def g(weight: float) -> float:
        return 3.0 * (order - 1.0) * weight * linf if slack is None else slack(weight)

    def gap(weight: float) -> float:
        argument = 1.0 + g(weight) + weight * least_count
        return 0.5 * order * weight**2 * l2_squared * trigamma(argument) - epsilon

    high = 1.0
    while gap(high) <= 0:
        high *= 2.0
        if high > 1e100:
            raise TargetUnreachable("algorithm_1: no weight reaches this ε with the slack given; let it grow slower.")
    weight = safe_root(gap, safe=0.0, unsafe=high, tolerance=1e-13 * epsilon)
    return weight, 1.0 + g(weight) + (order - 1.0) * weight * linf


def largest_over_chord(low: float, high: float, at_low: float, at_high: float) -> float:
    """The largest value of k(λ)/(λ(λ−1)) between two orders, k the straight line through the two given values.

    That is k(1)/(λ−1) − k(0)/λ, where convexity makes k(1) and k(0) negative: it rises, then falls.
    """
    slope = (at_high - at_low) / (high - low)
    at_one, at_zero = min(at_low - slope * (low - 1.0), 0.0), min(at_low - slope * low, 0.0)
    if at_one == 0.0:
        return -at_zero / low
    ratio = math.sqrt(at_zero / at_one)
    peak = min(max(ratio / (ratio - 1.0), low), high) if ratio > 1.0 else high
    return at_one / (peak - 1.0) - at_zero / peak
