"""Mechanisms compared: public numbers in, a ranking out."""

from dataclasses import replace

import numpy as np
import pytest

from dpbayes import RDP, ApproxDP, Attribute, Cost, PureDP, Schema, Tables, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.design.ranking import Ranking, ranking, score
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)


def ranked(**more):
    return ranking(**({"cells": 4, "records": 400, "target": RDP(order=5, epsilon=1), "unit": REPLACE} | more))


def test_a_ranking_is_the_same_every_time_and_sorted():
    first, second = (ranked(repetitions=8) for _ in range(2))
    assert first == second
    means = [p.mean for p in first.predictions]
    assert means == sorted(means)
    assert len(means) == 5


def test_estimates_beat_draws_and_tuned_draws_beat_published_ones():
    means = {p.label: p.mean for p in ranked(repetitions=24).predictions}
    assert means["gaussian, estimate"] < means["dirichlet, draw"] < means["dirichlet as published, draw"]


def test_more_privacy_and_fewer_records_mean_more_error():
    def error(**more):
        return ranked(**more, repetitions=16).predictions[0].mean

    assert error(target=RDP(order=5, epsilon=0.05)) > error() > error(target=RDP(order=5, epsilon=10))
    assert error(records=100) > error(records=10_000)


def test_every_prediction_meets_the_target():
    target = ApproxDP(epsilon=1, delta=1e-6)
    for prediction in ranked(target=target, releases=3, repetitions=4).predictions:
        assert target.gap(Cost.of(prediction.mechanism, 3)) <= 0


def test_the_mechanisms_are_those_of_a_release():
    levels = Attribute(name="cell", categories=("a", "b", "c", "d"))
    schema = Schema(id="s", unit=REPLACE, records=400, attributes=(levels,))
    found = {p.label: p.mechanism for p in ranked(cells=len(levels.levels), repetitions=4).predictions}
    for label, options in {
        "dirichlet, draw": {"product": "draw"},
        "dirichlet, estimate": {"mechanism": "dirichlet"},
        "dirichlet as published, draw": {"product": "draw", "mechanism": "dirichlet", "accounting": "published"},
        "gaussian, estimate": {"mechanism": "gaussian"},
        "laplace, estimate": {"mechanism": "laplace"},
    }.items():
        assert Tables("cell", **options).plan(schema, RDP(order=5, epsilon=1)).paid[0].mechanism == found[label]


def test_a_pure_target_leaves_only_laplace_noise():
    made = ranked(target=PureDP(epsilon=1), repetitions=4)
    assert [p.name for p in made.predictions] == ["laplace"]
    assert {label for label, _ in made.impossible} >= {"gaussian, estimate", "dirichlet, estimate", "dirichlet, draw"}


def test_among_equals_integer_noise_is_chosen_and_the_reason_given():
    made = ranked(repetitions=6)
    best = made.predictions[0]
    tied, dirichlet = (
        replace(next(p for p in made.predictions if p.name == name), mean=mean, standard_error=0.0)
        for name, mean in (("gaussian", best.mean * 1.01), ("dirichlet", best.mean))
    )
    forced = Ranking(measure="kl", predictions=(dirichlet, tied), impossible=())
    assert forced.choice is tied
    assert "integer" in forced.why


def test_records_needed_are_enough():
    found = ranked(measure="tv", error=0.05, repetitions=4)
    needed = {p.label: p.records_needed for p in found.predictions}
    assert all(n is not None and n >= 1 for n in needed.values())
    again = ranked(measure="tv", records=4 * needed["gaussian, estimate"], repetitions=16)
    assert next(p for p in again.predictions if p.name == "gaussian").quantile <= 0.05


def test_scores_are_what_their_names_say():
    truth, published = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25])
    assert score("kl", truth, published) == pytest.approx(0.5 * np.log(2))
    assert score("linf", truth, published) == 0.25
    assert score("tv", truth, published) == 0.25


@pytest.mark.parametrize(
    "bad",
    [
        {"cells": 1},
        {"cells": 2.5},
        {"records": 0},
        {"releases": 0},
        {"measure": "mse"},
        {"failure": 1.0},
        {"evenness": 0},
    ],
)
def test_bad_questions_are_refused_in_one_sentence(bad):
    with pytest.raises(InvalidArgument, match="plan: expected"):
        ranked(**bad)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("cells", "records", "epsilon"), [(2, 1, 1e-3), (3, 48_842, 0.01), (3, 48_842, 1e-4), (40, 10**9, 0.01)]
)
def test_every_candidate_is_predicted_at_small_epsilon(adjacency, cells, records, epsilon):
    target = ApproxDP(epsilon=epsilon, delta=1e-6)
    unit = Unit(adjacency=adjacency)
    made = ranking(cells=cells, records=records, target=target, unit=unit, repetitions=2)
    assert {prediction.name for prediction in made.predictions} >= {"gaussian", "laplace"}
    assert all(np.isfinite(prediction.mean) and prediction.mean >= 0 for prediction in made.predictions)
