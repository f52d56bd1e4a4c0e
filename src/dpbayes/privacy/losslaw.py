"""The law of the privacy loss of gamma pairs, by quadrature that keeps every digit of a tail.

A gamma pair has a one-dimensional sufficient statistic y with a log-concave density, and its privacy loss is
linear in y (docs/explanation/proofs/dominating-pair.md). Everything a guarantee needs is an integral of a
positive function against that density: nothing cancels, so δ = 1e-100 is as accurate as δ = 0.1. The density
is written relative to its mode, where neither lnΓ nor the location can spoil it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.pld import TAIL, Masses, span, split

_CORNER = np.array([-32.0, -16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
_GEOMETRIC = 2.0 ** np.arange(-1, 7)


@cache
def _levels() -> Floats:
    """Depths below the mode at which panels end: Gaussian steps near the top, equal steps down to exp(−800)."""
    deepest = 800.0  # what lies beyond underflows
    near = 0.5 * np.arange(0.0, 8.0, 1.3) ** 2
    return np.concatenate([near, np.arange(near[-1] + 10.0, deepest, 10.0), [deepest]])


@cache
def _gauss_legendre(points: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLaw(ABC):
    """Law of the loss L = at_mode + weight·y under P, for one direction of a pair (P, Q)."""

    weight: float
    at_mode: float

    @abstractmethod
    def depth(self, y: Floats) -> Floats:
        """How far the log-density lies below its mode at y."""

    @abstractmethod
    def reach(self, depth: Floats) -> tuple[Floats, Floats]:
        """Points left and right of the mode about ``depth`` below it."""

    @property
    @abstractmethod
    def corner(self) -> float:
        """Where the log-density bends from one straight tail into the other."""

    @property
    @abstractmethod
    def roundoff(self) -> float:
        """Bound on the relative error of the density, to be added to every claim."""

    def nodes(self, breaks: Floats) -> tuple[Floats, Floats]:
        """Losses and their probabilities under P: quadrature nodes on panels that end at the ``breaks`` (losses)."""
        left, right = self.reach(_levels())
        inner = np.concatenate([-left, right, self.corner + _CORNER, (breaks - self.at_mode) / self.weight])
        lowest, highest = -left[-1], right[-1]
        edges = np.unique(np.clip(inner, lowest, highest))
        points, weights = _gauss_legendre(16 if edges.size < 2000 else 6)
        half = 0.5 * np.diff(edges)[:, None]
        y = (edges[:-1, None] + half) + half * points
        masses = half * weights * np.exp(-self.depth(y))
        return self.at_mode + self.weight * y.ravel(), masses.ravel() / masses.sum()

    def delta(self, epsilon: float) -> float:
        """E_P[(1 − exp(ε − L))₊], rounded up."""
        losses, masses = self.nodes(epsilon + np.concatenate([[0.0], _GEOMETRIC]))
        if not (np.isfinite(losses).all() and np.isfinite(masses).all()):
            return 1.0  # parameters so far apart that they overflow hide nothing
        above = losses > epsilon
        value = 0.0 - float((masses[above] * np.expm1(epsilon - losses[above])).sum())
        return min(value * (1.0 + self.roundoff), 1.0)

    def masses(self, interval: float) -> Masses:
        """The loss on multiples of ``interval``, never too optimistic."""
        first, last = span(*self.nodes(np.zeros(0)), interval)
        losses, masses = self.nodes(np.arange(first, last + 1, dtype=np.float64) * interval)
        lowest, probabilities, infinity = split(losses, masses, interval, first, last)
        return lowest, probabilities, infinity + self.roundoff * TAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitLaw(LossLaw):
    """y = logit(t) − mode with t ~ Beta(rise, fall): a replaced record."""

    rise: float
    fall: float

    def depth(self, y: Floats) -> Floats:
        """n·[ln(1 + q·(e^x − 1)) − q·x], q the smaller slope over n, x = ±y positive on the steeper side."""
        total = self.rise + self.fall
        lesser = min(self.rise, self.fall) / total
        x = y if self.fall > self.rise else -y
        near = np.minimum(x, 700.0)  # beyond it the logarithm is a straight line, and e^x would overflow
        return total * (np.log1p(lesser * np.expm1(near)) + (x - near) - lesser * x)

    def reach(self, depth: Floats) -> tuple[Floats, Floats]:
        """Gaussian near the mode, straight with slopes ``rise`` and ``fall`` far from it.

        Where one slope is far smaller, the side of the other one falls doubly exponentially in between.
        """
        lesser, greater = sorted((self.rise, self.fall))
        core = np.sqrt(2.0 * depth * (1.0 / lesser + 1.0 / greater))
        gentle, steep = core + depth / lesser, core + depth / greater
        height = 2.0 * lesser * gentle / (lesser + greater)
        bend = np.log1p(np.expm1(np.minimum(height, 500.0)) * (1.0 + greater / lesser))
        steep = np.where(height < 500.0, np.minimum(steep, bend), steep)
        return (steep, gentle) if self.rise > self.fall else (gentle, steep)

    @property
    def corner(self) -> float:
        """Where both gammas are equal; where the smaller one is 1 if that comes before."""
        lesser, total = min(self.rise, self.fall), self.rise + self.fall
        at = float(np.log(min(total, 1.0) / lesser))
        return at if self.fall > self.rise else -at

    @property
    def roundoff(self) -> float:
        """Quadrature, and a rounding of n·y·2⁻⁵³ in the exponent."""
        return 1e-10 + 1e-14 * float(np.sqrt(self.rise + self.fall))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGammaLaw(LossLaw):
    """y = ±(ln z − mode) with z ~ Gamma(shape): a record added (``rising``) or removed."""

    shape: float
    rising: bool

    def depth(self, y: Floats) -> Floats:
        """shape·(e^x − 1 − x) with x = y or −y."""
        x = y if self.rising else -y
        return self.shape * (np.expm1(x) - x)

    def reach(self, depth: Floats) -> tuple[Floats, Floats]:
        """Straight below the mode, doubly exponential above it."""
        scaled = depth / self.shape
        straight = np.sqrt(2.0 * scaled) + scaled
        steep = np.log1p(straight)
        return (straight, steep) if self.rising else (steep, straight)

    @property
    def corner(self) -> float:
        """Ln z = 0."""
        at = float(-np.log(self.shape))
        return at if self.rising else -at

    @property
    def roundoff(self) -> float:
        """Quadrature, and a rounding of shape·y·2⁻⁵³ in the exponent."""
        return 1e-10 + 1e-14 * float(np.sqrt(self.shape))
