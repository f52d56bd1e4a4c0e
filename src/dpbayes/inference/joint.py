"""What is known about a private table from everything published about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.ask import Reply, answer
from dpbayes.inference.cut import Settled, settle
from dpbayes.inference.law import OWNER, Functional, LinearLaw, NotEstimable
from dpbayes.inference.measurement import Axes, Exact, Measurement, Sizes, subsets
from dpbayes.inference.numbers import Estimate, Numbers, Repeats, TableEstimate


class JointPosterior:
    """Means, intervals and draws of every table that the measurements determine.

    Args:
        measurements: Published tables; several of the same axes, and of several releases, are combined.
        sizes: Levels of each attribute, in the order in which axes are kept.
        records: The public number of records, or None if it is private.
        margins: Public exact tables.
        zeros: Combinations that cannot occur: axes and a mask in their shape.
        priors: Public guesses at the distribution of tables, in the order of their axes. A guess at a table is one at
            its margins too, where these have none of their own.
        repeats: How many rows one person may have; intervals for the population allow for it.

    >>> from dpbayes.mechanisms.gaussian import GaussianNoise
    >>> noise = GaussianNoise(sigma=3.0)
    >>> table = Measurement(axes=("sex", "income"), values=np.array([[41.0, 3.0], [58.0, -2.0]]), noise=noise)
    >>> posterior = JointPosterior([table], {"sex": 2, "income": 2}, records=100)
    >>> posterior.estimate(("income",)).counts.values.round(0).tolist()
    [99.0, 1.0]
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        sizes: Sizes,
        *,
        records: int | None = None,
        margins: Sequence[Measurement] = (),
        zeros: Sequence[tuple[Sequence[str], ArrayLike]] = (),
        priors: Mapping[Axes, ArrayLike] | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        checks.positive_integer(OWNER, **{f"sizes of {name}": size for name, size in sizes.items()})
        if records is not None:
            checks.non_negative(OWNER, records=records)
        public = [Measurement(axes=each.axes, values=each.values, noise=Exact()) for each in margins]
        masks = [(tuple(axes), np.asarray(where, dtype=bool)) for axes, where in zeros]
        self.law = LinearLaw([*measurements, *public], sizes, records, zeros=masks)
        self.sizes, self.repeats = self.law.sizes, repeats or Repeats()
        self.known = records is not None or self.law.noise.get((), 1.0) == 0
        self._guesses = self._guessed(priors or {})
        self._settled: Settled | None = None
        self._single: Settled | None = None

    @property
    def total(self) -> float:
        """The number of records: public, or as estimated."""
        return float(self._settled_for(()).counts[()])

    @property
    def settled(self) -> Settled:
        """The agreeing tables; computed once, when first asked for."""
        if self._settled is None:
            self._settled = settle(self.law, self._guesses, single=self._single)
        return self._settled

    def _settled_for(self, axes: Axes) -> Settled:
        """What holds the table of these axes: that of one attribute need not wait for larger ones.

        Larger tables change it only where they cannot have its numbers, which takes cells that are zero or exact.
        """
        firm = any(noise == 0 for part, noise in self.law.noise.items() if part)
        if len(axes) > 1 or self._settled is not None or self.law.zeros or firm:
            return self.settled
        if self._single is None:
            self._single = settle(self.law, self._guesses, most=1)
        return self._single

    def estimable(self, axes: Sequence[str]) -> bool:
        """Whether the published tables determine this one."""
        return not self.missing(axes)

    def missing(self, axes: Sequence[str]) -> list[Axes]:
        """What would have to be measured: a table that contains each of these sets of attributes."""
        return self.law.missing(self.law.ordered(axes))

    def linear(self, axes: Sequence[str]) -> tuple[Floats, Floats]:
        """The best linear unbiased estimate of a table of counts, and its variance, cell by cell."""
        ordered = self.law.ordered(axes)
        return self._turned(self.law.mean(ordered), axes), self._turned(self.law.variance(ordered), axes)

    def doubt(self, axes: Sequence[str]) -> Floats:
        """ln(1 + Var[c]/E[ℓ]²): the variance that noise leaves to the logarithm of a cell's level; 0 where impossible

        Of the level ℓ that the count c came from, not of c: where noise vanishes, E[c] of an empty cell does as well.

        Symbols: c count of a cell, ℓ N times its share of the population.
        Source: docs/explanation/models.md, how far a model trusts itself: the law of ln ℓ if ℓ is log-normal.
        Adjacency: none, this is post-processing.
        """
        ordered = self.law.ordered(axes)
        if missing := self.law.missing(ordered):
            raise NotEstimable(missing)
        _, variance, level = self.settled.cells[ordered].moments(self.settled.laws[ordered])
        table = np.zeros([self.law.sizes[name] for name in ordered])
        relative = variance / np.maximum(level, 1e-9) ** 2
        table[~self.law.zeros.get(ordered, np.zeros(table.shape, dtype=bool))] = np.log1p(relative)
        return self._turned(table, axes)

    def functional(self, *weights: Mapping[Axes, ArrayLike]) -> tuple[Floats, Floats]:
        """Unbiased estimates of sums of cells, possibly of several tables, and their covariance matrix."""
        return self.law.moments([self._functional(each) for each in weights])

    def draws(self, tables: Sequence[Sequence[str]], number: int, rng: np.random.Generator) -> list[Floats]:
        """Draws of whole tables for multiple imputation, with batch axis first; shared margins agree in each draw.

        They follow the linear law, so that sums, differences and ratios of them are calibrated; cells that noise
        swallows are drawn below zero as often as the law says.
        """
        checks.positive_integer(OWNER, number=number)
        found = self.law.draws([self.law.ordered(axes) for axes in tables], number, rng)
        return [self._turned(table, axes) for table, axes in zip(found, tables, strict=True)]

    def estimate(
        self, axes: Sequence[str], given: Sequence[str] = (), *, level: float = 0.95, prior_assisted: bool = True
    ) -> TableEstimate:
        """Agreeing, non-negative estimates with intervals.

        Args:
            axes: Attributes of the table.
            given: Attributes within whose combinations shares are taken.
            level: Of the intervals: they hold the truth with this probability, whatever it is.
            prior_assisted: Shorter intervals where the learned prior is right, the same promise everywhere.
        """
        checks.probability(OWNER, level=level)
        names, rows = (*given, *axes), self.law.ordered(given)
        found = self._numbers(names, level, prior_assisted)
        counts = found.counts()
        if rows or not self.known:
            records, population = found.conditional(rows, sampled=False), found.conditional(rows, sampled=True)
        else:
            records, population = found.records(counts), found.population()

        def turned(each: Estimate) -> Estimate:
            values, lower, upper = (self._turned(part, names) for part in (each.values, each.lower, each.upper))
            return Estimate(values=values, lower=lower, upper=upper, note=each.note)

        return TableEstimate(
            axes=names,
            given=tuple(given),
            level=level,
            counts=turned(counts),
            records=turned(records),
            population=turned(population),
            swallowed=self._turned(found.swallowed(rows), names),
        )

    def shares(self, axes: Sequence[str], given: Sequence[str] = ()) -> Floats:
        """The shares of the population that ``estimate`` has, without the work of intervals."""
        names = (*given, *axes)
        return self._turned(self._numbers(names, 0.95, True).shares(self.law.ordered(given), sampled=True), names)

    def _numbers(self, names: Sequence[str], level: float, prior_assisted: bool) -> Numbers:
        ordered = self.law.ordered(names)
        if missing := self.law.missing(ordered):
            raise NotEstimable(missing)
        return Numbers(
            self.law,
            self._settled_for(ordered),
            ordered,
            known=self.known,
            level=level,
            prior_assisted=prior_assisted,
            repeats=self.repeats,
        )

    def ask(
        self,
        question: str,
        levels: Mapping[str, Mapping[str, int]] | None = None,
        *,
        level: float = 0.95,
        target: Literal["records", "population"] = "records",
    ) -> Reply:
        """Estimate and interval of any sum, difference, product or ratio of counts and shares.

        ``levels`` has the places of each attribute's levels by their names; without names they are numbered from 0.

        >>> from dpbayes.mechanisms.gaussian import GaussianNoise
        >>> values = np.array([[410.0, 30.0], [300.0, 260.0]])
        >>> table = Measurement(axes=("sex", "rich"), values=values, noise=GaussianNoise(sigma=3.0))
        >>> posterior = JointPosterior([table], {"sex": 2, "rich": 2}, records=1000)
        >>> found = posterior.ask("share(rich=1 | sex=1) - share(rich=1 | sex=0)")
        >>> round(found.estimate, 2), round(found.lower, 2), round(found.upper, 2)
        (0.4, 0.38, 0.41)
        """
        return answer(self, question, levels or {}, level=level, target=target)

    def _turned(self, table: NDArray[Any], axes: Sequence[str]) -> NDArray[Any]:
        """From the agreed order of axes to the order asked for; batch axes stay in front."""
        ordered = self.law.ordered(axes)
        lead = table.ndim - len(ordered)
        return np.transpose(table, [*range(lead), *(lead + ordered.index(name) for name in axes)])

    def _functional(self, weights: Mapping[Axes, ArrayLike]) -> Functional:
        found: dict[Axes, Floats] = {}
        for axes, values in weights.items():
            ordered = self.law.ordered(axes)
            array = np.asarray(values, dtype=np.float64)
            if array.shape != tuple(self.sizes[name] for name in axes):
                raise InvalidArgument(f"{OWNER}: expected a weight for each cell of {', '.join(axes)}.")
            turned = np.transpose(array, [tuple(axes).index(name) for name in ordered])
            found[ordered] = found[ordered] + turned if ordered in found else turned
        return found

    def _guessed(self, priors: Mapping[Axes, ArrayLike]) -> dict[Axes, Floats]:
        found: dict[Axes, Floats] = {}
        for axes in sorted(priors, key=len):
            guess, ordered = self._guess(axes, priors[axes]), self.law.ordered(axes)
            for part in subsets(ordered):
                lacking = tuple(place for place, name in enumerate(ordered) if name not in part)
                if part:
                    found.setdefault(part, guess.sum(axis=lacking))
        return found

    def _guess(self, axes: Axes, shape: ArrayLike) -> Floats:
        guess = np.asarray(shape, dtype=np.float64)
        ordered = self.law.ordered(axes)
        if guess.shape != tuple(self.sizes[name] for name in axes) or not (np.isfinite(guess) & (guess > 0)).all():
            raise InvalidArgument(f"{OWNER}: expected a prior share > 0 for each cell of {', '.join(axes)}.")
        return np.transpose(guess, [tuple(axes).index(name) for name in ordered])
