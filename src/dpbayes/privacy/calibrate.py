"""From a guarantee to parameters: one search for every mechanism, which holds an end that meets the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from scipy.special import log_ndtr

from dpbayes import _checks
from dpbayes.errors import TargetUnreachable
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import RDP, ApproxDP, Guarantee
from dpbayes.privacy.solve import safe_root

TOLERANCE = 1e-10
"""How near to the target, relative to min(1, target), a calibration lands."""

ROUGHLY = 1e-3
"""How near a search comes that only serves to begin another."""

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


def calibrate(
    family: Family[M],
    target: Guarantee,
    *,
    times: int = 1,
    alongside: Cost | None = None,
    tolerance: float = TOLERANCE,
) -> M:
    """The member of the family that just meets the target when released ``times`` times, alongside other costs.

    It lands on the private side, within 1e-9 of the target, or raises TargetUnreachable.

    >>> from dpbayes import Adjacency, ApproxDP, Gaussian, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
    >>> noise = Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))
    >>> round(calibrate(noise, ApproxDP(epsilon=1, delta=1e-6), times=10).sigma, 2)
    13.36
    """
    _checks.positive_integer("calibrate", times=times)

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


def calibrate_mix(parts: Sequence[tuple[Family[Priced], int]], target: Guarantee) -> tuple[Priced, ...]:
    """Several families under one target: each first meets its equal share alone, then all are relaxed together.

    The relaxation multiplies every parameter (or divides it, where larger means less safe) by one common
    factor, so the releases keep the proportions that equal shares gave them.
    """
    releases = sum(times for _, times in parts)
    alone = [calibrate(family, target.share(releases)) for family, _ in parts]
    parameters = [_parameter_of(family, mechanism) for (family, _), mechanism in zip(parts, alone, strict=True)]

    def members(factor: float) -> tuple[Priced, ...]:
        return tuple(
            family.make(value * factor if family.larger_is_safer else value / factor)
            for (family, _), value in zip(parts, parameters, strict=True)
        )

    def cost(factor: float) -> Cost:
        costs = [Cost.of(member, times) for member, (_, times) in zip(members(factor), parts, strict=True)]
        return sum(costs[1:], costs[0])

    return members(_search(cost, target, "mix", larger_is_safer=True, start=1.0))


def _parameter_of(family: Family[Priced], mechanism: Priced) -> float:
    for name in ("concentration", "sigma", "scale", "weight"):
        value = getattr(mechanism, name, None)
        if isinstance(value, float) and family.make(value) == mechanism:
            return value
    raise TargetUnreachable(f"calibrate: the family {family.name} does not keep its parameter in its mechanism.")


def renyi_equivalent(target: Guarantee) -> Guarantee:
    """A Rényi target about as strict as this one, and cheap to price: where searches begin.

    For (ε, δ) it is the order at which a Gaussian mechanism of that (ε, δ) would be priced best.
    """
    if not isinstance(target, ApproxDP):
        return target

    def gap(log_mu: float) -> float:
        mu = math.exp(log_mu)
        beyond = log_ndtr(0.5 * mu - target.epsilon / mu)
        tilted = target.epsilon + log_ndtr(-0.5 * mu - target.epsilon / mu)
        return float(beyond + math.log(-math.expm1(min(tilted - beyond, -1e-300)))) - math.log(target.delta)

    mu = math.exp(safe_root(gap, safe=-30.0, unsafe=5.0, tolerance=1e-3))
    order = 1.0 + math.sqrt(-2.0 * math.log(target.delta)) / mu
    return RDP(order=order, epsilon=0.5 * order * mu**2)


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
    cheap = renyi_equivalent(target)
    if cheap is not target and math.isfinite(cheap.gap(cost(start * math.exp(towards_safety * FARTHEST)))):
        start = _search(cost, cheap, name, larger_is_safer=larger_is_safer, start=start, tolerance=ROUGHLY)
        stride = 0.03
    origin = math.log(start)

    def gap(steps: float) -> float:
        return target.gap(cost(math.exp(origin + towards_safety * steps)))

    # Walk from the start to the first change of sign, doubling the stride.
    here, at = gap(0.0), 0.0
    inward = 1.0 if here > 0 else -1.0
    while True:
        following = at + inward * stride
        if abs(following) > FARTHEST:
            if here > 0:
                raise TargetUnreachable(
                    f"calibrate: no {name} parameters meet {target}; its cost stays above it. "
                    "Ask for another notion of privacy, a larger budget or fewer releases."
                )
            return math.exp(origin + towards_safety * at)
        value = gap(following)
        if (value > 0) != (here > 0):
            break
        here, at, stride = value, following, 2.0 * stride
    safe, unsafe = (following, at) if value <= 0 else (at, following)
    steps = safe_root(gap, safe=safe, unsafe=unsafe, tolerance=tolerance * min(1.0, target.size))
    return math.exp(origin + towards_safety * steps)
