"""How often 90 % intervals hold the truth: those of the linear law for pairs, and the model's for pairs and triples."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

import dpbayes as dp
from benchmarks.synthetic_quality import DATA, halves, schema_of, table_of, triples
from dpbayes.models.several import Uncertainty

NAMES = ("adult", "bank", "shopper", "creditcard")
LEVEL, EPSILON = 0.9, 1.0


def covered(name: str, seed: int = 1) -> dict[str, Any]:
    """Shares of cells inside, overall and by size, and widths; every third pair and thirty triples."""
    sizes, private, _ = halves(name, 0)
    names, widths = list(sizes), list(sizes.values())
    curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=seed)
    job = dp.Synthetic(target="target")
    model = curator.release(job, dp.ApproxDP(epsilon=EPSILON, delta=1e-6), estimates=False).model()
    unsure, joint = Uncertainty.of(model), model.published.posterior.joint
    found: dict[str, Any] = {}
    noise = 1.0
    for order, chosen in (
        ("pairs", list(combinations(range(len(names)), 2))[::3]),
        ("triples", triples(len(names))[:30]),
    ):
        inside, linear, width, linear_width, truths = [], [], [], [], []
        for axes in chosen:
            shape = [widths[axis] for axis in axes]
            cells = np.ravel_multi_index(tuple(private[:, axis] for axis in axes), shape)
            truth = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
            asked = [names[axis] for axis in axes]
            interval = unsure.interval(asked, LEVEL)
            inside.append(((interval.lower <= truth) & (truth <= interval.upper)).ravel())
            width.append((interval.upper - interval.lower).ravel())
            truths.append(truth.ravel())
            if order == "pairs":
                mean, variance = joint.linear(asked)
                half = float(ndtri(0.5 + LEVEL / 2)) * np.sqrt(variance)
                linear.append(((np.floor(mean - half) <= truth) & (truth <= np.ceil(mean + half))).ravel())
                linear_width.append(2 * half.ravel())
        truth = np.concatenate(truths)
        if order == "pairs":
            noise = float(np.concatenate(linear_width).mean()) / (2 * float(ndtri(0.5 + LEVEL / 2)))
        groups = {
            "all": truth >= 0,
            "empty": truth == 0,
            "up to σ": (truth > 0) & (truth <= noise),
            "above σ": truth > noise,
        }
        found[f"{order}, model"] = {group: _mean(np.concatenate(inside)[where]) for group, where in groups.items()}
        if order == "pairs":
            found["pairs, linear"] = {group: _mean(np.concatenate(linear)[where]) for group, where in groups.items()}
            found["width, model over linear"] = _mean(np.concatenate(width)) / _mean(np.concatenate(linear_width))
    return found


def _mean(values: np.ndarray) -> float:
    return round(float(values.mean()), 4) if values.size else float("nan")


def run() -> dict[str, Any]:
    return {name: covered(name) for name in NAMES} if DATA.exists() else {}
