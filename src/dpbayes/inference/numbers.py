"""The numbers of one table: agreeing estimates with intervals, several rows of one person included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from dpbayes.base import display
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.normal import quantile
from dpbayes.inference.cut import Settled
from dpbayes.inference.intervals import ROUNDING, Spread, assist, half_step, ratio, symmetric, whole
from dpbayes.inference.law import Bools, LinearLaw
from dpbayes.inference.measurement import Axes, widen, without


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """The most rows of one person, and the most at each level of an attribute where less is public."""

    most: int = 1
    within: Mapping[str, Ints] = field(default_factory=dict)

    def among(self, chosen: Mapping[str, Floats]) -> float:
        """Var(θ̂) ≤ m·θ(1−θ)/n for a share of the rows with the chosen levels: m, the most that are one person's

        Symbols: θ share in the population, θ̂ in the n rows with the chosen levels (0 or 1 for each level), m rows.
        Source: docs/explanation/proofs/population.md, theorem 1.
        Adjacency: none, this is post-processing.

        >>> repeats = Repeats(most=8, within={"year": np.array([1, 1, 8])})
        >>> repeats.among({}), repeats.among({"year": np.array([1, 1, 0])})
        (8.0, 2.0)
        """
        few = [float(self.within[name] @ levels) for name, levels in chosen.items() if name in self.within]
        return min([float(self.most), *few])

    def table(self, rows: Axes) -> Floats:
        """The same for shares within each combination of levels of these attributes, in the shape of their table."""
        found = np.full([1] * len(rows), float(self.most))
        for name in set(rows) & set(self.within):
            found = np.minimum(found, widen(np.asarray(self.within[name], dtype=np.float64), (name,), rows))
        return found

    @property
    def said(self) -> str:
        """The sentence that stands beside intervals for a population; empty where rows are independent people.

        >>> Repeats().said
        ''
        """
        if self.most == 1:
            return ""
        fewer = f", or fewer within {' or '.join(self.within)}, as the schema declares" if self.within else ""
        return (
            f"One person may have up to {self.most} rows, and they may all be alike: intervals for the population "
            f"allow for {self.most} times the sampling variance of independent rows{fewer}."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Numbers with intervals, in the shape of a table."""

    values: Floats
    lower: Floats
    upper: Floats
    note: str = ""
    """What the intervals allow for, where people have several rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TableEstimate(display.Shown):
    """One table: counts, shares of these records, and shares of the population that they come from.

    Axes come in the order given first, then of. Shares are within each combination of the given axes.
    """

    axes: Axes
    given: Axes
    level: float
    counts: Estimate
    records: Estimate
    """Shares of these records."""
    population: Estimate
    """Shares of the population behind them."""
    swallowed: Bools
    """Cells whose count, or in a conditional table whose whole row, noise alone could explain."""
    labels: tuple[tuple[str, ...], ...] = ()
    """What the levels of each axis are called."""

    def _facts(self) -> tuple[str, display.Facts]:
        shape, facts = self.counts.values.shape, []
        names = self.labels or tuple(tuple(map(str, range(size))) for size in shape)
        for cell in islice(np.ndindex(shape), 12):
            said = f"{with_half(self.counts, cell)} records, {with_half(self.records, cell, 100.0)} %"
            unreadable = ", unreadable" if self.swallowed[cell] else ""
            facts.append((" · ".join(words[at] for words, at in zip(names, cell, strict=True)), said + unreadable))
        of = ",".join(name for name in self.axes if name not in self.given) + "|" * bool(self.given)
        head = f"{of}{','.join(self.given)}: {display.plural(math.prod(shape), 'cell')}"
        return f"{head}, with {100 * self.level:g} % intervals", facts


def with_half(made: Any, cell: Any, scale: float = 1.0) -> str:
    """A number with half its interval, as many digits as that has."""
    value = scale * made.values[cell]
    if made.lower is None or made.upper is None:
        return f"{value:.4g}"
    half = max(value - scale * made.lower[cell], scale * made.upper[cell] - value)
    digits = max(0, -math.floor(math.log10(half))) if half > 0 else 0
    return f"{value:.{digits}f} ± {half:.{digits}f}"


class Numbers:
    """The numbers of one table, in the agreed order of axes."""

    def __init__(
        self,
        law: LinearLaw,
        settled: Settled,
        axes: Axes,
        *,
        known: bool,
        level: float,
        prior_assisted: bool,
        repeats: Repeats,
    ) -> None:
        self.law, self.settled, self.known, self.repeats = law, settled, known, repeats
        self.axes, self.level, self.prior_assisted = axes, level, prior_assisted
        self.total = float(settled.counts[()])
        self.impossible = self.law.zeros.get(axes, np.zeros(settled.counts[axes].shape, dtype=bool))

    @cached_property
    def mean(self) -> Floats:
        """Of the linear law."""
        return self.law.mean(self.axes)

    @cached_property
    def variance(self) -> Floats:
        """Of the linear law."""
        return self.law.variance(self.axes)

    def counts(self) -> Estimate:
        """Counts, with whole ends."""
        values = self.settled.counts[self.axes]
        lower, upper = whole(values, *self._ends(sampled=False))
        top = math.floor(self.total + ROUNDING) if self.known else math.inf
        return _holding(values, np.maximum(lower, 0.0), np.minimum(upper, top), self.impossible)

    def records(self, counts: Estimate) -> Estimate:
        """Shares of the records."""
        whole = max(self.total, 1e-300)
        return Estimate(
            values=self.shares((), sampled=False),
            lower=np.minimum(counts.lower / whole, 1.0) if self.total > 0 else np.zeros(counts.lower.shape),
            upper=np.minimum(counts.upper / whole, 1.0) if self.total > 0 else np.ones(counts.upper.shape),
        )

    def shares(self, rows: Axes, sampled: bool) -> Floats:
        """Shares within rows, of the population or of the records, without intervals."""
        tables = self.settled.levels if sampled else self.settled.counts
        if not rows:
            return self._shares(tables[self.axes], self.axes)
        seen = widen(tables[rows], rows, self.axes)
        within = without(self.axes, rows)
        shared = widen(self._shares(tables[within], within), within, self.axes)  # for rows that are empty
        return np.where(seen > 0, tables[self.axes] / np.where(seen > 0, seen, 1.0), shared)

    def _shares(self, table: Floats, axes: Axes) -> Floats:
        """A table of counts as shares; without records, even ones."""
        if self.total > 0:
            return table / self.total
        possible = ~self.law.zeros.get(axes, np.zeros(table.shape, dtype=bool))
        return possible / max(int(possible.sum()), 1)

    def population(self) -> Estimate:
        """Shares of the population."""
        whole = max(self.total, 1e-300)
        lower, upper = self._ends(sampled=True)
        upper = upper if self.total > 0 else np.full_like(upper, whole)  # nothing is known without records
        return _holding(self.shares((), sampled=True), lower / whole, upper / whole, self.impossible, self.repeats.said)

    def conditional(self, rows: Axes, sampled: bool) -> Estimate:
        """Shares within rows, by Fieller's theorem."""
        values = self.shares(rows, sampled)
        covariance = self.law.covariance_with_margin(self.axes, rows)
        totals = widen(self.law.variance(rows), rows, self.axes)
        sampling, variance = np.zeros(1), self.variance
        if sampled:
            sampling = widen(self.repeats.table(rows) * self.settled.counts[rows], rows, self.axes)
        else:
            variance = variance + half_step(variance - 2 * values * covariance + values**2 * totals, self.level)
        lower, upper = ratio(
            self.mean,
            widen(self.law.mean(rows), rows, self.axes),
            variance,
            covariance,
            totals,
            self.level,
            sampled=sampling,
        )
        return _holding(values, lower, upper, self.impossible, self.repeats.said if sampled else "")

    def swallowed(self, rows: Axes) -> Bools:
        """Cells that noise alone could explain, or whose row it could."""
        z = quantile(0.5 + self.level / 2)
        if not rows:
            return np.asarray(self.settled.counts[self.axes] <= z * np.sqrt(self.variance))
        hidden = self.law.mean(rows) <= z * np.sqrt(self.law.variance(rows))
        return np.broadcast_to(widen(hidden.astype(np.float64), rows, self.axes), self.mean.shape) > 0

    def _ends(self, sampled: bool) -> tuple[Floats, Floats]:
        """Of counts, or of N times the shares of the population, within what is possible."""
        slope, rows = self.law.slope(self.axes), self.repeats.most if sampled else 0
        mean = self.mean.ravel()
        spread = Spread(
            constant=self.variance.ravel() - slope * np.maximum(mean, 0.0),
            linear=slope + rows,
            square=rows / max(self.total, 1.0),
        )
        lower, upper = symmetric(mean, spread, self.level)
        if self.prior_assisted and self.axes:
            open_cells = ~self.impossible.ravel()
            own = Spread(constant=spread.constant[open_cells], linear=spread.linear, square=spread.square)
            cells, law = self.settled.cells[self.axes], self.settled.laws[self.axes]
            lower[open_cells], upper[open_cells] = assist(cells, law, own, self.level)
        top = self.total if self.known else math.inf
        alone = np.asarray(spread.end(np.zeros_like(mean), quantile(1 - self.level)))
        upper = np.where(upper < 0, alone, upper)  # no count explains the estimate: say what noise alone allows
        lower, upper = np.clip(lower, 0.0, top), np.clip(upper, 0.0, top)
        return lower.reshape(self.mean.shape), upper.reshape(self.mean.shape)


def _holding(values: Floats, lower: Floats, upper: Floats, impossible: Bools, note: str = "") -> Estimate:
    """Intervals that hold the printed estimate; what is impossible is zero."""
    lower, upper = np.minimum(lower, values), np.maximum(upper, values)
    lower, upper = (np.where(impossible, 0.0, end) for end in (lower, upper))
    return Estimate(values=values, lower=lower, upper=upper, note=note)
