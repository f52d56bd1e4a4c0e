"""Naive Bayes: a class, attributes that are independent given it, and how far noise leaves them to be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import ReleaseError, SchemaError
from dpbayes.models.model import BaseSpec, Built, Published, by_cells, draw_of, spec_from_record
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
        target = self.spec.target
        tables = {name: np.exp(table) for name, table in zip(self.features, self.feature_log_prob, strict=True)}
        parents = {target: (), **dict.fromkeys(self.features, (target,))}
        return Network.of(self.published.schema, parents, {target: np.exp(self.class_log_prior)[None], **tables})

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


SURELY = 2.0
"""Standard deviations of pure noise that dependence has to exceed: the usual level.

docs/explanation/models.md says when it was chosen.
"""


CLASS_ERROR = 0.01
"""What noise may cost a prediction where attributes say nothing, in nats: through each class share, and through them.

docs/explanation/models.md says when it was chosen.
"""


def trust(published: Published, target: str, names: Sequence[str], prior: Floats, rows: Sequence[Floats]) -> float:
    """The power of the likelihood where none was bought: τ = 1/√(1 + πV/8), or less without a sign of dependence

    Averaged over all tables that the release leaves possible, the odds of two classes are about the τ-th power of the
    estimated ones. Without a sign of dependence the power is also at most ``harmless``.

    Symbols: V variance that noise leaves to the logarithm of the odds, as in ``doubt``.
    Source: [MacKay92], the moderated output: a logistic function of a normal variable; docs/explanation/models.md.
    Adjacency: none; published numbers only.
    """
    averaged = 1.0 / math.sqrt(1.0 + math.pi * doubt(published, target, names, prior, rows) / 8.0)
    if dependence(published, target, names) > SURELY:
        return averaged
    return min(averaged, harmless(prior, rows))


def doubt(published: Published, target: str, names: Sequence[str], prior: Floats, rows: Sequence[Floats]) -> float:
    """V = 2·Σ_t Σ_cv p_c·θ_tcv·s_tcv: the variance that noise leaves to the logarithm of the odds of two classes

    Symbols: p class shares, θ_t rows of attribute t, s what noise leaves to the logarithm of a cell.
    Source: docs/explanation/models.md: Var ln x = ln(1 + Var x/(E x)²), cells as if independent, two classes.
    Adjacency: none; published numbers only.
    """
    joint = published.posterior.joint
    return 2.0 * sum(
        float((prior[:, None] * row * joint.doubt((target, name))).sum()) for name, row in zip(names, rows, strict=True)
    )


def harmless(prior: Floats, rows: Sequence[Floats]) -> float:
    """τ = √(2η/S), at most 1: a power that costs η nats to second order, should attributes say nothing of the class

    S = Var_c(Σ_t m_tc) + Σ_t [Σ_v q_tv·Var_c(ln θ_tcv) − Var_c(m_tc)] is the mean over records of the variance over
    classes of l = ln Πθ, with m_tc = Σ_v q_tv·ln θ_tcv. The loss is ln Σ_c p_c·e^{τl_c} − τ·Σ_c p_c·l_c, which is
    τ²·Var_c(l)/2 + O(τ³).

    Symbols: η CLASS_ERROR, p class shares, θ_t rows of attribute t, q_t = Σ_c p_c·θ_tc, Var_c under p.
    Source: docs/explanation/models.md, how far a model trusts itself.
    Adjacency: none; published numbers only.

    >>> round(harmless(np.array([0.5, 0.5]), [np.array([[0.9, 0.1], [0.1, 0.9]])]), 3)
    0.129
    """

    def variance(values: Floats) -> Floats:
        return np.asarray(prior @ (values - prior @ values) ** 2)

    prior = prior / prior.sum()
    together, alone = np.zeros(len(prior)), 0.0
    for row in rows:
        logs, values = np.log(row), prior @ row
        mean = logs @ values
        together, alone = together + mean, alone + float(variance(logs) @ values - variance(mean))
    spread = float(variance(together)) + alone
    return min(1.0, math.sqrt(2.0 * CLASS_ERROR / spread)) if spread > 0 else 1.0


def dependence(published: Published, target: str, names: Iterable[str]) -> float:
    """(X² − d)/√(2d), X² = Σ_t ‖R_t‖²/(v_t + s_t): how far tables are from independence, in standard deviations

    R_t is table t minus the product of its margins, freed of row and column means. Without dependence E‖R_t‖² is
    (v_t + s_t)·d_t, where s_t = N·Σ_j p_j(1−p_j)·Σ_k q_k(1−q_k)/d_t is what chance puts into N records, and X² is about
    a χ² variable with d = Σd_t degrees of freedom.

    Symbols: v_t variance of the noise, p class shares, q_k those of the attribute, d_t = (C−1)(L_t−1), C classes, L_t
    levels.
    Source: docs/explanation/models.md, how far a model trusts itself.
    Adjacency: none; published numbers only.
    """
    found, freedom = 0.0, 0
    classes = published.shares((target,))[0]
    for name in names:
        table = published[Marginal((name,), (target,))]
        values, total = published.shares((name,))[0], max(float(table.counts.sum()), 0.0)
        rest = table.counts - total * np.outer(classes, values)
        rest = rest - rest.mean(axis=0, keepdims=True) - rest.mean(axis=1, keepdims=True) + rest.mean()
        own = (rest.shape[0] - 1) * (rest.shape[1] - 1)
        chance = total * float((classes * (1.0 - classes)).sum() * (values * (1.0 - values)).sum())
        expected = float(table.variance.mean()) * own + chance
        if own and expected > 0:
            found, freedom = found + float((rest**2).sum()) / expected * own, freedom + own
    return (found - freedom) / math.sqrt(2.0 * freedom) if freedom else 0.0


def detectable(sizes: Iterable[tuple[int, int]], precisions: Iterable[float], records: int) -> bool:
    """Whether noise leaves a chance to see dependence at all: Σ_t N²·(k_t−1)/k_t²·p_t > SURELY·√(2d), k_t = min(C, L_t)

    The left side is what ``dependence`` adds up, without noise, if each class had values of its own.

    Symbols: (C, L_t) sizes, p_t precisions 1/v_t of the tables, N records, d degrees of freedom as in dependence.
    Source: docs/explanation/models.md, how far a model trusts itself.
    Adjacency: none; public numbers only.

    >>> detectable([(2, 5)], [1 / 100.0], 1000), detectable([(2, 5)], [1e-6], 1000)
    (True, False)
    """
    lead, freedom = 0.0, 0
    for (classes, levels), precision in zip(sizes, precisions, strict=True):
        groups = min(classes, levels)
        lead += records**2 * (groups - 1) / groups**2 * precision
        freedom += (classes - 1) * (levels - 1)
    return lead > SURELY * math.sqrt(2.0 * freedom)
