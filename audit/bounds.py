"""What samples prove about privacy: Clopper–Pearson bounds on ε and on δ, each on its own.

Two neighbouring tables are released many times; an attacker's score is computed from every release. One half of the
scores chooses the events, the other half measures them, so no bound is spoilt by the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

ERROR = 1e-10
"""The chance that one bound is wrong. A run computes fewer than 10⁴ of them, so a false alarm has a chance of 10⁻⁶."""

THRESHOLDS = 200
"""Events that the first half of the scores may choose from, for each side."""

Floats = NDArray[np.float64]
Claim = tuple[float, float]
"""A stated pair (ε, δ)."""


def lower(successes: ArrayLike, trials: int, error: float = ERROR) -> Floats:
    """The probability that is exceeded with confidence 1 − error."""
    hits = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = betaincinv(hits, trials - hits + 1, error)
    return np.where(hits == 0, 0.0, found)


def upper(successes: ArrayLike, trials: int, error: float = ERROR) -> Floats:
    """The probability that is not reached with confidence 1 − error."""
    return 1.0 - lower(trials - np.asarray(successes), trials, error)


def delta_lower(p: Floats, q: Floats, epsilon: float) -> Floats:
    """δ ≥ P(E) − e^ε·Q(E), for an event E with P(E) ≥ p and Q(E) ≤ q."""
    return np.maximum(p - np.exp(min(epsilon, 700.0)) * q, 0.0)


def epsilon_lower(p: Floats, q: Floats, delta: float) -> Floats:
    """ε ≥ ln((P(E) − δ)/Q(E)), for an event E with P(E) ≥ p and Q(E) ≤ q."""
    return np.log(np.maximum((p - delta) / q, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The stated pair that comes closest to being refuted, and what was proved against it."""

    epsilon: float
    delta: float
    epsilon_proved: float
    delta_proved: float
    bounds: int
    draws: int

    @property
    def holds(self) -> bool:
        """Whether neither bound refutes the claim."""
        return self.epsilon_proved <= self.epsilon and self.delta_proved <= self.delta

    @property
    def tightness(self) -> float:
        """How near the proved bounds come to the claim; above one, the claim is refuted."""
        by_delta = self.delta_proved / self.delta if self.delta > 0 else 0.0
        return max(self.epsilon_proved / self.epsilon, by_delta)


def distinguish(one: ArrayLike, other: ArrayLike, claims: Sequence[Claim]) -> Evidence:
    """The strongest evidence that scores of two neighbours give against the stated pairs."""
    p, q = (np.asarray(scores, dtype=np.float64) for scores in (one, other))
    thresholds = _thresholds(p[::2], q[::2])
    learn, measure = ((_Side.of(p[start::2], thresholds), _Side.of(q[start::2], thresholds)) for start in (0, 1))
    found = []
    for epsilon, delta in claims:
        proved = {"epsilon": 0.0, "delta": 0.0}
        for name, goal, bound in (("delta", delta_lower, epsilon), ("epsilon", epsilon_lower, delta)):
            for first, second in ((0, 1), (1, 0)):  # both directions of the neighbours
                event = int(np.argmax(goal(learn[first].lower, learn[second].upper, bound)))
                value = goal(measure[first].lower[event], measure[second].upper[event], bound)
                proved[name] = max(proved[name], float(value))
        found.append((epsilon, delta, proved))
    evidence = [
        Evidence(
            epsilon=epsilon,
            delta=delta,
            epsilon_proved=proved["epsilon"],
            delta_proved=proved["delta"],
            bounds=8 * len(claims),
            draws=p.size + q.size,
        )
        for epsilon, delta, proved in found
    ]
    return max(evidence, key=lambda each: (not each.holds, each.tightness))


def _thresholds(p: Floats, q: Floats) -> Floats:
    """Some of the scores: evenly spread, and the tails closely."""
    pooled = np.unique(np.concatenate([p, q]))
    if pooled.size <= THRESHOLDS:
        return pooled
    tail = np.arange(THRESHOLDS // 4)
    places = np.concatenate([np.linspace(0, pooled.size - 1, THRESHOLDS // 2), tail, pooled.size - 1 - tail])
    return pooled[np.unique(places.astype(np.int64))]


@dataclass(frozen=True, slots=True)
class _Side:
    """Bounds on the probabilities, under one table, that a score is at or above each threshold, or below it."""

    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, scores: Floats, thresholds: Floats) -> _Side:
        below = np.searchsorted(np.sort(scores), thresholds, side="left")
        hits = np.concatenate([scores.size - below, below])
        return cls(lower(hits, scores.size), upper(hits, scores.size))
