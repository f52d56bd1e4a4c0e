"""Which graph fits: the tree of strongest dependences, from tables that are published already. Free."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from dpbayes.base.checks import Floats

Edges = tuple[tuple[str, str], ...]


def information(joint: Floats) -> float:
    """Σ p·ln(p/(p₁·p₂)), the mutual information of two attributes, in nats.

    Symbols: p shares of a two-way table, p₁ and p₂ its margins.
    Source: [ChowLiu68].
    Adjacency: none, this is post-processing.

    >>> round(information(np.array([[0.5, 0.0], [0.0, 0.5]])), 4)
    0.6931
    """
    product = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / product[seen])).sum())


def tree(names: Sequence[str], pair: Callable[[str, str], Floats], records: float, root: str | None = None) -> Edges:
    """Edges from parent to child of the tree with the largest total mutual information.

    An edge that a table of this many records could show by chance is left out: N·I ≤ ½·(a−1)(b−1)·ln N (the BIC), so
    that the result may be a forest.

    Symbols: N records, I mutual information, a and b levels of the two attributes.
    Source: [ChowLiu68] for the tree.
    Adjacency: none, this is post-processing.

    >>> tables = {("a", "b"): np.array([[0.5, 0.0], [0.0, 0.5]]), ("a", "c"): np.full((2, 2), 0.25)}
    >>> tables[("b", "c")] = tables[("a", "c")]
    >>> tree(["a", "b", "c"], lambda *names: tables[names], 1000.0)
    (('a', 'b'),)
    """
    found = []
    for one, other in combinations(names, 2):
        joint = pair(one, other)
        gain = information(joint)
        needed = 0.5 * (joint.shape[0] - 1) * (joint.shape[1] - 1) * math.log(max(records, 2.0))
        if records * gain > needed:
            found.append((gain, one, other))
    group = {name: name for name in names}

    def head(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    near: dict[str, list[str]] = {name: [] for name in names}
    for _, one, other in sorted(found, key=lambda each: -each[0]):
        if head(one) != head(other):
            group[head(other)] = head(one)
            near[one].append(other)
            near[other].append(one)
    return directed(near, [root, *names] if root is not None else list(names))


def directed(near: dict[str, list[str]], starts: Sequence[str]) -> Edges:
    """Every edge away from the first attribute of its tree."""
    edges: list[tuple[str, str]] = []
    reached: set[str] = set()
    for start in starts:
        line = [] if start in reached else [start]
        reached.add(start)
        while line:
            parent = line.pop(0)
            for child in near[parent]:
                if child not in reached:
                    reached.add(child)
                    edges.append((parent, child))
                    line.append(child)
    return tuple(edges)
