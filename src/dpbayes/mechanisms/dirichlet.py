"""The Dirichlet mechanism: one draw from Dirichlet(r·counts + α), priced exactly and rounded to a public grid.

A sampler in doubles reaches finitely many values, and which ones depends on the shape, hence on the count. A published
value is safe when so many of them round to it that their number hardly differs between shapes. The counts of reachable
values are derived in docs/explanation/proofs/floating-point.md and checked in tests/mechanisms/test_rounding.py.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Mechanism, Record
from dpbayes.privacy.bounds import RenyiBound, trigamma_bound
from dpbayes.privacy.pair import GammaPair
from dpbayes.schema.unit import Sensitivity, Unit

DIGITS = 30
"""A rounded gamma has at most this many binary digits: then 2⁵²⁻³⁰/3 doubles of the sampler round to it, or more."""

STEPS = 6
"""A step lies this many bits below the standard deviation: of the smallest gamma, √α, and of the value itself, √z."""

FINEST = 2.0**-16
"""The grid for concentrations below one, where the logarithm of a gamma tells the count; no grid is finer."""

LARGEST_CONCENTRATION = 2.0**49
"""About 5.6·10¹⁴: beyond it, a value of 30 digits is coarser than a twentieth of the noise."""

LARGEST_WEIGHT = 2.0**32
LARGEST_SHAPE = 2.0**52
"""Counts are cut where r·c + α would exceed this: the shape itself is then rounded by 2⁻²⁵ of the noise at most."""

_LOWEST = -1080
"""Below the exponent of every double."""


def grid_for(concentration: float) -> float:
    """The public grid for a smallest concentration: a power of two, 1/64 to 1/128 of the standard deviation √α.

    >>> grid_for(100.0), grid_for(0.5) == FINEST
    (0.125, True)
    """
    exponent = math.frexp(concentration)[1] - 1  # the power of two that many bits below √α, rounded down
    return FINEST if concentration < 1.0 else 2.0 ** (exponent // 2 - STEPS)


def on_grid(values: Floats, grid: float) -> Floats:
    """To the nearest multiple of the step at each value, and at least one step of the grid.

    >>> on_grid(np.array([0.0, 0.6, 1000.3]), 0.25).tolist()
    [0.25, 0.5, 1000.25]
    """
    step = _steps(grid)[np.frexp(values)[1] - _LOWEST]
    found: Floats = values / step
    np.rint(found, out=found)
    found *= step
    return np.maximum(found, grid, out=found)


@lru_cache(maxsize=16)
def _steps(grid: float) -> Floats:
    """The step for values in [2^(e−1), 2^e), for all exponents e of doubles: a power of two, never below the grid.

    From 1 on it is √z/64 or a little less, so that it keeps up with the noise of large counts, and at least z·2⁻³⁰.
    """
    exponent = np.arange(_LOWEST, 1026)
    own = np.where(exponent < 1, -2000, np.maximum((exponent - 1) // 2 - STEPS, exponent - DIGITS))
    return np.maximum(np.ldexp(1.0, own), grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNoise:
    """Released z ~ Gamma(weight·c + concentration, 1), one independent draw per cell."""

    weight: float
    concentration: float | Floats

    def __post_init__(self) -> None:
        checks.positive("GammaNoise", weight=self.weight)
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


@dataclass(frozen=True, slots=True)
class Dirichlet(Mechanism):
    """y ~ Dirichlet(r·c + α), or equally the independent gammas z ~ Gamma(r·c + α) that it normalises.

    ``weight`` is r and ``concentration`` α, one number or one per cell. ``least_count`` is a public lower
    bound on every count. ``sensitivity`` declares that c is not a table of one record per row and unit but
    any vector of numbers, zero or above, that moves by that much; then only the published bound applies, to draws and
    gammas alike. ``grid`` is the power of two to whose
    multiples gammas are rounded before anyone sees them; left at 0, it is chosen from the concentration.

    The cost is that of real numbers. Draws are made of doubles: parameters are limited, and values rounded, so that
    doubles add almost nothing to it (docs/explanation/proofs/floating-point.md).

    Source: [RDP] algorithm 1, [tCDP] section 2.3; exact cost: docs/explanation/proofs/dominating-pair.md.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> round(Dirichlet(weight=1, concentration=10, unit=unit).epsilon(1e-5), 4)
    1.8772
    """

    kind = "dirichlet-2"
    tables = ("gammas", "shares")
    law_in_words = (
        "z = Gamma(r·c + α, 1), independently for each cell with count c, rounded to the grid and from 1 on to about "
        "√z/64, at least one step; drawn in doubles, exact in real arithmetic only"
    )
    weight: float
    concentration: float | tuple[float, ...]
    unit: Unit
    _: KW_ONLY
    least_count: int = 0
    sensitivity: Sensitivity | None = None
    grid: float = 0.0

    def __post_init__(self) -> None:
        checks.positive("Dirichlet", weight=self.weight)
        object.__setattr__(self, "weight", float(self.weight))
        if isinstance(self.concentration, (list, tuple, np.ndarray)):
            cells = tuple(self.concentration)
            if len(cells) < 2:
                raise InvalidArgument("Dirichlet: expected concentration for two cells or more, or one number.")
            for value in cells:
                checks.positive("Dirichlet", concentration=value)
            object.__setattr__(self, "concentration", tuple(float(value) for value in cells))
        else:
            checks.positive("Dirichlet", concentration=self.concentration)
            object.__setattr__(self, "concentration", float(self.concentration))
        checks.non_negative("Dirichlet", least_count=self.least_count)
        object.__setattr__(self, "unit", Unit.of(self.unit))
        self._settle()

    def _settle(self) -> None:
        """Choose the grid, and refuse what doubles cannot carry."""
        if self.weight > LARGEST_WEIGHT or self._largest_concentration > LARGEST_CONCENTRATION:
            raise InvalidArgument(
                f"Dirichlet: expected weight up to {LARGEST_WEIGHT:.3g} and concentration up to "
                f"{LARGEST_CONCENTRATION:.3g}, beyond which doubles cannot carry a gamma; take Gaussian noise instead."
            )
        checks.non_negative("Dirichlet", grid=self.grid)
        if self.grid == 0:
            object.__setattr__(self, "grid", grid_for(min(self.smallest[0], LARGEST_CONCENTRATION)))
        elif math.frexp(self.grid)[0] != 0.5 or not FINEST <= self.grid <= LARGEST_SHAPE:
            raise InvalidArgument(f"Dirichlet: expected grid as a power of two, at least 2^-16, got {self.grid!r}.")
        object.__setattr__(self, "grid", float(self.grid))
        if self.least_count > self.largest_count:
            raise InvalidArgument(
                f"Dirichlet: expected least_count up to {self.largest_count}, the largest count that is drawn."
            )

    @property
    def _largest_concentration(self) -> float:
        return max(self.concentration) if isinstance(self.concentration, tuple) else self.concentration

    @property
    def largest_count(self) -> int:
        """Counts above it are drawn as if they were this one, so that doubles carry every shape r·c + α.

        A public constant that cuts counts moves neighbours no further apart: the price stays.
        Source: docs/explanation/proofs/floating-point.md.
        """
        return int(min((LARGEST_SHAPE - self._largest_concentration) / self.weight, checks.LARGEST_COUNT))

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

    def _loss(self) -> GammaPair | RenyiBound:
        """Exact for one row per person, else the published bound."""
        return self.dominating_pair() if self.exact else self._bound()

    def concentrated(self, omega: float) -> float:
        """ρ(ω) = D_ω/ω: the divergence over the order grows with the order, so its largest value is at ω.

        Symbols: ω omega, D the Rényi divergence.
        Source: our proof, docs/explanation/proofs/exact-renyi.md (ψ′ is convex).
        Adjacency: any.
        """
        return self.renyi(omega) / omega if math.isfinite(omega) else math.inf

    def gammas(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """Z ~ Gamma(r·c + α), independent, on the public grid: the draw before it is normalised, at the same cost.

        Source: docs/explanation/proofs/dominating-pair.md.
        """
        return on_grid(self._raw(counts, rng), self.grid)

    def values(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """The gammas, which say as much as the draw and cost the same."""
        return self.gammas(counts, rng)

    def _raw(self, counts: ArrayLike, rng: np.random.Generator | None) -> Floats:
        """The gammas as the sampler makes them: their last digits are not private, so they stay in here.

        Up to shape 1 numpy makes a value of one uniform number, and reaches too few. Gamma(a + 1)·e^{−E/a}, with E
        exponential, has the law Gamma(a) and reaches more. E is drawn for every cell, whatever its count.
        """
        shapes = self._shapes(counts)
        if self.smallest[0] > 1.0:
            return noise.standard_gamma(shapes, rng)
        source = noise.generator(rng)
        small = shapes <= 1.0
        z = noise.standard_gamma(np.where(small, shapes + 1.0, shapes), rng)
        shrink = np.exp(-source.standard_exponential(shapes.shape) / shapes)
        z *= np.where(small, shrink, 1.0)
        return z

    def _shapes(self, counts: ArrayLike) -> Floats:
        """r·c + α."""
        table = (checks.counts if self.sensitivity is None else checks.amounts)("Dirichlet", counts)
        if isinstance(self.concentration, tuple) and len(self.concentration) != table.size:
            raise InvalidArgument(
                f"Dirichlet: expected {len(self.concentration)} cells, as many as concentrations, "
                f"got a table of shape {table.shape}."
            )
        alpha = np.reshape(self.concentration, table.shape if isinstance(self.concentration, tuple) else ())
        # a count below the public bound is drawn as if it met it: the cost rests on nobody's word
        counted = np.clip(table, math.ceil(self.least_count), self.largest_count)
        shapes: Floats = np.multiply(counted, self.weight, dtype=np.float64)
        shapes += alpha
        return shapes

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """One draw y ~ Dirichlet(r·c + α) over all cells of the table, made of the rounded gammas."""
        z = self.gammas(counts, rng)
        z /= z.sum()
        return z

    def noise(self, shape: tuple[int, ...] = (-1,)) -> GammaNoise:
        """That of the gammas."""
        alpha = self.concentration
        return GammaNoise(
            weight=self.weight, concentration=np.reshape(alpha, shape) if isinstance(alpha, tuple) else alpha
        )

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back: a grid is written down, never chosen again."""
        checks.positive("Dirichlet", grid=record["grid"])
        return super(Dirichlet, cls).from_record(record)


