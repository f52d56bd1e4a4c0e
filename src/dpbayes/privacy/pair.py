"""The dominating pair of the Dirichlet mechanism: everything exact derives from it.

A gamma pair has a one-dimensional sufficient statistic y with a log-concave density, and its privacy loss is
linear in y (docs/explanation/proofs/dominating-pair.md). Everything a guarantee needs is an integral of a
positive function against that density: nothing cancels, so δ = 1e-100 is as accurate as δ = 0.1. The density
is written relative to its mode, where neither lnΓ nor the location can spoil it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.beta_binomial import jensen_gap, loss_at_mode_down, loss_at_mode_up
from dpbayes.privacy.convert import ERROR, least_epsilon
from dpbayes.privacy.pld import TAIL, Masses, Pld, from_masses, from_profile, span, split

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


ROUND_UP = 1.0 + 2.0 * ERROR
"""Covers the error of jensen_gap, so that a stated divergence is never too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaPair:
    """Two gamma laws in one or two cells, between which every neighbouring pair of Dirichlet draws lies.

    A replaced record: P = Gamma(first + r) ⊗ Gamma(second), Q = Gamma(first) ⊗ Gamma(second + r).
    An added or removed record: P = Gamma(first + r), Q = Gamma(first), ``second`` is None.
    With first ≠ second both assignments of the two cells count, and the worse is stated.

    Source: our proof, docs/explanation/proofs/dominating-pair.md.
    """

    weight: float
    first: float
    second: float | None

    @lru_cache(maxsize=2**14)  # noqa: B019 - of a few floats; a search asks for the same orders again and again
    def renyi(self, order: float) -> float:
        """D_λ = [lnΓ(α+λr) + lnΓ(α−(λ−1)r) − lnΓ(α+r) − lnΓ(α)]/(λ−1)      valid while α > (λ−1)r, else ∞

        written here as the sum of the divergences of the cell that gains and of the cell that loses a record;
        with two different α, or one cell only, those two are combined accordingly.

        Symbols: λ order, r weight, α concentration (first, second).
        Source: our proof, docs/explanation/proofs/exact-renyi.md.
        Adjacency: replace-one adds a gaining and a losing cell; add/remove takes the worse of the two.
        """
        if math.isinf(order):
            return math.inf
        if self.second is None:
            return ROUND_UP * max(self._gaining(self.first, order), self._losing(self.first, order))
        ways = {(self.first, self.second), (self.second, self.first)}  # one where the cells are alike
        return ROUND_UP * max(self._gaining(gains, order) + self._losing(loses, order) for gains, loses in ways)

    def _gaining(self, concentration: float, order: float) -> float:
        """D_λ(Gamma(α+r) ‖ Gamma(α)) = [lnΓ(α+λr) − lnΓ(α+r)]/(λ−1) − [lnΓ(α+r) − lnΓ(α)]"""
        step = (order - 1.0) * self.weight
        return float(jensen_gap(concentration, self.weight, step)) / step

    def _losing(self, concentration: float, order: float) -> float:
        """D_λ(Gamma(α) ‖ Gamma(α+r)) = [lnΓ(α−(λ−1)r) − lnΓ(α)]/(λ−1) + [lnΓ(α+r) − lnΓ(α)], ∞ if α ≤ (λ−1)r"""
        step = (order - 1.0) * self.weight
        start = _difference(concentration, order - 1.0, self.weight)
        return float(jensen_gap(start, step, self.weight)) / step if start > 0 else math.inf

    def laws(self) -> tuple[LossLaw, ...]:
        """The privacy loss in each direction; one law when both directions are the same.

        With t = z_i/(z_i+z_j), the loss of a replaced record is r·logit(t) plus a constant, t a beta variable;
        of an added or removed one it is ±r·ln z plus a constant, z a gamma variable.

        Symbols: r weight, z the gammas of the pair.
        Source: our proof, docs/explanation/proofs/exact-profile.md.
        Adjacency: replace-one has the beta form, add/remove the gamma form.
        """
        if self.second is None:
            return (self._log_gamma(rising=True), self._log_gamma(rising=False))
        one = self._logit(self.first, self.second)
        return (one,) if self.first == self.second else (one, self._logit(self.second, self.first))

    def _logit(self, gains: float, loses: float) -> LogitLaw:
        return LogitLaw(
            weight=self.weight,
            at_mode=loss_at_mode_up(gains, self.weight) + loss_at_mode_down(loses, self.weight),
            rise=gains + self.weight,
            fall=loses,
        )

    def _log_gamma(self, *, rising: bool) -> LogGammaLaw:
        at_mode = loss_at_mode_up if rising else loss_at_mode_down
        return LogGammaLaw(
            weight=self.weight,
            at_mode=at_mode(self.first, self.weight),
            shape=self.first + self.weight if rising else self.first,
            rising=rising,
        )

    def delta(self, epsilon: float) -> float:
        """δ(ε) = I_{1−t}(α, α+r) − e^ε·I_{1−t}(α+r, α), t = 1/(1+e^{−ε/r}), I the regularised incomplete beta

        for a replaced record and equal α, computed as a positive integral; likewise in the other cases.

        Symbols: α concentration, r weight.
        Source: our proof, docs/explanation/proofs/exact-profile.md.
        Adjacency: the largest over the directions of the pair.
        """
        return max(law.delta(epsilon) for law in self.laws())

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ delta, rounded up."""
        if self.delta(0.0) <= delta:
            return 0.0
        high = max(self.laws()[0].at_mode, self.weight)
        while self.delta(high) > delta:
            high *= 2.0
            if not math.isfinite(high):
                return math.inf
        return least_epsilon(self.delta, delta, safe=high)

    def pld(self, interval: float) -> Pld:
        """The loss on multiples of ``interval``.

        One record that is added raises a cell of every table, so the directions stay apart. A replaced
        record may take one direction in one table and the other in the next, so they are merged into one
        symmetric pair: the pointwise larger profile.
        """
        laws = self.laws()
        if self.second is None or len(laws) == 1:
            return from_masses(interval, *(law.masses(interval) for law in laws))
        return from_profile(
            lambda epsilons: np.maximum(*(_profile(law, epsilons) for law in laws)),
            interval,
            self.epsilon(TAIL),
        )


def _profile(law: LossLaw, epsilons: Floats) -> Floats:
    """δ at equally spaced ε from 0 on: δ(ε) = ∫ over losses above ε of (1 − e^{ε−L}).

    Gathered from above as a sum of positive terms: with T(ε) = ∫ of e^{ε−L}, each step down by h adds
    (1 − e^−h)·T and what the losses of that step contribute.
    """
    from scipy.signal import lfilter

    step = epsilons[1] - epsilons[0]
    losses, masses = law.nodes(np.concatenate([-epsilons[:0:-1], epsilons]))
    losses, masses = losses[losses > 0], masses[losses > 0]
    cell = np.searchsorted(epsilons, losses) - 1
    excess = losses - epsilons[cell]
    seen = np.bincount(cell, masses * -np.expm1(-excess), epsilons.size)[::-1]
    tilted = lfilter([1.0], [1.0, -np.exp(-step)], np.bincount(cell, masses * np.exp(-excess), epsilons.size)[::-1])
    seen[1:] += -np.expm1(-step) * tilted[:-1]
    return np.asarray((1.0 + law.roundoff) * seen.cumsum()[::-1])


def _difference(a: float, b: float, c: float) -> float:
    """A − b·c with the product taken exactly: near the largest order the difference decides."""
    product = b * c
    if not math.isfinite(product):
        return a - product
    split = 134217729.0  # 2^27 + 1, Veltkamp's constant
    b_high = b * split - (b * split - b)
    c_high = c * split - (c * split - c)
    b_low, c_low = b - b_high, c - c_high
    error = ((b_high * c_high - product) + b_high * c_low + b_low * c_high) + b_low * c_low
    return (a - product) - error
