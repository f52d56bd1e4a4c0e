"""``dpbayes ledger``, as a person and as a program use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dpbayes import Adjacency, Cost, Laplace, PrivacyUnit
from dpbayes.cli.ledger import register
from dpbayes.errors import InvalidArgument, LedgerError
from dpbayes.ledger.ledger import Ledger

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)

app = typer.Typer()
app.callback()(lambda: None)
register(app)


def run(*arguments: object) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["ledger", *map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "census.ledger"
    run("init", path, "--dataset", "census", "--epsilon", 1, "--adjacency", "add-remove")
    return path


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (["--epsilon", 1], {"notion": "pure-dp", "epsilon": 1.0}),
        (["--epsilon", 1, "--delta", 1e-6], {"notion": "approx-dp", "epsilon": 1.0, "delta": 1e-6}),
        (["--epsilon", 1, "--order", 5], {"notion": "rdp", "order": 5.0, "epsilon": 1.0}),
        (["--rho", 0.5], {"notion": "zcdp", "rho": 0.5}),
        (["--rho", 0.5, "--omega", 30], {"notion": "tcdp", "rho": 0.5, "omega": 30.0}),
    ],
)
def test_init_takes_a_budget_in_any_notion(options: list[object], budget: dict[str, object], tmp_path: Path) -> None:
    unit = ["--adjacency", "replace-one", "--max-rows", 2]
    [shown] = json.loads(run("init", tmp_path / "new", "--dataset", "census", *options, *unit, "--json"))
    assert shown["budget"] == budget
    assert shown["unit"] == {"adjacency": "replace-one", "max_rows": 2}
    assert (shown["spent"], shown["left"]) == (0.0, shown["limit"])


def test_init_needs_one_notion_and_an_adjacency(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--epsilon"):
        run("init", tmp_path / "new", "--dataset", "census", "--rho", 1, "--epsilon", 1, "--adjacency", "add-remove")
    with pytest.raises(SystemExit):
        run("init", tmp_path / "new", "--dataset", "census", "--epsilon", 1)
    assert not (tmp_path / "new").exists()


def test_show_tells_what_is_spent_and_what_became_of_each_charge(path: Path) -> None:
    ledger = Ledger(path)
    ledger.confirm(ledger.charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT), 2), about="[/b] sex, income"))
    ledger.charge("census", Cost.of(Laplace(scale=8.0, unit=UNIT)))
    [shown] = json.loads(run("show", path, "--json"))
    assert (shown["limit"], shown["spent"], shown["left"], shown["releases"]) == (1.0, 0.625, 0.375, 3)
    assert shown["spent_also"]["epsilon"] < 0.625 == shown["spent_also"]["epsilon_pure"]
    assert [charge["state"] for charge in shown["charges"]] == ["drawn", "charged"]
    assert [charge["releases"][0]["times"] for charge in shown["charges"]] == [2, 1]
    for_people = run("show", path)
    assert "[/b] sex, income" in for_people
    assert "0.375" in for_people


def test_budget_changes_the_limit(path: Path) -> None:
    [shown] = json.loads(
        run("budget", path, "--dataset", "census", "--epsilon", 2, "--about", "board, 3 May", "--json")
    )
    assert (shown["limit"], shown["entries"]) == (2.0, 2)


def test_verify_names_the_broken_entry_and_misses_a_lost_release(path: Path) -> None:
    receipt = Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    [shown] = json.loads(run("verify", path, "--holds", receipt.hash, "--json"))
    assert shown["head"] == receipt.hash
    with pytest.raises(LedgerError, match="older copy"):
        run("verify", path, "--holds", "0" * 64)
    path.write_bytes(path.read_bytes().replace(b'"times":1', b'"times":2'))
    with pytest.raises(LedgerError, match="entry 1 of data set 'census'"):
        run("verify", path)


def test_an_export_can_be_verified_by_whoever_has_only_that(path: Path, tmp_path: Path) -> None:
    Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    run("init", path, "--dataset", "survey", "--rho", 1, "--adjacency", "replace-one")
    out = tmp_path / "public.jsonl"
    assert run("export", path, "--out", out) == ""
    assert run("export", path) == out.read_text()
    assert json.loads(run("verify", out, "--exported", "--json")) == json.loads(run("verify", path, "--json"))
    only = json.loads(run("verify", out, "--exported", "--dataset", "survey", "--json"))
    assert [shown["dataset"] for shown in only] == ["survey"]
    out.write_text(out.read_text()[:-90])
    with pytest.raises(LedgerError):
        run("verify", out, "--exported")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"{}\n", b"[1]\n"])
def test_what_is_no_export_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "public.jsonl").write_bytes(content)
    with pytest.raises(LedgerError):
        run("verify", tmp_path / "public.jsonl", "--exported")


def test_an_export_that_cannot_be_written_is_told(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        run("export", path, "--out", tmp_path / "absent" / "public.jsonl")
    with pytest.raises(LedgerError, match="cannot be read"):
        run("verify", tmp_path / "absent.jsonl", "--exported")
    with pytest.raises(LedgerError, match="no data set"):
        run("export", path, "--dataset", "sensus")
