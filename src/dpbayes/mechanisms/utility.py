"""How far a draw from Dirichlet(r·c + α) lies from the table: closed forms, exact tails and the papers' bounds.

Nothing here looks at data: p is any distribution one wants to know about, N and d are public.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, loggamma, xlogy

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.published import trigamma


def distribution(owner: str, p: ArrayLike) -> Floats:
    """A checked array of probabilities."""
    cells = np.asarray(p, dtype=np.float64)
    if cells.ndim != 1 or cells.size < 2 or (cells < 0).any() or not math.isclose(cells.sum(), 1.0, abs_tol=1e-9):
        raise InvalidArgument(f"{owner}: expected p as two or more probabilities that sum to 1.")
    return cells


def expected_kl(p: ArrayLike, *, records: float, weight: float, concentration: float) -> float:
    """E[KL(p‖y)] = Σ p_k·[ln p_k − ψ(rNp_k + α)] + ψ(rN + dα)

    Symbols: N records, r weight, α concentration, d cells.
    Source: docs/explanation/proofs/utility.md (E[ln y_k] = ψ(a_k) − ψ(Σa) of a Dirichlet variable).
    Adjacency: none.

    >>> round(expected_kl([0.5, 0.3, 0.1, 0.06, 0.04], records=1000, weight=2.4412, concentration=40.059), 4)
    0.004
    """
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
    equal = np.unique(np.geomspace(1, cells - 1, 32).astype(np.int64))[:, None].astype(np.float64)
    odd = 0.5 - 0.5 * np.cos(np.linspace(0.0, math.pi, 81))[None, :]
    share = (1.0 - odd) / equal
    total = weight * records

    def part(q: Floats) -> Floats:
        return np.asarray(xlogy(q, q) - q * digamma(total * q + concentration))

    sums = equal * part(share) + part(odd)
    return float(sums.max() + digamma(total + cells * concentration))


def bias(p: ArrayLike, *, records: float, weight: float, concentration: float) -> Floats:
    """E[y_k] − p_k = α·(1 − d·p_k)/(rN + dα)

    Symbols: N records, r weight, α concentration, d cells.
    Source: [RDP] equation (3).
    Adjacency: none.
    """
    cells = distribution("bias", p)
    return concentration * (1.0 - cells.size * cells) / (weight * records + cells.size * concentration)


def tail_bound(eta: float, *, beta: float, cells: int, concentration: float) -> float:
    """P[KL(p‖y) > η] ≤ exp(−βη²/(2(2+η)(4+3η)))     valid for β ≥ dα/(e^{η/2} − 1), else 1

    Symbols: η eta, β beta = r·N, d cells, α concentration.
    Source: [RDP] theorem 2.
    Adjacency: none.
    """
    _checks.positive("tail_bound", eta=eta, beta=beta, concentration=concentration)
    if beta < cells * concentration / math.expm1(0.5 * eta):
        return 1.0
    return math.exp(-beta * eta**2 / (2.0 * (2.0 + eta) * (4.0 + 3.0 * eta)))


def records_by_tail_bound(eta: float, *, failure: float, cells: int, weight: float, concentration: float) -> int:
    """The N from which theorem 2 gives KL ≤ η but with probability ``failure``.

    N = max(dα/(r(e^{η/2} − 1)), 2(2+η)(4+3η)·ln(1/failure)/(rη²))

    Symbols: η eta, d cells, α concentration, r weight.
    Source: [RDP] section 4, after theorem 2.
    Adjacency: none.
    """
    _checks.positive("records_by_tail_bound", eta=eta, weight=weight, concentration=concentration)
    _checks.probability("records_by_tail_bound", failure=failure)
    for_bias = cells * concentration / math.expm1(0.5 * eta)
    for_spread = 2.0 * (2.0 + eta) * (4.0 + 3.0 * eta) * -math.log(failure) / eta**2
    return math.ceil(max(for_bias, for_spread) / weight)


def tail(eta: float, p: ArrayLike, *, beta: float, concentration: float) -> float:
    """P[KL(p‖y) > η], exact by inversion of the characteristic function of ln y

    E[e^{isKL}] = Π p_k^{isp_k} · Γ(β+dα)/Γ(β+dα−is) · Π Γ(βp_k+α−isp_k)/Γ(βp_k+α).

    Symbols: η eta, β beta = r·N, α concentration, d cells.
    Source: the moments in [RDP] equation (14), at an imaginary argument; inversion by Gil-Pelaez.
    Adjacency: none.

    >>> exact = tail(0.05, [0.5, 0.3, 0.2], beta=200, concentration=1.0)
    >>> exact < tail_bound(0.05, beta=200, cells=3, concentration=1.0)
    True
    """
    cells = distribution("tail", p)
    shapes, total = beta * cells + concentration, beta + cells.size * concentration
    mean = expected_kl(cells, records=beta, weight=1.0, concentration=concentration)
    variance = sum(float(q) ** 2 * trigamma(float(a)) for q, a in zip(cells, shapes, strict=True) if q > 0)
    spread = math.sqrt(max(variance - trigamma(total), 1e-300))
    entropy = float(xlogy(cells, cells).sum())

    def log_characteristic(s: Floats) -> np.ndarray:
        shifted = loggamma(shapes - 1j * s[:, None] * cells) - loggamma(shapes)
        return np.asarray(1j * s * entropy + loggamma(total) - loggamma(total - 1j * s) + shifted.sum(axis=1))

    # The trapezoidal rule converges geometrically; its step aliases tails 40 spreads away.
    step = 2.0 * math.pi / (40.0 * spread + 4.0 * abs(eta - mean))
    tail_sum, block = 0.0, 512
    for start in range(0, 400_000, block):
        s = (np.arange(start, start + block, dtype=np.float64) + 0.5) * step
        terms = np.imag(np.exp(log_characteristic(s) - 1j * s * eta)) / s
        tail_sum += float(terms.sum())
        if np.abs(terms[-16:]).max() < 1e-15:
            break
    return min(max(0.5 + step * tail_sum / math.pi, 0.0), 1.0)
