"""Releases by other libraries that describe themselves as DpEvents of dp-accounting."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from dpbayes.base.codec import canonical
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.base import Mechanism, Record
from dpbayes.privacy import events
from dpbayes.privacy.bounds import RenyiBound
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.gdp import gaussian_delta, gaussian_epsilon
from dpbayes.privacy.pld import Pld, delta_of, epsilon_of
from dpbayes.schema.unit import PrivacyUnit

FINENESS = 300.0
"""A loss distribution of its own has this many steps up to the ε at δ = 10⁻⁶."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Mechanism):
    """One DpEvent, priced by dp-accounting's own accountants. It has no ``draw``: the release happened elsewhere.

    ``event`` is its JSON text, with the name of its class; noise is relative to the sensitivity for one unit.
    ``Event.cost`` takes a DpEvent object, with compositions and repetitions.

    Source: [Dots] for loss distributions, [Mironov17] for divergences, both as implemented by dp-accounting.
    """

    kind = "dp-event-1"
    event: str
    unit: PrivacyUnit
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", PrivacyUnit.of(self.unit))
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
    def cost(cls, event: object, unit: PrivacyUnit, *, what: str, times: int = 1) -> Cost:
        """What a DpEvent costs, each of its parts as a mechanism of its own.

        >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
        >>> unit = PrivacyUnit(adjacency="add-remove")
        >>> cost = Event.cost(SelfComposedDpEvent(GaussianDpEvent(5.0), 100), unit, what="training")
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
        interval = min(max(epsilon_of(coarse, 1e-6), 1e-3) / FINENESS, 1e-2)
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
    def from_record(cls, record: Record) -> Event:
        """Read the JSON form back."""
        return _made(canonical(record["event"]), PrivacyUnit.from_record(record["unit"]), str(record["what"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(Event):
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


def _made(text: str, unit: PrivacyUnit, what: str) -> Event:
    kind = GaussianEvent if '"GaussianDpEvent"' in text and "Sampled" not in text and "Select" not in text else Event
    return kind(event=text, unit=unit, what=what)
