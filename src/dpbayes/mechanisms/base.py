"""What every mechanism is: parameters that know their privacy cost (theorems, no data) and how to draw."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpbayes._checks import Floats, Ints
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.privacy.pld import Pld

Record = dict[str, object]


class Mechanism(Protocol):
    """A frozen set of parameters. Privacy face: ``renyi`` … ``pld``. Sampling face: ``draw``."""

    @property
    def unit(self) -> PrivacyUnit:
        """What one promise protects."""

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order between any two neighbours; at infinity, the pure ε."""

    def concentrated(self, omega: float) -> float:
        """Smallest ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω; ω = inf asks for zCDP."""

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε ≥ 0."""

    def epsilon(self, delta: float) -> float:
        """Smallest ε ≥ 0 for this δ."""

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``, never too optimistic."""

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats | Ints:
        """One release of a table; ``None`` draws from the operating system's entropy."""

    def record(self) -> Record:
        """JSON form, from which ``mechanisms.records.from_record`` makes an equal mechanism."""


@runtime_checkable
class Confirmable(Protocol):
    """A mechanism whose cost rests on a stored computation that can be done again."""

    def confirm(self) -> None:
        """Do it again, and raise if the stored one was wrong."""


def confirm(mechanism: object) -> None:
    """Check what a mechanism claims beyond theorems, before it is charged and when a ledger is verified."""
    if isinstance(mechanism, Confirmable):
        mechanism.confirm()
