"""Rows of a single draw, drawn towards what they have in common: as far as the draw itself says that it helps."""

from __future__ import annotations

import math

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.models.base import NoisyTable

STRENGTHS = (0.0, *(2.0**power for power in range(-6, 13)), math.inf)
"""Candidates, relative to the mean gammas of a row: the row alone, everything between, and what is common alone."""


def pooled(table: NoisyTable, common: Floats) -> Floats:
    """y_jk = (z_jk + A·m_k)/(Z_j + A) for the strength A with the best ``expected_score``: rows × cells

    The papers' draw is A = 0. The larger A, the more a row looks like ``common``, which must have been drawn
    independently of the table.
    """
    mean = float(table.rows.sum()) / len(table.rows)
    scores = [expected_score(table, common, mean * strength) for strength in STRENGTHS]
    return _rows(table.rows, common, mean * STRENGTHS[int(np.argmax(scores))])


def expected_score(table: NoisyTable, common: Floats, strength: float) -> float:
    """U(A) = Σ_jk [(z_jk − α)·ln y_jk − z_jk·(1/(z_jk + A·m_k) − 1/(Z_j + A))]/r, whose mean is E[Σ_jk c_jk·ln y_jk]

    So published gammas say how likely the private records are under rows that are pooled, without bias.

    Symbols: z gammas, Z_j their sum in row j, A strength, m common, y as in pooled, r weight, α concentration, c the
    private counts.
    Source: docs/explanation/proofs/utility.md, pooled rows: E[a·g(z)] = E[z·g(z) − z·g′(z)] for z ~ Gamma(a).
    Adjacency: none; published numbers only.
    """
    gammas = np.maximum(table.rows, np.finfo(np.float64).tiny)
    counts = table.counts.reshape(gammas.shape)
    score = float((counts * np.log(_rows(gammas, common, strength))).sum())
    if math.isfinite(strength):
        total = gammas.sum(axis=1, keepdims=True)
        slope = gammas / (gammas + strength * common) - gammas / (total + strength)
        score -= table.slope * float(slope.sum())
    return score


def _rows(gammas: Floats, common: Floats, strength: float) -> Floats:
    """Gammas with so much of what is common, normalised in every row."""
    if math.isinf(strength):
        return np.broadcast_to(common, gammas.shape).copy()
    mixed = gammas + strength * common
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))
