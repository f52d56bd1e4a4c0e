"""Dates, recodes, labels, sources and rules of an attribute; all faults of a file at once; old files as they were."""

from __future__ import annotations

import datetime
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import reference

from dpbayes import Attribute, Schema, Unit
from dpbayes.base.errors import SchemaError
from dpbayes.schema.codebook import PRESETS
from dpbayes.schema.labels import codes
from dpbayes.schema.values import date_number
from dpbayes.tables.declaring import categories, edges

UNIT = Unit(adjacency="replace-one")
FULL = """
id = "visits"
adjacency = "replace-one"

[[attribute]]
name = "status"
categories = ["works", "retired", "not stated"]
codes = { works = ["1", "2", 3], retired = "4" }
labels = { works = "in work", "(dropped)" = "left out" }
unknown = "refuse"
missing = "not stated"
source = "codebook of 2026"

[[attribute]]
name = "admitted"
dates = [2020-01-01, "2021-01-01"]
period = "quarter"
"""


def test_a_file_with_everything_survives_toml_and_json() -> None:
    schema = Schema.from_toml(FULL)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_record(json.loads(json.dumps(schema.record()))) == schema
    assert schema["status"].levels == ("works", "retired", "not stated", "(dropped)")
    assert schema["admitted"].levels == ("2020-Q1", "2020-Q2", "2020-Q3", "2020-Q4", "missing", "other")
    assert hash(schema["status"]) == hash(Schema.from_toml(FULL)["status"])


def test_labels_and_sources_are_part_of_the_digest_and_old_digests_stay() -> None:
    first = Schema(
        id="survey",
        unit=UNIT,
        records=100,
        attributes=(
            Attribute(name="sex", categories=("F", "M"), missing="other"),
            Attribute(name="age", edges=(-math.inf, 18, 65, math.inf), unknown="drop", missing="category"),
        ),
    )
    second = Schema(
        id="visits",
        unit=Unit(adjacency="add-remove", max_rows=3),
        person="id",
        attributes=(Attribute(name="region", categories=("North", "South", "other"), missing="drop"),),
    )
    # as version 0.2.0 wrote them before there were labels, codes, dates and sources
    assert first.digest == "0cf57313c311c91c7f0045d1211b5574f16940381eef6f7064c647fc2aa34585"
    assert second.digest == "8b32b912ab9b5e430e3c4ea5508ea668efe4e500e0511d4df1fcd756701acf8e"
    labelled = Attribute(name="sex", categories=("F", "M"), labels={"F": "women"})
    assert Schema(id="survey", unit=UNIT, attributes=(labelled,)).digest != first.project(["sex"]).digest


def test_values_go_where_the_rules_say() -> None:
    status = Schema.from_toml(FULL)["status"]
    found = [status.levels[level] for level in codes(status, ["1", "3", "4", "retired", "works", None, "?"]).tolist()]
    assert found == ["works", "works", "retired", "(dropped)", "(dropped)", "not stated", "(dropped)"]
    assert codes(status, [1, 4, 9]).tolist() == [0, 1, 3]
    assert codes(status, [1.0, 4.0, math.nan]).tolist() == [0, 1, 2]


def test_dates_of_every_python_type_go_into_their_period() -> None:
    day = Schema.from_toml(FULL)["admitted"]
    given = ["2020-03-31", datetime.date(2020, 4, 1), datetime.datetime(2020, 12, 31, 23), "2021-01-01", 20200101, None]
    assert [day.level(value) for value in given] == [0, 1, 3, 5, 5, 4]


