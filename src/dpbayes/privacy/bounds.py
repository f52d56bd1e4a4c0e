"""A cost known only through its Rényi divergences: every other number follows from the best order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes._checks import Floats
from dpbayes.privacy.convert import best_order, renyi_to_delta, renyi_to_epsilon
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
