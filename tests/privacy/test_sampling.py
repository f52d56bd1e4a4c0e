"""Divergences of a secret sample: the written sum, term by term."""

from __future__ import annotations

import pytest
from mpmath import mp

from dpbayes.privacy.sampling import sampled_renyi


def gaussian(order: float) -> float:
    """The divergence of Gaussian noise with a shift of 1."""
    return 0.5 * order


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.6])
@pytest.mark.parametrize("order", [2, 3, 7, 32])
def test_the_divergence_at_a_whole_order_is_the_written_sum(order: int, rate: float) -> None:
    chance = mp.mpf(rate)
    total = mp.fsum(
        mp.binomial(order, k) * chance**k * (1 - chance) ** (order - k) * mp.expm1((k - 1) * gaussian(k))
        for k in range(2, order + 1)
    )
    for factor, other in ((1, lambda _: 0.0), (4, None)):  # a Poisson sample, and one of fixed size
        by_convexity = mp.log1p(chance * mp.expm1((order - 1) * gaussian(order)))
        exact = min(mp.log1p(factor * total), by_convexity) / (order - 1)
        assert exact <= sampled_renyi(gaussian, float(order), rate, other) <= exact * (1 + 1e-8)
