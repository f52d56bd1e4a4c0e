"""Pseudo-records by Pólya's urn: records of a Dirichlet draw in whole numbers, priced by how many there are."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import Dirichlet, UnroundedDirichlet
from dpbayes.mechanisms.kinds import Mechanism
from dpbayes.privacy.beta_binomial import MOST_ATOMS, BetaBinomialPair, pure_loss
from dpbayes.privacy.bounds import AtomicLoss, largest_over_chord, randomised_response, randomised_response_renyi
from dpbayes.privacy.pld import Pld
from dpbayes.schema.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoRecords(Mechanism):
    """Counts of ``records`` draws from y ~ Dirichlet(r·c + α), y itself never computed: whole numbers throughout.

    ``weight`` is r and ``concentration`` α, one number or one per cell. ``least_count`` is a public lower bound on
    every count. The loss is bounded, so the guarantee is pure. For a replaced record that cannot vanish, one row per
    person and no lower bound the price is exact; otherwise it is the lesser of the pure price and
    that of the Dirichlet draw.

    Source: docs/explanation/proofs/pseudo-records.md.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> made = PseudoRecords(weight=1, concentration=10, records=100, unit=unit)
    >>> round(made.renyi(float("inf")), 4), round(made.epsilon(1e-5), 4)
    (2.3979, 1.5874)
    """

    kind = "pseudo-records-1"
    tables = ("pseudo-records",)
    law_in_words = "records drawn one by one from y = Dirichlet(r·c + α), by Pólya's urn in whole numbers"
    weight: float
    concentration: float | tuple[float, ...]
    records: int
    unit: Unit
    least_count: int = 0

    def __post_init__(self) -> None:
        checks.positive_integer("PseudoRecords", records=self.records)
        if self.records > checks.LARGEST_COUNT:
            raise InvalidArgument("PseudoRecords: expected records up to 2^62.")
        object.__setattr__(self, "records", int(self.records))
        draw = self._draw()  # checks the rest
        object.__setattr__(self, "weight", draw.weight)
        object.__setattr__(self, "concentration", draw.concentration)

    @classmethod
    def of(cls, mechanism: Dirichlet, records: int) -> PseudoRecords:
        """Records of the draw of a Dirichlet mechanism."""
        return cls(
            weight=mechanism.weight,
            concentration=mechanism.concentration,
            records=records,
            unit=mechanism.unit,
            least_count=mechanism.least_count,
        )

    def _draw(self) -> UnroundedDirichlet:
        """The draw that infinitely many records would show: their number can only lower its price."""
        return UnroundedDirichlet(
            weight=self.weight, concentration=self.concentration, unit=self.unit, least_count=self.least_count
        )

    @property
    def exact(self) -> bool:
        """Whether the cost is that of the worst pair, rather than a bound."""
        simple = self.unit.fixed_size and self.unit.max_rows == 1 and self.least_count == 0
        return simple and self.records <= MOST_ATOMS

    @property
    def pure(self) -> float:
        """The largest privacy loss: m rows of one person cost at most m times what one row costs."""
        return self.unit.max_rows * pure_loss(self.weight, self._draw().smallest[0], self.records)

    def dominating_pair(self) -> BetaBinomialPair:
        """The pair that every exact number derives from."""
        first, second = self._draw().smallest
        return BetaBinomialPair(weight=self.weight, first=first, second=second, records=self.records)

    def _response(self) -> AtomicLoss:
        """Randomised response of the pure loss, which dominates every mechanism with that loss."""
        return randomised_response(self.pure)

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order; at infinity, the pure ε."""
        if self.exact:
            return self.dominating_pair().renyi(order)
        return min(self._draw().renyi(order), randomised_response_renyi(order, self.pure))

    def concentrated(self, omega: float) -> float:
        """Smallest ρ with D_λ ≤ ρ·λ below ω, within a hundredth; at most ½ε²

        (λ−1)·D_λ is convex and lies below its chord between two orders, over which the largest D_λ/λ is explicit.

        Symbols: ω omega, D the Rényi divergence, λ order, ε the pure loss.
        Source: docs/explanation/proofs/pseudo-records.md; ½ε² by [BS16] proposition 1.4.
        Adjacency: that of the divergence.
        """
        pure = self.pure
        found = min(0.5 * pure**2, self._draw().concentrated(omega))
        if not self.exact or self.records > 2**12:
            return found
        pair, low, before = self.dominating_pair(), 1.0, 0.0
        high, most = min(1.002, omega), 0.0
        while low < omega and pure / low > most and most < found:
            after = (high - 1.0) * pair.renyi(high)
            most = max(most, largest_over_chord(low, high, before, after))
            low, high, before = high, min(1.0 + 1.15 * (high - 1.0), omega), after
        return min(found, most)

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        if self.exact:
            return self.dominating_pair().delta(epsilon)
        return 0.0 if epsilon >= self.pure else min(self._draw().delta(epsilon), self._response().delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""
        if self.exact:
            return self.dominating_pair().epsilon(delta)
        return min(self._draw().epsilon(delta), self._response().epsilon(delta))

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``; of two bounds, the one that is better at δ = 10⁻⁹."""
        if self.exact:
            return self.dominating_pair().pld(interval)
        draw, response = self._draw(), self._response()
        return draw.pld(interval) if draw.epsilon(1e-9) < response.epsilon(1e-9) else response.pld(interval)

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """How many of the pseudo-records fall into each cell; a generator makes it repeatable, and not private."""
        below = secrets.randbelow if rng is None else random.Random(int(rng.integers(2**63))).randrange  # noqa: S311
        return pseudo_records(self, counts, self.records, below=below)


def pseudo_records(
    mechanism: Dirichlet | PseudoRecords,
    counts: ArrayLike,
    records: int,
    *,
    below: Callable[[int], int] = secrets.randbelow,
) -> Ints:
    """Counts of ``records`` draws from y ~ Dirichlet(r·c + α), without ever computing y

    P[next = k | so far n] = (r·c_k + α_k + n_k)/(r·N + Σα + n), all of it in integers: a float is a fraction.

    Symbols: r weight, c counts, α concentration, n the pseudo-records so far.
    Source: docs/explanation/proofs/dominating-pair.md (records drawn from y are post-processing of y).
    Adjacency: costs what the mechanism costs, or less: ``PseudoRecords`` prices this many records.
    """
    table = checks.counts("pseudo_records", counts)
    checks.positive_integer("pseudo_records", records=records)
    table = np.maximum(table, math.ceil(mechanism.least_count))  # as Dirichlet.gammas does: the price rests on it
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
