"""Latent classes: a mixture of products, fitted to all published tables of one and two attributes, without a graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument, ReleaseError, SchemaError
from dpbayes.inference.measurement import fit_margins
from dpbayes.models.base import LEAST_SHARE, BaseSpec, Built, NoisyTable, Published
from dpbayes.models.fission import Fits, chosen
from dpbayes.models.mixture import Statistics, can_tie
from dpbayes.models.network import Network, pick
from dpbayes.models.regression import Regression, pairs_of
from dpbayes.release.format import Release
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

CLASSES = 100
"""Of each fit, and twice as many where tables are ``CLEAR``: else that did worse (docs/reproduction/synthetic.md)."""

CLEAR = 0.02
"""Mean total variation that noise alone makes in a two-way table, below which more classes pay."""

MOST_LEVELS = 6000
"""Levels of all attributes together that a mixture takes; attributes with most levels are left out beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent(BaseSpec):
    """A mixture of products of one-way laws; with a ``target``, every class is tied to one level of it.

    It is built from whatever tables are published: from all pairs a mixture, from pairs with the target alone naive
    Bayes, from one-way tables independent columns.
    """

    kind: ClassVar[str] = "latent"
    target: str | None = None

    @property
    def draws(self) -> bool:
        """It is an estimate, never a single Dirichlet draw."""
        return False

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
        """The model, from published tables only; everyone who builds it gets the same one."""
        published = Published.of(releases)
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
        elif self.target is not None and _is_star(tables, self.target):
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
        return LatentModel(
            spec=self,
            published=published,
            weights=weights,
            laws={name: laws.get(name, alone[name]) for name in names},
            fits=fits,
            last=last,
        )

    def _fits(self, published: Published, joined: tuple[str, ...], alone: Mapping[str, Floats]) -> Fits:
        tables, total = published.tables, max(published.posterior.joint.total, 1.0)
        seen = statistics(published, joined)
        noise = np.mean([table_noise(table, total) for table in tables if len(table.marginal.names) == 2] or [1.0])
        seed = int(published.releases[0].digest()[:16], 16)
        target = joined.index(self.target) if self.target in joined else None
        return chosen(
            seen,
            np.concatenate([alone[name][0] for name in joined]),
            2 * CLASSES if noise < CLEAR else CLASSES,
            target,
            np.random.default_rng(seed),
        )


def statistics(published: Published, joined: Sequence[str]) -> Statistics:
    """What is published about pairs of these attributes."""
    sizes = {name: len(published.schema[name].levels) for name in joined}
    tables = ((each.marginal.names, each.counts, each.variance) for each in published.tables)
    return Statistics.of(sizes, tables, max(published.posterior.joint.total, 1.0))


def table_noise(table: NoisyTable, total: float) -> float:
    """Mean total variation that the noise of a table alone makes: Σ sd/(N·√(2π)), as for a Gaussian error."""
    return float(np.sqrt(table.variance).sum() / (total * math.sqrt(2.0 * math.pi)))


def _joined(tables: Sequence[NoisyTable], schema: Schema, target: str | None) -> tuple[str, ...]:
    """Attributes that some table holds together with another one, without those of most levels if there are many."""
    found = {name for table in tables for name in table.marginal.names if len(table.marginal.names) > 1}
    kept = sorted(found, key=lambda name: (name != target, len(schema[name].levels)))
    while sum(len(schema[name].levels) for name in kept) > MOST_LEVELS:
        kept.pop()
    return tuple(name for name in schema.names if name in kept)


def _is_star(tables: Sequence[NoisyTable], target: str) -> bool:
    """Whether all pairs hold the target."""
    return all(target in table.marginal.names for table in tables if len(table.marginal.names) > 1)


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

    @property
    def form(self) -> str:
        """What it came to: a mixture, naive Bayes, or independent columns."""
        if self.fits is not None:
            return "mixture"
        return "naive Bayes" if len(self.weights) > 1 else "independent"

    @property
    def described(self) -> str:
        """The form, as a noun."""
        return "independent columns" if self.form == "independent" else self.form

    @property
    def network(self) -> Network:
        """Independent columns and naive Bayes are networks; a mixture has no graph."""
        if self.form == "mixture":
            raise InvalidArgument("Latent: a mixture has no graph. Build BayesNet() from the same release for one.")
        schema, target = self.published.schema, self.spec.target
        joined = [name for name, law in self.laws.items() if len(law) > 1 and name != target]
        parents: dict[str, tuple[str, ...]] = {}
        tables: dict[str, Floats] = {}
        for name in sorted(self.laws, key=lambda name: name != target):
            parents[name] = (target,) if name in joined and target is not None else ()
            tables[name] = self.weights[None] if name == target and joined else self.laws[name]
        return Network(levels={name: schema[name].levels for name in self.laws}, parents=parents, tables=tables)

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
