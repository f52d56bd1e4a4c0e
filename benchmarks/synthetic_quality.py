"""How near synthetic records of a whole table come: eight public data sets and two made-up ones, against baselines.

Half of each file, at random, is private; the other half plays the public knowledge and the test set. Levels are those
of the public half; numeric columns of more than ten values are cut there into ten bins of equal frequency, a value that
fills a bin having one of its own. The last level takes in all others. Add/remove, δ = 10⁻⁶. Distances are total
variation between the private half and the model's own tables, in the mean over all pairs and over 100 random triples;
AUC is that of sklearn's HistGradientBoosting with its default settings, trained on as many records as are private and
tested on the other half. Which sets were looked at before, docs/reproduction/synthetic.md says.

``python -m benchmarks synthetic_quality`` runs everything; results are kept run by run in out/synthetic-quality.json,
and what is there is not run again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpbayes as dp

OUT = Path("out") / "synthetic-quality.json"
DATA = Path(os.environ.get("DPBAYES_DATA", Path(__file__).resolve().parents[2] / "shared" / "datasets"))
BINS, TRIPLES = 10, 100
MAIN = ("adult", "bank", "shopper", "germancredit", "creditcard")
OTHERS = ("thyroid", "chain", "classes", "spam", "digit")
EPSILONS = (1.0, 0.1, 0.5, 3.0, 10.0)


def edges_of(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Inner edges of bins of equal frequency; a value that fills one has it to itself."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) <= bins:
        return found[1:]
    inner, left, open_bins, mass = [], int(counts.sum()), bins, 0
    for value, count in zip(found, counts, strict=True):
        goal = left / open_bins
        if mass > 0 and open_bins > 1 and (mass + count > 1.5 * goal or mass >= goal):
            inner.append(value)
            left, open_bins, mass = left - mass, open_bins - 1, 0
        mass += int(count)
    return np.array(inner)


def made_up(name: str) -> dict[str, np.ndarray]:
    """20,000 records of ten attributes with five levels: a Markov chain, or five latent classes."""
    rng = np.random.default_rng(20240229)
    rows, columns, levels = 20_000, 10, 5
    if name == "chain":
        steps = rng.dirichlet(np.full(levels, 0.3), (columns, levels))
        table = [rng.integers(levels, size=rows)]
        for step in steps[1:]:
            table.append((rng.random(rows)[:, None] > np.cumsum(step, axis=1)[table[-1]]).sum(axis=1).clip(0, 4))
    else:
        laws = rng.dirichlet(np.full(levels, 0.5), (columns, 5))
        belongs = rng.integers(5, size=rows)
        table = [(rng.random(rows)[:, None] > np.cumsum(law, axis=1)[belongs]).sum(axis=1).clip(0, 4) for law in laws]
    columns_of = {f"x{place}": column.astype(str) for place, column in enumerate(table[:-1])}
    return {**columns_of, "target": (table[-1] > 1).astype(np.int64)}


def halves(name: str, split: int, bins: int = BINS) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """Levels of each attribute, and both halves as positions among them."""
    if name in ("chain", "classes"):
        columns = made_up(name)
    else:
        frame = _read(name)
        columns = {each: frame.column(each).to_numpy(zero_copy_only=False) for each in frame.column_names}
    rows = len(columns["target"])
    order = np.random.default_rng(split).permutation(rows)
    sizes, private, public = {}, [], []
    for each, values in columns.items():
        known = values[order[rows // 2 :]]
        if values.dtype.kind in "if" and each != "target" and len(np.unique(values)) > bins:
            inner = edges_of(known, bins)
            coded = np.searchsorted(inner, values, side="right")
            sizes[each] = len(inner) + 1
        else:
            levels = {value: place for place, value in enumerate(sorted(set(known.tolist()), key=str))}
            coded = np.array([levels.get(value, len(levels) - 1) for value in values.tolist()])
            sizes[each] = len(levels)
        private.append(coded[order[: rows // 2]])
        public.append(coded[order[rows // 2 :]])
    return sizes, np.stack(private, axis=1), np.stack(public, axis=1)


def _read(name: str) -> pa.Table:
    from pyarrow import parquet

    return parquet.read_table(DATA / f"{name}.parquet")


def schema_of(name: str, sizes: dict[str, int]) -> dp.Schema:
    return dp.Schema(
        id=name,
        unit=dp.Unit(adjacency="add-remove"),
        attributes=tuple(
            dp.Attribute(name=each, categories=(*(f"v{level}" for level in range(size - 1)), "other"), missing="other")
            for each, size in sizes.items()
        ),
    )


def table_of(sizes: dict[str, int], coded: np.ndarray) -> pa.Table:
    words = {each: np.array([*(f"v{level}" for level in range(size - 1)), "other"]) for each, size in sizes.items()}
    return pa.table({each: words[each][coded[:, place]] for place, each in enumerate(sizes)})


def counted(coded: np.ndarray, axes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    cells = np.ravel_multi_index(tuple(coded[:, axis] for axis in axes), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(coded)


def triples(width: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(0)
    found: set[tuple[int, ...]] = set()
    while len(found) < min(TRIPLES, width * (width - 1) * (width - 2) // 6):
        found.add(tuple(sorted(rng.choice(width, 3, replace=False).tolist())))
    return sorted(found)


def distances(model: Any, sizes: dict[str, int], private: np.ndarray) -> tuple[float, float]:
    """Mean total variation of pairs and of triples: from the model's own tables, or from 10⁶ even records."""
    names, widths = list(sizes), list(sizes.values())
    if hasattr(model, "shares") and callable(model.shares):
        shares = lambda axes, _: model.shares([names[axis] for axis in axes])  # noqa: E731
    else:
        drawn = model.sample(1_000_000, np.random.default_rng(0), even=True)
        records = np.stack([drawn[name] for name in names], axis=1)
        shares = lambda axes, shape: counted(records, axes, shape)  # noqa: E731
    means = []
    for chosen in (list(combinations(range(len(names)), 2)), triples(len(names))):
        errors = []
        for axes in chosen:
            shape = tuple(widths[axis] for axis in axes)
            errors.append(0.5 * float(np.abs(shares(axes, shape) - counted(private, axes, shape)).sum()))
        means.append(float(np.mean(errors)))
    return means[0], means[1]


