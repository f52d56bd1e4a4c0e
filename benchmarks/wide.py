"""Wide distributions: 10⁴ cells of a domain of 10¹², in a process of its own so that its memory can be read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SHAPES = {"12 × 10": (10,) * 12, "40 × 2": (2,) * 40, "2 × 10⁶": (10**6, 10**6)}
RECORDS = 1_000_000
QUESTIONS = 10_000


def run() -> dict[str, object]:
    """Seconds and memory of the questions; the goal is 5 s and 200 MB, with a million records."""
    command = [sys.executable, "-m", "benchmarks.wide"]
    measured = {
        name: json.loads(subprocess.run([*command, name], capture_output=True, text=True, check=True).stdout)
        for name in SHAPES
    }
    return {"goal": "5 s, 200 MB", "questions": QUESTIONS, "records": RECORDS, **measured}


def answered(name: str) -> dict[str, float]:
    from dpbayes import Dirichlet, Unit
    from dpbayes.mechanisms.lazy import LazyDirichlet
    from dpbayes.schema.counts import SparseCounts

    shape = SHAPES[name]
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, 10**12, RECORDS))
    counts = SparseCounts(shape, cells, np.ones(len(cells), dtype=np.int64))
    unit = Unit(adjacency="replace-one")
    questions = np.stack([rng.integers(0, size, QUESTIONS) for size in shape], axis=1)
    seconds = {}
    for law in ("cells", "splits"):
        wide = LazyDirichlet(Dirichlet(weight=1, concentration=10, unit=unit), counts, key=bytes(32), law=law)
        started = time.perf_counter()
        wide.shares(questions)
        seconds[f"seconds, law of {law}"] = round(time.perf_counter() - started, 2)
    status = Path("/proc/self/status").read_text(encoding="utf-8").split()  # rusage would count the parent's memory
    return {**seconds, "peak MB": round(int(status[status.index("VmHWM:") + 1]) / 1000)}


if __name__ == "__main__":
    print(json.dumps(answered(sys.argv[1])))
