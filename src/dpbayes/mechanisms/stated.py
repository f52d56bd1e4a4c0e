"""Releases whose cost is known only by a statement, (ε, δ) or Rényi, such as those made by other libraries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpbayes.base import checks
from dpbayes.mechanisms.base import Mechanism
from dpbayes.privacy.atoms import randomised_response, randomised_response_renyi
from dpbayes.privacy.bounds import RenyiBound
from dpbayes.privacy.convert import renyi_to_delta, renyi_to_epsilon
from dpbayes.privacy.pld import Pld, from_statement
from dpbayes.schema.unit import PrivacyUnit


@dataclass(frozen=True, slots=True)
class Stated(Mechanism):
    """Priced as the worst mechanism that satisfies (ε, δ): randomised response, betrayed with probability δ.

    ``what`` says in a few words what was released. It has no ``draw``: the release happened elsewhere.

    Source: [KOV] theorem 3.3.
    """

    kind = "stated-1"
    epsilon_stated: float
    delta_stated: float
    unit: PrivacyUnit
    what: str

    def __post_init__(self) -> None:
        checks.positive("Stated", epsilon=self.epsilon_stated)
        checks.non_negative("Stated", delta=self.delta_stated)
        if self.delta_stated > 0:
            checks.probability("Stated", delta=self.delta_stated)
        object.__setattr__(self, "unit", PrivacyUnit.of(self.unit))
        object.__setattr__(self, "epsilon_stated", float(self.epsilon_stated))
        object.__setattr__(self, "delta_stated", float(self.delta_stated))

    def renyi(self, order: float) -> float:
        """That of randomised response; infinite when δ > 0."""
        return math.inf if self.delta_stated > 0 else randomised_response_renyi(order, self.epsilon_stated)

    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """½ε²; infinite when δ > 0.

        Source: [BS16] proposition 1.4.
        """
        return math.inf if self.delta_stated > 0 else 0.5 * self.epsilon_stated**2

    def delta(self, epsilon: float) -> float:
        """δ + (1−δ)·δ_response(ε)."""
        response = randomised_response(self.epsilon_stated).delta(epsilon)
        rest = (1.0 - self.delta_stated) * response
        return math.nextafter(self.delta_stated + rest, 1.0) if rest > 0 else self.delta_stated

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ; infinite below the stated δ."""
        if delta < self.delta_stated:
            return math.inf
        if delta == self.delta_stated:
            return self.epsilon_stated
        rest = (delta - self.delta_stated) / (1.0 - self.delta_stated) * (1.0 - 1e-15)
        return randomised_response(self.epsilon_stated).epsilon(rest)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return from_statement(self.epsilon_stated, self.delta_stated, interval)

    def but_for(self) -> tuple[Stated, float]:
        """The pure release that remains, and the chance δ that everything is lost instead.

        Source: [KOV] theorem 3.3.
        """
        return replace(self, delta_stated=0.0), self.delta_stated


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRDP(Mechanism):
    """A release known to be (λ, ε)-RDP at one order, which holds at every lower order too and says nothing above.

    Statements of different orders add up at the smallest of them. A ledger with the rule ``renyi`` charges the stated ε
    where the order reaches the limit's. Else, and by the rule ``gaussian``, it charges the Gaussian shift that covers
    the (ε, δ) profile of the statement, which is dear where the order is small.

    Source: [RDP] lemma 1; [Mironov17] propositions 1 and 9.

    >>> from dpbayes.privacy.cost import Cost
    >>> unit = PrivacyUnit(adjacency="add-remove")
    >>> one = StatedRDP(order=8, epsilon_stated=0.1, unit=unit, what="a map")
    >>> other = StatedRDP(order=3, epsilon_stated=0.2, unit=unit, what="a table")
    >>> cost = Cost.total([one, other])
    >>> round(cost.renyi(3), 9), cost.renyi(3.1)
    (0.3, inf)
    """

    kind = "stated-rdp-1"
    order: float
    epsilon_stated: float
    unit: PrivacyUnit
    what: str

    def __post_init__(self) -> None:
        checks.order("StatedRDP", self.order)
        Mechanism.__post_init__(self)

    @property
    def exact(self) -> bool:
        """Whether the cost is exact. It is a bound at one order."""
        return False

    def renyi(self, order: float) -> float:
        """ε up to the stated order, for divergences do not fall with the order; infinite above."""
        return self.epsilon_stated if order <= self.order else math.inf

    def concentrated(self, omega: float) -> float:
        """ρ(ω) = ε for ω up to the stated order: D_λ ≤ ε ≤ ε·λ; else infinite

        Symbols: ω omega, ε epsilon_stated.
        Source: [BDRS18] definition 1.
        Adjacency: that of the statement.
        """
        return self.epsilon_stated if omega <= self.order else math.inf

    def _bound(self) -> RenyiBound:
        return RenyiBound(self.renyi, last_order=math.nextafter(self.order, math.inf))

    def delta(self, epsilon: float) -> float:
        """δ by the best order up to the stated one."""
        at_stated = renyi_to_delta(self.order, self.epsilon_stated, epsilon)
        return min(self._bound().delta(epsilon), at_stated)

    def epsilon(self, delta: float) -> float:
        """ε by the best order up to the stated one."""
        at_stated = renyi_to_epsilon(self.order, self.epsilon_stated, delta)
        return min(self._bound().epsilon(delta), at_stated)

    def pld(self, interval: float) -> Pld:
        """A loss distribution that dominates every release with this statement."""
        return self._bound().pld(interval)
