"""Integer noise: shapes, integers, seeds."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from tests.privacy import reference

from dpbayes.mechanisms import noise

SAMPLERS = [(noise.gaussian, 3.0), (noise.laplace, 2.0)]


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (2, 1, 5)])
def test_noise_keeps_the_shape_and_stays_whole(sampler, parameter: float, seeded: bool, shape: tuple[int, ...]) -> None:
    counts = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    noisy = sampler(counts, parameter, np.random.default_rng(1) if seeded else None)
    assert noisy.shape == shape
    assert noisy.dtype == np.int64
    assert (np.abs(noisy - counts) < 200).all()


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
def test_a_seed_repeats_and_the_system_does_not(sampler, parameter: float) -> None:
    counts = np.zeros(200, dtype=np.int64)
    one, other = (sampler(counts, parameter, np.random.default_rng(5)) for _ in range(2))
    assert (one == other).all()
    assert (sampler(counts, parameter, None) != sampler(counts, parameter, None)).any()


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
def test_the_counts_themselves_are_left_alone(sampler, parameter: float) -> None:
    counts = np.zeros(5, dtype=np.int64)
    sampler(counts, parameter, np.random.default_rng(5))
    assert not counts.any()


@pytest.mark.parametrize("seeded", [True, False])
def test_tiny_noise_changes_nothing_and_large_noise_spreads(seeded: bool) -> None:
    rng = np.random.default_rng(2) if seeded else None
    counts = np.zeros(400, dtype=np.int64)
    assert not noise.gaussian(counts, 1e-3, rng).any()
    assert not noise.laplace(counts, 1e-3, rng).any()
    assert 500 < noise.gaussian(counts, 1000.0, rng).std() < 1500
    assert 900 < noise.laplace(counts, 1000.0, rng).std() < 2100


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(
    ("sampler", "law", "parameter"),
    [
        (noise.gaussian, reference.discrete_gaussian, 0.4),
        (noise.gaussian, reference.discrete_gaussian, 1.0),
        (noise.gaussian, reference.discrete_gaussian, 5.5),
        (noise.laplace, reference.discrete_laplace, 0.5),
        (noise.laplace, reference.discrete_laplace, 4.0),
    ],
)
def test_noise_follows_its_law(sampler, law, parameter: float, seeded: bool) -> None:
    draws, reach = 200_000, 40
    noisy = sampler(np.zeros(draws, dtype=np.int64), parameter, np.random.default_rng(3) if seeded else None)
    expected = draws * np.array([float(p) for p in law(mp.mpf(parameter), reach)])
    seen = np.bincount(np.clip(noisy, -reach, reach) + reach, minlength=2 * reach + 1)
    often = expected > 20
    wanted = np.append(expected[often], max(draws - expected[often].sum(), 0.1))  # the rest is one cell
    observed = np.append(seen[often], seen[~often].sum())
    fit = stats.chisquare(observed, wanted * draws / wanted.sum())
    assert fit.pvalue > 1e-5
    assert abs((noisy > 0).mean() - (noisy < 0).mean()) < 6 / np.sqrt(draws)
