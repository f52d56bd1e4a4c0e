"""``dpbayes ask``: one posterior of everything published, from files alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.release.test_estimates import release

from dpbayes import ApproxDP, Attribute, Curator, Posterior, Release, Schema, Tables, Unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    release("income,sex").save(tmp_path / "all" / "first")
    release("income,sex", "region", shift=5.0).save(tmp_path / "all" / "second")
    return tmp_path / "all"


def test_it_prints_what_the_posterior_says(folder: Path) -> None:
    question = "share(income='high' | sex='male')"
    done = dpbayes("ask", folder / "first", "income|sex", question, "--also", folder / "second", "--json")
    found = done.result
    posterior = Posterior([release("income,sex"), release("income,sex", "region", shift=5.0)])
    [table], [answer] = found["tables"], found["answers"]
    expected = posterior.table("income|sex").records
    assert [cell["records"]["estimate"] for cell in table["cells"]] == pytest.approx(expected.values.ravel().tolist())
    assert [cell["records"]["upper"] for cell in table["cells"]] == pytest.approx(expected.upper.ravel().tolist())
    assert table["cells"][0]["levels"] == {"sex": "female", "income": "low"}
    assert answer["estimate"] == pytest.approx(posterior.ask(question).estimate)
    told = dpbayes("ask", folder / "first", "count(income='high')").out
    assert "95 % from" in told
    assert not re.search(r"\d\.\d", told.partition("└")[0]), "the interval is 20 records wide and more"


def test_a_folder_of_releases_is_all_of_them(folder: Path) -> None:
    named = dpbayes("ask", folder / "first", "--also", folder / "second" / "release.json", "--json")
    assert named.code == 0, named.err
    assert dpbayes("ask", folder, "--json").out == named.out
    assert [table["table"] for table in named.result["tables"]] == ["income,sex", "region"]


def test_what_a_newer_release_supersedes_is_left_out_and_named(folder: Path) -> None:
    first = Release.load(folder / "first")
    corrected = release("income,sex", shift=40.0)
    replace(corrected, about={"supersedes": first.id}).save(folder / "third")
    alone = dpbayes("ask", folder / "third", "income,sex", "--json")
    both = dpbayes("ask", folder / "third", "income,sex", "--also", folder / "first", "--json")
    assert both.result["tables"] == alone.result["tables"]
    assert json.loads(both.out)["warnings"] == [f"A newer release supersedes {first.id}, which is left out."]
    assert len(Posterior(folder).releases) == 2
    assert dpbayes("ask", folder / "first", "income,sex").code == 0  # alone it can still be read


def test_people_get_tables_and_the_promise(folder: Path) -> None:
    done = dpbayes("ask", folder, "count(sex='male')", "income", "--population")
    assert done.code == 0, done.err
    assert "count(sex='male')" in done.out
    assert "population" in done.out
    assert "at most ε=1" in done.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("share(income='rich')",), "has no level 'rich'"),
        (("share(income=)",), "at character"),
        (("income|region",), "Measure a table that contains income × region"),
        (("wealth",), "'wealth'"),
        (("--level", "1.5"), "level"),
        (("--also", "first"), "there twice"),
        (("income|sex='x'",), "no row sex='x'"),
        (("income|sex!='male'",), "one level for each name"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    given = [folder / each if each == "first" else each for each in arguments]
    assert sentence in dpbayes("ask", folder, *given).sentence


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    assert "no release in" in dpbayes("ask", tmp_path).sentence
    assert "cannot read" in dpbayes("ask", tmp_path / "none.json").sentence


def test_people_read_one_word_for_what_nobody_stated(tmp_path: Path) -> None:
    levels = {
        name: Attribute(name=name, categories=("a",), labels=said)
        for name, said in (("plain", {}), ("told", {"missing": "refused"}))
    }
    schema = Schema(id="people", unit=Unit(adjacency="replace-one"), attributes=tuple(levels.values()))
    rows = {"plain": ["a", None] * 200, "told": ["a", None] * 200}
    made = Curator(rows, schema).release(Tables("plain,told"), ApproxDP(epsilon=1, delta=1e-6), out=tmp_path / "1")
    done = dpbayes("ask", tmp_path / "1", "plain", "told")
    assert "not stated" in done.out
    assert "refused" in done.out
    assert "missing" not in done.out
    [table] = dpbayes("ask", tmp_path / "1", "plain", "--json").result["tables"]
    assert [(cell["levels"]["plain"], cell["label"]) for cell in table["cells"]][1] == ("missing", "not stated")
    assert made.schema.attributes == schema.attributes


def test_several_data_sets_are_refused_with_a_list(tmp_path: Path) -> None:
    for name in ("people", "people", "homes"):
        schema = Schema(
            id=name,
            unit=Unit(adjacency="replace-one"),
            attributes=(Attribute(name="sex", categories=("F", "M", "other"), missing="other"),),
        )
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        Curator({"sex": ["F", "M"] * 200}, schema).release(Tables("sex"), ApproxDP(epsilon=1, delta=1e-6), out=out)
    said = dpbayes("ask", tmp_path).sentence
    assert "there are several data sets: 'people' (2 releases), 'homes' (1 release)" in said


def test_one_row_of_a_table_is_asked_for_by_its_levels(folder: Path) -> None:
    [whole] = dpbayes("ask", folder, "income|sex", "--json").result["tables"]
    [row] = dpbayes("ask", folder, "income|sex='male'", "--json").result["tables"]
    assert row["table"] == "income|sex='male'"
    assert row["cells"] == [cell for cell in whole["cells"] if cell["levels"]["sex"] == "male"]


def test_answers_are_written_to_a_new_file(folder: Path, tmp_path: Path) -> None:
    asked = ("ask", folder, "income|sex", "count(sex='male')", "--out")
    assert dpbayes(*asked, tmp_path / "a.csv").code == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "question,cell,what,estimate,lower,upper"
    assert len(lines) == 2 + 2 * len(dpbayes(*asked[:-1], "--json").result["tables"][0]["cells"])
    assert dpbayes(*asked, tmp_path / "a.json").code == 0
    assert json.loads((tmp_path / "a.json").read_text())["answers"][0]["question"] == "count(sex='male')"
    assert "exists already" in dpbayes(*asked, tmp_path / "a.csv").sentence
    assert "ends in .csv or .json" in dpbayes(*asked, tmp_path / "a.txt").sentence


def test_a_level_or_attribute_with_a_slip_is_told_the_nearest(folder: Path) -> None:
    assert "Did you mean 'high'" in dpbayes("ask", folder, "share(income='hihg')").sentence
    assert "Did you mean 'income'" in dpbayes("ask", folder, "share(incme='high')").sentence


def test_repeated_people_widen_intervals_for_the_population_and_the_reader_is_told(tmp_path: Path) -> None:
    """In the file, in the report, on the terminal and in JSON: the same sentence, beside the numbers."""
    attributes = tuple(
        Attribute(name=name, categories=("no", "yes"), unknown="no", missing="no") for name in ("ill", "poor")
    )
    rows = {"ill": ["yes", "no"] * 400, "poor": ["yes", "no", "no", "no"] * 200}
    widths = {}
    for most in (1, 5):
        schema = Schema(id="panel", unit=Unit(adjacency="replace-one", max_rows=most), attributes=attributes)
        made = Curator(rows, schema, seed=1).release(Tables("ill", "poor"), ApproxDP(epsilon=1000, delta=1e-6))
        held = made["ill"].table.products["population"]
        widths[most] = float(held.upper[0] - held.lower[0])  # type: ignore[index]
        made.save(tmp_path / str(most))
        sentence = f"One person may have up to {most} rows"
        assert (sentence in held.note) == (most > 1)
        assert Release.load(tmp_path / str(most))["ill"].table.products["population"].note == held.note
        assert next(check for check in made.verify().checks if check.name == "products").passed
        assert (sentence in (tmp_path / str(most) / "report.html").read_text()) == (most > 1)
        asked = ("ask", tmp_path / str(most), "ill", "share(ill='yes') - share(poor='yes')")
        told = dpbayes(*asked, "--population", "--json").result
        assert (sentence in told["tables"][0]["note"]) == (most > 1)
        assert sum(sentence in note for note in told["answers"][0]["notes"]) == (most > 1)
        assert "A table ill × poor would make it shorter" in told["answers"][0]["notes"][-1]
        assert (sentence in " ".join(dpbayes(*asked, "--population").out.split())) == (most > 1)
        assert sentence not in dpbayes(*asked).out
    assert widths[5] == pytest.approx(5**0.5 * widths[1], rel=0.05)


def test_a_column_for_swallowed_cells_is_there_only_where_one_is(folder: Path) -> None:
    shown = dpbayes("ask", folder, "region").out
    assert not any(line.replace("┃", "").endswith("  ") for line in shown.splitlines() if line.startswith("┃"))


def test_questions_may_use_the_labels_that_reports_print(tmp_path: Path) -> None:
    """A label that is also the code of another level means that other level."""
    attributes = (
        Attribute("sex", ("1", "2"), labels={"1": "male", "2": "female"}),
        Attribute("age", edges=(16, 30, 75), labels={}),
    )
    schema = Schema(id="coded", unit="replace-one", attributes=attributes)
    rows = {"sex": ["1", "2"] * 50, "age": [20, 40] * 50}
    Curator(rows, schema, seed=1).release(Tables("sex,age"), ApproxDP(5, 1e-6)).save(tmp_path / "made")
    for said, coded in (("sex='male'", "sex='1'"), ("sex in ('female', '1')", "sex in ('2', '1')"),
                        ("age='16 to under 30'", "age='[16, 30)'"), ("age='not stated'", "age='missing'")):  # fmt: skip
        first, second = (dpbayes("ask", tmp_path / "made", f"count({each})", "--json") for each in (said, coded))
        assert first.code == 0, first.err
        numbers = [each.result["answers"][0] | {"question": ""} for each in (first, second)]
        assert numbers[0] == numbers[1]
    row, same = (
        dpbayes("ask", tmp_path / "made", f"age|sex='{each}'", "--json").result["tables"] for each in ("male", "1")
    )
    assert row[0]["cells"] == same[0]["cells"]
    assert {cell["levels"]["sex"] for cell in row[0]["cells"]} == {"1"}
    assert "no row sex='man'" in dpbayes("ask", tmp_path / "made", "age|sex='man'").sentence


def test_what_several_releases_promise_is_said_for_each_and_that_it_adds_up(folder: Path) -> None:
    one, other = (dpbayes("ask", folder / name, "--json").result["statement"] for name in ("first", "second"))
    assert dpbayes("ask", folder, "--json").result["statement"] == f"{one} {other} Their losses add up."
