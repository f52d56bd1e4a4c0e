"""[RDP] figure 6: test log-likelihood of private Bayesian networks. Run: python -m experiments.models.networks"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from dpbayes import RDP
from dpbayes.fitting import fit
from dpbayes.models.bayes_net import BayesNet
from dpbayes.tables.coded import CodedTable
from experiments.models.data import EPSILONS, ORDER, Split, networks, split

WAYS = {"paper": ("draw", "published"), "dpbayes": ("posterior", "exact")}


def mean_log_likelihood(data: Split, graph: dict, way: str, epsilon: float, seed: int) -> float:
    """The mean over test records, of a network fitted on the training part."""
    estimate, accounting = WAYS[way]
    model = fit(
        BayesNet.of(graph, estimate=estimate),
        engine=CodedTable(data.train),
        schema=data.schema,
        target=RDP(order=ORDER, epsilon=epsilon),
        accounting=accounting,
        seed=seed,
    )
    return float(model.network.log_likelihood(data.test).mean())


def run(repetitions: int = 10) -> dict:
    """Sizes of the negative log-likelihood and their ratio, for every graph and ε."""
    results = {}
    for name, graph in networks().items():
        found = {way: np.zeros((repetitions, len(EPSILONS))) for way in WAYS}
        for repetition in range(repetitions):
            data = split(name, repetition).only(graph["nodes"])
            for way in WAYS:
                for position, epsilon in enumerate(EPSILONS):
                    found[way][repetition, position] = mean_log_likelihood(data, graph, way, epsilon, repetition)
        means = {way: found[way].mean(axis=0) for way in WAYS}
        results[name] = {
            "epsilon": list(EPSILONS),
            **{way: means[way].round(4).tolist() for way in WAYS},
            "ratio": (means["dpbayes"] / means["paper"]).round(4).tolist(),
        }
        print(name, json.dumps(results[name]), file=sys.stderr, flush=True)
    return results


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    results = {"repetitions": repetitions, "order": ORDER, "networks": run(repetitions)}
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "networks.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
