"""Costs known only through their divergences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbayes.privacy.bounds import RenyiBound
from dpbayes.privacy.pld import epsilon_of


def gaussian_bound(mu: float) -> RenyiBound:
    return RenyiBound(lambda order: 0.5 * order * mu**2)


def gaussian_delta(mu: float, epsilon: float) -> float:
    upper = stats.norm.logsf(epsilon / mu - mu / 2)
    return float(math.exp(upper) - math.exp(epsilon + stats.norm.logsf(epsilon / mu + mu / 2)))


@given(st.floats(0.01, 3), st.floats(0, 10))
@settings(max_examples=40)
def test_a_bound_that_a_gaussian_meets_is_never_below_that_gaussian(mu: float, epsilon: float) -> None:
    assert gaussian_bound(mu).delta(epsilon) >= gaussian_delta(mu, epsilon)


@given(st.floats(0.01, 3), st.floats(-12, -0.5))
@settings(max_examples=40)
def test_epsilon_and_delta_use_the_same_best_order(mu: float, log_delta: float) -> None:
    bound, delta = gaussian_bound(mu), 10.0**log_delta
    assert bound.delta(bound.epsilon(delta)) == pytest.approx(delta, rel=1e-4) or bound.epsilon(delta) == 0.0


def test_the_bound_ends_at_its_last_order() -> None:
    bound = RenyiBound(lambda order: order, last_order=4.0)
    assert bound.renyi(math.nextafter(4.0, 0.0)) == math.nextafter(4.0, 0.0)
    assert bound.renyi(4.0) == math.inf
    assert bound.renyi(math.inf) == math.inf


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_the_distribution_of_a_bound_dominates_the_gaussian_it_describes(mu: float) -> None:
    pld = gaussian_bound(mu).pld(0.05 * mu)
    for epsilon in np.linspace(0.0, 6 * mu, 30):
        assert float(pld.delta(epsilon)) >= gaussian_delta(mu, epsilon)


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_the_distribution_of_a_bound_is_not_much_looser_than_its_best_order(mu: float) -> None:
    bound = gaussian_bound(mu)
    assert epsilon_of(bound.pld(0.02 * mu), 1e-6) == pytest.approx(bound.epsilon(1e-6), rel=0.01)


@pytest.mark.parametrize("mu", [0.1, 2.0])
def test_the_masses_of_the_distribution_of_a_bound_sum_to_one(mu: float) -> None:
    ((_, masses, infinity),) = gaussian_bound(mu).pld(0.05 * mu).directions
    assert masses.sum() + infinity == pytest.approx(1.0, abs=1e-10)
