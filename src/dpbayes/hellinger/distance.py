"""Distances between Dirichlet (Beta) distributions, without cancellation up to parameters of 1e9; and the law of M_H.

Every distance here is a Kullback-Leibler divergence in disguise, because Dirichlet distributions form an
exponential family with log-partition ln B. With m the midpoint of two parameter vectors p and q

    −ln BC(p, q) = ½·KL(m‖p) + ½·KL(m‖q),     (λ−1)·D_λ(p‖q) = KL(p‖w) + (λ−1)·KL(p‖q),  w = p + (λ−1)(p − q),

and KL is a sum of positive terms (docs/explanation/proofs/hellinger.md), so one careful function serves all.
Parameters are arrays whose last axis runs over the cells; leading axes broadcast. ``Rows`` and ``Laws`` hold the
distances and probabilities of all candidates, which certificates and exact accuracies read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.sensitivity import smooth_sensitivity, two_cell_sensitivities
from dpbayes.privacy.beta_binomial import log1p_deficit

STIRLING_FROM = 64.0
"""From here on the third term of Stirling's remainder is below 1e-12 of every divergence."""


def kl(p: ArrayLike, q: ArrayLike) -> Floats:
    """KL(Dir(p) ‖ Dir(q)) = ln B(q) − ln B(p) − Σ (q_i − p_i)·[ψ(p_i) − ψ(Σp)].

    Symbols: p, q parameters, B the multivariate beta function, ψ digamma.
    Source: [Csiszar] for the divergence; our arrangement in docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is a function of two distributions.

    >>> float(kl([2.0, 1.0], [1.0, 1.0]).round(6))  # ln 2 − ½
    0.193147
    """
    p, q = _parameters(p, q)
    return _kl(p, q, q - p)


def bhattacharyya(p: ArrayLike, q: ArrayLike) -> Floats:
    """D = −ln BC(p, q) = ½[ln B(p) + ln B(q)] − ln B((p+q)/2), which is zero exactly for equal distributions.

    Symbols: p, q parameters, BC the Bhattacharyya coefficient, B the multivariate beta function.
    Source: [H-full] section 3.1; our arrangement in docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is a function of two distributions.
    """
    p, q = _parameters(p, q)
    middle, half = 0.5 * (p + q), 0.5 * (q - p)
    return 0.5 * (_kl(middle, q, half) + _kl(middle, p, -half))


def hellinger(p: ArrayLike, q: ArrayLike) -> Floats:
    """H = √(1 − BC(p, q)), between 0 and 1.

    Symbols: p, q parameters, BC the Bhattacharyya coefficient.
    Source: [H-full] section 3.1.
    Adjacency: none, this is a function of two distributions.

    >>> float(hellinger([7, 4, 5], [8, 3, 5]).round(12))  # printed in [H-notes] figure 3
    0.239992747797
    """
    return np.sqrt(-np.expm1(-bhattacharyya(p, q)))


def renyi(p: ArrayLike, q: ArrayLike, order: float) -> Floats:
    """D_λ(Dir(p) ‖ Dir(q)) = [ln B(w) − λ·ln B(p) − (1−λ)·ln B(q)]/(λ−1), w = p + (λ−1)(p − q), ∞ unless w > 0.

    Symbols: p, q parameters, λ order (positive, not 1), B the multivariate beta function.
    Source: [Csiszar] for the divergence; our arrangement in docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is a function of two distributions.
    """
    checks.positive("renyi", order=order)
    if order == 1:
        raise InvalidArgument("renyi: expected an order other than 1. At 1 it is the KL divergence: call kl.")
    p, q = _parameters(p, q)
    step = (order - 1.0) * (p - q)
    inside = np.asarray((p + step > 0).all(axis=-1))
    safe = np.where(inside[..., None], step, 0.0)
    if order > 1:
        value = (_kl(p, p + safe, safe) + (order - 1.0) * _kl(p, q, q - p)) / (order - 1.0)
    else:
        between = order * p + (1.0 - order) * q
        value = (order * _kl(between, p, -step) + (1.0 - order) * _kl(between, q, order * (q - p))) / (1.0 - order)
    return np.where(inside, value, np.inf)


def chi_squared(p: ArrayLike, q: ArrayLike) -> Floats:
    """χ²(Dir(p) ‖ Dir(q)) = exp(D₂) − 1, ∞ unless 2p − q > 0.

    Symbols: p, q parameters, D₂ the Rényi divergence of order 2.
    Source: [Csiszar].
    Adjacency: none, this is a function of two distributions.
    """
    return np.expm1(renyi(p, q, 2.0))


