"""Rounds under one charge: the price holds whatever the rule, and what is refused costs nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from tests.models.examples import ADD, REPLACE, weather, weather_schema

from dpbayes import ApproxDP, Attribute, Cost, Curator, Gaussian, Ledger, PureDP, Schema, Synthetic, Unit
from dpbayes.base.errors import BudgetExceeded, MeaninglessBudget, SchemaError
from dpbayes.design.noise import noise
from dpbayes.jobs.synthetic import FAINT, HOPELESS

USUAL = ApproxDP(epsilon=1, delta=1e-6)


def released(rows: int, epsilon: float, *, unit: Unit = ADD, target: str | None = "rain"):
    curator = Curator(weather(rows), weather_schema(unit), seed=5)
    return curator.release(Synthetic(target=target), ApproxDP(epsilon=epsilon, delta=1e-6), estimates=False)


def law(sigma: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-k * k / (2.0 * sigma * sigma))
    return weights / weights.sum()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1.5])
def test_choosing_the_next_table_by_the_last_answer_costs_no_more_than_the_list(adjacency: str, epsilon: float) -> None:
    """δ of two steps by enumeration: the first answer decides which of two tables the second one measures."""
    first, second, reach = 1.1, 1.6, 14
    have, lack = np.array([[2, 0], [0, 1]]), np.array([[1, 0], [0, 1]])  # a record of (0, 0) more
    if adjacency == "replace-one":
        lack = np.array([[1, 0], [0, 2]])  # it became one of (1, 1)
    margins = [lambda table, axis=axis: table.sum(axis=axis) for axis in (0, 1)]
    noise_one, noise_two = law(first, reach), law(second, reach)
    wide = 4 * reach

    def answers(counts: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """The joint law of a table of two noisy cells."""
        laws = [np.zeros(2 * wide + 1) for _ in counts]
        for cell, count in zip(laws, counts, strict=True):
            cell[wide + count - reach : wide + count + reach + 1] = drawn
        return np.multiply.outer(*laws)

    def delta(one: np.ndarray, other: np.ndarray) -> float:
        """Steered: if the first answer's cells are above each other, measure the other margin."""
        p, q = (answers(margins[0](table), noise_one) for table in (one, other))
        above = np.subtract.outer(np.arange(p.shape[0]), np.arange(p.shape[1])) > 0
        total = 0.0
        for chosen, margin in ((above, margins[1]), (~above, margins[0])):
            seconds = [answers(margin(table), noise_two).ravel() for table in (one, other)]
            kept = (seconds[0] > 0) | (seconds[1] > 0)
            for mass, opposed in zip(p[chosen], q[chosen], strict=True):
                if mass > 1e-13:
                    gained = mass * seconds[0][kept] - math.exp(epsilon) * opposed * seconds[1][kept]
                    total += float(np.maximum(gained, 0.0).sum())
        return total

    unit = Unit(adjacency=adjacency)
    price = Cost.total([Gaussian(sigma=first, unit=unit), Gaussian(sigma=second, unit=unit)])
    for pair in ((have, lack), (lack, have)):
        assert delta(*pair) <= ApproxDP(epsilon=epsilon, delta=1e-9).at(0) + price.delta(epsilon) + 1e-9
    assert max(delta(have, lack), delta(lack, have)) >= 0.5 * price.delta(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.5])
def test_using_places_in_an_order_that_depends_on_draws_costs_no_more_than_the_list(epsilon: float) -> None:
    """δ by enumeration: the first answer decides which place is next, the second whether the last one is used."""
    sigmas, reach = (1.1, 1.6, 2.3), 15
    here, there = ([np.roll(np.pad(law(sigma, reach), 1), shift) for sigma in sigmas] for shift in (1, 0))
    values = np.arange(-reach - 1, reach + 2)

    def delta(p: list[np.ndarray], q: list[np.ndarray]) -> float:
        found, factor = 0.0, math.exp(epsilon)
        for steered, (following, last) in ((values > 0, (1, 2)), (values <= 0, (2, 1))):
            one, other = (np.multiply.outer(law_[0][steered], law_[following]) for law_ in (p, q))
            ended = values > 1
            found += np.maximum(one[:, ended] - factor * other[:, ended], 0.0).sum()
            thirds = (np.multiply.outer(two[:, ~ended], law_[last]) for two, law_ in ((one, p), (other, q)))
            found += np.maximum(next(thirds) - factor * next(thirds), 0.0).sum()
        return float(found)

    price = Cost.total([Gaussian(sigma=sigma, unit=ADD) for sigma in sigmas]).delta(epsilon)
    assert 0.5 * price <= max(delta(here, there), delta(there, here)) <= price + 1e-9


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=["add-remove", "replace-one"])
def test_the_release_holds_what_was_planned_and_verifies(unit: Unit, tmp_path) -> None:
    ledger = tmp_path / "weather.ledger"
    Ledger(ledger).open("weather", ApproxDP(epsilon=2, delta=1e-5), unit)
    release = Curator(weather(3000), weather_schema(unit), ledger=ledger).release(Synthetic(target="rain"), USUAL)
    assert release.verify(ledger=ledger).ok
    assert len(release.tables) == sum(paid.times for paid in release.paid)
    assert {frozenset(table.marginal.names) for table in release.tables} >= {
        frozenset(pair) for pair in combinations(weather_schema().names, 2)
    }
    assert (release.records is not None) == unit.fixed_size
    assert -0.01 < USUAL.gap(release.cost) <= 0