@dataclass(frozen=True, slots=True)
class UnroundedDirichlet(Dirichlet):
    """The Dirichlet mechanism of real numbers: it has a price for any parameters, and cannot draw.

    Searches for parameters pass through it.

    Source: docs/explanation/proofs/dominating-pair.md, whose theorem is about real numbers.
    """

    kind = "dirichlet-1"
    law_in_words = (
        "z = Gamma(r·c + α, 1), independently for each cell with count c, rounded to the grid, at least one step"
    )

    def _settle(self) -> None:
        if self.grid != 0:
            raise InvalidArgument("UnroundedDirichlet: expected no grid.")

    def _raw(self, counts: ArrayLike, rng: np.random.Generator | None) -> Floats:  # noqa: ARG002 - as Dirichlet
        raise InvalidArgument("Dirichlet: this mechanism has no grid and does not draw; it has a price only.")

    def rounding(self) -> Dirichlet:
        """The mechanism that draws, of the same parameters and price."""
        return Dirichlet(
            weight=self.weight,
            concentration=self.concentration,
            unit=self.unit,
            least_count=self.least_count,
            sensitivity=self.sensitivity,
        )

    def record(self) -> Record:
        """JSON form, in which there is no grid."""
        return {name: value for name, value in Dirichlet.record(self).items() if name != "grid"}

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back."""
        return super(Dirichlet, cls).from_record({**record, "grid": 0.0})
