"""Where random numbers come from: a cryptographic generator fed by the operating system."""

from __future__ import annotations

import secrets

import numpy as np


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """The caller's generator, or a fresh ChaCha20 stream keyed with 256 bits of the system's entropy."""
    return secure() if rng is None else rng


def secure() -> np.random.Generator:
    """A generator whose stream cannot be predicted or replayed."""
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=secrets.randbits(256), counter=0, rounds=20))
