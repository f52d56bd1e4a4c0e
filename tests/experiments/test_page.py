"""The page of claims says what the stored results say, and every experiment has one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from experiments.rdp import models_page

from dpbayes.base.errors import DpbayesError
from experiments import __main__ as command
from experiments import lab, page

EXPERIMENTS = list(command.EXPERIMENTS)
RESULTS = page.stored()
AGAIN = "run python -m experiments"


def _named(result: dict[str, Any]) -> str:
    return str(result["experiment"])


def test_every_experiment_has_a_result_of_a_full_run() -> None:
    assert [_named(result) for result in RESULTS] == EXPERIMENTS, AGAIN
    assert not any(result["quick"] for result in RESULTS)


def test_the_pages_are_those_of_the_results() -> None:
    for name, text in page.pages().items():
        assert (lab.FIGURES / name).read_text(encoding="utf-8") == text, AGAIN


def test_the_page_on_models_is_that_of_the_results() -> None:
    text = models_page.PAGE.read_text(encoding="utf-8")
    assert models_page.MARKED.search(text)
    assert text == models_page.written(text), AGAIN


@pytest.mark.parametrize("result", RESULTS, ids=_named)
def test_the_rows_are_those_that_the_claims_were_made_from(result: dict[str, Any]) -> None:
    slug = lab.Experiment(_named(result)).slug
    rows = pd.read_parquet(lab.RESULTS / f"{slug}.parquet")
    assert lab.digest(rows) == result["rows"]["sha256"], AGAIN
    assert not [name for name in rows.columns if re.search("seconds|time|speed", str(name))]
    for ending in ("png", "svg"):
        assert (lab.FIGURES / f"{slug}.{ending}").is_file()


@pytest.mark.parametrize("result", RESULTS, ids=_named)
def test_the_settings_are_those_of_the_file(result: dict[str, Any]) -> None:
    settings = lab.Experiment(_named(result)).settings
    assert result["settings"] == json.loads(json.dumps(settings)), AGAIN


@pytest.mark.parametrize("result", RESULTS, ids=_named)
def test_every_claim_has_a_verdict_and_every_difference_a_reason(result: dict[str, Any]) -> None:
    assert result["claims"]
    for claim in result["claims"]:
        assert claim["where"]
        assert claim["says"]
        assert claim["measured"]
        assert claim["verdict"] in set(lab.Verdict)
        assert claim["why"] or claim["verdict"] != lab.Verdict.DIFFERS, claim["says"]


@pytest.mark.slow
def test_the_quick_run_reproduces_everything() -> None:
    folder = lab.ROOT / "out" / "reproduce-quick"
    for path in folder.glob("*"):
        path.unlink()
    quick = [sys.executable, "-m", "experiments", "--quick", "--fresh"]
    done = subprocess.run(quick, cwd=lab.ROOT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [_named(result) for result in page.stored(folder)] == EXPERIMENTS
    written = "".join((folder / name).read_text(encoding="utf-8") for name in page.pages(folder))
    assert written.count("\n## ") == len(EXPERIMENTS)


def test_an_unknown_experiment_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["rdp.nothing"])
    assert "no experiment named rdp.nothing" in capsys.readouterr().err


def test_data_sets_are_asked_for_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPBAYES_DATA", str(tmp_path))
    monkeypatch.setattr(lab, "KEPT", tmp_path / "kept")
    with pytest.raises(DpbayesError, match=r"rdp\.table1 cannot run: data: DPBAYES_DATA is .*, which has no "):
        command.main(["rdp.figure1", "rdp.table1", "--quick"])
    assert not (tmp_path / "kept").exists()
    ran: list[list[str]] = []
    monkeypatch.setattr(lab, "run", lambda chosen, *_, **__: ran.append([each.name for each in chosen]))
    with pytest.raises(SystemExit):
        command.main(["--quick"])
    needed = {"rdp.table1", "rdp.figures3_4", "rdp.figure5", "rdp.figure6", "rdp.authors"}
    assert ran == [[name for name in EXPERIMENTS if name not in needed]]
    said = capsys.readouterr().err
    assert "The others run." in said
    assert "0 of 27 experiments written" in said


def test_the_first_error_ends_a_run_and_what_is_complete_is_finished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPBAYES_DATA", str(tmp_path))
    monkeypatch.setattr(lab, "KEPT", tmp_path / "kept")
    experiments = [lab.Experiment(name, quick=True) for name in ("rdp.figure1", "rdp.table1")]
    finished: list[str] = []
    with pytest.raises(DpbayesError, match="which has no"):
        lab.run(experiments, lambda experiment: finished.append(experiment.name), jobs=1)
    assert finished == ["rdp.figure1"]


def test_the_digest_of_rows_is_that_of_nine_digits() -> None:
    rows = pd.DataFrame({"name": ["a", "b"], "value": [1 / 3, -0.0], "count": [1, 2]})
    nudged = rows.assign(value=[1 / 3 + 1e-15, 0.0])
    assert lab.digest(rows) == lab.digest(nudged)
    assert lab.digest(rows) != lab.digest(rows.assign(value=[0.33333334, 0.0]))
    assert lab.digest(rows) != lab.digest(rows.assign(name=["a", "c"]))
