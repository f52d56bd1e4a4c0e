"""The pure theorem holds against plain enumeration, and its parts against brute force."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from dpbayes.hellinger.sensitivity import (
    _farthest,
    _gain,
    growth,
    largest_useful_smoothing,
    least_sensitivity,
    pure_epsilon,
)


def tables(total: int, cells: int) -> np.ndarray:
    """All tables, by recursion."""
    if cells == 1:
        return np.array([[total]])
    parts = [np.insert(tables(total - k, cells - 1), 0, k, axis=1) for k in range(total + 1)]
    return np.concatenate(parts)


def distances(prior: tuple[float, ...], listed: np.ndarray) -> np.ndarray:
    """H between all posteriors, straight from lnΓ."""
    u = listed + np.asarray(prior)
    middle = 0.5 * (u[:, None] + u[None])
    own = gammaln(u).sum(axis=1)
    return np.sqrt(-np.expm1(-np.maximum(0.5 * (own[:, None] + own[None]) - gammaln(middle).sum(axis=-1), 0.0)))


def exact(prior: tuple[float, ...], total: int, sharpness: float, smoothings: list[float]) -> list[float]:
    """The largest loss over all neighbours and candidates, with S by its definition."""
    listed = tables(total, len(prior))
    score = distances(prior, listed)
    moves = np.abs(listed[:, None] - listed[None]).sum(axis=-1) // 2
    local = np.where(moves == 1, score, 0.0).max(axis=1)
    first, second = np.nonzero(moves == 1)
    found = []
    for smoothing in smoothings:
        smooth = (local[None] * np.exp(-smoothing * moves)).max(axis=1)
        logs = -0.5 * sharpness * score / smooth[:, None]
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        found.append(float(np.abs(logs[first] - logs[second]).max()))
    return found


GAMMAS = [0.003, 0.03, 0.1, 0.3, 0.6, 2.0]


@pytest.mark.parametrize(
    ("prior", "total"),
    [
        ((1.0, 1.0), 50),
        ((1.0, 1.0), 200),
        ((0.03, 0.9), 137),
        ((20.0, 5.0), 60),
        ((1.0,) * 3, 15),
        ((0.05, 0.5, 8.0), 12),
        ((50.0,) * 3, 15),
        ((1.0,) * 4, 7),
        ((0.3, 0.3, 2.0, 30.0), 6),
    ],
)
@pytest.mark.parametrize("sharpness", [0.2, 5.0])
def test_no_loss_exceeds_the_pure_theorem(prior: tuple[float, ...], total: int, sharpness: float) -> None:
    for smoothing, loss in zip(GAMMAS, exact(prior, total, sharpness, GAMMAS), strict=True):
        claim = pure_epsilon(prior, total, sharpness, smoothing)
        assert 0.25 * claim <= loss <= claim


@settings(max_examples=60, deadline=None)
@given(
    prior=st.lists(st.floats(0.01, 60.0), min_size=2, max_size=4).map(tuple),
    records=st.integers(1, 40),
    sharpness=st.floats(0.05, 30.0),
    smoothing=st.floats(1e-3, 4.0),
)
def test_no_loss_of_any_small_mechanism_exceeds_it(
    prior: tuple[float, ...], records: int, sharpness: float, smoothing: float
) -> None:
    total = max(records // (1, 3, 6)[len(prior) - 2], 1)
    assert exact(prior, total, sharpness, [smoothing])[0] <= pure_epsilon(prior, total, sharpness, smoothing) + 1e-9


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.1, 0.1), (3.0, 0.5)])
def test_a_thousand_records_in_two_cells_stay_within_the_pure_theorem(prior: tuple[float, ...]) -> None:
    for smoothing, loss in zip(GAMMAS, exact(prior, 1000, 0.8, GAMMAS), strict=True):
        assert 0.3 * pure_epsilon(prior, 1000, 0.8, smoothing) <= loss <= pure_epsilon(prior, 1000, 0.8, smoothing)


@settings(max_examples=80, deadline=None)
@given(
    prior=st.lists(st.floats(0.01, 200.0), min_size=2, max_size=4).map(tuple),
    records=st.integers(1, 40),
)
def test_the_constants_bound_every_table_and_every_step(prior: tuple[float, ...], records: int) -> None:
    total = max(records // (1, 3, 6)[len(prior) - 2], 1)
    listed = tables(total, len(prior))
    moves = np.abs(listed[:, None] - listed[None]).sum(axis=-1) // 2
    local = np.where(moves == 1, distances(prior, listed), 0.0).max(axis=1)
    assert least_sensitivity(prior, total) <= local.min() * (1 + 1e-9)
    first, second = np.nonzero(moves == 1)
    assert (local[first] ** -2 - local[second] ** -2).max() <= growth(prior, total) * (1 + 1e-6)
    smooth = (local[None] * np.exp(-largest_useful_smoothing(prior, total) * moves)).max(axis=1)
    np.testing.assert_allclose(smooth, local, rtol=1e-9)


@pytest.mark.parametrize("u", [64.0, 64.5, 1e2, 1e4, 1e8])
def test_far_from_zero_the_inverse_step_grows_by_less_than_the_closed_form(u: float) -> None:
    with mpmath.workdps(50):

        def inverse(x: mpmath.mpf) -> mpmath.mpf:
            half = mpmath.mpf(1) / 2
            return 1 / (half * (mpmath.loggamma(x) + mpmath.loggamma(x + 1)) - mpmath.loggamma(x + half))

        grown = float(inverse(mpmath.mpf(u) + 1) - inverse(mpmath.mpf(u)))
    assert grown <= 8.0 + (16.0 * u + 9.0) / (8.0 * u * (u + 1.0)) <= growth((64.0, 64.0), 10)


@pytest.mark.parametrize("total", [1, 2, 3, 50, 401])
@pytest.mark.parametrize("smoothing", [1e-3, 0.01, 0.1, 1.0, 400.0])
def test_the_farthest_move_is_the_last_that_keeps_to_the_growth(smoothing: float, total: int) -> None:
    for spare in (1.0, 1.5, 4.0, 60.0):
        ratio = spare * _gain(smoothing, 1)
        within = [k for k in range(1, total + 1) if _gain(smoothing, k) <= k * ratio]
        assert _farthest(smoothing, ratio, total) == within[-1]


def test_the_guarantee_depends_on_neither_the_records_nor_the_cells() -> None:
    """With local sensitivity at most 1.36 times the nominal ε for weak priors, at any size."""
    for prior in ((1.0, 1.0), (1e-9, 1e-9), (0.01,) * 5, (1.0,) * 100):
        for total in (10, 10**4, 10**9):
            assert 1.0 <= pure_epsilon(prior, total, 1.0, 3.0) <= 1.36


def test_with_global_sensitivity_it_is_the_classical_theorem() -> None:
    assert pure_epsilon((1.0, 2.0, 3.0), 50, 0.8, 0.0) == 0.8


def test_a_little_smoothing_costs_little() -> None:
    values = [pure_epsilon((1.0, 1.0), 10**6, 1.0, smoothing) for smoothing in (1e-8, 1e-6, 1e-4)]
    assert values == sorted(values)
    assert math.isclose(values[0], 1.0, rel_tol=1e-4)
