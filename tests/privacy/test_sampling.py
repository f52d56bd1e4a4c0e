"""Divergences of a secret sample: the written sum, term by term."""

from __future__ import annotations

import pytest
from mpmath import mp

from dpbayes.privacy.sampling import sampled_delta, sampled_renyi


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


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.55, 0.9])
@pytest.mark.parametrize("epsilon", [0.003, 0.05, 0.1, 0.2, 0.5, 0.77, 1.5, 9.0])
def test_the_profile_without_sampling_is_asked_at_no_larger_an_epsilon(epsilon: float, rate: float) -> None:
    asked: list[float] = []
    sampled_delta(lambda at: asked.append(at) or 0.5, epsilon, rate)  # type: ignore[func-returns-value]
    with mp.workdps(40):
        grown = mp.exp(mp.mpf(epsilon))
        left = 1 - (1 - mp.mpf(rate)) * grown
        exact = [(mp.log(1 + (grown - 1) / rate), 0), (mp.log(rate * grown / left), 2e-15 / left)][: 1 + (left > 0)]
    assert len(asked) == len(exact)
    for at, (most, lost) in zip(asked, exact, strict=True):
        assert max(most, 0) * (1 - 4e-15) - lost <= at <= max(most, 0)
