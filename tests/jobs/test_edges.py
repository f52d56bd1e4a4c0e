"""Bought edges: private quantiles on a public grid, their price, and the law of one."""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections import Counter
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpbayes import ApproxDP, Attribute, Curator, Edges, Ledger, NaiveBayes, PureDP, Schema, Unit
from dpbayes.base.errors import DpbayesError, InvalidArgument, SchemaError
from dpbayes.jobs import Fit, Quantiles
from dpbayes.jobs.base import job_from_record, plan_of
from dpbayes.mechanisms.selection import Selection
from dpbayes.models import Histogram
from dpbayes.tables.engine import CodedTable
from dpbayes.tables.sources import open_table

UNITS = [Unit(adjacency=adjacency, max_rows=rows) for adjacency in ("replace-one", "add-remove") for rows in (1, 3)]


def schema(name: str = "x", unit: Unit = UNITS[0]) -> Schema:
    return Schema(id="d", unit=unit, attributes=(Attribute(name=name, edges=(0.0, 1.0)),))


def edges_of(values: object, epsilon: float = 1.0, **quantiles: float) -> tuple[float, ...]:
    job = Edges(column="x", quantiles=Quantiles(**quantiles), numeric=True)  # type: ignore[arg-type]
    (answer,) = Curator({"x": values}, schema()).release(job, PureDP(epsilon=epsilon)).answers
    return answer.values  # type: ignore[return-value]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_cost_of_edges_is_pure_and_meets_what_was_asked(unit: Unit) -> None:
    job = Edges(column="x", quantiles=Quantiles(lower=0, upper=120, bins=5))
    cost = job.plan(schema(unit=unit), PureDP(epsilon=0.8)).cost
    assert 0.8 * (1 - 1e-6) <= cost.renyi(math.inf) <= 0.8
    assert cost.delta(0.8) == 0
    assert cost.epsilon(1e-6) < 0.8


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_person_moves_no_score_by_more_than_is_paid_for(unit):
    discovery = Quantiles(lower=0, upper=4, bins=5, candidates=5)
    rng = np.random.default_rng(7)

    def scores(values, rank):
        below = np.array([sum(value < edge for value in values) for edge in discovery.grid])
        return np.array(discovery.scores(below, len(values), rank))

    largest = Counter()
    for _ in range(300):
        others = list(rng.integers(-1, 6, size=6))
        mine, theirs = (list(rng.integers(-1, 6, size=rng.integers(0, unit.max_rows + 1))) for _ in range(2))
        neighbour = others + (theirs if unit.replaces else [])  # a missing value is no row of the numbers
        for rank in range(1, 5):
            moved = np.abs(scores(others + mine, rank) - scores(neighbour, rank)).max()
            assert moved <= discovery.moved(unit, rank)
            largest[rank] = max(largest[rank], int(moved))
    assert all(largest[rank] >= 0.6 * discovery.moved(unit, rank) for rank in range(1, 5))


def test_edges_cut_into_parts_of_about_equal_size() -> None:
    values = [float(value) for value in range(10_000)] + [math.nan, None]
    edges = edges_of(values, 2.0, lower=-1000, upper=11_000, bins=4, candidates=1201)
    assert edges[0] == -math.inf
    assert edges[-1] == math.inf
    assert np.abs(np.array(edges[1:-1]) - [2500, 5000, 7500]).max() < 200


def test_edges_of_an_empty_table_are_still_drawn_from_the_grid() -> None:
    edges = edges_of(np.array([], dtype=float), lower=0, upper=1, bins=3, candidates=11)
    assert set(edges[1:-1]) <= set(Quantiles(lower=0, upper=1, bins=3, candidates=11).grid)


