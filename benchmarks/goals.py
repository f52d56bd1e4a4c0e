"""Every goal for speed that the project set itself: processor time, its spread, wall time and peak memory of each job.

Each job runs in a process of its own (``python -m benchmarks.goals NAME`` prints one row). Where a job is compared with
another, both are timed in the same process in turn, and the ratio is that of their least processor times: others on the
machine can only add to them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _rows
from dpbayes import Dirichlet, Laplace

ROUNDS = 3
PATIENCE = 900
"""Seconds of the wall clock after which a job is given up."""

LESS = "less: "
"""An action of this name is taken off the first: it was needed, and is not what is measured."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A job, what it should take, and what it cannot go below."""

    job: str
    prepare: Callable[[Path], _rows.Actions]
    goal: str
    limit: str
    most: float
    """The goal as a number: a ratio to what it is compared with, or seconds of the processor."""
    ratio: bool = False
    memory: float | None = None
    """The goal for peak memory, in MB."""
    rounds: int = ROUNDS
    why: str = ""
    """Where a goal is missed: what the time is spent on."""


def _laplace(i: int) -> Laplace:
    return Laplace(scale=4000.0 + i, unit=_rows.UNIT)


def _dirichlet(i: int) -> Dirichlet:
    return Dirichlet(weight=0.01 + 1e-5 * i, concentration=200 + 0.1 * i, unit=_rows.UNIT)


PAIRS = [f"a{one},a{other}" for one in range(15) for other in range(one + 1, 15)][:100]
BARE = "python, numpy and duckdb"
ESTIMATES = "the estimates: each cell is weighed against 57 factors"

DUCKDB = "import numpy, duckdb"

WAITING = {
    "version": ("`dpbayes --version`", _rows.started("pass", "--version"), 6.0),
    "help": ("`dpbayes --help`", _rows.started(DUCKDB, "--help"), 0.6),
    "show": ("`dpbayes ledger show`", _rows.started(DUCKDB, "ledger", "show", "{survey}"), 1.3),
    "ask": (
        "a question to a release",
        _rows.started(DUCKDB, "ask", "{out}", "income|sex", "share(income='80k and over')"),
        1.3,
    ),
    "csv": (
        "one table of a CSV of 20,000 rows, the whole command",
        _rows.by_hand(20_000, 1, columns=2, size=10, kind="csv"),
        2.0,
    ),
    "parquet": (
        "10 tables of a Parquet file of 5 M rows, the whole command",
        _rows.by_hand(5_000_000, 10, columns=5, size=10, kind="parquet"),
        1.15,
    ),
    "tables": (
        "200 tables of 1 M rows, the whole command",
        _rows.by_hand(1_000_000, 200, columns=21, size=16, kind="parquet"),
        1.2,
    ),
    "fit 10⁴": ("naive Bayes, fit 10⁴ × 20, tempered if it helps", _rows.naive_bayes("fit", 10**4, tempered=None), 8.0),
    "fit 10⁵": ("the same, 10⁵ rows", _rows.naive_bayes("fit", 10**5, tempered=None), 2.0),
    "fit 10⁶": ("the same, 10⁶ rows", _rows.naive_bayes("fit", 10**6, tempered=None), 0.9),
}
"""Commands and fits beside what they are compared with: at most so many times its processor time."""

BEYOND = "the script makes neither estimates with intervals nor a report"
REASONS = {"csv": "starting: imports take most of the difference", "parquet": BEYOND, "tables": BEYOND}

