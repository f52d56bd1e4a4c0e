"""A dry run answers: in sentences, with an exit code, cheaper than a release, and it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes

from dpbayes import ApproxDP, Ledger, PureDP, Release, Schema
from dpbayes.privacy.guarantee import Guarantee

SCHEMA = """
id = "people"
adjacency = "replace-one"
records = 2520
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "job"
categories = ["cook", "nurse"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + "F,cook\n" * 1400 + "M,nurse\n" * 1120)
    Path("people.toml").write_text(SCHEMA)
    Path("request.toml").write_text('title = "Jobs"\ntables = ["sex", "job|sex"]\nepsilon = 1\ndelta = 1e-6\n')
    schema = Schema.load("people.toml")
    Ledger("people.ledger").open("people", ApproxDP(epsilon=1.5, delta=1e-6), schema.unit, schema=schema.digest)
    return tmp_path


def asked(*more: object) -> Done:
    return dpbayes("release", "people.csv", "-r", "request.toml", *more)


def test_a_dry_run_answers_in_records_and_points_and_charges_nothing(here: Path) -> None:
    done = asked("--dry-run", "--out", "published")
    said = " ".join(done.out.split())
    assert (done.code, done.err) == (0, "")
    assert "Each count of sex ± " in said
    assert "Shares of job within sex ± " in said
    assert "The ledger affords it, and the folder is free." in said
    assert "KL" not in said
    assert not Ledger("people.ledger").account("people").charges
    assert not Path("published").exists()


def test_the_exit_code_tells_what_stands_in_the_way(here: Path) -> None:
    assert asked("--out", "published").code == 0
    second = asked("--out", "published", "--dry-run")
    assert second.code == 3
    assert "Ledger: 'people' allows" in second.err
    assert "is not empty" in second.err
    assert "sex was published before (entry 1" in " ".join(second.out.split())
    found = json.loads(asked("--out", "published", "--dry-run", "--json").out)["result"]
    assert found["ledger_affords"] is False
    assert len(found["refused"]) == 2


def test_plan_says_the_same_without_the_table(here: Path) -> None:
    common = ("plan", "people.csv", "-r", "request.toml")
    with_ledger = dpbayes(*common)
    assert with_ledger.code == 0
    assert with_ledger.out == asked("--dry-run").out
    assert "No ledger is named" in dpbayes(*common, "--ledger", "none").out
    assert dpbayes(*common, "--epsilon", 3).code == 3
    Path("people.csv").unlink()
    alone = dpbayes("plan", "people.toml", "-r", "request.toml")
    assert alone.out.splitlines()[1:] == with_ledger.out.splitlines()[1:]
    assert "got people.toml. Name the table." in dpbayes("release", "people.toml", "-r", "request.toml").sentence


def test_the_promise_says_where_delta_comes_from(here: Path) -> None:
    Path("request.toml").write_text('tables = ["sex"]\nepsilon = 1\n')
    assert "Cost: ε=1 at δ=1e-06 (the δ of the ledger)." in asked("--dry-run").out
    assert "Cost: ε=1 (pure) (no ledger says a δ, so δ is 0)." in " ".join(
        asked("--dry-run", "--ledger", "none").out.split()
    )
    assert "Cost: ε=1 at δ=1e-08. Why" in " ".join(asked("--dry-run", "--epsilon", 1, "--delta", 1e-8).out.split())
    assert "Promise: ε=1 at δ=1e-06 (the δ of the ledger)." in asked().out


def test_accuracies_take_what_is_left_and_the_exit_code_says_if_it_is_not_enough(here: Path) -> None:
    found = dpbayes("plan", "people.csv", "sex ± 20 records", "job|sex ± 2 points", "--json").result
    assert found["want"] == ["sex ± 20 records", "job|sex ± 2 points"]
    assert 0 < found["least"]["epsilon"] < 1.5
    done = dpbayes("plan", "people.csv", "sex ± 1 record")
    assert (done.code, "out of reach" in done.sentence) == (3, True)
    assert dpbayes("plan", "people.csv", "sex ± 20 records", "--epsilon", 0.001).code == 1
    assert (
        "delta" not in dpbayes("plan", "people.csv", "sex ± 20 records", "--ledger", "none", "--json").result["least"]
    )
    missing = dpbayes("release", "people.csv", "sex ± 20 records", "--ledger", "none")
    assert "the most that may be paid" in missing.sentence


def test_flags_win_over_the_request_and_words_reach_the_release(here: Path) -> None:
    assert asked("job", "--set", "author=Me", "--out", "published").code == 0
    made = Release.load("published")
    assert [str(table.marginal) for table in made.tables] == ["job"]
    assert made.about == {"title": "Jobs", "author": "Me"}


@pytest.mark.parametrize(
    ("file", "option", "expected"),
    [
        ("epsilon = 1\ndelta = 1e-9", ("--epsilon", 0.5), ApproxDP(epsilon=0.5, delta=1e-9)),
        ("epsilon = 1\ndelta = 0", ("--epsilon", 0.5), PureDP(epsilon=0.5)),
        ("epsilon = 1", ("--epsilon", 0.5), ApproxDP(epsilon=0.5, delta=1e-6)),
        ("epsilon = 1", ("--delta", 1e-9), ApproxDP(epsilon=1, delta=1e-9)),
        ("epsilon = 1\ndelta = 1e-9", ("--delta", 0), PureDP(epsilon=1)),
        ("guarantee = 'ZCDP(0.1)'", ("--epsilon", 0.5), ApproxDP(epsilon=0.5, delta=1e-6)),
        ("epsilon = 1\ndelta = 1e-9", ("--guarantee", "PureDP(0.5)"), PureDP(epsilon=0.5)),
    ],
)
def test_an_option_replaces_one_number_and_the_other_stays_that_of_the_file(
    here: Path, file: str, option: tuple[object, ...], expected: Guarantee
) -> None:
    """A pure guarantee that was reviewed would else become one with the δ of the ledger."""
    Path("request.toml").write_text(f'tables = ["sex"]\n{file}\n')
    found = dpbayes("plan", "people.csv", "-r", "request.toml", *option, "--json").result
    assert found["target"] == str(expected)


def test_cautions_come_before_the_charge(here: Path) -> None:
    done = asked("--epsilon", 1, "--delta", 0.01, "--dry-run")
    assert "Warning: δ=0.01 is not below one in the number of records (2,520)" in " ".join(done.out.split())
    Path("wide.toml").write_text(SCHEMA.replace("2520", "20"))
    done = dpbayes("ledger", "init", "wide.toml", "--epsilon", 50, "--delta", 0.1)
    assert done.err.count("Warning: ") == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--request", "none.toml"), "no file 'none.toml'"),
        (("--set", "supersedes=first"), "expected supersedes to be the id of a release"),
        (("--set", "supersedes=0123456789abcdef"), "no release of 'people' has the id"),
        (("age",), "no attribute 'age'"),
        (("--epsilon", 1, "--guarantee", "ZCDP(1)"), "got both"),
        (("--set", "level=3"), "expected level"),
    ],
)
def test_wrong_input_is_one_sentence_and_nothing_is_charged(here: Path, more: tuple[object, ...], said: str) -> None:
    assert said in asked(*more, "--out", "published").sentence
    assert not Ledger("people.ledger").account("people").charges
