"""The pure guarantee of weights e^{−εH/(2S)}: how far the score H/S moves, whatever the number of candidates.

The score moves because H does, by at most one unit of S, and because S does. 1/S moves little: near the border of the
simplex it is small itself, far from it the local sensitivity hardly changes from one table to the next.
The theorem and its proof are in docs/explanation/proofs/hellinger.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpbayes.mechanisms.hellinger.sensitivity import global_sensitivity, step_divergence

SLACK = 1e-6
"""Added to the constant C, as a share of it: covers the rounding of its differences."""

FAR = 64.0
"""From this parameter on the growth of 1/f has a bound in closed form, within half a percent."""


@lru_cache(maxsize=1024)
def pure_epsilon(prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> float:
    """ε = ε₀·(1 + W/2), the pure guarantee of weights e^{−ε₀H/(2S)}.

    Symbols: ε₀ sharpness, W range_excess, S smooth sensitivity.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.

    >>> round(pure_epsilon((1.0, 1.0), 10**6, 0.6, 0.6), 3)
    0.775
    """
    return sharpness * (1.0 + 0.5 * range_excess(prior, total, smoothing))


def range_excess(prior: tuple[float, ...], total: int, smoothing: float) -> float:
    """W = min{ (1−e^{−γ})(1/S_min − 2), W₁ }, at least 0, with W₁ the first of these that applies:

    (√(g+C) − √g)·(1 − 2/√(g+C))                       where (e^{2γ} − 1)·g ≥ C, then S is the local sensitivity;
    (e^γ − 1)·(Φ − 2e^{−γ}),  Φ² = C·k/(1 − e^{−2γk})  with k ≤ n the largest with (e^{2γk} − 1)·g ≤ C·k.

    Symbols: γ smoothing, g = 1/GS², GS global_sensitivity, C growth, S_min least_sensitivity.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.
    """
    if smoothing == 0:
        return 0.0
    steepest = growth(prior, total)
    lowest = global_sensitivity(prior, total) ** -2
    everywhere = -math.expm1(-smoothing) * (1.0 / least_sensitivity(prior, total) - 2.0)
    if _gain(smoothing, 1) * lowest >= steepest:
        after = math.sqrt(lowest + steepest)
        locally = (after - math.sqrt(lowest)) * (1.0 - 2.0 / after)
    else:
        moved = _farthest(smoothing, steepest / lowest, total)
        highest = math.sqrt(steepest * moved / -math.expm1(-2.0 * smoothing * moved))
        locally = math.expm1(smoothing) * (highest - 2.0 * math.exp(-smoothing))
    return max(min(everywhere, locally), 0.0)


def largest_useful_smoothing(prior: tuple[float, ...], total: int) -> float:
    """γ = ½·ln(1 + C/g): from here on the smooth sensitivity is the local one, and nothing changes any more.

    Symbols: g = 1/GS², GS global_sensitivity, C growth.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.
    """
    return 0.5 * math.log1p(growth(prior, total) * global_sensitivity(prior, total) ** 2) * (1.0 + 1e-12)


@lru_cache(maxsize=256)
def growth(prior: tuple[float, ...], total: int) -> float:
    """C, by how much 1/LS² can grow when one record moves; about 8.

    C = max{ 1/f(u+1) − 1/f(u) over u = α_i + k;  1/(f_i + e) − 1/(f_i + f_j) over f_i ≥ f_j, three or more cells }

    Symbols: LS local sensitivity, f step_divergence, f_i = f(α_i), e = f(max α + n − 1), α prior, n total.
    Source: our proof, docs/explanation/proofs/hellinger.md; beyond u = 64 the first is below 8 + (16u+9)/(8u(u+1)).
    Adjacency: replace-one.
    """
    largest = 8.0 + (16.0 * FAR + 9.0) / (8.0 * FAR * (FAR + 1.0))
    weak = np.unique([alpha for alpha in prior if alpha < FAR])
    if weak.size:
        inverse = 1.0 / step_divergence(np.add.outer(weak, np.arange(FAR + 1.0)))
        largest = max(largest, float(np.diff(inverse).max()))
    if len(prior) > 2:
        steps = step_divergence(np.sort(prior))
        first, second, rest = steps[:-1], steps[1:], step_divergence(max(prior) + total - 1.0)
        largest = max(largest, float(((second - rest) / ((first + rest) * (first + second))).max()))
    return largest * (1.0 + SLACK)


def least_sensitivity(prior: tuple[float, ...], total: int) -> float:
    """S_min ≥ √(1 − e^{−F}), F = min{ 2f(m), f(min(α₂, m)) + f(α₁ + n − 1) }, m = (Σα + n)/d; the first for d = 2.

    Symbols: α₁ ≥ α₂ the two largest priors, n total, d cells, f step_divergence.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.

    >>> round(least_sensitivity((1.0, 1.0), 98), 6)  # the least local sensitivity is 0.070980
    0.070622
    """
    even = (math.fsum(prior) + total) / len(prior)
    divergence = 2.0 * float(step_divergence(even))
    if len(prior) > 2:
        *_, second, first = sorted(prior)
        empty = float(step_divergence(min(second, even)) + step_divergence(first + total - 1.0))
        divergence = min(divergence, empty)
    return math.sqrt(-math.expm1(-divergence))


def _gain(smoothing: float, moved: int) -> float:
    """e^{2γk} − 1, without overflow."""
    return math.expm1(min(2.0 * smoothing * moved, 700.0))


def _farthest(smoothing: float, ratio: float, total: int) -> int:
    """The largest k ≤ n with e^{2γk} − 1 ≤ k·ratio, given that 1 is one: the left side is convex, so bisection."""
    low, high = 1, total + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _gain(smoothing, middle) <= middle * ratio else (low, middle)
    return low
