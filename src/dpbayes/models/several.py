"""Several synthetic sets, from models that differ as much as the one they stand for may be off.

Several sets differ as much as a number computed from them is unsure, and ``combine`` joins what each of them gave.
Each set comes from a model of its own: refitted after the noise of the tables was drawn once more. Noise of the size
that it has is too little, because all fits share the errors that their form makes. So it is enlarged, by a factor that
the release itself shows: how far fits missed copies of the tables that they had not seen, against how much refits
differ. That the result covers the truth is measured (docs/explanation/synthetic.md), and no theorem: it does for shares
and for means, and it does not for correlations and slopes where many attributes depend on each other. Numbers about
pairs that were measured need none of this: the posterior of the release has exact intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.fission import Fits
from dpbayes.models.latent import LatentModel, Regression, pairs_of
from dpbayes.models.mixture import STEPS
from dpbayes.models.synthetic import synthetic_table

if TYPE_CHECKING:
    import pyarrow as pa

REFITS = 20
"""Fits to tables with their noise drawn once more, and synthetic sets: a variance is then known to about a third."""


def _refits(
    model: LatentModel, fits: Fits, number: int, factor: float, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Weights and shares of fits to the tables with noise of ``factor`` times the variance drawn once more."""
    seen, root = model.seen(), np.float32(math.sqrt(factor))
    for at in range(number):
        one, two = seen.noise(rng)
        fit = fits.whole[at % len(fits.whole)].copy()
        fit.fit(seen.moved(seen.one + root * one, seen.two + root * two), fits.pull, STEPS)
        weights, shares = fit.laws()
        yield weights.astype(np.float64), shares.astype(np.float64)


def _misses(fits: Fits) -> tuple[Floats, Floats]:
    """Mean squared misses of fits to their folds, beyond the noise of the copies left out, by the size of a cell."""
    found, missed = [], []
    for fit, held in fits.folds:
        weights, shares = fit.laws()
        measured = np.triu(held.two_precision > 0)
        fitted = (shares.T @ (weights[:, None] * shares))[measured].astype(np.float64)
        noise = 0.5 / held.two_precision[measured].astype(np.float64)
        found.append(fitted)
        missed.append((fitted - held.two[measured]) ** 2 - noise)
    size, miss = np.concatenate(found), np.concatenate(missed)
    order = np.argsort(size)
    groups = [group for group in np.array_split(order, 12) if group.size]
    means = np.array([max(float(miss[group].mean()), 0.0) for group in groups])
    return np.array([max(float(size[group].mean()), 1e-12) for group in groups]), np.maximum.accumulate(means)


FEWEST = 5
"""Sets below which their differences say too little."""

LABEL = "combined from synthetic sets; coverage was measured for shares and means on public data, it is not guaranteed"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Several:
    """Models that differ as much as the one they stand for may be off."""

    models: tuple[LatentModel, ...]
    factor: float
    """How much larger than the noise itself the noise is that they were refitted to, as a ratio of variances."""

    @classmethod
    def of(cls, model: LatentModel, sets: int = REFITS) -> Several:
        """Refit as many models as there will be sets; some seconds. Everyone gets the same models."""
        checks.positive_integer("Several", sets=sets)
        if sets < FEWEST:
            raise InvalidArgument(f"Several: expected {FEWEST} sets or more, got {sets}. Fewer cannot show a spread.")
        model = model.spec.fitted(model.published) if model.kept else model
        if model.fits is None:
            raise InvalidArgument(
                f"Several: the model came to {model.form}, and has no fits to compare. Ask the posterior of the "
                "release for intervals of the tables that were measured."
            )
        factor = _factor(model, model.fits)
        rng = np.random.default_rng(int(model.published.releases[0].digest()[48:64], 16))
        total = max(model.published.posterior.joint.total, 1.0)
        starts, made = model.seen().starts, []
        for weights, shares in _refits(model, model.fits, sets, factor, rng):
            laws = dict(zip(model.joined, np.split(shares, starts[1:-1], axis=1), strict=True))
            last = None
            if model.last is not None:
                target = str(model.spec.target)
                last = Regression.of(weights, laws, target, pairs_of(weights, laws, target), total, rng)
            made.append(replace(model, weights=weights, laws=model.laws | laws, last=last))
        return cls(models=tuple(made), factor=factor)

    def tables(self, rows: int, *, rng: np.random.Generator | None = None) -> Iterator[pa.Table]:
        """One set after the other: independent records, so that the usual standard errors hold within each."""
        source = np.random.default_rng() if rng is None else rng
        for model in self.models:
            yield synthetic_table(model, rows, rng=source, even=False)


