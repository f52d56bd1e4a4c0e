"""A ledger of each kind; the server for the tests that ask for one is that of all tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpbayes import Unit
from dpbayes.ledger.ledger import Ledger
from dpbayes.schema import Adjacency


@pytest.fixture
def unit() -> Unit:
    return Unit(adjacency=Adjacency.ADD_REMOVE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "census.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path)


@pytest.fixture
def run_script() -> Callable[..., str]:
    """Run a script of this folder in a process of its own, which may fork and die as it likes."""

    def run(name: str, *arguments: object) -> str:
        command = [sys.executable, str(Path(__file__).with_name(name)), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
