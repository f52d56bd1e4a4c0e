"""Releases made elsewhere: known by a statement, (ε, δ) or Rényi, or described by a DpEvent of dp-accounting."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

from dpbayes.base import checks
from dpbayes.base.codec import canonical
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.kinds import Mechanism, Record
from dpbayes.privacy import events
from dpbayes.privacy.bounds import RenyiBound, randomised_response, randomised_response_renyi
from dpbayes.privacy.convert import gaussian_delta, gaussian_epsilon, renyi_to_delta, renyi_to_epsilon
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.pld import Pld, delta_of, epsilon_of, from_statement
from dpbayes.schema.unit import Unit


@dataclass(frozen=True, slots=True)
class Stated(Mechanism):
    """Priced as the worst mechanism that satisfies (ε, δ): randomised response, betrayed with probability δ.

    ``what`` says in a few words what was released. It has no ``draw``: the release happened elsewhere.

    Source: [KOV] theorem 3.3.
    """

    kind = "stated-1"
    epsilon_stated: float
    delta_stated: float
    unit: Unit
    what: str

    def __post_init__(self) -> None:
        checks.positive("Stated", epsilon=self.epsilon_stated)
        checks.non_negative("Stated", delta=self.delta_stated)
        if self.delta_stated > 0:
            checks.probability("Stated", delta=self.delta_stated)
        object.__setattr__(self, "unit", Unit.of(self.unit))
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
    >>> unit = Unit(adjacency="add-remove")
    >>> one = StatedRDP(order=8, epsilon_stated=0.1, unit=unit, what="a map")
    >>> other = StatedRDP(order=3, epsilon_stated=0.2, unit=unit, what="a table")
    >>> cost = Cost.total([one, other])
    >>> round(cost.renyi(3), 9), cost.renyi(3.1)
    (0.3, inf)
    """

    kind = "stated-rdp-1"
    order: float
    epsilon_stated: float
    unit: Unit
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignEvent(Mechanism):
    """One DpEvent, priced by dp-accounting's own accountants. It has no ``draw``: the release happened elsewhere.

    ``event`` is its JSON text, with the name of its class; noise is relative to the sensitivity for one unit.
    ``ForeignEvent.cost`` takes a DpEvent object, with compositions and repetitions.

    Source: [Dots] for loss distributions, [Mironov17] for divergences, both as implemented by dp-accounting.
    """

    kind = "dp-event-1"
    event: str
    unit: Unit
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", Unit.of(self.unit))
        if not isinstance(self.event, str):
            raise InvalidArgument("Event: expected the JSON text of a DpEvent.")
        if self.unit.replaces:
            raise InvalidArgument(
                "Event: expected an add-remove unit. For replaced records dp-accounting prices one event in two ways; "
                "state the release by its (ε, δ) or its RDP instead."
            )
        if events.SAMPLED.search(self.event) and self.unit.max_rows > 1:
            raise InvalidArgument("Event: sampling is priced for one row per person only.")
        events.read(self.event)

    @classmethod
    def cost(cls, event: object, unit: Unit, *, what: str, times: int = 1) -> Cost:
        """What a DpEvent costs, each of its parts as a mechanism of its own.

        >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
        >>> unit = Unit(adjacency="add-remove")
        >>> cost = ForeignEvent.cost(SelfComposedDpEvent(GaussianDpEvent(5.0), 100), unit, what="training")
        >>> cost.releases, round(cost.renyi(2), 6)
        (100, 4.0)
        """
        parts = [Cost.of(_made(text, unit, what), often) for text, often in events.leaves(event, times)]
        if not parts:
            raise InvalidArgument("Event: expected an event that reads data.")
        return sum(parts[1:], parts[0])

    @property
    def exact(self) -> bool:
        """Whether the cost is exact. It is dp-accounting's, in steps and rounded up."""
        return False

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order."""
        return events.renyi(self.event, float(order))

    def concentrated(self, omega: float) -> float:
        """Smallest known ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω."""
        return self._bound().concentrated(omega)

    def _bound(self) -> RenyiBound:
        return RenyiBound(self.renyi)

    def _own(self) -> Pld | None:
        """Its loss distribution in steps that suit it."""
        coarse = events.pld(self.event, 1e-2)
        if coarse is None:
            return None
        # so many steps up to the ε at δ = 10⁻⁶
        interval = min(max(epsilon_of(coarse, 1e-6), 1e-3) / 300.0, 1e-2)
        return events.pld(self.event, interval)

    def delta(self, epsilon: float) -> float:
        """Smallest proven δ for this ε."""
        own = self._own()
        return min(self._bound().delta(epsilon), 1.0 if own is None else delta_of(own, epsilon))

    def epsilon(self, delta: float) -> float:
        """Smallest proven ε for this δ."""
        own = self._own()
        return min(self._bound().epsilon(delta), math.inf if own is None else epsilon_of(own, delta))

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        known = events.pld(self.event, interval)
        return self._bound().pld(interval) if known is None else known

    def record(self) -> Record:
        """JSON form."""
        return {**Mechanism.record(self), "event": json.loads(self.event)}

    @classmethod
    def from_record(cls, record: Record) -> ForeignEvent:
        """Read the JSON form back."""
        return _made(canonical(record["event"]), Unit.from_record(record["unit"]), str(record["what"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(ForeignEvent):
    """Gaussian noise of real numbers: what every rule knows exactly.

    Source: [DRS22] theorem 2.7, [Mironov17] proposition 7.
    """

    @property
    def multiplier(self) -> float:
        """Standard deviation over sensitivity."""
        return float(json.loads(self.event)["noise_multiplier"])

    def gdp(self) -> tuple[float, float]:
        """μ = 1/z, with nothing left over

        Symbols: z the noise multiplier.
        Source: [DRS22] theorem 2.7.
        Adjacency: enters through the sensitivity that z is relative to.
        """
        return math.nextafter(1.0 / self.multiplier, math.inf), 0.0

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        return gaussian_delta(self.gdp()[0], epsilon)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""
        return gaussian_epsilon(self.gdp()[0], delta)

    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """ρ = 1/(2z²)

        Symbols: z the noise multiplier.
        Source: [BS16] proposition 1.6.
        Adjacency: enters through the sensitivity that z is relative to.
        """
        return 0.5 / self.multiplier**2 * (1.0 + 1e-12)


def _made(text: str, unit: Unit, what: str) -> ForeignEvent:
    kind = (
        GaussianEvent
        if '"GaussianDpEvent"' in text and "Sampled" not in text and "Select" not in text
        else ForeignEvent
    )
    return kind(event=text, unit=unit, what=what)
