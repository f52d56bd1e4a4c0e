from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpbayes import RDP, ApproxDP, Curator, Dirichlet, Ledger, PureDP, Release
from dpbayes.base.errors import (
    BudgetExceeded,
    InvalidArgument,
    MeaninglessBudget,
    ReleaseError,
    SchemaError,
    TableError,
)
from dpbayes.jobs import Fit
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel

from .examples import ADD, REPLACE, tables, weather, weather_schema
from .examples import fitted as released

TARGET = ApproxDP(epsilon=1.0, delta=1e-6)
SPEC = NaiveBayes(target="rain")
GUESSED = replace(weather_schema(), records_guess=2000)


def fitted(target=TARGET, *, spec=SPEC, **options) -> NaiveBayesModel:
    return released(spec, target, **options).model()


def test_all_tables_together_meet_the_target_and_nearly_use_it_up():
    for target in (TARGET, RDP(order=5, epsilon=0.5), PureDP(epsilon=2.0)):
        plan = Fit(model=SPEC).plan(GUESSED, target)
        gap = target.gap(plan.cost)
        assert -1e-6 < gap <= 0
        assert len(plan.tables) == 4


def test_a_clear_table_gives_the_shares_of_the_data():
    data, model = weather(20_000), fitted(ApproxDP(epsilon=1e3, delta=1e-6), rows=20_000)
    rain = data["rain"] == "yes"
    assert np.exp(model.class_log_prior[1]) == pytest.approx(rain.mean(), abs=0.01)
    wet = np.exp(model.feature_log_prob[0])
    assert wet[1, 1] == pytest.approx((data["street"][rain] == "wet").mean(), abs=0.02)
    assert wet[0, 1] == pytest.approx((data["street"][~rain] == "wet").mean(), abs=0.02)


def test_a_hopeless_budget_gives_rows_what_they_share():
    with pytest.warns(MeaninglessBudget, match="times its whole mass"):
        model = fitted(RDP(order=5, epsilon=1e-8), schema=GUESSED)
    for table in model.feature_log_prob:
        rows = np.exp(table[:2])
        assert np.abs(rows[0] - rows[1]).max() < 0.05


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet"])
@pytest.mark.parametrize("unit", [REPLACE, ADD])
def test_every_mechanism_and_adjacency_finds_what_matters(mechanism, unit):
    model = fitted(ApproxDP(epsilon=5.0, delta=1e-6), schema=weather_schema(unit), mechanism=mechanism)
    assert model.published.records == (2000 if unit.replaces else None)
    street = np.exp(model.feature_log_prob[0])
    assert street[1, 1] > 0.7
    assert street[0, 1] < 0.3
    assert np.exp(model.class_log_prior).sum() == pytest.approx(1.0)


def test_the_papers_model_is_one_normalised_draw_per_row():
    model = fitted(RDP(order=5, epsilon=10.0), spec=NaiveBayes(target="rain", estimate="draw"), accounting="published")
    published = model.published.tables
    assert len(published) == 4
    assert all(isinstance(paid.mechanism, Dirichlet) for paid in model.published.releases[0].paid)
    for table, rows in zip(published[1:], model.feature_log_prob, strict=True):
        assert np.exp(rows) == pytest.approx(table.rows / table.rows.sum(axis=1, keepdims=True))


def test_estimates_of_the_posterior_beat_the_papers_draw_on_new_records():
    truth, losses = weather(4000, seed=99), {}
    for name, spec, accounting in (
        ("draw", NaiveBayes(target="rain", estimate="draw"), "published"),
        ("posterior", SPEC, "exact"),
    ):
        loss = []
        for seed in range(5):
            model = fitted(RDP(order=5, epsilon=0.02), spec=spec, accounting=accounting, seed=seed)
            picked = np.where(truth["rain"] == "yes", 1, 0)
            loss.append(-model.predict_log_proba(truth)[np.arange(4000), picked].mean())
        losses[name] = np.mean(loss)
    assert losses["posterior"] < 0.9 * losses["draw"]


def test_the_class_table_gets_more_when_classes_are_hard_to_know():
    easy = SPEC.shares(weather_schema(), sigma=1.0, records=10_000)
    hard = SPEC.shares(weather_schema(), sigma=800.0, records=10_000)
    assert easy[0] < 0.1 < hard[0] <= 0.9
    assert sum(easy) == pytest.approx(1.0)
    assert hard[-1] > hard[1]  # the day has more levels than the street


def test_unseen_and_missing_values_are_predicted_not_refused():
    model = fitted()
    found = model.predict_log_proba(
        {"street": ["wet", "flooded", None], "umbrella": ["open"] * 3, "day": ["d0", "d9", "d1"]}
    )
    assert found.shape == (3, 3)
    assert np.exp(found).sum(axis=1) == pytest.approx(1.0)


def test_predicting_without_a_column_names_it():
    with pytest.raises(SchemaError, match="no column 'umbrella'"):
        fitted().predict_log_proba({"street": ["wet"], "day": ["d0"]})