def test_the_last_round_goes_to_pairs_that_depend() -> None:
    release = released(20_000, 0.05)  # noise above the dependence that a sample has by chance
    times: dict[frozenset[str], int] = {}
    for table in release.tables:
        key = frozenset(table.marginal.names)
        times[key] = times.get(key, 0) + 1
    assert times[frozenset({"street", "umbrella"})] > 1
    assert times[frozenset({"street", "day"})] == times[frozenset({"umbrella", "day"})] == 1


def test_the_last_round_goes_to_single_columns_where_pairs_show_nothing() -> None:
    rng = np.random.default_rng(4)
    names = [f"x{place}" for place in range(8)]
    columns = {name: rng.choice(list("abcdef"), 2000) for name in names}
    schema = Schema(
        id="noise",
        unit=ADD,
        attributes=tuple(Attribute(name=name, categories=tuple("abcdef"), missing="other") for name in names),
    )
    curator = Curator(pa.table(columns), schema, seed=1)
    release = curator.release(Synthetic(target="x0"), ApproxDP(epsilon=0.6, delta=1e-6), estimates=False)
    drawn = [table.marginal.names for table in release.tables]
    last = drawn[-3 * len(names) :]
    assert set(combinations(names, 2)) <= set(drawn)
    assert sum(len(each) == 1 for each in last) == len(last) / 2
    assert all("x0" in each for each in last if len(each) == 2)


@pytest.mark.parametrize(("epsilon", "most", "form"), [(3.0, 2, "mixture"), (0.006, 1, "independent columns")])
def test_a_budget_too_small_for_pairs_goes_to_what_it_can_measure(epsilon: float, most: int, form: str) -> None:
    release = released(2000, epsilon)
    assert max(len(table.marginal.names) for table in release.tables) == most
    assert len(release.tables) == sum(paid.times for paid in release.paid)
    assert release.model().form == form


def test_between_the_two_thresholds_pairs_with_the_target_are_measured() -> None:
    for epsilon in (0.02, 0.025, 0.03, 0.04):
        release = released(2000, epsilon)
        pairs = [table.marginal.names for table in release.tables if len(table.marginal.names) == 2]
        if pairs and all("rain" in names for names in pairs):
            assert release.model().form == "naive Bayes"
            return
    raise AssertionError("no budget between the thresholds was tried")


def test_the_predicted_distance_is_that_of_noise() -> None:
    rng = np.random.default_rng(0)
    found = np.abs(rng.normal(0.0, 30.0, (200, 500))).sum(axis=1).mean() / 2 / 10_000
    assert noise(500, 30.0, 10_000) == pytest.approx(found, rel=0.01)
    assert HOPELESS > FAINT


def test_nothing_is_charged_for_what_is_refused(tmp_path) -> None:
    book = Ledger(tmp_path / "weather.ledger")
    book.open("weather", ApproxDP(epsilon=0.5, delta=1e-6), ADD)
    curator = Curator(weather(100), weather_schema(ADD), ledger=book)
    with pytest.raises(SchemaError, match="no attribute 'snow'"):
        curator.release(Synthetic(target="snow"), ApproxDP(epsilon=0.1, delta=1e-7))
    with pytest.raises(BudgetExceeded):
        curator.release(Synthetic(target="rain"), USUAL)
    assert not book.account("weather").charges


@pytest.mark.parametrize("target", [None, "a"])
def test_odd_tables_are_planned_and_released(target: str | None) -> None:
    one = Attribute(name="a", categories=("x", "y"), unknown="drop", missing="drop")
    constant = Attribute(name="c", categories=("other",), missing="other")
    wide = Attribute(name="w", categories=tuple(f"v{number}" for number in range(34_000)), missing="other")
    data = {"a": ["x", "y"] * 50, "c": ["other"] * 100, "w": ["v1", "v2"] * 50}
    for attributes in ((one,), (one, constant), (one, constant, wide)):
        schema = Schema(id="odd", unit=ADD, attributes=attributes)
        release = Curator(data, schema, seed=1).release(Synthetic(target=target), USUAL, estimates=False)
        model = release.model()
        assert set(model.sample(10, np.random.default_rng(0))) == set(schema.names)


def test_hundreds_of_columns_get_a_plan_of_what_can_be_measured() -> None:
    attributes = tuple(Attribute(name=f"c{number}", categories=("x", "y"), missing="other") for number in range(300))
    schema = Schema(id="many", unit=ADD, attributes=attributes)
    with_target = Synthetic(target="c0").plan(schema, USUAL)
    assert sum(len(table.names) == 2 for table in with_target.tables) == 299
    without = Synthetic().plan(schema, USUAL)
    assert all(len(table.names) == 1 for table in without.tables)
    assert "0 of 44,850 pairs are measured" in without.choice
    assert "299 of 44,850 pairs are measured" in with_target.choice


def test_a_budget_that_buys_nothing_is_said_to() -> None:
    schema = replace(weather_schema(), records=10)
    with pytest.warns(MeaninglessBudget, match="times the ε"):
        Synthetic().plan(schema, ApproxDP(epsilon=0.001, delta=1e-9))


def test_a_pure_guarantee_takes_laplace_noise() -> None:
    release = Curator(weather(5000), weather_schema(ADD), seed=2).release(Synthetic(target="rain"), PureDP(epsilon=2))
    assert {paid.mechanism.record()["mechanism"] for paid in release.paid} == {"laplace-1"}
    assert release.model().form == "mixture"
