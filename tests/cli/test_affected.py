"""``dpbayes affected`` says what is wrong, what is true and what to do, and its exit code says whether there is any."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import dpbayes

from dpbayes.advisories import ADVISORIES

FILES = Path(__file__).parents[1] / "files" / "0.1.0"


def test_affected_files_are_listed_with_the_true_figure_and_the_remedy() -> None:
    done = dpbayes("affected", FILES)
    assert done.code == 1
    for name, advisory in ADVISORIES.items():
        assert f"{advisory.title} ({name})" in done.out
        assert advisory.remedy in done.out
    assert "stated: ε=5 at δ=8.39e-05\n    true:   δ=0.000511 at the same ε" in done.out
    assert done.out.endswith("13 files looked at, 18 findings.\n")


def test_sound_files_exit_with_zero() -> None:
    done = dpbayes("affected", FILES / "pure.ledger")
    assert done.code == 0
    assert done.out.endswith("1 files looked at, no findings.\n")


def test_programs_get_json() -> None:
    done = dpbayes("affected", FILES / "discovery.json", "--json")
    [first, *_] = json.loads(done.out)["findings"]
    assert done.code == 1
    assert (first["advisory"], first["status"]) == ("discovery-delta", "affected")
    assert first["remedy"]


def test_what_is_not_there_is_one_sentence() -> None:
    assert "there is no file" in dpbayes("affected", "nowhere.ledger").sentence


def test_a_remark_cannot_reach_the_terminal_as_control_codes(tmp_path: Path) -> None:
    text = (FILES / "people.jsonl").read_text().replace('"about":"discover job"', r'"about":"\u001b[2Jdiscover"')
    (tmp_path / "x.jsonl").write_text(text)
    done = dpbayes("affected", tmp_path)
    assert "\x1b" not in done.out
    assert "?[2Jdiscover" in done.out
