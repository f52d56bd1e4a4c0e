"""The design of a release: what is measured for what is wanted, what readers get, and what the plan says about it."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpbayes import ApproxDP, Attribute, Curator, Posterior, PureDP, Release, Schema, Tables, Unit
from dpbayes.design.design import Wanted, _used, half_error, least_target
from dpbayes.design.forecast import design_of, forecast, preview
from dpbayes.inference import GaussianNoise, Measurement
from dpbayes.inference.joint import JointPosterior
from dpbayes.jobs.base import _as_asked
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.privacy.cost import Cost
from dpbayes.release.format import Table
from dpbayes.schema import Marginal
from dpbayes.schema.public import Margin

USUAL = ApproxDP(epsilon=1.0, delta=1e-6)
LEVELS = {"sex": 2, "income": 4, "region": 6, "age": 9}


def schema(adjacency: str = "replace-one", **options: object) -> Schema:
    attributes = tuple(
        Attribute(name=name, categories=(*(f"{name} {level}" for level in range(number)), "other"), missing="other")
        for name, number in LEVELS.items()
    )
    return Schema(id="people", unit=Unit(adjacency=adjacency), attributes=attributes, **options)  # type: ignore[arg-type]


def people(rows: int = 3000) -> dict[str, list[str]]:
    rng = np.random.default_rng(5)
    return {
        name: [f"{name} {level}" for level in np.minimum(rng.geometric(0.4, rows) - 1, number - 1)]
        for name, number in LEVELS.items()
    }


ALL_PAIRS = [",".join(pair) for pair in itertools.combinations(LEVELS, 2)]


def test_a_table_that_others_contain_is_not_bought_but_printed() -> None:
    release = Curator(people(), schema(), seed=1).release(Tables(*ALL_PAIRS, "sex", mechanism="laplace"), USUAL)
    kinds = {str(table.marginal): table.kind for table in release.tables}
    assert [*kinds] == [*ALL_PAIRS, "sex"]
    assert kinds["sex"] == "derived"
    sex, both = release["sex"].table, release["sex,income"].table
    counts = both.products["counts"].values.reshape(3, 5).sum(axis=1)
    np.testing.assert_allclose(sex.products["counts"].values, counts, atol=1e-6)
    assert sex.products["counts"].lower is not None
    assert "sex follows from" in release.choice
    assert "released" not in release["sex"].to_arrow().column_names
    assert len(release["sex"].to_arrow()) == 3
    again = Release.from_json(release.to_json())
    assert again.record() == release.record()
    assert [check.name for check in again.verify().checks if not check.passed] == ["randomness"]


def test_a_derived_table_cannot_be_edited_or_paid_for_twice() -> None:
    release = Curator(people(), schema(), seed=1).release(Tables(*ALL_PAIRS, "sex", mechanism="laplace"), USUAL)
    record = json.loads(release.to_json())
    record["tables"][-1]["products"]["counts"]["values"][0] += 5
    assert not next(check for check in Release.from_record(record).verify().checks if check.name == "products").passed
    for change in ({"by": 0}, {"values": [1, 2, 3]}, {"kind": "noisy-counts"}):
        spoilt = json.loads(release.to_json())
        spoilt["tables"][-1] |= change
        with pytest.raises(Exception, match=r"Release|tables"):
            Release.from_record(spoilt)


def test_a_table_that_nobody_asked_for_is_measured_where_it_pays() -> None:
    big = schema()
    asked = Tables("sex,income,region", "sex,income,age", "sex", mechanism="gaussian")
    plan = asked.plan(big, USUAL)
    design = design_of(plan)
    assert design is not None
    alone = replace(plan, asked=plan.asked, tables=plan.tables)
    assert design_of(alone) == design
    for marginal, gain in design.gains().items():
        if marginal in design.added:
            assert gain > 1.0


def test_a_table_that_only_helps_comes_last_and_is_marked_as_not_asked_for() -> None:
    one, other, helper = (
        Table(marginal=Marginal(name), by=by, kind="noisy-counts", values=np.zeros(2))
        for by, name in enumerate(("sex", "age", "region"))
    )
    listed = _as_asked([helper, other, one], [one.marginal, Marginal("income"), other.marginal])
    assert [str(table.marginal) for table in listed] == ["sex", "income", "age", "region"]
    assert [table.asked for table in listed] == [True, True, True, False]
    assert [(table.by, table.kind) for table in listed][1] == (-1, "derived")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("target", [USUAL, PureDP(epsilon=1.0)], ids=str)
@pytest.mark.parametrize("tables", [("region",), ("region", "income|sex"), (*ALL_PAIRS, "sex", "income")], ids=len)
def test_the_whole_design_meets_its_target_and_nearly_so(
    tables: tuple[str, ...], target: ApproxDP | PureDP, adjacency: str
) -> None:
    plan = Tables(*tables).plan(schema(adjacency), target)
    assert -1e-6 < target.gap(plan.cost) <= 0
    assert plan.cost.entries == Cost.total([paid.mechanism for paid in plan.paid for _ in range(paid.times)]).entries


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_forecast_is_the_error_of_the_law_that_reads_the_release(adjacency: str) -> None:
    """Against the posterior of data: the law that estimates come from knows the same variances."""
    asked = Tables("region", "income|sex", "region,sex", "age", mechanism="gaussian")
    made = schema(adjacency)
    plan = asked.plan(made, USUAL)
    measured = [
        Measurement(
            axes=table.names,
            values=np.zeros(table.shape(made)),
            noise=GaussianNoise(sigma=plan.paid[by].mechanism.sigma),  # type: ignore[attr-defined]
        )
        for table, by in zip(plan.tables, plan.places, strict=True)
    ]
    sizes = {each.name: len(each.levels) for each in made.attributes}
    law = JointPosterior(measured, sizes, records=1000 if adjacency == "replace-one" else None)
    for found in forecast(plan):
        variance = law.linear(found.marginal.names)[1]
        np.testing.assert_allclose(variance, found.standard_error**2, rtol=1e-9)
        assert found.records == pytest.approx(2.004654 * found.standard_error, rel=1e-6)
        assert found.points is None


def test_the_error_of_a_share_of_one_half_is_that_of_the_difference_it_stands_for() -> None:
    """c − n/2 as one sum of cells, whose variance the law of data gives without the formula."""
    made = schema()
    plan = Tables("income|sex", "region", "sex", mechanism="gaussian").plan(made, USUAL)
    sizes = {each.name: len(each.levels) for each in made.attributes}
    measured = [
        Measurement(
            axes=table.names,
            values=np.zeros(table.shape(made)),
            noise=GaussianNoise(sigma=plan.paid[by].mechanism.sigma),  # type: ignore[attr-defined]
        )
        for table, by in zip(plan.tables, plan.places, strict=True)
    ]
    weights = np.zeros((3, 5))
    weights[1] = -0.5
    weights[1, 2] += 1.0
    variance = JointPosterior(measured, sizes, records=1000).functional({("sex", "income"): weights})[1][0, 0]
    design = design_of(plan)
    assert design is not None
    assert half_error(design, ("sex", "income"), ("sex",)) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_a_forecast_states_points_where_the_number_of_records_is_known_or_guessed() -> None:
    declared = forecast(Tables("income|sex", mechanism="gaussian").plan(schema(records=9000), USUAL))[0]
    guessed = forecast(Tables("income|sex", mechanism="gaussian").plan(schema(records_guess=9000), USUAL))[0]
    assert declared.points == guessed.points == pytest.approx(100 * declared.records / 9000)
    assert declared.group_records == 3000
    assert declared.group_points is not None
    # a group of the least readable size: the interval of a share of one half reaches a quarter to either side
    reach = declared.group_points / 100 * declared.group_records / declared.readable_from
    assert 0.24 < reach <= 0.25


def test_groups_below_the_stated_size_are_unreadable_and_those_above_are_not() -> None:
    """By simulation of the printed intervals themselves."""
    made = schema(records=4000)
    asked = Tables("income|sex", mechanism="gaussian")
    least = forecast(asked.plan(made, USUAL))[0].readable_from
    widths = {}
    for size in (least // 4, 4 * least):
        table = {"sex": ["sex 1"] * size + ["sex 0"] * (4000 - size), "income": ["income 0", "income 1"] * 2000}
        table |= {name: [f"{name} 0"] * 4000 for name in ("region", "age")}
        found = []
        for seed in range(20):
            release = Curator(table, made, seed=seed).release(asked, USUAL)
            product = release["income|sex"].table.products["empirical"]
            lower, upper = (part.reshape(3, 5)[1, 0] for part in (product.lower, product.upper))  # type: ignore[union-attr]
            found.append((upper - lower) / 2)
        widths[size] = float(np.median(found))
    assert widths[4 * least] < 0.25 < widths[least // 4]


def test_a_release_is_as_exact_as_its_forecast() -> None:
    made, table = schema(), people()
    asked = Tables("region", "income|sex", mechanism="gaussian")
    forecasts = forecast(asked.plan(made, USUAL))
    truth = Curator(table, made, seed=0).release(
        Tables("region", "income|sex", mechanism="gaussian"), ApproxDP(epsilon=1e5, delta=1e-6)
    )
    errors: dict[str, list[float]] = {str(each.marginal): [] for each in forecasts}
    for seed in range(20):
        posterior = Posterior(Curator(table, made, seed=seed).release(asked, USUAL, estimates=False))
        for each in forecasts:
            clean = truth[each.marginal].table.values.reshape(each.marginal.shape(made))
            errors[str(each.marginal)].append(
                float(((posterior.joint.linear(each.marginal.names)[0] - clean) ** 2).mean())
            )
    for each in forecasts:
        assert math.sqrt(np.mean(errors[str(each.marginal)])) == pytest.approx(each.standard_error, rel=0.2)


def test_a_public_margin_is_not_bought() -> None:
    public = schema(records=3000, margins=(Margin(of=("sex",), totals=(2000, 1000, 0)),))
    plan = Tables("sex", "region", mechanism="gaussian").plan(public, USUAL)
    assert [str(table) for table in plan.tables] == ["region"]
    assert "sex is public" in plan.choice
    assert forecast(plan)[0].standard_error == 0


def test_under_a_ledger_auto_leaves_more_for_later(tmp_path) -> None:  # type: ignore[no-untyped-def]
    made = schema()
    book = Ledger(tmp_path / "ledger")
    book.open("people", ApproxDP(epsilon=3.0, delta=1e-6), unit=made.unit, schema=made.digest)
    curator = Curator(people(), made, ledger=book)
    asked = Tables("region", "income|sex")
    with_ledger, without = curator.plan(asked, USUAL), Curator(people(), made).plan(asked, USUAL)
    assert with_ledger.choice.startswith("gaussian")
    assert without.choice.startswith("laplace")
    assert "left for later" in with_ledger.choice
    limit = book.account("people").budget
    assert limit.left([with_ledger.cost]) > limit.left([without.cost])


def test_gaussian_noise_uses_up_its_own_precision_of_a_limit(tmp_path) -> None:  # type: ignore[no-untyped-def]
    made = schema()
    book = Ledger(tmp_path / "ledger")
    book.open("people", ApproxDP(epsilon=3.0, delta=1e-6), unit=made.unit, schema=made.digest)
    noise = Gaussian(sigma=8.0, unit=made.unit)
    used, left = _used(book.priced("people", USUAL), Cost.of(noise))
    assert used == pytest.approx(made.unit.sensitivity.l2_squared / noise.sigma**2, rel=0.02)
    assert left is not None
    assert 0 < left < 3.0
    wanted = Wanted(names=("sex",), group=(), error=8.0)
    gaussian, either = (
        least_target(made, (Marginal(("sex",)),), wish, (wanted,), USUAL, lambda each: book.priced("people", each))
        for wish in ("gaussian", "auto")
    )
    assert gaussian is not None
    assert gaussian == either  # Laplace noise would use up more of the limit


def test_the_preview_names_what_is_measured_and_what_it_gains() -> None:
    found = preview(Tables(*ALL_PAIRS, "sex", mechanism="laplace").plan(schema(), USUAL))
    assert found["tables"][-1]["mechanism"] is None
    assert found["tables"][-1]["derived_from"] in ALL_PAIRS
    assert sum(each["share"] for each in found["measured"]) == pytest.approx(1.0)
    assert found["over_optimum"] is None
    assert 1.0 <= preview(Tables(*ALL_PAIRS, mechanism="gaussian").plan(schema(), USUAL))["over_optimum"] < 1.06


def test_equal_sets_of_attributes_are_measured_once() -> None:
    plan = Tables("income|sex", "sex,income", "sex|income", mechanism="gaussian").plan(schema(), USUAL)
    assert [str(table) for table in plan.tables] == ["income|sex"]
    release = Curator(people(), schema(), seed=1).release(plan.job, USUAL)
    assert [table.kind for table in release.tables] == ["noisy-counts", "derived", "derived"]
    joint = release["sex,income"].table.products["counts"].values
    np.testing.assert_allclose(joint, release[Marginal("income", "sex")].table.products["counts"].values, atol=1e-9)
