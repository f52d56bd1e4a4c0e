"""How far the Hellinger score moves when one record moves: locally, globally, and smoothed; and what that promises.

Moving a record from cell i to cell j changes −ln BC by f(α_i + c_i − 1) + f(α_j + c_j), with f decreasing and
convex. So the sensitivities need no enumeration (docs/explanation/proofs/hellinger.md).

The pure guarantee of weights e^{−εH/(2S)} is how far the score H/S moves, whatever the number of candidates: by at most
one because H does, and because S does. 1/S moves little: near the border of the simplex it is small itself, far from it
the local sensitivity hardly changes from one table to the next.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates

Flags = NDArray[np.bool_]


def step_divergence(u: ArrayLike) -> Floats:
    """f(u) = ½[lnΓ(u) + lnΓ(u+1)] − lnΓ(u+½) = −ρ(u), decreasing and convex.

    Symbols: u a parameter of the posterior, ρ half_step.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: one record enters a cell with parameter u, or leaves one with parameter u+1.

    >>> float(step_divergence(1.0).round(6))
    0.120782
    """
    values = np.asarray(u, np.float64)
    return -candidates.half_step(np.atleast_1d(values)).reshape(values.shape)


def local_sensitivity(prior: tuple[float, ...], counts: ArrayLike) -> float:
    """LS(c) = max over i ≠ j, c_i ≥ 1, of √(1 − exp(−f(α_i + c_i − 1) − f(α_j + c_j))).

    Symbols: α prior, c counts, f step_divergence.
    Source: [H-notes] section 4.1 (triangle inequality); our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.

    >>> round(local_sensitivity((1.0, 1.0), [49, 49]), 6)
    0.07098
    """
    return smooth_sensitivity(prior, counts, math.inf)


def global_sensitivity(prior: tuple[float, ...], total: int) -> float:
    """GS = √(1 − exp(−F)), F = f(α₍₁₎) + f(α₍₂₎) for d ≥ 3, max over i of f(α_i) + f(α_j + n − 1) for d = 2.

    Symbols: α₍₁₎ ≤ α₍₂₎ the two smallest priors, n total, f step_divergence.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.

    >>> round(global_sensitivity((7.0, 4.0, 5.0), 100), 5)
    0.23363
    """
    candidates.check_prior("global_sensitivity", prior)
    candidates.check_total("global_sensitivity", total)
    if len(prior) == 2:
        return _from_divergence(_two_cell_ends(prior, total))
    return _from_divergence(step_divergence(np.sort(prior)[:2]).sum())


def smooth_sensitivity(prior: tuple[float, ...], counts: ArrayLike, smoothing: float) -> float:
    """S(c) = max over tables c′ of LS(c′)·exp(−γ·‖c − c′‖₁/2), without enumeration.

    Symbols: γ smoothing (0 gives the global sensitivity, inf the local one), LS local sensitivity.
    Source: [H-full] definition 3; our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one; half the ℓ₁ distance of two tables is the number of records that differ.
    """
    owner = "smooth_sensitivity"
    candidates.check_prior(owner, prior)
    table = candidates.check_counts(owner, counts, len(prior), int(checks.counts(owner, counts).sum()))
    candidates.check_total(owner, int(table.sum()))
    if math.isnan(smoothing) or smoothing < 0:
        raise InvalidArgument(f"{owner}: expected smoothing >= 0, got {smoothing!r}.")
    return _two_cells(prior, table, smoothing) if len(prior) == 2 else float(many_cells(prior, table, smoothing)[0])


def many_cells(prior: tuple[float, ...], tables: Ints, smoothing: float) -> Floats:
    """S of tables of three cells or more, one per row: the largest √(1 − e^{−F})·e^{−γt} over pairs of cells i, j.

    F = f(α_i + p) + f(α_j + q) after t moves: both untouched, p = c_i − 1, q = c_j, t = 0; one of them emptied, q = 0,
    t = c_j or p = 0, t = c_i − 1; both emptied, t = c_i + c_j − 1, or 1 where both were empty. Cell i sends a record,
    so c_i ≥ 1. ln √(1 − e^{−F}) − γt is convex along the way to each, so nothing in between is larger.

    Symbols: γ smoothing, α prior, c counts, f step_divergence.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one, a record goes from cell i to cell j.
    """
    alpha, counts, there = _fewest(prior, np.atleast_2d(tables))
    found = np.empty(len(counts))
    size = max(2_000_000 // alpha.size**2, 1)
    for rows in (slice(start, start + size) for start in range(0, len(counts), size)):
        c, other = counts[rows, :, None].astype(np.float64), counts[rows, None, :].astype(np.float64)
        sends = there[rows, :, None] & (c >= 1)
        empty = step_divergence(alpha)
        leave, enter = step_divergence(alpha + np.maximum(counts[rows] - 1, 0)), step_divergence(alpha + counts[rows])
        apart = there[rows, None, :] & ~np.eye(alpha.size, dtype=bool)
        best = np.zeros(len(c))
        for part, rest, moves, allowed in (
            (leave[:, :, None], enter[:, None, :], np.zeros_like(c * other), sends),
            (leave[:, :, None], empty, other, sends),
            (empty[:, None], enter[:, None, :], c - 1, sends),
            (empty[:, None], empty, np.maximum(c + other - 1, 1), there[rows, :, None]),
        ):
            discount = np.exp(-np.where(moves > 0, smoothing, 0.0) * np.maximum(moves, 0.0))
            value = np.where(allowed & apart, _root(part + rest) * discount, 0.0)
            best = np.maximum(best, value.max(axis=(1, 2)))
        found[rows] = best
    return found


def _fewest(prior: tuple[float, ...], tables: Ints) -> tuple[Floats, Ints, Flags]:
    """Of the cells with one α the two that hold fewest, and the two with fewest of those that hold any.

    No others can be in the best pair. Their α, their counts table by table, and whether there are so many.
    """
    alpha, counts, there = [], [], []
    for value in np.unique(prior):
        like = np.sort(tables[:, np.asarray(prior) == value], axis=1)
        zeros = np.maximum((like == 0).sum(axis=1), min(2, like.shape[1]))
        for place in range(min(like.shape[1], 4)):
            at = np.full(len(tables), place) if place < 2 else zeros + place - 2
            alpha.append(value)
            there.append(at < like.shape[1])
            counts.append(np.take_along_axis(like, np.minimum(at, like.shape[1] - 1)[:, None], axis=1)[:, 0])
    return np.array(alpha), np.column_stack(counts), np.column_stack(there)


def two_cell_sensitivities(prior: tuple[float, ...], total: int, smoothing: float) -> Floats:
    """S of every table (x, n − x), x = 0 … n, by two sweeps: log S(x) = max over x′ of log LS(x′) − γ|x − x′|.

    Symbols: γ smoothing, n total.
    Source: [H-full] definition 3.
    Adjacency: replace-one.
    """
    x = np.arange(total, dtype=np.float64)
    step = _root(step_divergence(prior[0] + x) + step_divergence(prior[1] + total - 1 - x))
    local = np.maximum(np.append(step, 0.0), np.append(0.0, step))
    if math.isinf(smoothing):
        return np.asarray(local)
    slope = smoothing * np.arange(total + 1)
    logs = np.log(local)
    from_left = np.maximum.accumulate(logs + slope) - slope
    from_right = np.maximum.accumulate((logs - slope)[::-1])[::-1] + slope
    return np.asarray(np.exp(np.maximum(from_left, from_right)))


def _two_cells(prior: tuple[float, ...], table: Ints, smoothing: float) -> float:
    """One entry of ``two_cell_sensitivities``, looking only as far as can matter."""
    total, here = int(table.sum()), int(table[0])
    highest = _from_divergence(_two_cell_ends(prior, total))
    if smoothing == 0:
        return highest
    leave, enter = step_divergence(prior + np.maximum(table - 1, 0)), step_divergence(prior + table)
    local = _from_divergence(np.where(table >= 1, leave + enter[::-1], -np.inf).max())
    reach = 1 if math.isinf(smoothing) else int(math.log(highest / local) / smoothing) + 1
    low, high = max(here - reach, 0), min(here + reach, total)
    moves = np.arange(low, high, dtype=np.float64)
    steps = _root(step_divergence(prior[0] + moves) + step_divergence(prior[1] + total - 1 - moves))
    # the step between x and x+1 is a neighbouring step of both
    distance = np.minimum(np.abs(moves - here), np.abs(moves + 1 - here))
    return float((steps * np.exp(-np.where(distance > 0, smoothing, 0.0) * distance)).max())


def _two_cell_ends(prior: tuple[float, ...], total: int) -> float:
    """The largest f(α₁ + p) + f(α₂ + q), p + q = n − 1: convex in p, so at an end."""
    return float((step_divergence(prior) + step_divergence(np.array(prior[::-1]) + total - 1)).max())


def _root(divergence: Floats) -> Floats:
    return np.sqrt(-np.expm1(-np.maximum(divergence, 0.0)))


def _from_divergence(divergence: float) -> float:
    return float(_root(np.asarray(divergence)))


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
    return largest * (1.0 + 1e-6)  # covers the rounding of the differences


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
