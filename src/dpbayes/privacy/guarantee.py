"""Guarantees: what a target asks for and a report states. Each measures its gap to a cost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import ClassVar, Protocol

from dpbayes import _checks
from dpbayes.domain.codec import READERS
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.shares import added

LAST_BITS = Decimal(2) ** -50
"""A number that is a short decimal but for this share of it is that decimal: the rounding of a sum or two."""


def rounded_up(number: float, digits: int = 6) -> str:
    """A number for people, never below the true one, but for the last bits: a cost is not stated too small.

    >>> rounded_up(1.2214, digits=3), rounded_up(0.5)
    ('1.23', '0.5')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: float, digits: int = 6) -> str:
    """A number for people, never above the true one, but for the last bits: what is left is not stated too large.

    >>> rounded_down(2.1679, digits=3)
    '2.16'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return f"{number:g}"
    exact, context = Decimal(number), Context(prec=digits, rounding=rounding)
    near = Context(prec=digits).create_decimal(exact)
    # 0.1 + 0.2 is 0.3 but for its last bit, and is not turned into 0.300001
    stated = near if abs(exact - near) <= LAST_BITS * abs(exact) else context.create_decimal(exact)
    return f"{float(stated):.{digits}g}"


class Guarantee(Protocol):
    """A notion of privacy with its numbers."""

    @property
    def name(self) -> str:
        """The short name used in records."""

    @property
    def size(self) -> float:
        """The number that grows when the guarantee is loosened: ε or ρ."""

    def gap(self, cost: Cost) -> float:
        """How far the cost exceeds the guarantee; non-positive exactly when it meets it."""

    def amount(self, cost: Cost) -> float:
        """The cost as the number that the guarantee limits."""

    def part(self, cost: Cost) -> float:
        """The share of the guarantee that the cost uses on its own."""

    def at(self, part: float) -> float:
        """The number that stands for this share of the guarantee."""

    def share(self, releases: int) -> Guarantee:
        """An equal part for each of several releases, by the simple composition rule of this notion."""

    def record(self) -> dict[str, float | str]:
        """JSON form."""


class Limit(Guarantee, Protocol):
    """A guarantee that a ledger can keep over many charges, each adapted to what came before."""

    def used(self, costs: Iterable[Cost]) -> float:
        """The share of it that separate charges use; they are admitted while it is at most 1."""

    def spent(self, costs: Iterable[Cost]) -> float:
        """The same as the number that it limits."""

    def running(self, costs: Iterable[Cost]) -> Iterator[float]:
        """What is spent after each of these charges."""

    def left(self, costs: Sequence[Cost]) -> float:
        """The largest number that one more release may cost on its own."""

    def priced(self, target: Guarantee, costs: Sequence[Cost] = ()) -> Guarantee:
        """A target as the limit prices it: calibrate to it what will be charged."""


class _Limit(ABC):
    """What guarantees of one number share: the cost is compared with it, and has a JSON form."""

    __slots__ = ()
    name: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> float:
        """ε or ρ."""

    @abstractmethod
    def amount(self, cost: Cost) -> float:
        """The cost as the number that the guarantee limits."""

    def gap(self, cost: Cost) -> float:
        """The cost minus the target."""
        return self.amount(cost) - self.size

    def part(self, cost: Cost) -> float:
        """The cost as a share of the guarantee."""
        return self.amount(cost) / self.size

    def used(self, costs: Iterable[Cost]) -> float:
        """The share that separate charges use together: the sum, whatever each was adapted to. Not so for (ε, δ)."""
        return math.fsum(self.part(cost) for cost in costs)

    def spent(self, costs: Iterable[Cost]) -> float:
        """The same as a number."""
        return self.at(self.used(costs))

    def running(self, costs: Iterable[Cost]) -> Iterator[float]:
        """What is spent after each of these charges: one look at each."""
        parts: list[float] = []
        for cost in costs:
            parts = added(parts, self.part(cost))
            yield self.at(math.fsum(parts))

    def left(self, costs: Sequence[Cost]) -> float:
        """The largest number that one more release may cost."""
        return self.at(max(1.0 - self.used(costs), 0.0)) if costs else self.size

    def priced(self, target: Guarantee, costs: Sequence[Cost] = ()) -> Guarantee:  # noqa: ARG002 - Limit
        """Targets stay as they are."""
        return target

    def at(self, part: float) -> float:
        """This share of ε or ρ."""
        return part * self.size

    def record(self) -> dict[str, float | str]:
        """JSON form."""
        return {"notion": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class PureDP(_Limit):
    """ε-differential privacy: no probability moves by more than a factor e^ε."""

    name: ClassVar[str] = "pure-dp"
    epsilon: float

    def __post_init__(self) -> None:
        _checks.positive("PureDP", epsilon=self.epsilon)

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def amount(self, cost: Cost) -> float:
        """Pure ε."""
        return cost.renyi(math.inf)

    def share(self, releases: int) -> PureDP:
        """ε/k each."""
        return PureDP(epsilon=self.epsilon / releases)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} (pure)"


@dataclass(frozen=True, slots=True)
class ApproxDP(_Limit):
    """(ε, δ)-differential privacy."""

    name: ClassVar[str] = "approx-dp"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checks.positive("ApproxDP", epsilon=self.epsilon)
        _checks.probability("ApproxDP", delta=self.delta)

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def amount(self, cost: Cost) -> float:
        """ε at this δ."""
        return cost.epsilon(self.delta)

    def used(self, costs: Iterable[Cost]) -> float:
        """All together, composed exactly: right only if all were fixed beforehand."""
        found = [cost for cost in costs if cost.entries]
        return self.part(sum(found[1:], found[0])) if found else 0.0

    def running(self, costs: Iterable[Cost]) -> Iterator[float]:
        """Each total is composed anew, from all charges so far."""
        total: Cost | None = None
        for cost in costs:
            if cost.entries:
                total = cost if total is None else total + cost
            yield 0.0 if total is None else self.at(self.part(total))

    def share(self, releases: int) -> ApproxDP:
        """(ε/k, δ/k) each."""
        return ApproxDP(epsilon=self.epsilon / releases, delta=self.delta / releases)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} at δ={rounded_up(self.delta)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RDP(_Limit):
    """Rényi differential privacy at one order."""

    name: ClassVar[str] = "rdp"
    order: float
    epsilon: float

    def __post_init__(self) -> None:
        _checks.order("RDP", self.order)
        _checks.positive("RDP", epsilon=self.epsilon)

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def amount(self, cost: Cost) -> float:
        """Divergence at the order."""
        return cost.renyi(self.order)

    def share(self, releases: int) -> RDP:
        """ε/k each, by [RDP] lemma 1."""
        return RDP(order=self.order, epsilon=self.epsilon / releases)

    def __str__(self) -> str:
        return f"Rényi ε={rounded_up(self.epsilon)} at order {self.order:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TCDP(_Limit):
    """Truncated concentrated privacy: Rényi divergence at most ρ·λ for all orders 1 < λ < ω."""

    name: ClassVar[str] = "tcdp"
    rho: float
    omega: float

    def __post_init__(self) -> None:
        _checks.positive("TCDP", rho=self.rho)
        _checks.order("TCDP", self.omega)

    @property
    def size(self) -> float:
        """ρ."""
        return self.rho

    def amount(self, cost: Cost) -> float:
        """Smallest ρ up to ω."""
        return cost.concentrated(self.omega)

    def share(self, releases: int) -> TCDP:
        """ρ/k each."""
        return TCDP(rho=self.rho / releases, omega=self.omega)

    def __str__(self) -> str:
        return f"tCDP ρ={rounded_up(self.rho)} up to ω={rounded_down(self.omega)}"


@dataclass(frozen=True, slots=True)
class ZCDP(_Limit):
    """Zero-concentrated privacy: Rényi divergence at most ρ·λ for all orders."""

    name: ClassVar[str] = "zcdp"
    rho: float

    def __post_init__(self) -> None:
        _checks.positive("ZCDP", rho=self.rho)

    @property
    def size(self) -> float:
        """ρ."""
        return self.rho

    def amount(self, cost: Cost) -> float:
        """Smallest ρ."""
        return cost.concentrated(math.inf)

    def share(self, releases: int) -> ZCDP:
        """ρ/k each."""
        return ZCDP(rho=self.rho / releases)

    def __str__(self) -> str:
        return f"zCDP ρ={rounded_up(self.rho)}"


_KINDS = {kind.name: kind for kind in (PureDP, ApproxDP, RDP, TCDP, ZCDP)}


def guarantee_from_record(record: object) -> Limit:
    """Read the JSON form back.

    >>> guarantee_from_record(ZCDP(rho=0.5).record())
    ZCDP(rho=0.5)
    """
    from dpbayes.privacy.adaptive import AdaptiveDP  # it builds on these

    kinds = {**_KINDS, AdaptiveDP.name: AdaptiveDP}
    if not isinstance(record, dict) or record.get("notion") not in tuple(kinds):
        raise InvalidArgument(f"Guarantee: expected a record whose notion is one of {', '.join(kinds)}.")
    numbers = {key: value for key, value in record.items() if key != "notion"}
    kind = kinds[record["notion"]]
    fields = set(kind.__dataclass_fields__) - {"name"}
    if kind is AdaptiveDP and numbers.get("rule") == "gaussian":
        fields -= {"order"}
    if set(numbers) != fields:
        raise InvalidArgument(f"Guarantee: a {record['notion']} record has the wrong fields.")
    return kind(**numbers)


READERS[Guarantee] = guarantee_from_record
