"""What is known about the privacy of a posterior release: nothing, a statement, or the better of two theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.privacy.atoms import randomised_response, randomised_response_renyi
from dpbayes.privacy.pld import TAIL, Pld, from_profile, from_statement


class Promise(Protocol):
    """The privacy face that a mechanism hands on: ``Stated`` for an (ε, δ) statement, or one of the below."""

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order; at infinity, the pure ε."""

    def concentrated(self, omega: float) -> float:
        """Smallest ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω."""

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""


class NoPromise:
    """Nothing is protected: every cost is infinite, so that no budget admits it."""

    def renyi(self, order: float) -> float:
        """∞."""
        _checks.order("NoPromise", order)
        return math.inf

    def concentrated(self, omega: float) -> float:
        """∞."""
        _checks.order("NoPromise", omega)
        return math.inf

    def delta(self, epsilon: float) -> float:
        """1: all may be lost."""
        _checks.non_negative("NoPromise", epsilon=epsilon)
        return 1.0

    def epsilon(self, delta: float) -> float:
        """∞."""
        _checks.probability("NoPromise", delta=delta)
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
        _checks.probability("SmoothTail", delta=delta)
        tail = self.log_candidates - math.log(delta) + math.log(-math.expm1(-self.smoothing))
        return self.base + self.growth * max(tail, 0.0)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = (1 − e^{−γ})·|R|·exp(−(ε − ε₀)/κ) for ε ≥ ε₀, at most 1.

        Symbols: κ growth, γ smoothing, ε₀ base.
        Source: our proof, docs/explanation/proofs/hellinger.md.
        Adjacency: replace-one.
        """
        _checks.non_negative("SmoothTail", epsilon=epsilon)
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
        _checks.order("SmoothTail", order)
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
        _checks.order("SmoothTail", omega)
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
    """The better of two theorems, in every notion: pure ε, and the tail, which wins only for little smoothing.

    Source: our proof, docs/explanation/proofs/hellinger.md.
    """

    pure: float
    tail: SmoothTail

    @property
    def exact(self) -> bool:
        """Whether the pure theorem alone speaks, which is a pair of laws: the tail says nothing below its base."""
        return self.tail.base >= self.pure

    def renyi(self, order: float) -> float:
        """The smaller of randomised response with the pure ε, and of the tail.

        Source: our proof, docs/explanation/proofs/hellinger.md.
        """
        _checks.order("Proved", order)
        return min(randomised_response_renyi(order, self.pure), self.tail.renyi(order))

    def concentrated(self, omega: float) -> float:
        """The smaller of ½ε² and of the tail.

        Source: [BS16] proposition 1.4; our proof, docs/explanation/proofs/hellinger.md.
        """
        return min(0.5 * self.pure**2, self.tail.concentrated(omega))

    def delta(self, epsilon: float) -> float:
        """The smaller δ."""
        return min(randomised_response(self.pure).delta(epsilon), self.tail.delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smaller ε."""
        return min(randomised_response(self.pure).epsilon(delta), self.tail.epsilon(delta))

    def pld(self, interval: float) -> Pld:
        """A distribution that dominates every law within both profiles."""
        if self.exact:
            return from_statement(self.pure, 0.0, interval)
        return from_profile(self._profile, interval, self.pure)

    def _profile(self, epsilons: Floats) -> Floats:
        response = np.array([randomised_response(self.pure).delta(float(epsilon)) for epsilon in epsilons])
        return np.asarray(np.minimum(response, self.tail.profile(epsilons)))
