"""A mechanism on a secret random sample of the rows: cheaper, because nobody knows who is in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Mechanism, Record, confirm
from dpbayes.mechanisms.kinds import from_record as mechanism_from_record
from dpbayes.privacy import sampling as amplified
from dpbayes.privacy.bounds import AtomicLoss, RenyiBound
from dpbayes.privacy.convert import least_epsilon
from dpbayes.privacy.cost import Priced, but_for
from dpbayes.privacy.pld import Pld
from dpbayes.schema.unit import Unit

Sampling = Literal["poisson", "fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsampled(Mechanism):
    """A mechanism that counts a random sample of the rows, drawn anew and in secret for every release.

    ``poisson``: every row is in with probability ``rate``, for add-remove units. ``fixed``: the sample has the share
    ``rate`` of the rows, rounded down, whose number is public, for replace-one units. The price rests on nobody knowing
    who is in the sample: it is drawn here, from the counts, and forgotten. A sample that anybody knows costs what the
    mechanism costs without it. ``subsampled`` makes one.

    Source: docs/explanation/proofs/sampling.md; [ZDW22].
    """

    kind = "subsampled-1"
    mechanism: Priced
    rate: float
    sampling: Sampling

    def __post_init__(self) -> None:
        checks.probability("Subsampled", rate=self.rate)
        object.__setattr__(self, "rate", float(self.rate))
        checks.one_of("Subsampled", ("poisson", "fixed"), sampling=self.sampling)
        if not hasattr(self.mechanism, "draw") or isinstance(self.mechanism, Subsampled):
            raise InvalidArgument(
                "Subsampled: expected a mechanism that draws from a table. A release made elsewhere from a sample is "
                "charged as an event of dp-accounting, or as what it cost there."
            )
        if self.unit.replaces != (self.sampling == "fixed"):
            raise InvalidArgument(
                "Subsampled: Poisson sampling is priced for added or removed rows, a sample of fixed size for replaced "
                f"ones. This unit is {self.unit.adjacency}: use {'fixed' if self.unit.replaces else 'poisson'}."
            )
        if self.unit.max_rows != 1 or (self.unit.replaces and not self.unit.fixed_size):
            raise InvalidArgument(
                "Subsampled: expected one row per person, and under replace-one no person column. With more rows, or "
                "rows that may vanish, the proof does not hold."
            )
        if getattr(self.mechanism, "sensitivity", None) is not None or but_for(self.mechanism)[1] > 0:
            raise InvalidArgument(
                "Subsampled: expected a mechanism on counts, one cell per row, whose price holds without exception."
            )

    @property
    def unit(self) -> Unit:  # type: ignore[override]  # a field of all others
        """What one promise protects."""
        return self.mechanism.unit

    @property
    def exact(self) -> bool:
        """Whether the cost derives from a pair of laws."""
        return bool(getattr(self.mechanism, "exact", True))

    def confirm(self) -> None:
        """Derive again what the mechanism inside claims beyond theorems."""
        confirm(self.mechanism)

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order; at infinity, the pure ε."""
        pure = amplified.sampled_pure(self.mechanism.renyi(math.inf), self.rate)
        if math.isinf(order):
            return pure
        if math.isfinite(pure):
            by_pair = min(max(loss.renyi(order) for loss in _bounded(self)), pure)
            exponent = (order - 1.0) * self.mechanism.renyi(order)
            convex = math.log1p(self.rate * math.expm1(exponent)) / (order - 1.0) if exponent < 600.0 else pure
            return min(by_pair, convex * (1.0 + 1e-12))
        return amplified.sampled_renyi(_divergences(self.mechanism), order, self.rate, _other(self))

    def concentrated(self, omega: float) -> float:
        """Smallest known ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω; at infinity ½ε² of the pure ε."""
        pure = self.renyi(math.inf)
        by_pure = 0.5 * pure**2 if math.isfinite(pure) else math.inf
        return by_pure if math.isinf(omega) else min(by_pure, RenyiBound(self.renyi).concentrated(omega))

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""
        return amplified.sampled_delta(self.mechanism.delta, epsilon, self.rate)

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ, rounded up."""
        if self.delta(0.0) <= delta:
            return 0.0
        high = max(amplified.sampled_pure(self.mechanism.epsilon(delta), self.rate), 1e-9)
        while self.delta(high) > delta:
            high *= 2.0
            if high > 1e6:
                return math.inf
        return min(least_epsilon(self.delta, delta, safe=high), self.renyi(math.inf))

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return amplified.sampled_pld(
            self.mechanism.pld(max(interval, _step(self.mechanism))), self.rate, interval, replaces=self.unit.replaces
        )

    def sample(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """The counts of a fresh sample: private, as the counts are, and not released."""
        table = checks.counts("Subsampled", counts)
        source, cells = noise.generator(rng), np.cumsum(table.ravel())
        total = int(cells[-1])
        drawn = np.zeros(table.size, dtype=np.int64)
        if self.sampling == "fixed":
            size = math.floor(Fraction(self.rate) * total)
            chosen = source.choice(total, size, replace=False, shuffle=False) if size else np.zeros(0, dtype=np.int64)
            drawn += np.bincount(np.searchsorted(cells, chosen, side="right"), minlength=table.size)
            return drawn.reshape(table.shape)
        below = np.uint64(math.floor(Fraction(self.rate) * 2**64))  # in with at most this probability, exactly
        for start in range(0, total, chunk := 2**20):
            coins = source.integers(0, 2**64, size=min(chunk, total - start), dtype=np.uint64)
            rows = start + np.flatnonzero(coins < below)
            drawn += np.bincount(np.searchsorted(cells, rows, side="right"), minlength=table.size)
        return drawn.reshape(table.shape)

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats | Ints:
        """One release from a fresh sample of the rows behind these counts."""
        return cast("Floats | Ints", self.mechanism.draw(self.sample(counts, rng), rng))  # type: ignore[attr-defined]

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back."""
        return super(Subsampled, cls).from_record({**record, "of": mechanism_from_record(record["of"])})


