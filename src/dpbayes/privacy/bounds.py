"""Costs known only through Rényi divergences: what follows from the best order, and the papers' bound on a draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import TargetUnreachable
from dpbayes.privacy.convert import best_order, renyi_to_delta, renyi_to_epsilon, safe_root
from dpbayes.privacy.pld import TAIL, Pld, from_profile


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
