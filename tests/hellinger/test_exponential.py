"""Other scores: exact sensitivities, exact draws, and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpbayes import Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorExponential
from dpbayes.schema import Adjacency

PValue = Callable[[np.ndarray, np.ndarray, np.ndarray], float]

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def make(prior: tuple[float, ...], total: int, score: str, sharpness: float = 1.0) -> PosteriorExponential:
    return PosteriorExponential(prior=prior, total=total, sharpness=sharpness, score=score, unit=UNIT)


@pytest.mark.parametrize(
    ("prior", "total", "score"),
    [
        ((1.0, 1.0), 12, "kl"),
        ((0.3, 2.0), 9, "kl"),
        ((1.0, 2.0, 0.4), 6, "kl"),
        ((0.5,) * 4, 4, "kl"),
        ((1.0, 1.0), 12, "total-variation"),
        ((0.3, 2.0), 9, "total-variation"),
        ((1.0, 2.0, 0.4), 6, "hellinger"),
    ],
)
def test_the_sensitivity_of_a_score_is_that_of_its_definition(prior: tuple[float, ...], total: int, score: str) -> None:
    made = make(prior, total, score)
    tables = candidates.all_tables(total, len(prior))
    scores = np.array([made.distances(table, tables) for table in tables])
    moves = np.abs(tables[:, None] - tables[None]).sum(axis=-1) // 2
    x, y = np.nonzero(moves == 1)
    assert made.sensitivity == pytest.approx(np.abs(scores[x] - scores[y]).max(), rel=1e-10)


@pytest.mark.parametrize("sharpness", [0.5, 20.0])
@pytest.mark.parametrize(
    ("prior", "counts", "score"),
    [
        ((1.0, 2.0, 0.5), (10, 20, 3), "kl"),
        ((1.0,) * 5, (3, 1, 0, 0, 4), "kl"),
        ((1.0, 1.0), (0, 25), "kl"),
        ((1.0, 1.0), (8, 25), "total-variation"),
        ((0.5, 3.0), (0, 25), "total-variation"),
        ((1.0, 2.0, 0.5), (10, 20, 3), "hellinger"),
    ],
)
def test_draws_have_the_enumerated_law(
    p_value: PValue, prior: tuple[float, ...], counts: tuple[int, ...], score: str, sharpness: float
) -> None:
    made = make(prior, sum(counts), score, sharpness)
    draws = made.draw_many(counts, 30_000, np.random.default_rng(2))
    assert p_value(draws, *made.law(counts)) > 1e-4


@pytest.mark.parametrize(
    ("prior", "total", "score"), [((1.0, 1.0), 20, "kl"), ((1.0, 1.0), 20, "total-variation"), ((1.0,) * 3, 6, "kl")]
)
def test_no_pair_of_neighbours_loses_more_than_the_sharpness(prior: tuple[float, ...], total: int, score: str) -> None:
    made = make(prior, total, score, 0.7)
    tables = candidates.all_tables(total, len(prior))
    logs = np.log([made.law(table)[1] for table in tables])
    moves = np.abs(tables[:, None] - tables[None]).sum(axis=-1) // 2
    x, y = np.nonzero(moves == 1)
    assert np.abs(logs[x] - logs[y]).max() <= made.renyi(np.inf) == 0.7


def test_large_tables_are_drawn_without_a_list() -> None:
    many = make((1.0, 1.0), 10**6, "total-variation").draw_many([10**5, 9 * 10**5], 50, np.random.default_rng(0))
    assert (many.sum(axis=1) == 10**6).all()
    counts = [2000] * 6
    many = make((1.0,) * 6, 12_000, "kl", 50.0).draw_many(counts, 50, np.random.default_rng(0))
    assert (many.sum(axis=1) == 12_000).all()


def test_the_chi_squared_score_is_refused_because_it_is_unbounded() -> None:
    with pytest.raises(InvalidArgument, match="unbounded"):
        make((1.0, 1.0), 10, "chi-squared")


def test_total_variation_of_three_cells_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="two cells"):
        make((1.0, 1.0, 1.0), 10, "total-variation")


def test_an_unknown_score_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one of"):
        make((1.0, 1.0), 10, "wasserstein")
