"""Guarantees: what a target asks for and a report states. Each measures its gap to a cost, and describes itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Literal

from dpbayes.base import checks
from dpbayes.base.display import rounded_down, rounded_up
from dpbayes.privacy.convert import exact_parts, gaussian_mu, renyi_to_delta, statement_to_delta, tcdp_to_delta
from dpbayes.privacy.cost import Cost

Rule = Literal["gaussian", "renyi"]
"""By which sums an (ε, δ) limit is kept, whatever later releases are adapted to: see AdaptiveDP."""


class Guarantee(ABC):
    """A notion of privacy with its numbers."""

    __slots__ = ()
    NUMBER: ClassVar[str] = "epsilon"
    """The field that grows when the guarantee is loosened: ε or ρ."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The short name used in records."""

    @abstractmethod
    def amount(self, cost: Cost) -> float:
        """The cost as the number that the guarantee limits."""

    @property
    def size(self) -> float:
        """The number that grows when the guarantee is loosened."""
        return getattr(self, self.NUMBER)  # type: ignore[no-any-return]

    @property
    def letter(self) -> str:
        """Its letter."""
        return {"epsilon": "ε", "rho": "ρ"}[self.NUMBER]

    @property
    def quantity(self) -> str:
        """What that number is.

        >>> ApproxDP(epsilon=1, delta=1e-6).quantity, ZCDP(rho=1).quantity
        ('ε at δ=1e-06', 'ρ')
        """
        return self.letter + (f" at δ={self.exception:g}" if self.exception else "")

    @property
    def epsilon_delta(self) -> tuple[float, float] | None:
        """ε and δ as they are stated, δ = 0 where it is pure; None in other notions."""
        return None

    @property
    def exception(self) -> float:
        """δ, the probability with which its ε may not hold; 0 where none is stated."""
        return self.epsilon_delta[1] if self.epsilon_delta else 0.0

    @property
    def pure(self) -> bool:
        """Whether its ε holds without exception."""
        return self.epsilon_delta is not None and not self.exception

    @property
    def plain(self) -> Guarantee:
        """What is promised, without what a ledger enforces beside it and how it prices it."""
        return self

    @property
    def sketch(self) -> RDP | None:
        """One Rényi order about as strict, and cheap to price: where searches begin. None if no order says as much."""
        return None

    @property
    def in_practice(self) -> str:
        """What a notion without (ε, δ) means to a person."""
        return ""

    @property
    def charged(self) -> Charged | None:
        """The limit of a ledger into which it has to fit, with what it is charged with; None where there is none."""
        return None

    def gap(self, cost: Cost) -> float:
        """How far the cost exceeds the guarantee; non-positive exactly when it meets it."""
        return self.amount(cost) - self.size

    def part(self, cost: Cost) -> float:
        """The share of the guarantee that the cost uses on its own."""
        return self.amount(cost) / self.size

    def at(self, part: float) -> float:
        """The number that stands for this share of the guarantee."""
        return part * self.size

    def profile(self, epsilon: float) -> float:
        """δ(ε) of the worst mechanism that keeps it."""
        return statement_to_delta(*(self.epsilon_delta or (math.inf, 0.0)), epsilon)

    def of_size(self, size: float) -> Guarantee:
        """The same with another ε or ρ."""
        return replace(self, **{self.NUMBER: size})  # type: ignore[type-var]  # every kind is a dataclass

    def share(self, releases: int) -> Guarantee:
        """An equal part for each of several releases, by the simple composition rule of this notion ([RDP] lemma 1)."""
        return self.of_size(self.size / releases)

    def record(self) -> dict[str, float | str]:
        """JSON form."""
        return {"notion": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class Charged:
    """What a limit is charged with, whatever each charge was adapted to: exact sums of many, and the charges after."""

    limit: Limit
    since: tuple[Cost, ...] = ()
    sums: tuple[tuple[float, ...], ...] = ()
    many: int = 0

    def __len__(self) -> int:
        return self.many + len(self.since)

    def plus(self, cost: Cost) -> Charged:
        """With one more charge."""
        return replace(self, since=(*self.since, cost))

    def summed(self) -> Charged:
        """The same with every charge in sums, if the limit is one. No bit is lost: whatever follows is the same."""
        if not self.limit.lasts:
            return self
        sums: Sequence[Sequence[float]] = self.sums
        for shares, times in self.limit.shares(self.since).items():
            sums = sums or [()] * len(shares)
            for power in (2.0**bit for bit in range(times.bit_length()) if times >> bit & 1):
                sums = [exact_parts(parts, power * share) for parts, share in zip(sums, shares, strict=True)]
        return Charged(self.limit, (), tuple(map(tuple, sums)), len(self))


class Limit(Guarantee):
    """A guarantee that a ledger can keep over many charges, each adapted to what came before."""

    __slots__ = ()
    ROUTE: ClassVar[str] = ""
    """The price of a release that a database can add up by itself, if there is one."""

    @property
    def rule(self) -> Rule | None:
        """By which rule it is kept; None where costs simply add."""
        return None

    @property
    def lasts(self) -> bool:
        """Whether it can be kept over charges that were adapted to each other."""
        return True

    @property
    def other_rule(self) -> Limit | None:
        """The same limit by the other rule, if there is one."""
        return None

    def shares(self, costs: Iterable[Cost]) -> Counter[tuple[float, ...]]:
        """What charges add to each of the sums by which the limit is kept, and how many add the same."""
        return Counter((self.part(cost),) for cost in costs)

    def used(self, costs: Iterable[Cost] | Charged) -> float:
        """The share that separate charges use, admitted up to 1: the sum, whatever each was adapted to."""
        charged = costs if isinstance(costs, Charged) else Charged(self, tuple(costs))
        return math.fsum((*(charged.sums[0] if charged.sums else ()), *(self.part(cost) for cost in charged.since)))

    def spent(self, costs: Iterable[Cost] | Charged) -> float:
        """The same as the number that it limits."""
        return self.at(self.used(costs))

    def running(self, costs: Iterable[Cost], since: int = 0) -> Iterator[float]:
        """What is spent after each of these charges, from place ``since`` on: one look at each."""
        charged = Charged(self, (charges := tuple(costs))[:since]).summed()
        for cost in charges[since:]:
            charged = charged.plus(cost).summed()
            yield self.spent(charged)

    def left(self, costs: Sequence[Cost] | Charged) -> float:
        """The largest number that one more release may cost on its own."""
        return self.at(max(1.0 - self.used(costs), 0.0)) if costs else self.size

    def routes(self, costs: Sequence[Cost] | Charged) -> list[dict[str, str | float]]:
        """The ways in which a database can keep it by adding prices, and the share of each that is used."""
        return [{"by": self.ROUTE, "most": self.size, "used": self.used(costs), "flags": 0.0}] if self.ROUTE else []


@dataclass(frozen=True, slots=True)
class PureDP(Limit):
    """ε-differential privacy: no probability moves by more than a factor e^ε."""

    name: ClassVar[str] = "pure-dp"
    ROUTE: ClassVar[str] = "pure"
    epsilon: float

    def __post_init__(self) -> None:
        checks.positive("PureDP", epsilon=self.epsilon)

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """ε and 0."""
        return self.epsilon, 0.0

    def amount(self, cost: Cost) -> float:
        """Pure ε."""
        return cost.renyi(math.inf)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} (pure)"


