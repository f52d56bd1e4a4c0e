"""``dpbayes example`` writes what the other commands can read."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpbayes.base.errors import TableError
from dpbayes.cli.main import app
from dpbayes.schema.schema import Schema


def test_the_folder_is_made_and_the_next_step_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["example", str(tmp_path / "demo")], catch_exceptions=False)
    assert done.exit_code == 0
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"survey.csv", "survey.toml"}
    assert "dpbayes release" in done.output


def test_programs_get_the_paths(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["example", str(tmp_path), "--json"], catch_exceptions=False)
    paths = json.loads(done.output)
    assert Schema.from_toml(Path(paths["schema"]).read_text(encoding="utf-8")).id == "example-survey"
    assert Path(paths["table"]).exists()


def test_a_file_of_somebody_else_stops_it(tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text("mine")
    with pytest.raises(TableError):
        CliRunner().invoke(app, ["example", str(tmp_path)], catch_exceptions=False)


@pytest.mark.slow
def test_the_commands_it_names_run_as_printed(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["example", str(tmp_path)], catch_exceptions=False)
    commands = [shlex.split(line) for line in done.output.splitlines() if line.startswith("  dpbayes ")]
    assert [command[1] for command in commands] == ["ledger", "release", "verify"]
    for _, *arguments in commands:
        assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    assert (tmp_path / "published" / "report.html").exists()
