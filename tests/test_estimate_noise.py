"""Descriptions of noise."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma
from tests.estimate_draws import drawn

from dpbayes import Dirichlet, PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.estimate.baseline import clip_and_smooth
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise, noise_of

UNIT = PrivacyUnit(adjacency="replace-one")
NOISES = [
    GaussianNoise(sigma=3.0),
    LaplaceNoise(scale=2.0),
    GammaNoise(weight=2.0, concentration=10.0),
    GammaNoise(weight=0.3, concentration=np.array([1.0, 4.0, 9.0])),
]


@pytest.mark.parametrize("noise", NOISES)
def test_centers_are_unbiased_and_spread_as_they_say(noise):
    counts = np.array([0.0, 7.0, 40.0])
    rng = np.random.default_rng(0)
    centers = noise.center(np.stack([drawn(counts, noise, rng) for _ in range(20_000)]))
    assert centers.mean(axis=0) == pytest.approx(counts, abs=5 * noise.spread(counts).max() / 141)
    assert centers.std(axis=0) == pytest.approx(noise.spread(counts), rel=0.05)


def test_gamma_likelihoods_are_gamma_densities():
    noise = GammaNoise(weight=2.0, concentration=3.0)
    values, counts = np.array([5.0, 21.0]), np.array([[0.0, 1.0, 9.0]] * 2)
    expected = gamma.logpdf(values[:, None], 2.0 * counts + 3.0) + np.log(values)[:, None]
    assert noise.log_likelihood(values, counts) == pytest.approx(expected)


def test_additive_likelihoods_are_the_published_weights():
    values, counts = np.array([4.0]), np.array([[1.0, 4.0]])
    assert GaussianNoise(sigma=2.0).log_likelihood(values, counts)[0].tolist() == [-9 / 8, 0.0]
    assert LaplaceNoise(scale=2.0).log_likelihood(values, counts)[0].tolist() == [-1.5, 0.0]


@pytest.mark.parametrize("noise", NOISES[:3])
@given(center=st.integers(-1000, 10**9))
def test_coordinates_can_be_undone(noise, center):
    if isinstance(noise, GammaNoise):
        center = max(center, -4)
        assert noise.center(noise.released(np.array([float(center)]))) == pytest.approx([center])
    centers = np.array([float(center)])
    assert noise.center_at(noise.coordinate(centers)) == pytest.approx(centers, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_sums_of_cells_have_the_pooled_noise(noise):
    counts = np.array([[3.0, 0.0, 20.0]] * 4)
    pooled = noise.pooled(0, counts.shape)
    rng = np.random.default_rng(1)
    sums = np.stack([drawn(counts, noise, rng).sum(axis=0) for _ in range(10_000)])
    assert pooled.center(sums).mean(axis=0) == pytest.approx([12, 0, 80], abs=1.5)
    assert pooled.center(sums).std(axis=0) == pytest.approx(pooled.spread(counts.sum(axis=0)), rel=0.05)


def test_one_laplace_cell_stays_laplace_and_sums_become_gaussian():
    noise = LaplaceNoise(scale=2.0)
    assert noise.pooled(0, (1, 5)) is noise
    pooled = noise.pooled(0, (4, 5))
    assert isinstance(pooled, GaussianNoise)
    assert pooled.sigma == pytest.approx(np.sqrt(4 * noise.variance))


def test_a_part_of_a_table_keeps_its_concentrations():
    noise = GammaNoise(weight=1.0, concentration=np.array([1.0, 2.0, 3.0]))
    assert noise.take((np.array([1]),), (2, 3)).concentration.tolist() == [[1.0, 2.0, 3.0]]
    assert GammaNoise(weight=1.0, concentration=2).take((np.array([1]),), (2, 3)).concentration == 2.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianNoise(sigma=0.0),
        lambda: LaplaceNoise(scale=float("inf")),
        lambda: GammaNoise(weight=-1.0, concentration=1.0),
        lambda: GammaNoise(weight=1.0, concentration=0.0),
        lambda: GammaNoise(weight=1.0, concentration=1.0, floor=-1.0),
        lambda: GammaNoise(weight=1.0, concentration=[1.0, np.nan]),
        lambda: GammaNoise(weight=1.0, concentration="one"),
        lambda: clip_and_smooth([1, 2], 0.0),
        lambda: clip_and_smooth([], 1.0),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(InvalidArgument, match="expected"):
        make()


def test_smoothing_works_within_rows():
    shares = clip_and_smooth([[9, -5], [0, 0]], 1.0)
    assert shares == pytest.approx(np.array([[10 / 11, 1 / 11], [0.5, 0.5]]))


@pytest.mark.parametrize("concentration", [3.0, 999_990.0, 1e9, 4.9e15, 1e18])
@pytest.mark.parametrize("deviations", [-5.0, -0.1, 0.0, 1.0, 8.0])
def test_gamma_likelihoods_keep_their_digits_at_any_concentration(concentration, deviations):
    noise = GammaNoise(weight=np.sqrt(concentration) / 10, concentration=concentration)
    value = max(concentration + deviations * np.sqrt(concentration), 1e-3)
    counts = np.array([0.0, 1.0, 7.0, 60.0])
    with mpmath.workdps(60):
        shapes = [mpmath.mpf(noise.weight * count + concentration) for count in counts]
        truth = [s * mpmath.log(value) - mpmath.loggamma(s) - mpmath.mpf(value) for s in shapes]
        differences = [float(each - truth[0]) for each in truth]
    found = noise.log_likelihood(np.array([value]), counts[None])[0]
    assert found - found[0] == pytest.approx(differences, abs=1e-6, rel=1e-7)


@pytest.mark.parametrize("value", [1e-300, 1e-3, 4e6, 1e12])
def test_gamma_likelihoods_far_from_the_mode_are_those_of_the_density(value):
    noise = GammaNoise(weight=1.0, concentration=2e6)
    expected = gamma.logpdf(value, np.array([2e6, 3e6])) + np.log(value)
    assert noise.log_likelihood(np.array([value]), np.array([[0.0, 1e6]]))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("concentration", [0.01, 0.3, 5.0, 400.0])
@pytest.mark.parametrize("floor", [2.0**-16, 2.0**-3])
def test_the_lowest_value_is_read_as_everything_below_it(concentration, floor):
    """In 30 digits: P[z ≤ 1½ f], up to the factor that all counts share, and the density above."""
    noise = GammaNoise(weight=0.5, concentration=concentration, floor=floor)
    counts = np.array([[0.0, 1.0, 7.0, 900.0]])
    with mpmath.workdps(30):
        exact = [
            mpmath.log(
                mpmath.gammainc(
                    0.5 * mpmath.mpf(c) + mpmath.mpf(concentration), 0, 1.5 * mpmath.mpf(floor), regularized=True
                )
            )
            for c in counts[0].tolist()
        ]
    found = noise.log_likelihood(np.array([floor]), counts)[0]
    assert found == pytest.approx([float(value) for value in exact], rel=1e-6)
    plain = GammaNoise(weight=0.5, concentration=concentration)
    above = np.array([3 * floor])
    assert (noise.log_likelihood(above, counts) == plain.log_likelihood(above, counts)).all()


@pytest.mark.parametrize("concentration", [0.02, 0.2, 1.5])
def test_small_concentrations_are_estimated_without_bias_although_most_gammas_meet_the_floor(concentration):
    """The posterior mean of a count under a flat prior on 0…20, averaged over draws from that prior, is the prior's."""
    rng, mechanism = (
        np.random.default_rng(6),
        Dirichlet(weight=concentration / 10, concentration=concentration, unit=UNIT),
    )
    counts = rng.integers(0, 21, 20_000)
    values = mechanism.gammas(counts, rng)
    noise = noise_of(mechanism)
    logs = noise.log_likelihood(noise.readable(values), np.tile(np.arange(21.0), (values.size, 1)))
    mass = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    means = mass @ np.arange(21.0)
    assert (values == mechanism.grid).mean() > (0.5 if concentration < 0.1 else 0.0)
    low = values == mechanism.grid  # those at the floor alone, and the rest: both are calibrated
    for part in (low, ~low):
        if part.sum() > 200:
            error = (means[part] - counts[part]).mean()
            assert abs(error) < 5 * (means[part] - counts[part]).std() / np.sqrt(part.sum())