@dataclass(frozen=True, slots=True)
class ApproxDP(Limit):
    """(ε, δ)-differential privacy."""

    name: ClassVar[str] = "approx-dp"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checks.positive("ApproxDP", epsilon=self.epsilon)
        checks.probability("ApproxDP", delta=self.delta)

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """ε and δ."""
        return self.epsilon, self.delta

    @property
    def lasts(self) -> bool:
        """No: its costs are composed exactly only if all were fixed beforehand."""
        return False

    @property
    def sketch(self) -> RDP:
        """The order at which a Gaussian mechanism of this (ε, δ) would be priced best."""
        return gaussian_sketch(gaussian_mu(self.epsilon, self.delta), self.delta)

    def amount(self, cost: Cost) -> float:
        """ε at this δ."""
        return cost.epsilon(self.delta)

    def used(self, costs: Iterable[Cost] | Charged) -> float:
        """All together, composed exactly: right only if all were fixed beforehand."""
        found = [cost for cost in (costs.since if isinstance(costs, Charged) else costs) if cost.entries]
        return self.part(sum(found[1:], found[0])) if found else 0.0

    def share(self, releases: int) -> ApproxDP:
        """(ε/k, δ/k) each."""
        return ApproxDP(epsilon=self.epsilon / releases, delta=self.delta / releases)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} at δ={rounded_up(self.delta)}"


