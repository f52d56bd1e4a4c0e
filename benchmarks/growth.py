"""How costs grow: with the number of records N, of cells d, and of releases K. Processor seconds, and the slope."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dpbayes import ApproxDP, Attribute, Curator, Dirichlet, Schema, Tables, Unit
from dpbayes.inference import GaussianNoise, Measurement, Posterior

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
