"""Discrete Gaussian noise on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.mechanisms.kinds import Additive, TableNoise
from dpbayes.privacy.bounds import AtomicLoss, RenyiBound
from dpbayes.privacy.convert import Corners, gaussian_delta, gaussian_epsilon
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.pld import Pld, raise_losses
from dpbayes.schema.unit import Unit

LARGEST_EXACT_SIGMA = 2e4
"""Beyond this the sums over integers grow too long; the concentrated bound, tight there in ρ, takes over."""

TAIL_DEVIATIONS = 38.7
"""Noise beyond this many standard deviations has a probability too small for a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(Additive):
    """Released x = c + k, with P(k) ∝ exp(−k²/2σ²) on the integers."""

    sigma: float

    def __post_init__(self) -> None:
        checks.positive("GaussianNoise", sigma=self.sigma)

    def variance(self, counts: Floats) -> Floats:
        """Σ k²·e^{−k²/2σ²}/Σ e^{−k²/2σ²}; above σ = 3 it is σ², but for terms of order exp(−2π²σ²)."""
        k = np.arange(-40, 41)
        weights = np.exp(-0.5 * (k / self.sigma) ** 2)
        value = self.sigma**2 if self.sigma > 3 else float((k**2 * weights).sum() / weights.sum())
        return np.full(np.shape(counts), value)

    def log_law(self, value: float, counts: Ints) -> Floats:
        """−(x − c)²/2σ²."""
        return np.asarray(-0.5 * np.square((value - counts) / self.sigma))