def gaussian_sketch(mu: float, delta: float) -> RDP:
    """The Rényi divergence of Gaussian noise of this shift, at the order that prices it best at this δ."""
    order = 1.0 + math.sqrt(-2.0 * math.log(delta)) / mu
    return RDP(order=order, epsilon=0.5 * order * mu**2)


@dataclass(frozen=True, slots=True)
class RDP(Limit):
    """Rényi differential privacy at one order."""

    name: ClassVar[str] = "rdp"
    order: float
    epsilon: float

    def __post_init__(self) -> None:
        checks.order("RDP", self.order)
        checks.positive("RDP", epsilon=self.epsilon)

    @property
    def sketch(self) -> RDP:
        """Itself."""
        return self

    @property
    def in_practice(self) -> str:
        """What the order means."""
        return (
            "In practice: the smaller ε is, the less the odds of any guess about a person can improve on average; "
            "the order says how heavily rare, large improvements weigh in that average."
        )

    def amount(self, cost: Cost) -> float:
        """Divergence at the order."""
        return cost.renyi(self.order)

    def profile(self, epsilon: float) -> float:
        """What the divergence at this order allows."""
        return renyi_to_delta(self.order, self.epsilon, epsilon)

    def __str__(self) -> str:
        return f"Rényi ε={rounded_up(self.epsilon)} at order {self.order:g}"


class _Concentrated(Limit):
    """Rényi divergence at most ρ·λ up to some order."""

    __slots__ = ()
    NUMBER: ClassVar[str] = "rho"
    rho: float

    @property
    @abstractmethod
    def _last(self) -> float:
        """The order up to which it holds."""

    @property
    def sketch(self) -> RDP | None:
        """The divergence at the last order, if there is one."""
        return RDP(order=self._last, epsilon=self.rho * self._last) if math.isfinite(self._last) else None

    @property
    def in_practice(self) -> str:
        """What ρ means."""
        said = "In practice: what a reader learns about a person behaves like a small Gaussian fluctuation whose size "
        return f"{said}grows with ρ{', for all but the rarest outcomes' if math.isfinite(self._last) else ''}."

    def amount(self, cost: Cost) -> float:
        """Smallest ρ up to the last order."""
        return cost.concentrated(self._last)

    def profile(self, epsilon: float) -> float:
        """What the best order allows."""
        return tcdp_to_delta(self.rho, self._last, epsilon)


@dataclass(frozen=True, slots=True)
class TCDP(_Concentrated):
    """Truncated concentrated privacy: Rényi divergence at most ρ·λ for all orders 1 < λ < ω."""

    name: ClassVar[str] = "tcdp"
    rho: float
    omega: float

    def __post_init__(self) -> None:
        checks.positive("TCDP", rho=self.rho)
        checks.order("TCDP", self.omega)

    @property
    def _last(self) -> float:
        return self.omega

    def __str__(self) -> str:
        return f"tCDP ρ={rounded_up(self.rho)} up to ω={rounded_down(self.omega)}"


@dataclass(frozen=True, slots=True)
class ZCDP(_Concentrated):
    """Zero-concentrated privacy: Rényi divergence at most ρ·λ for all orders."""

    name: ClassVar[str] = "zcdp"
    ROUTE: ClassVar[str] = "rho"
    rho: float

    def __post_init__(self) -> None:
        checks.positive("ZCDP", rho=self.rho)

    @property
    def _last(self) -> float:
        return math.inf

    def __str__(self) -> str:
        return f"zCDP ρ={rounded_up(self.rho)}"