GOALS = {
    **{
        name: Goal(
            job=job,
            prepare=prepare,
            goal=f"≤ {most:g} ×",
            limit="what stands beside it",
            most=most,
            ratio=True,
            rounds=3 if name in ("parquet", "tables", "fit 10⁶") else 6,
            why=REASONS.get(name, ""),
        )
        for name, (job, prepare, most) in WAITING.items()
    },
    "kept": Goal(
        job="1,000 synthetic records from a saved release, after the first call",
        prepare=_rows.kept,
        rounds=6,
        goal="≤ 0.1 s",
        limit="its JSON",
        most=0.1,
        why="reading the file, every number of it checked, takes most of it",
    ),
    "records": Goal(
        job="10⁶ synthetic records of 15 attributes from a fitted model",
        prepare=_rows.many,
        goal="≤ 0.5 s",
        limit="–",
        most=0.5,
    ),
    "start": Goal(
        job="`dpbayes release` of one small table, Gaussian noise",
        prepare=_rows.start("gaussian"),
        rounds=6,
        goal="≤ 0.8 s",
        limit=BARE,
        most=0.8,
        why="imports: click, rich, numpy, DuckDB, Arrow, and 140 modules of our own",
    ),
    "start auto": Goal(
        job="the same, `mechanism=auto`",
        prepare=_rows.start("auto"),
        rounds=6,
        goal="≤ 0.8 s",
        limit=BARE,
        most=0.8,
        why="imports, and predictions for three mechanisms",
    ),
    "count 10": Goal(
        job="counting 10 tables of 10 M rows",
        prepare=_rows.counting(10_000_000, 10, "scan"),
        goal="≤ 3 × scan",
        limit="bare scan of the columns",
        most=3.0,
        ratio=True,
    ),
    "count 50 M": Goal(
        job="counting 10 tables of 50 M rows",
        prepare=_rows.counting(50_000_000, 10, "scan"),
        rounds=2,
        goal="≤ 2.5 × scan",
        limit="bare scan of the columns",
        most=2.5,
        ratio=True,
    ),
    "count 100": Goal(
        job="counting 100 tables of 10 M rows",
        prepare=_rows.counting(10_000_000, 100, "hand"),
        rounds=2,
        goal="≤ 1 × the best query by hand",
        limit="that query",
        most=1.0,
        ratio=True,
    ),
    "command 10": Goal(
        job="`dpbayes release` of 10 tables of 10 M rows, the whole command",
        prepare=_rows.whole_command(10_000_000, 10),
        goal="≤ 3 × scan",
        limit="a process that scans the columns",
        most=3.0,
        ratio=True,
        why="starting takes 0.65 s of it, counting 0.45 s",
    ),
    "command 50 M": Goal(
        job="the same of 50 M rows",
        prepare=_rows.whole_command(50_000_000, 10),
        rounds=2,
        goal="≤ 2.5 × scan",
        limit="a process that scans the columns",
        most=2.5,
        ratio=True,
        why="starting takes 0.65 s of it, the rest is counting",
    ),
    "small tables": Goal(
        job="release of 100 tables, 25,600 cells",
        prepare=_rows.released((16,) * 15, PAIRS),
        goal="≤ 3 s",
        limit="–",
        most=3.0,
        why="estimates of all tables together, and the report",
    ),
    "noise": Goal(
        job="integer noise, 10⁶ cells",
        prepare=_rows.noise,
        goal="≤ 3 × ChaCha20",
        limit="ChaCha20 alone",
        most=3.0,
        ratio=True,
    ),
    "million": Goal(
        job="release of one table of 10⁶ cells",
        prepare=_rows.released((100,) * 3, ["a0,a1,a2"], records=10**6),
        goal="≤ 2 s, 300 MB",
        limit="–",
        most=2.0,
        memory=300,
        rounds=2,
        why=ESTIMATES,
    ),
    "million drawn": Goal(
        job="the same without estimates",
        goal="–",
        limit="–",
        most=4.0,
        memory=600,
        rounds=2,
        prepare=_rows.released((100,) * 3, ["a0,a1,a2"], records=10**6, draws=True),
    ),
    "ten million": Goal(
        job="release of one table of 10⁷ cells",
        goal="≤ 40 s, 3 GB",
        limit="–",
        most=40.0,
        memory=3000,
        rounds=1,
        why=ESTIMATES,
        prepare=_rows.released((100, 100, 1000), ["a0,a1,a2"], records=10**6),
    ),
    "ten million drawn": Goal(
        job="the same without estimates",
        goal="–",
        limit="–",
        most=40.0,
        memory=3000,
        rounds=1,
        prepare=_rows.released((100, 100, 1000), ["a0,a1,a2"], records=10**6, draws=True),
    ),
    "conditional": Goal(
        job="conditional table of 10⁴ cells",
        prepare=_rows.conditional,
        goal="≤ 5 × the joint one",
        limit="the joint one",
        most=5.0,
        ratio=True,
        rounds=2,
    ),
    "dry run 10": Goal(
        job="plan of 10 tables",
        prepare=_rows.planned(10),
        goal="≤ 0.7 × the release",
        limit="the release",
        most=0.7,
        ratio=True,
        rounds=2,
        why="the release itself became faster than its prediction",
    ),
    "dry run 100": Goal(
        job="plan of 100 tables",
        prepare=_rows.planned(100),
        goal="≤ 0.7 × the release",
        limit="the release",
        most=0.7,
        ratio=True,
        rounds=2,
        why="as above",
    ),
    "thousand": Goal(
        job="release of 1,000 tables",
        goal="≤ 20 s",
        limit="–",
        most=20.0,
        rounds=1,
        prepare=_rows.released((4,) * 1000, [f"a{place}" for place in range(1000)], records=10_000),
        why="reading 1,000 columns, and estimates of every table",
    ),
    "ledger left": Goal(
        job="what is left after 100 different charges",
        prepare=_rows.ledger(_laplace, together=False),
        goal="≤ 0.5 s",
        limit="–",
        most=0.5,
    ),
    "ledger charge": Goal(
        job="a charge of 100 different Dirichlet draws",
        prepare=_rows.ledger(_dirichlet, together=True),
        goal="≤ 0.5 s",
        limit="–",
        most=0.5,
    ),
    "bayes predict": Goal(
        job="naive Bayes, predict 10⁶ × 20",
        prepare=_rows.naive_bayes("predict"),
        most=1.0,
        ratio=True,
        goal="≤ 1 × scikit-learn",
        limit="20 look-ups",
        why="values are looked up among the declared categories",
    ),
    "synthetic": Goal(
        job="synthetic records, 10⁶ × 15",
        prepare=_rows.synthetic,
        goal="≤ 2.5 × a numpy loop",
        limit="that loop",
        most=2.5,
        ratio=True,
    ),
    "hellinger": Goal(
        job="certificate of the Hellinger mechanism, n = 10⁴",
        prepare=_rows.certificate,
        rounds=1,
        goal="memory flat in blocks",
        limit="–",
        most=6.0,
        memory=400,
    ),
}


