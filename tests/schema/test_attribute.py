from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.test_schema import attributes
from tests.tables import reference

from dpbayes.base.errors import SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit

odd_texts = st.text(max_size=3) | st.sampled_from(["1e1", "nan", " 2", "(dropped)"])
values = st.none() | st.booleans() | st.integers() | st.floats() | odd_texts


@settings(max_examples=150, deadline=None)
@given(attribute=attributes("a"), value=values)
def test_the_level_of_a_value_agrees_with_the_rule_written_out_by_hand(attribute, value):
    if attribute.edges and isinstance(value, bool):
        return
    expected = reference.labels(attribute).index(reference.label(attribute, value))
    assert attribute.level(value) == expected


@given(attribute=attributes("a"))
def test_codes_reach_every_level_and_the_dropped_one_is_last(attribute):
    assert set(attribute.level_of_code) == set(range(len(attribute.levels)))
    assert attribute.drops == ("drop" in (attribute.unknown, attribute.missing))
    assert ("(dropped)" in attribute.levels[:-1]) is False


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (np.bool_(False), "false"),
        (np.int64(7), "7"),
        (datetime.date(2026, 1, 31), "2026-01-31"),
        (datetime.datetime(2026, 1, 31, 13, 45, 0, 120000), "2026-01-31 13:45:00.12"),
        (np.float32(2.5), "2.5"),
        (Decimal("2.50"), "2.5"),
    ],
)
def test_values_of_every_type_have_one_text(value, text):
    attribute = Attribute(name="a", categories=(text,))
    assert attribute.level(value) == 0


def test_a_declared_category_called_other_takes_the_unknown_values():
    attribute = Attribute(name="a", categories=("other", "x"))
    assert attribute.levels == ("other", "x", "missing")
    assert attribute.level("?") == 0


@pytest.mark.parametrize(
    "cut", [{"categories": ("F", "M", "category"), "closed": "M"}, {"edges": (0, 18, 65), "closed": "[18, 65)"}]
)
def test_a_closed_attribute_has_its_declared_levels_and_one_of_them_counts_everything_else(cut):
    attribute = Attribute(name="a", **cut)
    rules = {"unknown": cut["closed"], "missing": cut["closed"]}
    assert attribute == Attribute(name="a", **{**cut, "closed": None}, **rules)
    assert attribute.levels == attribute.declared
    assert {attribute.levels[attribute.level(value)] for value in (None, "?", math.inf, math.nan)} == {cut["closed"]}
    assert Attribute(**attribute.table()) == attribute


@pytest.mark.parametrize(
    "more",
    [
        {"closed": "X"},
        {"closed": "drop"},
        {"closed": "category"},
        {"closed": 1},
        {"closed": "M", "unknown": "drop"},
        {"closed": "M", "missing": "drop"},
    ],
)
def test_a_closed_attribute_names_a_level_that_keeps_every_row_and_no_other_rule(more):
    with pytest.raises(SchemaError, match=r"has closed = .* Name the declared level .* one of F, M, category"):
        Attribute(name="a", categories=("F", "M", "category"), **more)


@pytest.mark.parametrize(
    "declared", [{"categories": ("a",)}, {"edges": (0, 1)}, {"dates": ("2020-01-01", "2021-01-01")}]
)
def test_where_nothing_is_said_no_answer_is_a_level_of_its_own_and_the_rule_is_written_down(declared):
    attribute = Attribute(name="a", **declared)
    assert attribute.levels[1:] == ("missing", "other")
    assert (attribute.table()["unknown"], attribute.table()["missing"]) == ("other", "category")
    schema = Schema.from_public_data({"a": ["x"]}, id="s", unit=Unit(adjacency="add-remove"))
    assert schema["a"].levels == ("x", "missing", "other")


def test_what_was_written_with_the_old_default_keeps_its_levels():
    old = {"name": "sex", "categories": ["F", "M"], "unknown": "other", "missing": "other"}  # as 0.2.0 wrote it
    read = Schema.from_record({"id": "s", "adjacency": "add-remove", "attribute": [old]})["sex"]
    assert read.levels == ("F", "M", "other")
    assert read.table() == old


def test_infinite_and_absent_numbers_are_unknown_and_missing():
    attribute = Attribute(name="a", edges=(-math.inf, 0, math.inf), missing="category")
    levels = [attribute.levels[attribute.level(value)] for value in (math.inf, -math.inf, math.nan, None, -1e300)]
    assert levels == ["other", "other", "missing", "missing", "[-inf, 0)"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "name to be text"),
        ({"categories": ()}, "declares nothing"),
        ({"edges": (1, 2)}, "has categories and edges"),
        ({"categories": ("a", "a")}, "repeats the category 'a'"),
        ({"categories": "abc"}, "as a list"),
        ({"categories": (1.5,)}, "as text, in quotes"),
        ({"categories": ("(dropped)",)}, "cannot have the category"),
        ({"categories": ("a\x00",)}, "cannot have the category"),
        ({"categories": (), "edges": (1,)}, "two or more edges"),
        ({"categories": (), "edges": (1, 1)}, "each above the one before"),
        ({"categories": (), "edges": (0, math.nan)}, "Edges are numbers"),
        ({"categories": (), "edges": (0, "x")}, "Edges are numbers"),
        ({"unknown": "ignore"}, "unknown = 'ignore'"),
        ({"missing": "?"}, "missing = '?'"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_refused(change, words):
    with pytest.raises(SchemaError) as caught:
        Attribute(**{"name": "a", "categories": ("x",)} | change)
    assert words in str(caught.value)


def test_fewer_rows_of_a_person_are_declared_for_the_declared_levels_only() -> None:
    year = Attribute(name="year", categories=("2024", "2025"), missing="category", max_rows=1)
    assert year.levels == ("2024", "2025", "missing", "other")
    assert year.rows_at_levels(8) == (1, 1, 8, 8)
    taken = Attribute(name="year", categories=("2024", "2025"), unknown="2024", missing="2025", max_rows=1)
    assert taken.rows_at_levels(3) == (3, 3)
    assert year.rows_at_levels(1) == (1, 1, 1, 1)
    assert year.table()["max_rows"] == 1
    assert "max_rows" not in Attribute(name="year", categories=("2024",)).table()
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(SchemaError, match="max_rows"):
            Attribute(name="year", categories=("2024",), max_rows=wrong)
