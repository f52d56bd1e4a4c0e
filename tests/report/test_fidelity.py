"""The page about what synthetic records can be trusted with."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.examples import ADD, weather, weather_schema

from dpbayes import ApproxDP, Curator, Synthetic
from dpbayes.models.fidelity import expected_distances
from dpbayes.models.model import Published
from dpbayes.report.companions import fidelity_html, write_fidelity


def released(epsilon: float, seed: int = 1):
    curator = Curator(weather(4000), weather_schema(ADD), seed=seed)
    return curator.release(Synthetic(target="rain"), ApproxDP(epsilon=epsilon, delta=1e-6), estimates=False)


def test_the_predicted_distance_of_a_pair_is_the_one_that_noise_makes() -> None:
    data, names = weather(4000), ("street", "umbrella")
    predicted, found = [], []
    for seed in range(12):
        published = Published.of(released(1.0, seed))
        schema = published.schema
        coded = [np.array([schema[name].levels.index(value) for value in data[name]]) for name in names]
        shape = [len(schema[name].levels) for name in names]
        truth = np.bincount(np.ravel_multi_index(coded, shape), minlength=int(np.prod(shape))).reshape(shape)
        seen = published.posterior.joint.linear(names)[0]
        found.append(0.5 * np.abs(seen - truth).sum() / 4000)
        predicted.append(expected_distances(published)[names])
    assert np.mean(found) == pytest.approx(np.mean(predicted), rel=0.15)


def test_the_page_says_which_pairs_can_be_trusted(tmp_path) -> None:
    page = fidelity_html(released(3.0))
    assert "pairs are trustworthy" in page
    assert "<script" not in page
    assert page.count("<td") == 16
    write_fidelity(released(0.001), tmp_path / "page.html")
    assert "No pair of attributes was measured" in (tmp_path / "page.html").read_text(encoding="utf-8")
