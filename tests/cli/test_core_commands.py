"""``price`` and ``calibrate``: what scripts may rely on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import dpbayes


def call(*arguments: object) -> dict[str, object]:
    """What a command finds."""
    return dpbayes(*arguments, "--json").result  # type: ignore[no-any-return]


def test_a_calibration_for_21_releases_lands_on_the_private_side() -> None:
    found = call("calibrate", "Dirichlet", "--epsilon", 1, "--delta", 1e-6, "--times", 21)
    made = found["mechanisms"]
    assert {each["product"] for each in made} == {"draw", "estimate"}  # type: ignore[attr-defined]
    for each in made:  # type: ignore[attr-defined]
        assert {"weight", "concentration"} <= set(each["mechanism"])
        assert each["gap"] <= 0


def test_price_states_the_exact_epsilon() -> None:
    found = call("price", "Dirichlet(1, 10)", "--at", "delta=1e-5")
    assert found["epsilon"] == pytest.approx(1.8772042796, rel=1e-9)
    assert found["tightest"] == "exact"
    assert found["pure_epsilon"] is None


def test_what_calibrate_prints_price_confirms() -> None:
    [made] = call("calibrate", "Gaussian", "--epsilon", 1, "--delta", 1e-6, "--times", 5)["mechanisms"]  # type: ignore[misc]
    priced = call("price", f"5 * Gaussian({made['mechanism']['sigma']!r})")
    assert priced["epsilon"] == pytest.approx(1, abs=1e-8)


def test_a_mix_costs_more_than_its_parts_and_reads_records(tmp_path: Path) -> None:
    spec = ["3 * Dirichlet(1, 10)", "Gaussian(sigma=4)"]
    mixed, part = call("price", *spec), call("price", spec[0])
    assert mixed["epsilon"] > part["epsilon"]  # type: ignore[operator]
    path = tmp_path / "records.json"
    path.write_text(json.dumps(mixed["mechanisms"]))
    again = call("price", path)
    assert again["epsilon"] == mixed["epsilon"]
    assert again["releases"] == 4


def test_a_release_made_elsewhere_is_priced_as_it_is_stated() -> None:
    assert call("price", "2 * Stated(0.5, 0)")["pure_epsilon"] == pytest.approx(1.0)
    unit = {"adjacency": "add-remove", "max_rows": 5}
    assert call("price", "Laplace(10)", "--unit", "add-remove:5")["unit"] == unit


def test_tables_show_every_number_of_the_json() -> None:
    arguments = ("price", "Laplace(2)", "--at", "epsilon=0.5", "--at", "order=7", "--at", "delta=1e-4")
    found, shown = call(*arguments), dpbayes(*arguments).out
    assert {"delta=0.0001", "epsilon=0.5"} == set(found["at"])  # type: ignore[arg-type]
    for value in (found["epsilon"], *found["at"].values(), found["zcdp_rho"], *found["renyi"].values()):  # type: ignore[attr-defined]
        assert f"{value:.6g}" in shown


def test_price_draws_its_curves(tmp_path: Path) -> None:
    call("price", "Gaussian(3)", "--plot", tmp_path / "cost.svg")
    drawn = (tmp_path / "cost.svg").read_text()
    assert "Privacy profile of one release" in drawn
    assert "Trade-off curve of one release" in drawn


def test_calibrate_ranks_mechanisms_by_every_measure_and_draws_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "plan.html"
    asked = ("calibrate", "--cells", 4, "--records", 300, "--guarantee", "RDP(5, 1)")
    found = call(*asked, "--plot", chart)
    means = [each["errors"]["kl"] for each in found["mechanisms"]]  # type: ignore[attr-defined]
    assert means == sorted(means)
    assert set(found["mechanisms"][0]["errors"]) == {"kl", "tv", "linf", "hellinger"}  # type: ignore[index]
    assert "estimate" in found["choice"]  # type: ignore[operator]
    assert "Hellinger" in dpbayes(*asked).out
    page = chart.read_text()
    assert "<svg" in page
    addresses = set(re.findall(r"https?://([^/\"]+)", page))
    assert addresses <= {"www.w3.org", "purl.org", "creativecommons.org", "matplotlib.org"}  # names, not loaded


def test_calibrate_says_which_mechanisms_cannot_meet_the_target() -> None:
    found = call("calibrate", "--cells", 4, "--records", 300, "--epsilon", 1, "--delta", 0)
    assert [each["label"] for each in found["mechanisms"]] == ["laplace, estimate"]  # type: ignore[attr-defined]
    assert {each["label"] for each in found["impossible"]} >= {"gaussian, estimate", "dirichlet, draw"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["calibrate", "Dirichlet"], 2, "expected --epsilon"),
        (["calibrate", "dirichlet", "--epsilon", 1], 2, "Did you mean 'Dirichlet'"),
        (["calibrate", "Gaussian", "--epsilon", -1, "--delta", 1e-6], 2, "epsilon > 0"),
        (["calibrate", "Gaussian", "--epsilon", 1, "--delta", 2], 2, "delta strictly between"),
        (["calibrate", "Gaussian", "--guarantee", "RDP(1, 1)"], 2, "order > 1"),
        (["calibrate", "Gaussian", "--epsilon", 1], 1, "gaussian, estimate: cannot meet"),
        (["calibrate", "Laplace", "--epsilon", 1, "--times", 0], 2, "releases"),
        (["calibrate", "--cells", 1, "--epsilon", 1], 2, "cells"),
        (["calibrate", "--records", 0, "--epsilon", 1], 2, "records"),
        (["price"], 2, "missing argument 'MECHANISM"),
        (["price", "Gaussian"], 2, "expected sigma, got"),
        (["price", "Dirichlet(1)"], 2, "expected weight, concentration"),
        (["price", "Cauchy(1)"], 2, "there is no mechanism 'Cauchy'"),
        (["price", "Gausian(1)"], 2, "Did you mean 'Gaussian'"),
        (["price", "Gaussian(1, 2)"], 2, "expected sigma"),
        (["price", "Gaussian('two')"], 2, "expected sigma > 0"),
        (["price", "1.5 * Gaussian(2)"], 2, "cannot read"),
        (["price", "Gaussian(1"], 2, "cannot read"),
        (["price", "/nowhere/records.json"], 2, "cannot read"),
        (["price", "Gaussian(1)", "--at", "delta"], 2, "expected --at delta=1e-6"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: list[object], code: int, words: str) -> None:
    done = dpbayes(*arguments)
    assert words in done.sentence
    assert done.code == code


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"mechanism": "x"}]', '[{"mechanism": "gaussian-1"}]'])
def test_files_that_hold_no_records_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert dpbayes("price", path).code == 2


def test_errors_leave_the_process_with_code_2_and_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "price", "Gaussian"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dpbayes: ")
    assert "Traceback" not in done.stderr
