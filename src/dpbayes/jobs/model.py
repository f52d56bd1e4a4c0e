"""Models: all the tables that one needs, calibrated together, with what else it buys."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dpbayes.base.checks import Ints
from dpbayes.base.errors import InvalidArgument, MeaninglessBudget, TableError
from dpbayes.design.noise import Need, TableMechanism, Wish, alone, mechanisms_for, noise, spread
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, check_tables, count_and_draw, of_type, typed
from dpbayes.jobs.edges import Quantiles, check_edges, relevel, selection_for
from dpbayes.mechanisms.selection import Selection, numbers_below
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.model import Model, ModelSpec
from dpbayes.models.naive_bayes import TEMPERATURE, NaiveBayes, NaiveBayesModel
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Answer, Release
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import CodingEngine, Engine, needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(BaseJob):
    """Fit a model: ``Fit(model=NaiveBayes(target="income"), tempered=True)``.

    Args:
        model: which model.
        mechanism: ``auto`` takes Gaussian noise, or Laplace noise for a pure guarantee; a model that is a posterior
            draw needs the Dirichlet mechanism.
        accounting: ``exact``, or ``published`` for the papers' parameters.
        tempered: spend a tenth of the budget on how far a naive Bayes model may trust itself. Left out, it is spent
            where public numbers say that the choice can do more than guess, and the engine can make it.
        edges: numeric attributes whose edges are bought with another tenth.
    """

    kind: ClassVar[str] = "model"
    MAKES: ClassVar[Mapping[str, Make]] = {
        "naive-bayes": Make("the class, or 'class|features'", ("mechanism", "single_draw", "tempered")),
        "network": Make(
            "none, and the graph is learned; or each node with its parents",
            ("mechanism", "single_draw"),
        ),
    }
    model: ModelSpec[Model]
    mechanism: Wish = "auto"
    accounting: Accounting = "exact"
    tempered: bool | None = None
    edges: dict[str, Quantiles] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tempered and not isinstance(self.model, NaiveBayes):
            raise InvalidArgument("Fit: only naive Bayes has a temperature.")
        if self.tempered and (self.model.draws or self.accounting == "published"):
            raise InvalidArgument("Fit: the papers' model has no temperature. Leave tempered out.")

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Fit:  # noqa: ARG003 - for others
        """The model that the tables name; it may be left to public numbers whether it is tempered (``auto``)."""
        single = of_type(bool, "single_draw", keys.get("single_draw", False))
        options = {name: value for name, value in keys.items() if name != "single_draw" and value != "auto"}
        return cls(
            model=replace(named(kind, tables), estimate="draw" if single else "posterior"), **typed(cls, options)
        )

    def suiting(self, table: Engine) -> Fit:
        """The job as this engine can do it: without a temperature that nobody insists on."""
        return replace(self, tempered=False) if self.tempered is None and not isinstance(table, CodingEngine) else self

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate every table of the model, and what it buys, against one target."""
        planned = self._planned(schema)
        marginals = self._marginals(planned)
        check_tables(planned, marginals)
        alongside = self._alongside(schema, target)
        need = Need(
            target=target,
            unit=schema.unit,
            cells=tuple(marginal.size(planned) for marginal in marginals),
            rows=tuple(marginal.rows(planned) for marginal in marginals),
            merging=tuple(not self.edges.keys().isdisjoint(marginal.names) for marginal in marginals),
            records=schema.expected,
            wish=self._wish(),
            purpose="draw" if self.model.draws else "estimate",
            accounting=self.accounting,
            alongside=alongside,
        )
        parts = None
        if self.accounting == "exact":
            parts = self.model.shares(planned, alone(need), need.known)
        mechanisms, choice = mechanisms_for(need, parts)
        self._warn(need, mechanisms)
        return self._paying(
            schema,
            target,
            (*mechanisms, *alongside),
            tables=marginals,
            choice=choice,
            about=f"{self.model.kind}: " + "; ".join(str(marginal) for marginal in marginals),
            columns=tuple(
                attribute.name for attribute in needed(planned, marginals) if attribute.name not in self.edges
            ),
        )

    def _marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """What the model needs; the papers' networks have a table for each node and no other."""
        if self.accounting == "published" and isinstance(self.model, BayesNet) and not self.model.learned:
            return self.model.of_nodes(schema)
        return self.model.marginals(schema)

    def _wish(self) -> Wish:
        if not self.model.draws and self.accounting == "exact":
            return self.mechanism
        if self.mechanism not in ("auto", "dirichlet"):
            raise InvalidArgument(
                f"Fit: a posterior draw or the papers' parameters need the Dirichlet mechanism, got {self.mechanism!r}."
            )
        return "dirichlet"

    def _planned(self, schema: Schema) -> Schema:
        """The schema with provisional edges where they are to be bought."""
        for name in self.edges:
            schema[name]
        attributes = tuple(
            self.edges[each.name].provisional(each) if each.name in self.edges else each for each in schema.attributes
        )
        return schema.with_attributes(attributes)

    def _alongside(self, schema: Schema, target: Guarantee) -> tuple[Selection, ...]:
        bought = sum(wish.selections for wish in self.edges.values())
        edges = (selection_for(target.share(10), schema.unit, times=bought),) * bought if bought else ()
        if self.tempered is False or not isinstance(self.model, NaiveBayes) or self._wish() == "dirichlet":
            return edges
        choice = selection_for(target.share(10), schema.unit)
        records, classes = schema.expected, len(schema[self.model.target].levels)
        wanted = self.tempered or worth_it(choice, records=records, classes=classes)
        return (*edges, choice) if wanted else edges

    def _warn(self, need: Need, mechanisms: Sequence[TableMechanism]) -> None:
        """Say so where the noise of a typical table is larger than the table."""
        if need.records is None:
            return
        errors = [
            noise(cells, spread(mechanism, need.records / cells), need.records)
            for mechanism, cells in zip(mechanisms, need.cells, strict=True)
        ]
        if (error := float(np.mean(errors))) > 1.0:
            warnings.warn(
                f"Fit: {len(mechanisms)} tables share the guarantee, so that the noise in each is predicted to be "
                f"{error:.3g} times its whole mass. The model will know little more than class or column shares: ask "
                "for fewer attributes or a larger ε.",
                MeaninglessBudget,
                stacklevel=5,
            )

    def check(self, table: Engine, plan: Plan) -> None:
        """Refuse a table that lacks a column, or cannot be read record by record where that is needed."""
        BaseJob.check(self, table, plan)
        for name in self.edges:
            check_edges(table, name)
        if self.tempered and not isinstance(table, CodingEngine):
            raise TableError(
                "Fit: a temperature is chosen record by record, which this engine cannot do. Leave tempered out."
            )

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Buy edges, count and draw all tables, and choose the temperature by the model that they make."""
        schema, answers = self._bought(table, plan, rng)
        drawn = count_and_draw(table, schema, self._marginals(schema), plan, rng)
        drawn = replace(drawn, answers=answers, schema=schema if self.edges else None)
        if len(plan.places) <= len(plan.tables) + sum(wish.selections for wish in self.edges.values()):
            return drawn  # no temperature is paid for
        release = Release(
            job=self.record(), schema=schema, promise=plan.target, choice="", paid=plan.paid, records=drawn.records,
            tables=drawn.tables,
        )  # fmt: skip
        model = self.model.build(release)
        by = plan.places[-1]
        power = choose_temperature(model, table, plan.paid[by].mechanism, rng)  # type: ignore[arg-type]  # planned, checked
        found = Answer(name=TEMPERATURE, by=by, values=(power,))
        return replace(drawn, answers=(*answers, found))

    def _bought(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> tuple[Schema, tuple[Answer, ...]]:
        attributes, answers = {}, []
        by = plan.places[len(plan.tables)] if self.edges else 0
        for name, wish in self.edges.items():
            made: Selection = plan.paid[by].mechanism  # type: ignore[assignment]
            edges = wish.edges(table, name, plan.schema, made, rng)
            attributes[name] = relevel(plan.schema[name], edges=edges)
            answers.append(Answer(name=f"edges of {name}", by=by, values=edges))
        kept = tuple(attributes.get(each.name, each) for each in plan.schema.attributes)
        return plan.schema.with_attributes(kept), tuple(answers)


def named(kind: str, tables: Sequence[str]) -> NaiveBayes | BayesNet:
    """The model that tables name: ``income|sex,age`` its class and features, or each node of a graph with its parents.

    >>> named("network", ["age", "income|age"]).edges
    (('age', 'income'),)
    """
    found = [Marginal.parse(text) for text in tables]
    if any(len(each.of) != 1 for each in found):
        raise InvalidArgument(f"{kind}: expected one name before the bar of each table, as in 'income|sex,age'.")
    if kind == "naive-bayes":
        if len(found) != 1:
            raise InvalidArgument("naive-bayes: expected one table: the class, as in income, or 'income|sex,age'.")
        return NaiveBayes(target=found[0].of[0], features=found[0].given)
    return BayesNet(*tables)


JOB = Fit


# how far a naive Bayes model may trust itself ----------------------------------------------------------------------
#
# Attributes that depend on each other count the same evidence twice, so naive Bayes is too sure. Only the records can
# tell how much: the tables of a model say nothing about it. The exponential mechanism picks the power τ of the
# likelihood, π·Πθ^τ, among public candidates by its clipped logarithmic loss; τ = 0 predicts the class shares.

CANDIDATES = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Powers of the likelihood: few, so that a small budget can still tell them apart."""

