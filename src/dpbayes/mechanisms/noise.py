"""Integer noise on counts by exact inversion, on the same path for releases and for seeded experiments."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dpbayes._checks import LARGEST_COUNT, Ints
from dpbayes.mechanisms import selftest
from dpbayes.mechanisms.exact import Law
from dpbayes.mechanisms.inversion import table_for
from dpbayes.mechanisms.randomness import PARALLEL, words

_LARGEST = np.iinfo(np.int64).max


def gaussian(counts: Ints, sigma: float, rng: np.random.Generator | None) -> Ints:
    """Counts plus discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), exactly.

    Symbols: σ sigma, the fraction that the float is.
    Source: docs/explanation/proofs/integer-noise.md; the law is that of [CKS20].
    Adjacency: none.
    """
    return _noisy(counts, Law.gaussian(float(sigma)), rng)


def laplace(counts: Ints, scale: float, rng: np.random.Generator | None) -> Ints:
    """Counts plus discrete Laplace noise, P[k] ∝ exp(−|k|/scale), exactly.

    Symbols: scale, the fraction that the float is.
    Source: docs/explanation/proofs/integer-noise.md.
    Adjacency: none.
    """
    return _noisy(counts, Law.laplace(float(scale)), rng)


def draw(law: Law, cells: int, rng: np.random.Generator | None) -> Ints:
    """Independent noise that never sees a count; many secure draws on all processors, each part with its own key."""
    table = table_for(law, cells, repeatable=rng is not None)
    drawn = np.empty(cells, dtype=np.int64)
    if rng is not None or cells < PARALLEL:
        table.fill(drawn, words(rng))
        return drawn
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda part: table.fill(part, words(None)), np.array_split(drawn, workers)))
    return drawn


def _noisy(counts: Ints, law: Law, rng: np.random.Generator | None) -> Ints:
    if rng is None:
        selftest.once()
    return _sum(counts, draw(law, counts.size, rng).reshape(counts.shape))


def _sum(counts: Ints, noise: Ints) -> Ints:
    """Counts plus noise, cut to −2⁶² … 2⁶³ − 1: a function of the noisy counts, so nothing wraps round or leaks.

    The noise may have been cut to 64 bits before. For any count between 0 and 2⁶² the uncut sum then lies beyond the
    same end, so the result is the same.

    Source: docs/explanation/proofs/integer-noise.md, lemma 3.
    """
    if noise.min() >= -LARGEST_COUNT and noise.max() < LARGEST_COUNT:
        return np.add(counts, noise, out=noise)
    up = counts.astype(np.uint64) + np.maximum(noise, 0).astype(np.uint64)
    down = np.maximum(counts + np.minimum(noise, 0), -LARGEST_COUNT)
    return np.where(noise > 0, np.minimum(up, np.uint64(_LARGEST)).astype(np.int64), down)
