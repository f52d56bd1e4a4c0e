"""[tCDP] as printed, held to its own equations, to simulation and to the exact cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import multinomial
from tests.privacy import reference

from dpbayes.base.errors import DpbayesError
from dpbayes.papers import rdp, tcdp
from dpbayes.privacy.bounds import trigamma
from dpbayes.privacy.convert import tcdp_to_epsilon

P = [0.5, 0.3, 0.2]


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


# -- sections 2 and 3 --------------------------------------------------------------------------------------------------


def test_rho_of_two_laws_is_their_largest_divergence_per_order() -> None:
    q = [0.25, 0.35, 0.4]
    found = float(tcdp.definition_2_3(P, q, omega=6))
    orders = np.linspace(1.001, 6, 500)
    largest = max(float(rdp.definition_2_3(P, q, order=order)) / order for order in orders)
    assert largest * (1 - 1e-9) <= found <= largest * 1.001
    assert float(tcdp.definition_2_3(P, q, omega=math.inf)) >= found * (1 - 1e-9)
    assert found >= max(float(rdp.kl(P, q)), float(rdp.kl(q, P)))
    assert float(tcdp.definition_2_3([1, 0], [0.5, 0.5], omega=2)) == math.inf


def test_concentrated_prices_add_up_to_the_smaller_omega() -> None:
    both = tcdp.compose((0.1, 30), (0.2, 4))
    assert (both.rho, both.omega) == (pytest.approx(0.3), 4.0)
    with pytest.raises(DpbayesError, match="pairs"):
        tcdp.compose()


def test_the_density_integrates_to_one() -> None:
    assert quad(lambda t: float(tcdp.density([t, 1 - t], alpha=[2, 3.5])), 0, 1)[0] == pytest.approx(1.0)
    assert float(tcdp.equation_1([2, 3.5])) == pytest.approx(betaln(2, 3.5))


def test_a_posterior_draw_has_the_counts_and_the_prior_as_its_parameters() -> None:
    made = tcdp.dirichlet_posterior_sampling([3, 0, 17], alpha=[1, 2, 3], r=0.5)
    assert made.parameters == pytest.approx([2.5, 2.0, 11.5])
    assert made.draw.sum() == pytest.approx(1.0)
    records = tcdp.synthesise([3, 0, 17], size=50, alpha=2, rng=np.random.default_rng(3)).records
    assert records.shape == (50,)
    assert set(records) <= {0, 1, 2}


@given(powers(-1, 3), st.floats(0.01, 0.99), powers(-2, 1))
def test_theorem_1_gives_a_line_above_the_exact_divergences(alpha: float, share: float, r: float) -> None:
    line = tcdp.theorem_1(alpha=alpha, gamma=share * alpha, r=r)
    assert line.omega == pytest.approx(1 + share * alpha / r)
    assert line.exact <= line.printed == line.rho
    for part in (0.01, 0.5, 0.999):
        order = 1 + part * (line.omega - 1)
        if order > 1:
            assert reference.replaced_renyi(r, alpha, alpha, order) <= line.renyi(order)
    assert line.renyi(line.omega) == math.inf


@given(powers(-0.5, 2), st.floats(0.05, 0.9), st.integers(1, 9))
def test_a_threshold_on_the_counts_adds_to_the_prior_in_theorem_1(alpha: float, share: float, least: int) -> None:
    known = tcdp.theorem_1(alpha=alpha, gamma=share * alpha, r=2.0, tau=least)
    larger = tcdp.theorem_1(alpha=alpha + 2.0 * least, gamma=share * alpha, r=2.0)
    assert (known.rho, known.omega, known.exact) == (larger.rho, larger.omega, larger.exact)


@given(powers(0, 3), st.floats(0.05, 0.95), powers(-10, -1))
@settings(max_examples=30)
def test_equation_6_is_theorem_1_followed_by_lemma_1(alpha: float, share: float, delta: float) -> None:
    line = tcdp.theorem_1(alpha=alpha, gamma=share * alpha)
    found = tcdp.equation_6(alpha=alpha, gamma=share * alpha, delta=delta)
    assert found.printed == tcdp_to_epsilon(line.rho, line.omega, delta)
    assert found.exact <= found.printed <= float(tcdp.equation_7(share * alpha, alpha=alpha, delta=delta)) * (1 + 1e-12)


@given(powers(-0.5, 3), powers(-10, -1), powers(-1, 1))
@settings(max_examples=25)
def test_theorem_2_is_the_smallest_epsilon_over_all_gammas(alpha: float, delta: float, r: float) -> None:
    found = tcdp.theorem_2(alpha=alpha, delta=delta, r=r)
    assert 0 < found.gamma_m <= found.gamma_M < alpha
    assert found.exact <= found.printed
    edge = found.gamma_M**2 * trigamma(alpha - found.gamma_M)
    assert edge == pytest.approx(-math.log(delta), rel=1e-6)
    for share in (0.02, 0.2, 0.5, 0.8, 0.95, 0.999):
        line = tcdp.theorem_1(alpha=alpha, gamma=share * alpha, r=r)
        assert found.printed <= float(tcdp.lemma_1(rho=line.rho, omega=line.omega, delta=delta)) * (1 + 1e-9)
    at = tcdp.equation_7(found.gamma_m, alpha=alpha, delta=delta, r=r)
    assert found.printed == pytest.approx(float(at), rel=1e-9)


@given(powers(-3, 2), powers(-1, 1), powers(-1, 1))
def test_alpha_for_solves_theorem_1(rho: float, gamma: float, r: float) -> None:
    alpha = float(tcdp.alpha_for(rho=rho, gamma=gamma, r=r))
    assert tcdp.theorem_1(alpha=alpha, gamma=gamma, r=r).rho == pytest.approx(rho, rel=1e-9)


@pytest.mark.parametrize("gamma", [2.0, 3.0])
def test_gamma_stays_below_the_smallest_alpha(gamma: float) -> None:
    with pytest.raises(DpbayesError, match="gamma below the smallest alpha"):
        tcdp.theorem_1(alpha=[2.0, 7.0], gamma=gamma)


# -- section 4 ---------------------------------------------------------------------------------------------------------


def test_theorem_3_is_above_the_mean_over_multinomial_counts_and_its_steps_lie_between() -> None:
    found, n = tcdp.theorem_3(P, N=12, alpha=1, alpha_prime=3), 12
    outcomes = [np.array([i, j, n - i - j]) for i in range(n + 1) for j in range(n + 1 - i)]
    each = [float(tcdp.equation_20(x + 1.0, x + 3.0)) for x in outcomes]
    assert found.exact == pytest.approx(float(np.dot(multinomial(n, P).pmf(outcomes), each)), rel=1e-9)
    chain = [found.exact, *found.steps, found.printed]
    assert chain == sorted(chain)
    assert found.printed == pytest.approx(float(tcdp.equation_11(P, N=12, s=2)))
    reciprocal = tcdp.binomial_reciprocal(N=50, p=0.3)
    assert reciprocal.exact < reciprocal.printed


def test_from_the_sample_size_for_kl_on_the_last_bound_of_equation_12_is_met() -> None:
    needed = float(tcdp.sample_size_kl(P, epsilon=0.1, rho_prime=0.2))
    assert float(tcdp.equation_12(P, N=math.ceil(needed), rho_prime=0.2)) <= 0.1
    assert float(tcdp.sample_size_kl(P, epsilon=0.1, rho_prime=5, high_privacy=False)) == pytest.approx(
        float(tcdp.sample_size_kl(P, epsilon=0.1, rho_prime=5)) * 2.5
    )


def test_bias_is_that_of_the_mean_and_below_its_bound() -> None:
    found = tcdp.bias([3, 0, 17], alpha=[1, 2, 3])
    assert found.signed == pytest.approx([4 / 26 - 0.15, 2 / 26, 20 / 26 - 0.85])
    assert (found.exact <= found.printed).all()


def test_theorem_4_and_its_exact_ends_bracket_the_error_of_draws() -> None:
    x, rng = np.array([50, 30, 20]), np.random.default_rng(1)
    error = np.abs(rng.dirichlet(x + 2.0, 100_000) - x / 100).max(axis=1)
    found = tcdp.theorem_4(x, alpha=2, beta=0.05)
    assert found.lower <= np.quantile(error, 0.95) * 1.01
    assert np.quantile(error, 0.95) * 0.99 <= found.upper <= found.printed
    made = tcdp.histogram(x, alpha=2, beta=0.05)
    assert (made.printed, made.upper) == (found.printed, found.upper)
    assert made.draw.sum() == pytest.approx(1.0)
    two = tcdp.theorem_4([30, 70], alpha=2, beta=0.05)
    assert two.exact == two.lower < two.upper


def test_the_tail_of_a_share_is_below_its_sub_gaussian_bound() -> None:
    drawn = np.random.default_rng(2).dirichlet([3.0, 4.0, 5.0], 100_000)[:, 0]
    for t in (0.05, 0.2, 0.4):
        assert (np.abs(drawn - 0.25) > t).mean() <= float(tcdp.beta_tail(t, N=9, alpha_0=3))


def test_the_sample_size_is_the_least_with_the_accuracy() -> None:
    n = tcdp.sample_size(d=4, beta=0.1, epsilon=0.1, alpha=1.5).printed
    for records, enough in ((n, True), (n - 1, False)):
        radius = tcdp.theorem_4([records, 0, 0, 0], alpha=1.5, beta=0.1).printed
        assert (radius < 0.1) == enough


def test_the_largest_gaussian_error_is_exact_and_below_equation_16() -> None:
    sigma = float(tcdp.gaussian_sigma(N=100, rho=0.1))
    error = np.abs(np.random.default_rng(2).normal(0, sigma, (200_000, 3))).max(axis=1)
    found = tcdp.equation_16(d=3, N=100, rho=0.1, beta=0.05)
    assert found.exact == pytest.approx(np.quantile(error, 0.95), rel=0.01)
    assert found.exact <= found.printed


@given(st.integers(2, 1000), st.floats(0.001, 0.5), st.floats(0.01, 0.99), powers(-2, 2))
def test_equation_17_is_in_its_order(d: int, beta: float, epsilon: float, rho: float) -> None:
    found = tcdp.equation_17(d=d, beta=beta, epsilon=epsilon, rho=rho)
    assert found.left > found.middle >= found.right * (1 - 1e-12)


def test_equations_14_and_15_at_a_point() -> None:
    high = tcdp.equation_14(d=10, beta=0.05, epsilon=0.1, rho=0.1, gamma=1)
    low = tcdp.equation_15(d=10, beta=0.05, epsilon=0.1, rho=4, gamma=1)
    assert float(high) == pytest.approx(math.log(400) / 0.01 + 100 * (10 + 1))
    assert float(low) == pytest.approx(math.log(400) / 0.01 + 100 * (0.5 + 1))
