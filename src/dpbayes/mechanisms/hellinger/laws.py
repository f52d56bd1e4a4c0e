"""The law of the Hellinger mechanism on every candidate, row by row: what certificates and exact accuracies read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpbayes._checks import Floats, Ints
from dpbayes.mechanisms.hellinger import candidates
from dpbayes.mechanisms.hellinger.sensitivity import smooth_sensitivity, two_cell_sensitivities

Table = tuple[int, ...]

_CACHED_NUMBERS = 30_000_000


class Rows:
    """H(c, ·) over all candidates, for any table c; nothing of it depends on ε or γ."""

    def __init__(self, prior: tuple[float, ...], total: int) -> None:
        self.prior, self.total = prior, total
        self.size = candidates.number(total, len(prior))
        self._list = candidates.listed(total, len(prior)) if len(prior) > 2 else None
        if self._list is None:
            self._own, self._shared = _two_cell_increments(prior, total)
        rows = max(_CACHED_NUMBERS // self.size, 4)
        self.distances = lru_cache(maxsize=min(rows, 4096))(self._distances)
        self._cell = lru_cache(maxsize=_CACHED_NUMBERS // (total + 1) + 1)(
            lambda prior, count: candidates.cell_divergences(prior, count, 0, total)
        )

    def candidate(self, index: int) -> Table:
        """The table behind an entry of a row."""
        return (index, self.total - index) if self._list is None else tuple(int(k) for k in self._list[index])

    def all_tables(self) -> Ints:
        """Every table, one per row of the array."""
        return candidates.listed(self.total, len(self.prior)) if self._list is None else self._list

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
