"""Distances between Dirichlet distributions against fifty digits."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import distance

TOLERANCE = 1e-9


def log_beta(parameters: list[mpmath.mpf]) -> mpmath.mpf:
    return mpmath.fsum(mpmath.loggamma(x) for x in parameters) - mpmath.loggamma(mpmath.fsum(parameters))


def exact(values: np.ndarray) -> list[mpmath.mpf]:
    return [mpmath.mpf(float(value)) for value in values]


def exact_bhattacharyya(p: np.ndarray, q: np.ndarray) -> float:
    with mpmath.workdps(50):
        a, b = exact(p), exact(q)
        middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
        return (log_beta(a) + log_beta(b)) / 2 - log_beta(middle)


def exact_kl(p: np.ndarray, q: np.ndarray) -> float:
    with mpmath.workdps(50):
        a, b = exact(p), exact(q)
        whole = mpmath.digamma(mpmath.fsum(a))
        slopes = mpmath.fsum((y - x) * (mpmath.digamma(x) - whole) for x, y in zip(a, b, strict=True))
        return log_beta(b) - log_beta(a) - slopes


def exact_renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    with mpmath.workdps(50):
        a, b, o = exact(p), exact(q), mpmath.mpf(order)
        w = [x + (o - 1) * (x - y) for x, y in zip(a, b, strict=True)]
        return (log_beta(w) - o * log_beta(a) - (1 - o) * log_beta(b)) / (o - 1)


def relative(value: float, truth: float) -> float:
    return abs(float((mpmath.mpf(float(value)) - truth) / truth))


def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Parameters from 0.01 to 1e9: far apart, nearly equal, proportional, and with equal sums."""
    rng = np.random.default_rng(3)
    found = []
    for kind in range(40):
        cells = int(rng.integers(2, 6))
        p = 10 ** rng.uniform(-2, 9, cells)
        size = 10 ** rng.uniform(-7, -0.5)
        match kind % 4:
            case 0:
                q = 10 ** rng.uniform(-2, 9, cells)
            case 1:
                q = p * (1 + 0.3 * size * rng.standard_normal(cells))
            case 2:
                q = p * (1 + size)
            case _:
                q = p.copy()
                moved = min(p[0], p[1]) * size
                q[0] -= moved
                q[1] += moved
        found.append((p, q))
    return found


@pytest.mark.parametrize(("p", "q"), pairs())
def test_distances_keep_nine_digits_for_parameters_up_to_1e9(p: np.ndarray, q: np.ndarray) -> None:
    assert relative(distance.bhattacharyya(p, q), exact_bhattacharyya(p, q)) < TOLERANCE
    assert relative(distance.kl(p, q), exact_kl(p, q)) < TOLERANCE
    for order in (0.3, 2.0, 7.0):
        value = distance.renyi(p, q, order)
        if np.isfinite(value):
            assert relative(value, exact_renyi(p, q, order)) < TOLERANCE


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e9])
def test_hellinger_keeps_nine_digits_where_it_is_a_millionth(size: float) -> None:
    step = np.sqrt(8e-12 * size) if size > 1 else 1e-5
    p, q = np.array([size, size, size]), np.array([size - step, size + step, size])
    with mpmath.workdps(50):
        truth = mpmath.sqrt(1 - mpmath.exp(-exact_bhattacharyya(p, q)))
    assert 1e-7 < truth < 1e-4
    assert relative(distance.hellinger(p, q), truth) < TOLERANCE


def test_the_printed_sensitivity_is_a_step_to_a_negative_count() -> None:
    assert round(float(distance.hellinger([7, 4, 5], [8, 3, 5])), 12) == 0.239992747797


@given(st.lists(st.floats(0.05, 1e4), min_size=4, max_size=4))
@settings(max_examples=20, deadline=None)
def test_hellinger_is_a_metric_between_zero_and_one(values: list[float]) -> None:
    p, q, r = np.array([values[0], values[1]]), np.array([values[2], values[3]]), np.array([values[1], values[2]])
    direct = float(distance.hellinger(p, q))
    assert 0.0 <= direct <= 1.0
    assert distance.hellinger(p, p) == 0.0
    assert direct == pytest.approx(float(distance.hellinger(q, p)), abs=1e-12)
    assert direct <= float(distance.hellinger(p, r)) + float(distance.hellinger(r, q)) + 1e-12


@pytest.mark.parametrize(
    ("p", "q"), [((3, 5), (4, 4)), ((1, 30), (6, 25)), ((0.5, 2.5), (2, 1)), ((400, 600), (420, 580))]
)
def test_beta_total_variation_is_half_the_integrated_difference(p: tuple[float, ...], q: tuple[float, ...]) -> None:
    edges = np.linspace(1e-9, 1 - 1e-9, 40)
    integral = sum(
        quad(lambda t: abs(beta.pdf(t, *p) - beta.pdf(t, *q)), low, high, limit=200)[0] for low, high in pairwise(edges)
    )
    value = float(distance.beta_total_variation(p, q))
    assert value == pytest.approx(0.5 * integral, abs=2e-4)
    low, high = distance.total_variation_bounds(p, q)
    assert low <= value <= high


def test_chi_squared_is_infinite_once_twice_p_minus_q_is_not_positive() -> None:
    assert np.isinf(distance.chi_squared([1, 9], [2, 8]))
    assert float(distance.chi_squared([3, 3], [2, 4])) == pytest.approx(
        np.expm1(float(distance.renyi([3, 3], [2, 4], 2)))
    )


def test_rows_are_compared_one_by_one() -> None:
    p, q = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 5.0])
    rows = distance.kl(p, q)
    assert rows.shape == (2,)
    assert rows[1] == pytest.approx(float(distance.kl([3, 4], [2, 5])))


@pytest.mark.parametrize("bad", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], 3.0])
def test_parameters_that_are_no_distribution_are_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="Dirichlet"):
        distance.hellinger(bad, [1.0, 1.0])


def test_total_variation_of_unequal_sums_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="equal parameter sums"):
        distance.beta_total_variation([1, 1], [2, 2])


def test_order_one_is_the_business_of_kl() -> None:
    with pytest.raises(InvalidArgument, match="call kl"):
        distance.renyi([1, 2], [2, 1], 1.0)
