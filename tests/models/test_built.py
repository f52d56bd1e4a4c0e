"""What every built model offers: predictions and likelihoods of any kind of rows, synthetic records, for nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.models.examples import weather, weather_schema

import dpbayes as dp

ROWS = {name: values[:50] for name, values in weather().items()}
TABLES = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
SPECS = (
    dp.NaiveBayes(target="rain"),
    dp.BayesNet(edges=[("rain", "street"), ("rain", "umbrella")]),
    dp.models.Histogram(attributes=("rain", "street")),
)


def built(spec: object) -> object:
    return dp.Curator(weather(), weather_schema(), seed=1).release(spec, dp.ApproxDP(epsilon=1, delta=1e-6)).model()


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_any_kind_are_predicted_alike(kind: str) -> None:
    nb = built(SPECS[0])
    found = nb.predict_proba(TABLES[kind](ROWS))
    assert found.shape == (50, len(nb.classes))
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found == pytest.approx(nb.predict_proba(ROWS))
    assert nb.predict(TABLES[kind](ROWS)).tolist() == [nb.classes[at] for at in found.argmax(axis=1)]


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_any_kind_have_the_same_likelihood(kind: str) -> None:
    network = built(SPECS[1])
    assert network.log_likelihood(TABLES[kind](ROWS)) == pytest.approx(network.log_likelihood(ROWS))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_every_model_synthesises_records_that_it_can_read_again(spec: object) -> None:
    model = built(spec)
    records = model.synthesise(300, rng=np.random.default_rng(1))
    assert records.num_rows == 300
    assert set(records.column("rain").to_pylist()) <= {"no", "yes", "other"}
    assert records.equals(model.synthesise(300, rng=np.random.default_rng(1)))


def test_synthetic_records_can_be_predicted() -> None:
    nb = built(SPECS[0])
    assert nb.predict_proba(nb.synthesise(20)).shape == (20, len(nb.classes))