def _factor(model: LatentModel, fits: Fits) -> float:
    """How much larger the squared error of fits is than the spread of refits: Σ (spread + miss)/Σ spread, over pairs.

    Symbols: spread the variance of a cell over refits, miss what fits missed in held-out copies beyond their noise.
    Source: docs/explanation/synthetic.md, several synthetic sets.
    Adjacency: none, this is post-processing.
    """
    measured = np.triu(model.seen().two_precision > 0)
    rng = np.random.default_rng(int(model.published.releases[0].digest()[16:32], 16))
    total = np.zeros(int(measured.sum()))
    squares = np.zeros_like(total)
    for weights, shares in _refits(model, fits, REFITS, 1.0, rng):
        cells = (shares.T @ (weights[:, None] * shares))[measured]
        total += cells
        squares += cells**2
    spread = np.maximum(squares - total**2 / REFITS, 0.0) / (REFITS - 1)
    laws = np.concatenate([model.laws[name] for name in model.joined], axis=1)
    centre = (laws.T @ (model.weights[:, None] * laws))[measured]
    sizes, misses = _misses(fits)
    missed = np.interp(np.log(np.maximum(centre, 1e-12)), np.log(sizes), misses)
    whole = float(spread.sum())
    return 1.0 + float(missed.sum()) / whole if whole > 0.0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combined:
    """A number from several sets, or many at once, with a standard error and an interval: see ``label``."""

    values: Floats
    errors: Floats
    lower: Floats
    upper: Floats
    level: float
    label: str = LABEL


def combine(
    estimates: Sequence[float] | Floats, variances: Sequence[float] | Floats | None = None, *, level: float = 0.9
) -> Combined:
    """Join what each set gave: one number a set, or a row of numbers a set.

    T = B = (1 + 1/m)·b, or B − v̄ with the variances that each set states for itself (at least b/m)
    ν = (m − 1)·(1 − v̄/B)², the degrees of freedom of Student's law (at least 1)
    Symbols: m sets, b the variance between them, v̄ the mean of the stated variances.
    Source: [RRR03] for −v̄ and ν; docs/explanation/synthetic.md, several synthetic sets.
    Adjacency: none, this is post-processing.

    With ``variances`` the interval is about the private table. Without, sampling of the sets stays part of the error:
    if each set has as many records as the private table, the interval is about the population behind it. Where a person
    may have m rows in the private table, draw sets of one m-th of its size: the rows of a person may be alike.

    >>> found = combine([0.31, 0.29, 0.30, 0.32, 0.28])
    >>> print(f"{found.values:.2f} from {found.lower:.2f} to {found.upper:.2f}")
    0.30 from 0.26 to 0.34
    """
    checks.probability("combine", level=level)
    each = np.asarray(estimates, dtype=np.float64)
    if each.ndim == 0 or len(each) < FEWEST or not np.isfinite(each).all():
        raise InvalidArgument(f"combine: expected finite estimates of {FEWEST} sets or more, one entry a set.")
    sets = len(each)
    between = each.var(axis=0, ddof=1)
    total = (1.0 + 1.0 / sets) * between
    freedom = np.full(np.shape(between), sets - 1.0)
    if variances is not None:
        within = np.asarray(variances, dtype=np.float64)
        if within.shape != each.shape or not (np.isfinite(within).all() and (within >= 0).all()):
            raise InvalidArgument("combine: expected a variance that is not negative for each estimate.")
        ratio = np.divide(within.mean(axis=0), total, out=np.ones_like(total), where=total > 0)
        freedom = np.maximum(freedom * np.maximum(1.0 - ratio, 0.0) ** 2, 1.0)
        total = np.maximum(total - within.mean(axis=0), between / sets)
    values, errors = each.mean(axis=0), np.sqrt(total)
    half = stdtrit(freedom, 0.5 + level / 2) * errors
    return Combined(values=values, errors=errors, lower=values - half, upper=values + half, level=level)
