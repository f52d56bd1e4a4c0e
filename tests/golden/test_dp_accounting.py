"""Agreement with dp-accounting, Google's accountant, on discrete Gaussian and Laplace noise."""

from __future__ import annotations

import pytest
from dp_accounting.pld import privacy_loss_distribution as dots

from dpbayes import Adjacency, Cost, Gaussian, Laplace, PrivacyUnit

CHANGE = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
REPLACE = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)


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