def total_variation_bounds(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    """H² ≤ TV ≤ H·√(2 − H²).

    Symbols: H Hellinger distance, TV total variation distance.
    Source: [Csiszar].
    Adjacency: none, this is a function of two distributions.
    """
    distance = hellinger(p, q)
    return distance**2, distance * np.sqrt(2.0 - distance**2)


def beta_total_variation(p: ArrayLike, q: ArrayLike) -> Floats:
    """TV(Beta(p), Beta(q)) = I_t(p) − I_t(q) for p₁ < q₁, Σp = Σq, where logit t = [ln B(q) − ln B(p)]/(q₁ − p₁).

    The densities cross once, at t; the distance is flat there, so the rounding of t enters squared.

    Symbols: I the regularised incomplete beta function, B the beta function.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is a function of two distributions.

    >>> float(beta_total_variation([1, 2], [2, 1]))
    0.5
    """
    from scipy.special import betainc, betaln, expit

    p, q = np.broadcast_arrays(*_parameters(p, q))
    if p.shape[-1] != 2 or not np.allclose(p.sum(axis=-1), q.sum(axis=-1), rtol=1e-9):
        raise InvalidArgument(
            "beta_total_variation: expected two Beta distributions of equal parameter sums; "
            "otherwise use total_variation_bounds."
        )
    low, high = np.where((p[..., :1] < q[..., :1]), p, q), np.where((p[..., :1] < q[..., :1]), q, p)
    step = high[..., 0] - low[..., 0]
    same = step == 0
    slope = (betaln(high[..., 0], high[..., 1]) - betaln(low[..., 0], low[..., 1])) / np.where(same, 1.0, step)
    t, rest = expit(slope), expit(-slope)
    below = t < 0.5
    left = betainc(low[..., 0], low[..., 1], t) - betainc(high[..., 0], high[..., 1], t)
    right = betainc(high[..., 1], high[..., 0], rest) - betainc(low[..., 1], low[..., 0], rest)
    return np.where(same, 0.0, np.clip(np.where(below, left, right), 0.0, 1.0))


def bregman(at: Floats, end: Floats, step: Floats) -> Floats:
    """lnΓ(e) − lnΓ(b) − s·ψ(b), the height of lnΓ at e above its tangent at b; elementwise, never negative.

    Symbols: b at, e end, s = e − b step: both are asked for, because either may be lost in the rounding of the other.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is a function of numbers.
    """
    shift = _shift(at, end)
    base, top = at + shift, end + shift
    return _logs(at, end, step, shift) + base * _excess(base, top, step) + _stirling(base, top, step)


def _kl(at: Floats, end: Floats, step: Floats) -> Floats:
    """KL(Dir(b) ‖ Dir(e)): Σ_i bregman(b_i, e_i) − bregman(Σb, Σe), the leading terms joined before they cancel."""
    at, end, step = np.broadcast_arrays(at, end, step)
    shift = _shift(at, end)
    base, top = at + shift, end + shift
    cells = (_logs(at, end, step, shift) + _stirling(base, top, step)).sum(-1)
    whole_at, whole_end, whole_step, whole_shift = at.sum(-1), end.sum(-1), step.sum(-1), shift.sum(-1)
    whole_base, whole_top = whole_at + whole_shift, whole_end + whole_shift
    scaled = base * (whole_top / whole_base)[..., None]
    drift = _closing_to_zero(step - base * (whole_step / whole_base)[..., None], base)
    cells += (scaled * _excess(scaled, top, drift)).sum(-1)
    if not whole_step.any():
        return np.asarray(cells)
    whole = _logs(whole_at, whole_end, whole_step, whole_shift) + _stirling(whole_base, whole_top, whole_step)
    return np.asarray(cells - whole)


def _shift(at: Floats, end: Floats) -> Floats:
    """How many steps of Γ(x+1) = xΓ(x) bring both ends into Stirling's range."""
    return np.maximum(np.ceil(STIRLING_FROM - np.minimum(at, end)), 0.0)


def _closing_to_zero(drift: Floats, base: Floats) -> Floats:
    """The drifts of all cells sum to zero: the largest cell, where rounding is worst, is told by the others."""
    largest = base.argmax(axis=-1)[..., None]
    closed = drift.copy()
    np.put_along_axis(closed, largest, 0.0, axis=-1)
    np.put_along_axis(closed, largest, -closed.sum(axis=-1, keepdims=True), axis=-1)
    return closed


def _logs(at: Floats, end: Floats, step: Floats, shift: Floats) -> Floats:
    """The recursion Γ(x+1) = xΓ(x), ``shift`` times: Σ_k of the divergence of −ln at b+k."""
    total = np.zeros(np.shape(at))
    for k in range(int(shift.max(initial=0.0))):
        total += np.where(k < shift, _deficit(at + k, end + k, step), 0.0)
    return total


def _stirling(base: Floats, top: Floats, step: Floats) -> Floats:
    """The divergence of −½·ln x + 1/(12x) − 1/(360x³)."""
    ratio = step / base
    of_reciprocal = ratio**2 / top
    of_cube = ratio**2 * (6.0 + ratio * (8.0 + 3.0 * ratio)) / top**3
    return 0.5 * _deficit(base, top, step) + of_reciprocal / 12.0 - of_cube / 360.0


def _deficit(base: Floats, top: Floats, step: Floats) -> Floats:
    """The value x − ln(1+x) for x = step/base, 1 + x = top/base."""
    x = step / base
    near = np.abs(x) <= 0.5
    return np.where(near, log1p_deficit(np.where(near, x, 0.0)), x - np.log(top / base))


def _excess(base: Floats, top: Floats, step: Floats) -> Floats:
    """(1+x)·ln(1+x) − x for x = step/base, 1 + x = top/base."""
    x = step / base
    near = np.abs(x) <= 0.5
    small, ratio = np.where(near, x, 0.0), top / base
    return np.where(near, small * small - (1.0 + small) * log1p_deficit(small), ratio * np.log(ratio) - x)


def _parameters(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    """Both arguments as arrays of positive numbers with the same number of cells, two or more."""
    first, second = np.asarray(p, np.float64), np.asarray(q, np.float64)
    for values in (first, second):
        if values.ndim == 0 or values.shape[-1] < 2 or not (np.isfinite(values) & (values > 0)).all():
            raise InvalidArgument("Dirichlet: expected two or more parameters, each > 0 and finite.")
    if first.shape[-1] != second.shape[-1]:
        raise InvalidArgument("Dirichlet: expected two distributions with the same number of cells.")
    return first, second


Table = tuple[int, ...]


class Rows:
    """H(c, ·) over all candidates, for any table c; nothing of it depends on ε or γ."""

    def __init__(self, prior: tuple[float, ...], total: int) -> None:
        self.prior, self.total = prior, total
        self.size = candidates.number(total, len(prior))
        self._list = candidates.all_tables(total, len(prior)) if len(prior) > 2 else None
        if self._list is None:
            self._own, self._shared = _two_cell_increments(prior, total)
        numbers = 30_000_000  # that are kept: a quarter of a gigabyte
        rows = max(numbers // self.size, 4)
        self.distances = lru_cache(maxsize=min(rows, 4096))(self._distances)
        self._cell = lru_cache(maxsize=numbers // (total + 1) + 1)(
            lambda prior, count: candidates.cell_divergences(prior, count, 0, total)
        )

    def candidate(self, index: int) -> Table:
        """The table behind an entry of a row."""
        return (index, self.total - index) if self._list is None else tuple(int(k) for k in self._list[index])

    def all_tables(self) -> Ints:
        """Every table, one per row of the array."""
        return candidates.all_tables(self.total, len(self.prior)) if self._list is None else self._list

    def _distances(self, table: Table) -> Floats:
        if self._list is not None:
            parts = zip(self.prior, table, self._list.T, strict=True)
            divergence = sum(self._cell(prior, count)[k] for prior, count, k in parts)
            return np.asarray(np.sqrt(-np.expm1(-divergence)))
        x = table[0]
        increments = self._own - self._shared[x : x + self.total]
        divergence = np.empty(self.total + 1)
        divergence[x] = 0.0
        np.cumsum(increments[x:], out=divergence[x + 1 :])
        np.cumsum(-increments[:x][::-1], out=divergence[:x][::-1])
        return np.sqrt(-np.expm1(-divergence))

    def canonical(self, table: Table) -> Table:
        """The table with the counts of cells that share a prior sorted: everything but the row order is the same."""
        groups: dict[float, list[int]] = {}
        for prior, count in zip(self.prior, table, strict=True):
            groups.setdefault(prior, []).append(count)
        for counts in groups.values():
            counts.sort(reverse=True)
        return tuple(groups[prior].pop() for prior in self.prior)

    def tables(self) -> Iterator[Table]:
        """One table of every class of tables that differ by a permutation of like cells."""
        if len(self.prior) == 2:
            last = self.total // 2 if self.prior[0] == self.prior[1] else self.total
            yield from ((x, self.total - x) for x in range(last + 1))
            return
        ordered = np.ones(self.size, dtype=bool)
        listed = self.all_tables()
        for value in set(self.prior):
            like = [i for i, prior in enumerate(self.prior) if prior == value]
            for i, j in pairwise(like):
                ordered &= listed[:, i] <= listed[:, j]
        yield from (tuple(int(k) for k in table) for table in listed[ordered])

    def neighbours(self, table: Table) -> Iterator[Table]:
        """Tables with one record moved, each unordered pair of classes at least once."""
        if len(self.prior) == 2:
            if table[0] < self.total:
                yield table[0] + 1, table[1] - 1
            return
        yield from candidates.neighbours(table)


def _two_cell_increments(prior: tuple[float, ...], total: int) -> tuple[Floats, Floats]:
    """D(x, k+1) − D(x, k) = own(k) − shared(x + k): every row of a two-cell table from two vectors."""
    k = np.arange(total, dtype=np.float64)
    own = 0.5 * (np.log(prior[0] + k) - np.log(prior[1] + total - 1 - k))
    j = np.arange(2 * total, dtype=np.float64)
    middle = prior[0] + 0.5 * j
    mirrored = prior[1] + 0.5 * (2 * total - 1 - j)
    first = 0.5 * np.log(middle) + candidates.half_step(middle)
    second = 0.5 * np.log(mirrored) + candidates.half_step(mirrored)
    return own, first - second


class Sensitivities:
    """S of every table at one γ, kept once computed; the same for all tables of a class."""

    def __init__(self, rows: Rows, smoothing: float) -> None:
        self._rows, self._smoothing = rows, smoothing
        self._of_class: dict[Table, float] = {}
        if len(rows.prior) == 2:
            line = two_cell_sensitivities(rows.prior, rows.total, smoothing)
            self._of_class = {(x, rows.total - x): float(value) for x, value in enumerate(line)}

    def __call__(self, key: Table) -> float:
        """S of a canonical table."""
        if key not in self._of_class:
            self._of_class[key] = smooth_sensitivity(self._rows.prior, key, self._smoothing)
        return self._of_class[key]


class Laws:
    """The mechanism with weights exp(−ε·H/(2S)) on a given set of rows."""

    def __init__(self, rows: Rows, sharpness: float, sensitivities: Sensitivities) -> None:
        self.rows, self._sharpness, self._sensitivities = rows, sharpness, sensitivities
        self._of_class: dict[Table, tuple[float, float]] = {}
        self.probabilities = lru_cache(maxsize=64)(self._probabilities)

    @classmethod
    def of(cls, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> Laws:
        """Rows and sensitivities made afresh."""
        rows = Rows(prior, total)
        return cls(rows, sharpness, Sensitivities(rows, smoothing))

    @property
    def rounding(self) -> float:
        """Bound on the error of a loss: increments of D are rounded at 5·10⁻¹⁵ and D itself is of order m²/(8u)."""
        return 1e-13 * self._sharpness * (max(self.rows.prior) + self.rows.total)

    def exponent(self, table: Table) -> tuple[float, float]:
        """The factor a = ε/(2S) of H and ln Z, the same for all tables of a class."""
        key = self.rows.canonical(table)
        if key not in self._of_class:
            a = self._sharpness / (2.0 * self._sensitivities(key))
            self._of_class[key] = a, math.log(np.exp(-a * self.rows.distances(table)).sum())
        return self._of_class[key]

    def _probabilities(self, table: Table) -> tuple[Floats, Floats]:
        """The logarithm of the probability of each candidate, and the probability."""
        a, log_normaliser = self.exponent(table)
        logs = -a * self.rows.distances(table) - log_normaliser
        return logs, np.exp(logs)

    def expected_distance(self, table: Table) -> float:
        """E[H] between what is released and the posterior of the table."""
        return float(self.probabilities(table)[1] @ self.rows.distances(table))
