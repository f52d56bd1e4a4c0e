"""Conversions between notions of privacy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import best_order, renyi_to_delta, renyi_to_epsilon, tcdp_to_epsilon

orders = st.floats(1.01, 1e4)
divergences = st.floats(1e-6, 50)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The exact profile of a Gaussian mechanism, whose divergence is ½·λ·μ²."""
    tail = stats.norm.logsf(epsilon / mu - mu / 2), epsilon + stats.norm.logsf(epsilon / mu + mu / 2)
    return float(math.exp(tail[0]) - math.exp(tail[1]))


@given(orders, divergences, st.floats(1e-12, 0.5))
def test_epsilon_and_delta_are_two_readings_of_one_formula(order: float, renyi: float, delta: float) -> None:
    epsilon = renyi_to_epsilon(order, renyi, delta)
    assert epsilon >= 0
    assert renyi_to_delta(order, renyi, epsilon) <= delta * (1 + 1e-9 * order)
    if epsilon > 0:
        assert renyi_to_delta(order, renyi, epsilon) == pytest.approx(delta, rel=1e-9 * order)


@given(st.floats(0.05, 5), st.floats(0, 20))
def test_the_conversion_never_claims_less_than_a_gaussian_mechanism_costs(mu: float, epsilon: float) -> None:
    best = min(renyi_to_delta(1 + x, 0.5 * (1 + x) * mu**2, epsilon) for x in (0.01, 0.1, 0.5, 1, 3, 10, 40, 200))
    assert best >= gaussian_delta(mu, epsilon)


@given(orders, divergences, st.floats(1e-12, 0.4))
def test_a_larger_delta_never_needs_a_larger_epsilon(order: float, renyi: float, delta: float) -> None:
    assert renyi_to_epsilon(order, renyi, 2 * delta) <= renyi_to_epsilon(order, renyi, delta)


def test_infinite_orders_and_divergences_have_their_plain_meaning() -> None:
    assert renyi_to_epsilon(math.inf, 0.7, 1e-6) == 0.7
    assert renyi_to_epsilon(2.0, math.inf, 1e-6) == math.inf
    assert renyi_to_delta(math.inf, 0.7, 0.7) == 0.0
    assert renyi_to_delta(math.inf, 0.7, 0.6) == 1.0
    assert renyi_to_delta(3.0, math.inf, 5.0) == 1.0


def test_delta_is_a_probability() -> None:
    assert renyi_to_delta(2.0, 100.0, 0.0) == 1.0
    assert 0.0 <= renyi_to_delta(1e6, 1.0, 1e4) < 1e-300


@given(st.floats(1e-6, 5), st.floats(1.01, 100), st.floats(1e-12, 0.5))
def test_the_tcdp_conversion_is_lemma_1_of_its_paper_and_joins_both_branches(
    rho: float, omega: float, delta: float
) -> None:
    depth = math.log(1 / delta)
    value = tcdp_to_epsilon(rho, omega, delta)
    near, far = rho + 2 * math.sqrt(rho * depth), rho * omega + depth / (omega - 1)
    assert value == pytest.approx(near if depth <= (omega - 1) ** 2 * rho else far, rel=1e-12)
    assert value <= far * (1 + 1e-12)
    assert value >= near * (1 - 1e-12)


def test_zcdp_is_tcdp_without_end() -> None:
    assert tcdp_to_epsilon(0.1, math.inf, 1e-5) == pytest.approx(0.1 + 2 * math.sqrt(0.1 * math.log(1e5)))
    assert tcdp_to_epsilon(math.inf, 2.0, 1e-5) == math.inf


@pytest.mark.parametrize("minimum", [1.0 + 1e-4, 1.5, 30.0, 1e6])
def test_the_best_order_is_found_over_ten_decades(minimum: float) -> None:
    found = best_order(lambda order: (math.log(order - 1) - math.log(minimum - 1)) ** 2)
    assert found - 1 == pytest.approx(minimum - 1, rel=1e-3)


def test_the_best_order_avoids_infinities() -> None:
    assert best_order(lambda order: math.inf if order > 4 else -order) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("bad", [1.0, 0.5, -2.0, math.nan, True, "two", None])
def test_orders_lie_above_one(bad: object) -> None:
    for convert in (renyi_to_epsilon, renyi_to_delta):
        with pytest.raises(InvalidArgument, match="order"):
            convert(bad, 0.1, 0.1)
    with pytest.raises(InvalidArgument, match="order"):
        tcdp_to_epsilon(0.1, bad, 0.1)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, math.nan, True, "1e-5", None])
def test_deltas_lie_between_zero_and_one(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="delta"):
        renyi_to_epsilon(2.0, 0.1, bad)
    with pytest.raises(InvalidArgument, match="delta"):
        tcdp_to_epsilon(0.1, 2.0, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1"])
def test_epsilons_are_finite_and_not_negative(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        renyi_to_delta(2.0, 0.1, bad)
