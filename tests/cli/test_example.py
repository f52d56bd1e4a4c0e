"""``dpbayes example`` writes what the other commands can read."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.commands import dpbayes

from dpbayes.schema.schema import Schema


def test_the_folder_is_made_and_the_next_step_named(tmp_path: Path) -> None:
    done = dpbayes("example", tmp_path / "demo")
    assert done.code == 0
    assert "dpbayes release" in done.out
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"survey.csv", "survey.toml"} < written
    assert all(name in done.out for name in written)


def test_programs_get_the_paths(tmp_path: Path) -> None:
    paths = dpbayes("example", tmp_path, "--json").result
    assert Schema.from_toml(Path(paths["schema"]).read_text(encoding="utf-8")).id == "example-survey"
    assert Path(paths["table"]).exists()


def test_a_file_of_somebody_else_stops_it(tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text("mine")
    assert "example: " in dpbayes("example", tmp_path).sentence


@pytest.mark.slow
def test_the_commands_it_names_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = dpbayes("example", tmp_path)
    commands = [shlex.split(line) for line in done.out.splitlines() if line.startswith("  dpbayes ")]
    assert [command[1] for command in commands] == ["ledger", "release", "ask", "verify"]
    for _, *arguments in commands:
        assert dpbayes(*arguments).code == 0
    assert (tmp_path / "published" / "1" / "report.html").exists()
