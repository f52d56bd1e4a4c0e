"""Bayesian networks: the parameters of a given graph, from one published table for each node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.inference.numbers import Estimate as Intervals
from dpbayes.models.base import BaseSpec, Built, Published, draw_of
from dpbayes.models.latent import Latent
from dpbayes.models.network import Network, parents_of
from dpbayes.models.pooling import pooled
from dpbayes.models.structure import tree
from dpbayes.release.format import Release
from dpbayes.schema.labels import coded
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

Estimate = Literal["posterior", "draw"]


@dataclass(frozen=True, slots=True, init=False)
class BayesNet(BaseSpec):
    """A directed acyclic graph over attributes, each with its parents: ``BayesNet("age", "education|age")``.

    ``edges`` are pairs of parent and child, ``nodes`` attributes without any. Without both, the graph is learned from
    published pairs: the tree of strongest dependences, at no further cost. Tables cover the whole product of declared
    levels, so no record ever meets a hole.

    ``draw``, or ``single_draw``, is the papers' model: every table is a single Dirichlet draw. Where the release holds
    a draw of a child's own distribution too, the rows of its table are drawn towards it, as far as the draw says that
    it helps.

    Source: [RDP] section 5.2.

    >>> BayesNet("sex", "age", "income|sex,age").parents
    {'sex': (), 'age': (), 'income': ('sex', 'age')}
    """

    kind: ClassVar[str] = "bayes-net"
    edges: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()
    estimate: Estimate = "posterior"
    mechanism: str = field(default="auto", init=False, compare=False)

    def __init__(
        self,
        *tables: str,
        edges: Iterable[object] = (),
        nodes: Iterable[str] = (),
        estimate: Estimate = "posterior",
        mechanism: str = "auto",
        single_draw: bool = False,
    ) -> None:
        given, lonely = _read(tables)
        kept = {"edges": (*given, *(_pair(edge) for edge in edges)), "nodes": (*lonely, *nodes), "mechanism": mechanism}
        for name, value in {**kept, "estimate": "draw" if single_draw else estimate}.items():
            object.__setattr__(self, name, value)
        checks.one_of("BayesNet", ("posterior", "draw"), estimate=self.estimate)
        if not self.learned:
            parents_of(self.edges, self.nodes)
        elif self.draws:
            raise InvalidArgument("BayesNet: a posterior draw needs a graph. Give edges, or ask for an estimate.")

    @property
    def learned(self) -> bool:
        """Whether the graph is to be learned."""
        return not self.edges and not self.nodes

    @classmethod
    def of(cls, graph: object, *, estimate: Estimate = "posterior") -> BayesNet:
        """Read a list of edges, JSON with edges (and nodes), or a networkx or pgmpy graph."""
        if isinstance(graph, str):
            try:
                graph = json.loads(graph)
            except (ValueError, RecursionError):
                raise InvalidArgument("BayesNet: expected JSON such as [[parent, child], …].") from None
        if isinstance(graph, Mapping):
            nodes, edges = graph.get("nodes", ()), graph.get("edges", ())
        elif hasattr(graph, "edges") and hasattr(graph, "nodes"):
            nodes, edges = list(graph.nodes()), list(graph.edges())
        else:
            nodes, edges = (), graph
        if not isinstance(edges, Iterable) or not isinstance(nodes, Iterable):
            raise InvalidArgument("BayesNet: expected edges as a list of pairs, [parent, child].")
        made = cls(edges=tuple(_pair(edge) for edge in edges), nodes=tuple(nodes), estimate=estimate)
        parents_of(made.edges, made.nodes)  # a graph that was given is not learned
        return made

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Every node with its parents, parents first; a graph that is to be learned has none yet."""
        return parents_of(self.edges, self.nodes)

    @property
    def draws(self) -> bool:
        """Whether it is the papers' single draw."""
        return self.estimate == "draw"

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """One table for each node, given its parents; all pairs where the graph is to be learned.

        A table of one attribute that a table of two contains is not bought: the joint posterior sums it out of it. But
        single draws need it: what the rows of a child have in common is drawn by itself.
        """
        if self.learned:
            return Latent().marginals(schema)
        asked = self.of_nodes(schema)
        if self.draws:
            return (*asked, *(Marginal(marginal.of) for marginal in asked if marginal.given))
        held = {name for marginal in asked if len(marginal.names) == 2 for name in marginal.names}
        return tuple(marginal for marginal in asked if len(marginal.names) > 1 or marginal.names[0] not in held)

    def of_nodes(self, schema: Schema) -> tuple[Marginal, ...]:
        """The table of every node and no other, as the papers have it."""
        asked = tuple(Marginal((node,), parents) for node, parents in self.parents.items())
        for marginal in asked:
            marginal.axes(schema)
        return asked

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:
        """Equal parts: a large table is mostly empty, and its noise is drawn towards what its rows share."""
        if self.learned:
            return Latent().shares(schema, sigma, records)
        return (1.0,) * len(self.marginals(schema))

    def build(self, releases: Release | Published | Iterable[Release]) -> BayesNetModel:
        """The tables of all nodes, from published numbers only."""
        published = Published.of(releases)
        if self.learned:
            return _learned(self, published)
        schema, tables = published.schema, {}
        for marginal in self.of_nodes(schema):
            found = _drawn(published, marginal) if self.draws else published.shares(marginal.of, marginal.given)
            tables[marginal.of[0]] = found
        levels = {node: schema[node].levels for node in self.parents}
        return BayesNetModel(
            spec=self, published=published, network=Network(levels=levels, parents=self.parents, tables=tables)
        )


