from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes.base.errors import SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit

SCHEMA = Schema(
    id="x",
    unit=Unit(adjacency="replace-one"),
    attributes=(
        Attribute(name="sex", categories=("F", "M"), missing="other"),
        Attribute(name="income", categories=("low", "high"), unknown="drop", missing="drop"),
        Attribute(name="age", edges=(0, 18, 65, 120), missing="other"),
    ),
)


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5, unique=True), st.integers(0, 4))
def test_every_marginal_survives_its_text_and_its_record(names, given_count):
    cut = min(given_count, len(names) - 1)
    marginal = Marginal(tuple(names[cut:]), tuple(names[:cut]))
    assert Marginal.parse(str(marginal)) == marginal
    assert Marginal.from_record(marginal.record()) == marginal


def test_axes_come_given_first():
    marginal = Marginal.parse("income | sex, age".replace(" ", ""))
    assert marginal.names == ("sex", "age", "income")
    assert marginal.shape(SCHEMA) == (3, 4, 3)
    assert marginal.size(SCHEMA) == 36


def test_kept_cells_leave_out_the_level_of_dropped_rows():
    assert Marginal.parse("sex,income").kept(SCHEMA) == (slice(0, 3), slice(0, 2))


@pytest.mark.parametrize("text", ["", ",", "a,", "|a", "a|", "a|b|c", 'a"b', '"a', "a,,b"])
def test_text_that_names_no_table_is_refused(text):
    with pytest.raises(SchemaError, match="cannot read"):
        Marginal.parse(text)


def test_an_attribute_named_twice_is_refused():
    with pytest.raises(SchemaError, match="twice"):
        Marginal.parse("sex|sex")


def test_an_attribute_outside_the_schema_is_named_with_the_nearest_one():
    with pytest.raises(SchemaError, match=r"no attribute 'incom'\. Did you mean 'income'"):
        Marginal.parse("incom").axes(SCHEMA)
    with pytest.raises(SchemaError, match="It has sex, income, age"):
        Marginal.parse("zzz").axes(SCHEMA)
