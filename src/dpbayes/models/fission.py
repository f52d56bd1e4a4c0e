"""How hard a mixture should be pulled: noise split into independent copies, some to fit and one to test. Free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpbayes._checks import Floats
from dpbayes.models.mixture import FIRST_STEPS, STEPS, Mixture, Statistics

COPIES = 5
"""Copies that the noise is split into: the number of folds."""

WHOLE_FITS = 5
"""Fits to all of the tables that join the average, beside one of each fold."""

PULLS = (15.0, 30.0, 60.0, 120.0, 250.0, 500.0, 1000.0)
"""Tried from weak to strong, each from where the last one ended: classes that start strongly pulled collapse."""


def copies(seen: Statistics, rng: np.random.Generator, number: int = COPIES) -> Iterator[tuple[Statistics, Statistics]]:
    """For each copy what the others say together, and the copy itself: independent of each other.

    y_f = y + √F·(e_f − ē), with e_f of the law of the noise: each has variance Fσ², and no two are correlated.
    Symbols: F number of copies, e_f independent noise.
    Source: docs/explanation/synthetic.md, splitting the noise.
    Adjacency: none, this is post-processing.
    """
    drawn = [seen.noise(rng) for _ in range(number)]
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


def chosen(seen: Statistics, shares: Floats, classes: int, target: int | None, rng: np.random.Generator) -> Fits:
    """Fit each fold along all pulls, and take the largest pull within a standard error of the best held-out χ²."""
    misfits = np.zeros((COPIES, len(PULLS)))
    paths: list[list[Mixture]] = []
    held: list[Statistics] = []
    for fold, (train, test) in enumerate(copies(seen, rng)):
        paths.append(list(path(train, shares, classes, target, rng, PULLS)))
        misfits[fold] = [fit.misfit(test) for fit in paths[-1]]
        held.append(test)
    mean = misfits.mean(axis=0)
    best = int(mean.argmin())
    doubt = (misfits - misfits[:, [best]]).std(axis=0, ddof=1) / np.sqrt(COPIES)
    place = max(at for at in range(len(PULLS)) if mean[at] - mean[best] <= doubt[at])
    whole = [list(path(seen, shares, classes, target, rng, PULLS[: place + 1]))[-1] for _ in range(WHOLE_FITS)]
    folds = tuple((fits[place], test) for fits, test in zip(paths, held, strict=True))
    return Fits(pull=PULLS[place], folds=folds, whole=tuple(whole))


def path(
    seen: Statistics,
    shares: Floats,
    classes: int,
    target: int | None,
    rng: np.random.Generator,
    pulls: tuple[float, ...],
) -> Iterator[Mixture]:
    """A fit at each pull, from weak to strong."""
    fit = Mixture.start(seen.starts, shares, classes, target, rng)
    for leg, pull in enumerate(pulls):
        fit.fit(seen, pull, STEPS if leg else FIRST_STEPS)
        yield fit.copy()
