"""Files that 0.1.0 wrote are recognised, and what is wrong with them is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpbayes import ApproxDP, Cost, Curator, Gaussian, PrivacyUnit, Release, Schema, Tables
from dpbayes.advisories import ADVISORIES, search
from dpbayes.errors import DpbayesError, InvalidArgument
from dpbayes.ledger.ledger import Ledger

FILES = Path(__file__).parents[1] / "files" / "0.1.0"


def found(*names: str) -> set[tuple[str, str]]:
    return {
        (finding.advisory, finding.what)
        for finding in search([FILES / name for name in names]).findings
        if finding.status != "unknown"
    }


LEDGER = {
    ("discovery-delta", "charge 1 of people (discover job)"),
    ("float-gammas", "charge 5 of people (sex)"),
    ("float-gammas", "charge 11 of people (naive-bayes: sex; job|sex)"),
    ("certificate", "charge 13 of people (posterior of sex)"),
    ("adaptive-budget", "people: 7 charges under an (ε, δ) limit"),
    ("count-oracle", "people: charges 9 were taken back after counting"),
}


@pytest.mark.parametrize("name", ["people.ledger", "people.jsonl"])
def test_a_ledger_and_its_export_tell_the_same(name: str) -> None:
    assert found(name) == LEDGER


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("discovery.json", {("discovery-delta", "the categories of job")}),
        ("gammas-large.json", {("float-gammas", "the table sex")}),
        ("model.json", {("float-gammas", "the table sex"), ("float-gammas", "the table job | sex")}),
        ("posterior-forged.json", {("certificate", "a posterior")}),
    ],
)
def test_a_published_file_tells_on_its_own(name: str, told: set[tuple[str, str]]) -> None:
    assert found(name) == told


@pytest.mark.parametrize("name", ["gammas-large.json", "gammas-small.json", "model.json", "posterior-forged.json"])
def test_a_file_of_the_first_version_tells_the_same_in_the_new_format(name: str, tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text(Release.load(FILES / name).to_json())
    told = {(each.advisory, each.true) for each in search([tmp_path]).findings}
    assert told == {(each.advisory, each.true) for each in search([FILES / name]).findings}


def test_a_release_of_today_is_called_sound(tmp_path: Path) -> None:
    schema = Schema.load(FILES / "people.toml")
    table = {"sex": ["F", "M"] * 50, "job": ["baker", "smith"] * 50}
    for number, mechanism in enumerate(("gaussian", "dirichlet")):
        job = Tables("sex", mechanism=mechanism)
        Curator(table, schema).release(job, ApproxDP(epsilon=1, delta=1e-6), out=tmp_path / str(number))
    report = search([tmp_path])
    assert (report.findings, report.damaged, report.files) == ([], [], 2)


@pytest.mark.parametrize("name", ["pure.ledger", "gaussian.json", "gammas-small.json", "posterior.json", "people.toml"])
def test_what_is_sound_is_called_sound(name: str) -> None:
    report = search([FILES / name])
    assert report.clean
    assert report.files == 1


def test_figures_stand_beside_what_was_stated() -> None:
    figures = {each.advisory: (each.stated, each.true) for each in search([FILES / "people.ledger"]).findings}
    assert figures["discovery-delta"] == ("ε=5 at δ=8.39e-05", "δ=0.000511 at the same ε")
    assert figures["certificate"] == ("ε=0.01", "ε=29.18")
    assert figures["float-gammas"][1].startswith("δ about ")


def test_schemas_of_one_data_set_with_different_person_columns_are_compared() -> None:
    assert found("people.toml", "people-guess.toml") == set()
    [(advisory, what)] = found("people.toml", "people-by-person.toml")
    assert (advisory, what) == ("person-column", "people: person columns none, person")


def test_that_a_faulty_library_drew_the_noise_cannot_be_told_and_is_said_once() -> None:
    unknown = [each for each in search([FILES]).findings if each.status == "unknown"]
    assert [each.advisory for each in unknown] == ["biased-noise"]
    assert not [each for each in search([FILES / "gammas-small.json"]).findings if each.status == "unknown"]


def test_a_folder_is_searched_and_what_is_not_ours_is_passed_over(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "deep" / "files")
    for name, text in {"a.json": "[1]", "b.json": "{", "c.json": '{"format": "x"}', "d.toml": "a = 1"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "e.db").write_bytes(b"SQLite format 3\0 and nothing more")
    (tmp_path / "f.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
    report = search([tmp_path])
    assert report.files == 13
    assert {each.advisory for each in report.findings} == set(ADVISORIES)


@pytest.mark.parametrize(
    "content", ["[1]", "{", '{"format": "x"}', "SQLite format 3\0 and nothing more", '{"x": 1}\n{}']
)
def test_a_named_file_that_is_not_ours_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(DpbayesError):
        search([tmp_path / "x"])


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="there is no file"):
        search([tmp_path / "missing"])


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(DpbayesError) as problem:
        search(["postgresql://me:secret@127.0.0.1:1/nothing"])
    assert "secret" not in str(problem.value)


def test_one_release_under_a_limit_needs_no_check(tmp_path: Path) -> None:
    unit = PrivacyUnit(adjacency="add-remove")
    ledger = Ledger(tmp_path / "one.ledger")
    ledger.open("one", ApproxDP(epsilon=1, delta=1e-6), unit)
    ledger.charge("one", Cost.of(Gaussian(sigma=10, unit=unit)))
    assert search([tmp_path / "one.ledger"]).clean


def junk(value: Any) -> list[Any]:
    return [each for each in (None, -1, "x", [], {}, 1e308, True) if type(each) is not type(value)]


def changed(content: Any) -> list[Any]:
    """The same content with each of its parts, in turn, replaced by junk."""
    made = []
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in parts:
        for other in (*junk(value), *changed(value)):
            copy = dict(content) if isinstance(content, dict) else list(content)
            copy[key] = other
            made.append(copy)
    return made


absurd = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # as the command ignores them


@absurd
@pytest.mark.parametrize("name", ["discovery.json", "gammas-large.json", "posterior-forged.json"])
def test_damaged_files_never_break_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    whole = json.loads((FILES / name).read_text())
    for table in whole.get("tables", ()):
        del table["products"], table["axes"]  # nobody looks at them
    for content in changed(whole):
        path.write_text(json.dumps(content))
        assert search([tmp_path]) is not None


@absurd
@pytest.mark.parametrize("number", [0, 1, 2])
def test_damaged_exports_never_break_it(tmp_path: Path, number: int) -> None:
    lines = (FILES / "people.jsonl").read_text().splitlines()[:3]
    path = tmp_path / "x.jsonl"
    for content in changed(json.loads(lines[number])):
        path.write_text("\n".join([*lines[:number], json.dumps(content), *lines[number + 1 :]]))
        assert search([tmp_path]).files <= 1  # it comes back, whatever the entry says


def test_a_damaged_ledger_is_not_called_sound(tmp_path: Path) -> None:
    text = (FILES / "people.jsonl").read_text().replace('"epsilon":4.999999995', '"epsilon":"five"')
    (tmp_path / "x.jsonl").write_text(text)
    report = search([tmp_path])
    assert report.damaged == [str(tmp_path / "x.jsonl")]
    assert not report.clean