@settings(max_examples=300, deadline=None)
@given(
    value=st.dates().map(str)
    | st.datetimes().map(str)
    | st.datetimes()
    | st.dates()
    | st.from_regex(r"\A[0-9]{4}-[0-1][0-9]-[0-3][0-9]\Z")
)
def test_a_date_is_a_date_exactly_where_the_calendar_has_it(value: object) -> None:
    attribute = Attribute(name="d", dates=("0001-01-01", "1950-06-01", "9999-12-31"))
    expected = reference.piece_of(attribute, value)
    assert attribute.level(value) == (3 if expected is None else expected)
    number = date_number(value)
    assert (number is None) == (expected is None) or number == 99991231.0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('dates = ["2020-01-01"]', "needs two dates or more"),
        ('dates = ["2020-01-01", "2020-01-01"]', "each after the one before"),
        ('dates = ["2020-01-02", "2021-01-01"]\nperiod = "month"', "not the first day of a month"),
        (
            'dates = ["2020-01-01", "2020-02-01"]\nperiod = "quarter"',
            "not the first day of a quarter. Start on one; end on the day after",
        ),
        ('dates = ["2020-01-01", "2020-06-01", "2021-01-01"]\nperiod = "month"', "more than two dates"),
        ('dates = ["2020-01-01", "2021-01-01"]\nperiod = "week"', "Choose one of year, quarter, month"),
        ('dates = ["1.1.2020", "2021-01-01"]', "Write a day"),
        ("dates = [2020-01-01T00:00:00, 2021-01-01]", "Write a day"),
        ("edges = [2020-01-01, 2021-01-01]", "Write dates = "),
        ('period = "month"\nedges = [1, 2]', "period without dates"),
        ('categories = ["a"]\ncodes = { b = ["1"] }', "no category"),
        ('categories = ["a", "b"]\ncodes = { a = ["1"], b = ["1"] }', "in two categories"),
        ('categories = ["a", "b"]\ncodes = { a = ["b"] }', "in two categories"),
        ('categories = ["a"]\ncodes = { a = [] }', "as a list of texts"),
        ('categories = ["a"]\ncodes = "x"', "codes as a table"),
        ('categories = ["a"]\nlabels = { c = "x" }', "which is no level"),
        ('categories = ["a"]\nlabels = { a = 3 }', "as a line of at most"),
        ('categories = ["a"]\nunknown = "b"', "or a declared level"),
        ("edges = [1, 2]\ncodes = { a = ['1'] }", "codes without categories"),
        ('categories = "a"', "needs its categories as a list"),
        ("", "declares nothing"),
        ('categories = ["a"]\nedges = [1, 2]', "has categories and edges. Keep one"),
    ],
)
def test_one_fault_is_one_sentence_with_its_line(lines: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(f'id = "x"\nadjacency = "replace-one"\n[[attribute]]\nname = "a"\n{lines}\n')
    message = str(caught.value)
    assert said in message
    assert message.count("\n") <= 2
    assert message.startswith("Schema: line ") or "faults:\n  line " in message


def test_all_faults_of_a_file_are_said_at_once_in_its_order() -> None:
    text = """id = ""
adjacency = "replace"
colour = 3
[[attribute]]
name = "a"
categories = ["x", "x"]
unknwon = "other"
[[attribute]]
name = "b"
edges = [3, 1]
[[attribute]]
name = "c"
categories = ["x", 1.5, "(dropped)"]
source = 7
[[attribute]]
categories = ["q"]
[[margin]]
of = 3
"""
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(text)
    head, *faults = str(caught.value).splitlines()
    assert head == "Schema: 11 faults:"
    assert [int(fault.split()[1].rstrip(":")) for fault in faults] == [1, 2, 3, 6, 7, 10, 13, 13, 14, 15, 17]


def test_a_faulty_attribute_does_not_make_the_rest_look_faulty() -> None:
    head = 'id = "x"\nadjacency = "replace-one"\nrecords = 5\n'
    text = head + '[[attribute]]\nname = "a"\n[[margin]]\nof = ["a"]\ntotals = [5]'
    with pytest.raises(SchemaError, match=r"^Schema: line 5: attribute 'a' declares nothing") as caught:
        Schema.from_toml(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "made", [*PRESETS.values(), lambda name: edges(name, "0,1"), lambda name: categories(name, "a,b")]
)
def test_what_tools_declare_keeps_missing_values_apart_from_unknown_ones(made):
    attribute = made("x")
    assert attribute.level(None) != attribute.level("no such value")
    assert attribute.levels[attribute.level(None)] == "missing"
