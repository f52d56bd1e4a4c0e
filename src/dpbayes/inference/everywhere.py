"""Intervals of one cell that hold at every truth, from the exact law of its noise; the prior only makes them shorter.

For every θ the released number t is in a region of probability 1 − α or more, and the interval holds the θ whose region
holds t. The regions take the t with the largest P(t | θ)/P(t), which makes
intervals shortest on average over the prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes.base.checks import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellNoise:
    """What was released of one cell: the count plus noise of a known law, cut at 0 and n if ``cut``."""

    value: int
    first: int
    """The least noise of the law."""
    law: Floats
    """Probabilities of the noise, from ``first`` on."""
    cut: bool = False


def of_sum(values: Ints, law: Floats, total: int) -> list[CellNoise]:
    """Each cell of a table with independent symmetric noise, given the sum of all noise, which is known.

    P(z | Σz = s) ∝ w(z)·w_{d−1}(s − z): the sum does not depend on the counts, so nothing is lost and all is exact.
    Symbols: w law of the noise, w_{d−1} law of the sum of d − 1, s sum of the released numbers minus n.
    Source: docs/explanation/proofs/hellinger.md, intervals at every truth.
    Adjacency: none, this is post-processing.
    """
    half, cells = law.size // 2, values.size
    surplus = int(values.sum()) - total
    size = 1 << math.ceil(math.log2(4.0 * half * math.sqrt(cells) + 2.0 * abs(surplus) + 16.0))
    spectrum = np.fft.rfft(np.roll(np.pad(law, (0, size - law.size)), -half))
    others = np.maximum(np.fft.irfft(spectrum ** (cells - 1), size), 0.0)
    z = np.arange(-half, half + 1)
    given = law * others[(surplus - z) % size] * (np.abs(surplus - z) < size // 2)
    if given.sum() <= 0:
        given = law
    given = given / given.sum()
    alike = {value: CellNoise(value=value, first=-half, law=given) for value in values.tolist()}
    return [alike[value] for value in values.tolist()]


@lru_cache(maxsize=50_000)  # by the identity of the noise, which cells with the same number share
def ends(noise: CellNoise, alpha: float, rest: float, total: int, level: float, *, of: str) -> tuple[float, float]:
    """The interval of a share, under a Beta(α, A − α) prior, or of a count.

    Where counts are many they are on a lattice: 8 steps for each standard deviation, and 7 standard deviations on both
    sides of what was released, as 3·10⁻¹² of a normal law is beyond.
    """
    z = noise.first + np.arange(noise.law.size)
    mean = float(noise.law @ z)
    own = float(noise.law @ np.square(z - mean))
    likely = min(max((noise.value - mean + 0.5) / (total + 1.0), 1.0 / (total + 2.0)), 1.0 - 1.0 / (total + 2.0))
    spread = math.sqrt(own + (total * likely * (1.0 - likely) if of == "shares" else 0.0)) + 0.5
    step = max(int(spread / 8.0), 1)
    centre, reach = noise.value - round(mean), math.ceil(7.0 * spread / step) + 4
    counts = noise.value + step * np.arange(-reach - round(abs(mean) / step), reach + round(abs(mean) / step) + 1)
    counts = counts[(counts >= 0) & (counts <= total)]
    if not counts.size:
        counts = np.array([0 if centre < 0 else total])
    released, chances = _transition(noise, counts, step, total)
    here = int(np.flatnonzero(released == (min(max(noise.value, 0), total) if noise.cut else noise.value))[0])
    before = np.exp(_beta_binomial(counts, alpha, rest, total)) @ chances

    def holds(law: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        told = law @ chances
        ratio = told / np.maximum(before, 1e-300)
        return np.asarray((told * (ratio <= ratio[:, [here]] * (1.0 + 1e-9))).sum(axis=1) > 1.0 - level)

    if of == "counts":
        inside = counts[np.flatnonzero(holds(np.eye(counts.size)))]
        if not inside.size:
            return float(counts[0]), float(counts[-1])
        return float(max(inside[0] - step + 1, 0)), float(min(inside[-1] + step - 1, total))
    low, high = max((counts[0] - step) / total, 0.0), min((counts[-1] + step) / total, 1.0)
    grid = np.linspace(low, high, 48)
    inside = np.flatnonzero(holds(_binomial(counts, grid, total, step)))
    if not inside.size:
        return low, high
    found = []
    for edge, outer in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        near = min(max(edge + outer, 0), grid.size - 1)
        between = np.linspace(grid[edge], grid[near], 24)
        kept = np.flatnonzero(holds(_binomial(counts, between, total, step)))
        found.append(float(between[min(int(kept[-1]) + 1, 23) if kept.size else 0]))
    return found[0], found[1]


def _transition(noise: CellNoise, counts: Ints, step: int, total: int) -> tuple[Ints, Floats]:
    """The released numbers on the lattice, and P(released | count) for each count."""
    z = noise.first + np.arange(noise.law.size)
    place = np.rint(z / step).astype(np.int64)
    law = np.asarray(np.bincount(place - place[0], noise.law), np.float64)
    bound = np.concatenate([counts[0] + step * (place[0] + np.arange(law.size)), counts[-1] + step * place[[-1]]])
    released = np.arange(int(bound.min()), int(bound.max()) + 1, step)
    at = (counts[:, None] - released[0]) // step + place[0] + np.arange(law.size)
    chances = np.zeros((counts.size, released.size))
    np.put_along_axis(chances, at, np.broadcast_to(law, at.shape), axis=1)
    if not noise.cut:
        return released, chances
    inside = np.clip(released, 0, total)
    kept, firsts = np.unique(inside, return_index=True)
    return kept, np.add.reduceat(chances, firsts, axis=1)


def _binomial(counts: Ints, shares: Floats, total: int, step: int) -> Floats:
    """The law of the count on the lattice: each count goes to the nearest point, those beyond its ends to the ends."""
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    theta = shares[:, None]
    if step > 1:
        bounds = counts[:-1] + step // 2
        below = bdtr(bounds.astype(np.float64), total, theta)
        first = np.zeros_like(theta) if counts[0] < step else bdtr(float(counts[0] - step + step // 2), total, theta)
        last = np.ones_like(theta) if counts[-1] > total - step else bdtr(float(counts[-1] + step // 2), total, theta)
        return np.asarray(np.diff(np.hstack([first, below, last]), axis=1))
    paths = gammaln(total + 1.0) - gammaln(counts + 1.0) - gammaln(total - counts + 1.0)
    return np.asarray(np.exp(paths + xlogy(counts, theta) + xlog1py(total - counts, -theta)))


def _beta_binomial(counts: Ints, alpha: float, rest: float, total: int) -> Floats:
    from scipy.special import betaln, gammaln

    paths = gammaln(total + 1.0) - gammaln(counts + 1.0) - gammaln(total - counts + 1.0)
    logs = paths + betaln(counts + alpha, total - counts + rest)
    return np.asarray(logs - logs.max())
