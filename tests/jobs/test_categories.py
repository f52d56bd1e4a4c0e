"""Bought categories: common texts are found, lone ones stay hidden, and the price is what was asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.releases import PEOPLE

from dpbayes import ApproxDP, Attribute, Categories, Curator, Ledger, PureDP, Schema, Unit
from dpbayes.base.errors import InvalidArgument, TableError
from dpbayes.jobs.base import job_from_record, plan_of
from dpbayes.mechanisms.kinds import from_record
from dpbayes.privacy import AdaptiveDP
from dpbayes.privacy.cost import Cost

UNITS = [Unit(adjacency=adjacency, max_rows=rows) for adjacency in ("replace-one", "add-remove") for rows in (1, 3)]


def schema(unit: Unit = UNITS[0], **more: object) -> Schema:
    declared = (Attribute(name="job", categories=("clerk",), missing="other"),)
    return Schema(id="d", unit=unit, attributes=declared, **more)  # type: ignore[arg-type]


def found(table: object, declared: Schema, *, delta: float = 1e-9) -> tuple[str, ...]:
    made = Curator(table, declared).release(Categories(column="job"), ApproxDP(epsilon=1, delta=delta))
    (answer,) = made.answers
    assert answer.name == "categories of job"
    return answer.values  # type: ignore[return-value]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_cost_of_categories_meets_what_was_asked_and_hardly_less(unit: Unit) -> None:
    plan = Categories(column="job").plan(schema(unit), ApproxDP(epsilon=0.5, delta=1e-7))
    cost = plan.cost
    assert 0.5 * (1 - 1e-6) <= cost.epsilon(1e-7) <= 0.5
    assert 1e-7 / 2 <= cost.delta(0.5) <= 1e-7
    assert cost.unit == unit
    assert Cost.of(from_record(plan.paid[0].mechanism.record())) == cost


def test_more_rows_per_person_need_a_higher_threshold() -> None:
    target = ApproxDP(epsilon=1, delta=1e-6)
    thresholds = [Categories(column="job").plan(schema(unit), target).paid[0].mechanism.threshold for unit in UNITS]
    assert thresholds[1] > thresholds[0] > thresholds[2]


def test_common_categories_are_found_and_single_ones_stay_hidden() -> None:
    jobs = ["nurse"] * 500 + ["clerk"] * 400 + [f"only {number}" for number in range(50)] + [None] * 10
    assert found({"job": jobs}, schema()) == ("clerk", "nurse")


def test_a_busy_person_cannot_push_a_category_over_the_threshold() -> None:
    people = [str(number) for number in range(500)] + ["busy"] * 500
    jobs = ["clerk"] * 500 + ["king"] * 500
    assert found({"job": jobs, "id": people}, schema(person="id")) == ("clerk",)


def test_a_column_without_texts_has_no_categories() -> None:
    assert found(pa.table({"job": pa.array([None, None], pa.string())}), schema(), delta=1e-6) == ()


def test_discovery_of_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(TableError, match="no column"):
        Curator({"sex": ["F"]}, PEOPLE).release(Categories(column="salary"), ApproxDP(epsilon=1, delta=1e-6))


def test_a_pure_guarantee_cannot_pay_for_categories() -> None:
    with pytest.raises(InvalidArgument, match="expected an"):
        Categories(column="job").plan(schema(), PureDP(epsilon=1))


def test_the_record_gives_the_job_back() -> None:
    job = Categories(column="job")
    assert job_from_record(job.record()) == job


def test_beside_other_releases_a_higher_threshold_leaves_more_of_the_limit(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "d.ledger")
    ledger.open("d", AdaptiveDP(epsilon=3, delta=1e-6), UNITS[0])
    target = ApproxDP(epsilon=1, delta=1e-7)
    account = ledger.account("d")
    alone, beside = (plan_of(Categories(column="job"), schema(), target, account=of) for of in (None, account))
    assert account.budget.amount(beside.cost) < account.budget.amount(alone.cost)
    assert beside.paid[0].mechanism.threshold > alone.paid[0].mechanism.threshold
    assert beside.cost.delta(1.0) <= 1e-7