def row(name: str) -> dict[str, object]:
    """Measure one goal in this process."""
    goal = GOALS[name]
    with tempfile.TemporaryDirectory() as folder:
        actions = goal.prepare(Path(folder))
        before = _peak()
        spent: dict[str, list[float]] = {each: [] for each in actions}
        passed: dict[str, list[float]] = {each: [] for each in actions}
        for _ in range(goal.rounds):
            for each, action in actions.items():
                began, wall = _rows.processor(), time.perf_counter()
                action()
                spent[each].append(_rows.processor() - began)
                passed[each].append(time.perf_counter() - wall)
    less = sum(min(spent[each]) for each in actions if each.startswith(LESS))
    ours, *others = [each for each in actions if not each.startswith(LESS)]
    found: dict[str, object] = {
        "job": goal.job,
        "goal": goal.goal,
        "limit": goal.limit,
        "processor": round(min(spent[ours]) - less, 4),
        "most": round(max(spent[ours]) - less, 4),
        "wall": round(min(passed[ours]), 3),
        "peak MB": round(_peak()),
        "MB before": round(before),
    }
    reached = found["processor"]
    if others:
        found["beside"] = {"what": others[0], "processor": round(min(spent[others[0]]), 4)}
        found["ratio"] = round((min(spent[ours]) - less) / min(spent[others[0]]), 2)
        reached = found["ratio"] if goal.ratio else reached
    small = goal.memory is None or found["peak MB"] <= goal.memory  # type: ignore[operator]
    found["reached"] = bool(reached <= goal.most and small)  # type: ignore[operator]
    if not found["reached"] and goal.why:
        found["why"] = goal.why
    return found


def _peak() -> float:
    """Peak resident memory in MB; not ru_maxrss, which a process inherits from the one that started it."""
    status = Path("/proc/self/status").read_text().split()
    own = int(status[status.index("VmHWM:") + 1]) / 1024
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def installed() -> dict[str, object]:
    """The size of what `requirements.lock` installs here."""
    from importlib import metadata

    lock = (Path(__file__).resolve().parents[1] / "requirements.lock").read_text(encoding="utf-8").splitlines()
    names = {line.split("==")[0] for line in lock if "==" in line and not line.startswith((" ", "#"))}
    size = 0
    for name in names:
        try:
            size += sum(file.size or 0 for file in metadata.files(name) or ())
        except metadata.PackageNotFoundError:
            continue
    megabytes = round(size / 1e6)
    found = {"job": "installed run-time dependencies", "goal": "≤ 550 MB", "limit": "–", "peak MB": megabytes}
    return {**found, "reached": megabytes <= 550}


def run(names: Iterable[str] = GOALS) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in names:
        goal = GOALS[name]
        print(f"  {name} …", file=sys.stderr, flush=True)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.goals", name],
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            ended = (
                json.loads(done.stdout.splitlines()[-1])
                if done.returncode == 0
                else f"failed: {done.stderr.strip()[-200:]}"
            )
        except subprocess.TimeoutExpired:
            ended = f"given up after {PATIENCE} s"
        missed = {"job": goal.job, "goal": goal.goal, "limit": goal.limit, "reached": None}
        found[name] = ended if isinstance(ended, dict) else {**missed, "why": ended}
    found["installed"] = installed()
    found["machine"] = {
        "processors": os.cpu_count(),
        "load when it ended": os.getloadavg()[0],
        "bytecode": not sys.dont_write_bytecode,
    }
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(row(sys.argv[1])))
