"""Differences of lnΓ without cancellation.

Rényi divergences of gamma laws are gaps in the convexity of lnΓ. Written as differences of lnΓ they lose
every digit once the arguments are large (at α = 1e6, r = 1 nothing is left). Here each of them is a sum of
positive terms: explicit ones while the argument is small, Stirling's series above ``STIRLING_FROM``.
The derivation is in docs/explanation/proofs/numerics.md.
"""

from __future__ import annotations

import numpy as np

from dpbayes.base.checks import Floats

STIRLING_FROM = 64.0
"""Above this, two terms of Stirling's remainder leave a relative error below 4e-13 in every gap."""


def log1p_deficit(x: Floats) -> Floats:
    """X − ln(1 + x) for x ≥ 0, accurate also where both are nearly equal.

    With s = x/(2+x), ln(1+x) = 2·artanh(s) and x = 2s/(1−s), so the difference is
    2s·(s/(1−s) − s²/3 − s⁴/5 − …), where nothing cancels while x ≤ ½.
    """
    small = np.minimum(x, 0.5)
    s = small / (2.0 + small)
    square = s * s
    tail = np.zeros_like(s)
    for k in range(11, 0, -1):
        tail = square * (1.0 / (2 * k + 1) + tail)
    return np.where(x <= 0.5, 2.0 * s * (s / (1.0 - s) - tail), x - np.log1p(x))


def log1p_excess(x: Floats) -> Floats:
    """(1 + x)·ln(1 + x) − x for x ≥ 0, accurate also where both are nearly equal."""
    return _excess(x, log1p_deficit(x))


def _excess(x: Floats, deficit: Floats) -> Floats:
    """The same where x − ln(1 + x) is known."""
    small = np.minimum(x, 0.5)
    return np.where(x <= 0.5, small * small - (1.0 + small) * deficit, (1.0 + x) * np.log1p(x) - x)


def jensen_gap(x: Floats | float, left: Floats | float, right: Floats | float) -> Floats:
    """right·g(x) + left·g(x+left+right) − (left+right)·g(x+left) with g = lnΓ; never negative.

    Valid for x, left, right > 0; relative error below 1e-12. Arguments broadcast.

    Symbols: the point x+left divides [x, x+left+right]; the gap is the height of the chord above lnΓ there,
    times left+right.
    Source: our proof, docs/explanation/proofs/numerics.md.
    Adjacency: none, this is a function of numbers.

    >>> float(jensen_gap(1.0, 1.0, 1.0))  # lnΓ(1) + lnΓ(3) − 2 lnΓ(2) = ln 2
    0.693147180559...
    """
    start, a, b = np.broadcast_arrays(
        np.asarray(x, np.float64), np.asarray(left, np.float64), np.asarray(right, np.float64)
    )
    steps = np.maximum(np.ceil(STIRLING_FROM - start), 0.0)
    k = np.arange(steps.max(initial=0.0))
    x, a, b = np.concatenate([start[..., None] + k, (start + steps)[..., None]], axis=-1), a[..., None], b[..., None]
    middle = x + a
    p, q = a / x, b / middle
    deficits = log1p_deficit(np.stack([p, q]))
    terms = x * (q * _excess(p, deficits[0]) + p * deficits[1])  # the gaps of −ln
    total: Floats = np.where(k < steps[..., None], terms[..., :-1], 0.0).sum(axis=-1)
    x, a, b, middle, p, q = x[..., -1], a[..., 0], b[..., 0], middle[..., -1], p[..., -1], q[..., -1]
    # the gap of Stirling's series (x − ½)·ln x − x + 1/(12x) − 1/(360x³)
    of_x_log_x = x * middle * (p * _excess(q, deficits[1, ..., -1]) + q * deficits[0, ..., -1])
    u, v, w = 1.0 / x, 1.0 / middle, 1.0 / (middle + b)
    of_reciprocal = a * b * (a + b) * u * v * w
    of_cube = of_reciprocal * (u * u + v * v + w * w + u * v + u * w + v * w)
    rest: Floats = of_x_log_x + 0.5 * terms[..., -1] + of_reciprocal / 12.0 - of_cube / 360.0
    total += rest
    return total


def loss_at_mode_up(concentration: float, weight: float) -> float:
    """r·ln(α+r) − [lnΓ(α+r) − lnΓ(α)]: privacy loss at the mode of ln z, z ~ Gamma(α+r), against Gamma(α).

    Symbols: α concentration, r weight.
    Source: our proof, docs/explanation/proofs/dominating-pair.md.
    Adjacency: one record added to the cell.
    """
    shift, logs = _shift(concentration, weight)
    a, ratio = concentration + shift, np.asarray(weight / (concentration + shift))
    above = a * log1p_deficit(ratio) + 0.5 * np.log1p(ratio) - _remainder_step(a, weight)
    return float(above - weight * np.log1p(shift / (concentration + weight)) + logs)


def loss_at_mode_down(concentration: float, weight: float) -> float:
    """[lnΓ(α+r) − lnΓ(α)] − r·ln α: privacy loss at the mode of ln z, z ~ Gamma(α), against Gamma(α+r).

    Symbols: α concentration, r weight.
    Source: our proof, docs/explanation/proofs/dominating-pair.md.
    Adjacency: one record removed from the cell.
    """
    shift, logs = _shift(concentration, weight)
    a, ratio = concentration + shift, np.asarray(weight / (concentration + shift))
    above = a * log1p_excess(ratio) - 0.5 * np.log1p(ratio) + _remainder_step(a, weight)
    return float(above + weight * np.log1p(shift / concentration) - logs)


def _shift(concentration: float, weight: float) -> tuple[float, float]:
    """Steps n up to Stirling's range and Σ ln(1 + r/(α+k)), k < n: the recursion Γ(x+1) = xΓ(x) n times."""
    steps = max(np.ceil(STIRLING_FROM - concentration), 0.0)
    return float(steps), float(np.log1p(weight / (concentration + np.arange(steps))).sum())


def _remainder_step(a: float, step: float) -> float:
    """μ(a+step) − μ(a) for Stirling's remainder μ(x) = 1/(12x) − 1/(360x³) + …, without cancellation."""
    u, v = 1.0 / a, 1.0 / (a + step)
    return -step * u * v * (1.0 / 12.0 - (u * u + u * v + v * v) / 360.0)
