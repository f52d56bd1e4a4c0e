"""What was measured for the tables that were asked for, what each costs and gains, and how near that is to the best.

A function of public things alone: the schema, the tables and the mechanisms. So a plan and a release are described
alike, and anyone can compute it again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.inference.design import optimum
from dpbayes.inference.residuals import Axes, even_covariance, even_noise
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.release.posterior import measured_noise

LARGEST = 300_000
"""Pairs of a table's margins up to which splits are searched and compared: 3^k for a table of k attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One table that is measured."""

    marginal: Marginal
    """Which table."""
    variance: float
    """Of the noise on a cell."""
    share: float
    """Of the budget: of all 1/σ², or of all 1/scale for Laplace noise."""
    asked: bool
    """Whether it was asked for, or only helps others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is measured, and what follows from it."""

    asked: tuple[Marginal, ...]
    sizes: dict[str, int]
    exact: tuple[Axes, ...]
    noise: dict[Axes, float]
    """Variance of each residual: everything else follows from these."""
    measured: tuple[Measured, ...]
    derived: dict[Marginal, Marginal | None]
    """Tables that were asked for and not measured, with the measured one that holds them; None: they are public."""
    laplace: bool
    """Whether parts of the budget are parts of 1/scale, rather than of 1/σ²."""
    over_optimum: float | None
    """Standard error over the least that any Gaussian mechanism of linear measurements has; None for other noise."""

    @property
    def added(self) -> tuple[Marginal, ...]:
        """Tables that nobody asked for and that sharpen those that were."""
        return tuple(each.marginal for each in self.measured if not each.asked)

    def covariance(self, axes: Sequence[str], margin: Sequence[str]) -> float:
        """Of a cell of a table with its total in a margin of the table; of itself, its variance."""
        return even_covariance(self.noise, self.sizes, self.ordered(axes), self.ordered(margin))

    def variance(self, axes: Sequence[str]) -> float:
        """Of a cell of a table."""
        return self.covariance(axes, axes)

    @property
    def mean_variance(self) -> float:
        """Of a cell, over the tables that were asked for."""
        return self._mean_variance(self.noise)

    @property
    def over_separate(self) -> float:
        """Standard error over that of separate tables with equal parts of the budget."""
        power = -0.5 if self.laplace else -1.0
        whole = sum(each.variance**power for each in self.measured)
        return math.sqrt(self.mean_variance / (whole / len(self.asked)) ** (1 / power))

    def gains(self) -> dict[Marginal, float]:
        """How many times larger standard errors were if a table's part went to the others; infinite if it is needed."""
        found = {}
        for own in self.measured:
            left = (1 - own.share) ** (2 if self.laplace else 1)
            others = [each for each in self.measured if each is not own]
            rest = [(self.ordered(each.marginal.names), each.variance * left) for each in others]
            mean = self._mean_variance(even_noise(self.sizes, rest, self.exact))
            found[own.marginal] = math.sqrt(mean / self.mean_variance) if self.mean_variance > 0 else 1.0
        return found

    def _mean_variance(self, noise: dict[Axes, float]) -> float:
        tables = list(dict.fromkeys(self.ordered(each.names) for each in self.asked))
        if any(tuple(name for name in axes if self.sizes[name] > 1) not in noise for axes in tables):
            return math.inf  # a table is lost: its largest residual is measured by nothing
        return sum(even_covariance(noise, self.sizes, axes, axes) for axes in tables) / len(tables)

    def ordered(self, axes: Sequence[str]) -> Axes:
        """In the order of the schema."""
        return _ordered(axes, self.sizes)

    def sentence(self, *, compared: bool = True) -> str:
        """What differs from measuring every table by itself, and how exact that is; empty if nothing does."""
        parts = []
        if self.derived:
            follow = ", ".join(
                f"{one} follows from {other}" if other else f"{one} is public" for one, other in self.derived.items()
            )
            parts.append(f"{follow}, so no budget goes to {'it' if len(self.derived) == 1 else 'them'}")
        if self.added:
            parts.append(f"measured besides, because it pays: {'; '.join(map(str, self.added))}")
        if compared and (len(self.measured) > 1 or parts):
            parts.append(f"standard errors are {self.over_separate:.2f} of those of separate, equal tables")
            if self.over_optimum is not None:
                parts.append(f"and {self.over_optimum:.2f} of the least that any Gaussian mechanism reaches")
        return "; ".join(parts).replace("; and ", " and ")


def described(
    schema: Schema,
    asked: Sequence[Marginal],
    measured: Sequence[tuple[Marginal, object]],
    records: int | None = None,
) -> Design:
    """The design of tables that were asked for and of those that are measured, each with its mechanism.

    ``records`` is a guess at their number, which the noise of a Dirichlet draw depends on.
    """
    sizes = {each.name: len(each.levels) for each in schema.attributes}
    exact = known(schema)
    laplace = bool(measured) and all(isinstance(mechanism, Laplace) for _, mechanism in measured)
    variances = [_variance(marginal, mechanism, schema, records) for marginal, mechanism in measured]
    parts = np.array(variances) ** (-0.5 if laplace else -1.0)
    named = [set(each.names) for each in asked]
    wanted = list(dict.fromkeys(tuple(name for name in sizes if name in names) for names in named))
    found = Design(
        asked=tuple(asked),
        sizes=sizes,
        exact=exact,
        laplace=laplace,
        measured=tuple(
            Measured(marginal=marginal, variance=value, share=float(share), asked=set(marginal.names) in named)
            for (marginal, _), value, share in zip(measured, variances, parts / parts.sum(), strict=True)
        ),
        noise=even_noise(
            sizes, [(_ordered(each.names, sizes), v) for (each, _), v in zip(measured, variances, strict=True)], exact
        ),
        derived={each: _source(each, measured, schema, exact) for each in asked if each not in dict(measured)},
        over_optimum=None,
    )
    gaussian = all(isinstance(mechanism, Gaussian) for _, mechanism in measured)
    if not gaussian or not searchable(wanted) or found.mean_variance == 0:
        return found
    least = optimum(sizes, wanted, exact=exact) / float(parts.sum())
    return replace(found, over_optimum=math.sqrt(found.mean_variance / least))


def _variance(marginal: Marginal, mechanism: object, schema: Schema, records: int | None) -> float:
    """Of the noise on a cell; on an average one where it depends on the count."""
    size = marginal.size(schema)
    noise = measured_noise(mechanism, marginal.shape(schema))
    typical = np.full((1,) if noise.even else marginal.shape(schema), (schema.records or records or 0) / size)
    return max(float(noise.variance(typical).mean()), 1e-30)  # noise may be too small to show


def _ordered(names: Sequence[str], sizes: dict[str, int]) -> Axes:
    return tuple(name for name in sizes if name in names)


def known(schema: Schema) -> tuple[Axes, ...]:
    """Tables that are public without any release: the number of records, where the unit fixes it, and margins."""
    return ((), *(margin.of for margin in schema.margins)) if schema.unit.fixed_size else ()


def searchable(wanted: Sequence[Sequence[str]]) -> bool:
    """Whether there are few enough margins to search for the best split over them."""
    return sum(3.0 ** len(axes) for axes in wanted) <= LARGEST


def _source(
    asked: Marginal, measured: Sequence[tuple[Marginal, object]], schema: Schema, exact: tuple[Axes, ...]
) -> Marginal | None:
    """The smallest measured table that holds another; None if it is public."""
    holding = [each for each, _ in measured if set(asked.names) <= set(each.names)]
    if any(set(asked.names) <= set(axes) for axes in exact) or not holding:
        return None
    return min(holding, key=lambda each: each.size(schema))
