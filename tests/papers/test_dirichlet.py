"""[RDP] and [tCDP] as printed, held to their equations and to the exact cost that they bound."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import reference

from dpbayes.errors import InvalidArgument
from dpbayes.papers.dirichlet import equation_6, equation_10, tail, theorem_1, theorem_2
from dpbayes.privacy.bounds import trigamma, trigamma_bound
from dpbayes.privacy.convert import renyi_to_epsilon, tcdp_to_epsilon


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


@given(powers(-2, 1), st.floats(1.5, 200), powers(-12, -1))
def test_equation_10_is_algorithm_1_followed_by_lemma_3(weight: float, order: float, delta: float) -> None:
    concentration = 1 + 4 * (order - 1) * weight
    bound = trigamma_bound(order, weight=weight, concentration=concentration, l2_squared=2, linf=1)
    value = equation_10(weight=weight, order=order, delta=delta)
    assert value == pytest.approx(renyi_to_epsilon(order, bound, delta), rel=1e-9)
    direct = bound + math.log(order - 1) - (math.log(delta) + order * math.log(order)) / (order - 1)
    assert value == pytest.approx(max(direct, 0.0), rel=1e-9)


@given(powers(-1, 3), st.floats(0.01, 0.99), powers(-2, 1))
def test_theorem_1_gives_a_line_above_the_exact_divergences(concentration: float, share: float, weight: float) -> None:
    gamma = share * concentration
    rho, omega = theorem_1(concentration=concentration, gamma=gamma, weight=weight)
    assert omega == pytest.approx(1 + gamma / weight)
    for part in (0.01, 0.5, 0.999):
        order = 1 + part * (omega - 1)
        assert reference.replaced_renyi(weight, concentration, concentration, order) <= rho * order


@given(powers(-0.5, 2), st.floats(0.05, 0.9), st.integers(1, 9))
def test_a_threshold_on_the_counts_adds_to_the_prior_in_theorem_1(
    concentration: float, share: float, least: int
) -> None:
    gamma = share * concentration
    with_threshold = theorem_1(concentration=concentration, gamma=gamma, weight=2.0, least_count=least)
    assert with_threshold == theorem_1(concentration=concentration + 2.0 * least, gamma=gamma, weight=2.0)


@given(powers(0, 3), st.floats(0.05, 0.95), powers(-10, -1))
def test_equation_6_is_theorem_1_followed_by_lemma_1(concentration: float, share: float, delta: float) -> None:
    gamma = share * concentration
    rho, omega = theorem_1(concentration=concentration, gamma=gamma)
    assert equation_6(concentration=concentration, gamma=gamma, delta=delta) == tcdp_to_epsilon(rho, omega, delta)


@given(powers(-0.5, 3), powers(-10, -1), powers(-1, 1))
def test_theorem_2_is_the_smallest_epsilon_over_all_gammas(concentration: float, delta: float, weight: float) -> None:
    epsilon, best, largest = theorem_2(concentration=concentration, delta=delta, weight=weight)
    depth = -math.log(delta)
    assert 0 < best <= largest < concentration
    edge = 0.5 * largest**2 * 2.0 * trigamma(concentration - largest)
    assert edge == pytest.approx(depth, rel=1e-6)
    for share in (0.02, 0.2, 0.5, 0.8, 0.95, 0.999):
        other = equation_6(concentration=concentration, gamma=share * concentration, delta=delta, weight=weight)
        assert epsilon <= other * (1 + 1e-9)
    assert epsilon == pytest.approx(
        equation_6(concentration=concentration, gamma=best, delta=delta, weight=weight), rel=1e-9
    )


def test_gamma_stays_below_the_concentration() -> None:
    with pytest.raises(InvalidArgument, match="gamma"):
        theorem_1(concentration=2.0, gamma=2.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_parameters_of_the_theorems_are_checked(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="concentration"):
        theorem_1(concentration=bad, gamma=0.5)
    with pytest.raises(InvalidArgument, match="gamma"):
        theorem_1(concentration=1.0, gamma=bad)
    with pytest.raises(InvalidArgument, match="concentration"):
        theorem_2(concentration=bad, delta=1e-5)


@pytest.mark.parametrize(
    ("first", "concentration", "beta", "eta"),
    [
        (0.3, 1.5, 120.0, 0.1),
        (0.15, 2.0, 400.0, 0.06),
        (0.5, 1.0, 50.0, 0.001),
        (0.5, 0.2, 30.0, 0.02),
        (0.9, 3.0, 1000.0, 0.004),
        (0.02, 1.0, 80.0, 0.5),
        (0.4, 5.0, 20.0, 0.03),
    ],
)
def test_tails_of_two_cells_are_those_of_50_digits_and_never_below(
    first: float, concentration: float, beta: float, eta: float
) -> None:
    """KL(p‖y) exceeds η outside of an interval around p, and y₁ has a beta law."""
    with mp.workdps(50):
        p, h = mp.mpf(first), mp.mpf(eta)

        def over(y: mp.mpf) -> mp.mpf:
            return p * mp.log(p / y) + (1 - p) * mp.log((1 - p) / (1 - y)) - h

        low, high = _crossing(over, p, mp.mpf(0)), _crossing(over, p, mp.mpf(1))
        a, b = mp.mpf(beta) * p + concentration, mp.mpf(beta) * (1 - p) + concentration
        exact = mp.betainc(a, b, 0, low, regularized=True) + mp.betainc(b, a, 0, 1 - high, regularized=True)
    found = tail(eta, [first, 1.0 - first], beta=beta, concentration=concentration)
    assert float(exact) <= found <= float(exact) * (1 + 1e-7) + 2e-9 * (found > 0.1)


def _crossing(over: Callable[[mp.mpf], mp.mpf], inside: mp.mpf, outside: mp.mpf) -> mp.mpf:
    """Where a function that is negative inside crosses zero, by bisection."""
    for _ in range(170):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if over(middle) < 0 else (inside, middle)
    return outside
