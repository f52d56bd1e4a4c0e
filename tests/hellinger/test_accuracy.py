"""Expected distances: sums, averages of draws, and who wins."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.hellinger import contenders

from dpbayes import Unit
from dpbayes.hellinger import calibration, distance
from dpbayes.hellinger import mechanism as accuracy
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def hellinger(counts: tuple[int, ...], epsilon: float = 2.0) -> accuracy.PosteriorMechanism:
    return calibration.published(prior=(1.0,) * len(counts), total=sum(counts), epsilon=epsilon, delta=1e-3, unit=UNIT)


@pytest.mark.parametrize("counts", [(20, 30), (5, 6, 7)])
def test_a_sum_over_candidates_agrees_with_an_average_of_draws(
    counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for made in (
        hellinger(counts),
        PosteriorLaplace.at(prior=(1.0,) * len(counts), total=sum(counts), epsilon=1.0, unit=UNIT),
        PosteriorExponential(prior=(1.0,) * len(counts), total=sum(counts), sharpness=9.0, score="kl", unit=UNIT),
    ):
        exact = accuracy.expected(made, counts)
        assert exact.draws == 0
        assert exact.standard_error == 0.0
        monkeypatch.setattr(accuracy, "ENUMERATED", 0)
        drawn = accuracy.expected(made, counts, draws=20_000, rng=np.random.default_rng(1))
        monkeypatch.undo()
        assert drawn.draws == 20_000
        assert abs(drawn.hellinger - exact.hellinger) < 5 * drawn.standard_error
        assert drawn.l1 == pytest.approx(exact.l1, rel=0.03)
        low, high = exact.total_variation
        assert low <= high


def test_total_variation_is_exact_for_two_cells_and_bounded_for_more() -> None:
    low, high = accuracy.expected(hellinger((20, 30)), (20, 30)).total_variation
    assert low == high
    low, high = accuracy.expected(hellinger((5, 6, 7)), (5, 6, 7)).total_variation
    assert low < high


def test_results_that_are_no_posterior_count_as_one() -> None:
    wild = PosteriorLaplace(prior=(1.0, 1.0), total=10, scale=1e6, truncated=False, unit=UNIT)
    found = accuracy.expected(wild, (0, 10), draws=400, rng=np.random.default_rng(0))
    assert found.hellinger > 0.99


def test_steps_and_distances_are_distributed_over_all_candidates() -> None:
    made = hellinger((49, 49))
    steps = accuracy.step_probabilities(made, (49, 49))
    assert steps.sum() == pytest.approx(1.0)
    assert steps.argmax() in (0, 1)
    assert steps.size == 99
    values, shares = contenders.distance_probabilities(made, (49, 49))
    assert shares.sum() == pytest.approx(1.0)
    # the table is symmetric: one step either way is one distance
    assert shares[1] == pytest.approx(steps[1])
    assert values[1] == pytest.approx(float(distance.hellinger([50, 50], [51, 49])))
    assert values @ shares == pytest.approx(accuracy.expected(made, (49, 49)).hellinger)


def test_a_strong_prior_favours_hellinger_and_a_weak_one_laplace() -> None:
    common = {"total": 15, "epsilon": 0.8, "delta": 1e-8, "unit": UNIT, "around": [5, 5, 5]}
    strong = contenders.crossover(prior=(50.0,) * 3, rng=np.random.default_rng(0), **common)
    assert strong[0].name == "hellinger, certified"
    weak = contenders.crossover(
        prior=(1.0, 1.0), total=60, epsilon=0.8, delta=1e-8, unit=UNIT, around=[30, 30], rng=np.random.default_rng(0)
    )
    assert weak[0].name.startswith("laplace")
    assert [each.hellinger for each in weak] == sorted(each.hellinger for each in weak)


def test_crossover_leaves_certified_out_where_it_cannot_be_enumerated() -> None:
    found = contenders.crossover(
        prior=(1.0,) * 4, total=3000, epsilon=0.8, delta=1e-8, unit=UNIT, draws=50, rng=np.random.default_rng(0)
    )
    assert {each.name for each in found} == {"hellinger, proved", "laplace", "laplace, truncated"}
