"""Differences of lnΓ against 120-digit arithmetic."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.reference import relative_error

from dpbayes.privacy.loggamma import (
    jensen_gap,
    log1p_deficit,
    log1p_excess,
    loss_at_mode_down,
    loss_at_mode_up,
)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


@given(powers(-12, 6))
def test_the_deficit_and_the_excess_of_the_logarithm_keep_fourteen_digits(x: float) -> None:
    with mp.workdps(60):
        exact = mp.mpf(x)
        deficit, excess = exact - mp.log1p(exact), (1 + exact) * mp.log1p(exact) - exact
    assert abs(relative_error(float(log1p_deficit(np.float64(x))), deficit)) < 1e-14
    assert abs(relative_error(float(log1p_excess(np.float64(x))), excess)) < 1e-14


def test_the_deficit_and_the_excess_do_not_jump_where_their_formulas_change() -> None:
    around = np.array([0.5, math.nextafter(0.5, 1.0)])
    for function in (log1p_deficit, log1p_excess):
        low, high = function(around)
        assert low <= high <= low * (1 + 1e-14)


@given(powers(-3, 12), powers(-6, 7), powers(-6, 7))
@settings(max_examples=200)
def test_the_jensen_gap_keeps_twelve_digits(x: float, left: float, right: float) -> None:
    with mp.workdps(120):
        start, a, b = mp.mpf(x), mp.mpf(left), mp.mpf(right)
        truth = b * mp.loggamma(start) + a * mp.loggamma(start + a + b) - (a + b) * mp.loggamma(start + a)
    assert abs(relative_error(float(jensen_gap(x, left, right)), truth)) < 1e-12


def test_the_jensen_gap_broadcasts_like_numpy() -> None:
    table = jensen_gap(np.array([[0.5], [50.0], [5e6]]), np.array([1.0, 2.0]), 3.0)
    assert table.shape == (3, 2)
    assert table[1, 1] == pytest.approx(float(jensen_gap(50.0, 2.0, 3.0)), rel=1e-14)


@given(powers(-3, 12), powers(-4, 3))
@settings(max_examples=200)
def test_the_loss_at_the_mode_keeps_eleven_digits(concentration: float, weight: float) -> None:
    with mp.workdps(120):
        a, r = mp.mpf(concentration), mp.mpf(weight)
        step = mp.loggamma(a + r) - mp.loggamma(a)
        up, down = r * mp.log(a + r) - step, step - r * mp.log(a)
    # what counts is the loss in units of the weight: an error there moves a threshold on ln z
    assert abs(mp.mpf(loss_at_mode_up(concentration, weight)) - up) < 1e-11 * up + 1e-13 * r
    assert abs(mp.mpf(loss_at_mode_down(concentration, weight)) - down) < 1e-11 * abs(down) + 1e-13 * r
