"""Losses with finitely many values."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.reference import relative_error

from dpbayes.privacy.atoms import AtomicLoss, randomised_response, randomised_response_renyi, renyi_weights


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
