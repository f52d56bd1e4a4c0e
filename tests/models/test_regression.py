"""The target given everything else: it keeps the model's pairs, and adds no dependence of its own."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes.models.latent import Regression, pairs_of

LEVELS = {"a": 3, "b": 2, "c": 4, "y": 2}


@pytest.fixture(scope="module", params=[2, 3])
def built(request) -> tuple[np.ndarray, dict[str, np.ndarray], Regression]:
    rng = np.random.default_rng(request.param)
    weights = rng.dirichlet(np.ones(12))
    laws = {name: rng.dirichlet(np.ones(size), 12) for name, size in LEVELS.items()}
    laws["y"] = np.eye(request.param)[np.arange(12) % request.param]
    return weights, laws, Regression.of(weights, laws, "y", pairs_of(weights, laws, "y"), 1e6, np.random.default_rng(0))


@pytest.mark.parametrize("even", [True, False])
def test_drawn_targets_have_the_pairs_of_the_model(built, even: bool) -> None:
    weights, laws, regression = built
    target = regression.drawn(regression.records, np.random.default_rng(1), even=even)
    for name in ("a", "b", "c"):
        joint = laws[name].T @ (weights[:, None] * laws["y"])
        assert regression.pairs[name] == pytest.approx(joint)
        found = np.zeros(joint.shape)
        np.add.at(found, (regression.records[name], target), 1.0 / len(target))
        assert np.abs(found - joint).max() < (0.003 if even else 0.015)


def test_log_odds_are_sums_of_single_effects(built) -> None:
    _, _, regression = built
    grid = np.indices((3, 2, 4)).reshape(3, -1)
    odds = regression.probabilities(dict(zip("abc", grid, strict=True)))
    log_odds = np.log(odds[0] / odds[1]).reshape(3, 2, 4)
    apart = log_odds - log_odds[:1] - log_odds[:, :1] + log_odds[:1, :1]
    assert apart == pytest.approx(np.zeros((3, 2, 4)), abs=1e-9)


def test_a_law_that_is_logistic_is_found_again() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, (2, 200_000))
    chance = 1.0 / (1.0 + np.exp(-(np.array([-1.0, 0.0, 2.0])[x[0]] + np.array([1.0, -1.0, 0.5])[x[1]])))
    cells = np.unique(x, axis=1)  # one class for each cell and level of the target
    mean = np.array([chance[(x == cell[:, None]).all(axis=0)].mean() for cell in cells.T])
    weights = np.concatenate([mean, 1.0 - mean]) / 9.0
    laws = {"a": np.eye(3)[np.tile(cells[0], 2)], "b": np.eye(3)[np.tile(cells[1], 2)], "y": np.repeat(np.eye(2), 9, 0)}
    regression = Regression.of(weights, laws, "y", pairs_of(weights, laws, "y"), 1e6, rng)
    found = regression.probabilities({"a": cells[0], "b": cells[1]})
    assert found[0] == pytest.approx(mean, abs=0.01)
    table = regression.given(("a", "b"), np.full((3, 3, 2), 0.5))
    assert table.reshape(9, 2)[:, 0] == pytest.approx(mean, abs=0.01)
