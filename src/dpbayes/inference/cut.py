"""Non-negative estimates that agree: every margin of every table is the table of that margin.

Tables are settled from small to large. A table starts from the posterior means of its cells under the learned prior
and is then raked to its settled margins; a larger table never changes a smaller one, so margins stay unbiased.

In the prior each count is Poisson around a shape times a factor, and the factors are learned:

    c_k ~ Poisson(e_k·g_k),   g_k ~ Σ_j w_j δ(g_j),   ĉ_k ~ Normal(c_k, v_k)

The shape e is what the margins say (or a public guess); the law w of the factors is estimated from the cells
themselves by maximum likelihood, so a table that follows its shape is drawn to it and one that does not is left alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.measurement import Axes, Margins, fit_margins, share_gaps, subsets, tolerance

STEP = 0.25
"""Factors lie so far apart in logarithm; a component is as wide, so that together they are a smooth law."""

FACTORS = np.concatenate([[0.0], np.exp(np.arange(np.log(1e-3), np.log(1e3) + STEP / 2, STEP))])
"""From cells that are empty to cells with a thousand times what their margins suggest."""

WHOLE = 64
"""Where counts below this matter and the noise does not hide that they are whole, they are summed one by one."""

LOG_FACTORIALS = np.array([math.lgamma(count + 1.0) for count in range(WHOLE)])

MOST_POOLED = 20_000
"""Cells that a law is learned from; more are thinned evenly."""

BLOCK = 2048
"""Cells of a large table that are worked on at a time: memory does not grow with their number, and caches serve."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factored:
    """Cells under each factor: its likelihood, and the posterior mean and mean square of the count."""

    likelihood: Floats
    """Of each factor, relative to the best one."""
    log_best: Floats
    """Logarithm of the likelihood of the best factor."""
    mean: Floats
    square: Floats

    @classmethod
    def of(cls, shape: Floats, center: Floats, variance: Floats, most: float) -> Factored:
        """Normal components of variance e·g + (h·e·g)², or exact sums over whole counts where these can be seen."""
        variance = np.maximum(variance, 1e-12)  # a millionth of a record: no density becomes a point
        level = shape[:, None] * FACTORS
        prior = np.square(STEP * level)
        prior += level
        total = prior + variance[:, None]
        gap = center[:, None] - level
        prior /= total  # how far the mean goes from the level to the center
        mean = gap * prior
        mean += level
        np.maximum(mean, 0.0, out=mean)
        square = np.multiply(prior, variance[:, None], out=prior)
        square += np.square(mean)
        log_likelihood = np.square(gap, out=gap)
        log_likelihood /= total
        log_likelihood += np.log(total, out=total)
        log_likelihood *= -0.5
        # with less noise normal components would blur whole numbers (docs/explanation/estimate.md)
        fine = (variance < 10.0) & (center + 6 * np.sqrt(variance) < WHOLE)
        if fine.any():
            found = _whole(shape[fine], center[fine], variance[fine])
            log_likelihood[fine], mean[fine], square[fine] = found
        if shape.size and shape.max() * FACTORS[-1] > most:
            log_likelihood[level > np.maximum(most, shape)[:, None]] = -math.inf
        best = log_likelihood.max(axis=1)
        log_likelihood -= best[:, None]
        return cls(likelihood=np.exp(log_likelihood, out=log_likelihood), log_best=best, mean=mean, square=square)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cells of a table: what the margins say of them, and what the linear law does."""

    shape: Floats
    center: Floats
    variance: Floats
    most: float
    sample: Factored
    """All cells, or of a large table as many as ``MOST_POOLED``, thinned evenly."""

    @classmethod
    def of(cls, shape: Floats, center: Floats, variance: Floats, most: float = math.inf) -> Cells:
        """Factors that expect more than ``most`` records in a cell, the number of all, are ruled out."""
        kept = slice(None, None, max(1, -(-shape.size // MOST_POOLED)))
        sample = Factored.of(shape[kept], center[kept], variance[kept], most)
        return cls(shape=shape, center=center, variance=variance, most=most, sample=sample)

    @property
    def thinned(self) -> float:
        """The share of the cells that are in the sample."""
        return self.sample.log_best.size / max(self.shape.size, 1)

    def _blocks(self) -> Iterator[tuple[slice, Factored]]:
        if self.thinned == 1.0:
            yield slice(None), self.sample
            return
        for start in range(0, self.shape.size, BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, Factored.of(self.shape[rows], self.center[rows], self.variance[rows], self.most)

    def log_evidence(self, weights: Floats) -> float:
        """Logarithm of the likelihood of all cells under a law of factors."""
        parts = (part for _, part in self._blocks())
        return sum(float((np.log(part.likelihood @ weights) + part.log_best).sum()) for part in parts)

    def moments(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Posterior mean and variance of the counts, and posterior mean of the level e·g that they came from.

        Within a component the level is a gamma of mean e·g_j and relative width h. Given the count c it is then

            E[level | c] = e·g_j + (c − e·g_j)·h²·e·g_j/(1 + h²·e·g_j),

        so a large count speaks for itself, however coarse the grid of factors is.
        """
        mean, variance, level = (np.empty(self.shape.size) for _ in range(3))
        for rows, part in self._blocks():
            posterior = part.likelihood * weights
            posterior /= posterior.sum(axis=1, keepdims=True)
            mean[rows] = np.einsum("kj,kj->k", posterior, part.mean)
            variance[rows] = np.einsum("kj,kj->k", posterior, part.square) - mean[rows] ** 2
            center = self.shape[rows, None] * FACTORS
            width = STEP**2 * center
            pulled = part.mean - center
            pulled *= width
            width += 1
            pulled /= width
            pulled += center
            level[rows] = np.einsum("kj,kj->k", posterior, pulled)
        return mean, np.maximum(variance, 0.0), level


