"""Targets: the numbers that name them, and a promise beside what else has to hold."""

from __future__ import annotations

import pytest

from dpbayes import RDP, TCDP, ZCDP, AdaptiveDP, Adjacency, ApproxDP, Cost, Gaussian, PrivacyUnit, PureDP
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.target import Target, adaptive_limit, both, guarantee_of, priced

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
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
    target = both(Target(promise=promise, also=(PureDP(epsilon=3.0),), limit=limit, charged=(COST,)), also)
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
    alone = Target(promise=promise, limit=limit)
    assert alone.gap(COST) == (promise.gap(COST) if limit is None else max(limit.used([COST]) - 1, promise.gap(COST)))


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_the_record_of_a_priced_target_is_that_of_the_rule(rule: str) -> None:
    limit = adaptive_limit(ApproxDP(epsilon=2.0, delta=1e-6), rule)  # type: ignore[arg-type]
    goal = priced(ApproxDP(epsilon=1.0, delta=1e-6), limit)
    assert goal.limit == limit
    assert goal.record()["notion"] == ("adaptive-dp" if rule == "gaussian" else "approx-dp")
    assert adaptive_limit(limit) is limit
