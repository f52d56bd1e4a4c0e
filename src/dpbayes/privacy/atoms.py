"""A privacy loss that takes finitely many values: noise on integers, randomised response, plain statements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.privacy.pld import Pld, from_atoms, largest_convex_below
from dpbayes.privacy.solve import ERROR, least_epsilon

ROUND_UP = 1.0 + 100.0 * ERROR
"""Covers the rounding of sums over up to a million atoms."""


@dataclass(frozen=True, eq=False)
class AtomicLoss:
    """Losses, none of them rounded down, and their probabilities under P; the pair is the same in both directions."""

    losses: Floats
    probabilities: Floats

    @classmethod
    def of_profile(cls, deltas: Floats, highest: float) -> AtomicLoss:
        """The pair whose δ is at most ``deltas`` at equal steps of ε from 0 to ``highest``, and straight in e^ε between

        p_i = (δ_{i+1} − δ_i)/(e^h − 1) − (δ_i − δ_{i−1})/(1 − e^{−h}) for ε_i > 0, p_i·e^{−ε_i} for −ε_i, the rest at 0

        Symbols: h the step. The last δ is 0: the loss is bounded.
        Source: [Dots] algorithm 1; docs/explanation/proofs/hellinger.md, section 4.
        Adjacency: that of the profile, which holds in both directions.
        """
        step, steps = highest / (len(deltas) - 1), len(deltas) - 1
        at = step * np.arange(steps + 1)
        below = 1.0 - np.exp(-at[:0:-1]) * (1.0 - deltas[:0:-1])  # a symmetric pair has δ(−ε) = 1 − e^−ε(1 − δ(ε))
        above = largest_convex_below(np.concatenate([below, deltas]), step)[steps:]
        rises = np.append(np.diff(above), 0.0)
        p = np.maximum(rises[1:] / math.expm1(step) - rises[:-1] / -math.expm1(-step), 0.0)
        q = p * np.exp(-at[1:])
        rest = max(1.0 - math.fsum(p) - math.fsum(q), 0.0)
        return cls(np.concatenate([at[1:], [0.0], -at[1:]]), np.concatenate([p, [rest], q]))

    def delta(self, epsilon: float) -> float:
        """E[(1 − e^{ε−L})₊], rounded up."""
        above = self.losses > epsilon
        value = 0.0 - float((self.probabilities[above] * np.expm1(epsilon - self.losses[above])).sum())
        return min(value * ROUND_UP, 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, rounded up."""
        return least_epsilon(self.delta, delta, safe=float(self.losses.max()))

    def renyi(self, order: float) -> float:
        """D_λ = ln(1 + Σ P·[e^{(λ−1)L} − 1 − (λ−1)(1 − e^{−L})])/(λ−1), rounded up

        Symbols: λ order, L the losses. The last part adds up to zero, as Σ P·e^{−L} = 1, and no term is negative.
        Source: docs/explanation/proofs/pseudo-records.md.
        Adjacency: that of the pair.
        """
        less, largest = order - 1.0, float(self.losses.max())
        if math.isinf(order):
            return largest
        if less * largest > 300.0:
            logs = np.log(self.probabilities, where=self.probabilities > 0, out=np.full(self.losses.shape, -np.inf))
            logs += less * self.losses
            highest = float(logs.max())
            found = highest + math.log(float(np.exp(logs - highest).sum()))
        else:
            found = math.log1p(float((self.probabilities * renyi_weights(self.losses, order)).sum()))
        return min(ROUND_UP * found / less, largest)

    def pld(self, interval: float, betrayed: float = 0.0) -> Pld:
        """The loss on multiples of ``interval``; with probability ``betrayed`` it is infinite instead."""
        return from_atoms(self.losses, self.probabilities, interval, betrayed)


def renyi_weights(losses: Floats, order: float) -> Floats:
    """e^{(λ−1)L} − 1 − (λ−1)(1 − e^{−L}), with every digit also where L is small

    Symbols: λ order, L losses.
    Source: docs/explanation/proofs/pseudo-records.md.
    Adjacency: none.
    """
    less = order - 1.0
    tilted = less * losses
    near = (np.abs(losses) < 0.01) & (np.abs(tilted) < 0.01)
    terms: Floats = np.expm1(tilted) + less * np.expm1(-losses)
    x, y = -losses[near], tilted[near]
    terms[near] = sum((y**n + less * x**n) / math.factorial(n) for n in range(7, 1, -1))
    return terms


def randomised_response(epsilon: float) -> AtomicLoss:
    """The pair that dominates every ε-DP mechanism: loss ±ε, positive with probability 1/(1+e^−ε).

    Source: [KOV] theorem 3.3 with δ = 0.
    """
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return AtomicLoss(np.array([epsilon, -epsilon]), np.array([truth, truth * math.exp(-epsilon)]))


def randomised_response_renyi(order: float, epsilon: float) -> float:
    """D_λ = ln[(e^{λε} + e^{(1−λ)ε})/(1 + e^ε)]/(λ−1); ε at infinite order

    Symbols: λ order.
    Source: [Mironov17] proposition 5 with p = 1/(1+e^−ε).
    Adjacency: any that the ε holds for.

    >>> round(randomised_response_renyi(2, 1.0), 6)
    0.735326
    """
    if math.isinf(order):
        return epsilon
    if order * epsilon > 30.0:  # relative to λε, so that large orders do not overflow
        rest = math.log1p(math.exp((1.0 - 2.0 * order) * epsilon)) - math.log1p(math.exp(-epsilon))
        divergence = epsilon + rest / (order - 1.0)
    else:  # the same as ln[cosh((λ−½)ε)/cosh(ε/2)]/(λ−1), where nothing cancels
        growth = 2.0 * math.sinh(0.5 * order * epsilon) * math.sinh(0.5 * (order - 1.0) * epsilon)
        divergence = math.log1p(growth / math.cosh(0.5 * epsilon)) / (order - 1.0)
    return min(divergence * (1.0 + 1e-15), epsilon)
