"""Which mechanism, with which parameters, how wrong it will be, and how many records it takes.

A plan never sees data. Tables are simulated from a public prior guess: p ~ Dirichlet(evenness, …), counts
multinomial. Each candidate is calibrated to the target, released and scored as it would be in earnest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats, Ints
from dpbayes.base import doors
from dpbayes.base.doors import Chart
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import TargetUnreachable
from dpbayes.inference.measurement import Measurement
from dpbayes.inference.posterior import Posterior
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.tuning import ConcentrationCurve, gaussian_noise, laplace_noise, published_dirichlet
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.solve import safe_root
from dpbayes.release.posterior import measured_noise

Measure = Literal["kl", "linf", "tv"]
Anything = Dirichlet | Gaussian | Laplace

SEED = 20240229
"""Simulated tables are the same in every plan, so that plans can be compared."""

TIE = 0.02
"""Errors this close count as equal; integer noise, exact on any computer, is then preferred."""

MOST_RECORDS = 10**12

MOST_SIMULATED = 2000
"""Cells of the largest table that is simulated to choose a mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a plan is asked for: public numbers only."""

    cells: int
    records: int
    target: Guarantee
    unit: PrivacyUnit
    releases: int = 1
    measure: Measure = "kl"
    failure: float = 0.05
    evenness: float = 1.0

    def __post_init__(self) -> None:
        _checks.positive_integer("plan", cells=self.cells, records=self.records, releases=self.releases)
        _checks.one_of("plan", ("kl", "linf", "tv"), measure=self.measure)
        _checks.probability("plan", failure=self.failure)
        _checks.positive("plan", evenness=self.evenness)
        if self.cells < 2:
            _checks.positive_integer("plan", **{"cells - 1": self.cells - 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One candidate: a mechanism, what is published from it, and how wrong that is."""

    name: str
    product: Literal["draw", "estimate"]
    mechanism: Anything
    mean: float
    standard_error: float
    quantile: float
    """Exceeded with probability ``failure`` only."""
    records_needed: int | None = None

    @property
    def label(self) -> str:
        """Name and product."""
        return f"{self.name}, {self.product}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Predictions from best to worst, and candidates that cannot meet the target."""

    question: Question
    predictions: tuple[Prediction, ...]
    impossible: tuple[tuple[str, str], ...]

    @property
    def choice(self) -> Prediction:
        """The best candidate; among equals, integer noise."""
        best = self.predictions[0]
        equal = [p for p in self.predictions if p.mean - best.mean <= max(TIE * best.mean, _doubt(p, best))]
        safe = [p for p in equal if isinstance(p.mechanism, (Gaussian, Laplace))]
        return safe[0] if safe else best

    @property
    def why(self) -> str:
        """The reason for the choice, in a sentence."""
        chosen, best = self.choice, self.predictions[0]
        others = [p for p in self.predictions if p is not chosen]
        reason = f"smallest predicted {self.question.measure} error, {chosen.mean:.3g}"
        if chosen is not best:
            reason = f"predicted error {chosen.mean:.3g}, equal to the smallest within the simulation's doubt, "
            reason += "and drawn in exact integer arithmetic"
        if others:
            runner = min(others, key=lambda p: p.mean)
            reason += f" (next: {runner.label}, {runner.mean:.3g})"
        return f"{chosen.label}: {reason}. Predicted from public numbers; no data was read."

    def plot(self, path: str | Path | None = None) -> Chart:
        """The predictions on a logarithmic axis, mean and tail; written to ``path`` if there is one."""
        return doors.picture("plan_picture", self, path=path)

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()


