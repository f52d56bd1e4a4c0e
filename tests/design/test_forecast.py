"""A dry run answers in records and points, and every number in its sentences is kept by releases."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.releases import PEOPLE, people

from dpbayes import ApproxDP, Attribute, Curator, PureDP, Schema, Tables, Unit
from dpbayes.design.forecast import forecast, name_of, points, remarks, sentences, warnings, whole

USUAL = ApproxDP(epsilon=1, delta=1e-6)
UNIT = Unit(adjacency="replace-one")


def schema_of(records: int | None = 20_000, **levels: int) -> Schema:
    attributes = [
        Attribute(name=name, categories=tuple(map(str, range(size))), missing="other") for name, size in levels.items()
    ]
    return Schema(id="s", unit=UNIT, records=records, attributes=tuple(attributes))


def test_a_count_of_a_joint_table_in_records_and_points() -> None:
    plan = Tables("a", mechanism="laplace").plan(schema_of(a=4), PureDP(epsilon=0.1))
    (said,) = sentences(plan)
    (found,) = forecast(plan)
    assert said == (
        f"Each count of a ± {whole(found.records)}, shares ± {points(found.points or 0)}; "
        f"groups below about {whole(found.readable_from)} will not be readable."
    )
    assert "KL" not in said


def test_shares_within_groups_and_tables_that_follow_from_others() -> None:
    plan = Tables("a,b", "b|a").plan(schema_of(a=4, b=3), USUAL)
    joint, shares = sentences(plan)
    assert joint.startswith("Each count of a × b ± ")
    assert shares.startswith("Shares of b within a ± ")
    assert "in a group of average size (4,000 records)" in shares
    assert ("follows from" in joint) != ("follows from" in shares)


def test_unknown_numbers_of_records_leave_points_out() -> None:
    (said,) = sentences(Tables("a").plan(schema_of(None, a=4), USUAL))
    assert "points" not in said


def test_a_contained_table_is_named_with_what_leaving_it_out_gains() -> None:
    schema, both = schema_of(a=30, b=30), Tables("a,b", "a", mechanism="gaussian")
    (said,) = remarks(both.plan(schema, USUAL))
    assert said.startswith("a takes ")
    gain = int(re.search(r"would be (\d+)% more exact", said)[1]) / 100  # type: ignore[index]
    one, alone = both.plan(schema, USUAL), Tables("a,b", mechanism="gaussian").plan(schema, USUAL)
    ratio = forecast(alone)[0].records / forecast(one)[0].records
    assert 1 - ratio == pytest.approx(gain, abs=0.011)
    assert remarks(alone.job.plan(schema, USUAL)) == ()


def test_noise_that_hides_a_table_is_said() -> None:
    said = warnings(Tables("a,b").plan(schema_of(300, a=30, b=30), USUAL))
    assert any("larger than its average cell" in each for each in said)
    said = warnings(Tables("a").plan(schema_of(2, a=3), USUAL))
    assert any("larger than the whole table" in each for each in said)
    assert warnings(Tables("a").plan(schema_of(a=3), USUAL)) == ()


def test_the_promised_error_holds_in_releases() -> None:
    plan = Tables("sex,income", mechanism="gaussian").plan(PEOPLE, USUAL)
    (found,) = forecast(plan)
    frame = people()
    exact = Curator(frame, PEOPLE)._engine.count(PEOPLE, plan.tables)[0].array.ravel()
    off = []
    for seed in range(60):
        made = Curator(frame, PEOPLE, seed=seed).release(
            Tables("sex,income", mechanism="gaussian"), USUAL, estimates=False
        )
        off.append(np.asarray(made.tables[0].values) - exact)
    # the number of records is public, which helps the estimate a little; the draw itself is a bit less exact
    inside = float((np.abs(off) <= 1.1 * found.records).mean())
    assert 0.93 <= inside <= 0.99


def test_words_for_numbers() -> None:
    assert [whole(number) for number in (0.2, 1, 36.1, 1499.0)] == [
        "1 record",
        "1 record",
        "37 records",
        "1,500 records",
    ]
    assert name_of(Tables("x|y").marginals[0]) == "x within y"
