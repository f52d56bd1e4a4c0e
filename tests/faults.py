"""Real commands under a shim that fails their n-th call to the system, or kills them there, n over all calls.

Usage: python -m tests.faults SHIM FOLDER SHARE SCENARIO…, with SHIM preloaded. Every SHARE-th fault is tried. Prints a
line of JSON for each: what happened, what is left after the fault is gone and ``finish`` has run, and what is wrong
about it. The judge is ``tests.simulation.checker``, which reads files and shares no code with the ledger.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.killer import COMMANDS, PAID, command, forked, prepare
from tests.simulation.checker import Witness, charges, rows_of_file, within

import dpbayes.cli.main
from dpbayes.base.files import sweep
from dpbayes.cli.command import loaded
from dpbayes.mechanisms import noise

KILL, HALF = -1, -2
ALWAYS = 1 << 16
"""Added to an error: every later call of the kind fails too."""

ERRORS = {
    "w": (errno.EIO, errno.ENOSPC, errno.EINTR, errno.ENOSPC | ALWAYS, KILL, HALF),
    "s": (errno.EIO, errno.ENOSPC, errno.EINTR, KILL),
    "r": (errno.EIO, errno.ENOSPC, errno.EINTR, KILL),
    "u": (errno.EIO, errno.EINTR, KILL),
    "l": (errno.ENOLCK, errno.EINTR, errno.ENOLCK | ALWAYS, KILL),
    "c": (errno.ECONNREFUSED, errno.EINTR, errno.ETIMEDOUT, KILL),
}
"""Which faults a kind of call can meet: write, sync, rename, unlink, lock, connect."""

PATIENCE = 50
"""Seconds until a command counts as one that never ends; less than a writer waits for a lock."""

LIMIT = "1.5"
"""Of one more release than fits: each costs 1."""

ROWS = 60
RECORDS = "published.out-records.csv"
SERIES = [{"mechanism": "laplace-1", "scale": 2.0, "unit": {"adjacency": "replace-one", "max_rows": 1}}]
RELEASE = [*COMMANDS["release"][:-1], "published.out"]
SYNTH = ["release", "people.csv", "--as", "synthetic", *PAID, "--delta", "1e-6", "--out", "published.out"]
SCENARIOS = {
    "release": RELEASE,
    "fit": [*COMMANDS["fit"][:-1], "published.out"],
    "synth": SYNTH,
    "finish": ["ledger", "finish", "people.ledger"],
    "charge": ["ledger", "charge", "people.ledger", "series.json", "--about", "x"],
    "budget": ["ledger", "limit", "people.ledger", "--epsilon", "1.2", "--delta", "0", "--about", "less"],
    "init": ["ledger", "init", "people.toml", "--ledger", "other.ledger", "--epsilon", "1", "--delta", "0"],
}


def init(name: str) -> list[str]:
    limit = ["1.1", "--delta", "1e-5"] if name == "synth" else [LIMIT, "--delta", "0"]  # squared shifts add up
    return ["ledger", "init", "people.csv", "--epsilon", *limit]


def run(arguments: list[str], shim: ctypes.CDLL, at: int = 0, fault: int = 0) -> tuple[int, str]:
    """The exit code of a command in a process of its own, negative if killed, and the kinds of its calls."""
    reader, writer = os.pipe()

    def work() -> int:
        signal.alarm(PATIENCE)
        shim.shim_keep(int(bool(fault > 0 and fault & ALWAYS)))
        shim.shim_arm(ctypes.c_long(at), fault & ~ALWAYS if fault > 0 else fault)
        code = command(*arguments)
        shim.shim_disarm()
        kinds = ctypes.create_string_buffer(100_000)
        size = shim.shim_calls(kinds, ctypes.c_long(100_000))
        os.write(writer, kinds.raw[:size])
        return code

    child = forked(work)
    os.close(writer)
    with os.fdopen(reader) as said:
        kinds = said.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), kinds


def runs(*commands: list[str]) -> list[int]:
    """The exit codes of commands without faults, all in one process."""
    reader, writer = os.pipe()
    child = forked(lambda: 0 * os.write(writer, json.dumps([command(*each) for each in commands]).encode()))
    os.close(writer)
    with os.fdopen(reader) as said:
        codes = list(json.load(said))
    os.waitpid(child, 0)
    return codes


def begin(name: str, here: Path, shim: ctypes.CDLL) -> Path:
    """A copy of the folder in which the scenario begins; drafts name the folder itself, so it is always the same."""
    prepare(here)
    Path("series.json").write_text(json.dumps(SERIES))
    assert runs(init(name)) == [0]
    if name == "finish":  # a release that was killed where the draft says that rows are read
        shutil.copy("people.ledger", "fresh")
        _, kinds = run(RELEASE, shim)
        for at in (place for place, kind in enumerate(kinds, start=1) if kind == "s"):
            for path in (Path("published.out"), Path("people.ledger.draws")):
                shutil.rmtree(path, ignore_errors=True)
            shutil.copy("fresh", "people.ledger")
            run(RELEASE, shim, at, KILL)
            if any(Path("people.ledger.draws").glob("*.reading")):
                break
    return Path(shutil.copytree(here, here.with_name(f"{name}-fresh")))


def start(here: Path, fresh: Path) -> None:
    os.chdir(here.parent)
    shutil.rmtree(here)
    shutil.copytree(fresh, here)
    os.chdir(here)


def wrong(name: str, code: int) -> Iterator[str]:
    """Everything that must not be so after a fault, a ``finish`` without faults, and the same command once more."""
    if code not in (0, 1, 3, 4, -signal.SIGKILL):
        yield f"exit code {code}"
    witness = Witness(folder=Path.cwd(), kept=Path("people.ledger.draws"))
    witness.look()
    before = len(booked()[1])
    finish, again = (
        ["ledger", "finish", "people.ledger"],
        [part.replace("published.out", "again.out") for part in SCENARIOS[name]],
    )
    paid = name in ("release", "fit", "synth", "finish")
    if paid and (codes := runs(finish, finish)) != [0, 0]:
        yield f"finish ends with {codes}"
    budget, found = booked()
    if len(found) != before:
        yield "finish charged"
    if paid and witness.judge(budget, found):
        yield "lost"
    if paid and any(one["state"] != "drawn" for one in found.values()):
        yield "a draw without its note"
    if code == 0 and (paid or name == "charge") and not found:
        yield "uncharged"
    if Path(RECORDS).exists() and len(Path(RECORDS).read_text().splitlines()) != ROWS + 1:
        yield "records half written"
    verified, more = runs(["verify", "published.out", "--ledger", "people.ledger"], again)
    if Path("published.out").exists() and verified:
        yield "verify fails"
    refused = 3 if found and name in ("release", "fit", "synth", "charge") else 0
    if more != refused and name != "init":
        yield f"once more ends with {more}"  # it fits unless something was charged
    within(*booked())
    for target in (RECORDS, "published.out") if code == -signal.SIGKILL else ():
        sweep(Path.cwd(), target)  # as the next writer of that name does; ``finish`` knows only what was charged
    if left := [path.name for pattern in (".*", "*-journal", "*.partial") for path in Path().glob(pattern)]:
        yield f"left behind: {left}"


def booked() -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The ledger as it would be read now, from a copy: an interrupted commit is left for dpbayes to undo."""
    copy = Path("copy")
    copy.mkdir()
    for path in Path().glob("people.ledger*"):
        if path.is_file():
            shutil.copy(path, copy)
    sqlite3.connect(copy / "people.ledger").execute("SELECT * FROM sqlite_master").connection.close()
    found = charges(*rows_of_file(Path("copy/people.ledger").absolute()))
    shutil.rmtree(copy)
    return found


