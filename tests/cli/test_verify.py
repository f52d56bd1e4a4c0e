"""``dpbayes verify`` says yes or no, and its exit code says the same."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.releases import a_release, charged

from dpbayes import ApproxDP, Cost, Curator, Laplace, PureDP, Schema, Tables, Unit
from dpbayes.ledger.account import Account
from dpbayes.ledger.ledger import Ledger


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "release.json"
    path.write_text(a_release("joint").to_json(), encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = dpbayes("verify", *arguments)
    assert done.err == ""
    return done.code, done.out


def test_a_good_release_passes_every_line(file: Path) -> None:
    code, said = run(file)
    name, *lines, statement = said.splitlines()
    assert code == 0
    assert name == f"{file}:"
    assert len(lines) == 8
    assert all(line.startswith("pass  ") for line in lines)
    assert statement == a_release("joint").statement()


def test_a_forged_release_fails_with_exit_code_one(file: Path) -> None:
    stricter = replace(a_release("joint"), promise=ApproxDP(epsilon=0.25, delta=1e-6))  # and sealed anew
    file.write_text(stricter.to_json(), encoding="utf-8")
    code, said = run(file)
    assert code == 1
    assert "FAIL  guarantee" in said
    assert "does not verify" in said


def test_programs_get_every_check(file: Path) -> None:
    code, said = run(file, "--json")
    found = json.loads(said)["result"]
    assert (code, found["ok"]) == (0, True)
    assert {check["name"] for check in found["checked"][0]["checks"]} >= {"guarantee", "values", "products"}


def test_a_release_can_come_from_standard_input(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert run("-")[0] == 0


def test_a_folder_of_releases_is_verified_and_what_is_missing_is_named(tmp_path: Path) -> None:
    Path(tmp_path / "p.csv").write_text("sex\n" + "F\nM\n" * 50)
    Path(tmp_path / "p.toml").write_text(
        'id = "p"\nadjacency = "replace-one"\n[[attribute]]\nname = "sex"\ncategories = ["F", "M"]\n'
    )
    Ledger(tmp_path / "survey.ledger").open(Schema.load(tmp_path / "p.toml"), ApproxDP(epsilon=5, delta=1e-6))
    for name in ("1", "2", "10"):
        Curator(tmp_path / "p.csv", tmp_path / "p.toml", ledger=tmp_path / "survey.ledger").release(
            Tables("sex"), ApproxDP(epsilon=1, delta=1e-6), out=tmp_path / "all" / name
        )
    code, said = run(tmp_path / "all", "--ledger", tmp_path / "survey.ledger")
    assert [line for line in said.splitlines() if line.endswith(":")] == [
        f"{tmp_path / 'all' / name}:" for name in ("1", "2", "10")
    ]
    assert (code, "missing" in said) == (0, False)
    one = run(tmp_path / "all" / "1", "--ledger", tmp_path / "survey.ledger")[1]
    assert sum(line.startswith("missing: entry") for line in one.splitlines()) == 2


def test_the_ledger_is_checked_when_named(tmp_path: Path) -> None:
    ledger = tmp_path / "survey.ledger"
    file = tmp_path / "charged.json"
    file.write_text(charged(a_release("joint"), Ledger(ledger)).to_json(), encoding="utf-8")
    code, said = run(file, "--ledger", ledger)
    assert code == 0
    assert "pass  ledger: charged in full" in said
    Ledger(tmp_path / "other.ledger").open("other", ApproxDP(1, 1e-6), "replace-one")
    code, said = run(file, "--ledger", tmp_path / "other.ledger")
    assert code == 1
    assert "FAIL  ledger" in said
    typo = dpbayes("verify", file, "--ledger", tmp_path / "typo.ledger")  # says nothing about the release
    assert (typo.code, typo.out) == (1, "")
    assert "typo.ledger is not there" in typo.sentence


def test_a_ledger_that_was_charged_beyond_its_limit_fails_and_one_whose_limit_was_lowered_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, unit = Ledger(tmp_path / "survey.ledger"), Unit.of("replace-one")
    ledger.open("survey", PureDP(1.0), unit)
    ledger.charge("survey", Cost.of(Laplace(scale=4.0, unit=unit)))
    ledger.change_budget("survey", PureDP(0.4), about="board")
    assert run(ledger.name)[0] == 0
    monkeypatch.setattr(Account, "affords", lambda account, cost: True)  # what a forged memory came to
    taken_back = ledger.charge("survey", Cost.of(Laplace(scale=4.0, unit=unit)))
    code, said = run(ledger.name)
    assert code == 1
    assert "FAIL  survey" in said
    assert "entry 3 is beyond the limit that it was made under" in said
    ledger.void(taken_back, about="nothing was read")
    assert run(ledger.name)[0] == 0


@pytest.mark.parametrize("text", ["not JSON", '{"format": "dpbayes-release", "version": 99}'])
def test_what_is_no_release_is_one_sentence_and_exit_code_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    command = [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "verify", str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    said = "the file is not JSON. Name a release, such as published/1." if text == "not JSON" else "expected version 2"
    assert done.stderr.startswith(f"dpbayes: Release: {said}")


def test_a_folder_is_checked_with_the_files_in_it(tmp_path: Path) -> None:
    a_release("joint").save(tmp_path / "out")
    for named in (tmp_path / "out", tmp_path / "out" / "release.json"):
        code, said = run(named)
        assert code == 0
        assert "pass  files: 3 files beside it" in said
    with (tmp_path / "out" / "report.html").open("a") as page:
        page.write("<p>and more</p>")
    code, said = run(tmp_path / "out")
    assert code == 1
    assert "FAIL  files: report.html was changed" in said