def _drawn(published: Published, marginal: Marginal) -> Floats:
    """The draw of a node's rows, towards the child's own draw where there is one."""
    table, own = published[marginal], Marginal(marginal.of)
    if marginal.given and published.holds(own) and (common := published[own]).drawn and table.drawn:
        return pooled(table, draw_of(common)[0])
    return draw_of(table)


def _learned(spec: BayesNet, published: Published) -> BayesNetModel:
    """The tree that latent classes of the same tables show, with their shares."""
    latent = Latent().build(published)
    names = tuple(latent.laws)
    edges = tree(names, lambda *pair: latent.shares(pair), published.posterior.joint.total)
    parents = parents_of(edges, names)
    tables = {}
    for node, above in parents.items():
        rows = latent.shares((*above, node)).reshape(-1, len(published.schema[node].levels))
        tables[node] = rows / rows.sum(axis=1, keepdims=True)
    levels = {node: published.schema[node].levels for node in parents}
    return BayesNetModel(spec=spec, published=published, network=Network(levels=levels, parents=parents, tables=tables))


def _read(tables: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[str]]:
    """The edges of nodes with their parents, such as ``income|sex,age``, and the nodes that have none."""
    asked = [Marginal.of_text(text) for text in tables]
    names = [each.of[0] for each in asked]
    if any(len(each.of) > 1 for each in asked) or len(set(names)) < len(names):
        raise InvalidArgument('BayesNet: expected each node once, with its parents, as in "age", "income|age,sex".')
    edges = [(parent, each.of[0]) for each in asked for parent in each.given]
    linked = {end for edge in edges for end in edge}
    return edges, [name for name in names if name not in linked]


def _pair(edge: object) -> tuple[str, str]:
    if not isinstance(edge, (tuple, list)) or len(edge) != 2:
        raise InvalidArgument("BayesNet: expected edges as pairs of names, [parent, child].")
    return edge[0], edge[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BayesNetModel(Built):
    """A network and the release that it was built from."""

    kind: ClassVar[str] = "bayes-net"
    spec: BayesNet
    published: Published
    network: Network

    def log_likelihood(self, rows: object) -> Floats:
        """Log P(record) of every record: records as columns by name, or as a frame."""
        return self.network.log_likelihood(coded(self.published.schema, rows, self.network.nodes, "BayesNet"))

    def intervals(self, node: str, level: float = 0.95) -> Intervals:
        """Shares of the population for every row of a node's table, with their intervals: rows × levels."""
        checks.probability("BayesNet", level=level)
        if node not in self.network.parents:
            raise SchemaError(f"BayesNet: there is no node {node!r}. It has {', '.join(self.network.nodes)}.")
        if self.spec.draws:
            raise InvalidArgument("BayesNet: a single draw has no intervals. Fit the posterior estimate.")
        if self.spec.learned:
            raise InvalidArgument("BayesNet: tables of a learned graph have no intervals of their own. Name the edges.")
        found = self.published.posterior.table(Marginal((node,), self.network.parents[node]), level=level).population
        shape = self.network.tables[node].shape
        values, lower, upper = (part.reshape(shape) for part in (found.values, found.lower, found.upper))
        return Intervals(values=values, lower=lower, upper=upper, note=found.note)

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, as positions among levels."""
        return self.network.sample(rows, rng, even=even)