@pytest.mark.parametrize("unit", UNITS[:3], ids=str)
def test_the_law_of_an_edge_tells_no_neighbours_apart_beyond_its_price(unit, monkeypatch):
    """All tables of few values on a small grid, and all ways in which one person changes them.

    The law is that of what the draw really hands to the selection: scores, and the spread that divides them.
    """
    asked, selection = Quantiles(lower=0, upper=2, bins=3, candidates=3), Selection(sharpness=1.2, unit=unit)
    handed = []

    def choose(self, scores, *, spread, below):
        handed.append((scores, spread))
        return 0

    monkeypatch.setattr(Selection, "choose", choose)
    values = (-1.0, 0.5, 1.5, 3.0, math.nan)  # below, between two and two, above; the last is no number

    @functools.cache
    def laws(rows):
        handed.clear()
        table = CodedTable({"x": np.array([values[row] for row in rows], dtype=float)})
        asked.edges(table, "x", schema(unit=unit), selection, None)
        weights = [np.exp(-selection.sharpness * np.array(scores) / spread) for scores, spread in handed]
        assert len(weights) == 2
        return [each / each.sum() for each in weights]

    people = [tuple(p) for size in range(unit.max_rows + 1) for p in combinations_with_replacement(range(5), size)]
    worst = 0.0
    for others, rank in product(combinations_with_replacement(range(5), 5 - unit.max_rows), (0, 1)):
        found = [laws(tuple(sorted((*others, *person))))[rank] for person in people]
        for one, other in product(found if unit.replaces else found[:1], found):
            ratio = np.log(one / other)
            worst = max(worst, float(ratio.max() - ratio.min()))
    assert 0.7 * selection.sharpness <= worst <= selection.sharpness * (1 + 1e-12)


def test_edges_of_dates_and_texts_are_refused_from_the_types_alone() -> None:
    table = {"when": [dt.date(1987, 6, 5)], "what": ["canary"], "how much": np.array([1.5]), "code": ["1"]}

    def check(column: str, rows: dict[str, list[object]], numeric: bool | None = None) -> None:
        job = Edges(column=column, quantiles=Quantiles(lower=0, upper=1, bins=3), numeric=numeric)
        fitting = Schema(id="d", unit=UNITS[0], attributes=(Attribute(name="code", categories=("1",)),))
        job.check(open_table(rows), job.plan(fitting, PureDP(epsilon=1)))

    for column in ("when", "what"):
        with pytest.raises(SchemaError, match=f"'{column}' holds text"):
            check(column, table)
    check("how much", table)
    # where everything is text, as in a CSV file, a type says nothing: the owner has to
    with pytest.raises(SchemaError, match="say so with numeric=True"):
        check("code", {"what": ["canary"], "code": ["1"]})
    check("code", {"what": ["canary"], "code": ["1"]}, numeric=True)


@pytest.mark.parametrize("unit", UNITS)
def test_edges_are_as_near_to_equal_parts_as_the_outlook_says(unit: Unit) -> None:
    rows, cut = np.repeat(np.arange(0.005, 1, 0.01), 10), Quantiles(lower=0, upper=1, bins=4, candidates=101)
    schema = Schema(id="d", unit=unit, attributes=(Attribute(name="code", categories=("1",)),))
    job = Edges(column="x", quantiles=cut)
    plan = job.plan(schema, PureDP(epsilon=0.6))
    (said,) = job.outlook(plan)
    off = int(said.split("± ")[1].split(" rows")[0].replace(",", ""))
    outside, tried, engine = 0, 0, open_table({"x": rows})
    for seed in range(40):
        (answer,) = job.draw(engine, plan, np.random.default_rng(seed)).answers
        inner = [edge for edge in answer.values if math.isfinite(edge)]
        for rank, edge in enumerate(inner, start=1):
            tried += 1
            outside += abs((rows < edge).sum() - rank * 250) > off  # the grid holds the true edges
    assert tried >= 115
    assert outside <= 0.05 * tried


@pytest.mark.parametrize(
    "bad", [{"bins": 1}, {"lower": 5}, {"upper": math.inf}, {"candidates": 2}, {"bins": 0}, {"lower": math.nan}]
)
def test_impossible_edges_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        Quantiles(**{"lower": 0, "upper": 1, "bins": 3, **bad})  # type: ignore[arg-type]


