from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpbayes.base.errors import DpbayesError, SchemaError, TableError
from dpbayes.cli.main import application
from dpbayes.schema.schema import Schema

TOML = """
id = "people"
adjacency = "replace-one"
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "age"
edges = [0, 18, 65, inf]
missing = "drop"
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,age\nF,17\nPRIVATE,70\n")
    (tmp_path / "people.toml").write_text(TOML)
    app = application("schema")

    def invoke(*words):
        result = CliRunner().invoke(app, words)
        if isinstance(result.exception, DpbayesError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


def test_init_writes_a_skeleton_that_names_every_column_and_no_value(run):
    text = run("schema", "init", "people.csv")
    assert "\nsex = []" in text
    assert "\nage = []" in text
    assert 'id = "people"' in text
    assert "PRIVATE" not in text


def test_a_skeleton_becomes_a_schema_once_its_lists_are_filled_in(run, tmp_path):
    run("schema", "init", "people.csv", "--out", "new.toml", "--id", "census")
    text = (tmp_path / "new.toml").read_text()
    with pytest.raises(SchemaError, match="declares nothing"):
        Schema.from_toml(text)
    schema = Schema.from_toml(text.replace("= []", '= ["F", "M"]'))
    assert (schema.id, schema.names) == ("census", ("sex", "age"))


def test_init_never_overwrites_a_file(run):
    with pytest.raises(SchemaError, match="exists already"):
        run("schema", "init", "people.csv", "--out", "people.toml")


def test_check_accepts_a_table_that_fits_and_refuses_one_that_does_not(run, tmp_path):
    assert "It fits people.csv." in run("schema", "check", "people.toml", "people.csv")
    assert json.loads(run("schema", "check", "people.toml", "--json"))["cells"] == 4 * 5
    (tmp_path / "short.csv").write_text("sex\nF\n")
    with pytest.raises(TableError, match="no column 'age'"):
        run("schema", "check", "people.toml", "short.csv")


def test_check_of_a_missing_schema_says_how_to_write_one(run):
    with pytest.raises(SchemaError, match="dpbayes schema init"):
        run("schema", "check", "nowhere.toml")


def test_show_lists_levels_and_the_unit(run):
    shown = run("schema", "show", "people.toml")
    assert "replace-one" in shown
    assert "promised by the owner" in shown
    record = json.loads(run("schema", "show", "people.toml", "--json"))
    assert record["levels"]["age"] == ["[0, 18)", "[18, 65)", "[65, inf)", "other", "(dropped)"]
    assert record["digest"] == Schema.from_toml(TOML).digest
