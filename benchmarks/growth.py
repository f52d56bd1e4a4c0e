"""How costs grow: with the number of records N, of cells d, and of releases K. Processor seconds, and the slope."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

from dpbayes import ApproxDP, Attribute, Curator, Dirichlet, Gaussian, Ledger, Schema, Tables, Unit
from dpbayes.inference import GaussianNoise, Measurement, Posterior
from dpbayes.ledger.account import Entry

UNIT = Unit(adjacency="replace-one")
REPEAT = 3


def run() -> dict[str, object]:
    return {
        "release of one table of N records": curve(released, (10**4, 10**5, 10**6, 10**7)),
        "draw of d cells": curve(drawn, (10**4, 10**5, 10**6, 10**7)),
        "estimate of d cells": curve(estimated, (10**2, 10**3, 10**4, 10**5, 10**6)),
        "composition of K different releases": curve(composed, (10, 100, 1000)),
    }


def curve(prepare: Callable[[int], Callable[[], object]], sizes: tuple[int, ...]) -> dict[str, object]:
    """Least processor seconds for each size, and the slope of the last tenfold step: 1 is linear."""
    seconds = {}
    for size in sizes:
        action = prepare(size)
        runs = []
        for _ in range(REPEAT):
            started = time.process_time()
            action()
            runs.append(time.process_time() - started)
        seconds[size] = min(runs)
    *_, before, last = seconds.values()
    return {"seconds": {f"{size:g}": round(value, 5) for size, value in seconds.items()}} | {
        "slope at the end": round(float(np.log10(last / before)), 2)
    }


def released(records: int) -> Callable[[], object]:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(10, size=records) for name in ("a", "b")})
    categories = tuple(map(str, range(10)))
    attributes = tuple(Attribute(name=name, categories=categories, unknown="drop", missing="drop") for name in "ab")
    schema = Schema(id="growth", unit=UNIT, attributes=attributes)
    curator, target = Curator(table, schema), ApproxDP(epsilon=1, delta=1e-6)
    job = Tables("a,b", mechanism="gaussian")
    return lambda: curator.release(job, target)


def drawn(cells: int) -> Callable[[], object]:
    counts = np.random.default_rng(0).integers(0, 20, cells)
    mechanism = Dirichlet(weight=1, concentration=10, unit=UNIT)
    return lambda: mechanism.draw(counts)


def estimated(cells: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20 * cells, rng.dirichlet(np.full(cells, 0.5)))
    noisy = counts + np.rint(rng.normal(0, 8, cells))
    measured = Measurement(axes=("cell",), values=noisy, noise=GaussianNoise(sigma=8.0))
    return lambda: Posterior([measured], {"cell": cells}, records=int(counts.sum())).estimate(("cell",))


def composed(releases: int) -> Callable[[], object]:
    from benchmarks.core import mixed
    from dpbayes.privacy import cost

    def compose() -> object:
        cost._one.cache_clear()
        cost._composed.cache_clear()
        return mixed(releases).epsilon(1e-6)

    return compose


def charge(entries: tuple[int, ...] = (10, 20_000)) -> dict[str, object]:
    """Processor seconds of a charge by a new process on ledgers of so many entries, once one has read them whole."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for many in entries:
            path = _ledger(f"{folder}/{many}.ledger", many)
            runs = [subprocess.run([sys.executable, "-c", CHARGE, path], capture_output=True, check=True, text=True)
                    for _ in range(4)]  # fmt: skip
            seconds[many] = min(float(run.stdout) for run in runs[1:])
    return {"seconds": seconds, "last over first (goal 1.5)": round(seconds[entries[-1]] / seconds[entries[0]], 2)}


CHARGE = """
import sys, time
from dpbayes import Cost, Gaussian, Ledger, Unit
ledger, cost = Ledger(sys.argv[1]), Cost.of(Gaussian(sigma=3e4, unit=Unit(adjacency="replace-one")))
start = time.process_time()
ledger.charge("s", cost)
print(time.process_time() - start)
"""


def _ledger(path: str, many: int) -> str:
    """A ledger of so many entries, written at once."""
    ledger, record = Ledger(path), {"mechanism": Gaussian(sigma=3e4, unit=UNIT).record(), "times": 1}
    ledger.open("s", ApproxDP(epsilon=4, delta=1e-6), UNIT)
    last = ledger.account("s").head
    with closing(sqlite3.connect(path)) as connection, connection:
        for _ in range(many - 1):
            last = Entry.write(dataset="s", after=last, kind="charge", about="sex", lock="", schema="", software={},
                               releases=[record])  # fmt: skip
            connection.execute("INSERT INTO dpbayes_entries VALUES ('s', ?, ?, ?)", [last.serial, last.text, last.hash])
        connection.execute("UPDATE dpbayes_datasets SET head = ?", [last.hash])
    return path


def planning(counts: tuple[int, ...] = (12, 25, 50)) -> dict[str, object]:
    """Processor seconds of planning all pairs of so many attributes, and the exponent over the number of tables."""
    seconds = {}
    for many in counts:
        attributes = tuple(Attribute(name=f"a{i}", categories=("x", "y", "z"), missing="drop") for i in range(many))
        schema = Schema(id="growth", unit=UNIT, attributes=attributes)
        columns = {each.name: ["x"] for each in attributes}
        curator = Curator(columns, schema)
        job = Tables(*(f"a{i},a{j}" for i in range(many) for j in range(i)))
        start = time.process_time()
        curator.plan(job, ApproxDP(epsilon=1, delta=1e-6))
        seconds[many * (many - 1) // 2] = time.process_time() - start
    return {"seconds": seconds, "exponent": exponent(seconds)}


def exponent(seconds: dict[int, float]) -> float:
    """The slope of what comes beyond the smallest size, in logarithms: 1 is linear, whatever the start costs."""
    (first, fixed), *others = seconds.items()
    beyond = [(size - first, max(value - fixed, 1e-6)) for size, value in others]
    return round(float(np.polyfit(*np.log(np.array(beyond)).T, 1)[0]), 2)
