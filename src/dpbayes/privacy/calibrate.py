"""Targets, and the parameters that meet them.

A target is the guarantee that some numbers or a record name, priced as the ledger that is charged prices it. One search
for every mechanism holds an end that meets it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, TypeVar

from dpbayes.base import checks
from dpbayes.base.codec import READERS
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.convert import TOLERANCE, gaussian_epsilon, gaussian_mu, safe_root
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, Charged, Guarantee, Limit, PureDP, Rule
from dpbayes.schema.unit import Unit

G = TypeVar("G", bound=Guarantee)


def guarantee_of(**numbers: float | None) -> Limit:
    """The guarantee that some numbers name: epsilon, delta, order, rho, omega.

    >>> guarantee_of(epsilon=1.0, delta=1e-6)
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    given = {name: number for name, number in numbers.items() if number is not None}
    for kind in (PureDP, ApproxDP, RDP, ZCDP, TCDP):
        if set(given) == {field.name for field in fields(kind)}:
            return kind(**given)
    raise InvalidArgument(
        "Guarantee: expected epsilon alone (pure), epsilon with delta, epsilon with order (RDP), rho (zCDP) or "
        "rho with omega (tCDP); got another combination."
    )


def guarantee_of_text(text: str) -> Limit:
    """A guarantee as Python writes it.

    >>> guarantee_of_text("RDP(5, 1)"), guarantee_of_text("ZCDP(rho=0.1)")
    (RDP(order=5, epsilon=1), ZCDP(rho=0.1))
    """
    kinds = {kind.__name__: kind for kind in (PureDP, ApproxDP, RDP, ZCDP, TCDP)}
    times, name, given = called("guarantee", text)
    if times != 1 or name not in kinds:
        raise InvalidArgument(f"guarantee: cannot read {text[:80]!r}. Write RDP(5, 1), ZCDP(0.1) or TCDP(0.1, 20).")
    return kinds[name](**by_name("guarantee", text, tuple(field.name for field in fields(kinds[name])), given))


Given = tuple[tuple[object, ...], dict[str, object]]


def called(owner: str, text: str) -> tuple[int, str, Given]:
    """How often, what, and with which numbers: ``3 * Gaussian(4)``; nothing is executed.

    >>> called("price", "3 * Gaussian(sigma=4)")
    (3, 'Gaussian', ((), {'sigma': 4}))
    """
    try:
        node, times = ast.parse(text.strip(), mode="eval").body, 1
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            times, node = ast.literal_eval(node.left), node.right
        if isinstance(node, ast.Name):
            return times, node.id, ((), {})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and type(times) is int:
            keywords = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
            return times, node.func.id, (tuple(map(ast.literal_eval, node.args)), keywords)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    raise InvalidArgument(
        f"{owner}: cannot read {text[:80]!r}. Write a name and its numbers, as in Gaussian(4) or 3 * Dirichlet(1, 10)."
    )


def by_name(owner: str, text: str, names: Sequence[str], given: Given) -> dict[str, Any]:
    """Numbers by their names, which come in this order; each is given, and given once."""
    listed, keywords = given
    found = {**dict(zip(names, listed, strict=False)), **keywords}
    if len(listed) > len(names) or len(found) < len(listed) + len(keywords) or set(found) != set(names):
        raise InvalidArgument(f"{owner}: expected {', '.join(names)}, got {text[:80]!r}.")
    return found


def guarantee_from_record(record: object) -> Limit:
    """Read the JSON form back.

    >>> guarantee_from_record(ZCDP(rho=0.5).record())
    ZCDP(rho=0.5)
    """
    kinds = {kind.name: kind for kind in (PureDP, ApproxDP, RDP, TCDP, ZCDP, AdaptiveDP)}
    if not isinstance(record, dict) or record.get("notion") not in tuple(kinds):
        raise InvalidArgument(f"Guarantee: expected a record whose notion is one of {', '.join(kinds)}.")
    numbers = {key: value for key, value in record.items() if key != "notion"}
    kind = kinds[record["notion"]]
    expected = {field.name for field in fields(kind)}
    if set(numbers) != expected - ({"order"} if numbers.get("rule") == "gaussian" else set()):
        raise InvalidArgument(f"Guarantee: a {record['notion']} record has the wrong fields.")
    return kind(**numbers)


READERS[Guarantee] = READERS[Limit] = guarantee_from_record


