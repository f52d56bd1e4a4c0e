"""dp-accounting, Google's accountant: agreement on integer noise, and its composition against sums of our own.

dpbayes takes two things from it: the composition of distributions (``self_compose``, ``compose`` and
``get_delta_for_epsilon``), and the distribution that connects the dots of a profile. Both meet a closed form here.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as dots

from dpbayes import Cost, Gaussian, Laplace, Unit
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.schema import Adjacency

CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)
REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)


def gaussian(sigma: float, interval: float) -> dots.PrivacyLossDistribution:
    return dots.from_discrete_gaussian_mechanism(
        sigma, value_discretization_interval=interval, truncation_bound=round(14 * sigma), use_connect_dots=True
    )


def laplace(scale: float, interval: float) -> dots.PrivacyLossDistribution:
    return dots.from_discrete_laplace_mechanism(
        1.0 / scale, value_discretization_interval=interval, use_connect_dots=True
    )


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("sigma", [2.0, 10.0])
def test_one_discrete_gaussian(sigma: float, delta: float) -> None:
    theirs = gaussian(sigma, 1e-4).get_epsilon_for_delta(delta)
    ours = Gaussian(sigma=sigma, unit=CHANGE).epsilon(delta)
    assert ours <= theirs * (1 + 1e-9)
    assert ours == pytest.approx(theirs, abs=2e-4)


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_one_discrete_laplace(scale: float, delta: float) -> None:
    theirs = laplace(scale, 1e-4).get_epsilon_for_delta(delta)
    ours = Laplace(scale=scale, unit=CHANGE).epsilon(delta)
    assert ours <= theirs * (1 + 1e-9)
    assert ours == pytest.approx(theirs, abs=2e-4)


@pytest.mark.parametrize("sigma", [3.0, 10.0])
def test_a_replaced_record_is_two_cells_that_move(sigma: float) -> None:
    both = gaussian(sigma, 1e-4).self_compose(2)
    ours = Gaussian(sigma=sigma, unit=REPLACE).epsilon(1e-6)
    assert ours == pytest.approx(both.get_epsilon_for_delta(1e-6), abs=5e-4)
    both = laplace(sigma, 1e-4).self_compose(2)
    ours = Laplace(scale=sigma, unit=REPLACE).epsilon(1e-6)
    assert ours == pytest.approx(both.get_epsilon_for_delta(1e-6), abs=5e-4)


def test_compositions_of_both_kinds_of_noise_converge_to_ours_from_above() -> None:
    ours = (Cost.of(Gaussian(sigma=12.0, unit=CHANGE), 20) + Cost.of(Laplace(scale=25.0, unit=CHANGE), 30)).epsilon(
        1e-6
    )
    theirs = [
        gaussian(12.0, interval)
        .self_compose(20)
        .compose(laplace(25.0, interval).self_compose(30))
        .get_epsilon_for_delta(1e-6)
        for interval in (1e-2, 1e-3, 1e-4)
    ]
    assert theirs[0] > theirs[1] > theirs[2]
    assert ours == pytest.approx(theirs[2], rel=1e-3)
    assert ours > theirs[2] - 2 * (theirs[1] - theirs[2]) - 1e-6


# -- composed costs against closed forms of our own ----------------------------------------------------------------


def convolved(one: np.ndarray, times: int) -> np.ndarray:
    """The law of a sum, by direct convolution: positive terms only, so every digit of a tail is right."""
    law = np.ones(1)
    for _ in range(times):
        law = np.convolve(law, one)
    return law


def delta_of(losses: np.ndarray, probabilities: np.ndarray, epsilon: float) -> float:
    above = losses > epsilon
    return float(-(probabilities[above] * np.expm1(epsilon - losses[above])).sum())


@pytest.mark.parametrize(("sigma", "times"), [(3.0, 2), (5.0, 12), (12.0, 40)])
def test_composed_gaussian_noise_against_the_law_of_the_sum_of_its_noise(sigma: float, times: int) -> None:
    """The loss (2k+1)/2σ² is linear in the noise, so that of a composition is known from the sum."""
    reach = math.ceil(12 * sigma)
    k = np.arange(-reach, reach + 1)
    one = np.exp(-(k**2) / (2 * sigma**2))
    law = convolved(one / one.sum(), times)
    total = np.arange(-times * reach, times * reach + 1)
    losses = (2.0 * total + times) / (2 * sigma**2)
    cost = Cost.of(Gaussian(sigma=sigma, unit=CHANGE), times)
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = cost.epsilon(delta)
        assert 0.98 * delta <= delta_of(losses, law, epsilon) <= delta * (1 + 1e-9)
        assert 0.98 <= delta_of(losses, law, epsilon) / cost.delta(epsilon) <= 1 + 1e-9


@pytest.mark.parametrize(("scale", "times"), [(2.0, 2), (8.0, 15), (40.0, 100)])
@pytest.mark.parametrize("unit", [CHANGE, REPLACE], ids=["add-remove", "replace-one"])
def test_composed_laplace_noise_against_binomial_sums(scale: float, times: int, unit: Unit) -> None:
    """Every cell that moves is one randomised response: the losses of n of them follow a binomial law."""
    responses = times * (2 if unit.replaces else 1)
    cost = Cost.of(Laplace(scale=scale, unit=unit), times)
    for delta in (1e-2, 1e-5, 1e-8):
        epsilon = cost.epsilon(delta)
        with mp.workdps(40):
            truth = 1 / (1 + mp.exp(-1 / mp.mpf(scale)))
            exact = mp.fsum(
                mp.binomial(responses, j)
                * truth**j
                * (1 - truth) ** (responses - j)
                * -mp.expm1(epsilon - (2 * j - responses) / mp.mpf(scale))
                for j in range(responses + 1)
                if (2 * j - responses) / mp.mpf(scale) > epsilon
            )
        assert exact <= delta * (1 + 1e-9)
        assert exact >= 0.5 * delta or epsilon >= 0.99 * responses / scale


def test_gaussian_and_laplace_noise_together_against_a_double_sum() -> None:
    sigma, scale, normal, flat = 6.0, 9.0, 5, 7
    k = np.arange(-80, 81)
    one = np.exp(-(k**2) / (2 * sigma**2))
    law = convolved(one / one.sum(), normal)
    gaussian_losses = (2.0 * np.arange(-normal * 80, normal * 80 + 1) + normal) / (2 * sigma**2)
    truth = 1 / (1 + math.exp(-1 / scale))
    responses = convolved(np.array([1 - truth, truth]), flat)
    laplace_losses = (2.0 * np.arange(flat + 1) - flat) / scale
    losses = np.add.outer(gaussian_losses, laplace_losses).ravel()
    probabilities = np.multiply.outer(law, responses).ravel()
    cost = Cost.of(Gaussian(sigma=sigma, unit=CHANGE), normal) + Cost.of(Laplace(scale=scale, unit=CHANGE), flat)
    for delta in (1e-3, 1e-6, 1e-9):
        exact = delta_of(losses, probabilities, cost.epsilon(delta))
        assert 0.97 * delta <= exact <= delta * (1 + 1e-9)


def test_composed_thresholds_are_betrayed_once_or_priced_as_their_noise() -> None:
    mechanism, times = Threshold(scale=4.0, threshold=30, unit=CHANGE), 6
    truth = 1 / (1 + math.exp(-1 / 4.0))
    responses = convolved(np.array([1 - truth, truth]), times)
    losses = (2.0 * np.arange(times + 1) - times) / 4.0
    lost = 1 - (1 - mechanism.least_delta) ** times
    cost = Cost.of(mechanism, times)
    for epsilon in (0.1, 0.5, 1.0, 1.4, 2.0):
        exact = lost + (1 - lost) * delta_of(losses, responses, epsilon)
        assert exact * (1 - 1e-9) <= cost.delta(epsilon) <= 1.05 * exact


@pytest.mark.parametrize(("sharpness", "times"), [(0.1, 20), (0.5, 8), (2.0, 3)])
def test_composed_selections_cost_no_less_than_any_of_their_kind(sharpness: float, times: int) -> None:
    """Two candidates, with losses t and t − ε, at every t: binomial sums."""
    cost, worst = Cost.of(Selection(sharpness=sharpness, unit=CHANGE), times), 0.0
    for epsilon in np.linspace(0.0, 1.0, 6) * sharpness * times:
        claimed = cost.delta(float(epsilon))
        for t in np.linspace(0.02, 0.98, 25) * sharpness:
            likely = (math.exp(sharpness) - math.exp(t)) / math.expm1(sharpness)
            law = convolved(np.array([1 - likely, likely]), times)
            exact = delta_of(t * times - sharpness * np.arange(times, -1, -1.0), law, float(epsilon))
            assert exact <= claimed + 1e-12
            worst = max(worst, exact / max(claimed, 1e-3))
    assert worst >= 0.8


def test_a_cost_composes_with_a_distribution_made_elsewhere() -> None:
    unit = Unit(adjacency=Adjacency.ADD_REMOVE)
    ours, interval = Cost.of(Gaussian(sigma=12.0, unit=unit), 3), 1e-3
    together = ours.to_pld(interval).compose(laplace(25.0, interval))
    reference = gaussian(12.0, interval).self_compose(3).compose(laplace(25.0, interval))
    both = ours + Cost.of(Laplace(scale=25.0, unit=unit))
    assert together.get_epsilon_for_delta(1e-6) == pytest.approx(reference.get_epsilon_for_delta(1e-6), rel=1e-6)
    assert together.get_epsilon_for_delta(1e-6) == pytest.approx(both.epsilon(1e-6), rel=1e-4)
