"""Estimates, intervals, answers and models know what cannot occur."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes import ApproxDP, Attribute, BayesNet, Curator, Posterior, Schema, Tables, Unit
from dpbayes.models import Histogram
from dpbayes.release.format import Answer
from dpbayes.schema.public import Impossible, Within

UNIT = Unit(adjacency="replace-one")
TARGET = ApproxDP(epsilon=0.5, delta=1e-6)
HOMES = {"a": "north", "b": "north", "c": "south", "d": "south"}


def schema(*, known: bool = True) -> Schema:
    declared = {
        "impossible": (Impossible(levels={"age": ("child",), "married": ("yes",)}),),
        "within": (Within(inner="county", outer="state", map=HOMES),),
    }
    return Schema(
        id="people",
        unit=UNIT,
        attributes=(
            Attribute(name="age", categories=("child", "adult"), missing="other"),
            Attribute(name="married", categories=("no", "yes"), missing="other"),
            Attribute(name="state", categories=("north", "south"), missing="other"),
            Attribute(name="county", categories=tuple(HOMES), missing="other"),
        ),
        **(declared if known else {}),  # type: ignore[arg-type]
    )


def people(rows: int = 2000) -> dict[str, list[str]]:
    rng = np.random.default_rng(3)
    age = rng.choice(["child", "adult"], rows, p=[0.3, 0.7])
    county = rng.choice(list(HOMES), rows, p=[0.4, 0.3, 0.2, 0.1])
    married = np.where((age == "adult") & (rng.random(rows) < 0.6), "yes", "no")
    return {
        "age": list(age),
        "married": list(married),
        "county": list(county),
        "state": [HOMES[each] for each in county],
    }


ASKED = Tables("age,married", "county,state", "state", mechanism="gaussian")


def test_impossible_cells_are_zero_and_everything_agrees() -> None:
    release = Curator(people(), schema(), seed=1).release(ASKED, TARGET)
    for name in ("age,married", "county,state"):
        view = release[name]
        zeros = schema().zeros(view.marginal.names)
        assert zeros is not None
        for product in view.table.products.values():
            for part in (product.values, product.lower, product.upper):
                assert part is not None
                assert (part.reshape(zeros.shape)[zeros] == 0).all()
    counties = release["county,state"].table.products["counts"].values.reshape(5, 3)
    np.testing.assert_allclose(counties.sum(axis=0), release["state"].table.products["counts"].values, atol=1e-6)
    assert release.verify().checks[-1].passed


def test_what_is_known_makes_estimates_better() -> None:
    truth = people()
    errors = {True: [], False: []}  # type: dict[bool, list[float]]
    counts = np.zeros((5, 3))
    for county, state in zip(truth["county"], truth["state"], strict=True):
        counts[list(HOMES).index(county), ["north", "south"].index(state)] += 1
    for known in (True, False):
        for seed in range(12):
            release = Curator(truth, schema(known=known), seed=seed).release(ASKED, TARGET, estimates=False)
            mean, _ = Posterior(release).joint.linear(("county", "state"))
            errors[known].append(float(((mean - counts) ** 2).sum()))
    assert np.mean(errors[True]) < 0.75 * np.mean(errors[False])


def test_answers_and_intervals_know_it() -> None:
    posterior = Posterior(Curator(people(), schema(), seed=1).release(ASKED, TARGET))
    found = posterior.ask("share(married='yes' | age='child')")
    assert found.estimate == pytest.approx(0.0, abs=1e-9)
    assert found.upper == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "model", [Histogram(attributes=("age", "married")), BayesNet.of('[["age", "married"]]')], ids=str
)
def test_synthetic_records_have_no_married_children(model: object) -> None:
    release = Curator(people(), schema(), seed=1).release(Tables("age,married", mechanism="gaussian"), TARGET)
    drawn = release.model(model).sample(20_000, np.random.default_rng(0), even=True)
    assert not ((drawn["age"] == 0) & (drawn["married"] == 1)).any()


def test_a_wrong_declaration_is_told_from_published_values() -> None:
    table = people()
    table["married"] = ["yes"] * 2000
    release = Curator(table, schema(), seed=1).release(ASKED, TARGET)
    assert any("declares impossible" in note for note in release["age,married"].table.notes)


def test_a_whole_number_in_an_answer_is_a_float_as_its_file_gives_it_back() -> None:
    answer = Answer(name="how many", by=0, values=(3,))
    assert answer.values == (3.0,)
    assert type(answer.values[0]) is float
