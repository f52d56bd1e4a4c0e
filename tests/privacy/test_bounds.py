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
from dpbayes.privacy.bounds import (
    AtomicLoss,
    RenyiBound,
    algorithm_1,
    randomised_response,
    randomised_response_renyi,
    renyi_weights,
    trigamma,
    trigamma_bound,
)
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


def true_response_renyi(order: float, epsilon: float) -> mp.mpf:
    with mp.workdps(80):
        order, epsilon = mp.mpf(order), mp.mpf(epsilon)
        moment = (mp.exp(order * epsilon) + mp.exp((1 - order) * epsilon)) / (1 + mp.exp(epsilon))
        return mp.log(moment) / (order - 1)


@given(st.floats(-12, 2.5), st.floats(-6, 6))
def test_the_divergence_of_randomised_response_keeps_every_digit_and_the_private_side(
    log_e: float, log_o: float
) -> None:
    epsilon, order = 10.0**log_e, 1.0 + 10.0**log_o
    claim = randomised_response_renyi(order, epsilon)
    assert -1e-16 <= relative_error(claim, true_response_renyi(order, epsilon)) <= 1e-13
    assert claim <= epsilon


def test_the_divergence_of_randomised_response_tends_to_its_epsilon() -> None:
    assert randomised_response_renyi(math.inf, 0.7) == 0.7
    assert randomised_response_renyi(1e9, 0.7) == pytest.approx(0.7, rel=1e-8)


@given(st.floats(0.01, 20), st.floats(0, 1.2))
def test_the_profile_of_randomised_response_is_its_closed_form(epsilon: float, share: float) -> None:
    at = share * epsilon
    with mp.workdps(40):
        e, x = mp.mpf(epsilon), mp.mpf(at)
        truth = max((mp.exp(e) - mp.exp(x)) / (1 + mp.exp(e)), mp.mpf(0))
    claim = randomised_response(epsilon).delta(at)
    assert claim >= truth * (1 - mp.mpf("1e-15")) - mp.mpf("1e-15") * epsilon
    assert claim <= truth * (1 + mp.mpf("2e-10")) + mp.mpf("1e-15") * epsilon


@given(st.floats(0.01, 5), st.floats(-15, -0.5))
def test_epsilon_is_the_smallest_with_that_delta(epsilon: float, log_delta: float) -> None:
    loss, delta = randomised_response(epsilon), 10.0**log_delta
    found = loss.epsilon(delta)
    assert loss.delta(found) <= delta
    assert found == 0.0 or loss.delta(found * (1 - 1e-6)) > delta * (1 - 1e-9)


def test_an_unreached_loss_has_no_delta() -> None:
    loss = AtomicLoss(np.array([1.0, -1.0]), np.array([0.7, 0.3]))
    assert loss.delta(1.0) == 0.0
    assert math.copysign(1.0, loss.delta(2.0)) == 1.0
    assert loss.epsilon(0.9) == 0.0


@pytest.mark.parametrize("highest", [1e-3, 1.0, 40.0])
def test_a_pair_made_of_a_profile_has_it_at_every_step_and_lies_above_between(highest: float) -> None:
    """The profile of a truncated normal loss, given at 65 points."""
    at = np.linspace(-1.0, 1.0, 401) * highest
    weights = np.exp(-0.5 * (5.0 * at / highest) ** 2) / (1.0 + np.exp(-at))  # P, the mirror image times e^L
    true = AtomicLoss(at, weights / weights.sum())
    steps = np.linspace(0.0, highest, 65)
    made = AtomicLoss.of_profile(np.array([*(true.delta(each) for each in steps[:-1]), 0.0]), highest)
    assert math.fsum(made.probabilities) == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(made.probabilities * np.exp(-made.losses)) == pytest.approx(1.0, abs=1e-12)
    for epsilon in steps[:-1].tolist():
        assert made.delta(epsilon) == pytest.approx(true.delta(epsilon), rel=1e-8, abs=1e-15)
    for epsilon in (0.5 * (steps[1:] + steps[:-1])).tolist():
        assert made.delta(epsilon) >= true.delta(epsilon) * (1 - 1e-9)
    for order in (1.001, 2.0, 9.0, 400.0):
        assert true.renyi(order) * (1 - 1e-9) <= made.renyi(order) <= 1.02 * true.renyi(order)


def test_a_bound_that_is_no_profile_gives_the_largest_profile_below() -> None:
    made = AtomicLoss.of_profile(np.array([0.3, 0.3, 0.3, 0.0]), 0.6)
    assert made.probabilities.min() >= 0.0
    assert made.delta(0.0) == pytest.approx(math.tanh(0.3), rel=1e-6)  # randomised response of the highest loss


def test_the_weights_of_a_divergence_keep_their_digits_where_losses_are_small() -> None:
    losses, order = np.array([1e-7, -1e-7, 3e-3, -2.0, 5.0]), 2.5
    with mp.workdps(40):
        exact = [float(mp.expm1(1.5 * mp.mpf(x)) + 1.5 * mp.expm1(-mp.mpf(x))) for x in losses.tolist()]
    np.testing.assert_allclose(renyi_weights(losses, order), exact, rtol=1e-9)
