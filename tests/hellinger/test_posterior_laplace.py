"""The Laplace baselines: exact law, exact cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes import Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def make(prior: tuple[float, ...], total: int, scale: float, *, truncated: bool = True) -> PosteriorLaplace:
    return PosteriorLaplace(prior=prior, total=total, scale=scale, truncated=truncated, unit=UNIT)


@pytest.mark.parametrize("counts", [(0, 12), (5, 7), (3, 4, 5), (0, 0, 9), (2, 0, 3, 1)])
def test_the_law_is_a_law_and_draws_follow_it(counts: tuple[int, ...]) -> None:
    made = make((1.0,) * len(counts), sum(counts), 1.5)
    tables, shares = made.law(counts)
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    draws = made.draw_many(counts, 40_000, np.random.default_rng(8))
    shape = (sum(counts) + 1,) * len(counts)
    observed = np.bincount(np.ravel_multi_index(draws.T, shape), minlength=math.prod(shape)) / len(draws)
    expected = np.zeros(math.prod(shape))
    expected[np.ravel_multi_index(tables.T, shape)] = shares
    assert 0.5 * np.abs(observed - expected).sum() < 1.5 * math.sqrt(len(tables) / len(draws))


@pytest.mark.parametrize(("prior", "total"), [((1.0, 1.0), 15), ((1.0,) * 3, 6), ((1.0,) * 4, 4)])
def test_the_worst_loss_of_the_truncated_law_is_the_stated_epsilon_at_most(
    prior: tuple[float, ...], total: int
) -> None:
    made = make(prior, total, 2.0)
    tables = candidates.all_tables(total, len(prior))
    logs = np.log([made.law(table)[1] for table in tables])
    moves = np.abs(tables[:, None] - tables[None]).sum(axis=-1) // 2
    x, y = np.nonzero(moves == 1)
    worst = np.abs(logs[x] - logs[y]).max()
    assert worst <= made.renyi(math.inf) * (1 + 1e-12)
    if len(prior) == 2:
        assert worst == pytest.approx(made.renyi(math.inf))


@pytest.mark.parametrize(("cells", "moved"), [(2, 1), (3, 2), (10, 2)])
def test_a_record_moves_the_cells_that_carry_noise(cells: int, moved: int) -> None:
    made = PosteriorLaplace.at(prior=(1.0,) * cells, total=20, epsilon=0.8, unit=UNIT)
    assert made.scale == pytest.approx(moved / 0.8)
    assert made.renyi(math.inf) == pytest.approx(0.8)


def test_the_scale_of_the_papers_costs_half_their_epsilon_for_two_cells() -> None:
    assert make((1.0, 1.0), 100, 2 / 0.8).renyi(math.inf) == pytest.approx(0.4)


def test_untruncated_noise_may_leave_the_posteriors_and_has_no_list() -> None:
    made = make((1.0, 1.0), 4, 50.0, truncated=False)
    draws = made.draw_many((0, 4), 200, np.random.default_rng(0))
    assert (draws.sum(axis=1) == 4).all()
    assert draws.min() < 0
    with pytest.raises(InvalidArgument, match="no finite list"):
        made.law((0, 4))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale": 0.0}, "scale"),
        ({"truncated": "yes"}, "true or false"),
        ({"prior": (1.0, 0.0)}, "above 0"),
        ({"total": 0}, "between 1"),
        ({"unit": Unit(adjacency=Adjacency.ADD_REMOVE)}, "keeps private"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(change: dict[str, object], sentence: str) -> None:
    good: dict[str, object] = {"prior": (1.0, 1.0), "total": 9, "scale": 1.0, "truncated": True, "unit": UNIT}
    with pytest.raises(InvalidArgument, match=sentence):
        PosteriorLaplace(**(good | change))
