"""Naive Bayes: a class, and attributes that are independent given the class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.errors import SchemaError
from dpbayes.estimate.noise import GaussianNoise
from dpbayes.models.base import NoisyTable, Published, draw_of
from dpbayes.models.coding import codes
from dpbayes.models.rows import pooled_shape, shrunk_rows
from dpbayes.models.sampling import pick

Estimate = Literal["posterior", "draw"]

CLASS_ERROR = 0.01
"""Class shares should be known to a KL error of this many nats before attributes get the rest."""

MOST_FOR_CLASSES = 0.5
"""The largest part of the budget for the class table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveBayes:
    """Which attribute is the class, and which ones predict it; all others of the schema if none are named.

    ``posterior`` estimates from a class table and one table for each attribute, which carries the class too. ``draw``
    is the papers' model: every table is a single Dirichlet draw.

    Source: [RDP] section 5.1, with one Dirichlet for each class (theory: docs/explanation/models.md).
    """

    kind: ClassVar[str] = "naive-bayes"
    target: str
    features: tuple[str, ...] = ()
    estimate: Estimate = "posterior"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        _checks.one_of("NaiveBayes", ("posterior", "draw"), estimate=self.estimate)
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
        tables carry the class in their row totals; a class table of its own gets what is missing to know the class
        shares up to ``CLASS_ERROR``, at most ``MOST_FOR_CLASSES``. Sizes are rounded to powers of two: few
        mechanisms compose faster.

        Symbols: σ noise that the whole budget would leave on one table, N records, D cells, C classes.
        Source: docs/explanation/models.md, splitting the budget.
        Adjacency: none; public numbers only.
        """
        classes, *tables = (marginal.size(schema) for marginal in self.marginals(schema))
        sizes = [2.0 ** round(math.log2(size)) for size in tables]
        needed = classes**2 * sigma**2 / (2.0 * records**2 * CLASS_ERROR)
        carried = sum(part * classes / size for part, size in zip(sizes, tables, strict=True)) / sum(sizes)
        own = min(
            max((needed - carried) / (1.0 - carried) if carried < 1 else 0.0, classes / sum(sizes)), MOST_FOR_CLASSES
        )
        return (own, *(part * (1.0 - own) / sum(sizes) for part in sizes))

    def build(self, published: Published) -> NaiveBayesModel:
        """Class shares and rows, from published tables only."""
        names = self.predictors(published.schema)
        classes = published[Marginal((self.target,))]
        tables = [published[Marginal((name,), (self.target,))] for name in names]
        if self.draws:
            prior, rows = draw_of(classes)[0], [draw_of(table) for table in tables]
        else:
            prior, rows = _estimated(classes, tables, published.records)
        return NaiveBayesModel(
            spec=self,
            published=published,
            class_log_prior=np.log(prior),
            feature_log_prob=tuple(np.log(row) for row in rows),
        )

    def record(self) -> dict[str, Any]:
        """JSON form."""
        return {"target": self.target, "features": list(self.features), "estimate": self.estimate}


def _estimated(classes: NoisyTable, tables: list[NoisyTable], records: int | None) -> tuple[Floats, list[Floats]]:
    """The hierarchical posterior: class totals by precision from all tables, then every row around its pooled shape."""
    totals, doubt = class_totals([classes, *tables])
    total = float(records) if records is not None else max(float(totals.sum()), 1.0)
    total_doubt = 1e-3 if records is not None else doubt * np.sqrt(totals.size)
    even = np.full(totals.size, 1.0 / totals.size)
    noise = GaussianNoise(sigma=doubt)
    prior = shrunk_rows(totals[None], noise, totals=np.array([total]), doubt=total_doubt, shape=even).shares[0]
    rows = []
    for table in tables:
        shape = pooled_shape(table.rows, table.noise, total=total, doubt=total_doubt)
        rows.append(shrunk_rows(table.rows, table.noise, totals=total * prior, doubt=doubt, shape=shape).shares)
    return prior, rows


def class_totals(tables: list[NoisyTable]) -> tuple[Floats, float]:
    """n_j = Σ_t w_t Σ_k ĉ_tjk/Σ_t w_t with w_t = 1/Var, and the standard deviation of that mean.

    Symbols: ĉ unbiased counts of table t, j class, k value, Var the noise of a row total.
    Source: inverse-variance weighting, as every table counts every record once; docs/explanation/models.md.
    Adjacency: none, this is post-processing.
    """
    weighted, precision = 0.0, 0.0
    for table in tables:
        rows = table.rows if table.marginal.given else table.values[:, None]
        center = table.noise.center(rows)
        variance = float((table.noise.spread(np.maximum(center, 0.0)) ** 2).sum(axis=1).mean())
        weighted, precision = weighted + center.sum(axis=1) / variance, precision + 1.0 / variance
    return np.asarray(weighted / precision), float(1.0 / np.sqrt(precision))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NaiveBayesModel:
    """Log P(class) and ln P(value | class) over declared levels."""

    kind: ClassVar[str] = "naive-bayes"
    spec: NaiveBayes
    published: Published
    class_log_prior: Floats
    feature_log_prob: tuple[Floats, ...]
    temperature: float = 1.0
    """The power of the likelihood in predictions, below one where attributes repeat each other."""

    @property
    def features(self) -> tuple[str, ...]:
        """The attributes that predict, in order."""
        return self.spec.predictors(self.published.schema)

    @property
    def classes(self) -> tuple[str, ...]:
        """Levels of the class that a prediction can be: without the one that counts dropped rows."""
        target = self.published.schema[self.spec.target]
        return target.levels[: len(target.levels) - target.drops]

    def log_likelihood(self, coded: Mapping[str, np.ndarray]) -> Floats:
        """Log P(values | class) for every record, from positions among levels."""
        width = len(self.classes)
        total = np.zeros((width, len(coded[self.features[0]])))
        for name, table in zip(self.features, self.feature_log_prob, strict=True):
            for position in range(width):
                total[position] += table[position].take(coded[name])
        return total.T

    def predict_log_proba(self, columns: Mapping[str, object]) -> Floats:
        """Log P(class | values) for columns of raw values."""
        schema = self.published.schema
        for name in self.features:
            if name not in columns:
                raise SchemaError(
                    f"NaiveBayes: there is no column {name!r}. The model needs {', '.join(self.features)}."
                )
        coded = {name: codes(schema[name], columns[name]) for name in self.features}
        joint = self.class_log_prior[: len(self.classes)] + self.temperature * self.log_likelihood(coded)
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, np.ndarray]:
        """Records: the class first, then every attribute given it."""
        prior = np.exp(self.class_log_prior)
        drawn = pick(prior[None] / prior.sum(), np.zeros(rows, dtype=np.int64), rng, even=even)
        columns = {
            name: pick(np.exp(table), drawn, rng, even=even)
            for name, table in zip(self.features, self.feature_log_prob, strict=True)
        }
        return {**columns, self.spec.target: drawn}

    def record(self) -> dict[str, Any]:
        """JSON form without the release."""
        tables = zip(self.features, self.feature_log_prob, strict=True)
        return {
            "spec": self.spec.record(),
            "temperature": self.temperature,
            "class_shares": np.exp(self.class_log_prior).tolist(),
            "tables": {name: np.exp(table).tolist() for name, table in tables},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], published: Published) -> NaiveBayesModel:
        """Read the JSON form back."""
        spec = NaiveBayes(**record["spec"])
        names = spec.predictors(published.schema)
        return cls(
            spec=spec,
            published=published,
            temperature=record["temperature"],
            class_log_prior=np.log(record["class_shares"]),
            feature_log_prob=tuple(np.log(record["tables"][name]) for name in names),
        )
