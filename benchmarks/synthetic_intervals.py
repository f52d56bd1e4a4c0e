"""How often 90 % intervals hold the truth: those of the linear law for pairs, and the model's for pairs and triples.

The model's join three errors. One is the spread of fits to the tables with their noise drawn once more. Another is
what the fits of the folds missed in the copies they had not seen, beyond the noise of these copies, for cells of about
that size. The third is chance: a table that no measured one determines holds dependences that these very records have
by accident, about √count in a cell, or √(m·count) where a person may have m rows. None is a theorem.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

import dpbayes as dp
from benchmarks.synthetic_quality import DATA, halves, schema_of, table_of, triples
from dpbayes.models.latent import LatentModel
from dpbayes.models.several import REFITS, _misses, _refits

NAMES = ("adult", "bank", "shopper", "creditcard")
LEVEL, EPSILON = 0.9, 1.0


class Unsure:
    """The spread of refits, and the squared miss of fits by the size of a cell."""

    def __init__(self, model: LatentModel) -> None:
        self.model = model.spec.fitted(model.published) if model.kept else model
        assert self.model.fits is not None
        rng = np.random.default_rng(int(model.published.releases[0].digest()[16:32], 16))
        self.refits = list(_refits(self.model, self.model.fits, REFITS, 1.0, rng))
        self.sizes, self.misses = _misses(self.model.fits)

    def interval(self, names: list[str], level: float) -> tuple[np.ndarray, np.ndarray]:
        """Counts of a table of any attributes of the mixture."""
        model, joint = self.model, self.model.published.posterior.joint
        ends = np.cumsum([model.laws[name].shape[1] for name in model.joined])[:-1]
        tables = []
        for weights, shares in self.refits:
            laws = dict(zip(model.joined, np.split(shares, ends, axis=1), strict=True))
            tables.append(replace(model, weights=weights, laws=laws)._mixed(names))
        centre, total = model.shares(names), max(joint.total, 1.0)
        missed = np.interp(np.log(np.maximum(centre, 1e-12)), np.log(self.sizes), self.misses)
        chance = 0.0 if joint.estimable(names) else joint.repeats.most * centre * (1.0 - centre) / total
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(np.var(tables, axis=0, ddof=1) + missed + chance)
        return np.maximum(np.floor((centre - half) * total), 0.0), np.ceil((centre + half) * total)


def covered(name: str, seed: int = 1) -> dict[str, Any]:
    """Shares of cells inside, overall and by size, and widths; every third pair and thirty triples."""
    sizes, private, _ = halves(name, 0)
    names, widths = list(sizes), list(sizes.values())
    curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=seed)
    job = dp.Synthetic(target="target")
    model = curator.release(job, dp.ApproxDP(epsilon=EPSILON, delta=1e-6), estimates=False).model()
    unsure, joint = Unsure(model), model.published.posterior.joint
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
            lower, upper = unsure.interval(asked, LEVEL)
            inside.append(((lower <= truth) & (truth <= upper)).ravel())
            width.append((upper - lower).ravel())
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
