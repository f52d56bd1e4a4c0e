"""Where random numbers come from: a cryptographic generator fed by the operating system."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dpbayes._checks import Floats

Words = Callable[[int], NDArray[np.uint64]]
"""A source of random bits: so many independent uniform 64-bit words."""

PARALLEL = 2**20
"""From so many draws on, the work is shared out."""


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
