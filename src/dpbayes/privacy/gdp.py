"""Gaussian differential privacy: the profile of a shifted Gaussian, and the least shift that covers another loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.base.normal import erfcx, quantile, quantiles
from dpbayes.privacy.solve import safe_root

ROUND_UP = 1.0 + 1e-9
"""Covers the rounding of the profile, which is right to 1e-11 of itself."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), rounded up

    computed as ½·exp(−x²)·[erfcx(x) − erfcx(y)], x, y = (ε/μ ∓ μ/2)/√2; for small μ, where the difference cancels, as
    the integral of −erfcx′(t) = 2/√π − 2t·erfcx(t).

    Symbols: μ shift of a Gaussian in units of its standard deviation.
    Source: [DRS22] corollary 2.13.
    Adjacency: none; of the pair N(0, 1) and N(μ, 1), in either direction.

    >>> round(gaussian_delta(0.2, 0.5), 6)
    0.000513
    """
    x, y = (epsilon / mu - 0.5 * mu) / math.sqrt(2.0), (epsilon / mu + 0.5 * mu) / math.sqrt(2.0)
    scale = math.exp(-min(x * x, 1000.0))
    if mu < 0.5:
        half = 0.5 * mu / math.sqrt(2.0)
        at = epsilon / (mu * math.sqrt(2.0)) + half * NODES
        slopes = [2.0 / math.sqrt(math.pi) - 2.0 * t * erfcx(t) for t in at.tolist()]
        bracket = half * float(WEIGHTS @ slopes)
        value = 0.5 * scale * bracket
    elif x < 0:
        value = 0.5 * (math.erfc(x) - scale * erfcx(y))
    else:
        value = 0.5 * scale * (erfcx(x) - erfcx(y))
    return min(max(value * ROUND_UP, math.ulp(0.0)), 1.0)


@lru_cache(maxsize=4096)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 with δ_μ(ε) ≤ delta, rounded up.

    >>> round(gaussian_epsilon(0.2, 1e-6), 3)
    0.834
    """
    if not math.isfinite(mu) or mu > 1e6:
        return math.inf
    if mu <= 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    target = math.log(delta)
    high = mu * (0.5 * mu + math.sqrt(-2.0 * target))  # there Φ(μ/2 − ε/μ) alone is below delta
    return safe_root(
        lambda epsilon: math.log(gaussian_delta(mu, epsilon)) - target,
        safe=high * (1.0 + 1e-9),
        unsafe=0.0,
        tolerance=1e-13 * max(1.0, -target),
    )


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ with δ_μ(ε) ≤ delta, rounded down: the Gaussian limit of an (ε, δ) guarantee.

    >>> round(gaussian_mu(1.0, 1e-6), 4)
    0.2367
    """
    target = math.log(delta)

    def gap(log_mu: float) -> float:
        return math.log(gaussian_delta(math.exp(log_mu), epsilon)) - target

    low = math.log(min(delta, 1.0))  # δ_μ(ε) ≤ δ_μ(0) ≤ 0.4·μ
    high = math.log(2.0 * math.sqrt(epsilon) + 2.0 * math.sqrt(-2.0 * target) + 20.0)
    while gap(high) <= 0:
        high += 1.0
    return math.exp(safe_root(gap, safe=low, unsafe=high, tolerance=1e-13 * max(1.0, -target)))


def pure_mu(epsilon: float) -> float:
    """μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up: the least Gaussian shift that covers every ε-private mechanism

    Symbols: ε of pure differential privacy.
    Source: docs/explanation/proofs/adaptive.md, lemma 2, for randomised response, which covers them all ([KOV]).
    Adjacency: that of the ε.

    >>> round(pure_mu(0.1), 4)
    0.1253
    """
    if epsilon > 700.0:
        return math.inf
    if epsilon < 1e-5:  # 2·Φ⁻¹(½ + ¼·tanh(ε/2)·2) is below this, and a float near ½ has no digits left
        return 1.2533141373155003 * epsilon * (1.0 + 1e-9)
    return -2.0 * quantile(1.0 / (1.0 + math.exp(epsilon))) * (1.0 + 1e-9)


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of the region of test errors of a loss that takes finitely many values, for tests with loss > 0.

    ``beta`` is the chance of a loss of at least this much, infinite losses included; ``rest`` is 1 − beta, summed from
    the other end; ``alpha`` is the same chance on the other data set.
    """

    alpha: Floats
    beta: Floats
    rest: Floats

    @classmethod
    def of(cls, losses: Floats, probabilities: Floats, infinity: float = 0.0) -> Corners:
        """From losses in rising order and their probabilities."""
        p = np.maximum(probabilities, 0.0)
        first = int(np.searchsorted(losses, 0.0, side="right"))
        below = np.concatenate([[0.0], np.cumsum(p)])[first:-1]
        above, tilted = p[first:], p[first:] * np.exp(-losses[first:])
        return cls(np.cumsum(tilted[::-1])[::-1], infinity + np.cumsum(above[::-1])[::-1], below)

    def mu(self, delta: float) -> float:
        """The largest Φ⁻¹((β − δ₀)/(1 − δ₀)) − Φ⁻¹(α/(1 − δ₀)) of all corners, rounded up

        Corners with β ≤ δ₀ or α ≥ 1 − δ₀ are covered by any shift.

        Symbols: δ₀ delta, the chance with which everything may be lost.
        Source: docs/explanation/proofs/adaptive.md, lemma 2.
        Adjacency: that of the loss.
        """
        open_ = (self.beta > delta) & (self.alpha < 1.0 - delta)  # a test that always errs tells nothing
        if not open_.any():
            return 0.0
        alpha, beta = self.alpha[open_] / (1.0 - delta), (self.beta[open_] - delta) / (1.0 - delta)
        rest = self.rest[open_] / (1.0 - delta)
        nearer = quantiles(np.where(beta < 0.5, beta, np.minimum(rest, 0.5)))  # 1 − beta has more digits than beta
        found = float((np.where(beta < 0.5, nearer, -nearer) - quantiles(alpha)).max())
        return found * (1.0 + 1e-9) + 4e-15 * self.beta.size if found > 0 else 0.0
