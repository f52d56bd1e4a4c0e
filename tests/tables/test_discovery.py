from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument, TableError
from dpbayes.tables.discovery import CategoryDiscovery, EdgeDiscovery
from dpbayes.tables.sources import open_table

UNITS = [
    PrivacyUnit(adjacency=adjacency, max_rows=rows) for adjacency in ("replace-one", "add-remove") for rows in (1, 3)
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_cost_of_categories_meets_what_was_asked_and_hardly_less(unit):
    discovery = CategoryDiscovery(column="job", epsilon=0.5, delta=1e-7, unit=unit)
    cost = discovery.cost()
    assert 0.5 * (1 - 1e-6) <= cost.epsilon_stated <= 0.5
    assert 1e-7 / 2 <= cost.delta_stated <= 1e-7
    assert cost.unit == unit


def test_more_rows_per_person_need_a_higher_threshold():
    thresholds = [CategoryDiscovery(column="job", epsilon=1, delta=1e-6, unit=unit).threshold for unit in UNITS]
    assert thresholds[1] > thresholds[0] > thresholds[2]


def test_common_categories_are_found_and_single_ones_stay_hidden():
    jobs = ["nurse"] * 500 + ["clerk"] * 400 + [f"only {number}" for number in range(50)] + [None] * 10
    discovery = CategoryDiscovery(column="job", epsilon=1, delta=1e-9, unit=UNITS[0])
    assert discovery.draw(open_table({"job": jobs})) == ("clerk", "nurse")


def test_a_busy_person_cannot_push_a_category_over_the_threshold():
    people = [str(number) for number in range(500)] + ["busy"] * 500
    jobs = ["clerk"] * 500 + ["king"] * 500
    discovery = CategoryDiscovery(column="job", epsilon=1, delta=1e-9, unit=UNITS[0], person="id")
    assert discovery.draw(open_table({"job": jobs, "id": people})) == ("clerk",)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_cost_of_edges_is_pure_and_meets_what_was_asked(unit):
    cost = EdgeDiscovery(column="age", bins=5, low=0, high=120, epsilon=0.8, unit=unit).cost()
    assert cost.delta_stated == 0
    assert 0.8 * (1 - 1e-6) <= cost.epsilon_stated <= 0.8


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_person_moves_no_score_by_more_than_is_paid_for(unit):
    discovery = EdgeDiscovery(column="x", bins=5, low=0, high=4, epsilon=1, unit=unit, steps=4)
    rng = np.random.default_rng(7)

    def scores(values, rank):
        below = np.array([sum(value < edge for value in values) for edge in discovery.candidates])
        return np.array(discovery._scores(below, len(values), rank))

    largest = Counter()
    for _ in range(300):
        others = list(rng.integers(-1, 6, size=6))
        mine, theirs = (list(rng.integers(-1, 6, size=rng.integers(0, unit.max_rows + 1))) for _ in range(2))
        neighbour = others + (theirs if unit.replaces else [])  # a missing value is no row of the numbers
        for rank in range(1, 5):
            moved = np.abs(scores(others + mine, rank) - scores(neighbour, rank)).max()
            assert moved <= discovery._moved(rank)
            largest[rank] = max(largest[rank], int(moved))
    assert all(largest[rank] >= 0.6 * discovery._moved(rank) for rank in range(1, 5))


def test_edges_cut_into_parts_of_about_equal_size():
    values = [float(value) for value in range(10_000)] + [math.nan, None]
    discovery = EdgeDiscovery(column="x", bins=4, low=-1000, high=11_000, epsilon=2, unit=UNITS[0], steps=1200)
    edges = discovery.draw(open_table({"x": values}))
    assert edges[0] == -math.inf
    assert edges[-1] == math.inf
    assert np.abs(np.array(edges[1:-1]) - [2500, 5000, 7500]).max() < 200


def test_edges_of_an_empty_table_are_still_drawn_from_the_grid():
    discovery = EdgeDiscovery(column="x", bins=3, low=0, high=1, epsilon=1, unit=UNITS[0], steps=10)
    edges = discovery.draw(open_table({"x": np.array([], dtype=float)}))
    assert set(edges[1:-1]) <= set(discovery.candidates)


def test_discovery_of_a_column_that_is_not_there_is_refused():
    with pytest.raises(TableError, match="no column"):
        CategoryDiscovery(column="salary", epsilon=1, delta=1e-6, unit=UNITS[0]).draw(open_table({"x": [1]}))


@pytest.mark.parametrize("bad", [{"bins": 1}, {"low": 5}, {"high": math.inf}, {"epsilon": 0}])
def test_impossible_edges_are_refused(bad):
    good = {"column": "x", "bins": 3, "low": 0, "high": 1, "epsilon": 1, "unit": UNITS[0]}
    with pytest.raises(InvalidArgument):
        EdgeDiscovery(**good | bad)
