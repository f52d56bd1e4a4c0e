"""The public description of the noise in a released table: how likely each count makes each released number.

Both kinds answer the same questions, for arrays of cells. ``log_likelihood`` leaves out terms that do not
depend on the count, and continues the likelihood smoothly between whole counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import gammainc, gammaln

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.loggamma import log1p_deficit, log1p_excess

SMALLEST_DRAW = 1e-300
"""A gamma draw that was rounded to zero is read as this; its logarithm is finite."""

LARGE_SHAPE = 1e6
"""From this shape on the terms of a gamma density are so large that their difference would lose digits."""


class Noise(Protocol):
    """What the estimator must know of a noise."""

    def readable(self, values: Floats) -> Floats:
        """The released numbers, made safe for ``log_likelihood``."""

    def center(self, values: Floats) -> Floats:
        """An unbiased estimate of the counts."""

    def spread(self, counts: Floats) -> Floats:
        """Standard deviation of ``center`` at given counts."""

    def log_likelihood(self, values: Floats, counts: Floats) -> Floats:
        """The logarithm of P(value | count): values of shape (…), counts of shape (…, nodes)."""

    def released(self, centers: Floats) -> Floats:
        """The inverse of ``center``."""

    def coordinate(self, centers: Floats) -> Floats:
        """Centers on a scale where the noise has a standard deviation of about one."""

    def center_at(self, coordinate: Floats) -> Floats:
        """The inverse of ``coordinate``, rounded to what can be released."""

    def take(self, index: tuple[object, ...], shape: tuple[int, ...]) -> Noise:
        """The noise of a part of a table of the given shape."""

    def reshaped(self, shape: tuple[int, ...]) -> Noise:
        """The noise of a table that is given another shape."""

    def transposed(self, order: Sequence[int]) -> Noise:
        """The noise of a table whose axes are put into another order."""

    def pooled(self, axis: int, shape: tuple[int, ...]) -> Noise:
        """The noise of the sums of a table along an axis."""


class _AdditiveNoise:
    """Whole-number noise added to whole counts: the same law in every cell."""

    __slots__ = ()

    def readable(self, values: Floats) -> Floats:
        """Any number can be read."""
        return values

    def center(self, values: Floats) -> Floats:
        """The noise has mean zero."""
        return values

    def released(self, centers: Floats) -> Floats:
        """The noise has mean zero."""
        return centers

    def take(self, index: tuple[object, ...], shape: tuple[int, ...]) -> Self:  # noqa: ARG002 - Noise
        """All cells are alike."""
        return self

    def reshaped(self, shape: tuple[int, ...]) -> Self:  # noqa: ARG002 - Noise
        """All cells are alike."""
        return self

    def transposed(self, order: Sequence[int]) -> Self:  # noqa: ARG002 - Noise
        """All cells are alike."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(_AdditiveNoise):
    """Released x = c + k, with P(k) ∝ exp(−k²/2σ²) on the integers."""

    sigma: float

    def __post_init__(self) -> None:
        _checks.positive("GaussianNoise", sigma=self.sigma)

    def spread(self, counts: Floats) -> Floats:
        """The same at every count."""
        return np.full_like(counts, self.sigma)

    def log_likelihood(self, values: Floats, counts: Floats) -> Floats:
        """−(x − c)²/2σ²."""
        return -0.5 * ((values[..., None] - counts) / self.sigma) ** 2

    def coordinate(self, centers: Floats) -> Floats:
        """In units of σ."""
        return centers / self.sigma

    def center_at(self, coordinate: Floats) -> Floats:
        """A whole number."""
        return np.round(coordinate * self.sigma)

    def pooled(self, axis: int, shape: tuple[int, ...]) -> GaussianNoise:
        """A sum of discrete Gaussians is again one, up to terms of order exp(−π²σ²)."""
        return GaussianNoise(sigma=self.sigma * math.sqrt(shape[axis]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNoise:
    """Released z ~ Gamma(weight·c + concentration, 1), one independent draw per cell.

    ``normalised`` says that only y = z/Σz was released, the Dirichlet draw. Then Σc must be public. Given Σc the
    likelihood of y is that of z up to a constant, whatever the lost factor Σz was, so that nothing is lost.

    ``floor`` is the smallest value that is published, one step of the grid: it stands for everything below 1½ steps.
    The rest of the rounding is so fine that the density describes it.
    """

    weight: float
    concentration: float | Floats
    normalised: bool = False
    floor: float = 0.0

    def __post_init__(self) -> None:
        _checks.positive("GammaNoise", weight=self.weight)
        _checks.non_negative("GammaNoise", floor=self.floor)
        try:
            concentration = np.asarray(self.concentration, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument("GammaNoise: expected concentration as a number or an array.") from None
        if concentration.size == 0 or not (np.isfinite(concentration).all() and (concentration > 0).all()):
            raise InvalidArgument("GammaNoise: expected every concentration > 0 and finite.")
        object.__setattr__(self, "concentration", float(concentration) if concentration.ndim == 0 else concentration)

    def readable(self, values: Floats) -> Floats:
        """A draw that was rounded to zero has a logarithm too."""
        return np.maximum(values, SMALLEST_DRAW)

    def center(self, values: Floats) -> Floats:
        """(z − α)/r."""
        return (values - self.concentration) / self.weight

    def spread(self, counts: Floats) -> Floats:
        """√(r·c + α)/r."""
        return np.sqrt(self.weight * counts + self.concentration) / self.weight

    def log_likelihood(self, values: Floats, counts: Floats) -> Floats:
        """s·ln z − lnΓ(s) − z, s = r·c + α, for large s as a height and a depth, which keep their digits.

        At the floor f it is the logarithm of P[z ≤ 1½ f] instead.
        """
        shape = self.weight * counts + np.asarray(self.concentration)[..., None]
        found = _log_density(shape, np.broadcast_to(values[..., None], shape.shape))
        lowest = values <= self.floor
        if lowest.any():
            found[lowest] = _log_below(np.broadcast_to(shape, found.shape)[lowest], 1.5 * self.floor)
        return found

    def released(self, centers: Floats) -> Floats:
        """r·c + α."""
        return self.readable(self.weight * centers + self.concentration)

    def coordinate(self, centers: Floats) -> Floats:
        """±2(√(α+r|c|) − √α), which stabilises the variance for c > 0."""
        root = math.sqrt(np.min(self.concentration))
        return np.sign(centers) * 2 * (np.sqrt(root**2 + self.weight * np.abs(centers)) - root)

    def center_at(self, coordinate: Floats) -> Floats:
        """Any real number."""
        root = math.sqrt(np.min(self.concentration))
        return np.sign(coordinate) * ((np.abs(coordinate) / 2 + root) ** 2 - root**2) / self.weight

    def take(self, index: tuple[object, ...], shape: tuple[int, ...]) -> GammaNoise:
        """Concentrations may differ from cell to cell."""
        if isinstance(self.concentration, float):
            return self
        return replace(self, concentration=np.broadcast_to(self.concentration, shape)[index])  # type: ignore[index]

    def reshaped(self, shape: tuple[int, ...]) -> GammaNoise:
        """Concentrations go along."""
        if isinstance(self.concentration, float):
            return self
        return replace(self, concentration=self.concentration.reshape(shape))

    def transposed(self, order: Sequence[int]) -> GammaNoise:
        """Concentrations go along."""
        if isinstance(self.concentration, float):
            return self
        return replace(self, concentration=self.concentration.transpose(order))

    def pooled(self, axis: int, shape: tuple[int, ...]) -> GammaNoise:
        """Gammas add: a sum of draws is the draw of the summed counts with the summed concentration."""
        alpha = self.concentration
        summed = alpha * shape[axis] if isinstance(alpha, float) else np.broadcast_to(alpha, shape).sum(axis=axis)
        return replace(self, concentration=summed, floor=self.floor if shape[axis] == 1 else 0.0)


def _log_below(shape: Floats, x: float) -> Floats:
    """The logarithm of P[z ≤ x] for gammas z; where that underflows, of the first terms of its series."""
    with np.errstate(divide="ignore"):
        found = np.log(gammainc(shape, x))
    series = shape * math.log(x) - x - gammaln(shape + 1.0) + np.log1p(x / (shape + 1.0) * (1.0 + x / (shape + 2.0)))
    return np.asarray(np.where(found > -600.0, found, series))


def _log_density(shape: Floats, z: Floats) -> Floats:
    """s·ln z − lnΓ(s) − z."""
    if shape.max(initial=0.0) < LARGE_SHAPE:
        return np.asarray(shape * np.log(z) - gammaln(shape) - z)
    return np.asarray(_log_height(shape) - _below_mode(shape, z))


def _log_height(shape: Floats) -> Floats:
    """s·ln s − lnΓ(s) − s, by Stirling's series where s is large."""
    large = np.maximum(shape, LARGE_SHAPE)
    series = 0.5 * np.log(large / (2.0 * math.pi)) - 1.0 / (12.0 * large)
    small = np.minimum(shape, LARGE_SHAPE)
    return np.where(shape > LARGE_SHAPE, series, small * np.log(small) - gammaln(small) - small)


def _below_mode(shape: Floats, z: Floats) -> Floats:
    """How far z lies below the mode, z − s − s·ln(z/s), without cancellation where z is near s."""
    far = (z < 0.5 * shape) | (z > 2.0 * shape)
    near = np.where(far, shape, z)
    above = shape * log1p_deficit(np.maximum(near - shape, 0.0) / shape)
    below = near * log1p_excess(np.maximum(shape - near, 0.0) / near)
    return np.where(far, z - shape - shape * (np.log(z) - np.log(shape)), above + below)
