"""[RDP] figures 3 and 4: private naive Bayes on eight data sets.

Run: python -m experiments.models.naive_bayes [repetitions]

Ways, all at the same (order 5, ε) Rényi budget:
  paper            algorithm 1, equal split ε/(K+1), a single draw of every table
  smoothed         Gaussian noise, equal split, counts clipped at zero, one standard deviation added to every cell
  shares           only the class shares, released with the whole budget
  untempered       dpbayes without the choice of a temperature
  dpbayes          as it comes
  exact shares, not private: beyond any budget, for orientation
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from dpbayes import RDP
from dpbayes.errors import DpbayesError
from dpbayes.fitting import MeaninglessBudget, fit
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.sklearn import PrivateCategoricalNB
from dpbayes.tables.coded import CodedTable
from experiments.models.data import EPSILONS, NAMES, ORDER, Split, split

CLASS = "target"
GOALS = (0.36, 0.46, 0.66, 0.80, 0.87)
PRIVATE = ("paper", "smoothed", "shares", "untempered", "dpbayes")
EXACT = ("exact shares", "not private")


def scores(log_prior: np.ndarray, tables: list[np.ndarray], data: Split) -> tuple[float, float]:
    """Cross-entropy, with the authors' 1e-20, and accuracy on the test part."""
    joint = np.tile(log_prior, (len(data.test[CLASS]), 1))
    for name, table in zip((name for name in data.levels if name != CLASS), tables, strict=False):
        joint += table.T[data.test[name]]
    return _scored(joint, data.test[CLASS])


def _scored(joint: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    joint = joint - joint.max(axis=1, keepdims=True)
    shares = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(labels)), labels] + 1e-20)
    return float(loss.mean()), float((shares.argmax(axis=1) == labels).mean())


def private(data: Split, way: str, epsilon: float, seed: int) -> tuple[float, float]:
    """Fit on the training part one way, score on the test part."""
    target = RDP(order=ORDER, epsilon=epsilon)
    if way in ("untempered", "dpbayes"):
        nb = PrivateCategoricalNB(
            order=ORDER, epsilon=epsilon, schema=data.schema, target=CLASS, random_state=seed, tempered=way == "dpbayes"
        )
        features = [name for name in data.levels if name != CLASS]
        nb.fit(pd.DataFrame(data.train)[features], data.train[CLASS])
        return _scored(nb.predict_log_proba(pd.DataFrame(data.test)[features]), data.test[CLASS])
    if way == "paper":
        spec = NaiveBayes(target=CLASS, estimate="draw")
        model = fit(
            spec, engine=CodedTable(data.train), schema=data.schema, target=target, accounting="published", seed=seed
        )
        return scores(model.class_log_prior, list(model.feature_log_prob), data)
    rng = np.random.default_rng(seed)
    counts = exact_counts(data)
    sigma = np.sqrt(ORDER * (len(counts) if way == "smoothed" else 1) / epsilon)
    noisy = [table + np.round(rng.normal(0.0, sigma, table.shape)) for table in counts]
    prior, *tables = (np.log(_smoothed(table, sigma)) for table in noisy)
    return scores(prior[0], tables if way == "smoothed" else [], data)


def exact_counts(data: Split) -> list[np.ndarray]:
    """The class table, then classes × values of every attribute."""
    labels, classes = data.train[CLASS], data.levels[CLASS]
    tables = [np.bincount(labels, minlength=classes)[None]]
    for name, size in data.levels.items():
        if name != CLASS:
            key = labels * size + data.train[name]
            tables.append(np.bincount(key, minlength=classes * size).reshape(classes, size))
    return tables


def _smoothed(table: np.ndarray, constant: float) -> np.ndarray:
    rows = np.maximum(table, 0.0) + constant
    return rows / rows.sum(axis=1, keepdims=True)


def exact(data: Split, way: str) -> tuple[float, float]:
    """The models without any noise, with the authors' prior of 0.1."""
    prior, *tables = (np.log(_smoothed(table, 0.1)) for table in exact_counts(data))
    return scores(prior[0], tables if way == "not private" else [], data)


def run(names: tuple[str, ...] = NAMES, repetitions: int = 10) -> dict:
    """Mean cross-entropy and accuracy of every data set, way and ε."""
    results: dict = {}
    for name in names:
        found = {way: np.zeros((repetitions, len(EPSILONS), 2)) for way in PRIVATE}
        fixed = {way: np.zeros((repetitions, 2)) for way in EXACT}
        for repetition in range(repetitions):
            data = split(name, repetition)
            for way in EXACT:
                fixed[way][repetition] = exact(data, way)
            for way in PRIVATE:
                for position, epsilon in enumerate(EPSILONS):
                    found[way][repetition, position] = private(data, way, epsilon, repetition)
        results[name] = {
            "attributes": len(data.levels) - 1,
            "training records": len(data.train[CLASS]),
            "cross-entropy": {way: found[way][..., 0].mean(axis=0).round(4).tolist() for way in PRIVATE}
            | {way: round(float(fixed[way][:, 0].mean()), 4) for way in EXACT},
            "accuracy": {way: found[way][..., 1].mean(axis=0).round(4).tolist() for way in PRIVATE}
            | {way: round(float(fixed[way][:, 1].mean()), 4) for way in EXACT},
        }
        print(name, json.dumps(results[name]["cross-entropy"]), file=sys.stderr, flush=True)
    return results


def summary(results: dict) -> dict:
    """Geometric means against the paper, and every place where dpbayes does not come out as hoped."""
    losses = {name: result["cross-entropy"] for name, result in results.items()}
    ratios = {
        way: np.exp(
            np.mean([np.log(np.array(loss[way]) / np.array(loss["paper"])) for loss in losses.values()], axis=0)
        )
        for way in (*PRIVATE[1:], *EXACT)
    }
    misses = []
    for name, loss in losses.items():
        for position, epsilon in enumerate(EPSILONS):
            ours = loss["dpbayes"][position]
            for way in ("shares", "exact shares", "smoothed"):
                other = loss[way] if way in EXACT else loss[way][position]
                if ours > 1.02 * other:
                    misses.append(f"{name}, ε={epsilon:g}: cross-entropy {ours:.3f}, {way} {other:.3f}")
            accuracy = results[name]["accuracy"]
            if accuracy["dpbayes"][position] < accuracy["paper"][position]:
                misses.append(
                    f"{name}, ε={epsilon:g}: accuracy {accuracy['dpbayes'][position]:.3f}, "
                    f"paper {accuracy['paper'][position]:.3f}"
                )
    return {
        "epsilon": list(EPSILONS),
        "goal": list(GOALS),
        "ratio to the paper, geometric mean": {way: ratio.round(4).tolist() for way, ratio in ratios.items()},
        "misses": misses,
    }


def main() -> None:
    warnings.simplefilter("ignore", MeaninglessBudget)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    try:
        results = run(repetitions=repetitions)
    except FileNotFoundError as problem:
        raise DpbayesError(f"the data sets are not there: {problem}. Set DPBAYES_DATA to their folder.") from None
    found = {"repetitions": repetitions, "order": ORDER, "summary": summary(results), "data sets": results}
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "naive_bayes.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["summary"], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
