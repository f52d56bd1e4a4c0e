"""Integer noise by exact inversion, where its random numbers come from, and the test that it must pass first.

A release and a seeded experiment take the same path. The random numbers of a release come from a cryptographic
generator fed by the operating system. Before anything is published with them, known bits must give known noise, and
fresh draws must follow their law. A library that draws noise has been wrong before: discrete Laplace noise of scale 5
came out with ratios of e^0.347 where e^0.2 was priced, and nobody noticed from the numbers.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from dpbayes.base.checks import LARGEST_COUNT, Floats, Ints
from dpbayes.base.errors import NoiseError
from dpbayes.mechanisms.exact import Law, Words, table_for

Draw = Callable[[Law, int, np.random.Generator | None], Ints]

PARALLEL = 2**20
"""From so many draws on, the work is shared out."""

SCALES = (2, 5, 20, 600)
"""The wide one is drawn in blocks when draws are few, the others from full tables."""

LAWS = 2 * len(SCALES)

FEW, MANY = 2**12, 2**18
"""Draws of each law, before the first release of a process and for the doctor."""

LIMIT = 52.0
"""n·KL from which the draws are refused; see ``misfit``."""

_BINS = 12

KNOWN = {
    ("gaussian", 2): [0, 1, 1, -2, 0, 1, 1, 0],
    ("gaussian", 5): [-1, 2, 1, -4, -1, 3, 1, 0],
    ("gaussian", 20): [-3, 8, 5, -15, -3, 11, 6, -1],
    ("laplace", 2): [0, 1, 0, -2, 0, 1, 0, 0],
    ("laplace", 5): [-1, 2, 1, -4, -1, 3, 1, 0],
    ("laplace", 20): [-3, 8, 5, -16, -2, 11, 5, -1],
}
"""The noise of that stream's first words, as the definition of the law gives it in 80 digits."""


def software() -> dict[str, str]:
    """The versions of everything that draws noise, for receipts and releases: a faulty one can be named later."""
    from importlib.metadata import version

    return {"python": platform.python_version(), **{name: version(name) for name in ("dpbayes", "numpy", "randomgen")}}


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """The caller's generator, or a fresh ChaCha20 stream keyed with 256 bits of the system's entropy."""
    return secure() if rng is None else rng


def secure() -> np.random.Generator:
    """A generator whose stream cannot be predicted or replayed."""
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=secrets.randbits(256), counter=0, rounds=20))


def words(rng: np.random.Generator | None) -> Words:
    """Uniform 64-bit words of the caller's generator, or of a fresh secure one."""
    source = generator(rng)
    return lambda count: source.integers(0, 2**64, count, dtype=np.uint64)


def standard_gamma(shapes: Floats, rng: np.random.Generator | None = None) -> Floats:
    """Gamma draws with the given shapes; many secure ones on all processors, each part under a key of its own."""
    if rng is not None or shapes.size < PARALLEL:
        return generator(rng).standard_gamma(shapes)
    drawn = np.empty(shapes.shape)
    workers = os.cpu_count() or 1
    sources, targets = (np.array_split(array.reshape(-1), workers) for array in (shapes, drawn))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda source, target: secure().standard_gamma(source, out=target), sources, targets))
    return drawn


class KeyedStreams:
    """Independent streams of one secret key, each found again by its number: ChaCha20 as a pseudo-random function.

    Stream n starts at block n·2⁶⁰ of the key's stream, so streams with n < 2⁶⁴ never meet.

    >>> streams = KeyedStreams(bytes(32))
    >>> first, second, again = (streams.at(n).integers(10**6) for n in (1, 2, 1))
    >>> bool(first == again != second)
    True
    """

    def __init__(self, key: bytes) -> None:
        from randomgen import ChaCha

        self._bits = ChaCha(key=int.from_bytes(key, "little"), counter=0, rounds=20)
        self._start = self._bits.state
        self._start["state"]["ctr"] = self._place = np.zeros(2, dtype=np.uint64)
        self._generator = np.random.Generator(self._bits)

    def at(self, number: int) -> np.random.Generator:
        """The generator at the start of a stream; the next call moves it. A new one would cost ten times as much."""
        self._place[1] = number
        self._bits.state = self._start
        return self._generator


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
        once()
    return plus(counts, draw(law, counts.size, rng).reshape(counts.shape))


