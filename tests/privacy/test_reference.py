"""The references that other tests trust are themselves checked, against formulas of another kind."""

from __future__ import annotations

import mpmath as mp
import pytest
from tests.privacy import reference


@pytest.mark.parametrize(("x", "a", "b"), [(0.3, 2.5, 7.0), (0.01, 100.0, 3.3), (0.45, 80.0, 90.0), (0.7, 0.5, 0.2)])
def test_the_beta_distribution_agrees_with_the_hypergeometric_one(x: float, a: float, b: float) -> None:
    with mp.workdps(60):
        mine = reference.beta_cdf(mp.mpf(x), mp.mpf(a), mp.mpf(b))
        assert abs(mine / mp.betainc(a, b, 0, x, regularized=True) - 1) < mp.mpf("1e-50")


@pytest.mark.parametrize(
    ("a", "x"), [(2.5, 3.0), (100.0, 80.0), (100.0, 150.0), (0.01, 1e-30), (0.01, 0.3), (0.5, 20.0)]
)
def test_the_gamma_distribution_agrees_with_the_hypergeometric_one(a: float, x: float) -> None:
    with mp.workdps(60):
        below = mp.gammainc(a, 0, x, regularized=True)
        above = mp.gammainc(a, x, mp.inf, regularized=True)
        assert abs(reference.gamma_cdf(mp.mpf(a), mp.mpf(x)) / below - 1) < mp.mpf("1e-50")
        assert abs(reference.gamma_tail(mp.mpf(a), mp.mpf(x)) / above - 1) < mp.mpf("1e-50")


@pytest.mark.parametrize(
    ("r", "a", "b", "epsilon"), [(1.0, 10.0, 10.0, 1.8), (0.5, 3.0, 5.0, 0.7), (2.0, 5.0, 4.0, 3.0)]
)
def test_the_profile_of_a_replaced_record_agrees_with_the_integral_of_both_densities(
    r: float, a: float, b: float, epsilon: float
) -> None:
    with mp.workdps(40):

        def excess(t: mp.mpf) -> mp.mpf:
            p = t ** (a + r - 1) * (1 - t) ** (b - 1) / mp.beta(a + r, b)
            q = t ** (a - 1) * (1 - t) ** (b + r - 1) / mp.beta(a, b + r)
            return p - mp.e**epsilon * q

        # the ratio of the densities grows with t: bisect for the point from which it exceeds e^ε
        low, start = mp.mpf(0), mp.mpf(1)
        for _ in range(150):
            middle = (low + start) / 2
            low, start = (low, middle) if excess(middle) > 0 else (middle, start)
        integral = mp.quad(excess, mp.linspace(start, 1, 12))
        assert abs(reference.replaced_delta(r, a, b, epsilon) / integral - 1) < mp.mpf("1e-20")


@pytest.mark.parametrize(("r", "a", "order"), [(1.0, 5.0, 2.0), (0.3, 2.0, 4.0), (2.0, 3.0, 1.5)])
def test_the_divergence_of_gammas_agrees_with_the_integral_of_their_densities(r: float, a: float, order: float) -> None:
    with mp.workdps(30):

        def density(shape: mp.mpf, z: mp.mpf) -> mp.mpf:
            return z ** (shape - 1) * mp.exp(-z) / mp.gamma(shape)

        def moment(p: float, q: float) -> mp.mpf:
            return mp.quad(lambda z: density(p, z) ** order * density(q, z) ** (1 - order), [0, 1, 5, 20, 60, mp.inf])

        for p, q, divergence in ((a + r, a, reference.added_renyi), (a, a + r, reference.removed_renyi)):
            assert abs(mp.log(moment(p, q)) / (order - 1) - divergence(r, a, order)) < mp.mpf("1e-15")
