"""A release that is interrupted anywhere is finished under its one charge, by the draw that was kept if any was."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import dpbayes

from dpbayes import Attribute, Curator, Ledger, PureDP, Release, Schema, Tables, Unit, finish, verify
from dpbayes.base import files
from dpbayes.base.errors import DpbayesError, InvalidArgument, LedgerError, TableError, Unfinished
from dpbayes.ledger.kept import DRAFT, DRAW, READING, Slot
from dpbayes.recovery import recover
from dpbayes.tables.duckdb import DuckDBEngine

UNIT = Unit(adjacency="replace-one")
SCHEMA = Schema(id="people", unit=UNIT, attributes=(Attribute(name="sex", categories=("F", "M"), missing="other"),))
JOB, TARGET = Tables("sex", mechanism="laplace"), PureDP(epsilon=1.0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex\n" + "F\n" * 30 + "M\n" * 12)
    Ledger("people.ledger").open("people", PureDP(epsilon=3.0), UNIT, schema=SCHEMA.digest)
    return tmp_path


def release(out: str | None = "published", table: object = "people.csv") -> Release:
    return Curator(table, SCHEMA, ledger="people.ledger").release(JOB, TARGET, out=out)


def drafts() -> list[str]:
    folder = Path("people.ledger.draws")
    return sorted(path.suffix for path in folder.glob("*") if path.suffix in (DRAFT, READING))


def draws() -> list[Path]:
    return sorted(Path("people.ledger.draws").glob(f"*{DRAW}"))


def charges() -> list[str]:
    """The states of all charges, straight from the file."""
    with sqlite3.connect("people.ledger") as connection:
        texts = [row[0] for row in connection.execute("SELECT text FROM dpbayes_entries ORDER BY serial")]
    connection.close()
    states: dict[int, str] = {}
    for entry in map(json.loads, texts):
        if entry["kind"] == "charge":
            states[entry["serial"]] = "charged"
        elif entry["kind"] in ("drawn", "void"):
            states[entry["charge"]] = entry["kind"]
    return list(states.values())


def assert_whole(folder: str = "published") -> None:
    """One charge, one release that verifies with it, and nothing left to do."""
    assert charges() == ["drawn"]
    assert drafts() == []
    found = verify(Release.load(folder), ledger="people.ledger", folder=folder)
    assert found.ok, found
    assert [Release.from_json(path.read_text()).digest() for path in draws()] == [Release.load(folder).digest()]


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
KINDS: dict[str, BaseException] = {
    "a full disk": FULL,
    "memory": MemoryError(),
    "an interrupt": KeyboardInterrupt(),
    "a ledger that fails": LedgerError("Ledger: it went away."),
}
STEPS: dict[str, tuple[object, str]] = {
    "write": (files, "write"),
    "flush": (files, "flush"),
    "sync": (os, "fsync"),
    "rename": (Path, "rename"),
    "charge": (Ledger, "charge"),
    "receipt": (Ledger, "receipt"),
    "confirm": (Ledger, "confirm"),
    "columns": (DuckDBEngine, "columns"),
    "count": (DuckDBEngine, "count"),
    "keep": (Slot, "keep"),
    "save": (Release, "save"),
    "report": (__import__("dpbayes.report.folder", fromlist=["x"]), "report_html"),
    "estimates": (__import__("dpbayes.curator", fromlist=["x"]), "complete"),
    "done": (Slot, "done"),
}


@contextmanager
def failing(step: str, problem: BaseException, at: int, *, after: bool) -> Any:
    """The ``at``-th call of a step fails, before or after it has done its work. Yields how often it was called."""
    owner, name = STEPS[step]
    real: Callable[..., object] = getattr(owner, name)
    calls = [0]

    def stand_in(*arguments: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] - 1 != at:
            return real(*arguments, **named)
        if after:
            real(*arguments, **named)
        raise problem

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, stand_in)
        yield calls


LONG = ("flush", "sync", "rename", "write")
"""Steps that are taken often: one way to fail is tried in every run, at every third call; in long runs all, at each."""
FAILURES = [
    pytest.param(step, kind, 1, id=f"{step}-{kind}", marks=pytest.mark.slow if step in LONG else ())
    for step in STEPS
    for kind in KINDS
] + [
    pytest.param(step, kind, 3, id=f"{step}-{kind}, some")
    for step, kind in zip(STEPS, itertools.cycle(KINDS))
    if step in LONG
]


@pytest.mark.parametrize(("step", "kind", "every"), FAILURES)
def test_whatever_fails_at_whatever_step_one_charge_is_finished_and_a_kept_draw_is_used(
    step: str, kind: str, every: int, here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    problem, interrupted = KINDS[kind], 0
    fresh = shutil.copy("people.ledger", tmp_path_factory.mktemp("fresh"))
    for after in (False, True):
        for at in range(int(after) % every, 40, every):
            for path in here.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            Path("people.csv").write_text("sex\nF\nM\n")
            shutil.copy(fresh, "people.ledger")
            with failing(step, problem, at, after=after) as calls:
                try:
                    release()
                except (DpbayesError, OSError, MemoryError, KeyboardInterrupt, UserWarning):
                    interrupted += 1
            assert len(charges()) <= 1
            kept = [path.read_text() for path in draws()]
            try:
                finish("people.ledger")
            except LedgerError:  # only where the draft itself was cut short before its charge
                assert charges() == []
            if charges():
                assert_whole()
                if kept:
                    assert [path.read_text() for path in draws()] == kept
            else:
                assert not Path("published").exists()
                assert drafts() == []
            if calls[0] <= at:
                break  # it is not called that often
        else:
            pytest.fail("there is no end to it")
    assert interrupted or step == "receipt"


def test_nothing_is_finished_twice_and_nothing_is_charged_again(here: Path) -> None:
    with failing("save", FULL, 0, after=False), pytest.raises((Unfinished, OSError)):
        release()
    assert charges() == ["drawn"]
    (made,) = finish("people.ledger")
    assert made.digest() == Release.load("published").digest()
    assert finish("people.ledger") == []
    assert_whole()


def test_a_folder_that_cannot_be_written_is_told_and_another_one_can_be_named(here: Path) -> None:
    with failing("count", FULL, 99, after=False):
        Path("published").write_text("in the way")
        with pytest.raises(DpbayesError, match="published"):
            release()
    if charges():
        finish("people.ledger", out="elsewhere")
        assert_whole("elsewhere")


def test_a_ledger_that_goes_away_after_the_draw_loses_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = DuckDBEngine.count

    def and_lose_the_ledger(*arguments: object) -> object:
        Path("people.ledger").rename("moved.ledger")
        return count(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBEngine, "count", and_lose_the_ledger)
    with pytest.warns(UserWarning, match=r"could not note what was drawn.*dpbayes ledger finish"):
        made = release()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    Path("moved.ledger").rename("people.ledger")
    assert charges() == ["charged"]  # counts as well
    assert drafts() == [READING]  # kept until the note is made
    (again,) = finish("people.ledger")
    assert again.digest() == made.digest()
    assert_whole()


def test_a_release_whose_draw_the_ledger_does_not_note_is_not_verified_with_it(here: Path) -> None:
    """Its numbers could be any: a new seal is soon made."""
    with failing("confirm", KINDS["a ledger that fails"], 0, after=False), pytest.warns(UserWarning, match="note"):
        made = release()
    table = made.tables[0]
    moved = replace(
        made, tables=(replace(table, values=table.values + np.array([500.0, -500.0, 0.0]), products={}),), seal=""
    )
    for each in (made, moved):
        found = {check.name: check for check in each.verify(ledger="people.ledger").checks}
        assert not found["ledger"].passed
        assert "dpbayes ledger finish" in found["ledger"].detail
    finish("people.ledger")
    assert made.verify(ledger="people.ledger").ok
    assert not moved.verify(ledger="people.ledger").ok


def test_a_note_that_an_earlier_version_lost_is_made_up_for(here: Path) -> None:
    """It removed the draft all the same, and with it the key."""
    with failing("confirm", KINDS["a ledger that fails"], 0, after=False), pytest.warns(UserWarning, match="note"):
        release()
    for path in Path("people.ledger.draws").iterdir():
        earlier = path.with_name(path.name.partition("-")[2])
        path.rename(earlier) if path.name.endswith(DRAW) else path.unlink()
    (item,) = recover("people.ledger")
    assert (item.state, item.entry) == ("noted", 1)
    assert_whole()
    (item,) = recover("people.ledger")
    assert item.state == "drawn"


def test_a_draw_is_not_published_if_the_ledger_notes_another(here: Path) -> None:
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release()
    ledger = Ledger("people.ledger")
    (charge,) = ledger.account("people").charges.values()
    ledger.confirm(ledger.receipt_of(ledger.account("people"), charge), digest="that of another draw")
    with pytest.raises(Unfinished, match="something else was drawn"):
        finish("people.ledger")
    assert not Path("published").exists()


def test_the_reason_is_told_with_the_way_on(here: Path) -> None:
    with failing("count", TableError("Table: it went away."), 0, after=False):
        with pytest.raises(Unfinished, match="it went away") as told:
            release()
        assert "dpbayes ledger finish" in str(told.value)
    assert charges() == ["charged"]
    assert drafts() == [READING]
    finish("people.ledger")
    assert_whole()


def test_a_table_in_memory_must_be_handed_in_again(here: Path) -> None:
    table = {"sex": ["F"] * 30}
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release(table=table)
    with pytest.raises(Unfinished, match="Hand in the table"):
        finish("people.ledger")
    finish("people.ledger", table=table)
    assert_whole()


def test_a_release_is_finished_from_any_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    finish(here / "people.ledger")
    monkeypatch.chdir(here)
    assert_whole()


def test_one_that_cannot_be_finished_does_not_keep_the_others_from_it(here: Path) -> None:
    for table, out in (({"sex": ["F"]}, "one"), ("people.csv", "two"), ({"sex": ["M"]}, "three")):
        with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
            release(out, table)
    with pytest.raises(Unfinished, match=r"Hand in the table.*Hand in the table") as told:
        finish("people.ledger")
    (made,) = told.value.finished
    assert Release.load("two").digest() == made.digest()
    assert charges().count("drawn") == 1
    with pytest.raises(Unfinished):
        finish("people.ledger")
    assert drafts() == [READING] * 2


def test_one_that_fails_unexpectedly_does_not_keep_the_others_from_being_finished(here: Path) -> None:
    for out in ("one", "two", "three"):
        with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
            release(out)
    with failing("save", ZeroDivisionError("a private value"), 1, after=False):
        states = Counter(item.state for item in recover("people.ledger"))
    assert states == {"finished": 2, "unfinished": 1}
    with failing("save", ZeroDivisionError("a private value"), 0, after=False):
        (left,) = [item for item in recover("people.ledger") if item.left]
    assert "ZeroDivisionError" in left.says
    assert "private" not in left.says
    assert len(finish("people.ledger")) == 1
    assert charges() == ["drawn"] * 3


def test_one_release_can_be_chosen_and_the_others_wait(here: Path) -> None:
    for out in ("one", "two"):
        with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
            release(out)
    with Ledger("people.ledger").kept.unfinished() as slots:
        chosen = next(slot.name for slot in slots if slot.draft["goes"]["folder"].endswith("two"))
    assert len(finish("people.ledger", only=chosen)) == 1
    assert Path("two").exists()
    assert not Path("one").exists()
    for only in ("nothing like it", chosen):
        with pytest.raises(InvalidArgument, match="name of one unfinished release"):
            finish("people.ledger", only=only)
    finish("people.ledger")
    assert Path("one").exists()


def test_a_table_that_is_handed_in_never_takes_the_place_of_another_releases(here: Path) -> None:
    """It would be drawn under the charge of the other; unless the owner names the one release, whose table moved."""
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release("file")
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release("memory", {"sex": ["M"] * 9})
    Path("people.csv").rename("moved.csv")
    with pytest.raises(Unfinished, match=r"people\.csv"):
        finish("people.ledger", table={"sex": ["M"] * 9})
    assert Path("memory").exists()
    with Ledger("people.ledger").kept.unfinished() as (slot,):
        name = slot.name
    finish("people.ledger", table="moved.csv", only=name)
    assert Release.load("file").records == 42


def test_a_ledger_that_is_misspelt_is_refused(here: Path) -> None:
    with pytest.raises(LedgerError, match="is not there"):
        finish("peple.ledger")


def test_a_folder_whose_name_is_no_text_is_refused_before_the_charge(here: Path) -> None:
    with pytest.raises(InvalidArgument, match="UTF-8"):
        release(os.fsdecode(b"caf\xe9"))
    assert charges() == []
    assert drafts() == []


def test_an_older_copy_that_is_put_back_loses_no_paid_release(here: Path) -> None:
    """Neither one that was only charged, nor one that was drawn, nor the archive of finished ones."""
    release("whole")
    shutil.copy("people.ledger", "older")
    with failing("charge", MemoryError(), 0, after=True), pytest.raises(MemoryError):
        release("charged")
    with failing("save", FULL, 0, after=False), pytest.raises((Unfinished, OSError)):
        release("drawn")
    shutil.copy("people.ledger", "newer")
    shutil.copy("older", "people.ledger")
    for _ in range(2):
        states = Counter(item.state for item in recover("people.ledger"))
        assert states == {"drawn": 1, "set aside": 1, "without its charge": 1}
    with pytest.raises(Unfinished, match="older copy"):
        finish("people.ledger")
    shutil.copy("newer", "people.ledger")
    assert len(finish("people.ledger")) == 2
    assert charges() == ["drawn"] * 3
    for folder in ("whole", "charged", "drawn"):
        assert verify(Release.load(folder), ledger="people.ledger", folder=folder).ok
    shutil.copy("older", "people.ledger")  # now the draws alone tell
    assert Counter(item.state for item in recover("people.ledger")) == {"drawn": 1, "without its charge": 2}


def test_what_another_ledger_left_is_not_touched(here: Path) -> None:
    with failing("charge", MemoryError(), 0, after=True), pytest.raises(MemoryError):
        release()
    Path("people.ledger").rename("first")
    Ledger("people.ledger").open("people", PureDP(epsilon=3.0), UNIT, schema=SCHEMA.digest)
    (item,) = recover("people.ledger")
    assert item.state == "of another ledger"
    assert finish("people.ledger") == []
    assert drafts() == [DRAFT]
    Path("first").rename("people.ledger")
    assert len(finish("people.ledger")) == 1


def test_what_never_read_a_row_can_be_given_up_and_nothing_else(here: Path) -> None:
    with failing("charge", MemoryError(), 0, after=True), pytest.raises(MemoryError):
        release()
    with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
        release("second")
    assert charges() == ["charged", "charged"]
    (made,) = finish("people.ledger", forgo=True)
    assert charges() == ["void", "drawn"]
    assert Release.load("second").digest() == made.digest()


WAITING = """
import sys
from dpbayes import Curator, PureDP, Schema, Tables
from dpbayes.tables.duckdb import DuckDBEngine

