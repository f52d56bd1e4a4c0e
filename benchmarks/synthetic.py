"""Synthetic records 10⁶ × 15, against pgmpy's forward sampling of the same network."""

from __future__ import annotations

import time

import numpy as np

from dpbayes.models.network import Network, to_pgmpy

ROWS, NODES, LEVELS, REPEAT = 1_000_000, 15, 6, 2


def network() -> Network:
    """A random graph in which every node has up to two earlier parents."""
    rng = np.random.default_rng(0)
    names = [f"x{position}" for position in range(NODES)]
    parents = {
        name: tuple(sorted(rng.choice(names[:position], min(position, 2), replace=False)))
        for position, name in enumerate(names)
    }
    tables = {name: rng.dirichlet(np.ones(LEVELS), LEVELS ** len(parents[name])) for name in names}
    return Network(levels=dict.fromkeys(names, tuple("abcdef")), parents=parents, tables=tables)


def run() -> dict[str, float]:
    from pgmpy.sampling import BayesianModelSampling

    made = network()
    other = BayesianModelSampling(to_pgmpy(made))
    ways = {
        "dpbayes": lambda: made.sample(ROWS, np.random.default_rng(0)),
        "pgmpy": lambda: other.forward_sample(size=ROWS, show_progress=False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEAT):
        for name, draw in ways.items():
            started = time.perf_counter()
            draw()
            seconds[name].append(time.perf_counter() - started)
    best = {name: min(found) for name, found in seconds.items()}
    return {**{f"{name}, s": value for name, value in best.items()}, "times faster": best["pgmpy"] / best["dpbayes"]}
