"""What the number of bins does to total variation: the same records, the same noise, tables of fewer cells.

Figures of other studies were measured with bins that they do not state. Naive Bayes has little noise at ε = 1, so its
distance tells how fine the bins were: compare figures at bins where naive Bayes comes out alike.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import dpbayes as dp
from benchmarks.synthetic_quality import MAIN, counted, distances, halves, methods, schema_of, table_of
from dpbayes.models.fidelity import expected_distances

BINS, EPSILON = (5, 6, 10), 1.0


def measured(name: str, bins: int, seed: int = 0) -> dict[str, float]:
    """Distances of our records and of naive Bayes, of the best linear estimates, and what noise predicts for these."""
    sizes, private, _ = halves(name, 0, bins)
    names = list(sizes)
    found: dict[str, float] = {"cells of a pair": float(np.mean([a * b for a, b in combinations(sizes.values(), 2)]))}
    for method in ("dpbayes synth", "naive Bayes"):
        curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=seed)
        target = dp.ApproxDP(epsilon=EPSILON, delta=1e-6)
        model = curator.release(methods(sizes)[method], target, estimates=False).model()
        found[f"{method}, two-way"], found[f"{method}, three-way"] = distances(model, sizes, private)
        if method == "dpbayes synth":
            noise, joint = expected_distances(model.published), model.published.posterior.joint
            errors = []
            for pair in noise:
                axes = (names.index(pair[0]), names.index(pair[1]))
                truth = counted(private, axes, (sizes[pair[0]], sizes[pair[1]])) * len(private)
                errors.append(0.5 * float(np.abs(joint.linear(pair)[0] - truth).sum()) / len(private))
            found["linear estimates, two-way"] = float(np.mean(errors))
            found["noise predicts"] = float(np.mean(list(noise.values())))
    return {what: round(value, 4) for what, value in found.items()}


def run() -> dict[str, Any]:
    return {f"{name}, {bins} bins": measured(name, bins) for name in MAIN for bins in BINS}
