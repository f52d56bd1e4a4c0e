"""What may be released: the posteriors of all tables with the same number of records, and how to list them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Mechanism
from dpbayes.privacy.beta_binomial import log1p_deficit
from dpbayes.schema.unit import Unit

LARGEST_TOTAL = 10**9
"""Distances keep nine digits up to parameters of this size."""

LONGEST_LIST = 4_000_000
"""More candidates than this are never listed."""


def check_prior(owner: str, prior: tuple[float, ...]) -> None:
    """A prior has two or more cells, each positive."""
    if len(prior) < 2:
        raise InvalidArgument(
            f"{owner}: expected a prior with two or more cells, got {len(prior)}. "
            "The posterior of one cell is always the same, there is nothing to release."
        )
    for value in prior:
        if not 0 < value <= LARGEST_TOTAL:
            raise InvalidArgument(
                f"{owner}: expected every parameter of the prior above 0 and up to 10^9, got {value!r}. "
                "A Dirichlet distribution has no density otherwise, and distances lose digits beyond."
            )


def check_total(owner: str, total: int) -> None:
    """The public number of records is a whole number between 1 and 10⁹."""
    if isinstance(total, bool) or not isinstance(total, (int, np.integer)) or not 1 <= total <= LARGEST_TOTAL:
        raise InvalidArgument(
            f"{owner}: expected a total that is a whole number between 1 and 10^9, got {total!r}. "
            "An empty table has the prior for its posterior, and distances lose digits beyond."
        )


def check_unit(owner: str, unit: Unit) -> None:
    """Candidates depend on the number of records, so it must be public; theorems move one record."""
    if not unit.replaces:
        raise InvalidArgument(
            f"{owner}: expected replace-one adjacency, got {unit.adjacency}. "
            "The list of candidates depends on the number of records, which add-remove keeps private."
        )
    if not unit.fixed_size:
        raise InvalidArgument(
            f"{owner}: expected a unit without a person column. "
            "The list of candidates depends on the number of records, which a person column keeps private."
        )
    if unit.max_rows != 1:
        raise InvalidArgument(
            f"{owner}: expected one row per person, got max_rows={unit.max_rows}. "
            "Its sensitivity is that of one moved record."
        )


def check_counts(owner: str, counts: ArrayLike, cells: int, total: int) -> Ints:
    """A joint table of the declared size and number of records. Messages never repeat the table."""
    table = checks.counts(owner, counts)
    if table.ndim != 1:
        raise InvalidArgument(
            f"{owner}: expected one joint table (a vector of counts), got {table.ndim} axes. "
            "A conditional table has rows of unknown size; flatten a joint table before."
        )
    if table.size != cells:
        raise InvalidArgument(f"{owner}: expected {cells} counts as in the prior, got {table.size}.")
    if sum(int(value) for value in table) != total:
        raise InvalidArgument(f"{owner}: expected counts that sum to the declared total of {total}.")
    return table


class PosteriorMechanism(Mechanism):
    """Releases the parameters α + k of a posterior, k a table of the public number of records."""

    __slots__ = ()
    tables = ("parameters",)
    closed = True
    prior: tuple[float, ...]
    total: int

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "prior", tuple(float(value) for value in self.prior))
        check_prior(owner, self.prior)
        check_unit(owner, self.unit)
        check_total(owner, self.total)
        object.__setattr__(self, "total", int(self.total))

    def concentrated(self, omega: float) -> float:
        """Smallest known ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω."""
        return float(cast(Any, self._loss()).concentrated(omega))

    def table(self, counts: ArrayLike) -> Ints:
        """Counts of the declared size and number of records."""
        return check_counts(type(self).__name__, counts, len(self.prior), self.total)

    def law(self, counts: ArrayLike) -> tuple[Ints, Floats]:
        """All candidates and their probabilities, where they can be listed; private, as the counts are."""
        raise NotImplementedError

    def draw_many(self, counts: ArrayLike, size: int, rng: np.random.Generator | None = None) -> Ints:
        """``size`` independent candidate tables k, one per row. Each of them is a release and is paid for."""
        checks.positive_integer(type(self).__name__, size=size)
        return cast(Ints, cast(Any, self).sampler(counts).draw(size, noise.generator(rng)))

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """One release: the parameters α + k of a posterior."""
        return np.asarray(self.prior + self.draw_many(counts, 1, rng)[0])


def log_number(total: int, cells: int) -> float:
    """ln|R| = ln C(n+d−1, d−1), the logarithm of the number of candidates.

    Symbols: n total, d cells.
    Source: [H-full] section 3.1 prints C(n+1, d−1), which is right for two cells only.
    Adjacency: replace-one, where n is public.

    >>> round(math.exp(log_number(98, 2)))
    99
    """
    return math.log(number(total, cells))


def number(total: int, cells: int) -> int:
    """|R| = C(n+d−1, d−1), how many tables with ``total`` records there are."""
    return math.comb(total + cells - 1, cells - 1)


def all_tables(total: int, cells: int) -> Ints:
    """All tables with ``total`` records, one per row, in lexicographic order.

    >>> all_tables(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    if number(total, cells) > LONGEST_LIST:
        raise InvalidArgument(
            f"candidates: expected at most {LONGEST_LIST} of them to list, got more for "
            f"total={total} and {cells} cells. Draw instead."
        )
    heads = np.zeros((1, 0), dtype=np.int64)
    left = np.array([total], dtype=np.int64)
    for _ in range(cells - 1):
        repeats = left + 1
        starts = np.repeat(np.cumsum(repeats) - repeats, repeats)
        value = np.arange(repeats.sum()) - starts
        heads = np.column_stack([np.repeat(heads, repeats, axis=0), value])
        left = np.repeat(left, repeats) - value
    return np.column_stack([heads, left])


def neighbours(table: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All tables with one record moved."""
    for i, j in np.ndindex(len(table), len(table)):
        if i != j and table[i]:
            moved = [int(count) for count in table]
            moved[i] -= 1
            moved[j] += 1
            yield tuple(moved)


def cell_divergences(prior: float, count: int, low: int, high: int) -> Floats:
    """h(k) = ½[lnΓ(u) + lnΓ(v)] − lnΓ((u+v)/2), u = α + c, v = α + k, for k = low … high (low ≤ c ≤ high).

    Summed outwards from h(c) = 0 over its increments h(k+1) − h(k) = ½·ln(v/y) − ρ(y), y = (u+v)/2, which are
    accurate one by one: D = −ln BC of two posteriors with equal totals is the sum of h over the cells.

    Symbols: α prior of the cell, c its count, k the count of a candidate.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one, where totals are equal.
    """
    own = prior + count
    v = prior + np.arange(low, high, dtype=np.float64)
    increments = 0.5 * np.log1p((v - own) / (v + own)) - half_step(0.5 * (own + v))
    right = np.cumsum(increments[count - low :])
    left = np.cumsum(-increments[: count - low][::-1])[::-1]
    return np.concatenate([left, [0.0], right])


def divergences(prior: tuple[float, ...], table: Ints, others: Ints) -> Floats:
    """D = −ln BC between the posterior of ``table`` and those of the tables in the rows of ``others``."""
    total = int(table.sum())
    columns = zip(prior, table, others.T, strict=True)
    parts = (cell_divergences(alpha, int(count), 0, total)[k] for alpha, count, k in columns)
    return np.asarray(sum(parts))


def shares(log_weights: Floats) -> Floats:
    """Probabilities proportional to the exponentials."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def half_step(y: Floats) -> Floats:
    """ρ(y) = lnΓ(y+½) − lnΓ(y) − ½·ln y, about −1/(8y): Stirling's series after Γ(y+1) = yΓ(y) brought y to 20."""
    shift = np.maximum(np.ceil(20.0 - y), 0.0)
    x = y + shift
    u, v = 1.0 / x, 1.0 / (x + 0.5)
    fourth = u**4 + u**3 * v + u**2 * v**2 + u * v**3 + v**4
    remainder = -0.5 * u * v * (1 / 12 - (u * u + u * v + v * v) / 360 + fourth / 1260)
    value = remainder - x * log1p_deficit(0.5 * u)
    small = np.nonzero(shift)
    at, steps = y[small], shift[small]
    for k in range(int(shift.max(initial=0.0))):
        value[small] -= np.where(k < steps, 0.5 * np.log1p(0.25 / ((at + k) * (at + k + 1.0))), 0.0)
    return value
