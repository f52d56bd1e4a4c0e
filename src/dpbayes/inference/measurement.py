"""What was published about a private table: a noisy margin, or an exact public one, and the law of its noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.residuals import Axes
from dpbayes.mechanisms.kinds import Additive, Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(Additive):
    """No noise: a public margin, or one that was published in the clear."""

    def variance(self, counts: Floats) -> Floats:
        """None."""
        return np.zeros(np.shape(counts))

    def log_law(self, value: float, counts: Ints) -> Floats:
        """0 at the value, −∞ elsewhere."""
        return np.where(counts == value, 0.0, -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """One published table: its axes, the numbers as they were drawn, and the noise in them.

    A conditional table is the joint table of all its axes here.
    """

    axes: Axes
    values: Floats
    noise: Noise

    def __post_init__(self) -> None:
        axes = tuple(self.axes)
        values = np.asarray(self.values, dtype=np.float64)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "values", values)
        if len(set(axes)) < len(axes):
            raise InvalidArgument("Measurement: an axis is named twice. Name each axis once.")
        if values.ndim != len(axes) or values.size == 0:
            raise InvalidArgument(f"Measurement: expected values with {len(axes)} axes, got {values.ndim}.")
        if not np.isfinite(values).all():
            raise InvalidArgument("Measurement: expected finite values.")