def _doubt(one: Prediction, other: Prediction) -> float:
    """Two standard errors of a difference of means."""
    return 2.0 * math.hypot(one.standard_error, other.standard_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    name: str
    product: Literal["draw", "estimate"]
    tune: Callable[[Question], Anything]


def _curve(question: Question) -> ConcentrationCurve:
    return ConcentrationCurve(target=question.target, unit=question.unit, releases=question.releases)


CANDIDATES = (
    _Candidate(
        name="dirichlet",
        product="draw",
        tune=lambda q: _curve(q).best(purpose="draw", cells=q.cells, records=q.records, guess=_typical(q)),
    ),
    _Candidate(
        name="dirichlet",
        product="estimate",
        tune=lambda q: _curve(q).best(purpose="estimate", cells=q.cells, records=q.records),
    ),
    _Candidate(
        name="gaussian",
        product="estimate",
        tune=lambda q: calibrate(gaussian_noise(q.unit), q.target, times=q.releases),
    ),
    _Candidate(
        name="laplace",
        product="estimate",
        tune=lambda q: calibrate(laplace_noise(q.unit), q.target, times=q.releases),
    ),
    _Candidate(
        name="dirichlet as published",
        product="draw",
        tune=lambda q: published_dirichlet(q.target, q.unit, releases=q.releases, cells=q.cells, records=q.records),
    ),
)


def plan(
    question: Question,
    *,
    error: float | None = None,
    products: tuple[str, ...] = ("draw", "estimate"),
    repetitions: int | None = None,
) -> Plan:
    """Predict every candidate; with ``error``, also the records it takes to stay below it but for ``failure``.

    >>> from dpbayes import RDP, Adjacency, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    >>> made = plan(Question(cells=5, records=1000, target=RDP(order=5, epsilon=1), unit=unit))
    >>> made.choice.product
    'estimate'
    """
    if error is not None:
        _checks.positive("plan", error=error)
    predictions, impossible = [], []
    for candidate in CANDIDATES:
        if candidate.product not in products:
            continue
        try:
            prediction = _predict(candidate, question, repetitions)
        except TargetUnreachable as problem:
            beyond = "doubles" in str(problem)
            reason = "needs larger gammas than doubles carry" if beyond else f"cannot meet {question.target}"
            impossible.append((f"{candidate.name}, {candidate.product}", reason))
            continue
        if error is not None:
            needed = _records_needed(candidate, question, error)
            prediction = replace(prediction, records_needed=needed)
        predictions.append(prediction)
    if not predictions:
        raise TargetUnreachable(f"plan: no mechanism meets {question.target}; loosen it.")
    return Plan(
        question=question,
        predictions=tuple(sorted(predictions, key=lambda p: p.mean)),
        impossible=tuple(impossible),
    )


def _typical(question: Question) -> Floats:
    """Sizes of the cells one may expect: the mean order statistics of p ~ Dirichlet(evenness, …)."""
    draws = np.random.default_rng(SEED).dirichlet(np.full(question.cells, question.evenness), 32)
    typical = np.sort(np.nan_to_num(draws, nan=1.0 / question.cells), axis=1).mean(axis=0)
    return np.asarray(typical / typical.sum())


def _predict(candidate: _Candidate, question: Question, repetitions: int | None) -> Prediction:
    mechanism = candidate.tune(question)
    errors = _errors(candidate.product, mechanism, question, repetitions=repetitions)
    return Prediction(
        name=candidate.name,
        product=candidate.product,
        mechanism=mechanism,
        mean=float(errors.mean()),
        standard_error=float(errors.std(ddof=1) / math.sqrt(errors.size)),
        quantile=float(np.quantile(errors, 1.0 - question.failure)),
    )


def smaller(question: Question) -> Question:
    """A table of at most ``MOST_SIMULATED`` cells with as many records a cell: its KL and TV errors are the same."""
    cells = min(question.cells, MOST_SIMULATED)
    return replace(question, cells=cells, records=max(round(question.records * cells / question.cells), 1))


def predicted_errors(
    mechanism: Anything | PseudoRecords, question: Question, *, measure: Measure, product: Literal["draw", "estimate"]
) -> float:
    """The mean error of one mechanism on simulated tables; a large table is predicted from a ``smaller`` one.

    Of pseudo-records it is the error of the distribution that they are drawn from.
    """
    asked = smaller(replace(question, measure=measure))
    share = asked.cells / question.cells if measure == "linf" else 1.0  # more cells, each a smaller share
    return share * float(_errors(product, mechanism, asked, repetitions=20).mean())


def _errors(
    product: str, mechanism: Anything | PseudoRecords, question: Question, *, repetitions: int | None = None
) -> Floats:
    """The error of each simulated release. Every candidate meets the same tables."""
    errors = np.empty(repetitions or int(np.clip(20_000 // question.cells, 8, 60)))
    for index in range(errors.size):
        rng, noise_rng = (np.random.default_rng([SEED, index, part]) for part in (0, 1))
        p = rng.dirichlet(np.full(question.cells, question.evenness))
        p = np.nan_to_num(p, nan=1.0 / question.cells)
        counts = rng.multinomial(question.records, p / p.sum())
        published = _publish(product, mechanism, counts, question, noise_rng)
        errors[index] = score(question.measure, counts / question.records, published)
    return errors


def _publish(
    product: str, mechanism: Anything | PseudoRecords, counts: Ints, question: Question, rng: np.random.Generator
) -> Floats:
    if isinstance(mechanism, PseudoRecords):
        return rng.dirichlet(mechanism.weight * counts + np.asarray(mechanism.concentration))
    if product == "draw" and isinstance(mechanism, Dirichlet):
        return mechanism.draw(counts, rng)
    values = mechanism.gammas(counts, rng) if isinstance(mechanism, Dirichlet) else mechanism.draw(counts, rng)
    known = question.records if question.unit.fixed_size else None
    measured = Measurement(axes=("cell",), values=np.asarray(values, dtype=np.float64), noise=measured_noise(mechanism))
    found = Posterior([measured], {"cell": question.cells}, records=known).settled.counts[("cell",)]
    whole = float(found.sum())
    return found / whole if whole > 0 else np.full(question.cells, 1.0 / question.cells)


def score(measure: Measure, truth: Floats, published: Floats) -> float:
    """KL(truth‖published), largest difference, or total variation."""
    if measure == "kl":
        seen = truth > 0
        return float((truth[seen] * np.log(truth[seen] / published[seen])).sum())
    difference = np.abs(truth - published)
    return float(difference.max() if measure == "linf" else 0.5 * difference.sum())


def _records_needed(candidate: _Candidate, question: Question, error: float) -> int | None:
    """The N, to about 10 %, whose error stays below ``error`` but for ``failure``; None beyond 10¹² records."""

    def gap(log_records: float) -> float:
        asked = replace(question, records=round(math.exp(log_records)))
        try:
            mechanism = candidate.tune(asked)
        except TargetUnreachable:  # more records than doubles carry
            return math.inf
        errors = _errors(candidate.product, mechanism, asked, repetitions=24)
        return math.log(max(float(np.quantile(errors, 1.0 - question.failure)), 1e-300) / error)

    low = high = math.log(question.records)
    if gap(high) > 0:
        while gap(high) > 0:
            low, high = high, high + math.log(8.0)
            if high > math.log(MOST_RECORDS):
                return None
    else:
        while low > 0 and gap(low) <= 0:
            low, high = max(low - math.log(8.0), 0.0), low
        if low <= 0 and gap(0.0) <= 0:
            return 1
    return math.ceil(math.exp(safe_root(gap, safe=high, unsafe=low, tolerance=0.08, steps=6)))
