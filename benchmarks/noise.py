"""Integer noise: exact inversion against the bare ChaCha20 stream and against OpenDP's samplers, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpbayes import Gaussian, Laplace, Unit
from dpbayes.mechanisms import exact, noise
from dpbayes.mechanisms.exact import Law
from dpbayes.mechanisms.noise import words
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)
LAWS = {
    "gaussian 5": Law.gaussian(5.0),
    "gaussian 20": Law.gaussian(20.0),
    "gaussian 600": Law.gaussian(600.0),
    "laplace 2": Law.laplace(2.0),
    "laplace 20": Law.laplace(20.0),
    "gaussian 1e6": Law.gaussian(1e6),
    "laplace 1e6": Law.laplace(1e6),
}


def processor(action: Callable[[], object], repeat: int = 5) -> float:
    """Median seconds of the processor, which others on the machine disturb least."""
    found = []
    for _ in range(repeat):
        started = time.process_time()
        action()
        found.append(time.process_time() - started)
    return statistics.median(found)


def opendp(name: str, cells: int) -> Callable[[], object]:
    """OpenDP's sampler of the same law."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    kind, scale = name.split()
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    if kind == "gaussian":
        made = measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), float(scale))
    else:
        made = measurements.make_laplace(domain, metrics.l1_distance(T="i64"), float(scale))
    zeros = [0] * cells
    return lambda: made(zeros)


def fresh(law: Law, cells: int) -> None:
    exact._tables.clear()
    noise.draw(law, cells, None)


def large(cells: int) -> dict[str, dict[str, float]]:
    """Nanoseconds of the processor for each cell; with the table computed anew, and with one at hand."""
    found, few, source = {}, 2000, words(None)
    for name, law in LAWS.items():
        taken = [0]

        def counted(count: int, taken: list[int] = taken) -> np.ndarray:
            taken[0] += count
            return source(count)

        exact.table_for(law, cells, repeatable=True).fill(np.empty(cells, dtype=np.int64), counted)
        stream = processor(lambda n=taken[0]: [source(min(2**15, n - start)) for start in range(0, n, 2**15)])
        cold, warm = (
            processor(lambda law=law: fresh(law, cells)),
            processor(lambda law=law: noise.draw(law, cells, None)),
        )
        theirs = processor(opendp(name, few), 3) / few
        found[name] = {
            "words": taken[0] / cells,
            "stream_ns": 1e9 * stream / cells,
            "cold_ns": 1e9 * cold / cells,
            "warm_ns": 1e9 * warm / cells,
            "opendp_ns": 1e9 * theirs,
            "cold_over_stream": cold / stream,
            "warm_over_stream": warm / stream,
            "opendp_over_cold": theirs * cells / cold,
        }
    return found


def small() -> dict[str, dict[str, float]]:
    """Microseconds of one draw of a small table, against OpenDP's with its measurement made anew, as it used to be."""
    found = {}
    for name in ("gaussian 20", "gaussian 600", "laplace 20", "laplace 600", "gaussian 1e9"):
        kind, scale = name.split()
        mechanism = (
            Gaussian(sigma=float(scale), unit=UNIT) if kind == "gaussian" else Laplace(scale=float(scale), unit=UNIT)
        )
        for cells in (1, 10, 100, 1000):
            counts = np.zeros(cells, dtype=np.int64)

            def cold(mechanism=mechanism, counts=counts) -> None:
                exact._tables.clear()
                mechanism.draw(counts)

            found[f"{name}, {cells} cells"] = {
                "cold_us": 1e6 * processor(cold, 15),
                "warm_us": 1e6 * processor(lambda mechanism=mechanism, counts=counts: mechanism.draw(counts), 15),
                "opendp_us": 1e6 * processor(lambda name=name, cells=cells: opendp(name, cells)(), 15),
            }
    return found


def run() -> dict[str, object]:
    noise.once()
    return {
        "selftest_first_draw_ms": 1e3 * processor(lambda: noise.check(noise.FEW, noise.draw)),
        "selftest_doctor_ms": 1e3 * processor(lambda: noise.check(noise.MANY, noise.draw)),
        "cells_100_000": large(10**5),
        "cells_1_000_000": large(10**6),
        "small": small(),
    }
