"""The noise-aware estimate: laws that hold for any noise, and quick checks of quality."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes.errors import InvalidArgument
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise
from dpbayes.estimate.rows import estimate_rows
from dpbayes.estimate.table import estimate


def released(counts, noise, rng):
    """A draw from the law of the noise; rounding a normal is close enough to the discrete Gaussian at these σ."""
    if isinstance(noise, GaussianNoise):
        return np.rint(counts + rng.normal(0, noise.sigma, np.shape(counts)))
    if isinstance(noise, LaplaceNoise):
        leave = -np.expm1(-1 / noise.scale)
        return counts + rng.geometric(leave, np.shape(counts)) - rng.geometric(leave, np.shape(counts))
    return rng.standard_gamma(noise.weight * np.asarray(counts) + noise.concentration)


NOISES = [GaussianNoise(sigma=3.0), LaplaceNoise(scale=4.0), GammaNoise(weight=0.5, concentration=4.0)]


@settings(max_examples=25, deadline=None)
@given(
    cells=st.integers(2, 40),
    records=st.integers(1, 5000),
    noise=st.sampled_from(NOISES),
    evenness=st.sampled_from([0.05, 0.5, 5.0]),
    known=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_estimates_are_distributions_inside_their_intervals(cells, records, noise, evenness, known, seed):
    rng = np.random.default_rng(seed)
    p = np.nan_to_num(rng.dirichlet(np.full(cells, evenness)), nan=1 / cells)
    counts = rng.multinomial(records, p / p.sum())
    found = estimate(released(counts, noise, rng), noise, records=records if known else None)
    for shares in (found.empirical, found.population):
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1, abs=1e-9)
    assert (found.counts >= 0).all()
    for interval in (found.counts_interval, found.empirical_interval, found.population_interval):
        assert (interval.lower <= interval.upper + 1e-12).all()
        assert (interval.lower >= -1e-12).all()
    if known:
        assert found.counts.sum() == pytest.approx(records, rel=1e-3, abs=0.5)


@pytest.mark.parametrize(
    "noise", [GaussianNoise(sigma=0.4), LaplaceNoise(scale=0.2), GammaNoise(weight=400, concentration=60)]
)
def test_a_clear_release_is_taken_at_its_word(noise):
    counts = np.array([500, 30, 0, 70])
    found = estimate(released(counts, noise, np.random.default_rng(1)), noise, records=600)
    assert found.counts == pytest.approx(counts, abs=2.5)


@pytest.mark.parametrize("noise", [GaussianNoise(sigma=1e5), LaplaceNoise(scale=1e5)])
def test_mere_noise_is_drawn_to_an_even_table(noise):
    rng = np.random.default_rng(2)
    found = estimate(released(np.array([100, 0, 0, 0]), noise, rng), noise, records=100)
    assert found.population == pytest.approx(np.full(4, 0.25), abs=0.05)


def test_a_public_shape_is_what_noise_is_drawn_to():
    shape = [0.7, 0.2, 0.1]
    found = estimate([5e4, -3e4, 2e4], GaussianNoise(sigma=1e5), records=100, shape=shape)
    assert found.population == pytest.approx(shape, abs=0.05)


def test_rows_share_their_shape_where_noise_hides_them_and_keep_their_own_where_it_does_not():
    rng = np.random.default_rng(3)
    rows = np.array([[900, 80, 20], [100, 700, 200], [5, 3, 2]])
    clear = estimate_rows(released(rows, GaussianNoise(sigma=0.5), rng), GaussianNoise(sigma=0.5))
    assert clear.population[:2] == pytest.approx(rows[:2] / rows[:2].sum(axis=1, keepdims=True), abs=0.03)
    hidden = estimate_rows(released(rows, GaussianNoise(sigma=1e6), rng), GaussianNoise(sigma=1e6), total=2010)
    assert np.ptp(hidden.population, axis=0).max() < 0.05


def test_the_estimate_beats_the_clipped_table_in_kl():
    rng = np.random.default_rng(4)
    noise, ours, clipped = GaussianNoise(sigma=10.0), 0.0, 0.0
    for _ in range(20):
        p = rng.dirichlet(np.full(50, 0.3))
        counts = rng.multinomial(1000, p)
        x = released(counts, noise, rng)
        plain = np.maximum(x, 1e-6)
        truth, seen = counts / 1000, counts > 0
        found = estimate(x, noise, records=1000, level=None).empirical
        ours += (truth[seen] * np.log(truth[seen] / found[seen])).sum()
        clipped += (truth[seen] * np.log(truth[seen] / (plain / plain.sum())[seen])).sum()
    assert ours < 0.5 * clipped


@pytest.mark.parametrize("bad", [[], [[1, 2], [3]], [np.nan, 1.0], ["a", "b"]])
def test_what_cannot_have_been_released_is_refused(bad):
    with pytest.raises(InvalidArgument, match="estimate"):
        estimate(bad, GaussianNoise(sigma=1.0), records=10)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [5, 20, 100])
@pytest.mark.parametrize("records", [300, 1000, 100_000])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_intervals_cover_about_as_often_as_they_say(cells, records, epsilon):
    """Averaged over even and uneven tables, with Gaussian noise of the (λ=5, ε) budget."""
    noise = GaussianNoise(sigma=float(np.sqrt(5 / epsilon)))
    rng = np.random.default_rng([cells, records, int(1000 * epsilon)])
    inside = []
    for evenness in (0.1, 1.0, 5.0):
        for _ in range(max(12, 600 // cells)):
            p = np.nan_to_num(rng.dirichlet(np.full(cells, evenness)), nan=1 / cells)
            p /= p.sum()
            x = released(rng.multinomial(records, p), noise, rng)
            interval = estimate(x, noise, records=records).population_interval
            inside.append(((interval.lower <= p) & (p <= interval.upper)).mean())
    assert 0.92 <= np.mean(inside) <= 0.985
