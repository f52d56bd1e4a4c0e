"""How hard a mixture should be pulled: noise split into independent copies, some to fit and one to test. Free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.models.mixture import STEPS, Mixture, Statistics

COPIES = 5
"""Copies that the noise is split into, which are the folds; as many fits to all of the tables join the average.

docs/explanation/synthetic.md has the rule for each number here, under splitting the noise.
"""

PULLS = (15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 250.0, 350.0, 500.0, 700.0, 1000.0)
"""Tried from weak to strong, each from where the last one ended: classes that start strongly pulled collapse."""

LEAST_TRIED = 1 + len(PULLS) // 2
"""Pulls that are always tried: among weak ones misfits may rise before they fall."""

PAST = 2
"""Pulls in a row that are too strong, after which no stronger one is tried."""


def copies(seen: Statistics, rng: np.random.Generator) -> Iterator[tuple[Statistics, Statistics]]:
    """For each copy what the others say together, and the copy itself: independent of each other.

    y_f = y + √F·(e_f − ē), with e_f of the law of the noise: each has variance Fσ², and no two are correlated.
    Symbols: F number of copies, e_f independent noise.
    Source: docs/explanation/synthetic.md, splitting the noise.
    Adjacency: none, this is post-processing.
    """
    number, drawn = COPIES, [seen.noise(rng) for _ in range(COPIES)]
    root = np.float32(np.sqrt(number))
    mean = [sum(part) / np.float32(number) for part in zip(*drawn, strict=True)]
    for errors in drawn:
        one, two = (
            whole + root * (error - middle)
            for whole, error, middle in zip((seen.one, seen.two), errors, mean, strict=True)
        )
        others = [(number * whole - own) / (number - 1) for whole, own in ((seen.one, one), (seen.two, two))]
        yield (
            seen.moved(others[0].astype(np.float32), others[1].astype(np.float32), (number - 1) / number),
            seen.moved(one, two, 1 / number),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fits:
    """Fits at the chosen pull: those of the folds, each with the copy that it did not see, and those to everything."""

    pull: float
    folds: tuple[tuple[Mixture, Statistics], ...]
    whole: tuple[Mixture, ...]

    @property
    def all(self) -> tuple[Mixture, ...]:
        """Every fit: the model is their average."""
        return (*(fit for fit, _ in self.folds), *self.whole)


def best_fits(
    seen: Statistics,
    shares: Floats,
    classes: int,
    target: int | None,
    rng: np.random.Generator,
    *,
    folds: int = COPIES,
    whole: int = COPIES,
) -> Fits:
    """Fit each fold along the pulls, and take the largest pull within a standard error of the best held-out misfit.

    All folds go from pull to pull together, so that they can stop where ``PAST`` pulls in a row lie beyond that.
    """
    split = list(islice(copies(seen, rng), folds))
    paths = [path(train, shares, classes, target, rng, PULLS) for train, _ in split]
    fits: list[tuple[Mixture, ...]] = []
    misfits: list[list[float]] = []
    place = 0
    for reached in zip(*paths, strict=True):
        fits.append(reached)
        misfits.append([fit.misfit(test) for fit, (_, test) in zip(reached, split, strict=True)])
        place = largest(np.array(misfits))
        if len(fits) >= LEAST_TRIED and len(fits) > place + PAST:
            break
    return Fits(
        pull=PULLS[place],
        folds=tuple((fit, test) for fit, (_, test) in zip(fits[place], split, strict=True)),
        whole=tuple(list(path(seen, shares, classes, target, rng, PULLS[: place + 1]))[-1] for _ in range(whole)),
    )


def largest(misfits: Floats) -> int:
    """The last pull whose misfit, pulls × folds, is within a standard error of the best: of their difference."""
    mean = misfits.mean(axis=1)
    best = int(mean.argmin())
    doubt = (misfits - misfits[best]).std(axis=1, ddof=1) / np.sqrt(misfits.shape[1])
    return int(np.flatnonzero(mean - mean[best] <= doubt)[-1])


def dependence(seen: Statistics, shares: Floats, target: int | None) -> Floats:
    """How far a quick fit says each pair of attributes is from independent, in total variation: a square matrix.

    Of all that noisy tables say, this tells best where more of them pay: a pair may drown in its own noise and still be
    known to depend from others. The same tables give the same answer.
    """
    fits = best_fits(seen, shares, 50, target, np.random.default_rng(0), folds=2, whole=0)
    found = np.zeros((len(seen.starts) - 1,) * 2)
    for fit in fits.all:
        weights, laws = fit.laws()
        mean = weights @ laws
        apart = np.abs(laws.T @ (weights[:, None] * laws) - np.outer(mean, mean))
        rows = np.add.reduceat(apart, seen.starts[:-1], axis=0)
        found += 0.5 * np.add.reduceat(rows, seen.starts[:-1], axis=1) / len(fits.all)
    return found


def path(
    seen: Statistics,
    shares: Floats,
    classes: int,
    target: int | None,
    rng: np.random.Generator,
    pulls: tuple[float, ...],
) -> Iterator[Mixture]:
    """A fit at each pull, from weak to strong; the first leg starts from random classes and takes more steps."""
    fit = Mixture.start(seen.starts, shares, classes, target, rng)
    for leg, pull in enumerate(pulls):
        fit.fit(seen, pull, STEPS if leg else 6 * STEPS)
        yield fit.copy()
