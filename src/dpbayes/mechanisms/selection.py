"""Choosing one of several public candidates: the exponential mechanism, drawn in whole numbers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.kinds import Mechanism
from dpbayes.privacy.bounds import randomised_response_renyi
from dpbayes.privacy.convert import ROUND_UP
from dpbayes.privacy.pld import Pld, from_profile
from dpbayes.schema.unit import Unit

Below = Callable[[int], int]
"""A uniform whole number from 0 to just below its argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Mechanism):
    """One candidate, the better the lower its score: P[i] ∝ exp(−ε·s_i/R), with ε the ``sharpness``.

    R bounds how far one person can move the score of a candidate *against* that of any other one: the range of the
    privacy loss is then at most ε. That costs less, composed, than ε of randomised response.

    Source: [MT07] theorem 6; [DDR20] for the range; our proof, docs/explanation/proofs/selection.md.

    >>> from dpbayes import Unit
    >>> selection = Selection(sharpness=1.0, unit=Unit(adjacency="add-remove"))
    >>> selection.renyi(float("inf")), round(selection.concentrated(2.0), 6)
    (1.0, 0.125)
    >>> selection.choose([0, 500, 700], spread=1)
    0
    """

    kind = "selection-1"
    sharpness: float
    unit: Unit

    def renyi(self, order: float) -> float:
        """D_λ ≤ min(λε²/8, D_λ of randomised response), the latter at most ε

        Symbols: λ order, ε sharpness.
        Source: [CR21] for ε²/8-zCDP; [KOV] theorem 3.3; our proof, docs/explanation/proofs/selection.md.
        Adjacency: enters through the spread of the scores.
        """
        return min(order * self.concentrated(order), randomised_response_renyi(order, self.sharpness))

    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """ρ = ε²/8 at every ω.

        Symbols: ε sharpness, ω omega.
        Source: [CR21]; our proof, docs/explanation/proofs/selection.md.
        Adjacency: enters through the spread of the scores.
        """
        return self.sharpness**2 / 8.0 * ROUND_UP

    def delta(self, epsilon: float) -> float:
        """δ(a) = (e^{ε/2} − e^{a/2})²/(e^ε − 1) = (1 − e^{−(ε−a)/2})²/(1 − e^{−ε}) for a < ε, else 0

        Symbols: ε sharpness, a epsilon.
        Source: [DDR20]; our proof, docs/explanation/proofs/selection.md.
        Adjacency: enters through the spread of the scores.
        """
        return float(self.profile(np.array([epsilon], dtype=np.float64))[0])

    def profile(self, epsilons: Floats) -> Floats:
        """δ at many ε."""
        short = np.maximum(self.sharpness - epsilons, 0.0)
        profile: Floats = np.expm1(-0.5 * short) ** 2 / -math.expm1(-self.sharpness) * ROUND_UP
        return np.minimum(profile, 1.0)

    def epsilon(self, delta: float) -> float:
        """The profile solved for a: a = ε + 2·ln(1 − √(δ·(1 − e^{−ε}))), at least 0.

        Symbols: as in delta.
        Source: [DDR20]; our proof, docs/explanation/proofs/selection.md.
        Adjacency: enters through the spread of the scores.
        """
        root = math.sqrt(delta * -math.expm1(-self.sharpness)) / ROUND_UP
        found = self.sharpness + 2.0 * math.log1p(-root)
        return min(max(math.nextafter(found, math.inf), 0.0), self.sharpness)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``."""
        return from_profile(self.profile, interval, self.sharpness)

    def choose(self, scores: Sequence[int], *, spread: int, below: Below = secrets.randbelow) -> int:
        """The position of the candidate drawn, exactly: uniform candidates, each accepted with its weight.

        ``spread`` is R, a bound for all neighbours on the largest minus the smallest change of a score. How long it
        takes depends on the scores.

        Source: rejection; [CKS20] algorithm 1 for the weights.
        """
        checks.positive_integer("Selection", spread=spread)
        whole = _whole(scores)
        best = min(whole)
        numerator, denominator = self.sharpness.as_integer_ratio()
        while True:
            candidate = below(len(whole))
            if _accepted(numerator * (whole[candidate] - best), denominator * int(spread), below):
                return candidate


def numbers_below(rng: np.random.Generator | None) -> Below:
    """Uniform whole numbers of any size: from the operating system, or from a generator for experiments."""
    if rng is None:
        return secrets.randbelow
    source = rng

    def below(bound: int) -> int:
        bits = (bound - 1).bit_length()
        while True:
            number = int.from_bytes(source.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if number < bound:
                return number

    return below


def _whole(scores: object) -> list[int]:
    """Scores as Python's integers. The message never repeats them."""
    listed = scores if isinstance(scores, (list, tuple, np.ndarray)) else ()
    if not len(listed) or any(isinstance(each, bool) or not isinstance(each, (int, np.integer)) for each in listed):
        raise InvalidArgument("Selection: expected scores as a list of one whole number or more.")
    return [int(each) for each in listed]


def _accepted(numerator: int, denominator: int, below: Below) -> bool:
    """True with probability exp(−numerator/denominator).

    Source: [CKS20] algorithm 1.
    """
    while numerator > denominator:
        if not _accepted_below_one(1, 1, below):
            return False
        numerator -= denominator
    return _accepted_below_one(numerator, denominator, below)


def _accepted_below_one(numerator: int, denominator: int, below: Below) -> bool:
    """The same for a ratio of at most 1: the number of rounds survived is even with that probability."""
    rounds = 1
    while below(denominator * rounds) < numerator:
        rounds += 1
    return rounds % 2 == 1
