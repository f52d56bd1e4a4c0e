"""One engine: whatever is made of a release gives the numbers that the release itself prints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpbayes import ApproxDP, BayesNet, NaiveBayes, Posterior, Release
from dpbayes.models import Histogram
from dpbayes.release.products import complete
from dpbayes.sklearn import PrivateCategoricalNB

from .examples import ADD, REPLACE, fitted, weather, weather_schema

TARGET = ApproxDP(epsilon=1.0, delta=1e-6)
FEATURES = ("street", "umbrella", "day")


@pytest.mark.parametrize("unit", [REPLACE, ADD])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet"])
def test_release_posterior_naive_bayes_network_and_histogram_give_the_same_numbers(unit, mechanism):
    release = fitted(NaiveBayes(target="rain"), TARGET, schema=weather_schema(unit), mechanism=mechanism)
    release = Release.from_json(complete(release).to_json())
    bayes = release.model()
    star = release.model(BayesNet(edges=tuple(("rain", name) for name in FEATURES)))
    posterior = Posterior(release)
    classes = release.array(release.tables[0], "population")
    for other in (
        np.exp(bayes.class_log_prior),
        star.network.tables["rain"][0],
        release.model(Histogram(attributes=("rain",))).shares,
        posterior.table("rain").population.values,
    ):
        assert other == pytest.approx(classes, abs=1e-8)
    for name, rows in zip(FEATURES, bayes.feature_log_prob, strict=True):
        shown = release[f"{name}|rain"]
        printed = release.array(shown.table, "population")
        for other in (np.exp(rows), star.network.tables[name], posterior.table(f"{name}|rain").population.values):
            assert other == pytest.approx(printed, abs=1e-8)
        assert star.intervals(name).values == pytest.approx(printed, abs=1e-8)
        assert star.intervals(name).lower == pytest.approx(release.array(shown.table, "population", "lower"))
        joint = release.model(Histogram(attributes=("rain", name))).shares
        assert joint / joint.sum(axis=1, keepdims=True) == pytest.approx(printed, abs=1e-8)


def test_the_estimator_gives_the_numbers_of_its_release():
    data = weather(2000)
    nb = PrivateCategoricalNB(schema=weather_schema(), target="rain", random_state=7)
    nb.fit(pd.DataFrame(data).drop(columns="rain"), data["rain"])
    release = complete(nb.model_.published.releases[0])
    for name, rows in zip(nb.model_.features, nb.model_.feature_log_prob, strict=True):
        assert np.exp(rows) == pytest.approx(release.array(release[f"{name}|rain"].table, "population"), abs=1e-8)
