"""The page of claims says what the stored results say, and every experiment has one."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest
from experiments.rdp import models_page

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
    assert (lab.FIGURES / "index.md").read_text(encoding="utf-8") == page.markdown(), AGAIN
    assert (lab.FIGURES / "claims.html").read_text(encoding="utf-8") == page.page(), AGAIN


def test_the_page_on_models_is_that_of_the_results() -> None:
    text = models_page.PAGE.read_text(encoding="utf-8")
    assert models_page.MARKED.search(text)
    assert text == models_page.written(text), AGAIN


@pytest.mark.parametrize("result", RESULTS, ids=_named)
def test_the_rows_are_those_that_the_claims_were_made_from(result: dict[str, Any]) -> None:
    slug = lab.Experiment(_named(result)).slug
    assert hashlib.sha256((lab.RESULTS / f"{slug}.parquet").read_bytes()).hexdigest() == result["rows"]["sha256"]
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
    assert (folder / "claims.html").read_text(encoding="utf-8").count("<h2") == len(EXPERIMENTS)


def test_an_unknown_experiment_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["rdp.nothing"])
    assert "no experiment named rdp.nothing" in capsys.readouterr().err
