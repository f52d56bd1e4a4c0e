"""From a guarantee to parameters: one search for every mechanism, which holds an end that meets the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.solve import TOLERANCE, safe_root
from dpbayes.schema.unit import PrivacyUnit

FARTHEST = 80.0
"""The search spans e^±80 around its start."""

M = TypeVar("M", bound=Priced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Generic[M]):
    """Mechanisms that differ in one positive number."""

    name: str
    make: Callable[[float], M]
    larger_is_safer: bool = True
    start: float = 1.0


class Calibrated(Protocol):
    """A class of mechanisms that differ in one number."""

    def family(self, unit: PrivacyUnit) -> Family[Any]:
        """All of them."""


def calibrate(
    family: Family[M] | Calibrated,
    target: Guarantee,
    unit: PrivacyUnit | str | None = None,
    *,
    times: int = 1,
    alongside: Cost | None = None,
    tolerance: float = TOLERANCE,
) -> M:
    """The member of a family, or of a class such as ``Gaussian`` with its unit, that just meets the target.

    Its price is that of ``times`` releases, alongside other costs. It lands on the private side, within 1e-9 of the
    target, or raises TargetUnreachable.

    >>> from dpbayes import ApproxDP, Gaussian
    >>> round(calibrate(Gaussian, ApproxDP(1, 1e-6), "add-remove", times=10).sigma, 2)
    13.36
    """
    checks.positive_integer("calibrate", times=times)
    if not isinstance(family, Family):
        if unit is None:
            raise InvalidArgument('calibrate: expected the unit of the mechanism, such as "replace-one".')
        family = family.family(PrivacyUnit.of(unit))
    if alongside is not None and target.gap(alongside) > 0:
        raise _unreachable(family.name, target)

    def cost(parameter: float) -> Cost:
        one = Cost.of(family.make(parameter), times)
        return one if alongside is None else alongside + one

    parameter = _search(
        cost,
        target,
        family.name,
        larger_is_safer=family.larger_is_safer,
        start=family.start,
        tolerance=tolerance,
    )
    return family.make(parameter)


def calibrate_together(
    family: Family[M], factors: Sequence[float], target: Guarantee, *, alongside: Sequence[Priced] = ()
) -> tuple[M, ...]:
    """Members of one family, their parameters in these proportions, that just meet the target together.

    >>> from dpbayes import Adjacency, ApproxDP, Gaussian, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
    >>> noise = Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))
    >>> one, other = calibrate_together(noise, [1.0, 2.0], ApproxDP(epsilon=1, delta=1e-6))
    >>> round(other.sigma / one.sigma, 12)
    2.0
    """
    made = {factor: replace(family, make=_scaled(family.make, factor)) for factor in set(factors)}
    return calibrate_all([made[factor] for factor in factors], target, alongside=alongside)


def calibrate_all(
    families: Sequence[Family[M]], target: Guarantee, *, alongside: Sequence[Priced] = ()
) -> tuple[M, ...]:
    """One member of each family, the parameters in the proportions of their starts, that just meet the target together.

    >>> from dpbayes import Adjacency, Gaussian, PrivacyUnit, RDP
    >>> unit = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
    >>> noise = Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))
    >>> one, other = calibrate_all([noise, replace(noise, start=2.0)], RDP(order=2, epsilon=1))
    >>> round(other.sigma / one.sigma, 12)
    2.0
    """
    first = families[0]

    def members(parameter: float) -> tuple[M, ...]:
        made = {family: family.make(parameter * (family.start / first.start)) for family in families}
        return tuple(made[family] for family in families)

    def cost(parameter: float) -> Cost:
        return Cost.total((*members(parameter), *alongside))

    return members(_search(cost, target, first.name, larger_is_safer=first.larger_is_safer, start=first.start))


def _scaled(make: Callable[[float], M], factor: float) -> Callable[[float], M]:
    return lambda parameter: make(parameter * factor)


def _unreachable(name: str, target: Guarantee) -> TargetUnreachable:
    return TargetUnreachable(
        f"calibrate: no {name} parameters meet {target}; its cost stays above it. "
        "Ask for another notion of privacy, a larger budget or fewer releases."
    )


def _search(
    cost: Callable[[float], Cost],
    target: Guarantee,
    name: str,
    *,
    larger_is_safer: bool,
    start: float,
    tolerance: float = TOLERANCE,
) -> float:
    """The parameter whose cost just meets the target, searched in its logarithm."""
    towards_safety, stride = (1.0 if larger_is_safer else -1.0), 0.5
    cheap, reach = target.sketch if target.exception else None, _reach(cost, start, towards_safety)
    # the sketch is no bound: other releases may exceed it and still leave room under the target
    if cheap is not None and cheap.gap(cost(start * math.exp(towards_safety * reach))) <= 0:
        start = _search(cost, cheap, name, larger_is_safer=larger_is_safer, start=start, tolerance=1e-3)
        stride = 0.03  # such a start is near
        reach = _reach(cost, start, towards_safety)
    origin = math.log(start)

    def gap(steps: float) -> float:
        return target.gap(cost(math.exp(origin + towards_safety * steps)))

    # Walk from the start to the first change of sign, doubling the stride.
    here, at = gap(0.0), 0.0
    inward = 1.0 if here > 0 else -1.0
    while True:
        following = at + inward * stride
        if following > reach > at:
            following = reach
        if following > reach or following < -FARTHEST:
            if here > 0:
                raise _unreachable(name, target)
            return math.exp(origin + towards_safety * at)
        value = gap(following)
        if (value > 0) != (here > 0):
            break
        here, at, stride = value, following, 2.0 * stride
    safe, unsafe = (following, at) if value <= 0 else (at, following)
    steps = safe_root(gap, safe=safe, unsafe=unsafe, tolerance=tolerance * min(1.0, target.size))
    return math.exp(origin + towards_safety * steps)


def _reach(cost: Callable[[float], Cost], start: float, towards_safety: float) -> float:
    """How far the search may go towards safety, in logarithms: some families end, as doubles carry no larger gamma."""
    reach = FARTHEST
    while reach > 1.0:
        try:
            cost(start * math.exp(towards_safety * reach))
        except InvalidArgument:
            reach *= 0.9
        else:
            break
    return reach
