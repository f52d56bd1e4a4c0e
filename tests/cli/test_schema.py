"""``dpbayes schema``: a skeleton, what it becomes, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import Done, dpbayes

from dpbayes import Schema
from dpbayes.base.errors import SchemaError

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


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age\nF,17\nPRIVATE,70\n")
    Path("people.toml").write_text(TOML)
    return tmp_path


def run(*words: str) -> Done:
    done = dpbayes("schema", *words)
    assert done.code == 0, done.err
    return done


def test_init_writes_a_skeleton_that_names_every_column_and_no_value() -> None:
    text = run("init", "people.csv", "--out", "-").out
    assert "\nsex = []" in text
    assert "\nage = []" in text
    assert 'id = "people"' in text
    assert "PRIVATE" not in text


def test_a_skeleton_lies_beside_the_table_and_becomes_a_schema_once_its_lists_are_filled_in() -> None:
    Path("people.toml").unlink()
    run("init", "people.csv")
    text = Path("people.toml").read_text()
    with pytest.raises(SchemaError, match="declares nothing"):
        Schema.from_toml(text)
    schema = Schema.from_toml(text.replace("= []", '= ["F", "M"]'))
    assert (schema.id, schema.names) == ("people", ("sex", "age"))


def test_init_never_overwrites_a_file() -> None:
    for more in ((), ("--out", "people.toml")):
        assert "exists already" in dpbayes("schema", "init", "people.csv", *more).sentence


def test_check_accepts_a_table_that_fits_and_refuses_one_that_does_not() -> None:
    assert "It fits people.csv." in run("check", "people.csv").out
    assert run("check", "people.toml", "--json").result["cells"] == 4 * 5
    Path("short.csv").write_text("sex\nF\n")
    assert "no column 'age'" in dpbayes("schema", "check", "short.csv", "--schema", "people.toml").sentence


def test_check_of_a_missing_schema_says_how_to_write_one() -> None:
    assert "dpbayes schema init" in dpbayes("schema", "check", "nowhere.toml").sentence
    assert dpbayes("schema", "check", "other.csv").sentence.startswith(
        "Table: there is no file 'other.csv'. Check the path"
    )
    Path("other.csv").write_text("sex;age\nF;17\n")
    assert "`dpbayes schema init other.csv`" in dpbayes("schema", "check", "other.csv").sentence
    assert (
        "`dpbayes schema init 'other.csv?delimiter=;'`" in dpbayes("schema", "check", "other.csv?delimiter=;").sentence
    )


def test_the_command_that_init_prints_runs_as_it_is() -> None:
    Path("other.csv").write_text("sex;age\nF;17\n")
    done = run("init", "other.csv?delimiter=;", "--categories", "sex=F,M", "--edges", "age=0:100:10")
    assert done.out.endswith("dpbayes schema check 'other.csv?delimiter=;'\n")
    assert run("check", "other.csv?delimiter=;").code == 0


def test_check_lists_levels_and_the_unit() -> None:
    Path("people.csv").unlink()
    shown = run("check", "people.toml").out
    assert "replace-one" in shown
    assert "by the owner's word" in shown
    record = run("check", "people.toml", "--json").result
    assert record["levels"]["age"] == ["[0, 18)", "[18, 65)", "[65, inf)", "other", "(dropped)"]
    assert record["digest"] == Schema.from_toml(TOML).digest
