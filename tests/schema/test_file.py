"""The schema file: one record and one digest, however it is written; what cannot be read is told with its line."""

from __future__ import annotations

from datetime import date

import pytest

from dpbayes.base.errors import SchemaError
from dpbayes.example import SCHEMA
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.file import with_attribute
from dpbayes.schema.schema import Schema

OLD = """
format = 1
id = "survey"
adjacency = "replace-one"
max_rows = 1
person = "who"

[[attribute]]
name = "sex"
categories = ["F", "M"]
missing = "other"

[[attribute]]
name = "age group"
edges = [-inf, 18, 65.5, inf]

[[attribute]]
name = "admitted"
dates = [2020-01-01, 2026-01-01]

[[attribute]]
name = "month"
dates = [2020-01-01, 2021-01-01]
period = "month"
unknown = "drop"

[[impossible]]
sex = ["M"]
"age group" = ["[65.5, inf)"]
"""

NEW = """
id = "survey"
unit = "replace-one"
person = "who"
records_guess = 400

[attributes]
sex = { categories = ["F", "M"], missing = "other" }
"age group" = [-inf, 18, 65.5, inf]
admitted = [2020-01-01, 2026-01-01]
month = { dates = [2020-01-01, 2021-01-01], unknown = "drop", period = "month" }

[[impossible]]
sex = ["M"]
"age group" = ["[65.5, inf)"]
"""

TABLES = """
unit = "replace-one:1"
person = "who"
id = 'survey'
attributes.sex.missing = "other"
attributes.sex.categories = [
  "F",  # women
  "M",
]
[attributes."age group"]
edges = [-inf, 18, 65.5, inf]
[attributes.admitted]
dates = ["2020-01-01", "2026-01-01"]
[attributes.month]
dates = [2020-01-01, 2021-01-01]
period = "month"
unknown = "drop"
missing = "category"
[[impossible]]
sex = "M"
"age group" = "[65.5, inf)"
"""
"""The same once more; TOML lets a table be written in many ways."""

DIGEST = "8c7f3b8f79ef242e7e34a26955b9c7c753d165a20d5e87dad20897ba2140762e"
"""Of the example's schema, as 0.2.0 computed it: ledgers hold it."""


@pytest.mark.parametrize("text", [NEW, TABLES])
def test_the_digest_of_what_is_declared_does_not_depend_on_notation(text: str) -> None:
    old, new = Schema.from_toml(OLD), Schema.from_toml(text)
    assert new == old
    assert new.digest == old.digest
    again = Schema.from_toml(new.to_toml())
    assert (again, again.digest, again.records_guess) == (old, old.digest, new.records_guess)
    assert new.to_toml() == again.to_toml()


def test_the_new_form_is_what_is_written() -> None:
    assert Schema.from_toml(OLD).to_toml().strip() == NEW.replace("records_guess = 400\n", "").strip()
    assert Schema.from_toml(SCHEMA).digest == DIGEST


def test_order_counts() -> None:
    first = 'id = "a"\nunit = "add-remove:5"\n[attributes]\nx = ["1", "2"]\ny = [1, 2]'
    turned = 'id = "a"\nunit = "add-remove:5"\n[attributes]\ny = [1, 2]\nx = ["1", "2"]'
    assert Schema.from_toml(first).digest != Schema.from_toml(turned).digest
    assert Schema.from_toml(first).unit.max_rows == 5


def test_a_guess_at_the_number_of_records_is_no_part_of_what_is_declared() -> None:
    text = 'id = "a"\nunit = "add-remove"\nrecords_guess = 70\n[attributes]\nx = ["1", "2"]'
    guessed, without = Schema.from_toml(text), Schema.from_toml(text.replace("records_guess = 70", ""))
    assert (guessed.expected, without.expected) == (70, None)
    assert guessed == without
    assert guessed.digest == without.digest
    assert "records_guess" not in guessed.record()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('unit = "replace-one"', 'unti = "replace-one"'), "line 3: .*'unti'. Did you mean 'unit'"),
        (('unit = "replace-one"', 'unit = "replace"'), "line 3: expected the unit to be replace-one or add-remove"),
        (('unit = "replace-one"', 'unit = "replace-one"\nmax_rows = 2'), "line 3: .*Keep the unit"),
        (("[attributes]", "[atributes]"), "line 7: .*'atributes'. Did you mean 'attributes'"),
        (('"M"], missing', '"M"], mising'), "line 8: .*'mising'. Did you mean 'missing'"),
        (('"M"], missing', '"M"], name = "job", missing'), "line 8: .*'sex' has its name already"),
        (("[-inf, 18", '[-inf, "18"'), "line 9: .*mixes categories and edges"),
        (("[-inf, 18", "[-inf, 99"), "line 9: .*each above the one before"),
        (("[2020-01-01, 2026-01-01]", "[]"), "line 10: .*declares nothing"),
        (("[2020-01-01, 2026-01-01]", "7"), "line 10: .*needs a list"),
        (("records_guess = 400", "records_guess = 0"), "line 5: .*whole number >= 1"),
        (("records_guess = 400", "records_guess = 400\nrecords = 3"), "line 5: .*Keep records"),
        (("[[impossible]]", "[[attribute]]\nname = 'z'\n[[impossible]]"), r"line 13: .*Keep \[attributes\]"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(change: tuple[str, str], said: str) -> None:
    assert change[0] in NEW
    with pytest.raises(SchemaError, match=said):
        Schema.from_toml(NEW.replace(*change, 1))


BOUGHT = (
    Attribute(name="age group", edges=(0, 30, 60), source="bought"),
    Attribute(name="sex", categories=("F", "M", "x"), missing="other"),
    Attribute(name="region", categories=("N", "S"), unknown="drop"),
    Attribute(name="many", categories=tuple(f"category {number}" for number in range(40)), labels={"category 1": "1"}),
    Attribute(name="admitted", dates=(date(2020, 1, 1), date(2024, 1, 1))),
)


@pytest.mark.parametrize("attribute", BOUGHT, ids=lambda each: each.name)
@pytest.mark.parametrize("text", [OLD, NEW, TABLES], ids=["old", "new", "tables"])
def test_an_attribute_is_written_into_a_file_and_all_the_rest_stays(text: str, attribute: Attribute) -> None:
    text = text[: text.index("[[impossible]]")] + "# a remark\n"
    changed = with_attribute(text, attribute)
    before, after = Schema.from_toml(text), Schema.from_toml(changed)
    assert after[attribute.name] == attribute
    assert [each for each in after.attributes if each.name != attribute.name] == [
        each for each in before.attributes if each.name != attribute.name
    ]
    assert changed.endswith("# a remark\n")
