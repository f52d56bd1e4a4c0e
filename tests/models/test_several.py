"""Several sets: their differences hold the truth, and the rule that joins them is the one that was cited."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from tests.models.examples import ADD, weather, weather_schema

from dpbayes import ApproxDP, Curator, Synthetic
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.several import FEWEST, LABEL, Several, combine

RECORDS = 20_000


def built(epsilon: float):
    curator = Curator(weather(RECORDS), weather_schema(ADD), seed=5)
    return curator.release(Synthetic(target="rain"), ApproxDP(epsilon=epsilon, delta=1e-6), estimates=False).model()


@pytest.fixture(scope="module")
def several() -> Several:
    return Several.of(built(0.3), sets=12)


def shares(columns: list, shape: tuple[int, ...]) -> np.ndarray:
    return np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape))) / len(columns[0])


def test_combined_shares_hold_those_of_the_private_table(several: Several) -> None:
    """Cells of a triple that nobody measured, and their margins, at 90 %."""
    schema, data, names = several.models[0].published.schema, weather(RECORDS), ("rain", "street", "umbrella")
    shape = tuple(len(schema[name].levels) for name in names)
    truth = shares([np.array([schema[name].levels.index(v) for v in data[name]]) for name in names], shape)
    rng = np.random.default_rng(1)
    drawn = [model.sample(RECORDS, rng) for model in several.models]
    found = np.array([shares([each[name] for name in names], shape) for each in drawn])
    joined = combine(found, found * (1 - found) / RECORDS)
    inside = (joined.lower - 0.5 / RECORDS <= truth) & (truth <= joined.upper + 0.5 / RECORDS)
    assert inside.mean() >= 0.85
    assert "not guaranteed" in joined.label
    assert joined.label == LABEL


def test_noise_is_enlarged_and_everyone_gets_the_same_models(several: Several) -> None:
    assert several.factor >= 1.0
    again = Several.of(several.models[0].published.releases[0].model(), sets=12)
    assert again.factor == several.factor
    for one, other in zip(several.models, again.models, strict=True):
        assert np.array_equal(one.weights, other.weights)
    assert len({model.weights.tobytes() for model in several.models}) == 12


def test_sets_are_records_in_the_types_of_the_schema_each_of_its_own(several: Several) -> None:
    made = list(several.tables(50, rng=np.random.default_rng(2)))
    assert len(made) == 12
    assert {table.column_names[0] for table in made} == {several.models[0].published.schema.names[0]}
    assert len({str(table.to_pydict()) for table in made}) == 12


def test_the_rule_is_the_cited_one() -> None:
    """T = (1 + 1/m)·b − v̄, and Student's interval with (m − 1)·(1 − v̄/B)² degrees of freedom: by hand."""
    each, within = [3.0, 5.0, 4.0, 7.0, 6.0], [0.1, 0.3, 0.2, 0.2, 0.2]
    found = combine(each, within, level=0.95)
    b = sum((x - 5.0) ** 2 for x in each) / 4
    assert found.values == 5.0
    assert found.errors == pytest.approx(np.sqrt(1.2 * b - 0.2))
    freedom = 4 * (1 - 0.2 / (1.2 * b)) ** 2
    assert found.upper == pytest.approx(5.0 + student.ppf(0.975, freedom) * np.sqrt(1.2 * b - 0.2))
    assert combine(each).errors == pytest.approx(np.sqrt(1.2 * b))
    assert combine(each, [9.0] * 5).errors == pytest.approx(np.sqrt(b / 5))


@pytest.mark.parametrize("within", [0.0, 0.5])
def test_the_rule_covers_where_models_differ_as_much_as_they_are_off(within: float) -> None:
    """The truth and m models are draws of one law; each set adds sampling noise of its own."""
    rng = np.random.default_rng(4)
    sets, trials = 10, 20_000
    centre = rng.normal(0.0, 3.0, trials)
    truth = centre + rng.normal(0.0, 1.0, trials)
    each = centre + rng.normal(0.0, 1.0, (sets, trials)) + rng.normal(0.0, np.sqrt(within), (sets, trials))
    found = combine(each, np.full(each.shape, within), level=0.9)
    inside = ((found.lower <= truth) & (truth <= found.upper)).mean()
    assert 0.88 < inside < 0.97


@pytest.mark.parametrize(
    ("estimates", "variances"),
    [([1.0] * (FEWEST - 1), None), ([1.0] * 4 + [float("nan")], None), ([1.0] * 6, [1.0] * 5), ([1.0] * 5, [-1.0] * 5)],
)
def test_what_cannot_be_combined_is_refused(estimates, variances) -> None:
    with pytest.raises(InvalidArgument, match="combine: expected"):
        combine(estimates, variances)


def test_too_few_sets_and_models_without_fits_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="expected 5 sets or more, got 2"):
        Several.of(built(0.3), sets=2)
    curator = Curator(weather(2000), weather_schema(ADD), seed=5)
    faint = curator.release(Synthetic(), ApproxDP(epsilon=0.006, delta=1e-6), estimates=False).model()
    with pytest.raises(InvalidArgument, match="came to independent"):
        Several.of(faint)
