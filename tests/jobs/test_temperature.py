"""The temperature of a naive Bayes model: its law over all small tables, and what one person can move."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from dpbayes import Unit
from dpbayes.jobs.model import CANDIDATES, FOUND, GRAINS, SURE, choose_temperature, record_losses, worth_it
from dpbayes.mechanisms.selection import Selection
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.schema import Adjacency
from dpbayes.sklearn import ONE_ROW, PrivateCategoricalNB
from dpbayes.tables.engine import CodedTable


@pytest.fixture(scope="module")
def model() -> NaiveBayesModel:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X = np.column_stack([np.where(rng.random(300) < 0.95, y, 1 - y)] * 2)
    nb = PrivateCategoricalNB(
        epsilon=30.0, categories=[[0, 1]] * 2, classes=[0, 1], tempered=False, random_state=0, unit=ONE_ROW
    )  # fmt: skip
    return nb.fit(X, y).model_


def coded(records: list[tuple[int, int, int]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Positions of two attributes and a class; class 2 was not declared and is dropped."""
    table = np.array(records, dtype=np.int64).reshape(len(records), 3)
    return {"x0": table[:, 0], "x1": table[:, 1]}, table[:, 2]


def table(records: list[tuple[int, int, int]]) -> CodedTable:
    columns, labels = coded(records)
    return CodedTable({name: lambda held=held: held for name, held in {**columns, "class": labels}.items()})


RECORDS = [(a, b, y) for a in (0, 1) for b in (0, 1) for y in (0, 1, 2)]


def test_the_loss_of_a_record_depends_on_no_other(model: NaiveBayesModel) -> None:
    rng = np.random.default_rng(1)
    many = [RECORDS[k] for k in rng.integers(len(RECORDS), size=2000)]
    kept = [record for record in many if record[2] < 2]
    together = record_losses(model, *coded(many))
    alone = {record: record_losses(model, *coded([record]))[:, 0] for record in set(kept)}
    assert (together == np.column_stack([alone[record] for record in kept])).all()
    assert together.min() >= 0
    assert together.max() == GRAINS  # some loss is clipped


def test_losses_are_clipped_logarithms_on_a_grid(model: NaiveBayesModel) -> None:
    bound = 3 + mpmath.log(2)
    shares = [mpmath.exp(value) for value in model.class_log_prior[:2]]
    for a, b, y in RECORDS:
        if y == 2:
            continue
        found = record_losses(model, *coded([(a, b, y)]))[:, 0]
        tables = [
            [mpmath.exp(table[k][v]) for k in (0, 1)] for table, v in zip(model.feature_log_prob, (a, b), strict=True)
        ]
        for grains, power in zip(found, CANDIDATES, strict=True):
            joint = [shares[k] * (tables[0][k] * tables[1][k]) ** power for k in (0, 1)]
            loss = min(-mpmath.log(joint[y] / mpmath.fsum(joint)), bound)
            assert abs(int(grains) - loss / bound * GRAINS) <= 0.5001


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("rows", [1, 2])
def test_choose_temperature_tells_no_neighbours_apart_beyond_its_price(
    model: NaiveBayesModel, monkeypatch: pytest.MonkeyPatch, adjacency: Adjacency, rows: int
) -> None:
    selection = Selection(sharpness=1.5, unit=Unit(adjacency=adjacency, max_rows=rows))
    seen: list[tuple[list[int], int]] = []

    def spy(_: Selection, scores: list[int], *, spread: int, below: object) -> int:
        seen.append((scores, spread))
        return 0

    monkeypatch.setattr(Selection, "choose", spy)

    def law(records: tuple[tuple[int, int, int], ...]) -> np.ndarray:
        choose_temperature(model, table(list(records)), selection)
        scores, spread = seen.pop()
        weights = np.array([math.exp(-1.5 * (score - min(scores)) / spread) for score in scores])
        return weights / weights.sum()

    people = [person for size in range(rows + 1) for person in itertools.combinations_with_replacement(RECORDS, size)]
    laws = {person: law((*person, RECORDS[0], RECORDS[4])) for person in people}
    base = [laws[()]] if adjacency is Adjacency.ADD_REMOVE else list(laws.values())
    at, worst, largest = np.array([0.0, 0.4, 1.0, 1.5]), np.zeros(4), 0.0
    for one, other in itertools.product(base, laws.values()):
        for p, q in ((one, other), (other, one)):
            worst = np.maximum(worst, np.maximum(p - np.exp(at)[:, None] * q, 0.0).sum(axis=1))
            ratio = np.log(p / q)
            largest = max(largest, float(ratio.max() - ratio.min()))
    assert largest <= 1.5 * (1 + 1e-12)
    assert largest >= 0.5 * 1.5  # a person can use half of what is paid for
    assert (worst <= [selection.delta(float(epsilon)) + 1e-15 for epsilon in at]).all()


def test_a_table_in_which_one_power_is_best_by_far_has_that_temperature(model: NaiveBayesModel) -> None:
    records = [(0, 0, 0), (1, 1, 1)] * 3000
    selection = Selection(sharpness=1.0, unit=Unit(adjacency="replace-one"))
    assert choose_temperature(model, table(records), selection) == 1.0
    assert choose_temperature(model, table(records), selection, np.random.default_rng(1)) == 1.0


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_choice_that_is_worth_it_comes_near_the_best_as_often_as_it_says(adjacency: Adjacency) -> None:
    unit, bound = Unit(adjacency=adjacency), 3 + math.log(2)
    made = Selection(sharpness=0.5, unit=unit)
    spread = GRAINS * (2 if unit.replaces else 1)
    least = next(n for n in range(1, 10**6) if worth_it(made, records=n, classes=2))
    assert not worth_it(made, records=None, classes=2)
    assert not worth_it(made, records=least - 1, classes=2)
    worse = least * FOUND / bound * GRAINS  # every other candidate loses a tenth of a nat per record
    weights = [math.exp(-made.sharpness * each / spread) for each in (0.0, *[worse] * (len(CANDIDATES) - 1))]
    assert weights[0] / sum(weights) >= SURE
    assert weights[0] / sum(weights) <= SURE + 0.01


def test_a_fit_buys_a_temperature_by_default_only_where_it_is_worth_it() -> None:
    from dpbayes import ApproxDP, Attribute, NaiveBayes, Schema
    from dpbayes.jobs import Fit

    def plan(records: int, tempered: bool | None) -> int:
        schema = Schema(
            id="d",
            unit=Unit(adjacency="replace-one"),
            records=records,
            attributes=tuple(Attribute(name=name, categories=("a", "b"), missing="other") for name in ("x", "y")),
        )
        made = Fit(model=NaiveBayes(target="y"), tempered=tempered).plan(schema, ApproxDP(epsilon=1, delta=1e-6))
        return sum(isinstance(paid.mechanism, Selection) for paid in made.paid)

    assert [plan(100, None), plan(100, True), plan(100, False)] == [0, 1, 0]
    assert [plan(10**6, None), plan(10**6, True), plan(10**6, False)] == [1, 1, 0]