def plus(counts: Ints, noise: Ints) -> Ints:
    """Counts plus noise, cut to −2⁶² … 2⁶³ − 1: a function of the noisy counts, so nothing wraps round or leaks.

    The noise may have been cut to 64 bits before. For any count between 0 and 2⁶² the uncut sum then lies beyond the
    same end, so the result is the same.

    Source: docs/explanation/proofs/integer-noise.md, lemma 3.
    """
    if noise.min() >= -LARGEST_COUNT and noise.max() < LARGEST_COUNT:
        return np.add(counts, noise, out=noise)
    up = counts.astype(np.uint64) + np.maximum(noise, 0).astype(np.uint64)
    down = np.maximum(counts + np.minimum(noise, 0), -LARGEST_COUNT)
    return np.where(noise > 0, np.minimum(up, np.uint64(np.iinfo(np.int64).max)).astype(np.int64), down)


@cache
def once() -> None:
    """The test that runs before the first secure draw of a process: some milliseconds."""
    check(FEW, draw)


def check(draws: int, draw: Draw) -> None:
    """Raise NoiseError unless known answers come out and ``draws`` fresh draws of each law follow it."""
    # the first eight bytes of ChaCha20 with an all-zero key and nonce, as RFC 8439 prints them
    if int(_known_stream().integers(0, 2**64, dtype=np.uint64)) != 0x903DF1A0ADE0B876:
        raise _refusal("ChaCha20 does not give its published stream")
    for (name, scale), expected in KNOWN.items():
        if draw(_law(name, scale), FEW, _known_stream())[: len(expected)].tolist() != expected:
            raise _refusal(f"known bits give wrong {name} noise of scale {scale}")
    for name in ("gaussian", "laplace"):
        for scale in SCALES:
            if misfit(draw(_law(name, scale), draws, None), name, scale) > LIMIT:
                raise _refusal(f"{name} noise of scale {scale} does not follow its law")


def misfit(noise: Ints, name: str, scale: int) -> float:
    """n·KL(seen ‖ law) over 12 bins, half the likelihood-ratio χ²

    P[n·KL ≥ x] ≤ e^−x·(e·x/(k−1))^(k−1), for every n: 4·10⁻¹¹ for k = 12 bins and x = 52, so that eight laws stay
    below 10⁻⁹.

    Symbols: n draws, k bins, x ``LIMIT``.
    Source: [Agrawal20] theorem 1.2.
    Adjacency: none.
    """
    edges = [round(scale * step / 2) for step in range(-5, 6)]
    seen = np.bincount(np.searchsorted(edges, noise, side="right"), minlength=_BINS) / noise.size
    expected = np.add.reduceat(_probabilities(name, scale), [0, *(edge + 40 * scale for edge in edges)])
    there = seen > 0
    return float(noise.size * np.sum(seen[there] * np.log(seen[there] / expected[there])))


def _probabilities(name: str, scale: int) -> Floats:
    """The law from −40·scale to 40·scale, straight from its formula."""
    k = np.arange(-40 * scale, 40 * scale + 1, dtype=np.float64)
    weights = np.exp(-k * k / (2.0 * scale**2) if name == "gaussian" else -np.abs(k) / scale)
    return np.asarray(weights / weights.sum())


def _law(name: str, scale: int) -> Law:
    return Law.gaussian(scale) if name == "gaussian" else Law.laplace(scale)


def _known_stream() -> np.random.Generator:
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=0, counter=0, rounds=20))


def _refusal(what: str) -> NoiseError:
    return NoiseError(
        f"The self-test of the noise failed: {what}. Do not publish anything drawn with this installation. "
        "Install dpbayes, numpy and randomgen again from a source you trust, and run dpbayes doctor."
    )
