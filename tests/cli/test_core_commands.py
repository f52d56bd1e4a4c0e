"""calibrate, cost and plan: what scripts may rely on."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpbayes.base.errors import DpbayesError
from dpbayes.cli.main import COMMANDS, app

runner = CliRunner()


def call(*arguments):
    """The JSON that a command prints."""
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments):
    """The sentence with which a command refuses."""
    result = runner.invoke(app, list(arguments))
    assert isinstance(result.exception, DpbayesError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("epsilon", "weight", "concentration"),
    [("0.1", 0.27756768989605785, 5.4410830383369255), ("1", 2.4411926615185413, 40.05908258429666)],
)
def test_published_calibration_prints_the_papers_numbers(epsilon, weight, concentration):
    found = call("calibrate", "dirichlet", "--order", "5", "--epsilon", epsilon, "--accounting", "published")
    assert found["weight"] == pytest.approx(weight, rel=1e-10)
    assert found["concentration"] == pytest.approx(concentration, rel=1e-10)


def test_a_calibration_for_21_releases_lands_on_the_private_side():
    found = call("calibrate", "dirichlet", "--epsilon", "1", "--delta", "1e-6", "--releases", "21")
    assert {"weight", "concentration"} <= set(found)
    assert -1e-9 <= found["gap"] <= 0


def test_cost_states_the_exact_epsilon():
    found = call("cost", "dirichlet", "--set", "weight=1", "--set", "concentration=10", "--delta", "1e-5")
    assert found["epsilon"] == pytest.approx(1.8772042796, rel=1e-9)
    assert found["tightest"] == "exact"
    assert found["pure_epsilon"] is None


def test_what_calibrate_prints_cost_confirms():
    made = call("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--releases", "5")
    priced = call("cost", "gaussian", "--sigma", repr(made["sigma"]), "--times", "5", "--delta", "1e-6")
    assert priced["epsilon"] == pytest.approx(1, abs=1e-8)


def test_a_mix_costs_more_than_its_parts_and_reads_records(tmp_path):
    spec = ["dirichlet:weight=1,concentration=10,times=3", "gaussian:sigma=4"]
    mixed = call("cost", *spec)
    part = call("cost", spec[0])
    assert mixed["epsilon"] > part["epsilon"]
    path = tmp_path / "records.json"
    path.write_text(json.dumps(mixed["mechanisms"]))
    again = call("cost", "--from", str(path))
    assert again["epsilon"] == mixed["epsilon"]
    assert again["releases"] == 4


def test_tables_show_every_number_of_the_json():
    arguments = ["cost", "laplace", "--scale", "2", "--epsilon", "0.5"]
    found = call(*arguments)
    shown = runner.invoke(app, arguments).stdout
    for value in (found["epsilon"], found["delta_at_epsilon"], found["zcdp_rho"], *found["renyi"].values()):
        assert f"{value:.6g}" in shown


def test_cost_draws_its_curves(tmp_path):
    call("cost", "gaussian", "--sigma", "3", "--plot", str(tmp_path / "cost.svg"))
    drawn = (tmp_path / "cost.svg").read_text()
    assert "Privacy profile of one release" in drawn
    assert "Trade-off curve of one release" in drawn


def test_plan_ranks_candidates_and_draws_a_chart(tmp_path):
    chart = tmp_path / "plan.html"
    found = call("plan", "--cells", "4", "--records", "300", "--order", "5", "--epsilon", "1", "--plot", str(chart))
    means = [p["mean"] for p in found["predictions"]]
    assert means == sorted(means)
    assert "estimate" in found["choice"]
    page = chart.read_text()
    assert "<svg" in page
    addresses = set(re.findall(r"https?://([^/\"]+)", page))
    assert addresses <= {"www.w3.org", "purl.org", "creativecommons.org", "matplotlib.org"}  # names, not loaded


def test_plan_says_which_mechanisms_cannot_meet_the_target():
    found = call("plan", "--cells", "4", "--records", "300", "--epsilon", "1")
    assert [p["label"] for p in found["predictions"]] == ["laplace, estimate"]
    assert {p["label"] for p in found["impossible"]} >= {"gaussian, estimate", "dirichlet, draw"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibrate", "dirichlet"], "expected epsilon"),
        (["calibrate", "dirichlet", "--epsilon", "1", "--rho", "1"], "another combination"),
        (["calibrate", "gaussian", "--epsilon", "-1", "--delta", "1e-6"], "epsilon > 0"),
        (["calibrate", "gaussian", "--epsilon", "nan", "--delta", "1e-6"], "epsilon > 0"),
        (["calibrate", "gaussian", "--epsilon", "1", "--delta", "2"], "delta strictly between"),
        (["calibrate", "gaussian", "--epsilon", "1", "--order", "1"], "order > 1"),
        (["calibrate", "gaussian", "--epsilon", "1"], "no gaussian parameters"),
        (["calibrate", "dirichlet", "--rho", "1"], "no Dirichlet mechanism"),
        (["calibrate", "laplace", "--epsilon", "1", "--releases", "0"], "times"),
        (["cost"], "expected a mechanism"),
        (["cost", "gaussian"], "needs sigma"),
        (["cost", "dirichlet", "--set", "weight=1"], "needs concentration and weight"),
        (["cost", "cauchy"], "dirichlet, pseudo-records, gaussian or laplace"),
        (["cost", "pseudo-records:weight=1,concentration=2,records=1.5"], "records to be a whole number"),
        (["cost", "gaussian:sigma"], "name=number"),
        (["cost", "gaussian:sigma=two"], "name=number"),
        (["cost", "--from", "/nowhere/records.json"], "cannot read"),
        (["plan", "--cells", "1", "--records", "10", "--epsilon", "1"], "cells"),
        (["plan", "--cells", "3", "--records", "0", "--epsilon", "1"], "records"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words):
    message = refused(*arguments)
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"mechanism": "x"}]', '[{"mechanism": "gaussian-1"}]'])
def test_files_that_hold_no_records_are_refused(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert refused("cost", "--from", str(path))


def test_errors_leave_the_process_with_code_1_and_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "cost", "gaussian"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("dpbayes: ")
    assert "Traceback" not in done.stderr


def test_every_command_has_help_with_an_example():
    top = runner.invoke(app, ["--help"]).stdout
    for name in COMMANDS:
        assert name.split()[0] in top
        shown = " ".join(runner.invoke(app, [*name.split(), "--help"]).stdout.split())
        assert f"Example: dpbayes {name}" in shown, name


def test_plan_finds_the_least_budget_for_wanted_accuracies(tmp_path):
    schema = tmp_path / "people.toml"
    schema.write_text(
        'id = "people"\nadjacency = "replace-one"\nrecords = 3000\n'
        '[[attribute]]\nname = "sex"\ncategories = ["F", "M"]\n'
        '[[attribute]]\nname = "income"\ncategories = ["low", "high"]\n'
    )
    asked = ("plan", "--schema", str(schema), "--want", "income|sex ± 2 points", "--want", "sex ± 20 records")
    found = call(*asked, "--delta", "1e-6")
    assert 0 < found["least"]["epsilon"] < 3
    assert found["want"] == ["income|sex ± 2 points", "sex ± 20 records"]
    assert "delta" not in call(*asked)["least"]
    assert "out of reach" in refused(*asked, "--epsilon", "0.001", "--delta", "1e-6")
    assert "--cells and --records" in refused("plan", "--epsilon", "1")
    assert "expected --schema" in refused("plan", "--want", "sex ± 3 records")
