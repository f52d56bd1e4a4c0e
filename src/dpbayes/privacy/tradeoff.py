"""The trade-off curve: how often the best test of a person's data errs in one way, given how often in the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats

if TYPE_CHECKING:
    from dpbayes.privacy.cost import Cost

LEAST_DELTA = 1e-12
"""The profile is followed down to this δ."""

STEPS = 96


def profile(cost: Cost, steps: int = STEPS) -> tuple[Floats, Floats]:
    """ε from zero to where δ is next to nothing, and δ(ε) there."""
    _checks.positive_integer("profile", steps=steps)
    pure = float(cost.renyi(math.inf))
    end = min(pure, float(cost.epsilon(LEAST_DELTA)))
    end = end if math.isfinite(end) and end > 0 else 1.0
    epsilons = np.linspace(0.0, end, steps)
    return epsilons, np.array([float(cost.delta(float(epsilon))) for epsilon in epsilons])


def tradeoff(cost: Cost, alphas: Floats, steps: int = STEPS) -> Floats:
    """f(α) = sup over ε ≥ 0 of max(0, 1 − δ(ε) − e^ε α, e^−ε (1 − δ(ε) − α)); finitely many ε give a lower bound.

    Symbols: α how often a test claims a change where there is none, f(α) how often the best such test misses one.
    Source: [DRS22] proposition 2.11.
    Adjacency: enters only through δ(ε), which holds in both directions.
    """
    asked = np.asarray(alphas, dtype=np.float64)
    epsilons, deltas = profile(cost, steps)
    left, factor = (1.0 - deltas)[:, None], np.exp(epsilons)[:, None]
    lines = np.maximum(left - factor * asked[None, :], (left - asked[None, :]) / factor)
    return np.asarray(np.maximum(lines.max(axis=0), 0.0))
