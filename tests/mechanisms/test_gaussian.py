"""Discrete Gaussian noise against enumeration of both cells."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy import reference
from tests.privacy.reference import relative_error

from dpbayes import Gaussian, Unit
from dpbayes.mechanisms.gaussian import LARGEST_EXACT_SIGMA
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)


def enumerated(sigma: float, unit: Unit, reach: int) -> dict[mp.mpf, mp.mpf]:
    noise = reference.discrete_gaussian(sigma, reach)
    return reference.two_cell_pmf(noise, (1, -1) if unit.replaces else (1, 0))


@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
@pytest.mark.parametrize(("sigma", "reach"), [(0.3, 6), (0.7, 10), (1.0, 14), (2.0, 22)])
def test_the_profile_is_that_of_the_enumerated_pair(sigma: float, reach: int, unit: Unit) -> None:
    mechanism = Gaussian(sigma=sigma, unit=unit)
    with mp.workdps(50):
        law = enumerated(sigma, unit, reach)
        for epsilon in (0.0, 0.1, 0.5 / sigma, 1.3 / sigma, 3.1 / sigma):
            truth = reference.law_delta(law, epsilon)
            assert mechanism.delta(epsilon) >= truth * (1 - mp.mpf("1e-30"))
            assert mechanism.delta(epsilon) == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
@pytest.mark.parametrize(("sigma", "reach"), [(0.3, 8), (0.7, 14), (1.0, 18)])
@pytest.mark.parametrize("order", [1.0001, 1.3, 2.0, 2.5, 4.75])
def test_the_divergence_is_that_of_the_enumerated_pair(sigma: float, reach: int, order: float, unit: Unit) -> None:
    with mp.workdps(50):
        truth = reference.law_renyi(enumerated(sigma, unit, reach), order)
    claim = Gaussian(sigma=sigma, unit=unit).renyi(order)
    assert -1e-15 <= relative_error(claim, truth) <= 1e-9


@given(st.floats(0.05, 60), st.floats(1.0001, 1e4))
def test_the_divergence_never_exceeds_the_concentrated_line(sigma: float, order: float) -> None:
    for unit in (REPLACE, CHANGE):
        mechanism = Gaussian(sigma=sigma, unit=unit)
        assert 0 < mechanism.renyi(order) <= mechanism.concentrated(order) * order * (1 + 1e-15)


@given(st.floats(0.2, 8))
def test_the_divergence_grows_with_the_order(sigma: float) -> None:
    mechanism = Gaussian(sigma=sigma, unit=CHANGE)
    values = [mechanism.renyi(order) for order in np.linspace(1.01, 6, 60)]
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 29.6), (1.0, 36.0), (5.0, 7.0), (20.0, 1.9)])
def test_tails_are_followed_as_far_as_a_float_can_tell(sigma: float, epsilon: float) -> None:
    reach = int(45 * sigma)
    with mp.workdps(40):
        noise = reference.discrete_gaussian(sigma, reach)
        law = {(2 * k + 1) / (2 * mp.mpf(sigma) ** 2): noise[k + reach] for k in range(-reach, reach + 1)}
        truth = reference.law_delta(law, epsilon)
        claim = Gaussian(sigma=sigma, unit=CHANGE).delta(epsilon)
    assert claim > 0
    assert claim == pytest.approx(float(truth), rel=1e-8)


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-100, 1e-250])
@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
def test_epsilon_is_just_on_the_private_side(delta: float, unit: Unit) -> None:
    mechanism = Gaussian(sigma=3.0, unit=unit)
    epsilon = mechanism.epsilon(delta)
    assert mechanism.delta(epsilon) <= delta
    assert mechanism.delta(epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
def test_large_noise_costs_what_continuous_noise_costs(unit: Unit) -> None:
    from scipy.stats import norm

    sigma = 200.0
    mu = math.sqrt(unit.sensitivity.l2_squared) / sigma
    mechanism = Gaussian(sigma=sigma, unit=unit)
    for epsilon in (0.0, mu, 4 * mu):
        continuous = norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
        assert mechanism.delta(epsilon) == pytest.approx(continuous, rel=2e-3)


def test_beyond_the_largest_exact_sigma_the_bound_takes_over_above_the_exact_cost() -> None:
    inside = Gaussian(sigma=LARGEST_EXACT_SIGMA, unit=CHANGE)
    outside = Gaussian(sigma=LARGEST_EXACT_SIGMA * (1 + 1e-12), unit=CHANGE)
    assert inside.exact
    assert not outside.exact
    assert inside.epsilon(1e-6) <= outside.epsilon(1e-6) <= 1.3 * inside.epsilon(1e-6)


@given(st.floats(1, 50), st.integers(2, 5), st.sampled_from(list(Adjacency)), st.floats(1.1, 20))
@settings(max_examples=40)
def test_several_rows_are_priced_by_the_squared_distance(
    sigma: float, rows: int, adjacency: Adjacency, order: float
) -> None:
    mechanism = Gaussian(sigma=sigma, unit=Unit(adjacency=adjacency, max_rows=rows))
    squared = rows**2 * (2 if adjacency is Adjacency.REPLACE_ONE else 1)
    assert mechanism.renyi(order) == pytest.approx(order * squared / (2 * sigma**2), rel=1e-12)
    assert not mechanism.exact


def test_the_cost_of_several_rows_covers_all_of_them_in_one_cell() -> None:
    unit = Unit(adjacency=Adjacency.ADD_REMOVE, max_rows=3)
    mechanism = Gaussian(sigma=4.0, unit=unit)
    with mp.workdps(40):
        noise = reference.discrete_gaussian(4.0, 60)
        law = {mp.log(noise[k + 60] / noise[k + 63]): noise[k + 60] for k in range(-60, 57)}
        for epsilon in (0.1, 1.0, 3.0):
            assert mechanism.delta(epsilon) >= reference.law_delta(law, epsilon)


def test_gaussian_noise_is_never_purely_private() -> None:
    assert Gaussian(sigma=100.0, unit=REPLACE).renyi(math.inf) == math.inf


@pytest.mark.parametrize("order", [1.5, 2.5, 2.0])
def test_noise_that_hardly_ever_moves_a_count_costs_at_most_its_concentrated_bound(order: float) -> None:
    unit = Unit(adjacency="add-remove")
    assert 0 < Gaussian(sigma=0.01, unit=unit).renyi(order) <= order / (2 * 0.01**2) * (1 + 1e-12)
