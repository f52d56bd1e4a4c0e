"""Pseudo-records by Pólya's urn: the Dirichlet draw's records in exact integer arithmetic, no floats at all."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpbayes import _checks
from dpbayes._checks import Ints
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import Dirichlet


def pseudo_records(
    mechanism: Dirichlet, counts: ArrayLike, records: int, *, below: Callable[[int], int] = secrets.randbelow
) -> Ints:
    """Counts of ``records`` draws from y ~ Dirichlet(r·c + α), without ever computing y

    P[next = k | so far n] = (r·c_k + α_k + n_k)/(r·N + Σα + n), all of it in integers: a float is a fraction.

    Symbols: r weight, c counts, α concentration, n the pseudo-records so far.
    Source: docs/explanation/proofs/dominating-pair.md (records drawn from y are post-processing of y).
    Adjacency: costs what the mechanism costs, for any number of records.
    """
    table = _checks.counts("pseudo_records", counts)
    _checks.positive_integer("pseudo_records", records=records)
    table = np.maximum(table, mechanism.least_count)  # as Dirichlet.gammas does: the price rests on the bound
    alphas = mechanism.concentration if isinstance(mechanism.concentration, tuple) else None
    if alphas is not None and len(alphas) != table.size:
        raise InvalidArgument(f"pseudo_records: expected {len(alphas)} cells, got a table of shape {table.shape}.")
    weight = Fraction(mechanism.weight)
    fractions = [Fraction(alpha) for alpha in (alphas or (mechanism.concentration,))]  # type: ignore[arg-type]
    unit = math.lcm(*(fraction.denominator for fraction in (weight, *fractions)))
    step = int(weight * unit)
    starts = [int(fraction * unit) for fraction in fractions]
    urn = _Urn([step * int(c) + starts[k if alphas else 0] for k, c in enumerate(table.ravel().tolist())])
    drawn = np.zeros(table.size, dtype=np.int64)
    for _ in range(records):
        cell = urn.find(below(urn.total))
        drawn[cell] += 1
        urn.add(cell, unit)
    return drawn.reshape(table.shape)


class _Urn:
    """A Fenwick tree over exact integers: find the cell of a ball, add balls to a cell, both in O(log d)."""

    def __init__(self, balls: list[int]) -> None:
        self.size = len(balls)
        self.total = sum(balls)
        self.tree = [0, *balls]
        for i in range(1, self.size + 1):
            parent = i + (i & -i)
            if parent <= self.size:
                self.tree[parent] += self.tree[i]

    def find(self, ball: int) -> int:
        position, bit = 0, 1 << self.size.bit_length()
        while bit:
            following = position + bit
            if following <= self.size and self.tree[following] <= ball:
                position = following
                ball -= self.tree[following]
            bit >>= 1
        return position

    def add(self, cell: int, balls: int) -> None:
        self.total += balls
        i = cell + 1
        while i <= self.size:
            self.tree[i] += balls
            i += i & -i
