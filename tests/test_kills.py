"""After SIGKILL at a random moment of a real command: a sound ledger, nothing uncharged, nothing lost that was paid.

``killer.py`` kills and finishes; here its report is judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.killer import COMMANDS

KILLER = Path(__file__).with_name("killer.py")


def assert_nothing_is_lost(names: list[str], kills: int, folder: Path, seed: int) -> None:
    command = [sys.executable, str(KILLER), str(folder / "kills"), str(seed), str(kills), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    met = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["command"] for each in met] == [name for name in names for _ in range(kills)]
    for each in met:
        assert each["finish"] == [0, 0], each
        assert each["ledger"] == 0, each
        assert each["drafts"] == 0, each
        assert each["same"], each  # the draw that was kept is the one that is published
        assert each["entries"] in (["budget"], ["budget", "charge", "drawn"]), each
        assert each["verified"] == (0 if len(each["entries"]) == 3 else None), each
    assert any(each["killed"] for each in met)
    assert any(len(each["entries"]) == 3 for each in met)


def test_commands_that_are_killed_are_finished_under_their_one_charge(tmp_path: Path) -> None:
    """Each once, at another moment each; fifty times with the slow tests."""
    assert_nothing_is_lost(list(COMMANDS), 1, tmp_path, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_often_is_finished_every_time(name: str, tmp_path: Path) -> None:
    assert_nothing_is_lost([name], 50, tmp_path, seed=2)
