"""Real commands, each in a process of its own that is killed with SIGKILL at a random moment, and then finished.

Usage: killer.py FOLDER SEED KILLS COMMAND…. Prints a line of JSON for each kill. The processes are forked from one
that has loaded everything, and most kills come after a release has begun, so that they meet the transaction and not the
loading of libraries.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dp_accounting
import pyarrow.csv
import pyarrow.parquet
import scipy.optimize
import scipy.signal
import scipy.stats
from dp_accounting.pld import privacy_loss_distribution

import dpbayes.cli.main
import dpbayes.jobs.categories
import dpbayes.jobs.model
import dpbayes.jobs.posterior
import dpbayes.jobs.wide
import dpbayes.ledger.ledger
import dpbayes.release.verify
import dpbayes.report.folder
import dpbayes.tables.duckdb

LOADED = (
    dp_accounting,
    privacy_loss_distribution,
    pyarrow.csv,
    pyarrow.parquet,
    scipy.optimize,
    scipy.signal,
    scipy.stats,
)
"""What commands load when they need it: here it is loaded once for all of them."""

SCHEMA = """
id = "people"
adjacency = "replace-one"
records = 60
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "job"
categories = ["cook", "nurse"]
"""
PAID = ["--epsilon", "1", "--delta", "0"]
COMMANDS = {
    "release": ["release", "people.csv", *PAID, "sex", "--set", "mechanism=laplace", "--out", "published"],
    "fit": ["release", "people.csv", *PAID, "job", "--as", "naive-bayes", "--set", "tempered=true",
            "--out", "published"],
    "posterior": ["release", "--as", "posterior", "people.csv", *PAID, "sex", "--set", "mechanism=improved-laplace",
                  "--out", "published"],
    "wide": ["release", "--as", "wide", "people.csv", *PAID, "--delta", "1e-6", "sex,job", "--out", "opened"],
    "categories": ["release", "--as", "categories", "people.csv", *PAID, "--delta", "1e-8", "job",
                   "--out", "published"],
    "edges": ["release", "--as", "edges", "people.csv", *PAID, "age", "--set", "bins=3",
              "--set", "bounds=0:99", "--out", "published"],
}  # fmt: skip


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = [f"{'FM'[k % 2]},{('cook', 'nurse')[k % 3 > 0]},{20 + k}" for k in range(60)]
    (folder / "people.csv").write_text("sex,job,age\n" + "\n".join(rows) + "\n")
    (folder / "people.toml").write_text(SCHEMA)
    os.chdir(folder)


def forked(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return child


def command(*arguments: str) -> int:
    """Run a command as a shell would, silently; its exit code."""
    sys.argv = ["dpbayes", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            dpbayes.cli.main.run()
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 0
    return 0


def done(*arguments: str) -> int:
    _, status = os.waitpid(forked(lambda: command(*arguments)), 0)
    return os.waitstatus_to_exitcode(status)


def entries() -> list[dict[str, object]]:
    """The entries of the ledger, read without its code."""
    connection = sqlite3.connect("people.ledger")
    try:
        found = connection.execute("SELECT text FROM dpbayes_entries ORDER BY serial").fetchall()
    finally:
        connection.close()
    return [json.loads(text) for (text,) in found]


def outcome(name: str) -> dict[str, object]:
    """What is there after a command was stopped and finished; all of it is done in one more process."""
    reader, writer = os.pipe()

    def judge() -> int:
        os.write(writer, json.dumps(judged(name)).encode())
        return 0

    os.waitpid(forked(judge), 0)
    os.close(writer)
    with os.fdopen(reader) as said:
        return dict(json.load(said))


def judged(name: str) -> dict[str, object]:
    left = Path("people.ledger.draws")
    kept = sorted(path.read_text() for path in left.glob("*.draw.json")) if left.exists() else []
    finished = command("ledger", "finish", "people.ledger")
    again = command("ledger", "finish", "people.ledger")
    listed = [entry["kind"] for entry in entries()]
    after = sorted(path.read_text() for path in left.glob("*.draw.json")) if left.exists() else []
    verified = None
    if name == "wide" and Path("people.wide").exists():
        command("ask", "people.wide", "sex", "--out", "published")
    if Path("published").exists():
        verified = command("verify", "published", "--ledger", "people.ledger")
    drafts = [path.name for path in left.iterdir() if path.suffix in (".draft", ".reading")] if left.exists() else []
    return {
        "entries": listed,
        "finish": [finished, again],
        "ledger": command("verify", "people.ledger"),
        "verified": verified,
        "kept": len(kept),
        "same": not kept or kept == after,
        "drafts": len(drafts),
    }


def wait_for(file: str, child: int) -> None:
    """Until a release has come so far that there is such a file, or is over."""
    ended = os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
    while not any(Path("people.ledger.draws").glob(file)) and os.waitid(*ended) is None:
        time.sleep(0.0002)


def main(folder: str, seed: str, kills: str, *names: str) -> None:
    rng = random.Random(int(seed))
    for number, name in enumerate(names):
        prepare(Path(folder) / f"{name}-whole")
        init = ["ledger", "init", "people.csv", "--epsilon", "20", "--delta", "1e-5"]
        assert done(*init) == 0
        shutil.copy("people.ledger", Path(folder) / "fresh.ledger")
        start = time.monotonic()
        code = done(*COMMANDS[name])
        whole = time.monotonic() - start
        assert code == 0, (name, code)
        for kill in range(int(kills)):
            prepare(Path(folder) / f"{name}-{kill}")
            shutil.copy(Path(folder) / "fresh.ledger", "people.ledger")
            phase = (kill + number + int(seed)) % 4
            child = forked(lambda: command(*COMMANDS[name]))  # noqa: B023 - it runs at once
            if phase == 0:
                time.sleep(rng.uniform(0.0, whole))
            else:  # most of them meet the transaction
                wait_for(("*.draft", "*.reading", "*.draw.json")[phase - 1], child)
                time.sleep(rng.uniform(0.0, (0.1, 0.02, 0.005)[phase - 1] * whole))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            print(json.dumps({"command": name, "killed": os.WIFSIGNALED(status), **outcome(name)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