def _of_promise(name: str) -> Any:
    return property(lambda target: getattr(target.promise, name), doc="That of the promise.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Guarantee):
    """A promise, guarantees that have to hold as well, and a limit into which it has to fit beside charges."""

    promise: Guarantee
    also: tuple[Guarantee, ...] = ()
    charged: Charged | None = None

    name, size, letter, epsilon_delta, plain = (
        _of_promise(each) for each in ("name", "size", "letter", "epsilon_delta", "plain")
    )

    @property
    def sketch(self) -> RDP | None:
        """A Rényi guarantee that has to hold as well, or else that of the promise."""
        return next((each for each in self.also if isinstance(each, RDP)), self.promise.sketch)

    def amount(self, cost: Cost) -> float:
        """In terms of the promise."""
        return self.gap(cost) + self.promise.size

    def gap(self, cost: Cost) -> float:
        """The largest gap; the dearer questions are asked only if the cheap ones are answered."""
        worst = -math.inf if self.charged is None else self.charged.limit.used(self.charged.plus(cost)) - 1.0
        for each in (*self.also, self.promise):
            if worst > 0:
                break
            worst = max(worst, each.gap(cost))
        return worst

    def part(self, cost: Cost) -> float:
        """The largest share."""
        fits = 0.0 if self.charged is None else self.charged.limit.used(self.charged.plus(cost))
        return max(fits, *(each.part(cost) for each in (*self.also, self.promise)))

    def at(self, part: float) -> float:
        """In terms of the promise."""
        return self.promise.at(part)

    def of_size(self, size: float) -> Guarantee:
        """The promise with another ε or ρ."""
        return self.promise.of_size(size)

    def share(self, releases: int) -> Guarantee:
        """An equal part of each guarantee; the limit stays whole."""
        also = tuple(each.share(releases) for each in self.also)
        return replace(self, promise=self.promise.share(releases), also=also)

    def record(self) -> dict[str, float | str]:
        """JSON form of the promise."""
        return self.promise.record()

    def __str__(self) -> str:
        return str(self.promise)


def both(target: Guarantee, other: Guarantee) -> Target:
    """A target that has to meet another guarantee as well."""
    made = target if isinstance(target, Target) else Target(promise=target)
    return replace(made, also=(other, *made.also))


def check_guarantee(owner: str, target: object) -> None:
    """Refuse what promises nothing by itself, such as a bare number."""
    if not hasattr(target, "gap"):
        size = target if isinstance(target, (int, float)) else 1.0
        raise InvalidArgument(
            f"{owner}: expected a guarantee, got {target!r}. Write dp.PureDP({size!r}) or dp.ApproxDP({size!r}, 1e-6)."
        )


def adaptive_limit(limit: G, rule: Rule = "gaussian", slack: float | None = None) -> G | AdaptiveDP:
    """An (ε, δ) limit as one that adaptivity cannot break; others are sums, and last as they are."""
    check_guarantee("Ledger", limit)
    if not isinstance(limit, ApproxDP):
        return limit
    return AdaptiveDP(epsilon=limit.epsilon, delta=limit.delta, rule=rule, slack=slack)


def fit_to_limit(target: Guarantee, limit: Limit, costs: Sequence[Cost] | Charged = ()) -> Guarantee:
    """An (ε, δ) target as an adaptive limit prices it beside charges: what meets it keeps the target.

    If the target is not above what is left, what meets it also fits, whatever its mechanism. Other targets stay as
    they are.

    >>> fit_to_limit(ApproxDP(epsilon=1.0, delta=1e-6), AdaptiveDP(epsilon=2.0, delta=1e-6)).plain
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    if not isinstance(limit, AdaptiveDP) or not isinstance(target, ApproxDP):
        return target
    slack, order = limit.slack or 0.0, limit.order or 2.0
    if limit.rule == "renyi":
        whole = gaussian_epsilon(limit.shift, limit.delta)
        shift = gaussian_mu(target.epsilon / limit.epsilon * whole, target.delta)
        own = Target(promise=target, also=(RDP(order=order, epsilon=limit.divergence * (shift / limit.shift) ** 2),))
    else:
        share = target.delta * slack / limit.delta
        own = Target(promise=AdaptiveDP(epsilon=target.epsilon, delta=target.delta, slack=share))
    charged = costs if isinstance(costs, Charged) else Charged(limit, tuple(costs))
    return own if target.epsilon > limit.left(charged) else replace(own, charged=charged)


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

    def family(self, unit: Unit) -> Family[Any]:
        """All of them."""


def calibrate(
    family: Family[M] | Calibrated,
    target: Guarantee,
    unit: Unit | str | None = None,
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
    check_guarantee("calibrate", target)
    if not isinstance(family, Family):
        if unit is None:
            raise InvalidArgument('calibrate: expected the unit of the mechanism, such as "replace-one".')
        family = family.family(Unit.of(unit))

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

    >>> from dpbayes import ApproxDP, Gaussian, Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.ADD_REMOVE)
    >>> noise = Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))
    >>> one, other = calibrate_together(noise, [1.0, 2.0], ApproxDP(epsilon=1, delta=1e-6))
    >>> round(other.sigma / one.sigma, 12)
    2.0
    """
    made = {each: replace(family, make=lambda at, by=each: family.make(at * by)) for each in set(factors)}  # type: ignore[misc]
    return calibrate_all([made[factor] for factor in factors], target, alongside=alongside)


def calibrate_all(
    families: Sequence[Family[M]], target: Guarantee, *, alongside: Sequence[Priced] = ()
) -> tuple[M, ...]:
    """One member of each family, the parameters in the proportions of their starts, that just meet the target together.

    >>> from dpbayes import RDP, Gaussian, Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.ADD_REMOVE)
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


def _unreachable(name: str, target: Guarantee) -> TargetUnreachable:
    return TargetUnreachable(
        f"calibrate: no {name} parameters meet {target}; its cost stays above it. "
        "Ask for another notion of privacy, a larger ε or fewer releases."
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
    """The parameter whose cost just meets the target, searched in its logarithm, up to e^±80 around its start."""
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
        if following > reach or following < -80.0:
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
    reach = 80.0
    while reach > 1.0:
        try:
            cost(start * math.exp(towards_safety * reach))
        except InvalidArgument:
            reach *= 0.9
        else:
            break
    return reach
