"""What is known about the privacy of a posterior release: nothing, a statement, or the better of two theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.hellinger.certificate import ORDERS, Certificate
from dpbayes.mechanisms.kinds import Loss
from dpbayes.mechanisms.selection import Selection
from dpbayes.privacy.bounds import AtomicLoss, largest_over_chord
from dpbayes.privacy.pld import TAIL, Pld, from_profile, from_statement


class Promise(Loss, Protocol):
    """The privacy face that a mechanism hands on: ``Stated`` for an (ε, δ) statement, or one of the below."""

    def concentrated(self, omega: float) -> float:
        """Smallest ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω."""


class NoPromise:
    """Nothing is protected: every cost is infinite, so that no budget admits it."""

    def renyi(self, order: float) -> float:
        """∞."""
        checks.order("NoPromise", order)
        return math.inf

    def concentrated(self, omega: float) -> float:
        """∞."""
        checks.order("NoPromise", omega)
        return math.inf

    def delta(self, epsilon: float) -> float:
        """1: all may be lost."""
        checks.non_negative("NoPromise", epsilon=epsilon)
        return 1.0

    def epsilon(self, delta: float) -> float:
        """∞."""
        checks.probability("NoPromise", delta=delta)
        return math.inf

    def pld(self, interval: float) -> Pld:
        """All mass at an infinite loss."""
        return from_statement(0.0, 1.0, interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothTail:
    """What is proved for weights e^{−εH/(2S)}, S smooth with γ > 0, on |R| candidates.

    The privacy loss is at most ε₀ + (e^γ − 1)·T with ε₀ = ε + γ·ln|R| and P[T > t] ≤ |R|·e^{−t}.

    Source: our proof, docs/explanation/proofs/hellinger.md.
    """

    sharpness: float
    smoothing: float
    log_candidates: float

    @property
    def base(self) -> float:
        """ε₀ = ε + γ·ln|R|."""
        return self.sharpness + self.smoothing * self.log_candidates

    @property
    def growth(self) -> float:
        """κ = e^γ − 1."""
        return math.expm1(self.smoothing)

    def epsilon(self, delta: float) -> float:
        """ε(δ) = ε₀ + κ·[ln(|R|/δ) + ln(1 − e^{−γ})], at least ε₀.

        Symbols: κ growth, γ smoothing, ε₀ base; the last term improves on the bound of theory by integrating the tail.
        Source: our proof, docs/explanation/proofs/hellinger.md.
        Adjacency: replace-one.
        """
        checks.probability("SmoothTail", delta=delta)
        tail = self.log_candidates - math.log(delta) + math.log(-math.expm1(-self.smoothing))
        return self.base + self.growth * max(tail, 0.0)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = (1 − e^{−γ})·|R|·exp(−(ε − ε₀)/κ) for ε ≥ ε₀, at most 1.

        Symbols: κ growth, γ smoothing, ε₀ base.
        Source: our proof, docs/explanation/proofs/hellinger.md.
        Adjacency: replace-one.
        """
        checks.non_negative("SmoothTail", epsilon=epsilon)
        return float(self.profile(np.array([epsilon]))[0])

    def profile(self, epsilons: Floats) -> Floats:
        """δ at many ε."""
        front = math.log(-math.expm1(-self.smoothing)) + self.log_candidates
        tail = np.exp(np.minimum(front - (epsilons - self.base) / self.growth, 0.0))
        return np.where(epsilons >= self.base, tail, 1.0)

    def renyi(self, order: float) -> float:
        """D_λ ≤ ε₀ + min(s·ln|R| − ln(1−s), −ln|R|·ln(1−s))/(λ−1), s = (λ−1)κ < 1, else ∞.

        Symbols: λ order, κ growth, ε₀ base.
        Source: our proof, docs/explanation/proofs/hellinger.md.
        Adjacency: replace-one.
        """
        checks.order("SmoothTail", order)
        return min(self._renyi(order))

    def _renyi(self, order: float) -> tuple[float, float]:
        share = (order - 1.0) * self.growth
        if share >= 1:
            return math.inf, math.inf
        rate = -math.log1p(-share) / (order - 1.0)
        return self.base + self.growth * self.log_candidates + rate, self.base + self.log_candidates * rate

    def concentrated(self, omega: float) -> float:
        """Each bound of ``renyi`` is convex in λ, so its ratio to λ is largest at an end: λ = 1 or ω.

        Symbols: λ order, ω omega.
        Source: our proof, docs/explanation/proofs/hellinger.md.
        Adjacency: replace-one.
        """
        checks.order("SmoothTail", omega)
        if (omega - 1.0) * self.growth >= 1:
            return math.inf
        at_one = (
            self.base + self.growth * (self.log_candidates + 1.0),
            self.base + self.growth * self.log_candidates,
        )
        return min(max(start, end / omega) for start, end in zip(at_one, self._renyi(omega), strict=True))

    def pld(self, interval: float) -> Pld:
        """A distribution that dominates every law with this profile."""
        return from_profile(self.profile, interval, self.epsilon(TAIL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """The better of two theorems, in every notion: the pure one, which bounds the range of the loss, and the tail.

    The tail wins only for little smoothing.

    Source: our proof, docs/explanation/proofs/hellinger.md.
    """

    ranged: Selection
    tail: SmoothTail

    @property
    def exact(self) -> bool:
        """Whether the pure theorem alone speaks, which is a pair of laws: the tail says nothing below its base."""
        return self.tail.base >= self.ranged.sharpness

    def renyi(self, order: float) -> float:
        """The smaller of a loss of this range, and of the tail.

        Source: our proof, docs/explanation/proofs/hellinger.md.
        """
        return min(self.ranged.renyi(order), self.tail.renyi(order))

    def concentrated(self, omega: float) -> float:
        """The smaller ρ."""
        return min(self.ranged.concentrated(omega), self.tail.concentrated(omega))

    def delta(self, epsilon: float) -> float:
        """The smaller δ."""
        return min(self.ranged.delta(epsilon), self.tail.delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smaller ε."""
        return min(self.ranged.epsilon(delta), self.tail.epsilon(delta))

    def pld(self, interval: float) -> Pld:
        """A distribution that dominates every law within both profiles."""
        if self.exact:
            return self.ranged.pld(interval)
        ranged, tail = self.ranged, self.tail
        return from_profile(lambda at: np.minimum(ranged.profile(at), tail.profile(at)), interval, ranged.sharpness)


@dataclass(frozen=True)
class Enumerated:
    """What a certificate says about all neighbours: their largest δ at every ε, and largest divergence at every order.

    Source: enumeration; docs/explanation/proofs/hellinger.md, section 4.
    """

    certificate: Certificate

    @cached_property
    def loss(self) -> AtomicLoss:
        """One pair that dominates those of all neighbours."""
        return AtomicLoss.of_profile(np.array(self.certificate.profile), self.certificate.epsilon)

    @cached_property
    def _convex(self) -> tuple[Floats, Floats]:
        """The orders from 1 on, and (λ−1)·D_λ there."""
        return np.append(1.0, ORDERS), np.append(0.0, (ORDERS - 1.0) * np.array(self.certificate.divergences))

    def renyi(self, order: float) -> float:
        """D_λ: (λ−1)·D_λ is convex, so below its chord between two orders of the certificate; or that of ``loss``.

        Symbols: λ order.
        Source: docs/explanation/proofs/hellinger.md, section 4; docs/explanation/proofs/pseudo-records.md (convex).
        Adjacency: replace-one.
        """
        checks.order("Enumerated", order)
        if math.isinf(order):
            return self.certificate.epsilon
        by_pair = min(self.loss.renyi(order), self.certificate.epsilon)
        orders, values = self._convex
        return by_pair if order > orders[-1] else min(by_pair, float(np.interp(order, orders, values)) / (order - 1.0))

    def concentrated(self, omega: float) -> float:
        """The largest D_λ/λ over the chords up to ω; beyond the last order no divergence is above ε, nor ρ above ½ε²

        Symbols: λ order, ω omega, ε pure.
        Source: [BS16] proposition 1.4; docs/explanation/proofs/pseudo-records.md for the chords.
        Adjacency: replace-one.
        """
        checks.order("Enumerated", omega)
        orders: list[float] = self._convex[0].tolist()
        values: list[float] = self._convex[1].tolist()
        most = values[1] / (orders[1] - 1.0)  # up to the first order no divergence is larger
        for low, high, before, after in zip(orders[1:-1], orders[2:], values[1:-1], values[2:], strict=True):
            if low < omega:
                most = max(most, largest_over_chord(low, high, before, after))
        if omega > orders[-1]:
            most = max(most, self.certificate.epsilon / orders[-1])
        return min(most, 0.5 * self.certificate.epsilon**2)

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        checks.non_negative("Enumerated", epsilon=epsilon)
        return 0.0 if epsilon >= self.certificate.epsilon else self.loss.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""
        checks.probability("Enumerated", delta=delta)
        return min(self.loss.epsilon(delta), self.certificate.epsilon)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return self.loss.pld(interval)


@lru_cache(maxsize=256)
def enumerated(certificate: Certificate) -> Enumerated:
    """The promise of a certificate that has a profile, made once."""
    return Enumerated(certificate)
