"""Estimates of one table: laws that hold whatever was released, and tables at the edge."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimate_draws import divergence, drawn, inside

from dpbayes.errors import InvalidArgument
from dpbayes.estimate import lattice
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise
from dpbayes.estimate.table import count_moments, estimate

NOISES = [GaussianNoise(sigma=4.0), LaplaceNoise(scale=3.0), GammaNoise(weight=2.0, concentration=64.0)]


def uneven(cells, records, rng, evenness=0.5):
    shares = rng.dirichlet(np.full(cells, evenness))
    return shares, rng.multinomial(records, shares)


def assert_same(left, right, **tolerance):
    for name in ("counts", "empirical", "population"):
        assert getattr(left, name) == pytest.approx(getattr(right, name), **tolerance)


def test_estimates_see_nothing_but_the_release():
    seen = "import dpbayes.estimate.rows, sys; print([m for m in sys.modules if m.startswith('dpbayes')])"
    loaded = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout
    for forbidden in ("tables", "ledger", "domain.counts", "jobs"):
        assert f"dpbayes.{forbidden}" not in loaded


@pytest.mark.parametrize("noise", NOISES)
def test_the_order_of_cells_does_not_matter(noise):
    rng = np.random.default_rng(0)
    values = drawn(uneven(30, 500, rng)[1], noise, rng).astype(float)
    order = rng.permutation(30)
    found, shuffled = estimate(values, noise, records=500), estimate(values[order], noise, records=500)
    assert shuffled.counts == pytest.approx(found.counts[order])
    assert shuffled.population_interval.upper == pytest.approx(found.population_interval.upper[order])


@pytest.mark.parametrize("noise", NOISES)
def test_any_shape_of_table_is_kept(noise):
    rng = np.random.default_rng(1)
    values = drawn(uneven(24, 500, rng)[1], noise, rng).astype(float)
    flat, cube = estimate(values, noise, records=500), estimate(values.reshape(2, 3, 4), noise, records=500)
    assert cube.counts.shape == cube.empirical_interval.lower.shape == (2, 3, 4)
    assert cube.population.ravel() == pytest.approx(flat.population)


def test_a_dirichlet_draw_says_as_much_as_its_gammas():
    """Given the number of records the lost factor carries nothing: both give the same estimate."""
    rng = np.random.default_rng(2)
    counts = uneven(12, 400, rng)[1]
    gammas = rng.standard_gamma(3.0 * counts + 50.0)
    noise = GammaNoise(weight=3.0, concentration=50.0)
    draw = GammaNoise(weight=3.0, concentration=50.0, normalised=True)
    whole, part = estimate(gammas, noise, records=400), estimate(gammas / gammas.sum(), draw, records=400)
    assert_same(whole, part, rel=2e-3, abs=1e-3)
    assert part.counts_interval.upper == pytest.approx(whole.counts_interval.upper, abs=1)


def test_a_dirichlet_draw_needs_public_records():
    noise = GammaNoise(weight=3.0, concentration=50.0, normalised=True)
    with pytest.raises(InvalidArgument, match="lost its total"):
        estimate([0.5, 0.5], noise)


@pytest.mark.parametrize("noise", NOISES)
def test_wider_levels_give_wider_intervals(noise):
    rng = np.random.default_rng(3)
    values = drawn(uneven(20, 300, rng)[1], noise, rng)
    narrow, wide = (estimate(values, noise, records=300, level=level) for level in (0.5, 0.99))
    for name in ("counts_interval", "empirical_interval", "population_interval"):
        small, large = getattr(narrow, name), getattr(wide, name)
        assert (large.upper - large.lower).sum() > (small.upper - small.lower).sum()
        assert (large.upper >= small.upper - 1e-9).all()


def test_a_cell_that_may_be_empty_has_an_interval_from_zero():
    found = estimate([480, 1, -3, 2, 515], GaussianNoise(sigma=3.0), records=1000)
    assert (found.population_interval.lower[1:4] == 0).all()
    assert (found.counts_interval.lower[1:4] == 0).all()
    assert (found.population_interval.lower[[0, 4]] > 0.4).all()


@pytest.mark.parametrize("noise", NOISES)
def test_private_records_are_estimated_along(noise):
    rng = np.random.default_rng(4)
    found = estimate(drawn(uneven(10, 2000, rng)[1], noise, rng), noise)
    assert found.records == pytest.approx(2000, abs=60)
    assert found.counts.sum() == pytest.approx(found.records, rel=0.01)
    assert "estimated" in found.notes[0]


def test_a_right_guess_at_the_shape_helps_and_a_wrong_one_is_overruled():
    rng = np.random.default_rng(5)
    shape = rng.dirichlet(np.full(50, 0.3)) + 1e-4
    shape /= shape.sum()
    noise, right, even, wrong = GaussianNoise(sigma=10.0), 0.0, 0.0, 0.0
    for _ in range(5):
        values = drawn(rng.multinomial(1000, shape), noise, rng)
        right += divergence(shape, estimate(values, noise, records=1000, shape=shape, level=None).population)
        even += divergence(shape, estimate(values, noise, records=1000, level=None).population)
        wrong += divergence(shape, estimate(values, noise, records=1000, shape=shape[::-1], level=None).population)
    assert right < 0.1 * even
    assert wrong < 1.01 * even


def test_where_noise_hides_all_the_answer_is_the_even_table_or_the_given_shape():
    for noise in (GaussianNoise(sigma=1e5), LaplaceNoise(scale=1e5)):
        assert estimate([5e4, -3e4, 2e4], noise, records=100).population == pytest.approx(np.full(3, 1 / 3), abs=0.05)
        given_one = estimate([5e4, -3e4, 2e4], noise, records=100, shape=[0.7, 0.2, 0.1])
        assert given_one.population == pytest.approx([0.7, 0.2, 0.1], abs=0.05)
        assert float(given_one.notes[1].split()[8].rstrip(",")) == pytest.approx(0.95, abs=0.03)


def test_an_even_guess_at_the_shape_is_no_guess():
    values, noise = [40.0, 3.0, -2.0, 60.0], GaussianNoise(sigma=3.0)
    assert_same(estimate(values, noise, records=100), estimate(values, noise, records=100, shape=np.ones(4)))


@pytest.mark.parametrize(
    "noise", [GaussianNoise(sigma=0.4), LaplaceNoise(scale=0.2), GammaNoise(weight=400, concentration=60)]
)
def test_a_clear_release_is_taken_at_its_word(noise):
    counts = np.array([500, 30, 0, 70])
    found = estimate(drawn(counts, noise, np.random.default_rng(1)), noise, records=600)
    assert found.counts == pytest.approx(counts, abs=2.5)


@settings(max_examples=80)
@given(
    cells=st.sampled_from([1, 2, 3, 40]),
    records=st.sampled_from([0, 1, 3, 1000, 10**9]),
    noise=st.sampled_from(
        [
            *NOISES,
            GaussianNoise(sigma=0.05),
            GaussianNoise(sigma=0.3),
            GaussianNoise(sigma=1e5),
            LaplaceNoise(scale=0.02),
            LaplaceNoise(scale=1e5),
            GammaNoise(weight=1e-3, concentration=0.1),
            GammaNoise(weight=1e3, concentration=1e-2),
            GammaNoise(weight=1.0, concentration=1e9),
        ]
    ),
    evenness=st.sampled_from([1e-3, 1.0, 1e3]),
    public=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_extreme_tables_give_finite_answers(cells, records, noise, evenness, public, seed):
    rng = np.random.default_rng(seed)
    shares = np.nan_to_num(rng.dirichlet(np.full(cells, evenness)), nan=1 / cells)
    values = drawn(rng.multinomial(records, shares / shares.sum()), noise, rng)
    found = estimate(values, noise, records=records if public else None)
    assert found.population.sum() == pytest.approx(1)
    assert found.empirical.sum() == pytest.approx(1)
    assert (found.population > 0).all()
    for interval in (found.counts_interval, found.empirical_interval, found.population_interval):
        assert (interval.lower >= 0).all()
        assert (interval.upper >= interval.lower).all()
        assert np.isfinite(interval.upper).all()
    if public:
        assert found.counts.sum() == pytest.approx(records, rel=0.01, abs=0.01)


def test_one_huge_cell_among_empty_ones_is_found():
    values = np.array([10**9 + 12.0, 3.0, -8.0, 1.0, 5.0])
    found = estimate(values, GaussianNoise(sigma=10.0), records=10**9)
    assert found.counts[0] == pytest.approx(10**9, abs=60)
    assert found.counts[1:].max() < 20
    assert found.counts_interval.upper[0] <= 10**9


def test_a_table_of_one_cell_holds_all_records():
    found = estimate([93.0], GaussianNoise(sigma=5.0), records=100)
    assert found.counts.tolist() == pytest.approx([100.0])
    assert found.population.tolist() == [1.0]


def test_the_moments_of_counts_are_those_of_the_estimate():
    values = np.array([40.0, 3.0, -2.0, 60.0])
    mean, variance = count_moments(values, GaussianNoise(sigma=3.0), 100.0)
    found = estimate(values, GaussianNoise(sigma=3.0), records=100)
    assert mean == pytest.approx(found.counts)
    assert (variance > 0).all()
    assert (variance < 9.5).all()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("shaped", [False, True])
def test_many_cells_are_answered_as_if_one_by_one(noise, shaped, monkeypatch):
    rng = np.random.default_rng(6)
    values = drawn(uneven(600, 30_000, rng)[1], noise, rng).astype(float)
    shape = rng.dirichlet(np.ones(600)) + 1e-3 if shaped else None
    fast = estimate(values, noise, records=30_000, shape=shape)
    monkeypatch.setattr(lattice, "MOST_VALUES", 10**6)
    monkeypatch.setattr(lattice, "MOST_SHARES", 10**6)
    slow = estimate(values, noise, records=30_000, shape=shape)
    spread = noise.spread(slow.counts)
    assert (np.abs(fast.counts - slow.counts) < 0.05 * spread).all()
    assert divergence(slow.population, fast.population) < 1e-4
    for fast_end, slow_end in (
        (fast.counts_interval.lower, slow.counts_interval.lower),
        (fast.counts_interval.upper, slow.counts_interval.upper),
    ):
        assert (fast_end == np.rint(fast_end)).all()
        assert (np.abs(fast_end - slow_end) <= 2 + 0.1 * spread).all()


def test_a_hundred_thousand_cells_are_covered():
    rng = np.random.default_rng(7)
    shares, counts = uneven(100_000, 10**6, rng, evenness=1.0)
    noise = GammaNoise(weight=5.0, concentration=500.0)
    found = estimate(drawn(counts, noise, rng), noise, records=10**6)
    assert inside(shares, found.population_interval) == pytest.approx(0.95, abs=0.01)
    assert found.strength == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(
    ("values", "noise", "options"),
    [
        ([], NOISES[0], {}),
        (3.0, NOISES[0], {}),
        ([[1, 2], [3]], NOISES[0], {}),
        ([1.0, np.inf], NOISES[0], {}),
        (["many"], NOISES[0], {}),
        ([1.0, -1.0], NOISES[2], {}),
        ([1.0, 2.0], GammaNoise(weight=1.0, concentration=np.ones(3)), {}),
        ([1.0, 2.0], NOISES[0], {"records": -1}),
        ([1.0, 2.0], NOISES[0], {"records": 2.5}),
        ([1.0, 2.0], NOISES[0], {"records": True}),
        ([1.0, 2.0], NOISES[0], {"level": 1.0}),
        ([1.0, 2.0], NOISES[0], {"shape": [1.0]}),
        ([1.0, 2.0], NOISES[0], {"shape": [1.0, 0.0]}),
        ([1.0, 2.0], NOISES[0], {"shape": "even"}),
    ],
)
def test_what_cannot_be_estimated_is_refused(values, noise, options):
    with pytest.raises(InvalidArgument, match=r"estimate: expected|expected level"):
        estimate(values, noise, **options)


@pytest.mark.parametrize("seed", range(12))
def test_gammas_of_a_huge_concentration_are_estimated_like_gaussian_noise(seed):
    weight, concentration = 161_140.0, 4.87e15
    noise = GammaNoise(weight=weight, concentration=concentration)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(48_842, rng.dirichlet([1.0, 1.0, 1.0]))
    values = rng.gamma(weight * counts + concentration)
    like = GaussianNoise(sigma=np.sqrt(concentration) / weight)
    found = estimate(values, noise, records=48_842)
    alike = estimate(noise.center(values), like, records=48_842)
    assert found.counts == pytest.approx(alike.counts, abs=0.05 * like.sigma)
