"""Targets of several guarantees at once: what a release states, and what its ledger enforces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpbayes.errors import InvalidArgument
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, Guarantee, Limit, PureDP

if TYPE_CHECKING:
    from dpbayes.privacy.adaptive import AdaptiveDP


def guarantee_of(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    order: float | None = None,
    rho: float | None = None,
    omega: float | None = None,
) -> Limit:
    """The guarantee that some numbers name, or a sentence about what is missing.

    >>> guarantee_of(epsilon=1.0, delta=1e-6)
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    match (epsilon, delta, order, rho, omega):
        case (float() | int() as e, None, None, None, None):
            return PureDP(epsilon=e)
        case (float() | int() as e, float() | int() as d, None, None, None):
            return ApproxDP(epsilon=e, delta=d)
        case (float() | int() as e, None, float() | int() as o, None, None):
            return RDP(order=o, epsilon=e)
        case (None, None, None, float() | int() as r, None):
            return ZCDP(rho=r)
        case (None, None, None, float() | int() as r, float() | int() as w):
            return TCDP(rho=r, omega=w)
        case _:
            raise InvalidArgument(
                "Guarantee: expected epsilon alone (pure), epsilon with delta, epsilon with order (RDP), rho (zCDP) or "
                "rho with omega (tCDP); got another combination."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """A guarantee that is stated, and another that has to hold as well."""

    stated: Guarantee
    enforced: Guarantee

    @property
    def name(self) -> str:
        """That of the stated one."""
        return self.stated.name

    @property
    def size(self) -> float:
        """That of the stated one."""
        return self.stated.size

    def amount(self, cost: Cost) -> float:
        """In terms of the stated one."""
        return self.gap(cost) + self.size

    def part(self, cost: Cost) -> float:
        """The larger of both shares."""
        return max(self.stated.part(cost), self.enforced.part(cost))

    def at(self, part: float) -> float:
        """In terms of the stated one."""
        return self.stated.at(part)

    def gap(self, cost: Cost) -> float:
        """The larger gap; the dearer question is asked only if the cheap one is answered."""
        enforced = self.enforced.gap(cost)
        return enforced if enforced > 0 else max(enforced, self.stated.gap(cost))

    def share(self, releases: int) -> Guarantee:
        """An equal part of each."""
        return Both(stated=self.stated.share(releases), enforced=self.enforced.share(releases))

    def record(self) -> dict[str, float | str]:
        """JSON form of the stated one."""
        return self.stated.record()

    def __str__(self) -> str:
        return str(self.stated)


def stated(target: Guarantee) -> Guarantee:
    """The guarantee that was asked for, without what its ledger enforces beside it and how it prices it.

    >>> from dpbayes import AdaptiveDP
    >>> stated(Both(stated=AdaptiveDP(epsilon=1.0, delta=1e-6), enforced=PureDP(epsilon=2.0)))
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    while isinstance(target, Both):
        target = target.stated
    delta = getattr(target, "delta", None)
    return target if delta is None else ApproxDP(epsilon=target.size, delta=delta)


def both(target: Guarantee, also: Guarantee) -> Both:
    """The target, and another guarantee that has to hold as well; ``beside`` and ``stated`` stay what they are."""
    inner = target.stated if isinstance(target, Both) else target
    held = Both(stated=inner, enforced=also)
    return Both(stated=held, enforced=target.enforced) if isinstance(target, Both) else held


def beside(target: Guarantee) -> Fitting | None:
    """What is left of the limit that a target has to fit into; None where no ledger limits it."""
    enforced = getattr(target, "enforced", None)
    return enforced if isinstance(enforced, Fitting) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Whatever fits into a limit beside charges."""

    name: ClassVar[str] = "fitting"
    limit: AdaptiveDP
    costs: tuple[Cost, ...]

    @property
    def size(self) -> float:
        """One: the whole limit."""
        return 1.0

    def amount(self, cost: Cost) -> float:
        """The share of the limit that is used with it."""
        return self.limit.used([*self.costs, cost])

    def part(self, cost: Cost) -> float:
        """The same."""
        return self.amount(cost)

    def at(self, part: float) -> float:
        """The same."""
        return part

    def gap(self, cost: Cost) -> float:
        """That share minus one."""
        return self.amount(cost) - 1.0

    def share(self, releases: int) -> Guarantee:  # noqa: ARG002 - Guarantee
        """There is no part of it: the stated guarantee is shared."""
        return self

    def record(self) -> dict[str, float | str]:
        """JSON form of the limit."""
        return self.limit.record()

    def __str__(self) -> str:
        return str(self.limit)
