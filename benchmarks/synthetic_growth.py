"""Synthetic records of wider tables: processor seconds to plan, count and draw, to build, and to make 10⁶ records."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
import pyarrow as pa

import dpbayes as dp

LEVELS, CLASSES = 8, 6
CASES = ((15, 200_000), (50, 1_000_000), (100, 200_000))
"""Attributes and records."""


def table(attributes: int, records: int) -> pa.Table:
    """Latent classes, as text."""
    rng = np.random.default_rng(0)
    belongs = rng.integers(CLASSES, size=records)
    words = pa.array([*(f"v{level}" for level in range(LEVELS - 1)), "other"])
    columns = {}
    for number in range(attributes):
        law = np.cumsum(rng.dirichlet(np.full(LEVELS, 0.5), CLASSES), axis=1)
        codes = (rng.random(records)[:, None] > law[belongs]).sum(axis=1).clip(0, LEVELS - 1).astype(np.int8)
        columns[f"c{number}"] = pa.DictionaryArray.from_arrays(pa.array(codes), words).cast(pa.string())
    return pa.table(columns)


def measured(attributes: int, records: int) -> dict[str, Any]:
    words = (*(f"v{level}" for level in range(LEVELS - 1)), "other")
    schema = dp.Schema(
        id="wide",
        unit=dp.Unit(adjacency="add-remove"),
        attributes=tuple(
            dp.Attribute(name=f"c{number}", categories=words, missing="other") for number in range(attributes)
        ),
    )
    curator = dp.Curator(table(attributes, records), schema, seed=1)
    found: dict[str, Any] = {}
    started = time.process_time()
    target = dp.ApproxDP(epsilon=1, delta=1e-6)
    release = curator.release(dp.Synthetic(target="c0"), target, estimates=False)
    found["plan, count and draw, s"] = time.process_time() - started
    started = time.process_time()
    model = release.model()
    found["build, s"] = time.process_time() - started
    started = time.process_time()
    model.synthesise(1_000_000, rng=np.random.default_rng(0))
    found["10⁶ records, s"] = time.process_time() - started
    found["tables"], found["model"] = len(release.tables), model.form
    found["most memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def run() -> dict[str, Any]:
    return {
        f"{attributes} attributes, {records:,} records": measured(attributes, records) for attributes, records in CASES
    }