GRAINS = 2**20
"""The loss of a record is rounded to this many parts of its bound: sums are then whole numbers, and exact."""


FOUND, SURE = 0.1, 0.95
"""A choice is worth its price if it is sure to come this near to the best candidate, in nats per record.

A tenth of a nat is a tenth of the probability of the true class. Fixed before anything was measured.
"""


def worth_it(selection: Selection, *, records: int | None, classes: int) -> bool:
    """ε·N·η/(B·m) ≥ ln((k−1)/β), or with 2m for m if replaced: then the choice is within η of the best, but for β

    A candidate that is worse by η per record, Nη in all, is drawn at most exp(−εNη/R) as often as the best one.

    Symbols: ε sharpness, N records, η FOUND, B = 3 + ln C the bound of a loss, C classes, m rows per person, k
    candidates, β = 1 − SURE, R as in choose_temperature.
    Source: docs/explanation/models.md, the temperature; [MT07] theorem 6 for the exponential mechanism in general.
    Adjacency: both, as stated.

    >>> from dpbayes import Unit
    >>> selection = Selection(sharpness=0.1, unit=Unit(adjacency="replace-one"))
    >>> worth_it(selection, records=1000, classes=2), worth_it(selection, records=10_000, classes=2)
    (False, True)
    """
    if records is None:
        return False
    moved = selection.unit.max_rows * (2 if selection.unit.replaces else 1)
    lead = selection.sharpness * records * FOUND / ((3.0 + math.log(classes)) * moved)
    return lead >= math.log((len(CANDIDATES) - 1) / (1.0 - SURE))


