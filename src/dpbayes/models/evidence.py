"""How far published tables can be trusted about attributes and classes: what they show, and what noise leaves open."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dpbayes.base.checks import Floats
from dpbayes.models.base import Published
from dpbayes.schema.marginal import Marginal

SURELY = 2.0
"""Standard deviations of pure noise that dependence has to exceed: the usual level.

docs/explanation/models.md says when it was chosen.
"""


CLASS_ERROR = 0.01
"""What noise may cost a prediction where attributes say nothing, in nats: through each class share, and through them.

docs/explanation/models.md says when it was chosen.
"""


def trust(published: Published, target: str, names: Sequence[str], prior: Floats, rows: Sequence[Floats]) -> float:
    """The power of the likelihood where none was bought: τ = 1/√(1 + πV/8), or less without a sign of dependence

    Averaged over all tables that the release leaves possible, the odds of two classes are about the τ-th power of the
    estimated ones. Without a sign of dependence the power is also at most ``harmless``.

    Symbols: V variance that noise leaves to the logarithm of the odds, as in ``doubt``.
    Source: [MacKay92], the moderated output: a logistic function of a normal variable; docs/explanation/models.md.
    Adjacency: none; published numbers only.
    """
    averaged = 1.0 / math.sqrt(1.0 + math.pi * doubt(published, target, names, prior, rows) / 8.0)
    if dependence(published, target, names) > SURELY:
        return averaged
    return min(averaged, harmless(prior, rows))


def doubt(published: Published, target: str, names: Sequence[str], prior: Floats, rows: Sequence[Floats]) -> float:
    """V = 2·Σ_t Σ_cv p_c·θ_tcv·s_tcv: the variance that noise leaves to the logarithm of the odds of two classes

    Symbols: p class shares, θ_t rows of attribute t, s what noise leaves to the logarithm of a cell.
    Source: docs/explanation/models.md: Var ln x = ln(1 + Var x/(E x)²), cells as if independent, two classes.
    Adjacency: none; published numbers only.
    """
    joint = published.posterior.joint
    return 2.0 * sum(
        float((prior[:, None] * row * joint.doubt((target, name))).sum()) for name, row in zip(names, rows, strict=True)
    )


def harmless(prior: Floats, rows: Sequence[Floats]) -> float:
    """τ = √(2η/S), at most 1: a power that costs η nats to second order, should attributes say nothing of the class

    S = Var_c(Σ_t m_tc) + Σ_t [Σ_v q_tv·Var_c(ln θ_tcv) − Var_c(m_tc)] is the mean over records of the variance over
    classes of l = ln Πθ, with m_tc = Σ_v q_tv·ln θ_tcv. The loss is ln Σ_c p_c·e^{τl_c} − τ·Σ_c p_c·l_c, which is
    τ²·Var_c(l)/2 + O(τ³).

    Symbols: η CLASS_ERROR, p class shares, θ_t rows of attribute t, q_t = Σ_c p_c·θ_tc, Var_c under p.
    Source: docs/explanation/models.md, how far a model trusts itself.
    Adjacency: none; published numbers only.

    >>> round(harmless(np.array([0.5, 0.5]), [np.array([[0.9, 0.1], [0.1, 0.9]])]), 3)
    0.129
    """

    def variance(values: Floats) -> Floats:
        return np.asarray(prior @ (values - prior @ values) ** 2)

    prior = prior / prior.sum()
    together, alone = np.zeros(len(prior)), 0.0
    for row in rows:
        logs, values = np.log(row), prior @ row
        mean = logs @ values
        together, alone = together + mean, alone + float(variance(logs) @ values - variance(mean))
    spread = float(variance(together)) + alone
    return min(1.0, math.sqrt(2.0 * CLASS_ERROR / spread)) if spread > 0 else 1.0


def dependence(published: Published, target: str, names: Iterable[str]) -> float:
    """(X² − d)/√(2d), X² = Σ_t ‖R_t‖²/(v_t + s_t): how far tables are from independence, in standard deviations

    R_t is table t minus the product of its margins, freed of row and column means. Without dependence E‖R_t‖² is
    (v_t + s_t)·d_t, where s_t = N·Σ_j p_j(1−p_j)·Σ_k q_k(1−q_k)/d_t is what chance puts into N records, and X² is about
    a χ² variable with d = Σd_t degrees of freedom.

    Symbols: v_t variance of the noise, p class shares, q_k those of the attribute, d_t = (C−1)(L_t−1), C classes, L_t
    levels.
    Source: docs/explanation/models.md, how far a model trusts itself.
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
    Source: docs/explanation/models.md, how far a model trusts itself.
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
