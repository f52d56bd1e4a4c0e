"""Latent classes: a mixture of products, fitted to all published tables of one and two attributes, without a graph."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument, ReleaseError, SchemaError
from dpbayes.inference.measurement import fit_margins
from dpbayes.models.fission import Fits, best_fits
from dpbayes.models.mixture import SMALL, Statistics, can_tie
from dpbayes.models.model import LEAST_SHARE, BaseSpec, Built, NoisyTable, Published, keep, kept, noise_distance
from dpbayes.models.network import Network, pick, places
from dpbayes.release.format import Release
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema


def pairs_of(weights: Floats, laws: Mapping[str, Floats], target: str) -> dict[str, Floats]:
    """The tables of each attribute with the target, as classes have them: levels × levels of the target."""
    joint = weights[:, None] * laws[target]
    return {name: law.T @ joint for name, law in laws.items() if len(law) > 1 and name != target}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regression:
    """The target given all other attributes at once: effects of each of their levels on its log odds.

    Tables of pairs say how the target goes with each other attribute, and nothing of how it goes with several together.
    Classes fill that gap by chance. Of all laws with the same pairs the logistic one has the largest entropy: it adds
    nothing that was not measured.
    """

    pairs: dict[str, Floats]
    """For each attribute, its table with the target: levels × levels of the target."""
    effects: dict[str, Floats]
    """For each of them, effects of its levels × levels of the target."""
    constant: Floats
    records: dict[str, Ints]
    """Records of the model, in which tables of three attributes and more are averaged."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that the target depends on."""
        return tuple(self.pairs)

    @classmethod
    def of(
        cls,
        weights: Floats,
        laws: Mapping[str, Floats],
        target: str,
        pairs: Mapping[str, Floats],
        total: float,
        rng: np.random.Generator,
        *,
        size: int = 20_000,
    ) -> Regression:
        """Least Σ_i ln Σ_y exp(η_y(x_i))/n − Σ_y,a m(y, a)·β_y(a) + ‖β‖²/(2N).

        Where the gradient is nothing, the mean of P(y | x) over records with x_j = a is the share of y that their pair
        says. Symbols: x_i records of the classes, n (``size``) of them, η_y(x) = Σ_j β_y(x_j), m(y, a) the share of y
        in row a of a pair times the share of a among the x_i, N records of the table: a unit normal law of each β.
        Source: docs/explanation/synthetic.md, the target.
        Adjacency: none, this is post-processing.
        """
        from scipy import sparse  # not loaded by releases that fit nothing
        from scipy.optimize import minimize
        from scipy.special import logsumexp

        names = tuple(pairs)
        classes = pick(weights[None], np.zeros(size, dtype=np.int64), rng, even=True)
        records = {name: pick(laws[name], classes, rng, even=True) for name in names}
        starts = np.concatenate([[0], np.cumsum([laws[name].shape[1] for name in names])])
        columns = np.stack([records[name] + starts[place] for place, name in enumerate(names)], axis=1)
        ends = np.arange(size + 1) * len(names)
        seen = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), ends), shape=(size, int(starts[-1])))
        joint = np.concatenate([pairs[name] for name in names])
        given = joint / np.maximum(joint.sum(axis=1, keepdims=True), SMALL)
        wanted = given * (np.asarray(seen.sum(axis=0)).ravel() / size)[:, None]
        base = np.log(np.maximum(weights @ laws[target], SMALL))

        def loss(flat: Floats) -> tuple[float, Floats]:
            effects = flat.reshape(wanted.shape)
            scores = seen @ effects + base
            top = logsumexp(scores, axis=1, keepdims=True)
            gradient = seen.T @ np.exp(scores - top) / size - wanted + effects / total
            value = float(top.mean()) - float((wanted * effects).sum()) + float((effects**2).sum()) / (2.0 * total)
            return value, gradient.ravel()

        found = minimize(loss, np.zeros(wanted.size), jac=True, method="L-BFGS-B", options={"maxiter": 50})
        effects = np.split(np.asarray(found.x).reshape(wanted.shape), starts[1:-1])
        return cls(pairs=dict(pairs), effects=dict(zip(names, effects, strict=True)), constant=base, records=records)

    def probabilities(self, records: Mapping[str, Ints]) -> Floats:
        """P(y | x), levels of the target × records."""
        found = np.tile(self.constant[:, None], len(records[self.names[0]]))
        columns = {name: np.ascontiguousarray(effects.T) for name, effects in self.effects.items()}
        for start in range(0, found.shape[1], 2**14):  # few enough for a processor to have all numbers at hand
            scores = found[:, start : start + 2**14]
            for name, effects in columns.items():
                scores += effects.take(records[name][start : start + 2**14], axis=1)
            scores -= scores.max(axis=0)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=0)
        return found

    def drawn(self, records: Mapping[str, Ints], rng: np.random.Generator, *, even: bool = False) -> Ints:
        """A level of the target for each record; ``even`` spreads them over records of like probabilities."""
        shares = np.cumsum(self.probabilities(records), axis=0)
        uniform = np.asarray(rng.random(shares.shape[1]))
        if even:
            ranks = np.empty(shares.shape[1])
            ranks[places(shares[0].view(np.uint64))] = np.arange(shares.shape[1])  # as whole numbers in the same order
            uniform = (uniform[0] + ranks * (np.sqrt(5.0) - 1.0) / 2.0) % 1.0  # the golden ratio spreads any run evenly
        return np.asarray(np.minimum((uniform > shares).sum(axis=0), shares.shape[0] - 1))

    def given(self, names: Sequence[str], otherwise: Floats) -> Floats:
        """P(y | these attributes), averaged over records; ``otherwise`` counts as one record more in each cell."""
        shape = otherwise.shape[:-1]
        cells = np.ravel_multi_index(tuple(self.records[name] for name in names), shape)
        shares = self.probabilities(self.records)
        size = int(np.prod(shape))
        sums = np.stack([np.bincount(cells, weights=row, minlength=size) for row in shares], axis=1)
        found = (sums + otherwise.reshape(size, -1)) / (np.bincount(cells, minlength=size)[:, None] + 1.0)
        return np.asarray(found.reshape(otherwise.shape))


