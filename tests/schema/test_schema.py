from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes.base.errors import DpbayesError, SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.public import Margin
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit

UNIT = Unit(adjacency="replace-one")
SEX = Attribute(name="sex", categories=("F", "M"), missing="other")
AGE = Attribute(name="age", edges=(-math.inf, 18, 65, math.inf), missing="drop")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
names = texts.filter(bool)
rules = st.fixed_dictionaries(
    {"unknown": st.sampled_from(["other", "drop"]), "missing": st.sampled_from(["other", "category", "drop"])}
)
numbers = st.floats(allow_nan=False).map(lambda number: number + 0.0)


@st.composite
def attributes(draw, name):
    if draw(st.booleans()):
        categories = draw(st.lists(texts.filter(lambda text: text != "(dropped)"), min_size=1, max_size=5, unique=True))
        return Attribute(name=name, categories=tuple(categories), **draw(rules))
    edges = draw(st.lists(numbers, min_size=2, max_size=5, unique=True))
    return Attribute(name=name, edges=tuple(sorted(edges)), **draw(rules))


@st.composite
def schemas(draw):
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.casefold))
    return Schema(
        id=draw(st.text("abc é-1", min_size=1).filter(str.strip)),
        unit=Unit(adjacency="replace-one", max_rows=draw(st.integers(1, 9))),
        attributes=tuple(draw(attributes(name)) for name in chosen),
        records=draw(st.none() | st.integers(0, 10**9)),
    )


@settings(max_examples=60, deadline=None)
@given(schema=schemas())
def test_a_schema_survives_toml_and_json(schema):
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_record(json.loads(json.dumps(schema.record(), allow_nan=False))) == schema


@settings(max_examples=40, deadline=None)
@given(first=schemas(), second=schemas())
def test_digests_are_equal_exactly_for_equal_schemas(first, second):
    assert (first.digest == second.digest) == (first == second)
    assert first.digest == Schema.from_toml(first.to_toml()).digest


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(st.text(max_size=80), st.text(alphabet='[]a="\n1.{},inf#', max_size=60)))
def test_any_text_is_a_schema_or_a_schema_error(text):
    with pytest.raises(SchemaError):
        Schema.from_toml(text)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
top = ("format", "id", "adjacency", "max_rows", "person", "records", "attribute", "margin")
inner_keys = ("name", "categories", "edges", "unknown", "missing", "of", "totals")
keys = st.sampled_from(top + inner_keys)


def nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)


junk = st.recursive(leaves | keys, nested, max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(values=st.dictionaries(keys, junk, max_size=5))
def test_any_record_is_a_schema_or_a_schema_error(values):
    record = Schema(id="x", unit=UNIT, attributes=(SEX,)).record() | values
    try:
        read = Schema.from_record(record)
    except DpbayesError as error:
        outcome = str(error)
    else:
        outcome = Schema.from_record(read.record()) == read
    assert outcome


def test_deep_nesting_and_huge_numbers_are_refused():
    for text in ("x = " + "[" * 10_000, "records = " + "9" * 5000):
        with pytest.raises(SchemaError):
            Schema.from_toml(text)


@pytest.mark.parametrize(
    ("key", "hint"), [("adjacancy", "adjacency"), ("max_row", "max_rows"), ("attributes", "attribute")]
)
def test_an_unknown_key_is_named_with_the_nearest_valid_one(key, hint):
    with pytest.raises(SchemaError, match=f"unknown key '{key}'. Did you mean '{hint}'"):
        Schema.from_record({"id": "x", "adjacency": "replace-one", "attribute": [], key: 1})


def test_an_unknown_key_of_an_attribute_is_named():
    record = {"id": "x", "adjacency": "replace-one", "attribute": [{"name": "a", "catgories": ["1"]}]}
    with pytest.raises(SchemaError, match=r"'catgories'\. Did you mean 'categories'"):
        Schema.from_record(record)


@pytest.mark.parametrize("key", ["id", "adjacency"])
def test_there_is_no_default_for_what_matters(key):
    record = Schema(id="x", unit=UNIT, attributes=(SEX,)).record()
    del record[key]
    with pytest.raises(SchemaError, match=f"lacks the key '{key}'"):
        Schema.from_record(record)


def test_projection_keeps_order_and_the_margins_it_can():
    margins = (Margin(of=("sex",), totals=(10, 35, 60)), Margin(of=("sex", "age"), totals=tuple(range(15))))
    schema = Schema(id="x", unit=UNIT, attributes=(SEX, AGE), margins=margins)
    assert schema.project(["age", "sex"]).names == ("age", "sex")
    assert schema.project(["sex"]).margins == margins[:1]
    assert schema.project(["sex"]).shape == (3,)
    assert schema.size == 15
    with pytest.raises(SchemaError, match="no attribute 'income'"):
        schema.project(["income"])


def test_the_number_of_cells_is_exact_beyond_machine_integers():
    wide = tuple(Attribute(name=f"a{number}", categories=("0",), missing="other") for number in range(80))
    assert Schema(id="x", unit=UNIT, attributes=wide).size == 2**80


@pytest.mark.parametrize("more", [{"records": 5}, {"margins": (Margin(of=("sex",), totals=(1, 1, 1)),)}])
def test_add_remove_keeps_totals_private(more):
    unit = Unit(adjacency="add-remove")
    with pytest.raises(SchemaError, match="keeps the number of records private"):
        Schema(id="x", unit=unit, attributes=(SEX,), **more)


def test_a_person_with_several_rows_needs_add_remove():
    with pytest.raises(SchemaError, match="can change the number of records"):
        Schema(id="x", unit=Unit(adjacency="replace-one", max_rows=2), attributes=(SEX,), person="id")
    bounded = Unit(adjacency="add-remove", max_rows=2)
    assert Schema(id="x", unit=bounded, attributes=(SEX,), person="id").person == "id"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": " "}, "one line of text"),
        ({"attributes": (SEX, SEX)}, "tell apart"),
        ({"attributes": (SEX, dataclasses.replace(SEX, name="SEX"))}, "tell apart"),
        ({"person": "Sex"}, "cannot be an attribute"),
        ({"records": -1}, "whole number"),
        ({"records": True}, "whole number"),
        ({"margins": (Margin(of=("sex",), totals=(1, 2)),)}, "needs 3 totals"),
        ({"records": 9, "margins": (Margin(of=("sex",), totals=(1, 2, 3)),)}, "does not add up"),
        ({"margins": (Margin(of=("job",), totals=(1,)),)}, "no attribute 'job'"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(change, words):
    good = {"id": "x", "unit": UNIT, "attributes": (SEX,)}
    with pytest.raises(SchemaError, match=words):
        Schema(**good | change)


def test_public_data_gives_sorted_categories_and_declared_edges():
    schema = Schema.from_public_data(
        {"sex": ["M", None, "F"], "size": [2, 10, 2], "age": [1.5]}, id="x", unit=UNIT, edges={"age": (0, 18)}
    )
    assert schema["sex"].categories == ("F", "M")
    assert schema["size"].categories == ("10", "2")
    assert schema["age"].edges == (0, 18)
