"""What is known of one joint table whose law has two modes: weighted draws of all its counts, in place of moments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.ask import DRAWS, NEARLY, Asked, Levels, Reply, Target
from dpbayes.inference.measurement import Axes, widen
from dpbayes.inference.numbers import Estimate, Repeats, TableEstimate
from dpbayes.inference.question import Atom, read
from dpbayes.inference.released import Reading
from dpbayes.schema.public import summed

OWNER = "Posterior"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """Estimates, intervals, draws and answers about the attributes of one released posterior."""

    reading: Reading
    sizes: Mapping[str, int]
    """Levels of each attribute, in the order of the axes."""
    repeats: Repeats

    known = True

    @property
    def law(self) -> Weighted:
        """It orders names itself."""
        return self

    @property
    def total(self) -> float:
        """The public number of records."""
        return float(self.reading.total)

    def ordered(self, names: Sequence[str]) -> Axes:
        """The attributes in the order of the axes."""
        return tuple(name for name in self.sizes if name in names)

    def sampled(self, target: Target) -> tuple[Floats, Floats]:
        """Draws of the whole table and their weights: of its counts, or of N times the shares of the population."""
        if target == "records":
            return self.reading.counts.reshape(-1, *self.sizes.values()).astype(np.float64), self.reading.weights
        shares = self.reading.draws(DRAWS, np.random.default_rng(0))
        return self.total * shares.reshape(-1, *self.sizes.values()), np.full(DRAWS, 1.0 / DRAWS)

    def estimate(self, names: Sequence[str], given: Sequence[str] = (), *, level: float = 0.95) -> TableEstimate:
        """Means and central intervals of a table of some of the attributes, in the order given first, then of."""
        checks.probability(OWNER, level=level)
        asked = (*given, *names)
        margin = self._margin(asked)
        shape = [self.sizes[name] for name in asked]
        counts = _estimate(margin.expected_counts, *margin.interval(level, of="counts"), shape)
        counts = replace(counts, note=margin.promise(level))
        if given:
            records, population = (self._within(asked, given, level, target) for target in ("records", "population"))
        else:
            parts = [part / max(self.total, 1.0) for part in (counts.values, counts.lower, counts.upper)]
            records = Estimate(values=parts[0], lower=parts[1], upper=parts[2])
            population = _estimate(margin.mean, *margin.interval(level), shape)
        return TableEstimate(
            axes=asked,
            given=tuple(given),
            level=level,
            counts=counts,
            records=records,
            population=population,
            swallowed=np.asarray(counts.lower <= 0),
        )

    def ask(self, question: str, levels: Levels, *, level: float, target: Target) -> Reply:
        """Mean and central interval of any sum, difference, product or ratio, from draws of the whole table."""
        checks.probability(OWNER, level=level)
        checks.one_of(OWNER, ("records", "population"), target=target)
        asked = Asked(self, levels)
        value = asked.value(read(question))
        if (found := self.printed(question, levels, level=level, target=target, whole=False)) is not None:
            return found
        tables, weights = self.sampled(target)
        sums = np.zeros((len(tables), max(len(asked.sums), 1)))
        for place, (axes, chosen) in enumerate(asked.sums):
            sums[:, place] = (tables * widen(chosen, axes, tuple(self.sizes))).reshape(len(tables), -1).sum(axis=1)
        values = value.compute(sums)
        finite = np.isfinite(values)
        estimate = float(weights[finite] @ values[finite] / weights[finite].sum()) if finite.any() else math.nan
        lower, upper = (float(end[0]) for end in _quantiles(values[:, None], weights, level))
        return Reply(
            question=question,
            estimate=estimate,
            lower=min(lower, estimate),
            upper=max(upper, estimate),
            level=level,
            target=target,
            method="draws",
            notes=(self.promise(level, cell=False),),
        )

    def printed(
        self, question: str, levels: Levels, *, level: float, target: Target, whole: bool = True
    ) -> Reply | None:
        """What is printed of one cell, if that is what is asked; ``whole``: of the table of all attributes."""
        tree = read(question)
        if not isinstance(tree, Atom) or (whole and (tree.given or {each.name for each in tree.of} != {*self.sizes})):
            return None
        if (found := Asked(self, levels).printed(tree, level, target)) is None:
            return None
        return Reply(
            question=question,
            **dict(zip(("estimate", "lower", "upper"), found, strict=True)),
            level=level,
            target=target,
            method="table",
            notes=(self.promise(level, cell=whole),),
        )

    def promise(self, level: float, *, cell: bool) -> str:
        """What intervals promise: of a cell of the whole table, or of any other number."""
        return (self.reading if cell else replace(self.reading, told=())).promise(level)

    def draws(self, tables: Sequence[Sequence[str]], number: int, rng: np.random.Generator) -> list[Floats]:
        """Draws of whole tables of counts; shared margins agree in each draw."""
        rows = rng.choice(self.reading.weights.size, size=number, p=self.reading.weights)
        whole = self.reading.counts[rows].reshape(number, *self.sizes.values()).astype(np.float64)
        return [self._turned(whole, names) for names in tables]

    def _margin(self, names: Sequence[str]) -> Reading:
        """A margin of a Dirichlet law is one, with the parameters added up."""
        prior = self._turned(self.reading.prior.reshape(1, *self.sizes.values()), names).ravel()
        counts = self._turned(self.reading.counts.reshape(-1, *self.sizes.values()), names)
        told = self.reading.told if len(names) == len(self.sizes) else ()
        order = self._turned(np.arange(len(told)).reshape(1, *self.sizes.values()), names).ravel() if told else ()
        told = tuple(told[cell] for cell in order)
        return replace(self.reading, prior=prior, counts=counts.reshape(len(counts), -1), told=told, _cells=[])

    def _turned(self, tables: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Tables of these attributes in this order; the first axis numbers the draws."""
        if len(set(names)) < len(names):
            raise InvalidArgument(f"{OWNER}: an axis is named twice. Name each axis once.")
        return summed(tables, ("", *self.sizes), ("", *names))

    def _within(self, asked: Axes, given: Sequence[str], level: float, target: Target) -> Estimate:
        """Shares within groups; those of an empty group are even."""
        tables, weights = self.sampled(target)
        part = self._turned(tables, asked)
        whole = part.sum(axis=tuple(range(1 + len(given), part.ndim)), keepdims=True)
        shares = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), whole.size / part.size)
        ends = _quantiles(shares.reshape(len(shares), -1), weights, level)
        return _estimate(weights @ shares.reshape(len(shares), -1), *ends, part.shape[1:])


def _estimate(values: Floats, lower: Floats, upper: Floats, shape: Sequence[int]) -> Estimate:
    return Estimate(values=values.reshape(shape), lower=lower.reshape(shape), upper=upper.reshape(shape))


def _quantiles(values: Floats, weights: Floats, level: float) -> tuple[Floats, Floats]:
    """Ends of central intervals of the columns of weighted draws."""
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(weights[order], axis=0)
    columns = np.arange(values.shape[1])
    rows = [np.argmax(reached >= tail, axis=0) for tail in ((1 - level) / 2, (1 + level) / 2 - NEARLY)]
    ends: list[Floats] = [values[order[row, columns], columns] for row in rows]
    return ends[0], ends[1]
