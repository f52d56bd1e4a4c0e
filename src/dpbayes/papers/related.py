"""Mechanisms that [RDP] and [tCDP] are compared with, by their own bounds: draws on the simplex, and commuters."""

from __future__ import annotations

import math

from scipy.special import betainc, gammaln

from dpbayes import _checks
from dpbayes.privacy.solve import safe_root


def simplex_epsilon(*, weight: float, concentration: float, cells: int, records: int, delta: float) -> float:
    """ε = ln[Γ(α)Γ(A)/(Γ(α+r)Γ(A−r))] + r·ln((1−(d−1)γ)/γ), A = rN + α, with γ such that d·I_γ(α, rN+(d−1)α) = δ

    The price of a draw from Dirichlet(k·p), k = rN + dα and p = (r·c+α)/k, by the bound that its inventors gave for
    vectors p on the simplex: outcomes with a coordinate below γ are given up, all others have a bounded loss. A
    replaced record moves p by b = 2r/k in ℓ₁, and no coordinate is below η = α/k.

    Symbols: r weight, α concentration, d cells, N records, I the regularised incomplete beta function.
    Source: [Gohari21] theorem 1, as used by the authors of [RDP]; δ by the union bound instead of an integral.
    Adjacency: one replaced record.

    >>> round(simplex_epsilon(weight=1, concentration=10, cells=3, records=1000, delta=1e-5), 2)
    11.16
    """
    _checks.positive("simplex_epsilon", weight=weight, concentration=concentration)
    _checks.positive_integer("simplex_epsilon", cells=cells, records=records)
    _checks.probability("simplex_epsilon", delta=delta)
    rest = weight * records + (cells - 1) * concentration

    def excess(log_gamma: float) -> float:
        chance = cells * float(betainc(concentration, rest, math.exp(log_gamma)))
        return (math.log(chance) if chance > 0 else -math.inf) - math.log(delta)

    log_gamma = safe_root(excess, safe=-700.0, unsafe=-math.log(cells), tolerance=1e-10)
    largest = weight * records + concentration
    moved = gammaln(concentration) + gammaln(largest) - gammaln(concentration + weight) - gammaln(largest - weight)
    spread = math.log1p(-(cells - 1) * math.exp(log_gamma)) - log_gamma
    return float(moved + weight * spread)


def commuters_prior(*, drawn: int, epsilon: float) -> float:
    """α = m/(e^ε − 1): the prior in every cell with which m synthetic records cost a pure ε

    ``PseudoRecords`` of weight 1 has exactly this price; the paper's (ε, δ) variants for smaller priors are subsumed by
    its exact δ(ε).

    Symbols: m drawn, ε epsilon.
    Source: [MKAGV08] theorem 1, for blocks of synthetic commuters; exact: docs/explanation/proofs/pseudo-records.md.
    Adjacency: one replaced record.

    >>> round(commuters_prior(drawn=1000, epsilon=1.0), 2)
    581.98
    """
    _checks.positive_integer("commuters_prior", drawn=drawn)
    _checks.positive("commuters_prior", epsilon=epsilon)
    return drawn / math.expm1(epsilon)