count = DuckDBEngine.count

def waiting(*arguments):
    print("counting", flush=True)
    sys.stdin.readline()
    return count(*arguments)

DuckDBEngine.count = waiting
curator = Curator("people.csv", Schema.from_toml(sys.argv[1]), ledger="people.ledger")
curator.release(Tables("sex", mechanism="laplace"), PureDP(epsilon=1.0), out="published")
"""
"""Holds a release at the moment of counting until it is told to go on."""


def test_nobody_finishes_what_a_living_process_works_on(here: Path) -> None:
    command = [sys.executable, "-c", WAITING, SCHEMA.to_toml()]  # not forked: DuckDB's threads may hold its locks
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        assert living.stdout.readline() == b"counting\n"
        assert finish("people.ledger") == []
        assert charges() == ["charged"]
        living.communicate(b"go on\n", timeout=60)
    assert living.returncode == 0
    assert_whole()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": 1}', "\x00"])
def test_a_foreign_or_damaged_draft_is_one_sentence(text: str, here: Path) -> None:
    release()
    Path("people.ledger.draws/x.draft").write_text(text)
    with pytest.raises(DpbayesError, match="draft"):
        finish("people.ledger")


@pytest.mark.parametrize("text", ['{"key": "k", "plan": {}}', '{"key": "k"}'])
def test_a_draft_that_was_never_charged_is_set_aside(text: str, here: Path) -> None:
    release()
    identity = Ledger("people.ledger").kept.ledger
    Path(f"people.ledger.draws/{identity}-x.draft").write_text(text)
    assert finish("people.ledger") == []
    assert finish("people.ledger") == []
    assert Path(f"people.ledger.draws/{identity}-x.aside").read_text() == text
    assert drafts() == []


def test_the_command_lists_what_is_left_and_fails_then(here: Path) -> None:
    for out, table in (("one", "people.csv"), ("two", {"sex": ["F"]})):
        with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
            release(out, table)
    done = dpbayes("ledger", "finish", "people.ledger")
    assert done.code == 1
    assert "1 finished, 1 unfinished." in done.out
    assert "Hand in the table" in done.err
    assert "2 of 3 is spent" in done.out  # today's balance: the charge of the other counts too
    again = dpbayes("ledger", "finish", "people.ledger", "--json")
    listed = again.result
    assert again.code == 1
    assert [(item["state"], item["entry"]) for item in listed["items"]] == [("unfinished", 2), ("drawn", 1)]
    assert listed["releases"] == []
    assert dpbayes("ledger", "finish", "people.csv").code == 1  # it is what finds the ledger, not the table in memory
    whole = dpbayes("ledger", "finish", "people.csv", "--only", listed["items"][0]["name"])
    assert whole.code == 0
    assert "Nothing is left unfinished." in whole.out
    assert dpbayes("ledger", "finish", "peple.ledger").sentence.endswith("Create it with `dpbayes ledger init`.")


def test_a_table_that_is_named_to_find_its_ledger_is_not_drawn_for_another_data_set(here: Path) -> None:
    """One ledger may hold several data sets: rows of one would be published under the charge of another."""
    held = Schema(id="others", unit=UNIT, attributes=SCHEMA.attributes)
    Ledger("people.ledger").open(held, PureDP(epsilon=3.0))
    Path("others.csv").write_text("sex\nM\n")
    for rows, out in (({"sex": ["M"] * 9}, "memory"), ("others.csv", "file")):
        with failing("count", MemoryError(), 0, after=False), pytest.raises(MemoryError):
            Curator(rows, held, "people.ledger").release(JOB, TARGET, out=out)
    Path("others.csv").rename("moved.csv")
    Path("people.toml").write_text(SCHEMA.to_toml())
    with Ledger("people.ledger").kept.unfinished() as slots:
        names = [slot.name for slot in slots]
    for only in ((), *(("--only", name) for name in names)):
        assert dpbayes("ledger", "finish", "people.csv", *only).code == 1
    assert not any(Path(out).exists() for out in ("memory", "file"))
