"""Calibration lands on the private side of its target, and near it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.dirichlet import UnroundedDirichlet
from dpbayes.privacy import AdaptiveDP
from dpbayes.privacy.calibrate import (
    Family,
    Target,
    _search,
    adaptive_limit,
    both,
    calibrate,
    calibrate_together,
    fit_to_limit,
    guarantee_of,
)
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.guarantee import Charged, Guarantee
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)


def gaussian(unit: Unit = REPLACE) -> Family[Gaussian]:
    return Family(name="gaussian", make=lambda sigma: Gaussian(sigma=sigma, unit=unit))


def laplace(unit: Unit = REPLACE) -> Family[Laplace]:
    return Family(name="laplace", make=lambda scale: Laplace(scale=scale, unit=unit))


def dirichlet(weight: float = 1.0, unit: Unit = REPLACE) -> Family[UnroundedDirichlet]:
    return Family(
        name="dirichlet", make=lambda alpha: UnroundedDirichlet(weight=weight, concentration=alpha, unit=unit)
    )


def published(weight: float = 1.0) -> Family[UnroundedDirichlet]:
    return Family(
        name="dirichlet",
        make=lambda alpha: UnroundedDirichlet(weight=weight, concentration=alpha, unit=REPLACE).published(),
    )


def lightest(concentration: float) -> Family[UnroundedDirichlet]:
    """The weight itself is searched: less of it is safer."""
    return Family(
        name="weight",
        make=lambda weight: UnroundedDirichlet(weight=weight, concentration=concentration, unit=REPLACE),
        larger_is_safer=False,
    )


def assert_lands(cost: Cost, target: Guarantee) -> None:
    gap = target.gap(cost)
    assert gap <= 0
    assert gap >= -1e-9 * max(1.0, target.size)


FAMILIES = {"gaussian": gaussian(), "dirichlet": dirichlet(), "published": published(), "weight": lightest(20.0)}
TARGETS = [
    ApproxDP(epsilon=1.0, delta=1e-6),
    ApproxDP(epsilon=0.05, delta=1e-9),
    ApproxDP(epsilon=8.0, delta=1e-4),
    RDP(order=5.0, epsilon=0.1),
    RDP(order=1.5, epsilon=2.0),
    TCDP(rho=0.05, omega=6.0),
]


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_meet_the_target_and_nearly_so(name: str, target: Guarantee, times: int) -> None:
    assert_lands(Cost.of(calibrate(FAMILIES[name], target, times=times), times), target)


@given(st.floats(0.01, 20), st.floats(-12, -2), st.floats(-1, 1), st.sampled_from([REPLACE, CHANGE]))
@settings(max_examples=25)
def test_any_approximate_target_is_met(epsilon: float, log_delta: float, log_weight: float, unit: Unit) -> None:
    target = ApproxDP(epsilon=epsilon, delta=10.0**log_delta)
    assert_lands(Cost.of(calibrate(dirichlet(10.0**log_weight, unit), target)), target)
    assert_lands(Cost.of(calibrate(gaussian(unit), target)), target)


@given(st.floats(1.01, 100), st.floats(-3, 1), st.integers(1, 50))
@settings(max_examples=40)
def test_any_renyi_target_is_met(order: float, log_epsilon: float, times: int) -> None:
    target = RDP(order=order, epsilon=10.0**log_epsilon)
    assert_lands(Cost.of(calibrate(dirichlet(), target, times=times), times), target)


@pytest.mark.parametrize("target", [PureDP(epsilon=0.7), ZCDP(rho=0.1)], ids=str)
def test_laplace_noise_meets_pure_and_concentrated_targets(target: Guarantee) -> None:
    assert_lands(Cost.of(calibrate(laplace(), target, times=3), 3), target)


def test_releases_alongside_others_share_the_budget() -> None:
    spent = Cost.of(Gaussian(sigma=8.0, unit=REPLACE), 3)
    target = ApproxDP(epsilon=2.0, delta=1e-6)
    found = calibrate(dirichlet(), target, times=5, alongside=spent)
    assert_lands(spent + Cost.of(found, 5), target)
    assert found.concentration > calibrate(dirichlet(), target, times=5).concentration


@pytest.mark.parametrize("family", [gaussian(), laplace(), dirichlet()], ids=["gaussian", "laplace", "dirichlet"])
def test_members_of_a_family_land_on_their_target_together_with_what_else_is_bought(family: Family[Priced]) -> None:
    target = ApproxDP(epsilon=1.5, delta=1e-6)
    others = (Laplace(scale=8, unit=REPLACE), Gaussian(sigma=40, unit=REPLACE))
    members = calibrate_together(family, [1.0, 2.0, 2.0, 5.0], target, alongside=others)
    assert members[1] == members[2]
    assert_lands(Cost.total((*members, *others)), target)


def test_members_keep_their_proportions() -> None:
    one, other = calibrate_together(gaussian(), [1.0, 3.0], ApproxDP(epsilon=1, delta=1e-6))
    assert other.sigma == pytest.approx(3 * one.sigma, rel=1e-12)


def test_exact_accounting_needs_less_concentration_than_published() -> None:
    for target in TARGETS:
        exact, paper = calibrate(dirichlet(), target), calibrate(published(), target)
        assert exact.concentration < paper.concentration


@pytest.mark.parametrize("target", [PureDP(epsilon=1.0), ZCDP(rho=1.0)], ids=str)
def test_targets_that_no_dirichlet_draw_meets_are_refused(target: Guarantee) -> None:
    with pytest.raises(TargetUnreachable, match="dirichlet"):
        calibrate(dirichlet(), target)


def test_a_budget_that_is_already_spent_is_refused() -> None:
    spent = Cost.of(Stated(epsilon_stated=3.0, delta_stated=0.0, unit=REPLACE, what="a map"))
    with pytest.raises(TargetUnreachable, match="larger ε"):
        calibrate(gaussian(), ApproxDP(epsilon=1.0, delta=1e-6), alongside=spent)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None])
def test_the_number_of_releases_is_whole_and_positive(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="times"):
        calibrate(gaussian(), RDP(order=2.0, epsilon=1.0), times=bad)


ALONGSIDE = {
    "laplace": Cost.of(Laplace(scale=1.02, unit=CHANGE)),
    "stated": Cost.of(Stated(epsilon_stated=0.97, delta_stated=1e-8, unit=CHANGE, what="elsewhere")),
    "two laplace": Cost.of(Laplace(scale=2.1, unit=CHANGE), 2),
    "mixture": Cost.of(Laplace(scale=1.3, unit=CHANGE)) + Cost.of(Gaussian(sigma=30.0, unit=CHANGE)),
    "gaussian": Cost.of(Gaussian(sigma=4.3, unit=CHANGE)),
}


@pytest.mark.parametrize("name", ALONGSIDE)
def test_a_target_that_other_releases_leave_room_under_is_reached(name: str) -> None:
    """Also where those releases alone exceed the Rényi target from which searches begin."""
    spent, delta = ALONGSIDE[name], 1e-6
    target = ApproxDP(epsilon=spent.epsilon(delta) + 0.05, delta=delta)
    fitting = Cost.of(Gaussian(sigma=2000.0, unit=CHANGE))
    assert target.gap(spent + fitting) <= 0
    made = calibrate(gaussian(CHANGE), target, alongside=spent, tolerance=1e-4)
    assert -1e-3 <= target.gap(spent + Cost.of(made)) <= 0
    assert made.sigma <= 2000.0


def test_a_target_that_other_releases_exceed_is_refused() -> None:
    spent = Cost.of(Laplace(scale=0.9, unit=CHANGE))
    with pytest.raises(TargetUnreachable, match="larger ε"):
        calibrate(gaussian(CHANGE), ApproxDP(epsilon=1.0, delta=1e-6), alongside=spent)


@pytest.mark.parametrize("larger_is_safer", [True, False])
def test_where_every_parameter_meets_the_target_the_search_ends_far_on_the_unsafe_side(larger_is_safer: bool) -> None:
    cost = Cost.of(Laplace(scale=100.0, unit=CHANGE))
    found = _search(lambda _: cost, PureDP(epsilon=1.0), "noise", larger_is_safer=larger_is_safer, start=1.0)
    assert -80.0 <= math.log(found) * (1 if larger_is_safer else -1) < -20.0


UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)
NUMBERS: list[tuple[dict[str, float], Guarantee]] = [
    ({"epsilon": 1.0}, PureDP(epsilon=1.0)),
    ({"epsilon": 1.0, "delta": 1e-6}, ApproxDP(epsilon=1.0, delta=1e-6)),
    ({"epsilon": 1.0, "order": 4.0}, RDP(order=4.0, epsilon=1.0)),
    ({"rho": 0.1}, ZCDP(rho=0.1)),
    ({"rho": 0.1, "omega": 9.0}, TCDP(rho=0.1, omega=9.0)),
]
COST = Cost.of(Gaussian(sigma=9.0, unit=UNIT))


@pytest.mark.parametrize(("numbers", "named"), NUMBERS)
def test_numbers_name_a_guarantee(numbers: dict[str, float], named: Guarantee) -> None:
    missing = {name: None for name in ("epsilon", "delta", "order", "rho", "omega") if name not in numbers}
    assert guarantee_of(**numbers, **missing) == named


@pytest.mark.parametrize("names", ["", "delta", "epsilon rho", "omega", "rho delta", "epsilon delta order"])
def test_other_combinations_are_refused(names: str) -> None:
    with pytest.raises(InvalidArgument, match="another combination"):
        guarantee_of(**dict.fromkeys(names.split(), 2.0))


@pytest.mark.parametrize("limit", [None, AdaptiveDP(epsilon=2.0, delta=1e-6)])
def test_a_target_is_as_strict_as_its_strictest_part_and_says_what_it_promises(limit: AdaptiveDP | None) -> None:
    promise, also = ApproxDP(epsilon=1.0, delta=1e-6), ZCDP(rho=0.001)
    target = both(Target(promise=promise, also=(PureDP(epsilon=3.0),), charged=limit and Charged(limit, (COST,))), also)
    assert target.also == (also, PureDP(epsilon=3.0))
    assert target.gap(COST) > 0
    assert target.part(COST) >= max(each.part(COST) for each in (promise, *target.also))
    assert target.amount(COST) == target.gap(COST) + 1.0
    for name in ("name", "size", "letter", "epsilon_delta", "exception", "pure", "quantity", "sketch", "plain"):
        assert getattr(target, name) == getattr(promise, name)
    assert target.record() == promise.record()
    assert target.of_size(0.5) == promise.of_size(0.5)
    assert str(target) == str(promise)
    assert target.share(2).gap(COST) >= promise.share(2).gap(COST)
    alone = Target(promise=promise, charged=limit and Charged(limit))
    assert alone.gap(COST) == (promise.gap(COST) if limit is None else max(limit.used([COST]) - 1, promise.gap(COST)))


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_the_record_of_a_priced_target_is_that_of_the_rule(rule: str) -> None:
    limit = adaptive_limit(ApproxDP(epsilon=2.0, delta=1e-6), rule)  # type: ignore[arg-type]
    goal = fit_to_limit(ApproxDP(epsilon=1.0, delta=1e-6), limit)
    assert goal.charged == Charged(limit)
    assert goal.record()["notion"] == ("adaptive-dp" if rule == "gaussian" else "approx-dp")
    assert adaptive_limit(limit) is limit
