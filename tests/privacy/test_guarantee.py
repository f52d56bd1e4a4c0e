"""Guarantees: targets, gaps and records."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy import AdaptiveDP
from dpbayes.privacy.calibrate import guarantee_from_record
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
GUARANTEES: list[Guarantee] = [
    PureDP(epsilon=1.5),
    ApproxDP(epsilon=1.0, delta=1e-6),
    RDP(order=5.0, epsilon=0.1),
    TCDP(rho=0.2, omega=4.0),
    ZCDP(rho=0.2),
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_records_round_trip_through_json(guarantee: Guarantee) -> None:
    assert guarantee_from_record(json.loads(json.dumps(guarantee.record()))) == guarantee


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_guarantees_are_frozen_hashable_and_say_their_numbers(guarantee: Guarantee) -> None:
    for field in fields(guarantee):
        with pytest.raises(FrozenInstanceError):
            setattr(guarantee, field.name, 2.0)
    assert hash(guarantee) == hash(guarantee_from_record(guarantee.record()))
    assert f"{guarantee.size:g}" in str(guarantee)


@pytest.mark.parametrize(
    ("guarantee", "spent"),
    [
        (PureDP(epsilon=1.5), lambda cost: cost.renyi(math.inf)),
        (ApproxDP(epsilon=1.0, delta=1e-6), lambda cost: cost.epsilon(1e-6)),
        (RDP(order=5.0, epsilon=0.1), lambda cost: cost.renyi(5.0)),
        (TCDP(rho=0.2, omega=4.0), lambda cost: cost.concentrated(4.0)),
        (ZCDP(rho=0.2), lambda cost: cost.concentrated(math.inf)),
    ],
    ids=lambda value: str(value) if not callable(value) else "",
)
def test_the_gap_is_what_is_spent_minus_what_is_allowed(guarantee: Guarantee, spent) -> None:
    for mechanism in (
        Gaussian(sigma=4.0, unit=REPLACE),
        Laplace(scale=3.0, unit=REPLACE),
        Dirichlet(weight=1.0, concentration=9.0, unit=REPLACE),
    ):
        cost = Cost.of(mechanism, 2)
        assert guarantee.gap(cost) == spent(cost) - guarantee.size


def test_dirichlet_draws_meet_no_pure_and_no_zero_concentrated_target() -> None:
    cost = Cost.of(Dirichlet(weight=1.0, concentration=1e9, unit=REPLACE))
    assert PureDP(epsilon=100.0).gap(cost) == math.inf
    assert ZCDP(rho=100.0).gap(cost) == math.inf


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_equal_shares_compose_to_the_whole(guarantee: Guarantee) -> None:
    assert guarantee.share(7).size == pytest.approx(guarantee.size / 7)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_sizes_are_positive_and_finite(bad: object) -> None:
    for make in (
        lambda: PureDP(epsilon=bad),
        lambda: ApproxDP(epsilon=bad, delta=1e-6),
        lambda: RDP(order=2.0, epsilon=bad),
    ):
        with pytest.raises(InvalidArgument, match="epsilon"):
            make()
    for make in (lambda: TCDP(rho=bad, omega=2.0), lambda: ZCDP(rho=bad)):
        with pytest.raises(InvalidArgument, match="rho"):
            make()


@pytest.mark.parametrize("bad", [1.0, 0.0, math.nan, "2", None, True])
def test_orders_and_omegas_lie_above_one(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="order"):
        RDP(order=bad, epsilon=1.0)
    with pytest.raises(InvalidArgument, match="order"):
        TCDP(rho=1.0, omega=bad)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "zcdp",
        {},
        {"notion": "magic"},
        {"notion": "zcdp"},
        {"notion": "zcdp", "rho": 0.1, "omega": 3.0},
        {"notion": "rdp", "order": 2.0},
        {"notion": "approx-dp", "epsilon": 1.0, "delta": 2.0},
        {"notion": ["zcdp"], "rho": 0.1},
    ],
)
def test_wrong_records_are_refused(record: object) -> None:
    with pytest.raises(InvalidArgument):
        guarantee_from_record(record)


@given(st.floats(0.01, 20), st.floats(-15, -1))
def test_the_sketch_of_an_epsilon_and_a_delta_is_a_renyi_guarantee(epsilon: float, log_delta: float) -> None:
    sketch = ApproxDP(epsilon=epsilon, delta=10.0**log_delta).sketch
    assert math.isfinite(sketch.epsilon)
    assert sketch.sketch is sketch


@pytest.mark.parametrize("guarantee", [*GUARANTEES, AdaptiveDP(epsilon=1.0, delta=1e-6)], ids=str)
def test_a_guarantee_describes_itself(guarantee: Guarantee) -> None:
    assert guarantee.letter == ("ρ" if hasattr(guarantee, "rho") else "ε")
    assert guarantee.quantity.startswith(guarantee.letter)
    assert guarantee.exception == getattr(guarantee, "delta", 0.0)
    assert guarantee.pure == (guarantee.name == "pure-dp")
    assert guarantee.of_size(0.25).size == 0.25
    assert bool(guarantee.in_practice) == (guarantee.epsilon_delta is None)
    assert guarantee.charged is None
    if guarantee.epsilon_delta:
        assert guarantee.epsilon_delta == (guarantee.size, guarantee.exception)
    deltas = [guarantee.profile(epsilon) for epsilon in (0.0, 0.5, 2.0, 50.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert all(0.0 <= delta <= 1.0 for delta in deltas)
