"""Closed forms of error, each against simulation or brute force, and below the papers' bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln

from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.utility import expected_kl, worst_expected_kl
from dpbayes.papers.dirichlet import bias, records_by_tail_bound, tail, tail_bound
from dpbayes.papers.histogram import (
    gaussian_linf,
    gaussian_linf_bound,
    linf_bound,
    linf_quantile,
    posterior_kl,
    posterior_kl_bound,
    records_for_linf,
)

P = np.array([0.5, 0.3, 0.1, 0.06, 0.04])


@pytest.mark.parametrize(("beta", "alpha"), [(200, 1.0), (2441, 40.0), (30, 0.3)])
def test_expected_kl_and_its_tail_agree_with_simulation(beta, alpha):
    rng = np.random.default_rng(5)
    kl = (P * np.log(P / rng.dirichlet(beta * P + alpha, 100_000))).sum(axis=1)
    assert expected_kl(P, records=beta, weight=1, concentration=alpha) == pytest.approx(kl.mean(), rel=0.01)
    for probability in (0.5, 0.1, 0.01):
        eta = float(np.quantile(kl, 1 - probability))
        exact = tail(eta, P, beta=beta, concentration=alpha)
        assert exact == pytest.approx(probability, rel=0.1)
        assert exact <= tail_bound(eta, beta=beta, cells=5, concentration=alpha) + 1e-12


@settings(max_examples=60, deadline=None)
@given(
    cells=st.integers(2, 40),
    records=st.integers(1, 5000),
    weight=st.floats(0.01, 10),
    alpha=st.floats(0.02, 20),
    evenness=st.sampled_from([0.02, 0.2, 1.0, 10.0]),
    seed=st.integers(0, 10**6),
)
def test_no_distribution_is_worse_than_the_worst(cells, records, weight, alpha, evenness, seed):
    p = np.random.default_rng(seed).dirichlet(np.full(cells, evenness))
    p = np.nan_to_num(p, nan=1 / cells)
    p /= p.sum()
    numbers = {"records": records, "weight": weight, "concentration": alpha}
    assert expected_kl(p, **numbers) <= worst_expected_kl(cells=cells, **numbers) * (1 + 2e-3) + 1e-12


def test_bias_is_that_of_the_dirichlet_mean():
    found = bias(P, records=100, weight=2.0, concentration=3.0)
    mean = (200 * P + 3) / (200 + 15)
    assert found == pytest.approx(mean - P, abs=1e-15)
    assert found.sum() == pytest.approx(0, abs=1e-15)


def test_records_by_the_tail_bound_suffice_for_the_bound():
    n = records_by_tail_bound(0.1, failure=0.05, cells=5, weight=0.5, concentration=2.0)
    assert tail_bound(0.1, beta=0.5 * n, cells=5, concentration=2.0) <= 0.05
    assert tail_bound(0.1, beta=0.5 * (n - 3), cells=5, concentration=2.0) > 0.05
    assert tail(0.1, P, beta=0.5 * n, concentration=2.0) < 0.05


def test_posterior_kl_is_the_mean_over_multinomial_counts_and_below_theorem_3():
    p, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)

    def kl(a, b):
        inner = ((b - a) * (digamma(a) - digamma(a.sum()))).sum()
        return gammaln(a.sum()) - gammaln(b.sum()) + (gammaln(b) - gammaln(a)).sum() - inner

    simulated = np.mean([kl(x + 1.0, x + 3.0) for x in rng.multinomial(50, p, 20000)])
    exact = posterior_kl(p, records=50, prior=1.0, private_prior=3.0)
    assert exact == pytest.approx(simulated, rel=0.01)
    assert exact <= posterior_kl_bound(p, records=50, prior=1.0, private_prior=3.0)


def test_linf_quantiles_bracket_the_truth_and_beat_theorem_4():
    p, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(1)
    error = np.abs(rng.dirichlet(100 * p + 2.0, 100_000) - p).max(axis=1)
    low, high = linf_quantile(p, records=100, concentration=2.0, failure=0.05)
    assert low <= np.quantile(error, 0.95) * 1.01
    assert high >= np.quantile(error, 0.95) * 0.99
    assert high <= linf_bound(cells=3, records=100, total_concentration=6.0, failure=0.05)


def test_gaussian_linf_is_exact_and_below_equation_16():
    rng = np.random.default_rng(2)
    error = np.abs(rng.normal(0, math.sqrt(1 / 0.1) / 100, (200_000, 3))).max(axis=1)
    exact = gaussian_linf(cells=3, records=100, rho=0.1, failure=0.05)
    assert exact == pytest.approx(np.quantile(error, 0.95), rel=0.01)
    assert exact <= gaussian_linf_bound(cells=3, records=100, rho=0.1, failure=0.05)


def test_equations_14_and_15_at_a_point():
    high = records_for_linf(0.1, cells=10, failure=0.05, rho=0.1, gamma=1.0)
    low = records_for_linf(0.1, cells=10, failure=0.05, rho=4.0, gamma=1.0, high_privacy=False)
    assert high == pytest.approx(math.log(400) / 0.01 + 100 * (10 + 1))
    assert low == pytest.approx(math.log(400) / 0.01 + 100 * (0.5 + 1))


@pytest.mark.parametrize("bad", [[1.0], [0.5, 0.6], [-0.1, 1.1], [[0.5, 0.5]]])
def test_what_is_no_distribution_is_refused(bad):
    with pytest.raises(InvalidArgument, match="sum to 1"):
        expected_kl(bad, records=10, weight=1, concentration=1)
