"""The line of every key is found, whatever stands between."""

from __future__ import annotations

import tomllib

import pytest

from dpbayes.base import toml

TEXT = '''# a comment with [brackets] and "quotes
id = "x # no comment"  # a comment

text = """
[[attribute]]
name = "not a section"
"""
raw = \'\'\'
[x]\'\'\'
[unit]
adjacency = "add-remove"
[[attribute]]   # first
name = "a ] b"
categories = [
  "one", # [ a comment
  "two]",
]
recode = { "1" = "one", "2" = "one" }
[[attribute]]
"quoted key" = 1
dotted.key = 2
'''


def test_every_key_has_its_line() -> None:
    tomllib.loads(TEXT)
    lines = TEXT.splitlines()
    found = toml.places(TEXT)
    expected = {
        ("id",): "id =",
        ("text",): "text =",
        ("raw",): "raw =",
        ("unit",): "[unit]",
        ("unit", "adjacency"): "adjacency",
        ("attribute", 0): "[[attribute]]   # first",
        ("attribute", 0, "name"): "name = ",
        ("attribute", 0, "categories"): "categories",
        ("attribute", 0, "recode"): "recode",
        ("attribute", 1, "quoted key"): '"quoted key"',
        ("attribute", 1, "dotted", "key"): "dotted.key",
    }
    for path, start in expected.items():
        assert lines[found[path] - 1].startswith(start), path
    assert found["attribute", 0, "name"] == 13
    assert lines[found["attribute", 1] - 1] == "[[attribute]]"


@pytest.mark.parametrize("text", ["", "# nothing", "a=1", "\n\n a = [ [1], [2] ]\n", "a = '''x'''\nb = \"\"\"y\"\"\""])
def test_any_valid_text_has_places_for_its_top_keys(text: str) -> None:
    assert {path[0] for path in toml.places(text)} == set(tomllib.loads(text))


def test_truth_values_and_tables_are_written_as_toml() -> None:
    value = {"a": True, "b": {"x y": "1", 'q"': "2"}, "c": [1.5, 2.0], "d": {}}
    assert tomllib.loads(toml.dumps(value)) == value
