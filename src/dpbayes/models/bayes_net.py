"""Bayesian networks: the parameters of a given graph, from one published table for each node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats, Ints
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument, SchemaError
from dpbayes.estimate.noise import Noise
from dpbayes.estimate.result import Interval
from dpbayes.estimate.table import count_moments
from dpbayes.models.base import NoisyTable, Published, draw_of
from dpbayes.models.coding import codes
from dpbayes.models.network import Network, parents_of
from dpbayes.models.rows import Rows, pooled_shape, shrunk_rows

Estimate = Literal["posterior", "draw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesNet:
    """A directed acyclic graph over attributes of a schema.

    ``edges`` are pairs of parent and child, ``nodes`` attributes without any. Tables cover the whole product of
    declared levels, so no record ever meets a hole.

    Source: [RDP] section 5.2.

    >>> BayesNet(edges=(("sex", "income"),)).parents
    {'sex': (), 'income': ('sex',)}
    """

    kind: ClassVar[str] = "bayes-net"
    edges: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()
    estimate: Estimate = "posterior"

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(tuple(edge) for edge in self.edges))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        _checks.one_of("BayesNet", ("posterior", "draw"), estimate=self.estimate)
        parents_of(self.edges, self.nodes)

    @classmethod
    def of(cls, graph: object, *, estimate: Estimate = "posterior") -> BayesNet:
        """Read a list of edges, JSON with edges (and nodes), or a networkx or pgmpy graph."""
        if isinstance(graph, str):
            try:
                graph = json.loads(graph)
            except ValueError:
                raise InvalidArgument("BayesNet: expected JSON such as [[parent, child], …].") from None
        if isinstance(graph, Mapping):
            nodes, edges = graph.get("nodes", ()), graph.get("edges", ())
        elif hasattr(graph, "edges") and hasattr(graph, "nodes"):
            nodes, edges = list(graph.nodes()), list(graph.edges())
        else:
            nodes, edges = (), graph
        if not isinstance(edges, Iterable):
            raise InvalidArgument("BayesNet: expected edges as a list of pairs, [parent, child].")
        return cls(edges=tuple(tuple(edge) for edge in edges), nodes=tuple(nodes), estimate=estimate)

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Every node with its parents, parents first."""
        return parents_of(self.edges, self.nodes)

    @property
    def draws(self) -> bool:
        """Whether it is the papers' single draw."""
        return self.estimate == "draw"

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """One table for each node, given its parents."""
        asked = tuple(Marginal((node,), parents) for node, parents in self.parents.items())
        for marginal in asked:
            marginal.axes(schema)
        return asked

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:  # noqa: ARG002 - ModelSpec
        """Equal parts: a large table is mostly empty, and its noise is drawn towards what its rows share."""
        return (1.0,) * len(self.marginals(schema))

    def build(self, published: Published) -> BayesNetModel:
        """The tables of all nodes, from published numbers only."""
        schema, tables = published.schema, {}
        for marginal in self.marginals(schema):
            table = published[marginal]
            tables[marginal.of[0]] = draw_of(table) if self.draws else table_rows(table, published.records).shares
        levels = {node: schema[node].levels for node in self.parents}
        return BayesNetModel(
            spec=self, published=published, network=Network(levels=levels, parents=self.parents, tables=tables)
        )

    def record(self) -> dict[str, Any]:
        """JSON form."""
        return {"edges": [list(edge) for edge in self.edges], "nodes": list(self.nodes), "estimate": self.estimate}


def table_rows(table: NoisyTable, records: int | None, *, level: float | None = None) -> Rows:
    """The hierarchical posterior of one conditional table: totals of its rows, what they share, and every row."""
    rows, noise = table.rows, table.noise
    if len(rows) == 1:
        total, doubt = _whole(rows, noise, records)
        even = np.full(rows.shape[1], 1.0 / rows.shape[1])
        return shrunk_rows(rows, noise, totals=np.array([total]), doubt=doubt, shape=even, level=level)
    totals, variances = count_moments(rows.sum(axis=1), noise.pooled(1, rows.shape), records)
    whole, doubt = _whole(rows, noise, records)
    shape = pooled_shape(rows, noise, total=whole, doubt=doubt)
    return shrunk_rows(rows, noise, totals=totals, doubt=np.sqrt(variances) + 1e-3, shape=shape, level=level)


def _whole(rows: Floats, noise: Noise, records: int | None) -> tuple[float, float]:
    """The number of records and how well it is known."""
    if records is not None:
        return float(max(records, 1)), 1e-3
    centers = noise.center(rows)
    spread = float(np.sqrt((noise.spread(np.maximum(centers, 0.0)) ** 2).sum()))
    return max(float(centers.sum()), 1.0), spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BayesNetModel:
    """A network and the release that it was built from."""

    kind: ClassVar[str] = "bayes-net"
    spec: BayesNet
    published: Published
    network: Network

    def log_likelihood(self, columns: Mapping[str, object]) -> Floats:
        """Log P(record) of every record, from columns of raw values."""
        schema = self.published.schema
        for node in self.network.nodes:
            if node not in columns:
                raise SchemaError(
                    f"BayesNet: there is no column {node!r}. The network needs {', '.join(self.network.nodes)}."
                )
        return self.network.log_likelihood({node: codes(schema[node], columns[node]) for node in self.network.nodes})

    def intervals(self, node: str, level: float = 0.95) -> Interval:
        """Central credible intervals of every row of a node's table."""
        _checks.probability("BayesNet", level=level)
        if node not in self.network.parents:
            raise SchemaError(f"BayesNet: there is no node {node!r}. It has {', '.join(self.network.nodes)}.")
        if self.spec.draws:
            raise InvalidArgument("BayesNet: a single draw has no intervals. Fit the posterior estimate.")
        table = self.published[Marginal((node,), self.network.parents[node])]
        found = table_rows(table, self.published.records, level=level).interval
        assert found is not None
        return found

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, as positions among levels."""
        return self.network.sample(rows, rng, even=even)

    def record(self) -> dict[str, Any]:
        """JSON form without the release."""
        return {
            "spec": self.spec.record(),
            "tables": {node: self.network.tables[node].tolist() for node in self.network.nodes},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], published: Published) -> BayesNetModel:
        """Read the JSON form back."""
        spec = BayesNet(**record["spec"])
        tables = {node: np.asarray(rows, dtype=np.float64) for node, rows in record["tables"].items()}
        levels = {node: published.schema[node].levels for node in spec.parents}
        return cls(spec=spec, published=published, network=Network(levels=levels, parents=spec.parents, tables=tables))
