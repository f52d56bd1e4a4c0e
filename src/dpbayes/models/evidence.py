"""Whether published tables show that attributes and classes have anything to do with each other."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpbayes.domain.marginal import Marginal
from dpbayes.models.base import Published

SURELY = 2.0
"""Standard deviations of pure noise that dependence has to exceed: the usual level.

docs/explanation/models.md says when it was chosen.
"""


def dependence(published: Published, target: str, names: Iterable[str]) -> float:
    """(X² − d)/√(2d), X² = Σ_t ‖R_t‖²/(v_t + s_t): how far tables are from independence, in standard deviations

    R_t is table t minus the product of its margins, freed of row and column means. Without dependence E‖R_t‖² is
    (v_t + s_t)·d_t, where s_t = N·Σ_j p_j(1−p_j)·Σ_k q_k(1−q_k)/d_t is what chance puts into N records, and X² is about
    a χ² variable with d = Σd_t degrees of freedom.

    Symbols: v_t variance of the noise, p class shares, q_k those of the attribute, d_t = (C−1)(L_t−1), C classes, L_t
    levels.
    Source: docs/explanation/models.md, when only class shares are predicted.
    Adjacency: none; published numbers only.
    """
    found, freedom = 0.0, 0
    classes = published.shares((target,))[0]
    for name in names:
        table = published[Marginal((name,), (target,))]
        values, total = published.shares((name,))[0], max(float(table.counts.sum()), 0.0)
        rest = table.counts - total * np.outer(classes, values)
        rest = rest - rest.mean(axis=0, keepdims=True) - rest.mean(axis=1, keepdims=True) + rest.mean()
        own = (rest.shape[0] - 1) * (rest.shape[1] - 1)
        chance = total * float((classes * (1.0 - classes)).sum() * (values * (1.0 - values)).sum())
        expected = float(table.variance.mean()) * own + chance
        if own and expected > 0:
            found, freedom = found + float((rest**2).sum()) / expected * own, freedom + own
    return (found - freedom) / math.sqrt(2.0 * freedom) if freedom else 0.0


def detectable(sizes: Iterable[tuple[int, int]], precisions: Iterable[float], records: int) -> bool:
    """Whether noise leaves a chance to see dependence at all: Σ_t N²·(k_t−1)/k_t²·p_t > SURELY·√(2d), k_t = min(C, L_t)

    The left side is what ``dependence`` adds up, without noise, if each class had values of its own.

    Symbols: (C, L_t) sizes, p_t precisions 1/v_t of the tables, N records, d degrees of freedom as in dependence.
    Source: docs/explanation/models.md, when only class shares are predicted.
    Adjacency: none; public numbers only.

    >>> detectable([(2, 5)], [1 / 100.0], 1000), detectable([(2, 5)], [1e-6], 1000)
    (True, False)
    """
    lead, freedom = 0.0, 0
    for (classes, levels), precision in zip(sizes, precisions, strict=True):
        groups = min(classes, levels)
        lead += records**2 * (groups - 1) / groups**2 * precision
        freedom += (classes - 1) * (levels - 1)
    return lead > SURELY * math.sqrt(2.0 * freedom)
