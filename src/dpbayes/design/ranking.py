"""Mechanisms compared: how wrong each would be on a table of this size, and how many records it takes.

A ranking never sees data. Each candidate is calibrated to the target as a job would calibrate it. Tables are simulated
from a public prior guess: p ~ Dirichlet(evenness, …), counts multinomial; each is released and scored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import TargetUnreachable
from dpbayes.design.noise import WISHES, Need, TableMechanism, mechanisms_for
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.measurement import Measurement
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.tuning import Purpose
from dpbayes.privacy.convert import safe_root
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.estimates import measured_noise
from dpbayes.schema.unit import Unit

Measure = Literal["kl", "tv", "linf", "hellinger"]
MEASURES: dict[Measure, str] = {
    "kl": "KL divergence",
    "tv": "total variation distance",
    "linf": "largest difference",
    "hellinger": "Hellinger distance",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One candidate: a mechanism, what is published from it, and how wrong that is."""

    name: str
    product: Purpose
    mechanism: TableMechanism
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
class Ranking:
    """Predictions from best to worst, and candidates that cannot meet the target."""

    measure: Measure
    predictions: tuple[Prediction, ...]
    impossible: tuple[tuple[str, str], ...]

    @property
    def choice(self) -> Prediction:
        """The best candidate; among equals, integer noise."""
        best = self.predictions[0]
        # as good as the best, but for two percent or chance
        doubt = {id(p): 2.0 * math.hypot(p.standard_error, best.standard_error) for p in self.predictions}
        equal = [p for p in self.predictions if p.mean - best.mean <= max(0.02 * best.mean, doubt[id(p)])]
        return next((each for each in equal if not isinstance(each.mechanism, Dirichlet)), best)

    @property
    def why(self) -> str:
        """The reason for the choice, in a sentence."""
        chosen, best = self.choice, self.predictions[0]
        others = [p for p in self.predictions if p is not chosen]
        reason = f"smallest predicted {self.measure} error, {chosen.mean:.3g}"
        if chosen is not best:
            reason = f"predicted error {chosen.mean:.3g}, equal to the smallest within the simulation's doubt, "
            reason += "and drawn in exact integer arithmetic"
        if others:
            reason += f" (next: {others[0].label}, {others[0].mean:.3g})"
        return f"{chosen.label}: {reason}. Predicted from public numbers; no data was read."


