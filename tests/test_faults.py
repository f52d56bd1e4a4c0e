"""Whatever call to the system fails, or is the last one: nothing uncharged, overspent, lost or half written.

``faults.py`` fails, kills and finishes under ``shim.c``; here its report is judged.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults import ALWAYS, KILL, SCENARIOS

SHIM = Path(__file__).with_name("shim.c")
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the shim that fails system calls needs a C compiler")


def met(folder: Path, share: int, *names: str) -> list[dict[str, Any]]:
    """Every ``share``-th fault of these scenarios, and what came of it."""
    library = folder / "shim.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", str(library), str(folder / "faults"), str(share), *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=SHIM.parent.parent,
        env={**os.environ, "LD_PRELOAD": str(library)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_call_that_fails_or_is_the_last_one_loses_nothing(tmp_path: Path) -> None:
    found = met(tmp_path, 89, "release", "charge")
    assert [each for each in found if each["wrong"]] == []
    assert {each["scenario"] for each in found} == {"release", "charge"}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_call_of_a_command_may_fail_or_be_the_last_one(name: str, tmp_path: Path) -> None:
    found = met(tmp_path, 1, name)
    kills = sum(each["code"] < 0 for each in found)
    print(f"{name}: {len(found) - kills} failed calls, {kills} kills")  # pytest -rP shows it
    assert [each for each in found if each["wrong"]] == []
    assert any(each["fault"] == KILL and each["code"] < 0 for each in found)
    assert any(each["fault"] == errno.ENOLCK | ALWAYS and each["code"] == 1 for each in found)
