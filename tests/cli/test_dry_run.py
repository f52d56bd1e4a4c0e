"""A dry run answers: in sentences, with an exit code, cheaper than a release, and it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes

from dpbayes import ApproxDP, Ledger, Release, Schema

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
    common = ("--schema", "people.toml", "--request", "request.toml", "--ledger", "people.ledger")
    return dpbayes("release", "people.csv", *common, *more)


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
    assert second.code == 1
    assert "Ledger: 'people' allows" in second.err
    assert "is not empty" in second.err
    assert "sex was published before (entry 1" in " ".join(second.out.split())
    found = json.loads(asked("--out", "published", "--dry-run", "--json").out)
    assert found["ledger_affords"] is False
    assert len(found["refused"]) == 2


def test_plan_says_the_same_without_the_table(here: Path) -> None:
    common = ("--schema", "people.toml", "--request", "request.toml")
    with_ledger = dpbayes("plan", *common, "--ledger", "people.ledger", "--out", "published")
    assert with_ledger.code == 0
    assert with_ledger.out == asked("--dry-run", "--out", "published").out
    assert "No ledger was named" in dpbayes("plan", *common).out
    assert dpbayes("plan", *common, "--epsilon", 3, "--delta", 1e-6, "--ledger", "people.ledger").code == 1


def test_flags_win_over_the_request_and_words_reach_the_release(here: Path) -> None:
    assert asked("--marginal", "job", "--author", "Me", "--out", "published").code == 0
    made = Release.load("published")
    assert [str(table.marginal) for table in made.tables] == ["job"]
    assert made.about == {"title": "Jobs", "author": "Me"}


def test_cautions_come_before_the_charge(here: Path) -> None:
    done = asked("--epsilon", 1, "--delta", 0.01, "--dry-run")
    assert "Warning: δ=0.01 is not below one in the number of records (2,520)" in " ".join(done.out.split())
    Path("wide.toml").write_text(SCHEMA.replace("2520", "20"))
    done = dpbayes("ledger", "init", "wide.ledger", "--schema", "wide.toml", "--epsilon", 50, "--delta", 0.1)
    assert done.err.count("Warning: ") == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--request", "none.toml"), "no file 'none.toml'"),
        (("--supersedes", "first"), "expected supersedes to be the id of a release"),
        (("--supersedes", "0123456789abcdef"), "no release of 'people' has the id"),
        (("--marginal", "age"), "no attribute 'age'"),
        (("--epsilon", 1, "--rho", 1), "got another combination"),
        (("--level", 3), "expected level"),
    ],
)
def test_wrong_input_is_one_sentence_and_nothing_is_charged(here: Path, more: tuple[object, ...], said: str) -> None:
    assert said in asked(*more, "--out", "published").sentence
    assert not Ledger("people.ledger").account("people").charges