def outcome(name: str, code: int) -> list[str]:
    met = []
    try:
        met += wrong(name, code)
    except AssertionError as problem:
        met.append(str(problem).splitlines()[0] if str(problem) else "an assertion")
    return met


def main(library: str, folder: str, share: str, *names: str) -> None:
    shim = ctypes.CDLL(library)
    shim.shim_calls.restype = ctypes.c_long
    for each in dpbayes.cli.COMMANDS:
        loaded(each)  # once for all
    noise.once()
    here = Path(folder).absolute() / "here"
    turn = 0
    for name in names:
        fresh = begin(name, here, shim)
        start(here, fresh)
        code, kinds = run(SCENARIOS[name], shim)
        assert (code, outcome(name, code)) == (0, []), (name, code)
        for at, kind in enumerate(kinds, start=1):
            for fault in ERRORS[kind]:
                turn += 1
                if turn % int(share) == 0:
                    start(here, fresh)
                    code, _ = run(SCENARIOS[name], shim, at, fault)
                    met = {"scenario": name, "at": at, "kind": kind, "fault": fault, "code": code}
                    print(json.dumps({**met, "wrong": outcome(name, code)}), flush=True)
        os.chdir(here.parent)
        shutil.rmtree(here)


if __name__ == "__main__":
    main(*sys.argv[1:])
