"""A quick test of the samplers of integer noise, before anything is published with them.

Known bits must give known noise, and fresh draws must follow their law. A library that draws noise has been wrong
before: discrete Laplace noise of scale 5 came out with ratios of e^0.347 where e^0.2 was priced, and nobody noticed
from the numbers. A false alarm has a probability below 10⁻⁹.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dpbayes._checks import Floats, Ints
from dpbayes.errors import NoiseError
from dpbayes.mechanisms.exact import Law

Draw = Callable[[Law, int, np.random.Generator | None], Ints]

SCALES = (2, 5, 20, 600)
"""The wide one is drawn in blocks when draws are few, the others from full tables."""

LAWS = 2 * len(SCALES)

FEW, MANY = 2**12, 2**18
"""Draws of each law, before the first release of a process and for the doctor."""

LIMIT = 52.0
"""n·KL from which the draws are refused; see ``misfit``."""

_BINS = 12

KNOWN_WORD = 0x903DF1A0ADE0B876
"""The first eight bytes of ChaCha20 with an all-zero key and nonce, as RFC 8439 prints them."""

KNOWN = {
    ("gaussian", 2): [0, 1, 1, -2, 0, 1, 1, 0],
    ("gaussian", 5): [-1, 2, 1, -4, -1, 3, 1, 0],
    ("gaussian", 20): [-3, 8, 5, -15, -3, 11, 6, -1],
    ("laplace", 2): [0, 1, 0, -2, 0, 1, 0, 0],
    ("laplace", 5): [-1, 2, 1, -4, -1, 3, 1, 0],
    ("laplace", 20): [-3, 8, 5, -16, -2, 11, 5, -1],
}
"""The noise of that stream's first words, as the definition of the law gives it in 80 digits."""


@cache
def once() -> None:
    """The test that runs before the first secure draw of a process: some milliseconds."""
    check(FEW)


def check(draws: int, draw: Draw | None = None) -> None:
    """Raise NoiseError unless known answers come out and ``draws`` fresh draws of each law follow it."""
    if draw is None:
        from dpbayes.mechanisms.noise import draw as draw_of_releases  # it calls this module

        draw = draw_of_releases
    if int(_known_stream().integers(0, 2**64, dtype=np.uint64)) != KNOWN_WORD:
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
