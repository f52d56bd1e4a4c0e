"""Releases known only by a statement about them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import RDP, Cost, Gaussian, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.stated import StatedRDP
from dpbayes.privacy import AdaptiveDP
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)


def stated(epsilon: object = 1.0, delta: object = 1e-6) -> Stated:
    return Stated(epsilon_stated=epsilon, delta_stated=delta, unit=UNIT, what="a table of another office")


@given(st.floats(0.01, 5), st.sampled_from([0.0, 1e-9, 1e-3, 0.3]), st.floats(0, 6))
def test_the_profile_is_randomised_response_betrayed_with_probability_delta(e: float, d: float, at: float) -> None:
    expected = d + (1 - d) * max((math.exp(e) - math.exp(at)) / (1 + math.exp(e)), 0.0)
    assert stated(e, d).delta(at) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(st.floats(0.01, 5), st.sampled_from([0.0, 1e-9, 1e-3]), st.floats(-12, -0.01))
def test_epsilon_and_delta_agree(e: float, d: float, log_delta: float) -> None:
    delta = 10.0**log_delta
    epsilon = stated(e, d).epsilon(delta)
    if delta < d:
        assert epsilon == math.inf
    else:
        assert epsilon <= e
        assert stated(e, d).delta(epsilon) <= delta * (1 + 1e-9)


def test_a_statement_meets_itself() -> None:
    assert stated(0.7, 1e-5).epsilon(1e-5) == 0.7
    assert stated(0.7, 1e-5).delta(0.7) == pytest.approx(1e-5)


def test_a_pure_statement_is_concentrated_and_an_approximate_one_is_not() -> None:
    assert stated(0.4, 0.0).concentrated(math.inf) == pytest.approx(0.08)
    assert stated(0.4, 0.0).renyi(math.inf) == 0.4
    assert stated(0.4, 1e-9).concentrated(2.0) == stated(0.4, 1e-9).renyi(2.0) == math.inf


def test_it_dominates_a_mechanism_that_meets_it() -> None:
    gaussian = Gaussian(sigma=4.0, unit=UNIT)
    statement = stated(gaussian.epsilon(1e-6), 1e-6)
    for epsilon in (0.0, 0.2, 0.7, 1.0):
        assert statement.delta(epsilon) >= gaussian.delta(epsilon) * (1 - 1e-9)
    for times in (2, 10):
        assert Cost.of(statement, times).epsilon(1e-4) >= Cost.of(gaussian, times).epsilon(1e-4)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_its_epsilon_is_positive(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        stated(bad, 0.0)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2.0, math.nan, "0", None, True])
def test_its_delta_is_a_probability(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="delta"):
        stated(1.0, bad)


# -- statements at one Rényi order ------------------------------------------------------------------------------------


def rdp(order: float, epsilon: float) -> StatedRDP:
    return StatedRDP(order=order, epsilon_stated=epsilon, unit=UNIT, what="a table of another office")


@given(st.lists(st.tuples(st.floats(1.1, 60), st.floats(1e-3, 2)), min_size=1, max_size=4))
def test_statements_of_different_orders_add_up_at_the_smallest(parts: list[tuple[float, float]]) -> None:
    cost = Cost.total([rdp(order, epsilon) for order, epsilon in parts])
    smallest = min(order for order, _ in parts)
    assert cost.renyi(smallest) == pytest.approx(sum(epsilon for _, epsilon in parts))
    assert cost.renyi(math.nextafter(smallest, 1)) == cost.renyi(smallest)
    assert cost.renyi(smallest + 0.01) == math.inf


def test_a_mechanism_with_the_stated_divergence_costs_no_more_than_the_statement() -> None:
    for sigma in (1.0, 3.0, 8.0):
        for order in (2.0, 6.0, 30.0):
            true, said = Gaussian(sigma=sigma, unit=UNIT), rdp(order, Gaussian(sigma=sigma, unit=UNIT).renyi(order))
            for at in (1.1, order):
                assert true.renyi(at) <= said.renyi(at)
            assert true.epsilon(1e-6) <= said.epsilon(1e-6)
            assert true.concentrated(order) <= said.concentrated(order)
            together = Cost.of(said, 3)
            assert Cost.of(true, 3).epsilon(1e-6) <= together.epsilon(1e-6)


def test_the_best_order_of_a_statement_is_its_own_where_delta_is_small() -> None:
    said = rdp(5.0, 0.1)
    assert said.epsilon(1e-6) == pytest.approx(0.1 + math.log(4) - (math.log(1e-6) + 5 * math.log(5)) / 4)
    assert said.delta(said.epsilon(1e-6)) <= 1e-6 * (1 + 1e-9)


def test_rules_admit_a_statement_whose_order_reaches_the_limits_own() -> None:
    limit = AdaptiveDP(epsilon=2.0, delta=1e-6, rule="renyi")
    assert limit.part(Cost.of(rdp(limit.order + 1, 0.01))) == pytest.approx(0.01 / limit.divergence)
    assert limit.part(Cost.of(rdp(limit.order - 1, 0.01))) > 10 * limit.part(Cost.of(rdp(limit.order, 0.01)))
    assert limit.part(Cost.of(rdp(3.0, 0.01))) > 1
    wide = AdaptiveDP(epsilon=2.0, delta=1e-6, rule="gaussian")
    high, low = (wide.part(Cost.of(rdp(order, 0.01))) for order in (60.0, 3.0))
    assert high < 1 < low
    assert RDP(order=4, epsilon=0.5).gap(Cost.of(rdp(4, 0.2)) + Cost.of(rdp(9, 0.2))) == pytest.approx(-0.1)
    assert RDP(order=5, epsilon=0.5).gap(Cost.of(rdp(4, 0.2))) == math.inf
