"""Whether tables of three attributes pay, and whether choosing them privately does.

A part of the precision is taken from the pairs and given to triples of equal noise; the fits go on for a while with the
triples beside the pairs. Triples are chosen in two ways. *Free*: from what was drawn, by how far the pairs of a triple
are from independent. *Selected*: by the L1 distance between the model and the private table, net of the noise to come,
with the exponential mechanism (``Selection``), at a tenth of the triples' part. Scores are whole numbers and one person
moves each by one at most, in either direction, so R = 2 (docs/explanation/proofs/selection.md). *Perfect* selects by
the same scores without noise and unpaid: what no mechanism can beat. The whole is composed exactly and printed as ε.

``python -m benchmarks synthetic_triples``: two to three minutes of processor time; one release each, δ = 10⁻⁶.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import dpbayes as dp
from benchmarks.synthetic_quality import DATA, auc, counted, distances, halves, schema_of, table_of
from dpbayes.mechanisms.selection import Selection, numbers_below
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.models.fission import Fits
from dpbayes.models.latent import LatentModel, _averaged
from dpbayes.models.mixture import Mixture, Singles, Statistics

RUNS = (("adult", 10.0, 30, 0.25), ("shopper", 10.0, 40, 0.3), ("adult", 3.0, 15, 0.2), ("shopper", 3.0, 18, 0.2))
"""Data set, ε, triples, and their part of the precision."""

SELECTING = 0.1
STEPS = 150
MOST_CELLS = 20_000
DELTA = 1e-6
UNIT = dp.Unit(adjacency="add-remove")

Axes = tuple[int, ...]


class Three(Mixture):
    """A mixture that is fitted to triples too; they are set on the class for the time of a fit."""

    triples: Sequence[tuple[tuple[slice, ...], Singles]] = ()
    precision = np.float32(0.0)

    def _gradients(self, seen: Statistics, *pulled: Any) -> tuple[Singles, Singles]:
        of_weights, of_laws = super()._gradients(seen, *pulled)
        weights, shares = self.laws()
        pushed, alone = np.zeros_like(shares), np.zeros_like(weights)
        for (first, second, third), noisy in self.triples:
            one, two, three = shares[:, first], shares[:, second], shares[:, third]
            both = (one[:, :, None] * two[:, None, :]).reshape(len(weights), -1)
            error = ((both * weights[:, None]).T @ three - noisy.reshape(-1, noisy.shape[2])) * self.precision
            back = three @ error.T
            alone += (both * back).sum(axis=1)
            cells = back.reshape(len(weights), one.shape[1], two.shape[1])
            pushed[:, first] += np.einsum("kab,kb->ka", cells, two)
            pushed[:, second] += np.einsum("kab,ka->kb", cells, one)
            pushed[:, third] += both @ error
        more = weights[:, None] * shares * pushed
        total = np.add.reduceat(more, self.starts[:-1], axis=1)
        more -= shares * np.repeat(total, np.diff(self.starts), axis=1)
        if self.labels is not None:
            more[:, self.tied] = 0.0
        return of_weights + weights * (alone - weights @ alone), of_laws + more


def refitted(
    model: LatentModel, tables: Sequence[tuple[Axes, np.ndarray]], sigma: float, records: float
) -> LatentModel:
    """All fits, continued with these triples of noisy shares."""
    assert model.fits is not None
    seen, names = model.seen(), list(model.laws)
    place = {name: slice(*seen.starts[at : at + 2]) for at, name in enumerate(model.joined)}
    Three.triples = [(tuple(place[names[axis]] for axis in axes), noisy.astype(np.float32)) for axes, noisy in tables]
    Three.precision = np.float32((records / sigma) ** 2)
    made = []
    for fit in model.fits.all:
        copied = fit.copy()
        more = Three(**{name: getattr(copied, name) for name in Mixture.__slots__})
        more.fit(seen, model.fits.pull, STEPS)
        made.append(more)
    weights, laws = _averaged(
        Fits(pull=model.fits.pull, folds=(), whole=tuple(made)), model.joined, model.published.schema
    )
    return replace(model, weights=weights, laws=model.laws | laws)


def compared(name: str, epsilon: float, number: int, part: float) -> dict[str, Any]:
    """Distances and AUC of pairs alone, and with triples that were chosen in each way."""
    sizes, private, public = halves(name, 0)
    names, widths, records = list(sizes), list(sizes.values()), len(private)

    def released(target: float) -> dp.Release:
        curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=1)
        return curator.release(dp.Synthetic(target="target"), dp.ApproxDP(epsilon=target, delta=DELTA), estimates=False)

    def shape(axes: Axes) -> tuple[int, ...]:
        return tuple(widths[axis] for axis in axes)

    def scored(model: LatentModel) -> dict[str, float]:
        two, three = distances(model, sizes, private)
        drawn = model.sample(records, np.random.default_rng(0), even=True)
        area = auc(np.stack([drawn[each] for each in sizes], axis=1), public)
        return {"two-way": round(two, 4), "three-way": round(three, 4), "auc": round(area, 4)}

    whole = _sigma(epsilon)
    less = released(_at_precision(epsilon, 1.0 - part, whole))
    model = less.model()
    paid = part * (1.0 - SELECTING)
    sigmas = {"free": whole * math.sqrt(number / part), "selected": whole * math.sqrt(number / paid)}
    sharpness = math.sqrt(8.0 * SELECTING * part / (2.0 * whole**2) / number)
    selection = Selection(sharpness=sharpness, unit=UNIT)
    spent = less.cost + dp.Cost.of(dp.Gaussian(sigma=sigmas["selected"], unit=UNIT), number)
    candidates = [axes for axes in combinations(range(len(names)), 3) if math.prod(shape(axes)) <= MOST_CELLS]
    noise = {axes: round(math.sqrt(2 / math.pi) * sigmas["selected"] * math.prod(shape(axes))) for axes in candidates}

    def score(axes: Axes) -> int:
        """The lower the better: minus the L1 distance in whole records, plus the noise to come."""
        fitted = np.rint(model.shares([names[axis] for axis in axes]) * records).astype(np.int64)
        true = np.rint(counted(private, axes, shape(axes)) * records).astype(np.int64)
        return int(noise[axes] - np.abs(true - fitted).sum())

    scores = {axes: score(axes) for axes in candidates}
    apart = {
        pair: np.abs(both - np.outer(both.sum(axis=1), both.sum(axis=0))).sum()
        for pair in combinations(range(len(names)), 2)
        for both in (model.shares([names[axis] for axis in pair]),)
    }

    def hoped(axes: Axes) -> float:
        """From what was drawn: a fifth of the dependence in the pairs may be what a triple adds, net of the noise."""
        return 0.2 * records * sum(apart[pair] for pair in combinations(axes, 2)) - noise[axes]

    chosen: dict[str, Callable[[], list[Axes]]] = {
        "free": lambda: sorted(candidates, key=hoped, reverse=True)[:number],
        "selected": lambda: _selected(scores, selection, number),
        "perfect": lambda: sorted(candidates, key=scores.__getitem__)[:number],
    }
    found: dict[str, Any] = {"pairs alone": scored(released(epsilon).model())}
    found["composed ε, selected"] = round((spent + dp.Cost.of(selection, number)).epsilon(DELTA), 4)
    for way, pick in chosen.items():
        sigma, rng, started = sigmas.get(way, sigmas["free"]), np.random.default_rng(5), time.process_time()
        tables = [
            (axes, counted(private, axes, shape(axes)) + rng.normal(0, sigma / records, shape(axes))) for axes in pick()
        ]
        made = refitted(model, tables, sigma, records)
        found[way] = {"seconds": round(time.process_time() - started, 1), **scored(made)}
    return found


def _selected(scores: dict[Axes, int], selection: Selection, number: int) -> list[Axes]:
    """One after the other, each from those that are left."""
    left, taken, below = dict(scores), [], numbers_below(np.random.default_rng(7))
    for _ in range(number):
        axes = list(left)
        taken.append(axes[selection.choose([left[each] for each in axes], spread=2, below=below)])
        left.pop(taken[-1])
    return taken


def _at_precision(epsilon: float, part: float, whole: float) -> float:
    """The ε at which Gaussian noise has this part of the precision."""
    low, high = 0.2 * epsilon, epsilon
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if (whole / _sigma(middle)) ** 2 < part else (low, middle)
    return low


def _sigma(epsilon: float) -> float:
    """Of all draws together, as if they were one: integer noise composes like this only where each draw is wide."""
    draws = 100
    found = dp.calibrate(gaussian_noise(UNIT), dp.ApproxDP(epsilon=epsilon, delta=DELTA), times=draws)
    return found.sigma / math.sqrt(draws)


def run() -> dict[str, Any]:
    if not DATA.exists():
        return {}
    return {f"{name}, ε = {epsilon:g}": compared(name, epsilon, number, part) for name, epsilon, number, part in RUNS}


if __name__ == "__main__":
    import json

    print(json.dumps(run(), indent=1, ensure_ascii=False))
