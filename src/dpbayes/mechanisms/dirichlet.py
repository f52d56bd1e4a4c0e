"""The Dirichlet mechanism: one draw from Dirichlet(r·counts + α), priced exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.unit import PrivacyUnit, Sensitivity
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms import randomness
from dpbayes.mechanisms.base import Record
from dpbayes.privacy.bounds import RenyiBound
from dpbayes.privacy.pair import GammaPair
from dpbayes.privacy.pld import Pld
from dpbayes.privacy.published import trigamma_bound

TINY = 0.1
"""Below this concentration draws are normalised in logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirichlet:
    """y ~ Dirichlet(r·c + α), or equally the independent gammas z ~ Gamma(r·c + α) that it normalises.

    ``weight`` is r and ``concentration`` α, one number or one per cell. ``least_count`` is a public lower
    bound on every count. ``sensitivity`` declares that c is not a table of one record per row and unit but
    any vector that moves by that much; then only the published bound applies.

    Source: [RDP] algorithm 1, [tCDP] section 2.3; exact cost: docs/explanation/proofs/dominating-pair.md.

    >>> from dpbayes import Adjacency, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    >>> round(Dirichlet(weight=1, concentration=10, unit=unit).epsilon(1e-5), 4)
    1.8772
    """

    weight: float
    concentration: float | tuple[float, ...]
    unit: PrivacyUnit
    least_count: int = 0
    sensitivity: Sensitivity | None = None

    def __post_init__(self) -> None:
        _checks.positive("Dirichlet", weight=self.weight)
        object.__setattr__(self, "weight", float(self.weight))
        if isinstance(self.concentration, (list, tuple, np.ndarray)):
            cells = tuple(self.concentration)
            if len(cells) < 2:
                raise InvalidArgument("Dirichlet: expected concentration for two cells or more, or one number.")
            for value in cells:
                _checks.positive("Dirichlet", concentration=value)
            object.__setattr__(self, "concentration", tuple(float(value) for value in cells))
        else:
            _checks.positive("Dirichlet", concentration=self.concentration)
            object.__setattr__(self, "concentration", float(self.concentration))
        _checks.non_negative("Dirichlet", least_count=self.least_count)
        _checks.unit("Dirichlet", self.unit)

    @property
    def exact(self) -> bool:
        """Whether the cost is exact: a table of counts in which one person has one row."""
        return self.sensitivity is None and self.unit.max_rows == 1

    @property
    def smallest(self) -> tuple[float, float]:
        """The two smallest effective concentrations, which make the worst pair of cells.

        Source: [RDP] remark 2 and [tCDP] section 3.1: a public lower bound b on counts adds r·b to α.
        """
        alpha = self.concentration
        pair = sorted(alpha)[:2] if isinstance(alpha, tuple) else (alpha, alpha)
        if self.least_count:  # two roundings of the sum, both undone: near the last order the last digit decides
            known = self.weight * self.least_count
            pair = [math.nextafter(math.nextafter(value + known, 0.0), 0.0) for value in pair]
        first, second = pair
        return first, second

    def dominating_pair(self) -> GammaPair:
        """The pair that every exact number derives from."""
        first, second = self.smallest
        return GammaPair(weight=self.weight, first=first, second=second if self.unit.replaces else None)

    def published(self) -> Dirichlet:
        """The same draw, priced as the papers do: by the sensitivities only."""
        return replace(self, sensitivity=self.sensitivity or self.unit.sensitivity)

    def _bound(self) -> RenyiBound:
        moved = self.sensitivity or self.unit.sensitivity
        alpha, weight = self.smallest[0], self.weight
        return RenyiBound(
            lambda order: trigamma_bound(
                order, weight=weight, concentration=alpha, l2_squared=moved.l2_squared, linf=moved.linf
            ),
            last_order=1.0 + alpha / (weight * moved.linf),
        )

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order: exact for one row per person, else the published bound."""
        _checks.order("Dirichlet", order)
        return self.dominating_pair().renyi(order) if self.exact else self._bound().renyi(order)

    def concentrated(self, omega: float) -> float:
        """ρ(ω) = D_ω/ω: the divergence over the order grows with the order, so its largest value is at ω.

        Symbols: ω omega, D the Rényi divergence.
        Source: our proof, docs/explanation/proofs/exact-renyi.md (ψ′ is convex).
        Adjacency: any.
        """
        _checks.order("Dirichlet", omega)
        return self.renyi(omega) / omega if math.isfinite(omega) else math.inf

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        _checks.non_negative("Dirichlet", epsilon=epsilon)
        return self.dominating_pair().delta(epsilon) if self.exact else self._bound().delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""
        _checks.probability("Dirichlet", delta=delta)
        return self.dominating_pair().epsilon(delta) if self.exact else self._bound().epsilon(delta)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return self.dominating_pair().pld(interval) if self.exact else self._bound().pld(interval)

    def gammas(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """Z ~ Gamma(r·c + α), independent: the draw before it is normalised, at the same cost.

        Source: docs/explanation/proofs/dominating-pair.md.
        """
        return randomness.standard_gamma(self._shapes(counts), rng)

    def _shapes(self, counts: ArrayLike) -> Floats:
        """r·c + α."""
        table = _checks.counts("Dirichlet", counts)
        if isinstance(self.concentration, tuple) and len(self.concentration) != table.size:
            raise InvalidArgument(
                f"Dirichlet: expected {len(self.concentration)} cells, as many as concentrations, "
                f"got a table of shape {table.shape}."
            )
        alpha = np.reshape(self.concentration, table.shape if isinstance(self.concentration, tuple) else ())
        # a count below the public bound is drawn as if it met it: the cost rests on nobody's word
        counted = np.maximum(table, self.least_count) if self.least_count else table
        shapes: Floats = np.multiply(counted, self.weight, dtype=np.float64)
        shapes += alpha
        return shapes

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """One draw y ~ Dirichlet(r·c + α) over all cells of the table."""
        return normalised_gammas(self._shapes(counts), rng)

    def record(self) -> Record:
        """JSON form."""
        alpha = self.concentration
        return {
            "mechanism": "dirichlet-1",
            "weight": self.weight,
            "concentration": list(alpha) if isinstance(alpha, tuple) else alpha,
            "unit": self.unit.record(),
            "least_count": self.least_count,
            "sensitivity": None
            if self.sensitivity is None
            else {
                "l1": self.sensitivity.l1,
                "l2_squared": self.sensitivity.l2_squared,
                "linf": self.sensitivity.linf,
            },
        }

    @classmethod
    def from_record(cls, record: Record) -> Dirichlet:
        """Read the JSON form back."""
        sensitivity = record["sensitivity"]
        return cls(
            weight=record["weight"],  # type: ignore[arg-type]  # checked in __post_init__
            concentration=record["concentration"],  # type: ignore[arg-type]
            unit=PrivacyUnit.from_record(record["unit"]),
            least_count=record["least_count"],  # type: ignore[arg-type]
            sensitivity=None if sensitivity is None else Sensitivity(**sensitivity),  # type: ignore[arg-type]
        )


def normalised_gammas(shapes: Floats, rng: np.random.Generator | None) -> Floats:
    """One draw from Dirichlet(shapes); a shape may be zero, and its cell is then empty.

    Where shapes are tiny all gammas may underflow, so their logarithms are drawn: ln z = ln z⁺ + ln(u)/a with
    z⁺ ~ Gamma(a + 1) and u uniform.
    """
    if np.max(shapes) >= TINY:
        z = randomness.standard_gamma(shapes, rng)
    else:
        source = randomness.generator(rng)
        with np.errstate(divide="ignore"):
            logs = np.log(source.standard_gamma(shapes + 1.0)) - source.standard_exponential(shapes.shape) / shapes
        z = np.exp(logs - logs.max())
    z /= z.sum()
    return z
