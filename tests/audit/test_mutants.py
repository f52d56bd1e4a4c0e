"""The runner of mutants changes what it says it changes, and tells killed ones from survivors."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from audit.mutants import PACKAGE, REASONS, ROOMS, ROOT, Mutant, all_mutants, changed, mutants, near, planted, sampled
from audit.mutants_server import exchangeable


def test_every_mutant_is_a_program_that_differs_in_one_place() -> None:
    found = all_mutants(["mechanisms/selection"])
    assert len(found) > 30
    text = (PACKAGE / "mechanisms/selection.py").read_text(encoding="utf-8")
    for mutant in found:
        became = changed(mutant)
        assert ast.dump(ast.parse(became)) != ast.dump(ast.parse(text))
        assert became.startswith(text[: text.encode().find(b"\n")])


@pytest.mark.parametrize(
    ("source", "became"),
    [
        ("def f(x):\n    return x < 1", {"(x <= 1)", "2"}),
        ("def f(x):\n    if x:\n        raise ValueError", {"False"}),
        ("def f(x):\n    check(x)", {"pass"}),
        ("def f(x):\n    return min(x) and not x", {"(min(x) or not x)", "(max(x))", "(x)"}),
        ("def f(x: int = 2) -> 'a < b':\n    return 0.5", {"3", "1.0"}),
    ],
)
def test_operators_constants_and_guards_are_changed_and_annotations_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, became: set[str]
) -> None:
    monkeypatch.setattr("audit.mutants.PACKAGE", tmp_path)
    (tmp_path / "f.py").write_text(source, encoding="utf-8")
    assert {mutant.after for mutant in mutants("privacy", tmp_path / "f.py")} == became


def test_names_are_unique_and_every_reason_belongs_to_a_mutant() -> None:
    names = [mutant.name for mutant in all_mutants()]
    assert len(set(names)) == len(names)
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["harmless"]
    assert set(reasons) <= set(names), "the code has changed: see whether the reason still holds"
    assert all(len(reason) > 10 for reason in reasons.values())


def test_a_sample_takes_from_every_room_and_repeats_itself() -> None:
    found = all_mutants()
    chosen = sampled(found, 50, "a commit")
    assert chosen == sampled(found, 50, "a commit") != sampled(found, 50, "another")
    assert {mutant.room for mutant in chosen} == set(ROOMS)


def test_the_near_a_module_come_nearest_first() -> None:
    found = near("mechanisms/selection.py")
    assert found[0] == "tests/mechanisms/test_selection.py"
    assert found.index("tests/mechanisms/test_urn.py") < found.index("tests/jobs/test_edges.py")


def test_the_faults_that_no_test_noticed_once_are_in_every_run() -> None:
    found = planted()
    assert {fault.owner for fault in found} >= {
        "Quantiles.edges",
        "Dirichlet.gammas",
        "Connection.to_file",
        "Kept.begin",
    }
    assert all(exchangeable(fault) for fault in found)


def test_what_runs_at_import_is_loaded_anew() -> None:
    found = all_mutants(["mechanisms/selection"])
    assert {mutant.inside for mutant in found if not exchangeable(mutant)} == {"_whole"}
    assert any(not mutant.inside and not exchangeable(mutant) for mutant in all_mutants(["privacy/pld"]))
    assert any(exchangeable(mutant) and mutant.inside == "numbers_below.below" for mutant in found)


ALONE = """
from pathlib import Path
from audit import mutants_server as server
from audit.mutants import Mutant
server.near = lambda file: ["tests/ledger/test_store.py", "tests/ledger/test_account.py"]
server.judged({mutants}, 2, {trace}, 1.0, lambda mutant, outcome, by, seconds: print(mutant.line, outcome, by))
"""
"""A second of tests for each mutant, in a process where nothing is loaded yet."""


def test_changes_are_killed_in_place_or_anew_and_what_changes_nothing_survives() -> None:
    [fault] = (fault for fault in planted() if fault.owner == "Connection.to_file")
    same = replace(fault, after=fault.before, line=1)
    text = (PACKAGE / fault.file).read_bytes()
    sign = text.index(b"import sqlite3")
    first = replace(fault, before="import sqlite3", after="1 / 0", start=sign, end=sign + 14, owner="", line=2)
    still = replace(first, after=first.before, line=3)
    told = alone([fault, same, first, still])
    place = "tests/ledger/test_store.py"
    assert told == {
        f"{fault.line} killed {place}::test_every_commit_waits_for_the_disk",
        "1 survived ",
        "3 survived ",
        f"2 killed {place}",
    }


def alone(found: list[Mutant]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", ALONE.format(mutants=found, trace=0.0)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines())