def same(one: NaiveBayesModel, other: NaiveBayesModel) -> bool:
    return (
        one.features == other.features
        and one.temperature == other.temperature
        and (one.class_log_prior == other.class_log_prior).all()
        and all((a == b).all() for a, b in zip(one.feature_log_prob, other.feature_log_prob, strict=True))
    )


@pytest.mark.parametrize("tempered", [False, True])
def test_the_same_release_gives_the_same_model_whoever_builds_it(tempered, tmp_path):
    """The fit, the estimator, the file and a new specification."""
    from dpbayes.sklearn import PrivateCategoricalNB

    release = released(SPEC, TARGET, tempered=tempered, schema=GUESSED)
    model, data = release.model(), weather(2000)
    nb = PrivateCategoricalNB(schema=weather_schema(), target="rain", tempered=tempered, random_state=7)
    nb.fit(pd.DataFrame(data).drop(columns="rain"), data["rain"])
    release.save(tmp_path / "model")
    again = Release.load(tmp_path / "model")
    assert [bool(each.tables[0].products) for each in (release, again)] == [False, True]  # made when it is saved
    for other in (nb.model_, again.model(), SPEC.build([again])):
        assert same(model, other)
    assert (model.temperature < 0.95) <= tempered  # without a choice only noise lowers it, a little
    assert "no privacy at all" in model.published.statement()


def test_a_temperature_belongs_to_the_model_that_it_was_chosen_for():
    from dataclasses import replace

    from dpbayes.models.naive_bayes import TEMPERATURE
    from dpbayes.release.format import Answer

    release = released(SPEC, TARGET, tempered=True)
    release = replace(release, answers=(Answer(name=TEMPERATURE, by=0, values=(0.25,)),))
    assert release.model().temperature == 0.25
    assert release.model(NaiveBayes(target="rain", features=("street",))).temperature > 0.9
    assert release.model(NaiveBayes(target="street", features=("rain",))).temperature > 0.9


CLEAR = ApproxDP(epsilon=20.0, delta=1e-6)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet"])
@pytest.mark.parametrize(
    ("asked", "features"),
    [
        (("street|rain", "umbrella|rain"), ("street", "umbrella")),
        (("rain|street", "rain|day"), ("street", "day")),
        (("rain,street", "day,rain", "rain"), ("street", "day")),
        (("umbrella,rain,street",), ("street", "umbrella")),
        (("street|umbrella,rain", "street,day"), ("street", "umbrella")),
    ],
)
def test_any_tables_that_hold_an_attribute_with_the_class_make_a_model(asked, features, mechanism):
    data, release = weather(4000), tables(*asked, target=CLEAR, rows=4000, mechanism=mechanism)
    model = release.model(NaiveBayes(target="rain"))
    assert model.features == features
    rain = data["rain"] == "yes"
    assert np.exp(model.class_log_prior[1]) == pytest.approx(rain.mean(), abs=0.02)
    wet = np.exp(model.feature_log_prob[0])
    assert wet[1, 1] == pytest.approx((data["street"][rain] == "wet").mean(), abs=0.03)
    assert wet[0, 1] == pytest.approx((data["street"][~rain] == "wet").mean(), abs=0.03)


def test_several_releases_make_one_model_and_their_promises_are_all_stated():
    parts = [tables(asked, target=CLEAR, seed=seed) for seed, asked in enumerate(("rain", "street|rain", "day,rain"))]
    model = NaiveBayes(target="rain").build(parts)
    assert model.features == ("street", "day")
    assert model.published.statement().count("no privacy at all") == 3


def test_parts_of_one_table_are_counted_once():
    """Class totals from a joint table are not more certain for being summed out of it twice."""
    release = tables("rain,street,umbrella", target=TARGET, mechanism="gaussian")
    wide = release.model(NaiveBayes(target="rain"))
    narrow = release.model(NaiveBayes(target="rain", features=("street",)))
    assert wide.class_log_prior == pytest.approx(narrow.class_log_prior)
    noisy = release.array(release.tables[0]).sum(axis=(1, 2))
    assert np.exp(wide.class_log_prior) == pytest.approx(noisy / noisy.sum(), abs=0.02)


def test_two_releases_of_one_table_are_weighed_by_their_noise():
    """A rough one moves a fine one by no more than its weight, 1/σ², and the order does not matter."""
    rough, fine = (
        tables("street|rain", target=ApproxDP(epsilon=e, delta=1e-6), mechanism="gaussian") for e in (0.1, 10)
    )
    alone, both, other = fine.model(SPEC), SPEC.build([rough, fine]), SPEC.build([fine, rough])
    for one, two in zip(both.feature_log_prob, other.feature_log_prob, strict=True):
        assert one == pytest.approx(two, abs=1e-9)
    assert np.exp(both.feature_log_prob[0][:2]) == pytest.approx(np.exp(alone.feature_log_prob[0][:2]), abs=0.003)
    assert not same(both, alone)


