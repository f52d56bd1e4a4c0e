"""[tCDP], Differential Privacy of Dirichlet Posterior Sampling: figure 1 and the numbers behind it."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from tests.privacy import reference

from dpbayes import Dirichlet, Unit
from dpbayes.papers.tcdp import equation_6, theorem_1, theorem_2
from dpbayes.privacy.convert import tcdp_to_epsilon
from dpbayes.schema import Adjacency

CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)
POSTERIOR, NEIGHBOUR = (11, 8, 65, 25, 38, 0), (11, 8, 65, 25, 38, 1)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 3.0, 5.0, 10.0])
def test_figure_1_left_actual_rho_lies_below_the_exact_claim_and_that_below_theorem_1(alpha: float) -> None:
    with mp.workdps(60):
        here, there = ([mp.mpf(c) + mp.mpf(alpha) for c in counts] for counts in (POSTERIOR, NEIGHBOUR))
    actual = max(reference.exact_renyi(here, there, 2), reference.exact_renyi(there, here, 2)) / 2
    claim = Dirichlet(weight=1.0, concentration=alpha, unit=CHANGE).concentrated(2.0)
    line = theorem_1(alpha=alpha, gamma=1.0, l2_squared=1.0, linf=1.0)
    rho = line.rho
    assert line.omega == 2.0
    assert line.exact == pytest.approx(claim)
    assert actual < claim < rho
    if alpha >= 3:
        assert actual > 0.6 * rho  # "a close approximation to the actual value"
    assert actual == pytest.approx(claim, rel=0.05)


def test_figure_1_left_the_bound_falls_with_the_prior() -> None:
    curve = [theorem_1(alpha=alpha, gamma=1.0, l2_squared=1.0).rho for alpha in np.linspace(1.1, 10, 30)]
    assert curve == sorted(curve, reverse=True)


@pytest.mark.parametrize("alpha", [2.0, 5.0, 10.0])
def test_figure_1_right_delta_decays_with_epsilon_and_theorem_2_stays_above_the_exact_cost(alpha: float) -> None:
    deltas = [1e-1, 1e-3, 1e-5, 1e-7, 1e-9]
    mechanism = Dirichlet(weight=1.0, concentration=alpha, unit=CHANGE)
    bounds = [theorem_2(alpha=alpha, delta=delta, l2_squared=1.0).printed for delta in deltas]
    assert bounds == sorted(bounds)
    for delta, bound in zip(deltas, bounds, strict=True):
        assert mechanism.epsilon(delta) < bound


def test_figure_1_right_larger_priors_are_more_private() -> None:
    for delta in (1e-3, 1e-6):
        bounds = [theorem_2(alpha=alpha, delta=delta, l2_squared=1.0).printed for alpha in (2.0, 5.0, 10.0)]
        assert bounds == sorted(bounds, reverse=True)


def test_lemma_1_from_tcdp_to_approximate_dp() -> None:
    assert tcdp_to_epsilon(0.5, 10.0, 1e-5) == pytest.approx(0.5 + 2 * math.sqrt(0.5 * math.log(1e5)))
    assert tcdp_to_epsilon(0.5, 2.0, 1e-5) == pytest.approx(0.5 * 2 + math.log(1e5))


def test_equations_6_to_8_agree_at_their_best_gamma() -> None:
    found = theorem_2(alpha=10.0, delta=1e-5)
    epsilon = found.printed
    assert epsilon == pytest.approx(3.63, abs=0.005)
    assert equation_6(alpha=10.0, gamma=found.gamma_m, delta=1e-5).printed == pytest.approx(epsilon, rel=1e-12)
    # γ_M separates the two branches of equation (6)
    line = theorem_1(alpha=10.0, gamma=found.gamma_M)
    assert math.log(1e5) == pytest.approx((line.omega - 1) ** 2 * line.rho, rel=1e-9)
    gammas = np.linspace(0.01, 0.999, 60) * 10.0
    assert min(equation_6(alpha=10.0, gamma=g, delta=1e-5).printed for g in gammas) >= epsilon * (1 - 1e-12)
