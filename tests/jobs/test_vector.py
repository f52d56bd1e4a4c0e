"""Draws of a vector that is a sum over rows: what it may move, what is drawn, and what is refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import gammainc, gammaincc, gammaln
from tests.commands import dpbayes
from tests.releases import PEOPLE, USUAL, made_by_a_curator, people

from dpbayes import Attribute, Curator, Dirichlet, Release, Schema, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.jobs import Vector
from dpbayes.jobs.base import Setting
from dpbayes.schema import Adjacency, Marginal
from dpbayes.tables.sources import open_table

SCORES = ((0.5, 0.1), (0.25, 1.5), (0.0, 0.0))
JOB = Vector(marginal="sex", entries=("f", "m"), scores=SCORES)
rows = st.lists(st.lists(st.integers(0, 90).map(lambda n: n / 10), min_size=3, max_size=3), min_size=2, max_size=5)


@given(rows, st.sampled_from(list(Adjacency)), st.integers(1, 3), st.data())
def test_no_neighbour_moves_a_sum_of_scores_by_more(
    scores: list[list[float]], adjacency: Adjacency, most: int, data: st.DataObject
) -> None:
    table = np.array(scores)
    if not np.ptp(table, axis=0).any() or not table.any():
        return
    moved = Unit(adjacency=adjacency, max_rows=most).moved_by(scores)
    cells = st.lists(st.integers(0, len(scores) - 1), min_size=most, max_size=most)
    change = table[data.draw(cells)].sum(axis=0)
    if adjacency is Adjacency.REPLACE_ONE:
        change = change - table[data.draw(cells)].sum(axis=0)
    assert np.abs(change).sum() <= moved.l1
    assert np.square(change).sum() <= moved.l2_squared
    assert np.abs(change).max() <= moved.linf


RULES = list(itertools.product(["other", "drop"], ["other", "category", "drop"]))


@pytest.mark.parametrize(("unknown", "missing"), RULES)
@pytest.mark.parametrize("person", [None, "id"])
def test_the_sensitivity_is_the_largest_change_over_all_tables_of_two_rows(
    person: str | None, unknown: str, missing: str
) -> None:
    attribute = Attribute(name="a", categories=("u", "v"), unknown=unknown, missing=missing)
    schema = Schema(id="x", unit=Unit(adjacency="replace-one"), person=person, attributes=(attribute,))
    scores = np.array([[7.0, 0.0], [7.0, 1.0], [7.0, 0.5], [6.5, 2.0]])[: len(attribute.levels)]
    cells = ["u", "v", "?", None]
    moved = schema.unit.moved_by(scores)
    whose = [None] if person is None else ["me", "somebody new", None]
    rows = list(itertools.product(cells, whose))
    sums = []
    for value, name in rows:
        columns = {"a": pa.array([value, "u"], pa.string()), "id": pa.array([name, "another"], pa.string())}
        (counts,) = open_table(pa.table(columns)).count(schema, [Marginal.parse("a")])
        sums.append(counts.array.ravel() @ scores)
    changes = [np.abs(one - other) for one, other in itertools.product(sums, repeat=2)]
    assert max(change.sum() for change in changes) == pytest.approx(moved.l1, rel=1e-8)
    assert max(np.square(change).sum() for change in changes) == pytest.approx(moved.l2_squared, rel=1e-8)
    assert max(change.max() for change in changes) == pytest.approx(moved.linf, rel=1e-8)
    assert max(np.square(change).sum() for change in changes) <= moved.l2_squared


@pytest.mark.parametrize("people", [1, 10, 100])
def test_a_row_that_names_nobody_keeps_the_claim(people: int) -> None:
    schema = Schema(
        id="x",
        unit=Unit(adjacency="replace-one", person="id"),
        attributes=(Attribute(name="a", categories=("u", "v"), missing="other"),),
    )
    asked = Vector(marginal="a", entries=("x", "y"), scores=((1000, 0), (1000, 1), (1000, 0.5)))
    made = asked.plan(schema, USUAL).paid[0].mechanism
    with_, without = (made.weight * 1000.0 * count + made.concentration for count in (people, people - 1))

    def delta(one: float, other: float) -> float:
        """P[z > t] − e·Q[z > t], or of z < t, where the loss of Gamma(one) against Gamma(other) is 1."""
        t = np.exp((1.0 + gammaln(one) - gammaln(other)) / (one - other))
        tail = gammaincc if one > other else gammainc
        return float(tail(one, t) - np.e * tail(other, t))

    assert max(delta(with_, without), delta(without, with_)) <= 1e-6


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_the_price_of_a_vector_is_above_the_exact_divergence_of_its_gammas(order: float) -> None:
    unit = Unit(adjacency="replace-one")
    made = Dirichlet(weight=0.7, concentration=4.0, unit=unit, sensitivity=unit.moved_by(SCORES))
    mp.dps = 40
    for one, other in itertools.permutations(range(3), 2):
        base = np.array([2.5, 3.0])
        a, b = (0.7 * (base + np.array(SCORES[cell])) + 4.0 for cell in (one, other))
        exact = sum(
            mp.loggamma(order * x + (1 - order) * y) - order * mp.loggamma(x) - (1 - order) * mp.loggamma(y)
            for x, y in zip(map(mp.mpf, a), map(mp.mpf, b), strict=True)
        ) / (order - 1)
        assert 0 < float(exact) <= made.renyi(order)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3))
def test_any_vector_that_is_not_negative_can_be_drawn(values: list[float]) -> None:
    unit = Unit(adjacency="add-remove")
    made = Dirichlet(weight=1.0, concentration=5.0, unit=unit, sensitivity=unit.moved_by(np.eye(3) * 0.5))
    draw = made.draw(values, np.random.default_rng(1))
    assert draw.sum() == pytest.approx(1.0)
    assert (draw > 0).all()


def test_the_mean_of_gammas_is_the_weighted_vector_plus_the_concentration() -> None:
    unit = Unit(adjacency="add-remove")
    made = Dirichlet(weight=2.0, concentration=(5.0, 6.0), unit=unit, sensitivity=unit.moved_by(np.eye(2)))
    rng = np.random.default_rng(5)
    mean = np.mean([made.gammas([0.25, 3.5], rng) for _ in range(20_000)], axis=0)
    assert mean == pytest.approx([5.5, 13.0], abs=0.1)


def test_counts_stay_whole_where_no_sensitivity_is_declared() -> None:
    unit = Unit(adjacency="add-remove")
    with pytest.raises(InvalidArgument, match="whole"):
        Dirichlet(weight=1.0, concentration=5.0, unit=unit).draw([0.5, 1.0])


@pytest.mark.parametrize(
    "change",
    [
        {"scores": SCORES[:2]},
        {"scores": ((0.5,), (0.2,), (0.1,))},
        {"scores": ((0.5, -1.0), *SCORES[1:])},
        {"scores": ((0.5, float("nan")), *SCORES[1:])},
        {"scores": ((1.0, 1.0),) * 3},
        {"entries": ("f", "f")},
        {"weight": 1.0},
        {"concentration": (1.0,)},
        {"weight": 1.0, "concentration": (1.0, 2.0, 3.0)},
        {"weight": 9.0, "concentration": (1.0, 2.0)},
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(change: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Curator(people(), PEOPLE).plan(replace(JOB, **change), USUAL)


def test_parameters_that_are_given_are_used_as_they_are() -> None:
    plan = Curator(people(), PEOPLE).plan(replace(JOB, weight=0.1, concentration=(20.0, 30.0)), USUAL)
    assert plan.paid[0].mechanism.concentration == (20.0, 30.0)
    assert plan.cost.epsilon(1e-6) <= 1.0


def test_a_release_with_another_sensitivity_than_its_scores_have_is_not_verified(tmp_path: Path) -> None:
    record = made_by_a_curator("vector", tmp_path).release.record()
    assert Release.from_json(json.dumps(record)).verify().ok
    record["job"]["scores"][1][1] = 3.0
    checks = {check.name: check.passed for check in Release.from_json(json.dumps(record)).verify().checks}
    assert not checks["mechanisms"]


def test_the_command_reads_scores_by_level_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("sex\n" + "F\n" * 300 + "M\n" * 100)
    Path("p.toml").write_text(
        'id = "p"\nadjacency = "replace-one"\n[[attribute]]\nname = "sex"\ncategories = ["F","M"]\nmissing = "other"'
    )
    Path("scores.csv").write_text("sex,care,hours\nM,0.5,8\nF,1,2.5\n")
    asked = ["p.csv", "--schema", "p.toml", "sex", "--epsilon", 5, "--delta", 1e-6, "--ledger", "none"]
    done = dpbayes("release", "--as", "vector", *asked, "--set", "scores=scores.csv", "--json")
    found = done.result["release"]
    assert found["job"]["scores"] == [[1.0, 2.5], [0.5, 8.0], [0.0, 0.0]]
    care, hours = found["answers"][0]["values"]
    assert 0 < care < hours
    shown = dpbayes("release", "--as", "vector", *asked, "--set", "scores=scores.csv").out
    assert "hours" in shown
    Path("scores.csv").write_text("sex,care,hours\nX,0.5,8\n")
    assert "line 2" in dpbayes("release", "--as", "vector", *asked, "--set", "scores=scores.csv").sentence
    Path("scores.csv").write_text("care,hours\n1,2\n")
    assert "first columns" in dpbayes("release", "--as", "vector", *asked, "--set", "scores=scores.csv").sentence


@pytest.mark.parametrize(("keys", "schema"), [({}, PEOPLE), ({"scores": 3}, PEOPLE), ({"scores": "f.csv"}, None)])
def test_a_request_without_scores_or_without_a_schema_is_refused(
    keys: dict[str, object], schema: Schema | None
) -> None:
    with pytest.raises(InvalidArgument, match="expected scores, a CSV file, and the schema"):
        Vector.requested("vector", ("sex",), keys, Setting(schema=schema))


def test_concentrations_of_a_vector_are_part_of_the_text_of_a_mechanism() -> None:
    plain = dpbayes("price", "Dirichlet(1, (4, 9))", "--json").result
    same = dpbayes("price", "Dirichlet(1, 4)", "--json").result
    assert plain["mechanisms"][0]["concentration"] == [4.0, 9.0]
    assert plain["epsilon"] < same["epsilon"]


def test_numbers_that_are_equal_make_equal_jobs() -> None:
    whole, broken = (
        replace(JOB, weight=1.0, concentration=[20 * one, 30 * one], scores=[[one, 0]] * 3) for one in (1, 1.0)
    )
    assert whole == broken
    assert json.dumps(whole.record()) == json.dumps(broken.record())
    assert {type(alpha) for alpha in whole.concentration} == {float}
