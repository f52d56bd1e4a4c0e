"""Bin edges of a numeric column from private quantiles: chosen among public candidates by OpenDP, and paid for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes import _checks
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.stated import Stated
from dpbayes.privacy.calibrate import Family, calibrate
from dpbayes.privacy.guarantee import Guarantee

PART = 10
"""One part in so many of the budget goes to all quantiles of a model together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateQuantiles:
    """Ask for ``bins`` bins of about equal mass between public bounds; edges lie on a public grid of candidates."""

    lower: float
    upper: float
    bins: int = 10
    candidates: int = 200

    def __post_init__(self) -> None:
        _checks.positive_integer("PrivateQuantiles", bins=self.bins, candidates=self.candidates)
        if not (np.isfinite([self.lower, self.upper]).all() and self.lower < self.upper):
            raise InvalidArgument("PrivateQuantiles: expected finite public bounds, lower < upper.")
        if self.candidates <= self.bins:
            raise InvalidArgument("PrivateQuantiles: expected more candidates than bins.")

    @property
    def selections(self) -> int:
        """How many edges are chosen privately."""
        return self.bins - 1

    @property
    def provisional(self) -> tuple[float, ...]:
        """As many edges as there will be at most, for planning."""
        return (-np.inf, *np.linspace(self.lower, self.upper, self.bins + 1)[1:-1].tolist(), np.inf)

    def edges(self, column: np.ndarray, cost: Stated) -> tuple[float, ...]:
        """Edges from OpenDP's noisy minimum over quantile scores, each at the ε of ``cost``; repeated ones are merged.

        Source: docs/explanation/models.md; OpenDP's quantile scores and noisy minimum, its privacy map sets the scale.
        """
        import opendp.prelude as opendp

        opendp.enable_features("contrib")
        grid = np.linspace(self.lower, self.upper, self.candidates)
        values = np.asarray(column, dtype=np.float64)
        values = values[np.isfinite(values)].tolist()
        space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.symmetric_distance()
        changed = int(cost.unit.sensitivity.l1)
        found = []
        for share in np.linspace(0.0, 1.0, self.bins + 1)[1:-1]:
            scores = opendp.t.make_quantile_score_candidates(*space, grid.tolist(), float(share))
            unscaled = (scores >> opendp.m.then_noisy_max(opendp.max_divergence(), scale=1.0, negate=True)).map(changed)
            scale = unscaled / cost.epsilon_stated * (1.0 + 1e-9)
            chosen = (scores >> opendp.m.then_noisy_max(opendp.max_divergence(), scale=scale, negate=True))(values)
            found.append(float(grid[chosen]))
        return (-np.inf, *sorted(set(found)), np.inf)


def quantile_cost(target: Guarantee, unit: PrivacyUnit, selections: int) -> Stated:
    """The pure ε of each selection, so that all of them cost one part of the target."""
    family = Family(
        name="noisy max",
        make=lambda epsilon: Stated(epsilon_stated=epsilon, delta_stated=0.0, unit=unit, what="a private quantile"),
        larger_is_safer=False,
    )
    return calibrate(family, target.share(PART), times=selections)
