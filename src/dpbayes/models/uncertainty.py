"""How far latent classes may be off, for tables that nobody measured. Measured tables have exact intervals: take those.

An interval here joins three errors. One is the spread of fits to the tables with their noise drawn once more. Another
is what the fits of the folds missed in the copies they had not seen, beyond the noise of these copies, for cells of
about that size. The third is chance: a table that no measured one determines holds dependences that these very records
have by accident, about √count in a cell, or √(m·count) where a person may have m rows. None is a theorem. On four
public data sets they covered the truth more often than stated (docs/explanation/synthetic.md has the figures); they are
estimates, and labelled so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.base.normal import quantile
from dpbayes.inference.numbers import Estimate
from dpbayes.models.latent import LatentModel
from dpbayes.models.mixture import STEPS

REFITS = 20
"""Fits to tables with their noise drawn once more, and synthetic sets: a variance is then known to about a third."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uncertainty:
    """The spread of refits, and the squared miss of fits by the size of a cell."""

    model: LatentModel
    refits: tuple[tuple[Floats, Floats], ...]
    """Weights of classes, and their shares: classes × all levels that were fitted."""
    sizes: Floats
    """Shares of cells, ascending."""
    misses: Floats
    """Mean squared miss of a share of that size."""

    @classmethod
    def of(cls, model: LatentModel) -> Uncertainty:
        """Refit and compare; a few seconds. Everyone gets the same."""
        if model.fits is None:
            raise InvalidArgument(
                f"Uncertainty: the model came to {model.described}, and has no fits to compare. Ask the posterior of "
                "the release for intervals of the tables that were measured."
            )
        rng = np.random.default_rng(int(model.published.releases[0].digest()[16:32], 16))
        refits, seen = [], model.seen()
        for number in range(REFITS):
            one, two = seen.noise(rng)
            fit = model.fits.whole[number % len(model.fits.whole)].copy()
            fit.fit(seen.moved(seen.one + one, seen.two + two), model.fits.pull, STEPS)
            weights, shares = fit.laws()
            refits.append((weights.astype(np.float64), shares.astype(np.float64)))
        sizes, misses = _missed(model)
        return cls(model=model, refits=tuple(refits), sizes=sizes, misses=misses)

    def interval(self, names: Sequence[str], level: float = 0.9) -> Estimate:
        """Counts of a table of any attributes, with intervals that are estimates themselves and guaranteed by nothing."""
        checks.probability("Uncertainty", level=level)
        joined = self.model.joined
        for name in names:
            if name not in joined:
                raise InvalidArgument(f"Uncertainty: {name!r} is not part of the mixture. Ask the posterior about it.")
        centre = self.model.shares(names)
        total = max(self.model.published.posterior.joint.total, 1.0)
        tables = np.array([_table(weights, self._laws(shares, names)) for weights, shares in self.refits])
        spread = tables.reshape(len(tables), *centre.shape).var(axis=0, ddof=1)
        missed = np.interp(np.log(np.maximum(centre, 1e-12)), np.log(self.sizes), self.misses)
        joint = self.model.published.posterior.joint
        chance = 0.0 if joint.estimable(names) else joint.repeats.most * centre * (1.0 - centre) / total
        half = quantile(0.5 + level / 2) * np.sqrt(spread + missed + chance)
        return Estimate(
            values=centre * total,
            lower=np.maximum(np.floor((centre - half) * total), 0.0),
            upper=np.ceil((centre + half) * total),
        )

    def _laws(self, shares: Floats, names: Sequence[str]) -> list[Floats]:
        sizes = [self.model.laws[name].shape[1] for name in self.model.joined]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = {name: at for at, name in enumerate(self.model.joined)}
        return [shares[:, starts[place[name]] : starts[place[name] + 1]] for name in names]


def _table(weights: Floats, laws: Sequence[Floats]) -> Floats:
    """The joint table of a mixture."""
    joint = weights[:, None] * laws[0]
    for law in laws[1:]:
        joint = (joint[:, :, None] * law[:, None, :]).reshape(len(weights), -1)
    return np.asarray(joint.sum(axis=0))


def _missed(model: LatentModel, number: int = 12) -> tuple[Floats, Floats]:
    """Mean squared misses of fits to their folds, beyond the noise of the copies left out, by the size of a cell."""
    found, missed = [], []
    assert model.fits is not None
    for fit, held in model.fits.folds:
        weights, shares = fit.laws()
        measured = np.triu(held.two_precision > 0)
        fitted = (shares.T @ (weights[:, None] * shares))[measured].astype(np.float64)
        noise = 0.5 / held.two_precision[measured].astype(np.float64)
        found.append(fitted)
        missed.append((fitted - held.two[measured]) ** 2 - noise)
    size, miss = np.concatenate(found), np.concatenate(missed)
    order = np.argsort(size)
    groups = [group for group in np.array_split(order, number) if group.size]
    means = np.array([max(float(miss[group].mean()), 0.0) for group in groups])
    return np.array([max(float(size[group].mean()), 1e-12) for group in groups]), np.maximum.accumulate(means)
