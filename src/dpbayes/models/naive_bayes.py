"""Naive Bayes: a class, and attributes that are independent given the class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import ReleaseError, SchemaError
from dpbayes.models.base import BaseSpec, Built, Published, by_cells, draw_of, spec_from_record
from dpbayes.models.evidence import CLASS_ERROR, detectable, trust
from dpbayes.models.network import Network, pick
from dpbayes.release.format import Release
from dpbayes.schema.labels import coded
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

Estimate = Literal["posterior", "draw"]

TEMPERATURE = "temperature"
"""The name under which a release holds the power of the likelihood."""

MOST_FOR_CLASSES, ALMOST_ALL = 0.5, 0.98
"""The largest part of the budget for the class table, and its part where attributes cannot matter: their tables have to
get something. docs/explanation/models.md says how they were fixed."""


@dataclass(frozen=True, slots=True, init=False)
class NaiveBayes(BaseSpec):
    """Which attribute is the class, and which ones predict it: ``NaiveBayes("income", "sex", "age")``.

    If none are named, a fit takes all others of the schema, and ``build`` those whose tables the releases hold.

    ``posterior`` estimates from a class table and one table for each attribute, which carries the class too. ``draw``
    is the papers' model: every table is a single Dirichlet draw; ``single_draw`` asks for it too. ``mechanism`` and
    ``tempered`` are for the release that is made for the model, see ``dpbayes.jobs.Fit``.

    Source: [RDP] section 5.1, with one Dirichlet for each class (theory: docs/explanation/models.md).
    """

    kind: ClassVar[str] = "naive-bayes"
    target: str
    features: tuple[str, ...] = ()
    estimate: Estimate = "posterior"
    mechanism: str = field(default="auto", init=False, compare=False)
    tempered: bool | None = field(default=None, init=False, compare=False)

    def __init__(
        self,
        target: str,
        *names: str,
        features: Iterable[str] = (),
        estimate: Estimate = "posterior",
        mechanism: str = "auto",
        single_draw: bool = False,
        tempered: bool | None = None,
    ) -> None:
        kept = {"target": target, "features": (*names, *features), "estimate": "draw" if single_draw else estimate}
        for name, value in {**kept, "mechanism": mechanism, "tempered": tempered}.items():
            object.__setattr__(self, name, value)
        checks.one_of("NaiveBayes", ("posterior", "draw"), estimate=self.estimate)
        if self.target in self.features:
            raise SchemaError(f"NaiveBayes: {self.target!r} is the class and cannot predict itself.")

    @property
    def draws(self) -> bool:
        """Whether it is the papers' single draw."""
        return self.estimate == "draw"

    def predictors(self, schema: Schema) -> tuple[str, ...]:
        """The attributes that predict."""
        chosen = self.features or tuple(name for name in schema.names if name != self.target)
        if not chosen:
            raise SchemaError("NaiveBayes: expected one attribute or more besides the class.")
        return chosen

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """The class table, then one table of every attribute given the class."""
        tables = tuple(Marginal((name,), (self.target,)) for name in self.predictors(schema))
        asked = (Marginal((self.target,)), *tables)
        for marginal in asked:
            marginal.axes(schema)
        return asked

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:
        """Parts of the budget, in units of 1/σ²: attribute tables by their cells, the class table by what it lacks.

        The expected KL error of a table of D cells is about D²σ²/2N², smallest in sum for 1/σ² ∝ D. All attribute
        tables carry the class in their row totals; a class table of its own gets what is missing until a class without
        records costs ``CLASS_ERROR``, σ/(N·√2π), at most ``MOST_FOR_CLASSES``; or almost all, where attribute tables
        would be lost in noise however much they depend on the class. Single draws are split by cells alone. Sizes are
        rounded to powers of two: few mechanisms compose faster.

        Symbols: σ noise that the whole budget would leave on one table, N records, D cells, C classes.
        Source: docs/explanation/models.md, splitting the budget.
        Adjacency: none; public numbers only.
        """
        classes, *tables = (marginal.size(schema) for marginal in self.marginals(schema))
        if self.draws:
            return by_cells((classes, *tables))
        sizes = by_cells(tables)
        needed = sigma**2 / (2.0 * math.pi * (records * CLASS_ERROR) ** 2)
        carried = sum(part * classes / size for part, size in zip(sizes, tables, strict=True)) / sum(sizes)
        own = min(
            max((needed - carried) / (1.0 - carried) if carried < 1 else 0.0, classes / sum(sizes)), MOST_FOR_CLASSES
        )
        precisions = [part * (1.0 - own) / sum(sizes) / max(sigma, 1e-9) ** 2 for part in sizes]
        if not detectable([(classes, size // classes) for size in tables], precisions, records):
            own = ALMOST_ALL
        return (own, *(part * (1.0 - own) / sum(sizes) for part in sizes))

    def build(self, releases: Release | Published | Iterable[Release]) -> NaiveBayesModel:
        """Class shares and rows, from published tables only: any that hold each attribute with the class."""
        published = Published.of(releases)
        names = self.features or self._found(published)
        if self.draws:
            prior = draw_of(published[Marginal((self.target,))])[0]
            rows = [draw_of(published[Marginal((name,), (self.target,))]) for name in names]
        else:
            prior = published.shares((self.target,))[0]
            rows = [published.shares((name,), (self.target,)) for name in names]
        return NaiveBayesModel(
            spec=self,
            published=published,
            features=names,
            class_log_prior=np.log(prior),
            feature_log_prob=tuple(np.log(row) for row in rows),
            temperature=self._temperature(published, names, prior, rows),
        )

    def _found(self, published: Published) -> tuple[str, ...]:
        """The attributes whose table with the class is published."""
        others = [name for name in published.schema.names if name != self.target]
        published.schema[self.target]
        found = tuple(name for name in others if Marginal((name,), (self.target,)) in published)
        if not found:
            raise ReleaseError(
                f"NaiveBayes: no release has a table of {self.target!r} with another attribute. Release one first."
            )
        return found

    def _temperature(
        self, published: Published, names: tuple[str, ...], prior: Floats, rows: Sequence[Floats]
    ) -> float:
        """The power that was chosen for this very model; else what noise leaves of its own trust."""
        for release in published.releases:
            if release.kind != "model":
                continue
            fitted = spec_from_record(release.job.get("model", {}))
            if isinstance(fitted, NaiveBayes) and fitted.target == self.target:
                chosen = [answer.values[0] for answer in release.answers if answer.name == TEMPERATURE]
                if chosen and set(fitted.predictors(release.schema)) == set(names):
                    return float(chosen[0])
        return 1.0 if self.draws else trust(published, self.target, names, prior, rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NaiveBayesModel(Built):
    """Log P(class) and ln P(value | class) over declared levels."""

    kind: ClassVar[str] = "naive-bayes"
    spec: NaiveBayes
    published: Published
    features: tuple[str, ...]
    """The attributes that predict, in order."""
    class_log_prior: Floats
    feature_log_prob: tuple[Floats, ...]
    temperature: float = 1.0
    """The power of the likelihood in predictions: below one where attributes repeat each other, or noise hides what
    they say."""

    @property
    def network(self) -> Network:
        """A star: the class, and every attribute given it."""
        schema, target = self.published.schema, self.spec.target
        tables = {name: np.exp(table) for name, table in zip(self.features, self.feature_log_prob, strict=True)}
        return Network(
            levels={name: schema[name].levels for name in (target, *self.features)},
            parents={target: (), **dict.fromkeys(self.features, (target,))},
            tables={target: np.exp(self.class_log_prior)[None], **tables},
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Levels of the class that a prediction can be: without the one that counts dropped rows."""
        target = self.published.schema[self.spec.target]
        return target.levels[: len(target.levels) - target.drops]

    def log_likelihood(self, levels: Mapping[str, np.ndarray]) -> Floats:
        """Log P(values | class) for every record, from positions among levels."""
        width = len(self.classes)
        total = np.zeros((width, len(levels[self.features[0]])))
        for name, table in zip(self.features, self.feature_log_prob, strict=True):
            for position in range(width):
                total[position] += table[position].take(levels[name])
        return total.T

    def predict(self, rows: object) -> np.ndarray:
        """The most probable class of every record."""
        return np.asarray(np.array(self.classes, dtype=object)[self.predict_joint_log_proba(rows).argmax(axis=1)])

    def predict_proba(self, rows: object) -> Floats:
        """P(class | values), a column for each of ``classes``: records as columns by name, or as a frame."""
        return np.asarray(np.exp(self.predict_log_proba(rows)))

    def predict_log_proba(self, rows: object) -> Floats:
        """Log P(class | values)."""
        joint = self.predict_joint_log_proba(rows)
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def predict_joint_log_proba(self, rows: object) -> Floats:
        """Log P(class, values) but for a constant: classes are chosen by it."""
        levels = coded(self.published.schema, rows, self.features, "NaiveBayes")
        return np.asarray(self.class_log_prior[: len(self.classes)] + self.temperature * self.log_likelihood(levels))

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, np.ndarray]:
        """Records: the class first, then every attribute given it."""
        prior = np.exp(self.class_log_prior)
        drawn = pick(prior[None] / prior.sum(), np.zeros(rows, dtype=np.int64), rng, even=even)
        columns = {
            name: pick(np.exp(table), drawn, rng, even=even)
            for name, table in zip(self.features, self.feature_log_prob, strict=True)
        }
        return {**columns, self.spec.target: drawn}
