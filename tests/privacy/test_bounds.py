"""Costs known only through their divergences, and the papers' bounds, held to their equations and the exact cost."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.privacy import reference
from tests.privacy.reference import relative_error

from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.privacy.bounds import RenyiBound, algorithm_1, trigamma, trigamma_bound
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


# -- the papers' bound on a draw ---------------------------------------------------------------------------------------


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


@given(powers(-5, 12))
def test_trigamma_keeps_fourteen_digits(x: float) -> None:
    with mp.workdps(50):
        assert abs(relative_error(trigamma(x), mp.polygamma(1, mp.mpf(x)))) < 1e-14


@given(powers(-3, 2), powers(-1, 6), st.floats(0.001, 0.999))
def test_the_trigamma_bound_is_above_the_exact_divergence_and_meets_it_for_small_weights(
    weight: float, concentration: float, share: float
) -> None:
    order = 1.0 + share * concentration / weight
    assume(order > 1.0)
    bound = trigamma_bound(order, weight=weight, concentration=concentration, l2_squared=2, linf=1)
    exact = reference.replaced_renyi(weight, concentration, concentration, order)
    assert exact <= bound * (1 + 1e-12)
    small = trigamma_bound(2.0, weight=1e-4 * concentration, concentration=concentration, l2_squared=2, linf=1)
    assert small == pytest.approx(
        float(reference.replaced_renyi(1e-4 * concentration, concentration, concentration, 2.0)), rel=1e-3
    )


def test_the_trigamma_bound_is_infinite_from_its_last_order_on() -> None:
    at = {"weight": 0.5, "concentration": 3.0, "l2_squared": 2.0, "linf": 2.0}
    assert math.isfinite(trigamma_bound(3.999, **at))
    assert trigamma_bound(4.0, **at) == math.inf
    assert trigamma_bound(50.0, **at) == math.inf


@given(st.floats(1.1, 50), powers(-3, 1), st.floats(0.5, 8), st.floats(0.5, 3))
def test_algorithm_1_solves_its_equation_from_below(
    order: float, epsilon: float, l2_squared: float, linf: float
) -> None:
    weight, concentration = algorithm_1(order=order, epsilon=epsilon, l2_squared=l2_squared, linf=linf)
    with mp.workdps(40):
        r = mp.mpf(weight)
        spent = order * r**2 * l2_squared * mp.polygamma(1, 1 + 3 * (mp.mpf(order) - 1) * r * linf) / 2
    assert -1e-12 <= relative_error(float(spent), mp.mpf(epsilon)) <= 1e-14
    assert concentration == pytest.approx(1 + 4 * (order - 1) * weight * linf, rel=1e-13)


@given(st.floats(1.1, 50), powers(-3, 0))
def test_without_slack_algorithm_1_has_the_closed_form_of_remark_1(order: float, epsilon: float) -> None:
    weight, concentration = algorithm_1(order=order, epsilon=epsilon, slack=lambda weight: 0.0)
    assert weight == pytest.approx(math.sqrt(2 * epsilon / (order * 2.0 * math.pi**2 / 6)), rel=1e-12)
    assert concentration == pytest.approx(1 + (order - 1) * weight, rel=1e-13)


@given(st.floats(1.5, 20), powers(-2, 1), st.integers(1, 20))
def test_a_public_lower_bound_allows_more_weight_as_remark_2_says(order: float, epsilon: float, least: int) -> None:
    weight, concentration = algorithm_1(order=order, epsilon=epsilon, least_count=least)
    assert weight > algorithm_1(order=order, epsilon=epsilon)[0]
    spent = 0.5 * order * weight**2 * 2 * trigamma(1 + weight * least + 3 * (order - 1) * weight)
    assert spent == pytest.approx(epsilon, rel=1e-12)
    exact = reference.replaced_renyi(weight, concentration + weight * least, concentration + weight * least, order)
    assert exact <= epsilon


def test_a_slack_that_grows_too_fast_is_refused() -> None:
    with pytest.raises(TargetUnreachable, match="slack"):
        algorithm_1(order=2.0, epsilon=1.0, slack=lambda weight: 1e3 * weight * weight)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_parameters_of_the_published_bounds_are_checked(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        algorithm_1(order=2.0, epsilon=bad)
    with pytest.raises(InvalidArgument, match="linf"):
        algorithm_1(order=2.0, epsilon=1.0, linf=bad)


@pytest.mark.parametrize("bad", [1.0, 0.3, math.nan, "2"])
def test_algorithm_1_needs_an_order_above_one(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="order"):
        algorithm_1(order=bad, epsilon=1.0)


def test_the_least_count_of_the_published_bound_is_no_debt() -> None:
    with pytest.raises(InvalidArgument, match="least_count"):
        algorithm_1(order=5, epsilon=1.0, least_count=-1.0)
