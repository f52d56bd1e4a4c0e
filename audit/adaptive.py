"""The adaptive game against the ledger: an analyst who chooses each release after seeing the ones before it.

First some rounds of discrete Laplace noise, then one last release, whose kind depends on what they showed. The ledger
itself says which last releases it admits; the δ that the whole game reaches is then an exact finite sum.
"""

from __future__ import annotations

import inspect
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from audit.result import Effort, Row, number
from dpbayes import ApproxDP, Cost, Gaussian, Laplace, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms import Stated

AREA = "ledger"
UNIT = Unit(adjacency="add-remove")
LIMIT = ApproxDP(epsilon=1.0, delta=1e-6)
STEPS = 14
"""Halvings of the search for the largest release that fits."""


def run(effort: Effort) -> list[Row]:
    """The known counterexample, and with more time some strategies at random."""
    return [row for rule in _rules() for row in _played(rule, effort)]


def _rules() -> tuple[str, ...]:
    """The rules by which a ledger may keep an (ε, δ) limit; where there is no choice, the only one."""
    named = inspect.signature(Ledger.open).parameters.get("rule")
    return ("",) if named is None else ("gaussian", "renyi")


def _played(rule: str, effort: Effort) -> list[Row]:
    rng = np.random.default_rng(20)
    tried = [(int(rng.integers(1, 40)), float(np.exp(rng.uniform(-4.6, -1.2)))) for _ in range(10)]
    found = [("20 rounds of ε = 0.03", reached(20, 0.03, rule))]
    if effort.thorough:
        found.append(("one round of ε = 0.3", reached(1, 0.3, rule)))
        played = {(rounds, each): reached(rounds, each, rule) for rounds, each in tried}
        worst = max(played.values())
        found.append((f"the best of {len(tried)} random strategies", worst))
    kept = f", rule {rule}" if rule else ""
    return [
        Row(
            area=AREA,
            attack=f"{what}, then one release chosen by the outcome{kept}",
            claim=f"δ = {LIMIT.delta:g} at ε = {LIMIT.epsilon:g}",
            measured=f"δ = {number(delta)}",
            holds=delta <= LIMIT.delta * (1 + 1e-9),
        )
        for what, delta in found
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The privacy loss of one release: its values, their probabilities, and that of an infinite loss."""

    values: Any
    probabilities: Any
    infinite: float = 0.0

    def delta(self, epsilon: float) -> float:
        """E[(1 − e^{ε − L})₊], for any real ε."""
        gains = -np.expm1(np.minimum(epsilon - self.values, 0.0))
        return float(self.infinite + (self.probabilities * gains).sum())


NOTHING = Loss(values=np.zeros(1), probabilities=np.ones(1))


def response(epsilon: float, delta: float = 0.0) -> Loss:
    """Randomised response, betrayed with probability δ: discrete Laplace noise, and the worst (ε, δ) mechanism."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    chances = (1.0 - delta) * np.array([truth, 1.0 - truth])
    return Loss(values=np.array([epsilon, -epsilon]), probabilities=chances, infinite=delta)


def gaussian(sigma: float) -> Loss:
    """Discrete Gaussian noise on a count that moves by one."""
    k = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return Loss(values=(2 * k + 1) / (2 * sigma**2), probabilities=weights / weights.sum())


def reached(rounds: int, each: float, rule: str = "") -> float:
    """δ(ε) of the whole game, the last release chosen as well as the ledger allows. Zero if it refuses the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "game.ledger")
        ledger.open("game", LIMIT, UNIT, **({"rule": rule} if rule else {}))
        try:
            for _ in range(rounds):
                ledger.charge("game", Cost.of(Laplace(scale=1.0 / each, unit=UNIT)))
        except DpbayesError:
            return 0.0
        account = ledger.account("game")
        last = [NOTHING, *_admitted(lambda mechanism: account.affords(Cost.of(mechanism)))]
    ups = np.arange(rounds + 1)
    chances = binom.pmf(ups, rounds, 1.0 / (1.0 + math.exp(-each)))
    so_far = (2 * ups - rounds) * each
    return float(
        sum(
            chance * max(loss.delta(LIMIT.epsilon - spent) for loss in last)
            for chance, spent in zip(chances, so_far, strict=True)
        )
    )


def _admitted(affords: Callable[[Any], bool]) -> Iterator[Loss]:
    """The loudest last releases of each kind that the ledger admits."""
    sigma = _loudest(lambda size: affords(Gaussian(sigma=1.0 / size, unit=UNIT)))
    if sigma is not None:
        yield gaussian(1.0 / sigma)
    pure = _loudest(lambda size: affords(Laplace(scale=1.0 / size, unit=UNIT)))
    if pure is not None:
        yield response(pure)
    for part in (0.5, 0.9, 0.99, 0.999):
        delta = part * LIMIT.delta
        stated = _loudest(
            lambda size, delta=delta: affords(Stated(epsilon_stated=size, delta_stated=delta, unit=UNIT, what="a bet"))
        )
        if stated is not None:
            yield response(stated, delta)


def _loudest(fits: Callable[[float], bool]) -> float | None:
    """The largest size that fits, from below; none where even a whisper does not."""
    low, high = 1e-4, 4.0
    if not fits(low):
        return None
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
