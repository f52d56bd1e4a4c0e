"""A Bayesian network over declared levels: likelihood, sampling, and the forms that other programs read.

It knows nothing of privacy. pgmpy comes with the extra ``networks``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument, MissingExtra, SchemaError
from dpbayes.schema.schema import Schema

Parents = dict[str, tuple[str, ...]]

_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")


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

    @classmethod
    def of(cls, schema: Schema, parents: Parents, tables: dict[str, Floats]) -> Network:
        """With the levels that a schema declares."""
        return cls(levels={node: schema[node].levels for node in parents}, parents=parents, tables=tables)

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


def to_pgmpy(network: Network) -> Any:
    """A pgmpy ``DiscreteBayesianNetwork`` with the same tables and the levels as state names."""
    factors = _pgmpy("factors.discrete")
    model = _pgmpy("models").DiscreteBayesianNetwork(network.edges)
    model.add_nodes_from(network.nodes)
    for node, parents in network.parents.items():
        model.add_cpds(
            factors.TabularCPD(
                node,
                len(network.levels[node]),
                network.tables[node].T,
                evidence=list(parents) or None,
                evidence_card=[len(network.levels[parent]) for parent in parents] or None,
                state_names={name: list(network.levels[name]) for name in (node, *parents)},
            )
        )
    return model


def to_bif(network: Network, name: str = "dpbayes") -> str:
    """The text of a BIF file; names that are not plain words are quoted."""
    lines = [f"network {_quoted(name)} {{", "}"]
    for node in network.nodes:
        levels = network.levels[node]
        listed = ", ".join(map(_quoted, levels))
        lines += [f"variable {_quoted(node)} {{", f"  type discrete [ {len(levels)} ] {{ {listed} }};", "}"]
    for node, parents in network.parents.items():
        if not parents:
            lines += [f"probability ( {_quoted(node)} ) {{", f"  table {_numbers(network.tables[node][0])};", "}"]
            continue
        lines.append(f"probability ( {_quoted(node)} | {', '.join(map(_quoted, parents))} ) {{")
        shape = [len(network.levels[parent]) for parent in parents]
        for index, row in zip(np.ndindex(*shape), network.tables[node], strict=True):
            given = ", ".join(_quoted(network.levels[parent][at]) for parent, at in zip(parents, index, strict=True))
            lines.append(f"  ({given}) {_numbers(row)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _pgmpy(module: str) -> Any:
    """A module of pgmpy, without the warnings about its own future that importing it prints."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return import_module(f"pgmpy.{module}")
    except ImportError:
        raise MissingExtra("networks: pgmpy is not installed; install dpbayes[networks].") from None


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _numbers(row: Floats) -> str:
    return ", ".join(repr(float(share)) for share in row)


def pick(shares: Floats, rows: Ints, rng: np.random.Generator, *, even: bool = False) -> Ints:
    """One value for each entry of ``rows``, by inversion of that row's cumulative shares.

    ``even`` spreads the values of each row over its shares instead of drawing them independently: every value alone has
    the same law, but each cell comes out within one of its expectation. They come from a stream of their own: whoever
    samples them with a generator of the same seed would otherwise pick the same strata again.

    Values are found many at a time, by halving what is left of their rows: one comparison for every power of two
    that a row is long.

    >>> import numpy as np
    >>> pick(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1]), np.random.default_rng(0)).tolist()
    [0, 1, 1]
    """
    width = shares.shape[1]
    ends = np.full((len(shares), 1 << (width - 1).bit_length()), np.inf)
    np.cumsum(shares, axis=1, out=ends[:, :width])
    ends[:, :width] /= ends[:, [width - 1]]
    ends[:, width - 1] = np.inf  # whatever rounding does, no value lies beyond
    if even:
        return _spread(ends[:, :width], rows, rng.spawn(1)[0])
    uniform, found = rng.random(len(rows)), np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), 2**14):  # few enough for a processor to have all numbers at hand
        part = slice(start, start + 2**14)
        found[part] = _searched(ends, rows[part], uniform[part])
    return found


def _searched(ends: Floats, rows: Ints, uniform: Floats) -> Ints:
    """How many ends of its row each number has passed; rows are as long as a power of two."""
    flat, first = ends.ravel(), rows * ends.shape[1]
    found, step = first.copy(), ends.shape[1] // 2
    while step:
        found += step * (flat[found + (step - 1)] <= uniform)
        step //= 2
    return np.asarray(found - first)


def places(keys: NDArray[np.uint64]) -> Ints:
    """Where each key stands, from the least to the largest: one sort of numbers whose last bits are the places.

    Few keys agree in all the bits before, and these keep their order: every machine gives the same one.

    >>> places(np.array([3, 1, 2], dtype=np.uint64) << np.uint64(60)).tolist()
    [1, 2, 0]
    """
    bits = np.uint64(len(keys).bit_length())
    sorted_keys = np.sort(keys >> bits << bits | np.arange(len(keys), dtype=np.uint64))
    return (sorted_keys & np.uint64(2 ** int(bits) - 1)).astype(np.int64)


def _spread(ends: Floats, rows: Ints, rng: np.random.Generator) -> Ints:
    """Values by inversion of uniform numbers, those of one row in equal steps from a random start and in random order.

    Numbers in equal steps need not be looked up: how many of them lie below each end says how often each value comes.
    An order is sorted by row, and within a row by random bits.
    """
    keys, bits = rng.integers(2**64, size=len(rows), dtype=np.uint64), len(ends).bit_length()
    order = places(keys >> np.uint64(bits) | rows.astype(np.uint64) << np.uint64(64 - bits))
    size = np.bincount(rows, minlength=len(ends))[:, None]
    start, whole = rng.random(len(ends))[:, None], np.maximum(size, 1)
    below = np.clip(np.ceil(ends * whole - start), 0, size)  # but for rounding
    while (less := (below < size) & ((below + start) / whole < ends)).any():
        below += less
    while (more := (below > 0) & ((below - 1 + start) / whole >= ends)).any():
        below -= more
    times = np.diff(below, axis=1, prepend=0).astype(np.int64)
    found = np.empty(len(rows), dtype=np.int64)
    found[order] = np.repeat(np.tile(np.arange(ends.shape[1]), len(ends)), times.ravel())
    return found
