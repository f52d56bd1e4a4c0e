"""``dpbayes estimate``: one posterior of everything published, from files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.release.test_posterior import release

from dpbayes import Posterior


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    release("income,sex").save(tmp_path / "all" / "first")
    release("income,sex", "region", shift=5.0).save(tmp_path / "all" / "second")
    return tmp_path / "all"


def test_it_prints_what_the_posterior_says(folder: Path) -> None:
    question = "share(income='high' | sex='male')"
    done = dpbayes(
        "estimate", folder / "first", folder / "second", "--table", "income|sex", "--ask", question, "--json"
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    posterior = Posterior([release("income,sex"), release("income,sex", "region", shift=5.0)])
    [table], [answer] = found["tables"], found["answers"]
    expected = posterior.table("income|sex").records
    assert [cell["records"]["estimate"] for cell in table["cells"]] == pytest.approx(expected.values.ravel().tolist())
    assert [cell["records"]["upper"] for cell in table["cells"]] == pytest.approx(expected.upper.ravel().tolist())
    assert table["cells"][0]["levels"] == {"sex": "female", "income": "low"}
    assert answer["estimate"] == pytest.approx(posterior.ask(question).estimate)


def test_a_folder_of_releases_is_all_of_them(folder: Path) -> None:
    named = dpbayes("estimate", folder / "first", folder / "second" / "release.json", "--json")
    assert named.code == 0, named.err
    assert dpbayes("estimate", folder, "--json").out == named.out
    assert [table["table"] for table in json.loads(named.out)["tables"]] == ["income,sex", "region"]


def test_people_get_tables_and_the_promise(folder: Path) -> None:
    done = dpbayes("estimate", folder, "--ask", "count(sex='male')", "--table", "income", "--target", "population")
    assert done.code == 0, done.err
    assert "count(sex='male')" in done.out
    assert "population" in done.out
    assert "at most ε=1" in done.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--ask", "share(income='rich')"), "has no level 'rich'"),
        (("--ask", "share(income=)"), "at character"),
        (("--table", "income|region"), "Measure a table that contains income × region"),
        (("--table", "wealth"), "'wealth'"),
        (("--level", "1.5"), "level"),
        (("first",), "there twice"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    given = [folder / each if each == "first" else each for each in arguments]
    assert sentence in dpbayes("estimate", folder, *given).sentence


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    assert "no release in" in dpbayes("estimate", tmp_path).sentence
    assert "cannot read" in dpbayes("estimate", tmp_path / "none.json").sentence
