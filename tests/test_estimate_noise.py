"""Descriptions of noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma
from tests.estimate_draws import drawn

from dpbayes.errors import InvalidArgument
from dpbayes.estimate.baseline import clip_and_smooth
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise

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
