"""Whether tables show dependence at all: the statistic against its law, and what a model does with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes import ZCDP, Attribute, Curator, Fit, NaiveBayes, PrivacyUnit, PureDP, Schema
from dpbayes.models.base import Published
from dpbayes.models.evidence import SURELY, dependence, detectable

NAMES = tuple(f"x{number}" for number in range(6))
SCHEMA = Schema(
    id="d",
    unit=PrivacyUnit(adjacency="replace-one"),
    records=2000,
    attributes=(
        *(Attribute(name=name, categories=("a", "b", "other")) for name in NAMES),
        Attribute(name="y", categories=("n", "other")),
    ),
)


def rows(strength: float, seed: int) -> dict[str, list[str]]:
    """Records whose attributes follow the class with this strength; neither is even."""
    rng = np.random.default_rng(seed)
    y = rng.random(2000) < 0.3
    table = {"y": np.where(y, "other", "n").tolist()}
    for name in NAMES:
        free = rng.choice(["a", "b", "other"], p=[0.6, 0.3, 0.1], size=2000)
        table[name] = np.where(rng.random(2000) < strength, np.where(y, "b", "a"), free).tolist()
    return table


def fitted(strength: float, seed: int, rho: float = 0.02) -> object:
    job = Fit(model=NaiveBayes(target="y"), tempered=False, split="equal")
    return Curator(rows(strength, seed), SCHEMA, seed=seed).release(job, ZCDP(rho=rho), estimates=False)


def test_without_dependence_the_statistic_is_standard_and_the_model_predicts_class_shares() -> None:
    found = np.array([dependence(Published.of(fitted(0.0, seed)), "y", NAMES) for seed in range(60)])
    assert abs(found.mean()) < 4 / math.sqrt(60)
    assert 0.6 < found.std() < 1.5
    assert (found > SURELY).mean() < 0.15
    quiet = next(seed for seed in range(60) if found[seed] < SURELY)
    model = NaiveBayes(target="y").build(fitted(0.0, quiet))
    assert model.temperature == 0.0
    shares = model.predict_proba({name: ["a", "b"] for name in NAMES})
    assert shares[0] == pytest.approx(shares[1])


def test_dependence_that_noise_leaves_visible_is_used() -> None:
    release = fitted(0.4, 1)
    assert dependence(Published.of(release), "y", NAMES) > 5 * SURELY
    model = NaiveBayes(target="y").build(release)
    assert model.temperature == 1.0


@pytest.mark.parametrize(("classes", "levels"), [(2, 2), (3, 7), (4, 2)])
def test_no_table_of_equal_groups_is_farther_from_independence_than_detectable_assumes(
    classes: int, levels: int
) -> None:
    groups, records = min(classes, levels), 840
    table = np.zeros((classes, levels))
    table[:groups, :groups] = np.eye(groups) * records / groups
    square = table[:groups, :groups] - records / groups**2
    most = records**2 * (groups - 1) / groups**2
    assert (square**2).sum() == pytest.approx(most)
    freedom = (classes - 1) * (levels - 1)
    edge = SURELY * math.sqrt(2 * freedom) / most
    assert not detectable([(classes, levels)], [edge * 0.999], records)
    assert detectable([(classes, levels)], [edge * 1.001], records)


def test_a_budget_that_cannot_show_dependence_goes_to_the_class_table() -> None:
    spec = NaiveBayes(target="y")
    assert spec.shares(SCHEMA, 1e5, 2000)[0] > 0.9
    assert spec.shares(SCHEMA, 10.0, 2000)[0] < 0.5
    assert sum(spec.shares(SCHEMA, 1e5, 2000)) == pytest.approx(1.0)


def test_draws_as_in_the_papers_are_left_as_they_are() -> None:
    job = Fit(model=NaiveBayes(target="y", estimate="draw"))
    from dpbayes import RDP

    release = Curator(rows(0.0, 1), SCHEMA, seed=1).release(job, RDP(order=5, epsilon=0.001), estimates=False)
    assert release.build().temperature == 1.0


def test_pure_budgets_work_too() -> None:
    release = Curator(rows(0.0, 1), SCHEMA, seed=1).release(NaiveBayes(target="y"), PureDP(epsilon=1))
    assert release.build().temperature in (0.0, 1.0)
