"""How far tables are trusted: the statistic against its law, and what a model does with it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpbayes import ZCDP, Attribute, Curator, NaiveBayes, PureDP, Schema, Unit
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.measurement import Measurement
from dpbayes.jobs import Fit
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.models.model import Published
from dpbayes.models.naive_bayes import CLASS_ERROR, SURELY, dependence, detectable, doubt, harmless, trust

from .examples import fitted as weather_fitted

NAMES = tuple(f"x{number}" for number in range(6))
SCHEMA = Schema(
    id="d",
    unit=Unit(adjacency="replace-one"),
    records=2000,
    attributes=(
        *(Attribute(name=name, categories=("a", "b", "other"), missing="other") for name in NAMES),
        Attribute(name="y", categories=("n", "other"), missing="other"),
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
    job = Fit(model=NaiveBayes(target="y"), tempered=False)
    return Curator(rows(strength, seed), SCHEMA, seed=seed).release(job, ZCDP(rho=rho), estimates=False)


def test_without_dependence_the_statistic_is_standard_and_the_model_predicts_nearly_class_shares() -> None:
    found = np.array([dependence(Published.of(fitted(0.0, seed)), "y", NAMES) for seed in range(60)])
    assert abs(found.mean()) < 4 / math.sqrt(60)
    assert 0.6 < found.std() < 1.5
    assert (found > SURELY).mean() < 0.15
    quiet = next(seed for seed in range(60) if found[seed] < SURELY)
    model = NaiveBayes(target="y").build(fitted(0.0, quiet))
    assert 0.0 < model.temperature < 1.0
    truth = rows(0.0, 1000)
    labels = (np.array(truth["y"]) == "other").astype(int)
    predicted = model.predict_log_proba(truth)[np.arange(2000), labels].mean()
    alone = model.class_log_prior[labels].mean()
    assert predicted > alone - 2 * CLASS_ERROR


def test_dependence_that_noise_leaves_visible_is_used() -> None:
    release = fitted(0.4, 1)
    assert dependence(Published.of(release), "y", NAMES) > 5 * SURELY
    model = NaiveBayes(target="y").build(release)
    assert model.temperature > 0.8


def test_a_power_is_harmless_if_attributes_say_nothing() -> None:
    """The loss over all records, enumerated, where class and attributes are independent."""
    rng = np.random.default_rng(5)
    for noise in (0.05, 0.5):
        prior = rng.dirichlet(np.ones(3))
        tables = [rng.dirichlet(np.ones(3)) * np.exp(noise * rng.normal(size=(3, 3))) for _ in range(4)]
        tables = [table / table.sum(axis=1, keepdims=True) for table in tables]
        power, loss = harmless(prior, tables), 0.0
        for record in itertools.product(range(3), repeat=4):
            chance = math.prod(float((prior @ table)[value]) for table, value in zip(tables, record, strict=True))
            logs = power * sum(np.log(table[:, value]) for table, value in zip(tables, record, strict=True))
            loss += chance * (math.log(float(prior @ np.exp(logs))) - float(prior @ logs))
        assert power == 1.0 or loss == pytest.approx(CLASS_ERROR, rel=0.1)
        assert loss < 1.1 * CLASS_ERROR


def test_averaged_odds_are_about_the_power_of_estimated_ones() -> None:
    for center, variance in ((0.5, 1.0), (2.0, 4.0), (-1.0, 20.0)):
        drawn = np.random.default_rng(6).normal(center, math.sqrt(variance), 400_000)
        mean = float((1 / (1 + np.exp(-drawn))).mean())
        assert 1 / (1 + math.exp(-center / math.sqrt(1 + math.pi * variance / 8))) == pytest.approx(mean, abs=0.01)


def test_more_noise_leaves_more_doubt_and_less_trust() -> None:
    doubts, powers = [], []
    for rho in (0.005, 0.05, 5.0):
        release = fitted(0.4, 1, rho)
        model, published = NaiveBayes(target="y").build(release), Published.of(release)
        prior, tables = np.exp(model.class_log_prior), [np.exp(table) for table in model.feature_log_prob]
        doubts.append(doubt(published, "y", NAMES, prior, tables))
        powers.append(trust(published, "y", NAMES, prior, tables))
        assert powers[-1] == model.temperature
    assert doubts == sorted(doubts, reverse=True)
    assert powers == sorted(powers)
    assert powers[-1] > 0.97


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
    assert release.model().temperature == 1.0


def test_pure_budgets_work_too() -> None:
    release = Curator(rows(0.0, 1), SCHEMA, seed=1).release(NaiveBayes(target="y"), PureDP(epsilon=1))
    assert 0.0 < release.model().temperature <= 1.0


def test_more_budget_never_means_less_trust() -> None:
    """Empty and rare levels included: what noise leaves to their logarithm vanishes with it."""
    asked = NaiveBayes(target="rain")
    powers = [
        weather_fitted(asked, PureDP(epsilon=epsilon), rows=1000, tempered=False).model().temperature
        for epsilon in (3, 30, 100, 1e3)
    ]
    assert powers == sorted(powers)
    assert powers[0] > 0.9
    assert powers[-1] == pytest.approx(1, abs=1e-6)


def test_what_noise_leaves_to_a_logarithm_is_that_of_a_log_normal_level() -> None:
    """Var ln ℓ = ln(1 + Var ℓ/(E ℓ)²) if ℓ is log-normal, against draws of one."""
    table = Measurement(axes=("a",), values=np.array([400.0, 90.0, 10.0]), noise=GaussianNoise(sigma=4.0))
    posterior = JointPosterior([table], {"a": 3}, records=500)
    _, variance, level = posterior.settled.cells[("a",)].moments(posterior.settled.laws[("a",)])
    spread = posterior.doubt(("a",))
    drawn = np.exp(np.random.default_rng(0).normal(size=(400_000, 1)) * np.sqrt(spread) - spread / 2) * level
    assert drawn.mean(axis=0) == pytest.approx(level, rel=0.01)
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.03)
