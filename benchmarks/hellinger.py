"""The Hellinger mechanism: exact draws against plain enumeration, certificates, and what certification gains."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from dpbayes import Unit
from dpbayes.hellinger import calibration, candidates
from dpbayes.hellinger.certificate import certify
from dpbayes.hellinger.distance import Laws
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
DRAWS = 1000


def seconds(action: Callable[[], object], repeat: int = 5) -> float:
    found = []
    for _ in range(repeat):
        started = time.perf_counter()
        action()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def even(total: int, cells: int) -> np.ndarray:
    counts = np.full(cells, total // cells)
    counts[: total % cells] += 1
    return counts


def published(total: int, cells: int) -> Hellinger:
    return calibration.published(prior=(1.0,) * cells, total=total, epsilon=0.8, delta=1e-8, unit=UNIT)


def enumeration(made: Hellinger, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The authors' way, vectorised: list every posterior, score it, normalise, choose."""
    tables = candidates.all_tables(made.total, len(made.prior))
    prior = np.asarray(made.prior)
    own, others = prior + counts, prior + tables

    def log_beta(parameters: np.ndarray) -> np.ndarray:
        return gammaln(parameters).sum(axis=-1) - gammaln(parameters.sum(axis=-1))

    coefficient = np.exp(log_beta(0.5 * (own + others)) - 0.5 * (log_beta(own) + log_beta(others)))
    weights = np.exp(-made.exponent(counts) * np.sqrt(np.maximum(1.0 - coefficient, 0.0)))
    return tables[rng.choice(len(tables), size=DRAWS, p=weights / weights.sum())]


def drawing(rng: np.random.Generator) -> dict[str, object]:
    sizes = {(10**4, 4): 7, (10**5, 4): 5, (10**6, 4): 3, (10**6, 6): 3, (10**5, 16): 3}
    spent = {
        f"n={total}, d={cells}": seconds(
            lambda total=total, cells=cells: published(total, cells).draw_many(even(total, cells), DRAWS, rng), repeat
        )
        for (total, cells), repeat in sizes.items()
    }
    growth = spent["n=1000000, d=4"] / spent["n=10000, d=4"]
    return {f"seconds for {DRAWS} draws": spent, "growth of time from n=10^4 to 10^6 (a factor 100), d=4": growth}


def against_enumeration(rng: np.random.Generator) -> dict[str, object]:
    found: dict[str, object] = {}
    for total, cells in ((10**4, 2), (2000, 3)):
        made, counts = published(total, cells), even(total, cells)
        ours = seconds(lambda made=made, counts=counts: made.draw_many(counts, DRAWS, rng), 7)
        theirs = seconds(lambda made=made, counts=counts: enumeration(made, counts, rng), 3)
        found[f"n={total}, d={cells}"] = {"ratio": theirs / ours, "enumeration": theirs, "sampler": ours}
    return found


def certifying() -> dict[str, object]:
    found: dict[str, object] = {}
    for total in (200, 1000, 3000, 10_000):
        made = published(total, 2)
        started = time.perf_counter()
        exact = certify(made.prior, total, sharpness=0.8, smoothing=made.smoothing, delta=1e-8)
        found[f"n={total}, d=2"] = {"pure epsilon": exact.epsilon, "seconds": time.perf_counter() - started}
    return found


def gaining() -> dict[str, object]:
    found: dict[str, object] = {}
    for total in (200, 1000, 3000):
        started = time.perf_counter()
        tuned = calibration.certified(prior=(1.0, 1.0), total=total, epsilon=0.8, delta=1e-8, unit=UNIT)
        spent = time.perf_counter() - started
        laws = [Laws.of(made.prior, total, made.sharpness, made.smoothing) for made in (published(total, 2), tuned)]
        gains = {}
        for name, x in (("n/2", total // 2), ("n/10", total // 10)):
            as_printed, as_certified = (each.expected_distance((x, total - x)) for each in laws)
            gains[f"gain at {name}"] = as_printed / as_certified
        found[f"n={total}"] = {**gains, "seconds": spent}
    return found


def run() -> dict[str, object]:
    rng = np.random.default_rng(0)
    published(100, 2).draw_many([50, 50], 1, rng)  # imports and caches of libraries
    return {
        "drawing": drawing(rng),
        "enumeration over sampler": against_enumeration(rng),
        "certificates of the published mechanism, epsilon 0.8": certifying(),
        "expected H, published over certified": gaining(),
    }
