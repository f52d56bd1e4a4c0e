"""How far a draw from Dirichlet(r·c + α) lies from the table: closed forms.

Nothing here looks at data: p is any distribution one wants to know about, N and d are public.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument


def distribution(owner: str, p: ArrayLike) -> Floats:
    """A checked array of probabilities."""
    cells = np.asarray(p, dtype=np.float64)
    if cells.ndim != 1 or cells.size < 2 or (cells < 0).any() or not math.isclose(cells.sum(), 1.0, abs_tol=1e-9):
        raise InvalidArgument(f"{owner}: expected p as two or more probabilities that sum to 1.")
    return cells


def zipf(cells: int) -> Floats:
    """p_k ∝ 1/k: how the rows of a table are taken to look where nobody has said so.

    >>> zipf(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    shares: Floats = 1.0 / np.arange(1, max(cells, 2) + 1)
    shares /= shares.sum()
    return shares


def expected_kl(p: ArrayLike, *, records: float, weight: float, concentration: float) -> float:
    """E[KL(p‖y)] = Σ p_k·[ln p_k − ψ(rNp_k + α)] + ψ(rN + dα)

    Symbols: N records, r weight, α concentration, d cells.
    Source: docs/explanation/proofs/utility.md (E[ln y_k] = ψ(a_k) − ψ(Σa) of a Dirichlet variable).
    Adjacency: none.

    >>> round(expected_kl([0.5, 0.3, 0.1, 0.06, 0.04], records=1000, weight=2.4412, concentration=40.059), 4)
    0.004
    """
    from scipy.special import digamma, xlogy

    cells = distribution("expected_kl", p)
    total = weight * records
    terms = xlogy(cells, cells) - cells * digamma(total * cells + concentration)
    return float(terms.sum() + digamma(total + cells.size * concentration))


def worst_expected_kl(*, cells: int, records: float, weight: float, concentration: float) -> float:
    """The largest E[KL(p‖y)] over all p.

    E[KL] is a sum of one function of each p_k. At its largest value no two cells can lie where that function is
    convex, and those where it is concave are equal: k equal cells, one odd one, the rest empty.

    Symbols: as in expected_kl.
    Source: docs/explanation/proofs/utility.md.
    Adjacency: none.
    """
    from scipy.special import digamma, xlogy

    equal = np.unique(np.geomspace(1, cells - 1, 32).astype(np.int64))[:, None].astype(np.float64)
    odd = 0.5 - 0.5 * np.cos(np.linspace(0.0, math.pi, 81))[None, :]
    share = (1.0 - odd) / equal
    total = weight * records

    def part(q: Floats) -> Floats:
        return np.asarray(xlogy(q, q) - q * digamma(total * q + concentration))

    sums = equal * part(share) + part(odd)
    return float(sums.max() + digamma(total + cells * concentration))
