"""What cannot occur: declared in a schema, part of its digest, and a mask for every table that shows it."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes import Attribute, Schema, Unit
from dpbayes.base.errors import SchemaError
from dpbayes.schema.public import Impossible, Margin, Within

UNIT = Unit(adjacency="replace-one")
AGE = Attribute(name="age", categories=("child", "adult", "old"), missing="other")
MARITAL = Attribute(name="marital status", categories=("single", "married", "widowed"), missing="other")
STATE = Attribute(name="state", categories=("NY", "IL"), missing="other")
COUNTY = Attribute(name="county", categories=("Kings", "Queens", "Cook"), missing="category")
CHILD = Impossible(levels={"age": ("child",), "marital status": ("married", "widowed")})
LIES = Within(inner="county", outer="state", map={"Kings": "NY", "Queens": "NY", "Cook": "IL"})


def schema(**options: object) -> Schema:
    given = {"impossible": (CHILD,), "within": (LIES,)} | options
    return Schema(id="people", unit=UNIT, attributes=(AGE, MARITAL, STATE, COUNTY), **given)  # type: ignore[arg-type]


def possible(age: str, marital: str, state: str, county: str) -> bool:
    """The declarations in other words."""
    if age == "child" and marital in ("married", "widowed"):
        return False
    homes = {"Kings": "NY", "Queens": "NY", "Cook": "IL"}
    return not (county in homes and state in ("NY", "IL") and homes[county] != state)


@pytest.mark.parametrize(
    "names",
    [
        ("age", "marital status"),
        ("marital status", "age"),
        ("county", "age", "state"),
        ("state", "marital status", "county", "age"),
    ],
)
def test_a_mask_marks_exactly_what_cannot_occur(names: tuple[str, ...]) -> None:
    made = schema()
    found = made.zeros(names)
    assert found is not None
    free = {"age": "other", "marital status": "other", "state": "other", "county": "other"}
    for cell in np.ndindex(*found.shape):
        levels = {name: made[name].levels[place] for name, place in zip(names, cell, strict=True)}
        values = free | levels
        assert found[cell] != possible(values["age"], values["marital status"], values["state"], values["county"])


def test_tables_that_do_not_show_it_have_no_mask() -> None:
    assert schema().zeros(["age", "state"]) is None
    assert schema().zeros([]) is None
    with pytest.raises(SchemaError, match="no attribute 'income'"):
        schema().zeros(["income"])


def test_files_and_records_give_it_back_and_the_digest_knows_it() -> None:
    made = schema()
    assert Schema.from_toml(made.to_toml()) == made
    assert Schema.from_record(made.record()) == made
    digests = {
        made.digest,
        schema(within=()).digest,
        schema(impossible=()).digest,
        schema(impossible=(), within=()).digest,
    }
    assert len(digests) == 4


def test_it_is_written_as_one_would_by_hand() -> None:
    head = schema(impossible=(), within=()).to_toml()
    text = head + (
        '[[impossible]]\nage = "child"\n"marital status" = ["married", "widowed"]\n'
        '[[within]]\ninner = "county"\nouter = "state"\n[within.map]\nKings = "NY"\nQueens = "NY"\nCook = "IL"\n'
    )
    assert Schema.from_toml(text) == schema()


def test_a_view_of_some_attributes_keeps_what_it_can() -> None:
    seen = schema().project(["county", "state"])
    assert (seen.impossible, seen.within) == ((), (LIES,))
    other = schema().with_attributes((Attribute(name="age", categories=("young", "old"), missing="other"), MARITAL))
    assert (other.impossible, other.within) == ((), ())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"impossible": (Impossible(levels={"age": ("child",), "sex": ("F",)}),)}, "names 'sex'"),
        ({"impossible": (Impossible(levels={"age": ("chlid",), "state": ("NY",)}),)}, "Did you mean 'child'"),
        ({"within": (Within(inner="county", outer="state", map={"Kings": "NY"}),)}, "in which state 'Queens' lies"),
        ({"within": (Within(inner="county", outer="state", map={**LIES.map, "Cook": "XX"}),)}, "names the level 'XX'"),
        ({"margins": (Margin(of=("age", "marital status"), totals=(0, 1, *[0] * 14)),)}, "calls impossible"),
        (
            {
                "margins": (
                    Margin(of=("age",), totals=(1, 2, 3, 0)),
                    Margin(of=("state", "age"), totals=(2, 2, 2, *[0] * 9)),
                )
            },
            "contradict each other in the totals of age",
        ),
        (
            {"margins": (Margin(of=("age",), totals=(1, 2, 3, 0)), Margin(of=("state",), totals=(1, 1, 1)))},
            "contradict each other in the number of records",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(options: dict[str, object], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema(**options)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('[[impossible]]\nage = ["child"]', "two attributes or more"),
        ("[[impossible]]\nage = 3\nstate = 4", "a list of texts"),
        ('[[within]]\ninner = "county"\nouter = "state"', "lacks the key 'map'"),
        ('[[within]]\ninner = "county"\nouter = "county"\nmap = {}', "within itself"),
        ('[[within]]\ninner = "county"\nouter = "state"\nmap = 3', "a state for each county"),
        ('[[within]]\ninner = 1\nouter = "state"\nmap = {}', "names of attributes"),
    ],
)
def test_a_section_that_cannot_be_read_is_refused_in_a_sentence(entry: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.from_toml(schema(impossible=(), within=()).to_toml() + entry)