@dataclass(frozen=True, slots=True)
class Gaussian(TableNoise):
    """Each count plus independent discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²).

    Exact for one row per person; for more rows the better of the concentrated bound of [CKS20] and of the Gaussian
    that covers it (``gdp``).

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.ADD_REMOVE)
    >>> Gaussian(sigma=5, unit=unit).concentrated(float("inf"))
    0.02
    """

    kind = "gaussian-1"
    name, split = "gaussian", "gaussian"
    law_in_words = "x = c + k for each cell with count c, k independent, P[k] ∝ exp(−k²/2σ²) on the whole numbers"
    sigma: float
    unit: Unit

    @classmethod
    def suits(cls, target: Guarantee, unit: Unit) -> bool:  # noqa: ARG003 - any unit
        """Its loss has no bound."""
        return not target.pure

    @classmethod
    def of_size(cls, size: float, unit: Unit, cells: int = 0, *, joint: bool = False) -> Gaussian:  # noqa: ARG003
        """Of this standard deviation."""
        return cls(sigma=size, unit=unit)

    @property
    def exact(self) -> bool:
        """Whether δ(ε) is the exact sum."""
        return self.unit.max_rows == 1 and self.sigma <= LARGEST_EXACT_SIGMA

    def _loss(self) -> AtomicLoss:
        """Privacy loss of one added record, (2k+1)/2σ²; of one replaced, (k₁−k₂+1)/σ².

        k₁−k₂ = s has probability ∝ exp(−s²/4σ²)·Σ_x exp(−(x−s/2)²/σ²), and the sum depends on the parity
        of s only.

        Symbols: σ sigma, k the noise of a cell.
        Source: [CKS20] for one cell; two cells: docs/explanation/proofs/composition.md.
        Adjacency: a replaced record moves two cells.
        """
        variance = self.sigma**2
        if not self.unit.replaces:
            reach = math.ceil(TAIL_DEVIATIONS * self.sigma) + 2
            k = np.arange(-reach, reach + 1, dtype=np.float64)
            weights = np.exp(-k * k / (2.0 * variance))
            return AtomicLoss(raise_losses((2.0 * k + 1.0) / (2.0 * variance)), weights / weights.sum())
        reach = math.ceil(TAIL_DEVIATIONS * math.sqrt(2.0) * self.sigma) + 2
        s = np.arange(-reach, reach + 1, dtype=np.float64)
        x = np.arange(-math.ceil(reach / 2) - 2, math.ceil(reach / 2) + 3, dtype=np.float64)
        even, odd = (np.exp(-((x - half) ** 2) / variance).sum() for half in (0.0, 0.5))
        weights = np.exp(-s * s / (4.0 * variance)) * np.where(s % 2 == 0, even, odd)
        return AtomicLoss(raise_losses((s + 1.0) / variance), weights / weights.sum())

    def _bound(self) -> RenyiBound:
        rho = self.concentrated(math.inf)
        return RenyiBound(lambda order: rho * order)

    def renyi(self, order: float) -> float:
        """D_λ = λ/2σ² + ln[θ(λ−1)/θ(0)]/(λ−1) for each cell that moves by one, θ(u) = Σ_k exp(−(k−u)²/2σ²)

        and λ·Δ₂²/2σ² for more rows per person.

        Symbols: λ order, σ sigma.
        Source: [CKS20] proposition 5 and theorem 4.
        Adjacency: a replaced record moves two cells.
        """
        if math.isinf(order):
            return math.inf
        bound = self.concentrated(math.inf) * order
        if self.unit.max_rows > 1 or self.sigma > 4.0:  # θ is constant to 1e-137 beyond σ = 4
            return bound
        k = np.arange(-140.0, 141.0)
        fraction = math.fmod(order - 1.0, 1.0)
        theta, theta_0 = (np.exp(-((k - u) ** 2) / (2.0 * self.sigma**2)).sum() for u in (fraction, 0.0))
        if theta == 0.0:
            return bound
        # the rounding of θ is worth 4e-15, and that of the rest 1e-15 of the bound
        saved = self.unit.sensitivity.l2_squared * (math.log(theta / theta_0) + 4e-15) / (order - 1.0)
        return min(bound, bound + saved + 1e-15 * bound)

    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """ρ = Δ₂²/2σ² at every ω.

        Symbols: σ sigma, Δ₂² the squared sensitivity.
        Source: [CKS20] theorem 4 and proposition 5.
        Adjacency: enters only through Δ₂².
        """
        return self.unit.sensitivity.l2_squared / (2.0 * self.sigma**2)

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        if self.exact:
            return self._loss().delta(epsilon)
        mu, betrayed = self.gdp()
        covered = betrayed + gaussian_delta(mu, epsilon) if math.isfinite(mu) else 1.0
        return min(self._bound().delta(epsilon), covered)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""
        if self.exact:
            return self._loss().epsilon(delta)
        mu, betrayed = self.gdp()
        covered = gaussian_epsilon(mu, delta - betrayed) if betrayed < delta else math.inf
        return min(self._bound().epsilon(delta), covered)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return self._loss().pld(interval) if self.exact else self._bound().pld(interval)

    def gdp(self) -> tuple[float, float]:
        """(μ, δ₀): a Gaussian of shift μ covers the loss, except with probability δ₀. μ = Δ₂/√(σ² − r²) beyond σ = 300

        and for more rows per person, with r = 1.5 and δ₀ = 10·Δ₁·exp(−2π²r²)/(1 − δ_μ(0)); else the least μ, which is
        (Δ₂/σ)·(1 + Δ₂⁻²/24σ²) to within a hundredth of the correction.

        Symbols: σ sigma, Δ₁ and Δ₂² the sensitivities.
        Source: docs/explanation/proofs/adaptive.md, lemmas 2 and 3.
        Adjacency: enters through the loss, or through Δ₁ and Δ₂².
        """
        # beyond this σ the least shift is not summed but bounded, at a loss of 1.3e-5 of it
        if self.unit.max_rows == 1 and self.sigma <= 300.0:
            loss, tails = self._loss(), 1e-30  # less probable tails are not covered; the ledger counts them
            return Corners.of(loss.losses, loss.probabilities).mu(tails), tails
        if self.sigma <= 2.0:
            return math.inf, 0.0
        # a discrete Gaussian of this width, around any point, has the same sum of weights but for 1e-19 of it
        moved, width = self.unit.sensitivity, 1.5
        mu = math.sqrt(moved.l2_squared / (self.sigma**2 - width**2)) * (1.0 + 1e-12)
        tau = 10.0 * moved.l1 * math.exp(-2.0 * (math.pi * width) ** 2)
        return mu, min(tau / math.erfc(mu / math.sqrt(8.0)), 1.0)

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """Noisy counts, possibly negative: exact integer noise, secure unless a generator is handed in.

        What does not fit between −2⁶² and 2⁶³ − 1 is set to the nearer end.
        """
        from dpbayes.mechanisms import noise  # pricing needs no sampler

        return noise.gaussian(checks.counts("Gaussian", counts), self.sigma, rng)

    def noise(self, shape: tuple[int, ...] = (-1,)) -> GaussianNoise:  # noqa: ARG002 - the same in every cell
        """Independent and the same in every cell."""
        return GaussianNoise(sigma=self.sigma)
