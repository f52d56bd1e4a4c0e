from __future__ import annotations

import json

import numpy as np
import pytest

from dpbayes import RDP, ApproxDP, Dirichlet, PureDP
from dpbayes.errors import BudgetExceeded, InvalidArgument, SchemaError, TableError
from dpbayes.fitting import MeaninglessBudget, fit, plan_fit
from dpbayes.ledger.ledger import Ledger
from dpbayes.models.base import Published
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.release import Release
from dpbayes.tables.sources import open_table

from .examples import ADD, REPLACE, weather, weather_schema

TARGET = ApproxDP(epsilon=1.0, delta=1e-6)
SPEC = NaiveBayes(target="rain")


def fitted(target=TARGET, *, spec=SPEC, schema=None, rows=2000, **options) -> NaiveBayesModel:
    import pyarrow as pa

    options.setdefault("seed", 7)
    return fit(
        spec, engine=open_table(pa.table(weather(rows))), schema=schema or weather_schema(), target=target, **options
    )


def test_all_tables_together_meet_the_target_and_nearly_use_it_up():
    for target in (TARGET, RDP(order=5, epsilon=0.5), PureDP(epsilon=2.0)):
        plan = plan_fit(SPEC, weather_schema(), target, records=2000)
        gap = target.gap(plan.cost)
        assert -1e-6 < gap <= 0
        assert len(plan.mechanisms) == 4


def test_a_clear_table_gives_the_shares_of_the_data():
    data, model = weather(20_000), fitted(ApproxDP(epsilon=1e3, delta=1e-6), rows=20_000)
    rain = data["rain"] == "yes"
    assert np.exp(model.class_log_prior[1]) == pytest.approx(rain.mean(), abs=0.01)
    wet = np.exp(model.feature_log_prob[0])
    assert wet[1, 1] == pytest.approx((data["street"][rain] == "wet").mean(), abs=0.02)
    assert wet[0, 1] == pytest.approx((data["street"][~rain] == "wet").mean(), abs=0.02)


def test_a_hopeless_budget_gives_rows_what_they_share():
    with pytest.warns(MeaninglessBudget, match="times its whole mass"):
        model = fitted(RDP(order=5, epsilon=1e-6), expected_records=2000)
    for table in model.feature_log_prob:
        rows = np.exp(table[:2])
        assert np.abs(rows[0] - rows[1]).max() < 0.1


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
    tables = model.published.tables
    assert len(tables) == 4
    assert {table.mechanism["mechanism"] for table in tables} == {"dirichlet-1"}
    for table, rows in zip(tables[1:], model.feature_log_prob, strict=True):
        assert np.exp(rows) == pytest.approx(table.rows / table.rows.sum(axis=1, keepdims=True))
    assert isinstance(plan_fit(model.spec, weather_schema(), RDP(order=5, epsilon=1.0)).mechanisms[0], Dirichlet)


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
    hard = SPEC.shares(weather_schema(), sigma=3000.0, records=10_000)
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


def test_the_model_is_rebuilt_from_its_release_alone():
    model = fitted()
    text = model.published.release().to_json()
    again = SPEC.build(Published.of(Release.from_json(text), weather_schema()))
    assert again.class_log_prior == pytest.approx(model.class_log_prior)
    assert json.loads(text)["seeded"] is True
    assert "no privacy at all" in model.published.statement()


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
        fit(SPEC, engine=open_table({"rain": ["yes"]}), schema=weather_schema(), target=TARGET, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        fitted(ApproxDP(epsilon=2.0, delta=1e-6), ledger=ledger, seed=None)
    assert ledger.account("weather").left() == before


def test_a_private_fit_is_charged_once_and_carries_its_receipt(tmp_path):
    ledger = Ledger(tmp_path / "weather.ledger")
    ledger.open("weather", TARGET, REPLACE)
    model = fitted(ledger=ledger, seed=None)
    assert model.published.spending.left == pytest.approx(0.0, abs=0.01)
    assert "at most ε=1 at δ=1e-06" in model.published.statement()


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