def auc(records: np.ndarray, test: np.ndarray) -> float:
    """Of a boosted model trained on the records; the target is the last column."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    kept = np.bincount(records[:, -1]) >= 10
    train = records[kept[records[:, -1]]]
    if len(np.unique(train[:, -1])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=0).fit(train[:, :-1], train[:, -1])
    tested = test[np.isin(test[:, -1], model.classes_)]
    there = np.isin(model.classes_, tested[:, -1])
    found = model.predict_proba(tested[:, :-1])[:, there]
    if there.sum() == 2:
        return float(roc_auc_score(tested[:, -1] == model.classes_[there][1], found[:, 1]))
    found = found / found.sum(axis=1, keepdims=True)
    return float(roc_auc_score(tested[:, -1], found, multi_class="ovr"))


def methods(sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "dpbayes synth": dp.Synthetic(target="target"),
        "naive Bayes": dp.NaiveBayes(target="target"),
        "independent": dp.jobs.Fit(model=dp.BayesNet(nodes=tuple(sizes))),
    }


def measured(name: str, method: str, epsilon: float, split: int, draw: int, *, score: bool = True) -> dict[str, float]:
    """One run: distances, AUC and processor seconds."""
    sizes, private, public = halves(name, split)
    curator = dp.Curator(table_of(sizes, private), schema_of(name, sizes), seed=1000 * split + draw)
    started = time.process_time()
    release = curator.release(methods(sizes)[method], dp.ApproxDP(epsilon=epsilon, delta=1e-6), estimates=False)
    model = release.model()
    seconds = time.process_time() - started
    two, three = distances(model, sizes, private)
    drawn = model.sample(len(private), np.random.default_rng(draw), even=True)
    records = np.stack([drawn[each] for each in sizes], axis=1)
    found = {"two-way": two, "three-way": three, "seconds": seconds}
    found |= {"auc": auc(records, public)} if score else {}
    return {what: round(value, 5) for what, value in found.items()}


def schedule() -> Iterator[tuple[str, str, float, int, int]]:
    """What is run, the most important first: three splits by five draws of everything, if time allows."""
    for draw in range(5):
        for split in range(3):
            for name in MAIN:
                for method in ("dpbayes synth", "naive Bayes", "independent"):
                    yield name, method, 1.0, split, draw
        for split in range(3):
            for epsilon in EPSILONS:
                for name in (*MAIN, *OTHERS):
                    if epsilon != 1.0 or name not in MAIN:
                        for method in ("dpbayes synth", "naive Bayes", "independent"):
                            yield name, method, epsilon, split, draw


def run() -> dict[str, Any]:
    OUT.parent.mkdir(exist_ok=True)
    found: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for asked in schedule():
        key = " | ".join(map(str, asked))
        if key not in found:
            found[key] = measured(*asked)
            OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


def markdown(found: dict[str, Any]) -> str:
    """Means over splits and draws, a row for each data set and ε."""
    grouped: dict[tuple[str, float], dict[str, list[dict[str, float]]]] = {}
    for key, row in found.items():
        name, method, epsilon, _, _ = key.split(" | ")
        grouped.setdefault((name, float(epsilon)), {}).setdefault(method, []).append(row)
    lines = [
        "| data set | ε | runs | dpbayes synth | naive Bayes | independent | seconds |",
        "| --- | ---: | ---: | --- | --- | --- | ---: |",
    ]
    for (name, epsilon), by_method in sorted(grouped.items(), key=lambda each: (each[0][1] != 1.0, each[0][1])):
        cells = []
        for method in ("dpbayes synth", "naive Bayes", "independent"):
            rows = by_method.get(method, [])
            kept = [
                [row[what] for row in rows if row.get(what) is not None] for what in ("two-way", "three-way", "auc")
            ]
            cells.append("/".join(f"{np.mean(each):.3f}" for each in kept if each) or "–")
        own = by_method.get("dpbayes synth", [])
        seconds = f"{np.mean([row['seconds'] for row in own]):.1f}" if own else "–"
        lines.append(f"| {name} | {epsilon:g} | {len(own)} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(run()))
