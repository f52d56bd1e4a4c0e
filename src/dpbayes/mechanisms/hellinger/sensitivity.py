"""How far the Hellinger score moves when one record moves: locally, globally, and smoothed.

Moving a record from cell i to cell j changes −ln BC by f(α_i + c_i − 1) + f(α_j + c_j), with f decreasing and
convex. So the sensitivities need no enumeration (docs/explanation/proofs/hellinger.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpbayes._checks import Floats, Ints
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.hellinger import candidates

Steps = Callable[[Ints, Ints], Floats]
"""f(α_i + k) for arrays of cells i and counts k."""


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


def smooth_sensitivity(
    prior: tuple[float, ...], counts: ArrayLike, smoothing: float, steps: Steps | None = None
) -> float:
    """S(c) = max over tables c′ of LS(c′)·exp(−γ·‖c − c′‖₁/2), without enumeration.

    ``steps`` may hand in a table of f, where many tables of the same size are asked for.

    Symbols: γ smoothing (0 gives the global sensitivity, inf the local one), LS local sensitivity.
    Source: [H-full] definition 3; our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one; half the ℓ₁ distance of two tables is the number of records that differ.
    """
    owner = "smooth_sensitivity"
    candidates.check_prior(owner, prior)
    table = candidates.check_counts(owner, counts, len(prior), int(np.sum(counts)))
    total = int(table.sum())
    candidates.check_total(owner, total)
    if math.isnan(smoothing) or smoothing < 0:
        raise InvalidArgument(f"{owner}: expected smoothing >= 0, got {smoothing!r}.")
    if len(prior) == 2:
        return _two_cells(prior, table, smoothing)
    step = direct_steps(prior) if steps is None else steps
    cells = np.arange(len(prior))
    empty = step(cells, np.zeros_like(table))
    highest = _from_divergence(np.sort(empty)[-2:].sum())
    if smoothing == 0:
        return highest
    local = _from_divergence(_local_divergence(step(cells, table), step(cells, np.maximum(table - 1, 0)), table))
    if math.isinf(smoothing):
        return local
    # beyond this many moved records not even the global sensitivity can beat the local one
    horizon = min(int(math.log(highest / local) / smoothing), total)
    lowered = _lowered(step, table, horizon)
    return _best_after_moves(lowered, empty, table, smoothing, local)


def direct_steps(prior: tuple[float, ...]) -> Steps:
    """f(α_i + k), computed when asked for."""
    alpha = np.asarray(prior)
    return lambda cells, counts: step_divergence(alpha[cells] + counts)


def tabulated_steps(prior: tuple[float, ...], total: int) -> Steps:
    """f(α_i + k) from a table for all k up to the total, one row per value of the prior."""
    values, row = np.unique(prior, return_inverse=True)
    table = step_divergence(np.add.outer(values, np.arange(total + 1)))
    return lambda cells, counts: np.asarray(table[row[cells], counts])


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
    leave = step_divergence(np.asarray(prior) + np.maximum(table - 1, 0))
    local = _from_divergence(_local_divergence(step_divergence(prior + table), leave, table))
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


def _local_divergence(enter: Floats, leave: Floats, table: Ints) -> float:
    """The largest f(α_i + c_i − 1) + f(α_j + c_j) over i ≠ j with c_i ≥ 1."""
    return float((np.where(table >= 1, leave, -np.inf) + _best_other(enter)).max())


def _best_other(values: Floats) -> Floats:
    """For every cell the largest value among the other cells."""
    order = np.argsort(values)
    best = np.full(values.size, values[order[-1]])
    best[order[-1]] = values[order[-2]]
    return best


def _best_after_moves(lowered: list[Floats], empty: Floats, table: Ints, smoothing: float, best: float) -> float:
    """The largest discounted sensitivity within the horizon of ``lowered``, and at least ``best``; three or more cells.

    A record goes from cell i to cell j after a records of i and b records of j were moved elsewhere. For a given
    a + b the divergence f(α_i + c_i − 1 − a) + f(α_j + c_j − b) is convex in a, so it is largest at an end: one of the
    cells is untouched, or one of them is empty (but for the record that moves).
    """
    receives = np.array([values[0] for values in lowered])
    sends = np.array([values[1] if values.size > 1 else -np.inf for values in lowered])
    for values, sender, receiver in zip(lowered, _best_other(sends), _best_other(receives), strict=True):
        best = max(best, _discounted(values + sender, smoothing), _discounted(values[1:] + receiver, smoothing))
    spare = np.maximum(table - 1, 0)
    for lowest in np.unique(empty):  # one of the emptied cells; its partner is lowered as well
        cells = empty == lowest
        if _from_divergence(lowest + empty.max()) * math.exp(-smoothing * spare[cells].min()) <= best:
            continue
        whole = np.array([_discounted(values + lowest, smoothing) for values in lowered])
        after = np.array([_discounted(values[1:] + lowest, smoothing) for values in lowered])
        receiving = np.exp(-smoothing * table) * _best_other(after)
        # an empty sender lacks the record that moves: it comes from the partner, or if that is empty from a third cell
        lacking = np.exp(-smoothing) * _best_other(np.where(table >= 1, after, whole))
        sending = np.where(table >= 1, np.exp(-smoothing * spare) * _best_other(whole), lacking)
        best = max(best, float(receiving[cells].max()), float(sending[cells].max()))
    return best


def _lowered(step: Steps, table: Ints, horizon: int) -> list[Floats]:
    """For every cell f(α_i + c_i − t), t = 0, 1, … while records are left and the horizon (plus one) is not passed."""
    sizes = np.minimum(table, horizon + 1) + 1
    moved = np.concatenate([np.arange(size) for size in sizes])
    values = step(np.repeat(np.arange(table.size), sizes), np.repeat(table, sizes) - moved)
    return np.split(values, np.cumsum(sizes)[:-1])


def _discounted(divergence: Floats, smoothing: float) -> float:
    """The largest √(1 − e^{−F})·e^{−γt} along a path whose t-th entry costs t moves; 0 on an empty path."""
    moves = np.arange(divergence.size)
    return float((_root(divergence) * np.exp(-smoothing * moves)).max(initial=0.0))


def _root(divergence: Floats) -> Floats:
    return np.sqrt(-np.expm1(-np.maximum(divergence, 0.0)))


def _from_divergence(divergence: float) -> float:
    return float(_root(np.asarray(divergence)))