def test_two_equal_looks_at_a_table_are_better_than_one():
    data, losses = weather(2000), []
    truth = np.array([(data["street"][data["rain"] == rain] == "wet").mean() for rain in ("no", "yes")])
    for seed in range(12):
        looks = [
            tables("street|rain", target=ApproxDP(epsilon=0.1, delta=1e-6), mechanism="gaussian", seed=2 * seed + k)
            for k in (0, 1)
        ]
        found = [np.exp(SPEC.build(part).feature_log_prob[0][:2, 1]) for part in (looks, looks[:1], looks[1:])]
        losses.append([float(((each - truth) ** 2).sum()) for each in found])
    together, first, second = np.mean(losses, axis=0)
    assert together < 0.8 * (first + second) / 2


def test_a_release_without_the_class_is_refused():
    release = tables("street,day", target=CLEAR)
    with pytest.raises(ReleaseError, match="no release has a table of 'rain'"):
        release.model(NaiveBayes(target="rain"))
    with pytest.raises(ReleaseError, match="was not made for a model"):
        release.model()
    with pytest.raises(ReleaseError, match="no release has the table rain"):
        release.model(NaiveBayes(target="rain", features=("street",)))
    with pytest.raises(SchemaError, match="no attribute 'snow'"):
        release.model(NaiveBayes(target="snow"))


def test_building_is_free(tmp_path):
    ledger = Ledger(tmp_path / "weather.ledger")
    ledger.open("weather", TARGET, REPLACE)
    from dpbayes import BayesNet, Tables
    from dpbayes.models import Histogram

    release = Curator(pa.table(weather()), weather_schema(), ledger=ledger).release(Tables("street,rain"), TARGET)
    before = len(ledger.account("weather").entries)
    for spec in (SPEC, BayesNet(edges=(("rain", "street"),)), Histogram(attributes=("rain", "street"))):
        release.model(spec)
    assert len(ledger.account("weather").entries) == before


def test_records_come_as_columns_or_as_any_frame():
    model, fresh = fitted(), weather(50, seed=3)
    expected = model.predict_log_proba(fresh)
    for rows in (
        pd.DataFrame(fresh),
        pl.DataFrame(fresh),
        pa.table(fresh),
        pa.table(fresh).select(["day", "umbrella", "street"]),
    ):
        assert (model.predict_log_proba(rows) == expected).all()
    assert model.predict_proba(fresh) == pytest.approx(np.exp(expected))
    assert model.synthesise(20).num_rows == 20
    for wrong in (None, 7, "street"):
        with pytest.raises(InvalidArgument, match="as columns by name"):
            model.predict_proba(wrong)


def test_a_refused_model_is_not_charged(tmp_path):
    ledger = Ledger(tmp_path / "weather.ledger")
    ledger.open("weather", TARGET, REPLACE)
    before = ledger.account("weather").left()
    for spec, error in (
        (NaiveBayes(target="snow"), SchemaError),
        (NaiveBayes(target="rain", features=("street", "wind")), SchemaError),
    ):
        with pytest.raises(error):
            fitted(spec=spec, ledger=ledger, seed=None)
    with pytest.raises(InvalidArgument):
        fitted(spec=NaiveBayes(target="rain", estimate="draw"), mechanism="laplace", ledger=ledger, seed=None)
    with pytest.raises(TableError):
        Curator({"rain": ["yes"]}, weather_schema(), ledger=ledger).release(SPEC, TARGET)
    with pytest.raises(BudgetExceeded):
        fitted(ApproxDP(epsilon=2.0, delta=1e-6), ledger=ledger, seed=None)
    assert ledger.account("weather").left() == before


def test_a_private_fit_is_charged_once_and_carries_its_receipt(tmp_path):
    ledger = Ledger(tmp_path / "weather.ledger")
    ledger.open("weather", TARGET, REPLACE)
    model = fitted(ledger=ledger, seed=None)
    [release] = model.published.releases
    assert release.spending.left == pytest.approx(0.0, abs=0.01)
    assert "at most ε=1 at δ=1e-06" in release.statement()


def test_the_class_cannot_predict_itself():
    with pytest.raises(SchemaError, match="cannot predict itself"):
        NaiveBayes(target="rain", features=("rain", "day"))


def test_sampled_records_follow_the_model():
    model = fitted(ApproxDP(epsilon=100.0, delta=1e-6))
    drawn = model.sample(50_000, np.random.default_rng(0))
    share = np.bincount(drawn["rain"], minlength=3) / 50_000
    assert share == pytest.approx(np.exp(model.class_log_prior), abs=0.01)
    given = np.bincount(drawn["day"][drawn["rain"] == 0], minlength=8) / (drawn["rain"] == 0).sum()
    assert given == pytest.approx(np.exp(model.feature_log_prob[2][0]), abs=0.01)
