"""Bayesian networks: the parameters of a given graph, from one published table for each node."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.inference.numbers import Estimate as Intervals
from dpbayes.models.latent import Latent
from dpbayes.models.model import BaseSpec, Built, NoisyTable, Published, draw_of
from dpbayes.models.network import Network, parents_of
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
            (node,) = marginal.of
            tables[node] = _draw(published, marginal) if self.draws else published.shares(marginal.of, marginal.given)
        return BayesNetModel(spec=self, published=published, network=Network.of(schema, self.parents, tables))


def _draw(published: Published, marginal: Marginal) -> Floats:
    """The draw of a node's rows, towards the child's own draw where there is one."""
    table, own = published[marginal], Marginal(marginal.of)
    if marginal.given and published.holds(own) and (common := published[own]).drawn and table.drawn:
        return pool(table, draw_of(common)[0])
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
    return BayesNetModel(spec=spec, published=published, network=Network.of(published.schema, parents, tables))


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


STRENGTHS = (0.0, *(2.0**power for power in range(-6, 13)), math.inf)
"""Candidates, relative to the mean gammas of a row: the row alone, everything between, and what is common alone."""


def pool(table: NoisyTable, common: Floats) -> Floats:
    """y_jk = (z_jk + A·m_k)/(Z_j + A) for the strength A with the best ``expected_score``: rows × cells

    The papers' draw is A = 0. The larger A, the more a row looks like ``common``, which must have been drawn
    independently of the table.
    """
    mean = float(table.rows.sum()) / len(table.rows)
    scores = [expected_score(table, common, mean * strength) for strength in STRENGTHS]
    return _rows(table.rows, common, mean * STRENGTHS[int(np.argmax(scores))])


def expected_score(table: NoisyTable, common: Floats, strength: float) -> float:
    """U(A) = Σ_jk [(z_jk − α)·ln y_jk − z_jk·(1/(z_jk + A·m_k) − 1/(Z_j + A))]/r, whose mean is E[Σ_jk c_jk·ln y_jk]

    So published gammas say how likely the private records are under rows that are pooled, without bias.

    Symbols: z gammas, Z_j their sum in row j, A strength, m common, y as in pool, r weight, α concentration, c the
    private counts.
    Source: docs/explanation/proofs/utility.md, pooled rows: E[a·g(z)] = E[z·g(z) − z·g′(z)] for z ~ Gamma(a).
    Adjacency: none; published numbers only.
    """
    gammas = np.maximum(table.rows, np.finfo(np.float64).tiny)
    counts = table.counts.reshape(gammas.shape)
    score = float((counts * np.log(_rows(gammas, common, strength))).sum())
    if math.isfinite(strength):
        total = gammas.sum(axis=1, keepdims=True)
        slope = gammas / (gammas + strength * common) - gammas / (total + strength)
        score -= table.slope * float(slope.sum())
    return score


def _rows(gammas: Floats, common: Floats, strength: float) -> Floats:
    """Gammas with so much of what is common, normalised in every row."""
    if math.isinf(strength):
        return np.broadcast_to(common, gammas.shape).copy()
    mixed = gammas + strength * common
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


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


def tree(names: Sequence[str], pair: Callable[[str, str], Floats], records: float) -> Edges:
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
    near: dict[str, list[str]] = {name: [] for name in names}
    for _, one, other in sorted(found, key=lambda each: -each[0]):
        if (kept := group[one]) != (gone := group[other]):
            group = {name: kept if joined == gone else joined for name, joined in group.items()}
            near[one].append(other)
            near[other].append(one)
    return directed(near, names)


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
