"""Other tools that make synthetic records, on the same bins, splits and measures as ``synthetic_quality``.

Peers are AIM and MST through OpenDP's ``extras.mbi``, and AIM, MST and PrivBayes of dpmm: their defaults, no cap on
iterations, ε as asked and δ = 10⁻⁶. A run that takes more than an hour of processor time is stopped and counted as not
finished. They need libraries that exclude each other, so each library has an environment of its own: ``make
synthetic-peers`` makes both below out/peers, and ``DPBAYES_PEERS`` names another folder. ``dpbayes synth`` runs beside
them, under the same conditions: ratios of processor seconds are what counts.

What each guarantee covers, as read in the sources (OpenDP 0.16.0 with mbi 1.1.0, dpmm 0.1.9), is in
docs/explanation/synthetic.md.

``python -m benchmarks synthetic_peers`` runs everything and keeps results in out/synthetic-peers.json, run by run; what
is there is not run again. ``python -m benchmarks.synthetic_peers "dpmm AIM"`` runs that peer alone. ``DPBAYES_UNTIL``
sets an end in minutes from now: a run that it stops is counted as stopped, with the time it had.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import synthetic_quality as quality

OUT = Path("out") / "synthetic-peers.json"
FOLDER = Path(os.environ.get("DPBAYES_PEERS", Path("out") / "peers"))
PEERS = ("opendp MST", "dpmm MST", "dpmm PrivBayes", "dpmm AIM", "opendp AIM")
LIMIT = 3600
"""Seconds of the processor."""

UNTIL = time.monotonic() + 60.0 * float(os.environ.get("DPBAYES_UNTIL", "10000"))
MEMORY = 12 * 2**30
"""Bytes that a peer may map: others work on the machine too."""


class Records:
    """What a peer drew, with the face of a model that the distances of ``synthetic_quality`` ask for."""

    def __init__(self, names: list[str], many: np.ndarray) -> None:
        self._columns = {name: many[:, place] for place, name in enumerate(names)}

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool) -> dict[str, np.ndarray]:  # noqa: ARG002
        return self._columns


def interpreter(peer: str) -> Path:
    return FOLDER / peer.partition(" ")[0] / "bin" / "python"


def measured(peer: str, name: str, epsilon: float, split: int, draw: int) -> dict[str, Any]:
    """One run: distances, AUC, processor and wall seconds; or why there are none."""
    if peer == "dpbayes synth":
        return quality.measured(name, peer, epsilon, split, draw)
    if not interpreter(peer).exists():
        return {"absent": f"{peer.partition(' ')[0]} is not installed; see make synthetic-peers"}
    sizes, private, public = quality.halves(name, split)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, coded=private, sizes=list(sizes.values()), epsilon=epsilon, delta=1e-6, draw=draw)
        failed = _called(peer, given, found)
        if failed:
            return failed
        drawn = np.load(found)
        two, three = quality.distances(Records(list(sizes), drawn["many"]), sizes, private)
        row = {
            "two-way": two,
            "three-way": three,
            "seconds": float(drawn["seconds"]),
            "wall": float(drawn["wall"]),
            "auc": quality.auc(drawn["sample"], public),
        }
    return {what: round(value, 5) for what, value in row.items()}


def _called(peer: str, given: Path, found: Path) -> dict[str, Any] | None:
    """Run the peer in a process group of its own, which ends with its hour; what went wrong, if anything did."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))

    command = [str(interpreter(peer)), str(Path(__file__).with_name("_peer.py")), peer, str(given), str(found)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    before = _spent()
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=limits,  # noqa: PLW1509
    )
    try:
        _, said = process.communicate(timeout=max(UNTIL - time.monotonic(), 1.0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"unfinished": f"stopped after {(_spent() - before) / 60:.0f} min"}
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"unfinished": f"not finished after {(_spent() - before) / 60:.0f} min"}
    if process.returncode:
        last = (said.strip().splitlines() or ["no message"])[-1]
        return {"failed": last[:200]}
    return None


def _spent() -> float:
    """Processor seconds of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def schedule() -> Iterator[tuple[str, str, float, int, int]]:
    """The most important first: ours and MST of OpenDP, then dpmm, then AIM; then other ε and the other splits."""
    main = quality.MAIN
    for name in main:
        yield "dpbayes synth", name, 1.0, 0, 0
        yield "opendp MST", name, 1.0, 0, 0
    for peer in PEERS[1:]:
        for name in main:
            yield peer, name, 1.0, 0, 0
    for epsilon in (0.1, 10.0, 0.5, 3.0):
        for peer in PEERS[:1]:
            for name in main:
                yield peer, name, epsilon, 0, 0
    for split in (1, 2):
        for name in main:
            yield PEERS[0], name, 1.0, split, 0


def kept() -> dict[str, Any]:
    return json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}


def run(only: Sequence[str] = ()) -> dict[str, Any]:
    OUT.parent.mkdir(exist_ok=True)
    for asked in schedule():
        key = " | ".join(map(str, asked))
        if key in kept() or time.monotonic() > UNTIL or (only and asked[0] not in only):
            continue
        print(key, file=sys.stderr, flush=True)
        row = measured(*asked)
        OUT.write_text(json.dumps(kept() | {key: row}, indent=1) + "\n", encoding="utf-8")
    return kept()


def markdown(found: dict[str, Any]) -> str:
    """A row for each data set and ε, a column for each peer; seconds of the processor behind the figures."""
    grouped: dict[tuple[str, float], dict[str, list[dict[str, Any]]]] = {}
    for key, row in found.items():
        peer, name, epsilon, _, _ = key.split(" | ")
        grouped.setdefault((name, float(epsilon)), {}).setdefault(peer, []).append(row)
    columns = ("dpbayes synth", *PEERS)
    lines = [f"| data set | ε | {' | '.join(columns)} |", f"| --- | ---: |{' --- |' * len(columns)}"]
    for (name, epsilon), by_peer in sorted(grouped.items(), key=lambda each: (each[0][1] != 1.0, each[0][1])):
        cells = [_cell(by_peer.get(peer, [])) for peer in columns]
        lines.append(f"| {name} | {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    done = [row for row in rows if "two-way" in row]
    if not done:
        return next((str(row[why]) for row in rows for why in ("unfinished", "failed", "absent") if why in row), "–")
    means = "/".join(f"{np.mean([row[what] for row in done]):.3f}" for what in ("two-way", "three-way", "auc"))
    return f"{means}, {np.mean([row['seconds'] for row in done]):.0f} s"


if __name__ == "__main__":
    print(markdown(run(sys.argv[1:])))
