"""Mechanisms that [RDP] and [tCDP] are compared with, by their own bounds: bounded densities, simplex, commuters."""

from __future__ import annotations

import math

from scipy.special import betainc, gammaln

from dpbayes.base.checks import positive
from dpbayes.papers.checked import equal, found, states
from dpbayes.papers.result import Result
from dpbayes.privacy.convert import safe_root


@states("R16 T7")
def bounded(B: float) -> Result[float]:
    """ε = 4B for one draw whose log-density given the data lies within ±B
    Source: [RDP] section 2.4 and [tCDP] section 1.2, which quote it; it bounds no Dirichlet density.
    """
    return found(4.0 * B)


@states("R23 T11", alpha=positive)
def simplex_epsilon(*, r: float, alpha: float, d: int, N: int, delta: float) -> Result[float]:
    """ε = ln[Γ(α)Γ(A)/(Γ(α+r)Γ(A−r))] + r·ln((1−(d−1)γ)/γ), A = rN + α, with γ such that d·I_γ(α, rN+(d−1)α) = δ
    The price of a draw from Dirichlet(k·p), k = rN + dα and p = (r·c+α)/k, by the bound that its inventors gave for
    vectors p on the simplex: outcomes with a coordinate below γ are given up, all others have a bounded loss. A
    replaced record moves p by 2r/k in ℓ₁, and no coordinate is below α/k.
    Symbols: r weight, α alpha, d cells, N records, I the regularised incomplete beta function.
    Source: [Gohari21] theorem 1, as used by the authors of [RDP]; δ by the union bound instead of an integral.

    >>> round(float(simplex_epsilon(r=1, alpha=10, d=3, N=1000, delta=1e-5)), 2)
    11.16
    """
    rest, largest = r * N + (d - 1) * alpha, r * N + alpha

    def excess(log_gamma: float) -> float:
        chance = d * float(betainc(alpha, rest, math.exp(log_gamma)))
        return (math.log(chance) if chance > 0 else -math.inf) - math.log(delta)

    log_gamma = safe_root(excess, safe=-700.0, unsafe=-math.log(d), tolerance=1e-10)
    moved = gammaln(alpha) + gammaln(largest) - gammaln(alpha + r) - gammaln(largest - r)
    return found(float(moved + r * (math.log1p(-(d - 1) * math.exp(log_gamma)) - log_gamma)))


@states("R21 T10")
def commuters_prior(*, drawn: int, epsilon: float) -> Result[float]:
    """α = m/(e^ε − 1): the prior in every cell with which m synthetic records cost a pure ε, exactly
    ``PseudoRecords`` of weight 1 has this price; its exact δ(ε) covers the paper's (ε, δ) variants for smaller priors.
    Symbols: m drawn, ε epsilon.
    Source: [MKAGV08] theorem 1, for blocks of synthetic commuters; exact: docs/explanation/proofs/pseudo-records.md.

    >>> round(float(commuters_prior(drawn=1000, epsilon=1.0)), 2)
    581.98
    """
    return equal(drawn / math.expm1(epsilon))
