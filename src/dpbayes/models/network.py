"""A Bayesian network over declared levels: likelihood and sampling. It knows nothing of privacy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from dpbayes._checks import Floats, Ints
from dpbayes.errors import InvalidArgument, SchemaError
from dpbayes.models.sampling import pick

Parents = dict[str, tuple[str, ...]]


def parents_of(edges: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> Parents:
    """Every node with its parents, parents before children; a cycle or a repeated edge is refused.

    >>> parents_of([("sex", "income"), ("age", "income")])
    {'sex': (), 'age': (), 'income': ('sex', 'age')}
    """
    listed = tuple(nodes)
    if not all(isinstance(node, str) for node in listed):
        raise InvalidArgument("BayesNet: expected nodes as names.")
    found: dict[str, list[str]] = {node: [] for node in listed}
    for edge in edges:
        if not isinstance(edge, (tuple, list)) or len(edge) != 2 or not all(isinstance(end, str) for end in edge):
            raise InvalidArgument("BayesNet: expected edges as pairs of names, [parent, child].")
        parent, child = edge
        found.setdefault(parent, [])
        if parent in found.setdefault(child, []):
            raise InvalidArgument(f"BayesNet: the edge from {parent!r} to {child!r} is listed twice. Keep one.")
        found[child].append(parent)
    if not found:
        raise InvalidArgument("BayesNet: expected one node or more.")
    ordered: Parents = {}
    while len(ordered) < len(found):
        ready = [node for node in found if node not in ordered and all(parent in ordered for parent in found[node])]
        if not ready:
            stuck = ", ".join(node for node in found if node not in ordered)
            raise InvalidArgument(f"BayesNet: the edges make a cycle among {stuck}. Turn or remove one of them.")
        ordered.update((node, tuple(found[node])) for node in ready)
    return ordered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """Levels, parents and tables of every node; a table has one row for each combination of the parents' levels."""

    levels: dict[str, tuple[str, ...]]
    parents: Parents
    tables: dict[str, Floats]

    def __post_init__(self) -> None:
        for node, parents in self.parents.items():
            for name in (node, *parents):
                if name not in self.levels:
                    near = get_close_matches(name, self.levels, n=1)
                    raise SchemaError(
                        f"Network: there is no node {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")
                    )
            expected = (int(np.prod([len(self.levels[parent]) for parent in parents])), len(self.levels[node]))
            if self.tables[node].shape != expected:
                raise InvalidArgument(
                    f"Network: the table of {node!r} needs {expected[0]} rows of {expected[1]} shares."
                )

    @property
    def nodes(self) -> tuple[str, ...]:
        """Parents before children."""
        return tuple(self.parents)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs of parent and child."""
        return [(parent, node) for node, parents in self.parents.items() for parent in parents]

    def rows(self, node: str, coded: Mapping[str, Ints], size: int) -> Ints:
        """Which row of a node's table each record belongs to."""
        row = np.zeros(size, dtype=np.int64)
        for parent in self.parents[node]:
            row *= len(self.levels[parent])
            row += coded[parent]
        return row

    def log_likelihood(self, coded: Mapping[str, Ints]) -> Floats:
        """Σ_k ln θ_k of every record.

        Symbols: θ_k the share of a record's value of node k in the row of its parents.
        Source: [RDP] equation (8), record by record.
        Adjacency: none.
        """
        size = len(coded[self.nodes[0]])
        total = np.zeros(size)
        for node in self.nodes:
            total += np.log(self.tables[node][self.rows(node, coded, size), coded[node]])
        return total

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, drawn parents first."""
        drawn: dict[str, Ints] = {}
        for node in self.nodes:
            drawn[node] = pick(self.tables[node], self.rows(node, drawn, rows), rng, even=even)
        return drawn
