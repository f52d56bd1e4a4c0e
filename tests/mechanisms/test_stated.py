"""Releases known only by a statement about them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Adjacency, Cost, Gaussian, PrivacyUnit, Stated
from dpbayes.errors import InvalidArgument

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)


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
