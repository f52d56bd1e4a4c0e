"""What releases cost together: mechanisms and multiplicities, priced in every notion of privacy at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from dpbayes.base import checks, display
from dpbayes.base.display import Chart
from dpbayes.base.errors import InvalidArgument, UnitMismatch
from dpbayes.privacy.convert import (
    best_order,
    gaussian_delta,
    gaussian_epsilon,
    pure_mu,
    renyi_to_delta,
    renyi_to_epsilon,
    rounded_towards_infinity,
    tcdp_to_epsilon,
)
from dpbayes.privacy.pld import ROUNDING, Pld, compose, delta_of, epsilon_of, to_accounting
from dpbayes.schema.unit import Unit

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


Curve = TypeVar("Curve", bound=Callable[[Any, float], float])


def _on_arrays(formula: Curve) -> Curve:
    """Let a curve δ(ε), ε(δ) or ε(λ), written for one number, take arrays too, number by number."""

    @wraps(formula)
    def curve(self: Any, at: Any) -> Any:
        if np.ndim(at) == 0:
            return formula(self, at)
        values = np.asarray(at, dtype=np.float64)
        return np.array([formula(self, float(value)) for value in values.flat]).reshape(values.shape)

    return cast("Curve", curve)


PLD_FLOOR = 1e-12
"""Below this δ the rounding of Fourier transforms would show: composed costs use Rényi orders only."""

FEW = 16
"""Up to so many different mechanisms Rényi orders are tried beside a privacy loss distribution; beyond, their
gain is small and each order costs a divergence of every mechanism."""

MOST_RELEASES = 10**6
"""Beyond this many releases a composed distribution would not fit into memory: Rényi orders only."""

LARGEST_PURE = 300.0
"""Beyond this a factor e^ε of δ cannot be computed with, nor be wanted."""


class Priced(Protocol):
    """The privacy face of a mechanism."""

    @property
    def unit(self) -> Unit:
        """What one promise protects."""

    def __hash__(self) -> int:
        """Mechanisms are values: equal parameters, equal cost."""

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order between any two neighbours; at infinity, the pure ε."""

    def concentrated(self, omega: float) -> float:
        """Smallest ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω."""

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""

    def record(self) -> dict[str, object]:
        """JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cost(display.Shown):
    """The cost of several releases of the same data, adaptively chosen or not.

    ``cost + cost`` and ``cost * k`` are the only places where releases and repetitions are priced.
    """

    unit: Unit
    entries: tuple[tuple[Priced, int], ...] = ()

    @classmethod
    def of(cls, mechanism: Priced, times: int = 1) -> Cost:
        """The cost of one mechanism, repeated."""
        checks.positive_integer("Cost", times=times)
        return cls(unit=mechanism.unit, entries=((mechanism, times),))

    @classmethod
    def total(cls, parts: Iterable[Cost | Priced]) -> Cost:
        """The cost of all of these together."""
        costs = [part if isinstance(part, Cost) else cls.of(part) for part in parts]
        if not costs:
            raise InvalidArgument("Cost: expected at least one mechanism, got none.")
        merged: dict[Priced, int] = {}
        for cost in costs:
            if cost.unit != costs[0].unit:
                raise UnitMismatch(
                    f"Cost: expected one privacy unit, got two: {costs[0].unit}; and {cost.unit}. "
                    "Price both under the same unit."
                )
            for mechanism, times in cost.entries:
                merged[mechanism] = merged.get(mechanism, 0) + times
        return cls(unit=costs[0].unit, entries=tuple(merged.items()))

    def __add__(self, cost: Cost | Priced) -> Cost:
        return self.total([self, cost])

    def __mul__(self, times: int) -> Cost:
        checks.positive_integer("Cost", times=times)
        return Cost(unit=self.unit, entries=tuple((m, k * times) for m, k in self.entries))

    __rmul__ = __mul__

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        return f"Cost of {display.plural(self.releases, 'release')}: {self.unit}", [
            (f"{k:,} ×", _parameters(m)) for m, k in self.entries
        ]

    def plot(self, what: Literal["profile", "tradeoff"] = "profile", path: str | Path | None = None) -> Chart:
        """δ(ε), or false alarms against misses of the best attacker; written to ``path`` if there is one."""
        checks.one_of("Cost", ("profile", "tradeoff"), what=what)
        return display.picture("profile_picture" if what == "profile" else "tradeoff_picture", self, path=path)

    @property
    def releases(self) -> int:
        """How many releases are priced."""
        return sum(times for _, times in self.entries)

    @_on_arrays
    def renyi(self, order: float) -> float:
        """Σ of the divergences: Rényi divergences of independent draws add. The pure ε is not rounded down.

        Source: [RDP] lemma 1.
        """
        parts = [(mechanism.renyi(order), times) for mechanism, times in self.entries]
        if math.isinf(order) and all(math.isfinite(part) for part, _ in parts):
            return rounded_towards_infinity(sum((Fraction(part) * times for part, times in parts), Fraction(0)))
        return math.fsum(times * part for part, times in parts)

    def concentrated(self, omega: float) -> float:
        """Σ of the ρ at a common ω.

        Source: [BDRS18] lemma 2 (composition of tCDP).
        """
        return math.fsum(times * mechanism.concentrated(omega) for mechanism, times in self.entries)

    @_on_arrays
    def epsilon(self, delta: float) -> float:
        """The smallest proven ε for this δ: exact for one release, else the least of PLD, Rényi orders and pure ε.

        Rényi orders cannot beat the privacy loss distribution of mechanisms whose loss is exact and unbounded,
        and are not tried there unless its rounding shows. A bounded loss has few values, which need not fall on
        the multiples of the interval.
        """
        checks.probability("Cost", delta=delta)
        if not self.entries:
            return 0.0
        if self._single is not None:
            return self._single.epsilon(delta)
        by_pld = delta >= PLD_FLOOR and self.releases <= MOST_RELEASES
        by_loss = epsilon_of(self.pld(), delta, self.releases) if by_pld else math.inf
        rest, betrayed = self._unless_betrayed
        pure = rest.renyi(math.inf) if betrayed <= delta else math.inf
        found = min(by_loss, self.shifted_epsilon(delta), pure)
        if not self.exact:
            found = min([found, *(part.epsilon(delta) for part in self._beside_pure())])
        unbounded = all(mechanism.renyi(math.inf) == math.inf for mechanism, _ in self.entries)
        trusted = by_pld and self.exact and delta > max(PLD_FLOOR, 1e3 * ROUNDING * self.releases)
        if (trusted and (unbounded or len(self.entries) > FEW)) or betrayed >= delta:
            return found
        return min(found, rest.renyi_epsilon(delta - betrayed)[1])

    def epsilons(self, delta: float) -> dict[str, float]:
        """Every proven ε for this δ, by the name of its accounting; infinite where one does not apply."""
        checks.probability("Cost", delta=delta)
        found = {"exact": self._single.epsilon(delta)} if self._single is not None else {}
        if self.entries and delta >= PLD_FLOOR and self.releases <= MOST_RELEASES:
            found["pld"] = epsilon_of(self.pld(), delta, self.releases)
        if math.isfinite(shifted := self.shifted_epsilon(delta)):
            found["gaussian"] = shifted
        found["renyi"] = self.renyi_epsilon(delta)[1]
        found["tcdp"] = self.concentrated_epsilon(delta)[1]
        found["pure"] = self.renyi(math.inf)
        return found

    @property
    def exact(self) -> bool:
        """Whether every part has an exact privacy loss, rather than a bound on its divergences."""
        return all(getattr(mechanism, "exact", True) for mechanism, _ in self.entries)

    @property
    def shift(self) -> tuple[float, float]:
        """(√Σμ², Σδ₀): the Gaussian shift that covers all releases, except with probability Σδ₀; infinite if none does.

        Symbols: μ and δ₀ of each release.
        Source: docs/explanation/proofs/adaptive.md, theorem 1.
        Adjacency: that of the unit.
        """
        shifts = [(*_shift(mechanism), times) for mechanism, times in self.entries]
        squares = math.fsum(times * mu * mu for mu, _, times in shifts)
        return math.sqrt(squares) * (1.0 + 1e-12), math.fsum(times * betrayed for _, betrayed, times in shifts)

    def shifted_epsilon(self, delta: float) -> float:
        """ε by the Gaussian shift of all releases: next to nothing is lost for Gaussian noise."""
        shift, betrayed = self.shift
        return gaussian_epsilon(shift, delta - betrayed) if betrayed < delta and math.isfinite(shift) else math.inf

    def renyi_epsilon(self, delta: float) -> tuple[float, float]:
        """The best Rényi order for this δ, and its ε."""
        order = best_order(lambda at: renyi_to_epsilon(at, self.renyi(at), delta))
        return order, renyi_to_epsilon(order, self.renyi(order), delta)

    def concentrated_epsilon(self, delta: float) -> tuple[float, float]:
        """The best ω for this δ, and the ε that the tCDP line up to ω gives."""
        omega = best_order(lambda at: tcdp_to_epsilon(self.concentrated(at), at, delta))
        return omega, tcdp_to_epsilon(self.concentrated(omega), omega, delta)

    @_on_arrays
    def delta(self, epsilon: float) -> float:
        """The smallest proven δ for this ε: no rule of a ledger proves less."""
        checks.non_negative("Cost", epsilon=epsilon)
        rest, betrayed = self._unless_betrayed
        pure = rest.renyi(math.inf)
        if not self.entries or (pure <= epsilon and betrayed == 0.0):
            return 0.0
        # randomised response has no larger loss than its ε: what lies beyond is at most 1 − e^{ε−E}
        simply = betrayed - math.expm1(min(epsilon - pure, 0.0))
        if self._single is not None:
            return min(self._single.delta(epsilon), simply)
        order = best_order(lambda at: renyi_to_delta(at, rest.renyi(at), epsilon))
        shift, lost = self.shift
        by_shift = lost + gaussian_delta(shift, epsilon) if math.isfinite(shift) else 1.0
        found = min(betrayed + renyi_to_delta(order, rest.renyi(order), epsilon), by_shift, simply, 1.0)
        if not self.exact:
            found = min([found, *(part.delta(epsilon) for part in self._beside_pure())])
        if found < PLD_FLOOR or self.releases > MOST_RELEASES:
            return found
        return min(found, max(delta_of(self.pld(), epsilon, self.releases), PLD_FLOOR))

    @property
    def _unless_betrayed(self) -> tuple[Cost, float]:
        """What the releases are unless a chance betrays everything, and that chance: statements (ε, δ) have one."""
        split = [(*but_for(mechanism), times) for mechanism, times in self.entries]
        betrayed = math.fsum(times * chance for _, chance, times in split)
        if betrayed == 0.0:
            return self, 0.0
        return Cost(unit=self.unit, entries=tuple((rest, times) for rest, _, times in split)), betrayed

    def _beside_pure(self) -> list[_BesidePure]:
        """Ways to take some releases for nothing but pure ones, the worst covered by Gaussians first."""
        rest, betrayed = self._unless_betrayed
        if len(rest.entries) > FEW:
            return []
        bounded = [(each, each[0].renyi(math.inf)) for each in rest.entries if math.isfinite(each[0].renyi(math.inf))]
        bounded.sort(key=lambda found: pure_mu(found[1]) ** 2 / found[1], reverse=True)
        ways = [[each for each, _ in bounded[:many]] for many in range(1, len(bounded) + 1)]
        ways.append([each for each, _ in bounded if not getattr(each[0], "exact", True)])
        found = []
        for way in ways:
            others = tuple(each for each in rest.entries if each not in way)
            if way and others:
                pure, beside = (Cost(unit=self.unit, entries=entries) for entries in (tuple(way), others))
                found.append(_BesidePure(pure, beside, betrayed))
        return found

    @property
    def _single(self) -> Priced | None:
        return self.entries[0][0] if self.releases == 1 else None

    def pld(self) -> Pld:
        """The composed privacy loss distribution."""
        return _composed(self.entries)

    def to_pld(self, interval: float = 1e-4) -> PrivacyLossDistribution:
        """The composed privacy loss distribution as an object of dp-accounting, never too optimistic.

        dp-accounting composes only distributions of one ``interval``, the distance between their losses. Give that of
        the distribution you will compose it with; the default is that of dp-accounting.
        """
        checks.positive("Cost", interval=interval)
        return to_accounting(compose((_one(mechanism, interval), times) for mechanism, times in self.entries))

    @property
    def interval(self) -> float:
        """The discretisation: the largest that adds little to the variance of the loss.

        A release of spread s gains at most min(h²/4, s·h) of variance when its loss moves to multiples of h.
        It varies continuously with the parameters, so that calibration can land as near as it likes.
        """
        return _interval(self.entries)


class _BesidePure(NamedTuple):
    """Releases that count as pure, beside others, except with a probability that all is lost."""

    pure: Cost
    others: Cost
    betrayed: float

    def delta(self, epsilon: float) -> float:
        """δ ≤ δ₀ + e^E·δ′(ε − E), δ′ that of the others

        Symbols: E the pure ε, δ₀ betrayed.
        Source: docs/explanation/proofs/adaptive.md, theorem 3.
        Adjacency: that of the unit.
        """
        pure = self.pure.renyi(math.inf)
        if pure > min(epsilon, LARGEST_PURE):
            return 1.0
        return min(self.betrayed + math.exp(pure) * self.others.delta(epsilon - pure) * (1.0 + 1e-12), 1.0)

    def epsilon(self, delta: float) -> float:
        """The same, solved for ε."""
        pure = self.pure.renyi(math.inf)
        if pure > LARGEST_PURE or not (less := (delta - self.betrayed) * math.exp(-pure) * (1.0 - 1e-12)) > 0:
            return math.inf
        return (pure + self.others.epsilon(less)) * (1.0 + 1e-15)


def but_for(mechanism: Priced) -> tuple[Priced, float]:
    """What a mechanism is unless a chance betrays everything, and that chance."""
    split = getattr(mechanism, "but_for", None)
    return (mechanism, 0.0) if split is None else split()


def _interval(entries: tuple[tuple[Priced, int], ...]) -> float:
    coarseness = 1e-4  # the share that it may add to the variance of the composed loss
    spreads = [(_spread(mechanism), times) for mechanism, times in entries]
    if len(spreads) == 1:
        return 2.0 * math.sqrt(coarseness) * spreads[0][0]  # where h²/4 is that share of s²
    total = sum(times * spread * spread for spread, times in spreads)
    low, high = 0.0, 4.0 * math.sqrt(total)
    for _ in range(60):
        middle = 0.5 * (low + high)
        added = sum(times * min(middle**2 / 4.0, spread * middle) for spread, times in spreads)
        low, high = (middle, high) if added <= coarseness * total else (low, middle)
    return low


def _parameters(mechanism: Priced) -> str:
    """A mechanism in one line: its record without the unit."""
    name, *rest = (f"{key}={value}" for key, value in mechanism.record().items() if key != "unit")
    return display.listed([name.partition("=")[2], *rest])


@lru_cache(maxsize=2**16)
def _shift(mechanism: Priced) -> tuple[float, float]:
    """(μ, δ₀) of one release: what it says itself (``gdp``), or that of its pure ε."""
    if (covered := getattr(mechanism, "gdp", None)) is not None:
        mu, betrayed = covered()
        return float(mu), float(betrayed)
    rest, betrayed = but_for(mechanism)
    return pure_mu(rest.renyi(math.inf)), float(betrayed)


def _spread(mechanism: Priced) -> float:
    """The standard deviation of the loss: at orders near 1 a Rényi divergence is half the variance.

    Where a loss may be infinite, that of its other values, about twice the total variation distance.
    """
    divergence = mechanism.renyi(1.0 + 1e-3)
    return math.sqrt(2.0 * divergence) if math.isfinite(divergence) else min(2.0 * mechanism.delta(0.0), 1.0)


@lru_cache(maxsize=256)
def _one(mechanism: Priced, interval: float) -> Pld:
    return mechanism.pld(interval)


@lru_cache(maxsize=16)
def _composed(entries: tuple[tuple[Priced, int], ...]) -> Pld:
    interval = _interval(entries)
    return compose((_one(mechanism, interval), times) for mechanism, times in entries)
