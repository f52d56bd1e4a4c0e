"""``dpbayes estimate``: one posterior of everything published, from files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.release.test_estimates import release

from dpbayes import ApproxDP, Attribute, Curator, Posterior, PrivacyUnit, Release, Schema, Tables
from dpbayes.ledger.ledger import Ledger


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


def test_with_its_ledger_only_what_was_charged_counts(tmp_path: Path) -> None:
    schema = Schema(
        id="people",
        unit=PrivacyUnit(adjacency="replace-one"),
        attributes=(
            Attribute(name="sex", categories=("F", "M", "other"), missing="other"),
            Attribute(name="income", categories=("low", "high", "other"), missing="other"),
        ),
    )
    table = {"sex": ["F", "M"] * 200, "income": ["low", "low", "high", "low"] * 100}
    ledgers = []
    for name in ("one", "two"):
        book = Ledger(tmp_path / name)
        book.open("people", ApproxDP(epsilon=5, delta=1e-6), unit=schema.unit, schema=schema.digest)
        ledgers.append(Curator(table, schema, ledger=book))
    target = ApproxDP(epsilon=1, delta=1e-6)
    ledgers[0].release(Tables("sex"), target, out=tmp_path / "all" / "first")
    ledgers[0].release(Tables("income|sex"), target, out=tmp_path / "all" / "year" / "second")
    ledgers[1].release(Tables("income"), target, out=tmp_path / "all" / "other")
    ledgers[0].release(Tables("income"), target)
    done = dpbayes("estimate", tmp_path / "all", "--ledger", tmp_path / "one", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [each["table"] for each in found["tables"]] == ["sex", "income|sex"]
    assert found["charged_elsewhere"] == 1
    shown = dpbayes("estimate", tmp_path / "all", "--ledger", tmp_path / "one")
    assert "1 release that the ledger was charged for" in " ".join(shown.out.split())
    refused = dpbayes("estimate", tmp_path / "all" / "other", "--ledger", tmp_path / "one").sentence
    assert "charged for none of these" in refused


def test_a_level_or_attribute_with_a_slip_is_told_the_nearest(folder: Path) -> None:
    assert "Did you mean 'high'" in dpbayes("estimate", folder, "--ask", "share(income='hihg')").sentence
    assert "Did you mean 'income'" in dpbayes("estimate", folder, "--ask", "share(incme='high')").sentence


def test_repeated_people_widen_intervals_for_the_population_and_the_reader_is_told(tmp_path: Path) -> None:
    """In the file, in the report, on the terminal and in JSON: the same sentence, beside the numbers."""
    attributes = tuple(
        Attribute(name=name, categories=("no", "yes"), unknown="no", missing="no") for name in ("ill", "poor")
    )
    rows = {"ill": ["yes", "no"] * 400, "poor": ["yes", "no", "no", "no"] * 200}
    widths = {}
    for most in (1, 5):
        schema = Schema(id="panel", unit=PrivacyUnit(adjacency="replace-one", max_rows=most), attributes=attributes)
        made = Curator(rows, schema, seed=1).release(Tables("ill", "poor"), ApproxDP(epsilon=1000, delta=1e-6))
        held = made["ill"].table.products["population"]
        widths[most] = float(held.upper[0] - held.lower[0])  # type: ignore[index]
        made.save(tmp_path / str(most))
        sentence = f"One person may have up to {most} rows"
        assert (sentence in held.note) == (most > 1)
        assert Release.load(tmp_path / str(most))["ill"].table.products["population"].note == held.note
        assert next(check for check in made.verify().checks if check.name == "products").passed
        assert (sentence in (tmp_path / str(most) / "report.html").read_text()) == (most > 1)
        asked = ("estimate", tmp_path / str(most), "--table", "ill", "--ask", "share(ill='yes') - share(poor='yes')")
        told = json.loads(dpbayes(*asked, "--target", "population", "--json").out)
        assert (sentence in told["tables"][0]["note"]) == (most > 1)
        assert sum(sentence in note for note in told["answers"][0]["notes"]) == (most > 1)
        assert "A table ill × poor would make it shorter" in told["answers"][0]["notes"][-1]
        assert (sentence in " ".join(dpbayes(*asked, "--target", "population").out.split())) == (most > 1)
        assert sentence not in dpbayes(*asked).out
    assert widths[5] == pytest.approx(5**0.5 * widths[1], rel=0.05)


def test_a_column_for_swallowed_cells_is_there_only_where_one_is(folder: Path) -> None:
    shown = dpbayes("estimate", folder, "--table", "region").out
    assert not any(line.replace("┃", "").endswith("  ") for line in shown.splitlines() if line.startswith("┃"))
