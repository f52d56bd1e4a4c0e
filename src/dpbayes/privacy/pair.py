"""The dominating pair of the Dirichlet mechanism: everything exact derives from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.loggamma import jensen_gap, loss_at_mode_down, loss_at_mode_up
from dpbayes.privacy.losslaw import LogGammaLaw, LogitLaw, LossLaw
from dpbayes.privacy.pld import TAIL, Pld, from_masses, from_profile
from dpbayes.privacy.solve import ERROR, least_epsilon

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
    cell = np.minimum(np.searchsorted(epsilons, losses) - 1, epsilons.size - 1)
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
