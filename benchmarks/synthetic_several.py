"""How often numbers combined from several synthetic sets hold what the private table says, by kind of number.

Sets have as many independent records as the private half. Cells are all those of every attribute, of 25 pairs and of 20
triples; groups count if they have 30 private records or more. Means, correlations and slopes take the positions of
levels as numbers. Shares are combined with the sampling variances that each set states, the others without, so that
sampling stays part of their error. ``not enlarged`` refits to noise of the size that it has: what would be wrong.

``python -m benchmarks synthetic_several``: a few minutes; one release for each data set and ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import dpbayes as dp
from benchmarks.synthetic_quality import DATA, counted, halves, schema_of, table_of, triples
from dpbayes.models import several

RUNS = (("adult", 1.0), ("bank", 1.0), ("shopper", 1.0), ("creditcard", 1.0), ("adult", 0.1), ("adult", 10.0))
LEVELS = (0.9, 0.95)
PAIRS, SOME_TRIPLES, LEAST_GROUP = 25, 20, 30

Shares = Callable[[tuple[int, ...]], np.ndarray]


class Asked:
    """Which numbers are asked of a table of this shape."""

    def __init__(self, widths: list[int]) -> None:
        self.widths = widths
        pairs = list(combinations(range(len(widths)), 2))
        chosen = np.random.default_rng(3).permutation(len(pairs))[:PAIRS]
        self.pairs = [pairs[place] for place in chosen]
        self.triples = triples(len(widths))[:SOME_TRIPLES]

    def numbers(self, shares: Shares) -> dict[str, np.ndarray]:
        levels = [np.arange(width) for width in self.widths]
        singles = [shares((axis,)) for axis in range(len(self.widths))]
        pairs = [shares(axes) for axes in self.pairs]
        threes = [shares(axes) for axes in self.triples]
        return {
            "shares, one attribute": np.concatenate(singles),
            "shares, pairs": np.concatenate([each.ravel() for each in pairs]),
            "shares, triples": np.concatenate([each.ravel() for each in threes]),
            "means": np.array([one @ level for one, level in zip(singles, levels, strict=True)]),
            "means of groups": np.concatenate(
                [_divided(two @ levels[axes[1]], two.sum(axis=1)) for axes, two in zip(self.pairs, pairs, strict=True)]
            ),
            "shares within groups of two": np.concatenate(
                [_divided(three[..., -1], three.sum(axis=-1)).ravel() for three in threes]
            ),
            "correlations": np.array([_moments(two)[1] for two in pairs]),
            "slopes of two": np.concatenate([_slopes(three) for three in threes]),
        }

    def groups(self, shares: Shares, records: int) -> dict[str, np.ndarray]:
        """Which of the numbers about groups rest on enough private records."""
        two = np.concatenate([shares(axes).sum(axis=1) for axes in self.pairs])
        three = np.concatenate([shares(axes).sum(axis=-1).ravel() for axes in self.triples])
        enough = LEAST_GROUP / records
        return {"means of groups": two >= enough, "shares within groups of two": three >= enough}


def _divided(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    return np.divide(upper, lower, out=np.zeros_like(upper, dtype=np.float64), where=lower > 0)


def _moments(two: np.ndarray) -> tuple[float, float]:
    """Covariance and correlation."""
    a, b = (np.arange(width) for width in two.shape)
    a, b = a - two.sum(axis=1) @ a, b - two.sum(axis=0) @ b
    joint, one, other = float(a @ two @ b), float(two.sum(axis=1) @ a**2), float(two.sum(axis=0) @ b**2)
    return joint, joint / max(np.sqrt(one * other), 1e-12)


def _slopes(three: np.ndarray) -> np.ndarray:
    """Least squares of the last attribute on the two others."""
    pairs = {axes: three.sum(axis=next(iter({0, 1, 2} - set(axes)))) for axes in ((0, 1), (0, 2), (1, 2))}
    own = [_moments(np.diag(three.sum(axis=tuple({0, 1, 2} - {axis}))))[0] for axis in (0, 1)]
    crossed = {axes: _moments(two)[0] for axes, two in pairs.items()}
    square = np.array([[own[0], crossed[0, 1]], [crossed[0, 1], own[1]]]) + 1e-9 * np.eye(2)
    return np.asarray(np.linalg.solve(square, [crossed[0, 2], crossed[1, 2]]))


def covered(name: str, epsilon: float, *, enlarged: bool = True) -> dict[str, Any]:
    """Per cent of numbers inside their intervals, at each level."""
    sizes, private, _ = halves(name, 0)
    names, widths = list(sizes), list(sizes.values())
    curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=1)
    target = dp.ApproxDP(epsilon=epsilon, delta=1e-6)
    model = curator.release(dp.Synthetic(target="target"), target, estimates=False).model()
    if model.fits is None:
        return {"form": model.form}
    made = several.Several.of(model) if enlarged else _plain(model)
    asked, rng, records = Asked(widths), np.random.default_rng(5), len(private)
    truth_of = _from(private, widths)
    truth, enough = asked.numbers(truth_of), asked.groups(truth_of, records)
    found = []
    for each in made.models:
        drawn = each.sample(records, rng)
        found.append(asked.numbers(_from(np.stack([drawn[name] for name in names], axis=1), widths)))
    rows: dict[str, Any] = {"factor": round(made.factor, 2)}
    for level in LEVELS:
        inside: list[np.ndarray] = []
        for kind, true in truth.items():
            each = np.array([one[kind] for one in found])
            stated = each * (1.0 - each) / records if kind in list(truth)[:3] else None
            joined = several.combine(each, stated, level=level)
            margin = 0.5 / records if stated is not None else 1e-9  # counts are whole numbers
            hit = (joined.lower - margin <= true) & (true <= joined.upper + margin)
            inside.append(hit[enough.get(kind, np.ones(len(hit), dtype=bool))])
            rows[f"{kind}, {level:g}"] = round(100 * float(inside[-1].mean()), 1)
        rows[f"all kinds alike, {level:g}"] = round(100 * float(np.mean([each.mean() for each in inside])), 1)
    return rows


def _plain(model: Any) -> several.Several:
    """Refits to noise that is not enlarged."""
    kept, several._factor = several._factor, lambda _: 1.0
    try:
        return replace(several.Several.of(model), factor=1.0)
    finally:
        several._factor = kept


def _from(coded: np.ndarray, widths: list[int]) -> Shares:
    return lambda axes: counted(coded, axes, tuple(widths[axis] for axis in axes))


def run() -> dict[str, Any]:
    if not DATA.exists():
        return {}
    found = {f"{name}, ε = {epsilon:g}": covered(name, epsilon) for name, epsilon in RUNS}
    return found | {f"{name}, ε = 1, not enlarged": covered(name, 1.0, enlarged=False) for name in ("adult", "shopper")}


if __name__ == "__main__":
    import json

    print(json.dumps(run(), indent=1, ensure_ascii=False))