def ranking(
    *,
    cells: int,
    records: int,
    target: Guarantee,
    unit: Unit,
    releases: int = 1,
    measure: Measure = "kl",
    failure: float = 0.05,
    evenness: float = 1.0,
    error: float | None = None,
    repetitions: int | None = None,
) -> Ranking:
    """Predict every candidate; with ``error``, also the records it takes to stay below it but for ``failure``.

    ``releases`` tables of ``cells`` cells share the target.

    >>> from dpbayes import RDP, Unit
    >>> unit = Unit(adjacency="replace-one")
    >>> ranking(cells=5, records=1000, target=RDP(order=5, epsilon=1), unit=unit).choice.product
    'estimate'
    """
    checks.positive_integer("plan", cells=cells, records=records, releases=releases)
    checks.positive_integer("plan", **{"cells - 1": cells - 1})
    checks.one_of("plan", tuple(MEASURES), measure=measure)
    checks.probability("plan", failure=failure)
    checks.positive("plan", evenness=evenness, **({} if error is None else {"error": error}))
    need = Need(target=target, unit=unit, cells=(cells,) * releases, records=records)
    of_papers = replace(need, wish="dirichlet", purpose="draw", accounting="published")
    candidates = [
        ("dirichlet", replace(of_papers, accounting="exact")),
        *((wish, replace(need, wish=wish)) for wish in WISHES if wish != "auto"),
        ("dirichlet as published", of_papers),
    ]
    made_up = _MadeUp(measure=measure, evenness=evenness)
    predictions, impossible = [], []
    for name, each in candidates:
        try:
            mechanism = mechanisms_for(each)[0][0]
        except TargetUnreachable as problem:
            beyond = "doubles" in str(problem)
            reason = "needs larger gammas than doubles carry" if beyond else f"cannot meet {target}"
            impossible.append((f"{name}, {each.purpose}", reason))
            continue
        errors = made_up.errors(mechanism, each, repetitions or int(np.clip(20_000 // cells, 8, 60)))
        prediction = Prediction(
            name=name,
            product=each.purpose,
            mechanism=mechanism,
            mean=float(errors.mean()),
            standard_error=float(errors.std(ddof=1) / math.sqrt(errors.size)),
            quantile=float(np.quantile(errors, 1.0 - failure)),
            records_needed=None if error is None else _records_needed(each, made_up, error, failure),
        )
        predictions.append(prediction)
    if not predictions:
        raise TargetUnreachable(f"plan: no mechanism meets {target}; loosen it.")
    return Ranking(
        measure=measure,
        predictions=tuple(sorted(predictions, key=lambda p: p.mean)),
        impossible=tuple(impossible),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MadeUp:
    """Made-up tables, the same for every candidate, and how the error on them is measured."""

    measure: Measure
    evenness: float

    def errors(self, mechanism: TableMechanism, need: Need, repetitions: int) -> Floats:
        """The error of each simulated release."""
        cells, errors = need.cells[0], np.empty(repetitions)
        for index in range(errors.size):
            rng, noise_rng = (np.random.default_rng([20240229, index, part]) for part in (0, 1))
            p = np.nan_to_num(rng.dirichlet(np.full(cells, self.evenness)), nan=1.0 / cells)
            counts = rng.multinomial(need.known, p / p.sum())
            errors[index] = score(self.measure, counts / need.known, _published(mechanism, counts, need, noise_rng))
        return errors


def _published(mechanism: TableMechanism, counts: Ints, need: Need, rng: np.random.Generator) -> Floats:
    """The shares that readers get."""
    if isinstance(mechanism, Dirichlet) and need.purpose == "draw":
        return mechanism.draw(counts, rng)
    values = mechanism.gammas(counts, rng) if isinstance(mechanism, Dirichlet) else mechanism.draw(counts, rng)
    known = need.known if need.unit.fixed_size else None
    measured = Measurement(axes=("cell",), values=np.asarray(values, dtype=np.float64), noise=measured_noise(mechanism))
    found = JointPosterior([measured], {"cell": counts.size}, records=known).settled.counts[("cell",)]
    whole = float(found.sum())
    return found / whole if whole > 0 else np.full(counts.size, 1.0 / counts.size)


def score(measure: Measure, truth: Floats, published: Floats) -> float:
    """KL(truth‖published), largest difference, total variation, or Hellinger distance."""
    if measure == "kl":
        seen = truth > 0
        return float((truth[seen] * np.log(truth[seen] / published[seen])).sum())
    if measure == "hellinger":
        return math.sqrt(max(1.0 - float(np.sqrt(truth * published).sum()), 0.0))
    difference = np.abs(truth - published)
    return float(difference.max() if measure == "linf" else 0.5 * difference.sum())


def _records_needed(need: Need, made_up: _MadeUp, error: float, failure: float) -> int | None:
    """The N, to about 10 %, whose error stays below ``error`` but for ``failure``; None beyond 10¹² records."""

    def gap(log_records: float) -> float:
        asked = replace(need, records=round(math.exp(log_records)))
        try:
            errors = made_up.errors(mechanisms_for(asked)[0][0], asked, 24)
        except TargetUnreachable:  # more records than doubles carry
            return math.inf
        return math.log(max(float(np.quantile(errors, 1.0 - failure)), 1e-300) / error)

    low = high = math.log(need.known)
    if gap(high) > 0:
        while gap(high) > 0:
            low, high = high, high + math.log(8.0)
            if high > math.log(10**12):
                return None
    else:
        while low > 0 and gap(low) <= 0:
            low, high = max(low - math.log(8.0), 0.0), low
        if low <= 0 and gap(0.0) <= 0:
            return 1
    return math.ceil(math.exp(safe_root(gap, safe=high, unsafe=low, tolerance=0.08, steps=6)))
