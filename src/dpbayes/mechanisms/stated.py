"""A release whose cost is known only as an (ε, δ) statement, such as one made by another library."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpbayes import _checks
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.mechanisms.base import Record
from dpbayes.privacy.atoms import randomised_response, randomised_response_renyi
from dpbayes.privacy.curves import on_arrays
from dpbayes.privacy.pld import Pld, from_statement


@on_arrays
@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Priced as the worst mechanism that satisfies (ε, δ): randomised response, betrayed with probability δ.

    ``what`` says in a few words what was released. It has no ``draw``: the release happened elsewhere.

    Source: [KOV] theorem 3.3.
    """

    epsilon_stated: float
    delta_stated: float
    unit: PrivacyUnit
    what: str

    def __post_init__(self) -> None:
        _checks.positive("Stated", epsilon=self.epsilon_stated)
        _checks.non_negative("Stated", delta=self.delta_stated)
        if self.delta_stated > 0:
            _checks.probability("Stated", delta=self.delta_stated)
        _checks.unit("Stated", self.unit)
        object.__setattr__(self, "epsilon_stated", float(self.epsilon_stated))
        object.__setattr__(self, "delta_stated", float(self.delta_stated))

    def renyi(self, order: float) -> float:
        """That of randomised response; infinite when δ > 0."""
        _checks.order("Stated", order)
        return math.inf if self.delta_stated > 0 else randomised_response_renyi(order, self.epsilon_stated)

    def concentrated(self, omega: float) -> float:
        """½ε²; infinite when δ > 0.

        Source: [BS16] proposition 1.4.
        """
        _checks.order("Stated", omega)
        return math.inf if self.delta_stated > 0 else 0.5 * self.epsilon_stated**2

    def delta(self, epsilon: float) -> float:
        """δ + (1−δ)·δ_response(ε)."""
        _checks.non_negative("Stated", epsilon=epsilon)
        response = randomised_response(self.epsilon_stated).delta(epsilon)
        rest = (1.0 - self.delta_stated) * response
        return math.nextafter(self.delta_stated + rest, 1.0) if rest > 0 else self.delta_stated

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ; infinite below the stated δ."""
        _checks.probability("Stated", delta=delta)
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

    def record(self) -> Record:
        """JSON form."""
        return {
            "mechanism": "stated-1",
            "epsilon": self.epsilon_stated,
            "delta": self.delta_stated,
            "unit": self.unit.record(),
            "what": self.what,
        }

    @classmethod
    def from_record(cls, record: Record) -> Stated:
        """Read the JSON form back."""
        return cls(
            epsilon_stated=record["epsilon"],  # type: ignore[arg-type]
            delta_stated=record["delta"],  # type: ignore[arg-type]
            unit=PrivacyUnit.from_record(record["unit"]),
            what=str(record["what"]),
        )
