"""No command that has ``--dry-run`` reads a row, charges or writes when it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from tests.commands import dpbayes

from dpbayes import ApproxDP, Ledger, Schema
from dpbayes.cli.main import application

SCHEMA = """
id = "people"
adjacency = "replace-one"
records = 300
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "age"
edges = [0, 40, 100]
"""
SPENT = ("--epsilon", 1, "--delta", 1e-8)
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "release": ("sex", *SPENT, "--out", "out"),
    "fit naive-bayes": ("sex", "--as", "naive-bayes", *SPENT, "--out", "out"),
    "fit bayes-net": (*SPENT, "--out", "out"),
    "posterior release": ("sex", "--set", "mechanism=laplace", *SPENT, "--out", "out"),
    "posterior draw": ("sex", "--set", "scores=scores.csv", *SPENT, "--out", "out"),
    "discover categories": ("job", *SPENT, "--out", "out"),
    "discover edges": ("age", "--set", "bins=3", "--set", "bounds=0:100", *SPENT, "--out", "out"),
    "wide open": ("sex,age", "--state", "people.wide", *SPENT),
    "synth": ("--rows", 10, *SPENT, "--out", "records.csv", "--published", "out"),
}


_COMMANDS = typer.main.get_command(application())


def _with_option(command: object, name: str, option: str = "--dry-run") -> Iterator[str]:
    for word, inner in getattr(command, "commands", {}).items():
        yield from _with_option(inner, f"{name} {word}".strip(), option)
    if any(option in getattr(each, "opts", ()) for each in getattr(command, "params", ())):
        yield name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age,job\n" + "F,30,cook\n" * 180 + "M,50,nurse\n" * 120)
    Path("people.toml").write_text(SCHEMA)
    Path("scores.csv").write_text("sex,f,m\nF,1,0\nM,0,1\n")
    Ledger("people.ledger").open(Schema.load("people.toml"), ApproxDP(epsilon=5, delta=1e-6))
    return tmp_path


def _files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_every_command_with_a_dry_run_is_tried() -> None:
    assert set(_with_option(_COMMANDS, "")) == set(ARGUMENTS)


@pytest.mark.parametrize("ledger", [("--ledger", "people.ledger"), ()], ids=["ledger", "none"])
@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_dry_run_reads_no_row_charges_nothing_and_writes_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: str, ledger: tuple[str, ...]
) -> None:
    from dpbayes.tables.duckdb import DuckDBEngine

    def read(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    for method in ("count", "values", "occupied", "codes", "fingerprint"):
        monkeypatch.setattr(DuckDBEngine, method, read)
    before = _files(here)
    common = (*command.split(), "people.csv", "--schema", "people.toml", *ledger, "--dry-run")
    done = dpbayes(*common, *ARGUMENTS[command])
    assert (done.code, done.err) == (0, "")
    assert "Dry run: no rows were read and nothing was charged." in done.out
    assert _files(here) == before
    if command in set(_with_option(_COMMANDS, "", "--json")) - {"synth"}:
        assert json.loads(dpbayes(*common, *ARGUMENTS[command], "--json").out)["rows_read"] == 0