def learn_law(likelihood: Floats, start: Floats, steps: int, prior: Floats | float = 0.0) -> Floats:
    """The law of factors that makes the cells most likely, by expectation and maximisation; of several tables at once.

    einsum, because matrices of this size are too small for the threads of a matrix product: these would mostly wait.
    """
    weights = start
    for _ in range(steps):
        seen = np.einsum("...kj,...j->...k", likelihood, weights)
        weights = weights * np.einsum("...kj,...k->...j", likelihood, 1 / seen) + prior
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights


def common_law(tables: list[Cells]) -> Floats:
    """The law of factors of all tables of an order together; an even one counts like a cell, lest few settle it.

    Steps and cells, here and in ``own_laws``: docs/explanation/estimate.md, constants.
    """
    stacked = np.concatenate([table.sample.likelihood for table in tables])
    thinned = stacked[:: max(1, -(-stacked.shape[0] // MOST_POOLED))]
    even = np.full(FACTORS.size, 1 / FACTORS.size)
    return learn_law(thinned, even, steps=60, prior=even)


def own_laws(tables: Sequence[Cells], common: Floats, cells: float = 10.0) -> list[Floats]:
    """The law of factors of each table, in which the common one counts like so many cells.

    Small tables of one size are learned together, step by step, because what a call costs is more than their work.
    """
    smooth = 0.99 * common + 0.01 / FACTORS.size
    found, alike = [smooth] * len(tables), defaultdict[tuple[int, float], list[int]](list)
    for place, table in enumerate(tables):
        alike[table.sample.log_best.size, table.thinned].append(place)
    for (size, thinned), places in alike.items():
        many = max(1, BLOCK // max(size, 1))
        for group in (places[start : start + many] for start in range(0, len(places), many)):
            stacked = np.stack([tables[place].sample.likelihood for place in group])
            laws = learn_law(stacked, np.tile(smooth, (len(group), 1)), steps=30, prior=cells * thinned * smooth)
            for place, law in zip(group, laws, strict=True):
                found[place] = law
    return found


def _whole(shape: Floats, center: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """The same by sums over whole counts; cells of nearly the same shape share one table of Poisson laws.

    Sums that doubles cannot hold are those of counts that a factor all but rules out: there the nearest count is all.
    """
    counts = np.arange(WHOLE, dtype=np.float64)
    gaps = (center[:, None] - counts) ** 2 / variance[:, None]
    nearest, least = gaps.argmin(axis=1), gaps.min(axis=1)
    near = np.exp(-0.5 * (gaps - least[:, None]))
    bins = np.round(np.log(np.maximum(shape, 1e-9)) / 0.05).astype(np.int64)
    log_likelihood, mean, square = (np.empty((shape.size, FACTORS.size)) for _ in range(3))
    for each in np.unique(bins):
        own = bins == each
        level = np.exp(each * 0.05) * FACTORS[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_law = np.where(level > 0, counts * np.log(level) - level - LOG_FACTORIALS, -np.inf)
        log_law[:, 0] = -level[:, 0]
        law = np.exp(log_law)
        total = near[own] @ law.T
        lost = total < 1e-290  # of digits: the least normal double is 2e-308, and terms are far smaller
        total[lost] = 1.0
        log_likelihood[own] = np.where(lost, log_law.T[nearest[own]], np.log(total))
        mean[own] = np.where(lost, counts[nearest[own], None], (near[own] * counts) @ law.T / total)
        square[own] = np.where(lost, counts[nearest[own], None] ** 2, (near[own] * counts**2) @ law.T / total)
    return log_likelihood - 0.5 * (least + np.log(variance))[:, None], mean, square


@dataclass(slots=True, kw_only=True, eq=False)
class Settled:
    """Agreeing tables of counts and of population levels, and the prior that each table was drawn to."""

    counts: dict[Axes, Floats] = field(default_factory=dict)
    levels: dict[Axes, Floats] = field(default_factory=dict)
    """N times the share of the population."""
    cells: dict[Axes, Cells] = field(default_factory=dict)
    laws: dict[Axes, Floats] = field(default_factory=dict)

    def copy(self) -> Settled:
        """One to which tables can be added; no table is ever changed in place."""
        return Settled(counts={**self.counts}, levels={**self.levels}, cells={**self.cells}, laws={**self.laws})


def settle(
    law: LinearLaw, guesses: Mapping[Axes, Floats], most: int | None = None, *, single: Settled | None = None
) -> Settled:
    """Estimates of all tables that the law determines, or of few axes, after ``single`` ones if they are known."""
    found = Settled() if single is None else single.copy()
    tables = [axes for axes in law.tables if not law.missing(axes)]
    total = np.array(max(float(law.mean(())), 0.0)) if () in law.residuals else None
    if total is None:
        return found
    found.counts[()] = found.levels[()] = total
    largest = max((len(axes) for axes in tables), default=0)
    for order in range(1 if single is None else 2, (largest if most is None else min(most, largest)) + 1):
        _settle_order(found, law, [axes for axes in tables if len(axes) == order], guesses)
    return found


def _settle_order(found: Settled, law: LinearLaw, tables: list[Axes], guesses: Mapping[Axes, Floats]) -> None:
    """All tables of one order: learn their common law, then each one's own, and rake to the margins."""
    most = float(found.counts[()])
    open_cells = {axes: ~law.zeros[axes].ravel() if axes in law.zeros else None for axes in tables}
    for axes in tables:
        found.cells[axes] = _cells(law, axes, _shape(found.counts, axes, law, None), open_cells[axes], most)
    common = common_law([found.cells[axes] for axes in tables])
    found.laws |= zip(tables, own_laws([found.cells[axes] for axes in tables], common), strict=True)
    counts, levels = {}, {}
    for axes in tables:
        mean, variance, level = found.cells[axes].moments(found.laws[axes])
        if axes in guesses:
            guided = _cells(law, axes, _shape(found.counts, axes, law, guesses[axes]), open_cells[axes], most)
            (guided_law,) = own_laws([guided], common)
            odds = guided.log_evidence(guided_law) - found.cells[axes].log_evidence(found.laws[axes])
            # 0.95: prior probability that the guess is the better shape (docs/explanation/estimate.md)
            trust = 1 / (1 + (1 - 0.95) / 0.95 * np.exp(-np.clip(odds, -500, 500)))
            other = guided.moments(guided_law)
            spread = trust * (1 - trust) * (mean - other[0]) ** 2
            mean, variance, level = (
                (1 - trust) * own + trust * new for own, new in zip((mean, variance, level), other, strict=True)
            )
            variance = variance + spread
            if trust > 0.5:
                found.cells[axes], found.laws[axes] = guided, guided_law
        shape = [law.sizes[name] for name in axes]
        # no cell starts below 1e-3 of what its margins suggest, so that the margins can be met
        floor = np.maximum(_with_zeros(found.cells[axes].shape, open_cells[axes]), 1e-12).reshape(shape) * 1e-3
        deviation = np.sqrt(_with_zeros(found.cells[axes].variance, open_cells[axes])).reshape(shape)
        floor = np.minimum(floor, np.minimum(deviation, 1e-3))
        floor = np.where(law.zeros.get(axes, False), 0.0, floor)
        start, doubt, level = (_with_zeros(part, open_cells[axes]).reshape(shape) for part in (mean, variance, level))
        start = np.maximum(start, floor)
        raked = share_gaps(start, doubt, axes, _margins(found.counts, axes))
        counts[axes] = np.maximum(raked, 0.05 * start)
        levels[axes] = np.maximum(level, floor)
    _agree(found.counts, counts)
    _agree(found.levels, levels)


def _cells(law: LinearLaw, axes: Axes, shape: Floats, kept: NDArray[np.bool_] | None, most: float) -> Cells:
    parts = (shape.ravel(), law.mean(axes).ravel(), law.variance(axes).ravel())
    cells, center, variance = (part if kept is None else part[kept] for part in parts)
    return Cells.of(cells, center, variance, most)


def _with_zeros(values: Floats, kept: NDArray[np.bool_] | None) -> Floats:
    """Structural zeros put back."""
    if kept is None:
        return values
    table = np.zeros(kept.size)
    table[kept] = values
    return table


def _margins(tables: Mapping[Axes, Floats], axes: Axes) -> Margins:
    """The settled margins of a table with one axis less."""
    return [(kept, tables[kept]) for kept in combinations(axes, len(axes) - 1)]


def _shape(tables: Mapping[Axes, Floats], axes: Axes, law: LinearLaw, guess: Floats | None) -> Floats:
    """What the margins suggest: even, independent, or ones fitted to them; or a guess fitted to them."""
    size = [law.sizes[name] for name in axes]
    start = np.ones(size) if guess is None else guess * float(tables[()]) / guess.sum()
    if axes in law.zeros:
        start = np.where(law.zeros[axes], 0.0, start)
    margins = [(kept, np.maximum(target, 1e-9)) for kept, target in _margins(tables, axes)]
    return fit_margins(start, axes, margins, sweeps=20)[0]  # where tables start need not be exact


def _agree(settled_tables: dict[Axes, Floats], starts: dict[Axes, Floats], passes: int = 12) -> None:
    """Rake all tables of one order to their margins, which give way a little where they contradict each other.

    Margins of a table of three axes or more may contradict each other, as no table may have them all. Then the table
    takes the nearest margins that it can have, and all that share them are raked again, until none has to give way.
    After so many ``passes`` all are mixed with independence, more and more of it.
    """
    close = tolerance(settled_tables[()])
    settled_tables.update(starts)
    for mix in (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0):
        if mix:
            _mix(settled_tables, mix)
        for attempt in range(passes):
            failed = False
            for axes in sorted(settled_tables if attempt or mix else starts, key=len):
                if axes in starts or len(axes) > 2:
                    table, gap = fit_margins(settled_tables[axes], axes, _margins(settled_tables, axes))
                    settled_tables[axes] = table
                    if gap > close:
                        failed = True
                        _give_way(settled_tables, axes)
            if not failed:
                return


def _give_way(settled_tables: dict[Axes, Floats], axes: Axes) -> None:
    """The margins of a table become those that it can have; one-way margins stay, if it has more than two axes."""
    kept = [((name,), settled_tables[(name,)]) for name in axes] if len(axes) > 2 else [((), settled_tables[()])]
    near, _ = fit_margins(settled_tables[axes], axes, kept)
    for part in subsets(axes):
        if len(part) > (1 if len(axes) > 2 else 0):
            settled_tables[part] = near.sum(axis=tuple(place for place, name in enumerate(axes) if name not in part))


def _mix(settled_tables: dict[Axes, Floats], share: float) -> None:
    """All tables of two axes or more, mixed with the product of their one-way margins: agreement is kept."""
    total = max(float(settled_tables[()]), 1e-300)
    for axes, table in settled_tables.items():
        if len(axes) > 1:
            product = reduce(np.multiply.outer, [settled_tables[(name,)] / total for name in axes])
            settled_tables[axes] = (1 - share) * table + share * total * product
