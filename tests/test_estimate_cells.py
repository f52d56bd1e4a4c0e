"""The posterior of cells against sums over every possible table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dpbayes.estimate.cells import cell_posterior, conditioned
from dpbayes.estimate.laws import log_prior, log_total
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise
from dpbayes.estimate.quadrature import grid


def enumerated(noise, values, strength, total):
    """Exact evidence, means and standard deviations of the Dirichlet-multinomial under noise."""
    cells = len(values)
    first = [c for c in itertools.product(range(total + 1), repeat=cells - 1) if sum(c) <= total]
    tables = np.array([(*c, total - sum(c)) for c in first], dtype=float)
    log_mass = sum(
        log_prior(tables[:, k], strength[k]) + noise.log_likelihood(values[k : k + 1], tables[None, :, k])[0]
        for k in range(cells)
    )
    mass = np.exp(log_mass - logsumexp(log_mass))
    mean = mass @ tables
    spread = np.sqrt(mass @ (tables - mean) ** 2)
    return logsumexp(log_mass) - log_prior(total, sum(strength)), mean, spread


def fitted(noise, values, strength, total):
    totals, copies = np.array([float(total)]), np.ones((1, len(values)))
    tilted = cell_posterior(noise, values[None], strength=strength[None], totals=totals, copies=copies)
    return tilted, conditioned(tilted, totals, copies)


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["gaussian", "laplace", "gamma"]),
    cells=st.integers(2, 3),
    total=st.integers(5, 40),
    spread=st.floats(0.5, 200),
    strength=st.sampled_from([0.3, 1.0, 5.0, 100.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_evidence_and_means_are_those_of_all_possible_tables(kind, cells, total, spread, strength, seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(total, rng.dirichlet(np.full(cells, 1.0)))
    if kind == "gamma":
        noise = GammaNoise(weight=2.0, concentration=4 * spread**2)
        values = rng.standard_gamma(2.0 * counts + noise.concentration)
    else:
        noise = GaussianNoise(sigma=spread) if kind == "gaussian" else LaplaceNoise(scale=spread)
        values = np.rint(counts + spread * rng.standard_normal(cells))
    strengths = np.full(cells, strength)
    evidence, mean, deviation = enumerated(noise, values, strengths, total)
    tilted, marginal = fitted(noise, values, strengths, total)
    assert tilted.mean.sum() == pytest.approx(total, rel=1e-3)
    assert tilted.log_evidence[0] == pytest.approx(evidence, abs=0.3 if cells > 2 else 1e-6)
    assert marginal.mean[0] == pytest.approx(mean, abs=0.05 * total + 0.2 if cells > 2 else 1e-6)
    assert np.sqrt(marginal.variance[0]) == pytest.approx(deviation, abs=0.08 * total + 0.2 if cells > 2 else 1e-6)


@pytest.mark.parametrize("noise", [GaussianNoise(sigma=1e6), LaplaceNoise(scale=1e6)])
@pytest.mark.parametrize("cells", [2, 20])
@pytest.mark.parametrize("total", [3.0, 300.0, 1e6])
def test_a_release_of_mere_noise_says_nothing_about_the_strength(noise, cells, total):
    evidence = [
        fitted(noise, np.zeros(cells), np.full(cells, strength / cells), total)[0].log_evidence[0]
        for strength in (0.1, 1.0, 10.0, 1000.0)
    ]
    assert np.ptp(evidence) < (0.15 if total < 1e5 else 2.0)


def test_exact_counts_are_found_and_leave_no_doubt():
    values = np.array([14.0, 1.0, 25.0, 0.0])
    _, marginal = fitted(GaussianNoise(sigma=0.1), values, np.ones(4), 40)
    assert marginal.mean[0] == pytest.approx(values, abs=1e-6)
    assert marginal.variance[0] == pytest.approx(0, abs=1e-6)


def test_a_cell_can_stand_for_many_alike():
    noise, values, strength = GaussianNoise(sigma=3.0), np.array([5.0, 5.0, 5.0, 30.0]), np.full(4, 0.7)
    _, each = fitted(noise, values, strength, 45)
    totals, copies = np.array([45.0]), np.array([[3.0, 1.0]])
    tilted = cell_posterior(noise, values[None, 2:], strength=strength[None, 2:], totals=totals, copies=copies)
    together = conditioned(tilted, totals, copies)
    assert together.mean[0] == pytest.approx(each.mean[0, 2:])
    assert together.log_evidence == pytest.approx(each.log_evidence)


@given(lower=st.integers(0, 10**6), width=st.integers(0, 63))
def test_short_ranges_are_summed_exactly(lower, width):
    nodes, spans = grid(np.array([float(lower)]), np.array([float(lower + width)]), 64)
    assert nodes[0].tolist() == list(range(lower, lower + 64))
    assert (spans == 1).all()


@pytest.mark.parametrize("reach", [1e2, 1e4, 1e7])
@pytest.mark.parametrize("strength", [1e-3, 0.1, 1.0, 4.0])
def test_long_sums_from_zero_keep_the_mass_of_a_negative_binomial(reach, strength):
    """Σ f(c; a) q^c = (1 − q)^−a, with nearly all mass below the reach."""
    log_odds = -np.log1p(24.0 / reach)
    nodes, spans = grid(np.zeros(1), np.array([reach]), 64)
    found = logsumexp(log_prior(nodes, np.array(strength)) + nodes * log_odds + np.log(spans))
    assert found == pytest.approx(-strength * np.log(-np.expm1(log_odds)), abs=0.03)


def test_long_sums_away_from_zero_keep_the_mass_of_a_bell():
    nodes, spans = grid(np.array([1e6 - 8000.0]), np.array([1e6 + 8000.0]), 64)
    mass = np.exp(-0.5 * ((nodes - 1e6) / 1000) ** 2) * spans
    assert mass.sum() == pytest.approx(1000 * np.sqrt(2 * np.pi), rel=1e-6)


@pytest.mark.parametrize(("mean", "variance"), [(5.0, 40.0), (5.0, 5.1), (200.0, 50.0), (1e6, 1e7)])
def test_the_law_of_a_total_is_a_law(mean, variance):
    counts = np.arange(0.0, mean + 60 * np.sqrt(variance))
    assert np.exp(log_total(counts, np.array(mean), np.array(variance))).sum() == pytest.approx(1, rel=0.01)
    assert log_total(np.array(-1.0), np.array(mean), np.array(variance)) == -np.inf
