"""Draws have exactly the stated law, in every regime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpbayes.hellinger import candidates, distance, sampler

PValue = Callable[[np.ndarray, np.ndarray, np.ndarray], float]

LEAST_P = 1e-4
"""With about forty tests, one in two hundred runs of a right sampler would fall below; seeds are fixed."""

REGIMES = [
    pytest.param((1.0, 1.0), (49, 49), 2.4, id="beta"),
    pytest.param((1.0, 1.0), (0, 60), 30.0, id="corner, sharp"),
    pytest.param((1.0, 1.0, 1.0), (10, 10, 10), 1.2, id="flat"),
    pytest.param((1.0, 1.0, 1.0), (10, 10, 10), 12.0, id="three cells"),
    pytest.param((0.1, 2.0, 0.5), (0, 3, 17), 8.0, id="unequal prior"),
    pytest.param((1.0, 2.0, 3.0), (5, 5, 5), 1e-3, id="uniform"),
    pytest.param((1.0, 1.0, 1.0, 1.0), (1, 1, 1, 9), 15.0, id="four cells"),
    pytest.param((1.0,) * 6, (2, 1, 0, 1, 0, 2), 0.01, id="uniform, six cells"),
    pytest.param((1.0,) * 6, (0, 0, 1, 0, 5, 0), 5.0, id="six cells"),
    pytest.param((0.5,) * 5, (6, 0, 0, 0, 0), 9.0, id="one full cell"),
    pytest.param((0.5,) * 8, (0, 1, 0, 2, 0, 0, 1, 0), 4.0, id="tilted proposals"),
]


def make(prior: tuple[float, ...], counts: tuple[int, ...], exponent: float) -> sampler.Sampler:
    return sampler.score_sampler(prior, np.array(counts), exponent, sampler.HELLINGER)


def law(prior: tuple[float, ...], counts: tuple[int, ...], exponent: float) -> tuple[np.ndarray, np.ndarray]:
    listed = candidates.all_tables(sum(counts), len(counts))
    scores = distance.hellinger(listed + np.asarray(prior), np.asarray(counts) + np.asarray(prior))
    weights = np.exp(-exponent * scores)
    return listed, weights / weights.sum()


@pytest.mark.parametrize(("prior", "counts", "exponent"), REGIMES)
def test_draws_have_the_enumerated_law(
    p_value: PValue, prior: tuple[float, ...], counts: tuple[int, ...], exponent: float
) -> None:
    draws = make(prior, counts, exponent).draw(30_000, np.random.default_rng(11))
    assert p_value(draws, *law(prior, counts, exponent)) > LEAST_P


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "counts", "exponent"), REGIMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_half_a_million_draws_have_the_enumerated_law(
    p_value: PValue, prior: tuple[float, ...], counts: tuple[int, ...], exponent: float, seed: int
) -> None:
    draws = make(prior, counts, exponent).draw(500_000, np.random.default_rng(seed))
    assert p_value(draws, *law(prior, counts, exponent)) > LEAST_P


@pytest.mark.parametrize(
    ("cells", "total", "exponent"),
    [(4, 10**4, 40.0), (6, 10**6, 326.0), (16, 10**5, 63.0), (16, 10**5, 900.0), (64, 100, 20.0), (2, 10**7, 2000.0)],
)
def test_large_tables_are_drawn_with_a_useful_acceptance(cells: int, total: int, exponent: float) -> None:
    counts = np.full(cells, total // cells)
    counts[0] += total - counts.sum()
    made = make((1.0,) * cells, tuple(int(k) for k in counts), exponent)
    draws = made.draw(400, np.random.default_rng(0))
    assert draws.shape == (400, cells)
    assert (draws.sum(axis=1) == total).all()
    assert draws.min() >= 0
    assert made.accepted > 0.05 * made.proposed


def test_a_sharp_draw_has_the_mean_distance_of_its_gaussian_limit() -> None:
    # far from the border H ≈ |step|·√((1/u + 1/v)/8): the weight is that of a discrete Laplace step
    total, exponent = 10**6, 400.0
    draws = make((1.0, 1.0), (total // 2, total // 2), exponent).draw(20_000, np.random.default_rng(4))
    steps = np.abs(draws[:, 0] - total // 2)
    rate = exponent * np.sqrt(0.5 / total)
    assert steps.mean() == pytest.approx(1.0 / np.sinh(rate), rel=0.03)


def test_the_same_generator_gives_the_same_draws_and_batches_are_no_matter() -> None:
    made = make((1.0, 1.0, 1.0), (3, 4, 5), 4.0)
    again = make((1.0, 1.0, 1.0), (3, 4, 5), 4.0)
    np.testing.assert_array_equal(made.draw(50, np.random.default_rng(9)), again.draw(50, np.random.default_rng(9)))


def test_cells_tell_their_divergence_outside_their_window() -> None:
    cell = sampler.ScoreCell(prior=0.7, count=1000, total=10**6, reach=sampler.UNDERFLOW)
    window, low = cell.window
    k = np.array([low - 1 if low else 0, low, 1000, low + window.size - 1, low + window.size, 10**6])
    own, other = cell.prior + 1000, cell.prior + k
    direct = distance.bregman(0.5 * (own + other), other, 0.5 * (k - 1000))
    direct = 0.5 * (direct + distance.bregman(0.5 * (own + other), own + 0.0 * k, 0.5 * (1000 - k)))
    np.testing.assert_allclose(cell.divergence(k), direct, rtol=1e-9, atol=1e-12)