def choose_temperature(
    model: NaiveBayesModel, table: CodingEngine, selection: Selection, rng: np.random.Generator | None = None
) -> float:
    """τ with probability ∝ exp(−ε·Σ_i min(ℓ_i(τ), B)/R), each loss rounded to a grid: R = Bm, or 2Bm if replaced

    A person who is added adds to each sum between 0 and Bm; one who is replaced changes it by −Bm to Bm.

    Symbols: ℓ logarithmic loss of record i, B = 3 + ln C its bound, C classes, m rows per person, ε sharpness.
    Source: our proof, docs/explanation/proofs/selection.md; the rounded loss of a record lies in [0, B].
    Adjacency: both, as stated.
    """
    unit = selection.unit
    spread = GRAINS * unit.max_rows * (2 if unit.replaces else 1)
    target, scores = model.spec.target, np.zeros(len(CANDIDATES), dtype=np.int64)
    for coded in table.codes(model.published.schema, (*model.features, target)):
        scores += record_losses(model, coded, coded[target]).sum(axis=1)
    return CANDIDATES[selection.choose(scores.tolist(), spread=spread, below=numbers_below(rng))]


def record_losses(model: NaiveBayesModel, coded: Mapping[str, Ints], labels: Ints) -> Ints:
    """For every candidate the clipped loss of every record, in grains from 0 to GRAINS.

    A row depends on nothing but its own record and the published model: sums over records in floating point, or a
    matrix product whose rounding depends on the number of rows, would let one person move the losses of others.
    """
    log_likelihood = model.log_likelihood(coded)
    width = log_likelihood.shape[1]
    kept = labels < width
    log_likelihood, labels = log_likelihood[kept], labels[kept]
    # everything is relative to the true class: the loss of a record is ln Σ_j exp(advantage of class j)
    ahead = log_likelihood - log_likelihood[np.arange(len(labels)), labels][:, None]
    prior = model.class_log_prior[:width]
    bound = 3.0 + math.log(width)
    highest = bound + float(prior.max() - prior.min()) + 1.0  # no loss below the bound has an advantage above this
    losses = np.empty((len(CANDIDATES), len(labels)), dtype=np.int64)
    for row, power in enumerate(CANDIDATES):
        odds = np.zeros(len(labels))
        for position in range(width):
            odds += np.exp(np.minimum(power * ahead[:, position], highest) + prior[position])
        parts = np.nan_to_num((np.log(odds) - prior[labels]) / bound, nan=1.0)
        losses[row] = np.rint(np.clip(parts, 0.0, 1.0) * GRAINS).astype(np.int64)
    return losses
