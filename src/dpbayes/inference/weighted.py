"""What is known of one joint table whose law has two modes: weighted draws of all its counts, in place of moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument
from dpbayes.inference.ask import Answer, Target, drawn_answer, printed_answer, quantiles
from dpbayes.inference.numbers import Estimate, TableEstimate
from dpbayes.inference.released import Reading
from dpbayes.inference.repeats import Repeats
from dpbayes.inference.residuals import Axes

OWNER = "Posterior"

DRAWS = 20_000
"""Draws of shares of the population; the same ones every time."""


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
        _checks.probability(OWNER, level=level)
        asked = (*given, *names)
        margin = self._margin(asked)
        shape = [self.sizes[name] for name in asked]
        counts = _shaped(margin.expected_counts, *margin.interval(level, of="counts"), shape)
        counts = replace(counts, note=margin.promise(level))
        if given:
            records, population = (self._within(asked, given, level, target) for target in ("records", "population"))
        else:
            parts = [part / max(self.total, 1.0) for part in (counts.values, counts.lower, counts.upper)]
            records = Estimate(values=parts[0], lower=parts[1], upper=parts[2])
            population = _shaped(margin.mean, *margin.interval(level), shape)
        return TableEstimate(
            axes=asked,
            given=tuple(given),
            level=level,
            counts=counts,
            records=records,
            population=population,
            swallowed=np.asarray(counts.lower <= 0),
        )

    def ask(self, question: str, levels: Mapping[str, Sequence[str]], *, level: float, target: Target) -> Answer:
        """Mean and central interval of any sum, difference, product or ratio."""
        return drawn_answer(self, question, levels, level=level, target=target)

    def printed(
        self, question: str, levels: Mapping[str, Sequence[str]], *, level: float, target: Target
    ) -> Answer | None:
        """What is printed of one cell of the whole table, if the question asks for that."""
        return printed_answer(self, question, levels, level=level, target=target, whole=True)

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
        kept = self.ordered(names)
        summed = tables.sum(axis=tuple(at for at, name in enumerate(self.sizes, start=1) if name not in kept))
        return np.asarray(np.transpose(summed, [0, *(1 + kept.index(name) for name in names)]))

    def _within(self, asked: Axes, given: Sequence[str], level: float, target: Target) -> Estimate:
        """Shares within groups; those of an empty group are even."""
        tables, weights = self.sampled(target)
        part = self._turned(tables, asked)
        whole = part.sum(axis=tuple(range(1 + len(given), part.ndim)), keepdims=True)
        shares = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), whole.size / part.size)
        ends = quantiles(shares.reshape(len(shares), -1), weights, level)
        return _shaped(weights @ shares.reshape(len(shares), -1), *ends, part.shape[1:])


def _shaped(values: Floats, lower: Floats, upper: Floats, shape: Sequence[int]) -> Estimate:
    return Estimate(values=values.reshape(shape), lower=lower.reshape(shape), upper=upper.reshape(shape))