def test_edges_without_a_budget_are_refused() -> None:
    with pytest.raises(DpbayesError):
        edges_of([1.0], 0.0, lower=0, upper=1, bins=3)


@pytest.mark.parametrize("target", [PureDP(epsilon=1), ApproxDP(epsilon=1, delta=1e-6)])
def test_the_record_gives_the_job_and_its_plan_back(target: PureDP | ApproxDP) -> None:
    job = Edges(column="x", quantiles=Quantiles(lower=0, upper=1, bins=3))
    assert job_from_record(job.record()) == job
    assert job_from_record(job.record()).plan(schema(), target) == job.plan(schema(), target)


@pytest.mark.parametrize(
    "more", [{"closed": "[-inf, 40)"}, {"labels": {"[40, 80)": "old"}}], ids=["closed", "labelled"]
)
def test_bought_edges_replace_levels_that_labels_and_rules_named(more: dict[str, object]) -> None:
    cut = Quantiles(lower=0, upper=80, bins=2, candidates=9)
    age = Attribute(name="age", edges=(-math.inf, 40, 80), **more)  # type: ignore[arg-type]
    sex = Attribute(name="sex", categories=("F", "M"))
    schema = Schema(id="people", unit=Unit(adjacency="replace-one"), attributes=(sex, age))
    rows = {"sex": ["F", "M"] * 20, "age": [10.0, 70.0] * 20}
    made = Curator(rows, schema).release(Fit(model=NaiveBayes(target="sex"), edges={"age": cut}), PureDP(epsilon=9))
    assert made.schema["age"].levels[-1] == "other"
    assert made.schema["age"].labels == ()


def test_a_model_is_drawn_though_edges_that_it_buys_are_merged() -> None:
    """Its table has fewer cells than were planned: noise that depends on their number is refused after the charge."""
    schema = Schema(id="d", unit=UNITS[0], attributes=(Attribute(name="age", edges=(0, 100)),), records=400)
    cut = Quantiles(lower=0, upper=100, bins=3, candidates=3)
    job = Fit(model=Histogram(attributes=("age",)), edges={"age": cut})
    made = Curator({"age": [25.0, 75.0] * 200}, schema, seed=1).release(job, PureDP(epsilon=20))
    assert made.answers[0].values == (-math.inf, 50.0, math.inf)
    assert made.model() is not None


@pytest.mark.parametrize("unit", [Unit(adjacency="replace-one", max_rows=5), Unit(adjacency="add-remove")])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_model_with_bought_edges_meets_its_promise_also_for_who_has_no_ledger(tmp_path, unit, epsilon):
    """A ledger covers each selection by a shift, which may prove more than the composition that `verify` knows."""
    declared = (Attribute(name="rich", categories=("no", "yes")), Attribute(name="age", edges=(0, 50, 100)))
    schema, ledger = Schema(id="people", unit=unit, attributes=declared), Ledger(tmp_path / "people.ledger")
    ledger.open(schema, ApproxDP(epsilon=30, delta=1e-4))
    job = Fit(model=NaiveBayes(target="rich", features=("age",)), edges={"age": Quantiles(lower=0, upper=100, bins=4)})
    target = ApproxDP(epsilon=epsilon, delta=1e-6)
    plan = plan_of(job, schema, target, account=ledger.account("people"))
    assert -0.1 * epsilon < target.gap(plan.cost) <= 0
    ledger.check("people", plan.cost)


def test_a_plan_has_as_many_parts_as_will_be_bought_evenly_placed() -> None:
    wanted = Quantiles(lower=0, upper=8, bins=4, candidates=9).provisional(Attribute(name="x", categories=("a",)))
    assert wanted.edges == (-math.inf, 2.0, 4.0, 6.0, math.inf)
