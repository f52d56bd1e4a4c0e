"""Guarantees: what a target asks for and a report states. Each measures its gap to a cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import ClassVar, Protocol

from dpbayes import _checks
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.cost import Cost


def rounded_up(number: float, digits: int = 6) -> str:
    """A number for people, never below the true one: a cost is not stated too small.

    >>> rounded_up(1.2214, digits=3), rounded_up(0.5)
    ('1.23', '0.5')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: float, digits: int = 6) -> str:
    """A number for people, never above the true one: what is left is not stated too large.

    >>> rounded_down(2.1679, digits=3)
    '2.16'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return f"{number:g}"
    near = f"{number:.12g}"  # so that the last bits of a sum do not turn 0.3 into 0.3001
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(near)):.{digits}g}"


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

    def share(self, releases: int) -> Guarantee:
        """An equal part for each of several releases, by the simple composition rule of this notion."""

    def record(self) -> dict[str, float | str]:
        """JSON form."""


class _Recorded:
    """The JSON form that all guarantees share."""

    __slots__ = ()
    name: ClassVar[str]

    def record(self) -> dict[str, float | str]:
        """JSON form."""
        return {"notion": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(_Recorded):
    """ε-differential privacy: no probability moves by more than a factor e^ε."""

    name: ClassVar[str] = "pure-dp"
    epsilon: float

    def __post_init__(self) -> None:
        _checks.positive("PureDP", epsilon=self.epsilon)

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def gap(self, cost: Cost) -> float:
        """Pure ε minus the target."""
        return cost.renyi(math.inf) - self.epsilon

    def share(self, releases: int) -> PureDP:
        """ε/k each."""
        return PureDP(epsilon=self.epsilon / releases)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} (pure)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxDP(_Recorded):
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

    def gap(self, cost: Cost) -> float:
        """ε at this δ minus the target."""
        return cost.epsilon(self.delta) - self.epsilon

    def share(self, releases: int) -> ApproxDP:
        """(ε/k, δ/k) each."""
        return ApproxDP(epsilon=self.epsilon / releases, delta=self.delta / releases)

    def __str__(self) -> str:
        return f"ε={rounded_up(self.epsilon)} at δ={rounded_up(self.delta)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RDP(_Recorded):
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

    def gap(self, cost: Cost) -> float:
        """Divergence at the order minus the target."""
        return cost.renyi(self.order) - self.epsilon

    def share(self, releases: int) -> RDP:
        """ε/k each, by [RDP] lemma 1."""
        return RDP(order=self.order, epsilon=self.epsilon / releases)

    def __str__(self) -> str:
        return f"Rényi ε={rounded_up(self.epsilon)} at order {self.order:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TCDP(_Recorded):
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

    def gap(self, cost: Cost) -> float:
        """Smallest ρ up to ω minus the target."""
        return cost.concentrated(self.omega) - self.rho

    def share(self, releases: int) -> TCDP:
        """ρ/k each."""
        return TCDP(rho=self.rho / releases, omega=self.omega)

    def __str__(self) -> str:
        return f"tCDP ρ={rounded_up(self.rho)} up to ω={rounded_down(self.omega)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDP(_Recorded):
    """Zero-concentrated privacy: Rényi divergence at most ρ·λ for all orders."""

    name: ClassVar[str] = "zcdp"
    rho: float

    def __post_init__(self) -> None:
        _checks.positive("ZCDP", rho=self.rho)

    @property
    def size(self) -> float:
        """ρ."""
        return self.rho

    def gap(self, cost: Cost) -> float:
        """Smallest ρ minus the target."""
        return cost.concentrated(math.inf) - self.rho

    def share(self, releases: int) -> ZCDP:
        """ρ/k each."""
        return ZCDP(rho=self.rho / releases)

    def __str__(self) -> str:
        return f"zCDP ρ={rounded_up(self.rho)}"


_KINDS = {kind.name: kind for kind in (PureDP, ApproxDP, RDP, TCDP, ZCDP)}


def guarantee_from_record(record: object) -> Guarantee:
    """Read the JSON form back.

    >>> guarantee_from_record(ZCDP(rho=0.5).record())
    ZCDP(rho=0.5)
    """
    if not isinstance(record, dict) or record.get("notion") not in tuple(_KINDS):
        raise InvalidArgument(f"Guarantee: expected a record whose notion is one of {', '.join(_KINDS)}.")
    numbers = {key: value for key, value in record.items() if key != "notion"}
    kind = _KINDS[record["notion"]]
    if set(numbers) != set(kind.__dataclass_fields__) - {"name"}:
        raise InvalidArgument(f"Guarantee: a {record['notion']} record has the wrong fields.")
    return kind(**numbers)