def subsampled(draw: Priced, rate: float, *, sampling: Sampling | None = None) -> Subsampled:
    """A mechanism on a secret random sample of the rows: Poisson under add-remove, of fixed size under replace-one.

    >>> from dpbayes import Cost, Gaussian, Unit
    >>> noise = Gaussian(sigma=2.0, unit=Unit(adjacency="add-remove"))
    >>> one = subsampled(noise, 0.05)
    >>> [round(Cost.of(each, 50).epsilon(1e-6), 2) for each in (noise, one)]
    [22.43, 0.92]
    """
    unit = getattr(draw, "unit", None)
    if sampling is None:
        sampling = "fixed" if unit is not None and unit.replaces else "poisson"
    return Subsampled(mechanism=draw, rate=rate, sampling=sampling)


@lru_cache(maxsize=256)
def _bounded(made: Subsampled) -> tuple[AtomicLoss, ...]:
    """Pairs that dominate a bounded loss, in each direction: from the profile of what is sampled, or from the own."""
    source = made if made.unit.replaces else made.mechanism
    pure = source.renyi(math.inf)
    steps = np.linspace(0.0, pure, 257)
    loss = AtomicLoss.of_profile(np.array([*(source.delta(each) for each in steps[:-1].tolist()), 0.0]), pure)
    return (loss,) if made.unit.replaces else amplified.sampled_loss(loss, made.rate)


@lru_cache(maxsize=256)
def _divergences(mechanism: Priced) -> Callable[[float], float]:
    """Divergences of a mechanism, each computed once: sums over orders ask for the same again and again."""
    return lru_cache(maxsize=4096)(mechanism.renyi)


@lru_cache(maxsize=256)
def _other(made: Subsampled) -> Callable[[float], float] | None:
    """The direction of a removed row; none for a sample of fixed size, which is bounded otherwise."""
    if made.unit.replaces:
        return None
    return lru_cache(maxsize=1024)(amplified.removed_moment(made.mechanism.pld(_step(made.mechanism)), made.rate))


@lru_cache(maxsize=256)
def _step(mechanism: Priced) -> float:
    """A step in which the loss without sampling is as good as exact."""
    divergence = mechanism.renyi(1.001)
    spread = math.sqrt(2.0 * divergence) if math.isfinite(divergence) else min(2.0 * mechanism.delta(0.0), 1.0)
    return spread / 1000.0
