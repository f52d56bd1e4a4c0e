"""How far a draw from Dirichlet(r·c + α) lies from the table: closed forms.

Nothing here looks at data: p is any distribution one wants to know about, N and d are public.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import safe_root


def distribution(owner: str, p: ArrayLike) -> Floats:
    """A checked array of probabilities."""
    try:
        cells = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        cells = np.empty(0)
    if cells.ndim != 1 or cells.size < 2 or (cells < 0).any() or not math.isclose(cells.sum(), 1.0, abs_tol=1e-9):
        raise InvalidArgument(f"{owner}: expected two or more probabilities that sum to 1.")
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


def log_moment(p: Floats, beta: float, concentration: float, eta: float, t: Any) -> Any:
    """Ln E[e^(t·(KL(p‖y) − η))] for y ~ Dirichlet(βp + α), at complex t, where it exists.

    Symbols: η eta, β beta = r·N, α concentration.
    Source: [RDP] equation (14).
    Adjacency: none.
    """
    from scipy.special import loggamma, xlogy

    shares, many = np.unique(p, return_counts=True)
    shapes, total = beta * shares + concentration, beta + p.size * concentration
    shifted = (loggamma(shapes - t[:, None] * shares) - loggamma(shapes)) @ many
    return t * (float(xlogy(p, p).sum()) - eta) + loggamma(total) - loggamma(total - t) + shifted


def kl_tail(p: ArrayLike, *, beta: float, concentration: float, eta: float) -> float:
    """P[KL(p‖y) > η] = (1/π)·∫₀^∞ Re[e^{K(c+is) − (c+is)η}/(c+is)] ds for any c > 0, rounded up by 10⁻⁹ of itself

    K(t) = ln E[e^{tKL}], y ~ Dirichlet(βp + α). Along a path through the saddle point, K′(c) = η, nothing cancels, so a
    small tail is as accurate as a large one. Below the mean of KL, where c < 0 gives the tail minus one, the error is
    10⁻⁹. If the sum does not end, the tail is stated as 1.

    Symbols: η eta, β beta = r·N, α concentration, d cells, K the cumulants of KL.
    Source: the moments in [RDP] equation (14), at a complex argument; inversion of Laplace transforms (Bromwich).
    Adjacency: none.

    >>> round(kl_tail([0.3, 0.7], beta=120, concentration=1.5, eta=0.1) * 1e7, 4)
    7.9948
    """
    from scipy.special import digamma, polygamma, xlogy

    cells = distribution("kl_tail", p)
    shapes, total = beta * cells + concentration, beta + cells.size * concentration
    mean = expected_kl(cells, records=beta, weight=1.0, concentration=concentration)
    entropy = float(xlogy(cells, cells).sum())
    last = float((shapes[cells > 0] / cells[cells > 0]).min())  # where E[e^{tKL}] ends

    def slope(c: float) -> float:
        return entropy + float(digamma(total - c)) - float((cells * digamma(shapes - c * cells)).sum())

    def bend(c: float) -> float:
        return float((cells**2 * polygamma(1, shapes - c * cells)).sum() - polygamma(1, total - c))

    def off(c: float) -> float:
        return slope(c) - eta

    away = 1.0 / math.sqrt(max(bend(0.0), 1e-300))  # from the pole at 0
    if eta >= mean:  # the slope rises to infinity at the last t
        c = safe_root(off, safe=0.0, unsafe=last * (1.0 - 1e-12), tolerance=1e-6 / away)
        c = max(c, min(away, 0.5 * last))
    else:
        low = -away
        while off(low) > 0:
            low *= 2.0
        c = min(safe_root(off, safe=low, unsafe=0.0, tolerance=1e-6 / away), -away)
    # The trapezoidal rule converges geometrically; its step aliases e^−40, by the tilt or 40 spreads away.
    # Singularities lie on the real axis, so the path may turn to the right, where e^{−tη} makes it end: by half a unit
    # for each unit of height, as e^{K(t)} grows to the right no faster than it falls upwards.
    spread = math.sqrt(max(bend(c), 1e-300))
    step, turn = 2.0 * math.pi / (40.0 / abs(c) + 40.0 * spread), 0.8 / spread
    height = float(log_moment(cells, beta, concentration, eta, np.array([c + 0j])).real[0])
    found, block = 0.5 / c, 128
    for start in range(1, 400_000, block):
        u = step * np.arange(start, start + block, dtype=np.float64)
        around = np.hypot(u, turn)
        t = c + 0.5 * (around - turn) + 1j * u
        terms = np.imag(np.exp(log_moment(cells, beta, concentration, eta, t) - height) / t * (0.5 * u / around + 1j))
        found += float(terms.sum())
        if np.abs(terms[-16:]).max() < 1e-17 * abs(found):
            break
    else:
        return 1.0
    value = step * found / math.pi * math.exp(height)
    return min(max(value * (1.0 + 1e-9) if c > 0 else 1.0 + value + 1e-9, 0.0), 1.0)
