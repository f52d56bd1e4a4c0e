"""Plans: public numbers in, a ranking out."""

import numpy as np
import pytest

from dpbayes import RDP, Adjacency, ApproxDP, PrivacyUnit, PureDP
from dpbayes.design.ranking import Plan, Prediction, Question, plan, score
from dpbayes.errors import InvalidArgument, TargetUnreachable

REPLACE = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)


def question(**more):
    return Question(**({"cells": 4, "records": 400, "target": RDP(order=5, epsilon=1), "unit": REPLACE} | more))


def test_a_plan_is_the_same_every_time_and_sorted():
    first, second = (plan(question(), repetitions=8) for _ in range(2))
    assert first == second
    means = [p.mean for p in first.predictions]
    assert means == sorted(means)
    assert len(means) == 5


def test_estimates_beat_draws_and_tuned_draws_beat_published_ones():
    means = {p.label: p.mean for p in plan(question(), repetitions=24).predictions}
    assert means["gaussian, estimate"] < means["dirichlet, draw"] < means["dirichlet as published, draw"]


def test_more_privacy_and_fewer_records_mean_more_error():
    def error(**more):
        return plan(question(**more), products=("estimate",), repetitions=16).predictions[0].mean

    assert error(target=RDP(order=5, epsilon=0.05)) > error() > error(target=RDP(order=5, epsilon=10))
    assert error(records=100) > error(records=10_000)


def test_every_prediction_meets_the_target():
    from dpbayes import Cost

    asked = question(target=ApproxDP(epsilon=1, delta=1e-6), releases=3)
    for prediction in plan(asked, repetitions=4).predictions:
        assert asked.target.gap(Cost.of(prediction.mechanism, 3)) <= 0


def test_a_pure_target_leaves_only_laplace_noise():
    made = plan(question(target=PureDP(epsilon=1)), repetitions=4)
    assert [p.name for p in made.predictions] == ["laplace"]
    assert {label for label, _ in made.impossible} >= {"gaussian, estimate", "dirichlet, estimate"}
    with pytest.raises(TargetUnreachable):
        plan(question(target=PureDP(epsilon=1)), products=("draw",), repetitions=4)


def test_among_equals_integer_noise_is_chosen_and_the_reason_given():
    made = plan(question(), products=("estimate",), repetitions=6)
    best = made.predictions[0]
    tied = Prediction(
        name="gaussian",
        product="estimate",
        mechanism=next(p for p in made.predictions if p.name == "gaussian").mechanism,
        mean=best.mean * 1.01,
        standard_error=best.standard_error,
        quantile=best.quantile,
    )
    dirichlet = next(p for p in made.predictions if p.name == "dirichlet")
    forced = Plan(
        question=made.question,
        predictions=(
            Prediction(
                name="dirichlet",
                product="estimate",
                mechanism=dirichlet.mechanism,
                mean=best.mean,
                standard_error=0.0,
                quantile=best.quantile,
            ),
            tied,
        ),
        impossible=(),
    )
    assert forced.choice is tied
    assert "integer" in forced.why


def test_records_needed_are_enough():
    asked = question(measure="tv")
    made = plan(asked, error=0.05, products=("estimate",), repetitions=4)
    needed = {p.name: p.records_needed for p in made.predictions}
    assert all(n is not None and n >= 1 for n in needed.values())
    again = plan(question(measure="tv", records=4 * needed["gaussian"]), products=("estimate",), repetitions=16)
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
        question(**bad)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("cells", "records", "epsilon"), [(2, 1, 1e-3), (3, 48_842, 0.01), (3, 48_842, 1e-4), (40, 10**9, 0.01)]
)
def test_every_candidate_is_predicted_at_small_epsilon(adjacency, cells, records, epsilon):
    target = ApproxDP(epsilon=epsilon, delta=1e-6)
    asked = Question(cells=cells, records=records, target=target, unit=PrivacyUnit(adjacency=adjacency))
    made = plan(asked, products=("estimate",), repetitions=2)
    assert {prediction.name for prediction in made.predictions} >= {"gaussian", "laplace"}
    assert all(np.isfinite(prediction.mean) and prediction.mean >= 0 for prediction in made.predictions)
