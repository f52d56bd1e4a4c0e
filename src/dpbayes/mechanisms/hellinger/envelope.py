"""Sums of exponentials that dominate the weights of the exponential mechanism, with a certificate.

The weight of a candidate is exp(−a·s(D)), D = −ln BC a sum over cells and s a Bernstein function. So the weight
is a positive mixture of exponentials e^{−cD}, c = 0, 1, 2, …, and each of these is a product over the cells, which
can be sampled. A few dozen of them, fitted and then raised until they dominate, make the envelope of the sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument

ROUNDING = 1e-9
"""Added to the height of every envelope, to cover the rounding of its certificate."""

_BEND = 0.01
"""How far a chord of the log-weight may lie above it between two points of the certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A score as a function of D: s increasing and concave from s(0) = 0 to s(∞) = 1.

    ``bend`` is −s″; ``spacing`` is that of ln c in the ladder of exponentials which fits it.
    """

    score: Callable[[Floats], Floats]
    bend: Callable[[Floats], Floats]
    spacing: float


def _hellinger(divergence: Floats) -> Floats:
    return np.sqrt(-np.expm1(-divergence))


def _hellinger_bend(divergence: Floats) -> Floats:
    s, q = _hellinger(divergence), np.exp(-divergence)
    return q / (2.0 * s) + q * q / (4.0 * s**3)


HELLINGER = Curve(score=_hellinger, bend=_hellinger_bend, spacing=0.25)
"""s(D) = √(1 − e^{−D}) = H."""

SQUARED_HELLINGER = Curve(
    score=lambda divergence: -np.expm1(-divergence), bend=lambda divergence: np.exp(-divergence), spacing=0.05
)
"""s(D) = 1 − e^{−D} = H², a lower bound of the total variation distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """E(D) = Σ_j exp(log_weights_j − rates_j·D); the first rate is 0."""

    rates: Floats
    log_weights: Floats

    def log(self, divergence: Floats) -> Floats:
        """The logarithm of E(D)."""
        terms = self.log_weights - np.multiply.outer(divergence, self.rates)
        top = terms.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0])

    def slope(self, divergence: Floats) -> Floats:
        """(ln E)′(D), the average rate with its sign changed."""
        terms = self.log_weights - np.multiply.outer(divergence, self.rates)
        shares = np.exp(terms - terms.max(axis=-1, keepdims=True))
        return np.asarray(-(shares @ self.rates) / shares.sum(axis=-1))

    def raised(self, height: float) -> Envelope:
        """e^height times the envelope."""
        return Envelope(rates=self.rates, log_weights=self.log_weights + height)


def shortfall(envelope: Envelope, curve: Curve, sharpness: float) -> float:
    """The least σ that proves e^σ·E(D) ≥ e^{−a·s(D)} for all D ≥ 0.

    The logarithms of both sides are convex and decreasing. Between neighbouring points of a grid the right side lies
    below its chord and the left side above its tangent, so two comparisons settle the interval; before the first
    point the weight is at most 1, after the last one the envelope is at least its constant term.

    Symbols: a sharpness, s curve, E envelope.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is an inequality between functions.
    """
    grid = certificate_grid(curve, sharpness)
    target = -sharpness * curve.score(grid)
    height, slope = envelope.log(grid), envelope.slope(grid)
    tangent = height[:-1] + slope[:-1] * np.diff(grid)
    gaps = (-height[0], (target - height).max(), (target[1:] - tangent).max(), target[-1] - envelope.log_weights[0])
    return float(max(gaps)) + ROUNDING


def certificate_grid(curve: Curve, sharpness: float) -> Floats:
    """Points of D between which a chord of a·s(D) bends away by about the same small amount."""
    a = sharpness
    fine = np.geomspace(min(1e-4 / a**2, 1e-3 / a, 1e-4), np.log(200.0 * a + 200.0), 4000)
    density = np.sqrt(a * curve.bend(fine) / (8.0 * _BEND))
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine))])
    points = int(passed[-1]) + 64
    return np.asarray(np.unique(np.interp(np.linspace(0.0, passed[-1], points), passed, fine)))


def fitted(curve: Curve, sharpness: float) -> Envelope:
    """An envelope of exp(−a·s(D)), tight to a few percent, with its domination certified.

    Symbols: a sharpness, s curve.
    Source: [BernsteinFunctions] theorem 3.7 for the mixture; our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is an inequality between functions.
    """
    from scipy.optimize import nnls

    if not (np.isfinite(sharpness) and sharpness > 0):
        raise InvalidArgument(f"Envelope: expected a finite sharpness > 0, got {sharpness!r}.")
    rates = _ladder(curve, sharpness)
    grid = certificate_grid(curve, sharpness)
    grid = np.append(grid, grid[-1] + np.array([3.0, 40.0]))
    depth = sharpness * curve.score(grid)
    # deep in the tail a coarse ladder cannot follow the weight: aim a little above it, which costs next to nothing
    depth -= 0.01 * np.maximum(depth - 60.0, 0.0)
    exponents = depth[:, None] - np.multiply.outer(grid, rates)
    tops = exponents.max(axis=0)
    amounts, _ = nnls(np.exp(exponents - tops), np.ones(grid.size))
    kept = amounts > 0
    kept[0] = True
    amounts[0] = max(amounts[0], 1e-6)
    envelope = Envelope(rates=rates[kept], log_weights=np.log(amounts[kept]) - tops[kept])
    return envelope.raised(shortfall(envelope, curve, sharpness))


def _ladder(curve: Curve, sharpness: float) -> Floats:
    """Rates 0, 1, … in nearly geometric steps, up to where the steepest useful exponential is."""
    start = min(1e-4 / sharpness**2, 1e-4)
    steepest = sharpness * curve.score(np.array([start]))[0] / start
    ladder = np.geomspace(1.0, max(steepest, 2.0), int(np.log(max(steepest, 2.0)) / curve.spacing) + 2)
    return np.concatenate([[0.0], np.unique(np.round(ladder))])
