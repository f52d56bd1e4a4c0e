"""``dpbayes risk`` for a guarantee, for Gaussian DP and for a release; wrong input is one sentence."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.releases import a_release


def test_a_guarantee_is_said_in_odds_guesses_and_a_chart(tmp_path: Path) -> None:
    done = dpbayes("risk", "--epsilon", 1, "--delta", 1e-6, "--chart", tmp_path / "risk.svg")
    said = " ".join(done.out.split())
    assert done.code == 0
    assert "rise by a factor of at most 3.03, except with probability 1e-05" in said
    assert "at most 73.2 %" in said
    assert "Warning" not in said
    drawing = ET.fromstring((tmp_path / "risk.svg").read_text(encoding="utf-8"))
    curve = list(drawing.iter("{http://www.w3.org/2000/svg}path"))[-1].attrib["d"]
    assert len(curve.removeprefix("M").split("L")) == 101


def test_a_release_is_priced_exactly(tmp_path: Path) -> None:
    made = a_release("joint")
    path = tmp_path / "release.json"
    path.write_text(made.to_json(), encoding="utf-8")
    found = json.loads(dpbayes("risk", path, "--json").out)
    stated = json.loads(dpbayes("risk", "--epsilon", 1, "--delta", 1e-6, "--json").out)
    assert 0.5 < found["membership"] < stated["membership"]
    assert [each["blind"] for each in found["guesses"]] == [0.001, 0.01, 0.1, 0.5, 0.9]


def test_gaussian_dp_and_guesses_of_ones_own() -> None:
    found = json.loads(dpbayes("risk", "--mu", 1, "--blind", 0.5, "--json").out)
    assert found["guesses"][0]["at_most"] == pytest.approx(0.8413447, rel=1e-6)


def test_guard_rails_speak_up() -> None:
    said = dpbayes("risk", "--epsilon", 50, "--delta", 0.01, "--records", 200).out
    assert said.count("Warning") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected a release, --mu, or a guarantee"),
        (["--epsilon", 1, "--mu", 1], "one of them"),
        (["--epsilon", 1, "--rho", 1], "got another combination"),
        (["--mu", -1], "GDP: expected mu > 0"),
        (["--epsilon", 1, "--blind", 2], "risk: expected blind"),
        (["--epsilon", 1, "--chart", "risk.gif"], "ends in .svg"),
        (["nowhere.json"], "Release: cannot read"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[object], said: str) -> None:
    assert said in dpbayes("risk", *arguments).sentence
