"""What was published about a private table: a noisy margin, or an exact public one, and the law of its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats, Ints
from dpbayes.errors import InvalidArgument
from dpbayes.inference.residuals import Axes


class Noise(Protocol):
    """What the linear law must know of a noise: an unbiased reading of the counts and its variance."""

    @property
    def even(self) -> bool:
        """Whether the variance is the same in every cell, whatever the counts."""

    def center(self, values: Floats) -> Floats:
        """An unbiased estimate of the counts."""

    def variance(self, counts: Floats) -> Floats:
        """Variance of ``center`` at given counts, cell by cell."""

    def slope(self) -> float:
        """How much the variance grows with one more record in the cell."""

    def log_law(self, value: float, counts: Ints) -> Floats:
        """The logarithm of P[value is released | count] at given counts, up to a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """Released x = c + k, with P(k) ∝ exp(−k²/2σ²) on the integers."""

    sigma: float

    def __post_init__(self) -> None:
        _checks.positive("GaussianNoise", sigma=self.sigma)

    even = True

    def center(self, values: Floats) -> Floats:
        """The noise has mean zero."""
        return values

    def variance(self, counts: Floats) -> Floats:
        """σ² but for terms of order exp(−2π²σ²), which matter below σ = 1."""
        return np.full(np.shape(counts), _discrete_gaussian_variance(self.sigma))

    def slope(self) -> float:
        """The same at every count."""
        return 0.0

    def log_law(self, value: float, counts: Ints) -> Floats:
        """−(x − c)²/2σ²."""
        return np.asarray(-0.5 * np.square((value - counts) / self.sigma))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise:
    """Released x = c + k, with P(k) ∝ exp(−|k|/scale) on the integers."""

    scale: float

    def __post_init__(self) -> None:
        _checks.positive("LaplaceNoise", scale=self.scale)

    even = True

    def center(self, values: Floats) -> Floats:
        """The noise has mean zero."""
        return values

    def variance(self, counts: Floats) -> Floats:
        """½ sinh(1/2b)⁻², about 2b² for a large scale b."""
        return np.full(np.shape(counts), 0.5 / math.sinh(min(0.5 / self.scale, 300.0)) ** 2)

    def slope(self) -> float:
        """The same at every count."""
        return 0.0

    def log_law(self, value: float, counts: Ints) -> Floats:
        """−|x − c|/scale."""
        return np.asarray(-np.abs(value - counts) / self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingNoise:
    """Released x = c + k with Laplace noise on all cells but the last, which closes the public sum.

    Var[k_i] = v, and (d + 1)·v for the last cell as if it had noise of its own

    Symbols: v the variance of the noise, d number of cells. With the total known only contrasts matter, and to them
    independent noise of these variances gives the covariances that the closed sum has.
    Source: docs/explanation/proofs/residual-basis.md, a closed sum.
    Adjacency: none, this is post-processing.
    """

    scale: float
    shape: tuple[int, ...]

    even = False

    def center(self, values: Floats) -> Floats:
        """The noise has mean zero; cut to what is left, it is never further from the count."""
        return values

    def variance(self, counts: Floats) -> Floats:
        """One variance, and d + 1 times that of the closing cell."""
        found = LaplaceNoise(scale=self.scale).variance(np.zeros(self.shape))
        found.flat[-1] *= found.size + 1
        return np.broadcast_to(found, np.shape(counts)).copy() if np.shape(counts) == self.shape else found

    def slope(self) -> float:
        """The same at every count."""
        return 0.0

    def log_law(self, value: float, counts: Ints) -> Floats:
        """Of a cell that has noise of its own."""
        return LaplaceNoise(scale=self.scale).log_law(value, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNoise:
    """Released z ~ Gamma(weight·c + concentration, 1), one independent draw per cell."""

    weight: float
    concentration: float | Floats

    def __post_init__(self) -> None:
        _checks.positive("GammaNoise", weight=self.weight)
        concentration = np.asarray(self.concentration, dtype=np.float64)
        if concentration.size == 0 or not (np.isfinite(concentration).all() and (concentration > 0).all()):
            raise InvalidArgument("GammaNoise: expected every concentration > 0 and finite.")

    even = False

    def center(self, values: Floats) -> Floats:
        """(z − α)/r."""
        return np.asarray((values - self.concentration) / self.weight)

    def variance(self, counts: Floats) -> Floats:
        """(r·c + α)/r²."""
        return np.asarray((self.weight * counts + self.concentration) / self.weight**2)

    def slope(self) -> float:
        """1/r."""
        return 1 / self.weight

    def log_law(self, value: float, counts: Ints) -> Floats:
        """(r·c + α − 1)·ln z − lnΓ(r·c + α), where all cells have one α."""
        from scipy.special import gammaln

        if np.size(self.concentration) > 1:
            raise InvalidArgument("GammaNoise: expected one concentration for all cells.")
        shape = self.weight * counts + float(np.reshape(self.concentration, ()))
        return np.asarray((shape - 1.0) * math.log(max(value, 1e-300)) - gammaln(shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """No noise: a public margin, or one that was published in the clear."""

    even = True

    def center(self, values: Floats) -> Floats:
        """As it stands."""
        return values

    def variance(self, counts: Floats) -> Floats:
        """None."""
        return np.zeros(np.shape(counts))

    def slope(self) -> float:
        """None."""
        return 0.0

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


def _discrete_gaussian_variance(sigma: float) -> float:
    """Σ k² e^{−k²/2σ²} / Σ e^{−k²/2σ²}, by the sum where it is short and by its limit σ² elsewhere."""
    if sigma > 3:
        return sigma**2
    k = np.arange(-40, 41)
    weights = np.exp(-0.5 * (k / sigma) ** 2)
    return float((k**2 * weights).sum() / weights.sum())