CLASSES = 100
"""Of each fit, and twice as many where noise alone makes a mean total variation below 0.02 in two-way tables.

Elsewhere twice as many did worse (docs/reproduction/synthetic.md).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent(BaseSpec):
    """A mixture of products of one-way laws; with a ``target``, every class is tied to one level of it.

    It is built from whatever tables are published: from all pairs a mixture, from pairs with the target alone naive
    Bayes, from one-way tables independent columns.
    """

    kind: ClassVar[str] = "latent"
    target: str | None = None

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """All pairs of attributes; of a single attribute its own table."""
        names = schema.names
        if self.target is not None:
            schema[self.target]
        if len(names) == 1:
            return (Marginal((names[0],)),)
        return tuple(Marginal((one, other)) for place, one in enumerate(names) for other in names[place + 1 :])

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:  # noqa: ARG002 - ModelSpec
        """Precisions that make the least expected total variation: in proportion to cells^⅔."""
        return tuple(2.0 ** round(math.log2(marginal.size(schema) ** (2 / 3))) for marginal in self.marginals(schema))

    def build(self, releases: Release | Published | Iterable[Release]) -> LatentModel:
        """The model, from published tables only; everyone who builds it gets the same one, kept or not."""
        published = Published.of(releases)
        if (arrays := kept(published, self)) is not None:
            return LatentModel._of(self, published, arrays)
        return self.fitted(published)

    def fitted(self, published: Published) -> LatentModel:
        """The same, with its fits; it is kept, as far as records and tables need it."""
        schema, tables = published.schema, published.tables
        seen = {name for table in tables for name in table.marginal.names}
        names = tuple(name for name in schema.names if name in seen)
        if not names:
            raise ReleaseError("Latent: expected a release with tables of counts. Release some first.")
        if self.target is not None and self.target not in names:
            raise SchemaError(f"Latent: no table holds the target {self.target!r}. Release one that does.")
        alone = {name: published.shares((name,)) for name in names}
        joined = _joined(tables, schema, self.target)
        if not joined:
            weights, laws, fits = np.ones(1), alone, None
        elif self.target is not None and all(self.target in each.marginal.names for each in tables if each.joint):
            laws = {name: published.shares((name,), (self.target,)) for name in joined if name != self.target}
            weights, fits = alone[self.target][0], None
            laws[self.target] = np.eye(weights.size)
        else:
            fits = self._fits(published, joined, alone)
            weights, laws = _averaged(fits, joined, schema)
        last = None
        if (
            fits is not None
            and self.target in joined
            and len(joined) > 2
            and can_tie(len(schema[self.target].levels), CLASSES)
        ):
            total = max(published.posterior.joint.total, 1.0)
            rng = np.random.default_rng(int(published.releases[0].digest()[32:48], 16))
            pairs = _with_target(published, weights, laws, self.target)
            last = Regression.of(weights, laws, self.target, pairs, total, rng)
        laws = {name: laws.get(name, alone[name]) for name in names}
        made = LatentModel(spec=self, published=published, weights=weights, laws=laws, fits=fits, last=last)
        if fits is not None:
            keep(published, self, made._arrays())
        return made

    def _fits(self, published: Published, joined: tuple[str, ...], alone: Mapping[str, Floats]) -> Fits:
        tables, total = published.tables, max(published.posterior.joint.total, 1.0)
        seen = statistics(published, joined)
        noise = np.mean(
            [noise_distance(table.variance, total) for table in tables if len(table.marginal.names) == 2] or [1.0]
        )
        seed = int(published.releases[0].digest()[:16], 16)
        target = joined.index(self.target) if self.target in joined else None
        return best_fits(
            seen,
            np.concatenate([alone[name][0] for name in joined]),
            2 * CLASSES if noise < 0.02 else CLASSES,
            target,
            np.random.default_rng(seed),
        )


def statistics(published: Published, joined: Sequence[str]) -> Statistics:
    """What is published about pairs of these attributes."""
    sizes = {name: len(published.schema[name].levels) for name in joined}
    tables = ((each.marginal.names, each.counts, each.variance) for each in published.tables)
    return Statistics.of(sizes, tables, max(published.posterior.joint.total, 1.0))


def _joined(tables: Sequence[NoisyTable], schema: Schema, target: str | None) -> tuple[str, ...]:
    """Attributes that some table holds together with another one; those of most levels go beyond 6000 levels in all."""
    found = {name for table in tables for name in table.marginal.names if table.joint}
    kept = sorted(found, key=lambda name: (name != target, len(schema[name].levels)))
    while sum(len(schema[name].levels) for name in kept) > 6000:
        kept.pop()
    return tuple(name for name in schema.names if name in kept)


def _averaged(fits: Fits, joined: tuple[str, ...], schema: Schema) -> tuple[Floats, dict[str, Floats]]:
    """A mixture of mixtures is a mixture."""
    found = [fit.laws() for fit in fits.all]
    weights = np.concatenate([each for each, _ in found]).astype(np.float64)
    shares = np.concatenate([each for _, each in found]).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum([len(schema[name].levels) for name in joined])])
    laws = {name: shares[:, starts[at] : starts[at + 1]] for at, name in enumerate(joined)}
    return weights / weights.sum(), laws


def _with_target(published: Published, weights: Floats, laws: Mapping[str, Floats], target: str) -> dict[str, Floats]:
    """Each attribute's table with the target: the mean of what the classes say and of the posterior's estimate.

    Classes are pulled by what all pairs need, the posterior sees each table by itself: they err in different ways. All
    tables keep the classes' one-way shares, so that they agree with each other.
    """
    found = pairs_of(weights, laws, target)
    for name, table in found.items():
        if published.posterior.joint.estimable((name, target)):
            rows, columns = table.sum(axis=1), table.sum(axis=0)
            mean = 0.5 * (table + rows[:, None] * published.shares((target,), (name,)))
            found[name], _ = fit_margins(mean, (name, target), [((name,), rows), ((target,), columns)])
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LatentModel(Built):
    """Weights of classes, and for each attribute its shares in every class."""

    kind: ClassVar[str] = "latent"
    spec: Latent
    published: Published
    weights: Floats
    laws: dict[str, Floats]
    """Classes × levels; an attribute that is independent of all others has one row."""
    fits: Fits | None = field(default=None)
    """What was fitted and averaged; None where independent columns or naive Bayes had to do."""
    last: Regression | None = field(default=None)
    """How the target depends on all others at once, in a mixture with a target."""

    kept: bool = False
    """Whether it is a mixture that was kept without its fits: ``spec.fitted`` makes them again."""

    def _arrays(self) -> dict[str, np.ndarray]:
        """What records and tables need, by names that ``_of`` takes apart."""
        named: dict[str, Mapping[str, np.ndarray]] = {"laws": self.laws}
        found: dict[str, np.ndarray] = {"weights": self.weights}
        if (last := self.last) is not None:
            named |= {"pairs": last.pairs, "effects": last.effects, "records": last.records}
            found["constant"] = last.constant
        return found | {f"{part} {name}": held for part, each in named.items() for name, held in each.items()}

    @classmethod
    def _of(cls, spec: Latent, published: Published, arrays: Mapping[str, np.ndarray]) -> LatentModel:
        named: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
        for (part, _, name), held in ((key.partition(" "), held) for key, held in arrays.items()):
            named[part][name] = held
        ((_, weights),), laws = named.pop("weights").items(), named.pop("laws")
        last = Regression(constant=named.pop("constant")[""], **named) if named else None
        return cls(spec=spec, published=published, weights=weights, laws=laws, last=last, kept=True)

    @property
    def form(self) -> str:
        """What it came to: a mixture, naive Bayes, or independent columns."""
        if self.fits is not None or self.kept:
            return "mixture"
        return "naive Bayes" if len(self.weights) > 1 else "independent columns"

    @property
    def network(self) -> Network:
        """Independent columns and naive Bayes are networks; a mixture has no graph."""
        if self.form == "mixture":
            raise InvalidArgument("Latent: a mixture has no graph. Build BayesNet() from the same release for one.")
        target = self.spec.target
        joined = [name for name in self.joined if name != target]
        parents: dict[str, tuple[str, ...]] = {}
        tables: dict[str, Floats] = {}
        for name in sorted(self.laws, key=lambda name: name != target):
            parents[name] = (target,) if name in joined and target is not None else ()
            tables[name] = self.weights[None] if name == target and joined else self.laws[name]
        return Network.of(self.published.schema, parents, tables)

    @property
    def joined(self) -> tuple[str, ...]:
        """The attributes that depend on classes."""
        return tuple(name for name, law in self.laws.items() if len(law) > 1)

    def seen(self) -> Statistics:
        """What the classes were fitted to."""
        return statistics(self.published, self.joined)

    def shares(self, names: Sequence[str]) -> Floats:
        """The model's distribution of these attributes, in this order, measured or not."""
        for name in names:
            if name not in self.laws:
                raise SchemaError(f"Latent: there is no attribute {name!r}. It has {', '.join(self.laws)}.")
        if not names or len(set(names)) < len(names):
            raise InvalidArgument("Latent: expected one attribute or more, each once.")
        found = self._mixed(names)
        if self.last is not None and self.spec.target in names:
            found = self._regressed(names, found, self.last)
        if (impossible := self.published.schema.zeros(names)) is not None:
            found = np.where(impossible, 0.0, found)
        return np.asarray(found / found.sum())

    def _mixed(self, names: Sequence[str]) -> Floats:
        """The table of the classes."""
        wide = [np.broadcast_to(self.laws[name], (len(self.weights), self.laws[name].shape[1])) for name in names]
        first = self.weights[:, None] * wide[0]
        joint = reduce(lambda left, law: (left[:, :, None] * law[:, None, :]).reshape(len(left), -1), wide[1:-1], first)
        found = joint.T @ wide[-1] if len(names) > 1 else joint.sum(axis=0)
        return np.maximum(found, LEAST_SHARE**2).reshape([law.shape[1] for law in wide])

    def _regressed(self, names: Sequence[str], mixed: Floats, last: Regression) -> Floats:
        """The target given the other attributes as records have it, in agreement with its pairs."""
        target = str(self.spec.target)
        others = tuple(name for name in names if name in last.names)
        if not others:
            return mixed
        order = [*others, *(name for name in names if name not in others and name != target), target]
        turned = np.moveaxis(mixed, [list(names).index(name) for name in order], range(len(names)))
        alone = tuple(range(len(others), len(names) - 1))  # independent of all others: they follow at the end
        table = turned.sum(axis=alone)
        whole = table.sum(axis=-1)
        found = last.pairs[others[0]]
        if len(others) > 1:
            margins = [(others, whole), *(((name, target), last.pairs[name]) for name in others)]
            found = whole[..., None] * last.given(others, table / whole[..., None])
            found, _ = fit_margins(found, (*others, target), margins)
        rest = turned.sum(axis=(*range(len(others)), -1))
        found = found.reshape(*whole.shape, *(1,) * len(alone), -1) * rest[..., None]
        return np.moveaxis(found, range(len(names)), [list(names).index(name) for name in order])

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, as positions among levels: a class, every attribute given it, and the target given all of them."""
        none = np.zeros(rows, dtype=np.int64)
        classes = pick(self.weights[None], none, rng, even=even)
        names = [name for name in self.laws if self.last is None or name != self.spec.target]
        drawn = {
            name: pick(self.laws[name], classes if len(self.laws[name]) > 1 else none, rng, even=even) for name in names
        }
        if self.last is not None:
            drawn[str(self.spec.target)] = self.last.drawn(drawn, rng, even=even)
        return {name: drawn[name] for name in self.laws}
