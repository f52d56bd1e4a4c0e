"""How far the Hellinger score moves when one record moves: locally, globally, and smoothed.

Moving a record from cell i to cell j changes −ln BC by f(α_i + c_i − 1) + f(α_j + c_j), with f decreasing and
convex. So the sensitivities need no enumeration (docs/explanation/proofs/hellinger.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes import _checks
from dpbayes._checks import Floats, Ints
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.hellinger import candidates

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
    table = candidates.check_counts(owner, counts, len(prior), int(_checks.counts(owner, counts).sum()))
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
