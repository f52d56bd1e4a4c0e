"""Mixtures of products fitted to noisy one- and two-way tables: plain arrays, float32, gradients written out.

All levels of all attributes stand side by side in one axis, so that every two-way table is a block of one square
matrix, and the whole model of all pairs is a single product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints

Singles = NDArray[np.float32]

STEPS = 50
"""Of a leg, from one pull to the next; longer descents did worse (docs/reproduction/synthetic.md)."""

LEAST_VARIANCE = 1 / 12
"""Of a count: that of rounding to whole numbers. Noise that is almost never other than zero counts as this."""

SMALL = 1e-12
"""Keeps logarithms and quotients finite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Noisy shares of all measured one- and two-way tables; a precision of zero marks what nobody measured.

    The two-way part is symmetric, and each of its two halves carries half of the precision.
    """

    starts: Ints
    """Where each attribute begins on the common axis, and where the last one ends."""
    one: Singles
    one_precision: Singles
    two: Singles
    two_precision: Singles

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int],
        tables: Iterable[tuple[Sequence[str], Floats, Floats]],
        total: float,
    ) -> Statistics:
        """From tables of counts with the variances of their cells; larger tables count by their pairs.

        Several measurements of one cell are averaged by precision, which loses nothing under Gaussian noise.
        """
        starts = np.concatenate([[0], np.cumsum(list(sizes.values()))]).astype(np.int64)
        place = {name: slice(starts[at], starts[at + 1]) for at, name in enumerate(sizes)}
        width = int(starts[-1])
        one, one_precision, two, two_precision = (np.zeros(shape) for shape in [width] * 2 + [(width, width)] * 2)
        for names, counts, variance in tables:
            for axes, values, spread in _margins(names, counts, variance, place):
                weight = total**2 / np.maximum(spread, LEAST_VARIANCE)
                if len(axes) == 1:
                    at = place[axes[0]]
                    one[at] += weight * values / total
                    one_precision[at] += weight
                    continue
                row, column = (place[name] for name in axes)
                for cells, seen, known in (
                    ((row, column), values, weight),
                    ((column, row), values.T, weight.T),
                ):
                    two[cells] += 0.5 * known * seen / total
                    two_precision[cells] += 0.5 * known
        one, two = (
            np.divide(part, known, out=np.zeros_like(part), where=known > 0)
            for part, known in ((one, one_precision), (two, two_precision))
        )
        return cls(
            starts=starts,
            one=one.astype(np.float32),
            one_precision=one_precision.astype(np.float32),
            two=two.astype(np.float32),
            two_precision=two_precision.astype(np.float32),
        )

    def noise(self, rng: np.random.Generator) -> tuple[Singles, Singles]:
        """Gaussian noise of the size that the tables have."""
        one = rng.standard_normal(self.one.shape, dtype=np.float32) * _deviation(self.one_precision)
        half = np.triu(rng.standard_normal(self.two.shape, dtype=np.float32))
        return one, (half + half.T) * _deviation(2 * self.two_precision)

    def moved(self, one: Singles, two: Singles, precision: float = 1.0) -> Statistics:
        """With other numbers, of this share of the precision."""
        return replace(
            self,
            one=one,
            two=two,
            one_precision=self.one_precision * np.float32(precision),
            two_precision=self.two_precision * np.float32(precision),
        )


def _margins(
    names: Sequence[str], counts: Floats, variance: Floats, known: Mapping[str, slice]
) -> Iterable[tuple[tuple[str, ...], Floats, Floats]]:
    """A table of one or two attributes as it is, a larger one summed to each of its pairs; others are left out."""
    if len(names) <= 2:
        chosen = [tuple(range(len(names)))]
    else:
        chosen = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    for axes in chosen:
        if all(names[axis] in known for axis in axes):
            absent = tuple(axis for axis in range(len(names)) if axis not in axes)
            yield tuple(names[axis] for axis in axes), counts.sum(axis=absent), variance.sum(axis=absent)


def _deviation(precision: Singles) -> Singles:
    return np.asarray(
        np.divide(1.0, np.sqrt(precision), out=np.zeros_like(precision), where=precision > 0), dtype=np.float32
    )


@dataclass(slots=True, kw_only=True, eq=False)
class Mixture:
    """Classes with weights, each a product of one-way laws; logits, and what Adam remembers of them.

    A class that is tied to a level of the target has logits of −∞ at its other levels, which no gradient moves.
    """

    sizes: Ints
    """Levels of each attribute."""
    blocks: Singles
    """Levels × attributes, one where the level is the attribute's: a product with it sums over each attribute."""
    target: int | None
    """The attribute that classes are tied to."""
    centre: Singles
    """Log one-way shares that classes are pulled to."""
    logits: Singles
    weights: Singles
    """Logits of the classes' weights."""
    memory: list[Singles]
    steps: int = 0

    @classmethod
    def start(
        cls,
        starts: Ints,
        shares: Floats,
        classes: int,
        target: int | None,
        rng: np.random.Generator,
        *,
        spread: float = 1.5,
    ) -> Mixture:
        """Random classes: the one-way shares times e to normal numbers of this ``spread``.

        With a target, each class is tied to one of its levels.
        """
        centre = np.log(np.maximum(shares, SMALL)).astype(np.float32)
        logits = centre + np.float32(spread) * rng.standard_normal((classes, centre.size), dtype=np.float32)
        weights = np.zeros(classes, dtype=np.float32)
        if target is not None and can_tie(int(np.diff(starts)[target]), classes):
            tied = slice(int(starts[target]), int(starts[target + 1]))
            levels = _allotted(shares[tied], classes)
            logits[:, tied] = np.where(np.arange(tied.stop - tied.start) == levels[:, None], 0.0, -np.inf)
            weights = np.log(np.maximum(shares[tied], SMALL)[levels] / np.bincount(levels)[levels]).astype(np.float32)
        sizes = np.diff(starts)
        return cls(
            sizes=sizes,
            blocks=np.repeat(np.eye(sizes.size, dtype=np.float32), sizes, axis=0),
            target=target,
            centre=centre,
            logits=logits,
            weights=weights,
            memory=[np.zeros_like(each) for each in (weights, weights, logits, logits)],
        )

    def copy(self) -> Mixture:
        """One that can be fitted further without touching this one."""
        return replace(
            self, logits=self.logits.copy(), weights=self.weights.copy(), memory=[each.copy() for each in self.memory]
        )

    def laws(self) -> tuple[Singles, Singles]:
        """Weights of the classes, and their one-way shares: classes × all levels."""
        weights = np.exp(self.weights - self.weights.max())
        shares = np.exp(self.logits)
        shares /= self._spread(shares @ self.blocks)
        return weights / weights.sum(), shares

    def _spread(self, each: Singles) -> Singles:
        """Numbers of attributes, given to all of their levels."""
        return np.repeat(each, self.sizes, axis=-1)

    def misfit(self, seen: Statistics, *, least: float = 1e-5) -> float:
        """Σ (model − noisy)²/√(p_a·p_b) over the cells of measured pairs.

        Its excess over the noise is the squared error of the model. Total variation counts errors, not their squares,
        and errors grow with about the root of what a cell holds: so weighted, all cells count by about their error.
        Symbols: p_a and p_b one-way shares; ``least`` keeps the smallest cells from being worth ever more.
        Source: docs/explanation/synthetic.md, splitting the noise.
        Adjacency: none, this is post-processing.
        """
        weights, shares = self.laws()
        two = shares.T @ (weights[:, None] * shares) - seen.two
        alone = np.exp(self.centre)
        scale = np.where(seen.two_precision > 0, 1.0 / np.sqrt(np.outer(alone, alone) + np.float32(least)), 0.0)
        return float((two * two * scale).sum(dtype=np.float64))

    def fit(self, seen: Statistics, pull: float, steps: int, *, every: int = 20) -> None:
        """Descend ½χ² + pull·Σ_j m_j·D_j, D_j = Σ_k w_k·KL(T_kj‖p_j), by Adam.

        Symbols: w_k the weight of class k, T_kj its shares of attribute j, p_j the shares of all, m_j as in
        ``_shared``, computed anew ``every`` so many steps. The rate falls
        geometrically from 0.1 to 0.02.
        Source: [KB15] for Adam; the model, docs/explanation/synthetic.md.
        Adjacency: none, this is post-processing.
        """
        for step in range(steps):
            if step % every == 0:
                self.logits -= self._spread(np.log(np.exp(self.logits) @ self.blocks))  # so that exp never overflows
                pulled = np.float32(pull) * self._shared()
            of_weights, of_laws = self._gradients(seen, pulled)
            self.steps += 1
            rate = 0.1 * (0.02 / 0.1) ** (step / max(steps - 1, 1))
            self._descend(self.weights, of_weights, self.memory[:2], rate)
            self._descend(self.logits, of_laws, self.memory[2:], rate)

    def _descend(self, logits: Singles, gradient: Singles, memory: list[Singles], rate: float) -> None:
        """A step of Adam, in place: what it remembers are sums, which the rate makes means of."""
        (fast, slow), (total, square) = (0.9, 0.99), memory  # 0.9 as in [KB15], a shorter memory of squares
        total *= np.float32(fast)
        total += gradient
        square *= np.float32(slow)
        square += gradient * gradient
        means = (1 - fast) / (1 - fast**self.steps), (1 - slow) / (1 - slow**self.steps)
        step = np.sqrt(square)
        step += np.float32(1e-8)  # the ε of [KB15]: keeps still what has no gradient
        np.divide(total, step, out=step)
        step *= np.float32(rate * means[0] / means[1] ** 0.5)
        logits -= step

    def _shared(self, most: float = 8.0) -> Singles:
        """How hard each attribute is pulled: m_j = √(mean of all D_i/(n_i − 1) over D_j/(n_j − 1)), at most ``most``.

        So the pull is, up to a factor, the penalty Σ_j √((n_j − 1)·D_j) of the grouped lasso: attributes that depend on
        little are left out first, and those that depend on much are hardly pulled. What classes are tied to is not.
        Symbols: n_j levels, D_j the mean divergence of the classes' laws from the shares of all.
        Source: [YL06] for the penalty; the model, docs/explanation/synthetic.md.
        Adjacency: none, this is post-processing.
        """
        weights, shares = self.laws()
        apart = weights @ (shares * (np.log(shares + np.float32(SMALL)) - self.centre)) @ self.blocks
        free = (self.sizes > 1) & (np.arange(self.sizes.size) != self.target)
        each = np.maximum(apart, 1e-6) / np.maximum(self.sizes - 1, 1)
        mean = each[free].mean() if free.any() else 1.0
        factors = np.where(free, np.minimum(np.sqrt(mean / each), most), 0.0)
        return self._spread(factors.astype(np.float32))

    def _gradients(self, seen: Statistics, pulled: Singles) -> tuple[Singles, Singles]:
        """Of the weights' logits and of the laws' logits."""
        weights, shares = self.laws()
        column = weights[:, None]
        root = np.sqrt(column) * shares
        error = root.T @ root  # a matrix times itself costs half
        error -= seen.two
        error *= seen.two_precision
        pushed = shares @ error
        slope = np.log(shares + np.float32(SMALL))
        slope -= self.centre
        slope *= pulled
        slope += (weights @ shares - seen.one) * seen.one_precision
        slope += pushed
        of_weights = np.einsum("kl,kl->k", slope, shares)
        slope += pushed
        slope *= shares
        shares *= self._spread(slope @ self.blocks)
        slope -= shares
        slope *= column
        return weights * (of_weights - weights @ of_weights), slope


def can_tie(levels: int, classes: int) -> bool:
    """Whether each level of a target gets two classes or more; otherwise classes are not tied to its levels."""
    return 2 * levels <= classes


def _allotted(shares: Floats, classes: int) -> Ints:
    """Levels of the target for each class: one at least, the others in proportion to the roots of the shares."""
    root = np.sqrt(np.maximum(shares, 0.0))
    number = np.maximum(np.floor(root / root.sum() * max(classes - root.size, 0)).astype(np.int64) + 1, 1)
    number[int(np.argmax(number))] += classes - int(number.sum())
    return np.repeat(np.arange(root.size), number)
