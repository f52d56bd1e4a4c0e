"""``dpbayes posterior`` and ``dpbayes audit``, from arguments to JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dpbayes.cli import posterior
from dpbayes.errors import DpbayesError

BASE = ("posterior", "--prior", "1,1", "--epsilon", "0.8", "--delta", "1e-8")
TABLE = ("--counts", "31,17")


def run(*arguments: str, stdin: str | None = None) -> Any:
    app = typer.Typer()
    posterior.register(app)
    return CliRunner().invoke(app, list(arguments), input=stdin)


def released(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("extra", "calibration", "notion"),
    [
        ((), "certified", "pure-dp"),
        (("--calibration", "certified", "--around", "24,24"), "certified", "pure-dp"),
        (("--calibration", "published"), "published", "approx-dp"),
        (("--mechanism", "improved-laplace"), "proved", "pure-dp"),
        (("--mechanism", "laplace"), "proved", "pure-dp"),
        (("--mechanism", "exponential", "--score", "kl"), "proved", "pure-dp"),
    ],
)
def test_a_release_states_its_posterior_and_what_backs_its_guarantee(
    extra: tuple[str, ...], calibration: str, notion: str
) -> None:
    found = released(*BASE, *TABLE, *extra)
    assert found["calibration"] == calibration
    assert found["guarantee"]["notion"] == notion
    assert found["guarantee"]["epsilon"] <= 0.8 + 1e-12
    assert found["seeded"] is False
    assert sum(found["parameters"]) == pytest.approx(50.0)
    if found["mean"] is not None:
        for mean, (low, high) in zip(found["mean"], found["interval"], strict=True):
            assert 0 <= low < mean < high <= 1


def test_many_candidates_fall_back_to_the_proved_bound_and_say_so() -> None:
    found = released(
        "posterior", "--prior", "1,1,1,1", "--counts", "300,400,200,100", "--epsilon", "0.8", "--delta", "1e-8"
    )
    assert found["calibration"] == "proved"
    assert "theorem" in found["statement"][0]


def test_people_get_a_table() -> None:
    result = run(*BASE, *TABLE)
    assert result.exit_code == 0
    assert "Released posterior" in result.stdout
    assert "certified" in result.stdout


def test_a_seed_repeats_an_experiment_that_is_not_called_private() -> None:
    one, two = (released(*BASE, *TABLE, "--seed", "7", "--not-private") for _ in range(2))
    assert one == two
    assert one["seeded"] is True
    assert one["guarantee"] is None
    assert "not a private release" in one["statement"][0]


def test_the_comparison_ranks_the_mechanisms() -> None:
    result = run(*BASE, *TABLE, "--compare", "--json")
    found = json.loads(result.stdout)
    values = [each["expected_hellinger"] for each in found]
    assert values == sorted(values)
    assert {each["mechanism"] for each in found} >= {"laplace", "hellinger, certified"}
    assert "Expected Hellinger" in run(*BASE, *TABLE, "--compare").stdout


def test_an_audit_derives_the_certificate_again(tmp_path: Path) -> None:
    file = tmp_path / "posterior.json"
    file.write_text(json.dumps(released(*BASE, *TABLE)), encoding="utf-8")
    found = json.loads(run("audit", str(file), "--json").stdout)
    assert found["verified"] is True
    assert found["certificate"]["epsilon"] == pytest.approx(found["claimed_epsilon"], abs=1e-7)
    assert "The claim holds" in run("audit", str(file)).stdout


def test_an_audit_reads_standard_input_and_checks_other_calibrations_too() -> None:
    text = json.dumps(released(*BASE, *TABLE, "--calibration", "published"))
    found = json.loads(run("audit", "-", "--json", stdin=text).stdout)
    assert found["verified"] is True
    assert found["calibration"] == "published"
    assert found["certificate"]["epsilon_at_delta"] < 0.8


def test_an_audit_does_not_believe_a_forged_certificate(tmp_path: Path) -> None:
    content = released(*BASE, *TABLE)
    content["mechanism"]["certificate"]["epsilon"] = 0.1
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    result = run("audit", str(file))
    assert isinstance(result.exception, DpbayesError)
    assert "Do not trust" in str(result.exception)


def test_an_audit_notices_a_guarantee_that_is_too_small(tmp_path: Path) -> None:
    content = released(*BASE, *TABLE)
    content["guarantee"]["epsilon"] = 0.3
    file = tmp_path / "boast.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert json.loads(run("audit", str(file), "--json").stdout)["verified"] is False


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"mechanism": {"mechanism": "laplace-1"}}', '"posterior"'])
def test_an_audit_refuses_files_that_are_no_release(tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text, encoding="utf-8")
    assert isinstance(run("audit", str(file)).exception, DpbayesError)
    assert isinstance(run("audit", str(tmp_path / "absent.json")).exception, DpbayesError)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*BASE, "--counts", "31,-17"), "between 0"),
        ((*BASE, "--counts", "31,17.5"), "whole numbers"),
        ((*BASE, "--counts", "31;17"), "whole numbers"),
        ((*BASE, "--counts", "0,0"), "empty table"),
        ((*BASE, "--counts", "31,17,5"), "2 counts"),
        ((*BASE, "--counts", "31999999999,17"), "10\\^9"),
        ((*BASE, *TABLE, "--adjacency", "add-remove"), "keeps private"),
        ((*BASE, *TABLE, "--max-rows", "2"), "one row per person"),
        ((*BASE, *TABLE, "--seed", "1"), "--not-private"),
        ((*BASE, *TABLE, "--mechanism", "hellinger-local"), "protects nobody"),
        ((*BASE, *TABLE, "--mechanism", "exponential", "--score", "chi-squared"), "unbounded"),
        (("posterior", "--prior", "1,0", "--epsilon", "1", *TABLE), "above 0"),
        (("posterior", "--prior", "1,x", "--epsilon", "1", *TABLE), "numbers"),
        (("posterior", "--prior", "1", "--epsilon", "1", "--counts", "31"), "two or more cells"),
        (("posterior", "--prior", "1,1", "--epsilon", "0", *TABLE), "epsilon"),
        (("posterior", "--prior", "1,1", "--epsilon", "1", *TABLE, "--calibration", "published"), "--delta"),
        (("posterior", "--prior", "1,1", "--epsilon", "1", *TABLE, "--compare"), "--delta"),
    ],
)
def test_bad_input_is_refused_with_a_reason_and_without_the_counts(arguments: tuple[str, ...], sentence: str) -> None:
    problem = run(*arguments).exception
    assert isinstance(problem, DpbayesError)
    with pytest.raises(DpbayesError, match=sentence):
        raise problem
    assert "31," not in str(problem)
    assert "17" not in str(problem).replace("31999999999", "").replace("32000000016", "")


def test_local_sensitivity_can_be_drawn_in_an_experiment() -> None:
    found = released(*BASE, *TABLE, "--mechanism", "hellinger-local", "--not-private", "--seed", "3")
    assert found["calibration"] == "none"
    assert found["guarantee"] is None
