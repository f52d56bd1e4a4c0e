"""Rounding: never finer than the noise supports, never such that a number leaves its interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpbayes.words.view import FOR_READERS, LOPSIDED, for_files, outward, spread_text, step_of, text_of

HALVES = st.floats(1e-5, 1e6)


@given(HALVES, st.sampled_from([0.5, 0.05]))
def test_a_step_is_the_largest_power_of_ten_within_its_share(half: float, share: float) -> None:
    step = step_of(half, share)
    assert math.log10(step) == pytest.approx(round(math.log10(step)), abs=1e-9)
    assert step <= share * half * (1 + 1e-6) < 10 * step * (1 + 1e-6)


@given(st.floats(0, 1e6), HALVES)
def test_rounding_adds_at_most_a_quarter_of_the_uncertainty(value: float, half: float) -> None:
    step = max(step_of(half, FOR_READERS), 1e-6)
    assert abs(float(text_of(value, step).replace(",", "")) - value) <= half / 4 + 1e-6


@given(st.floats(0, 100), st.floats(0, 50), st.floats(0, 50))
def test_what_is_printed_holds_the_interval_and_the_number(value: float, down: float, up: float) -> None:
    lower, upper = max(value - down, 0.0), min(value + up, 100.0)
    half = (upper - lower) / 2
    if half < 1e-3:
        return
    value = min(max(value, lower), upper)
    step = step_of(half)
    said = spread_text(value, lower, upper, step, 100.0).replace(",", "")
    if said.startswith("±"):
        reach = float(said[1:])
        assert reach >= max(upper - value, value - lower) - 1e-6
        assert value - reach >= -2 * step - 1e-9
        assert value + reach <= 100 + 2 * step + 1e-9
    else:
        low, high = map(float, said.split("–"))
        assert low <= lower + 1e-6
        assert upper <= high + 1e-6
        shown = float(text_of(value, step).replace(",", "")) if step >= 1e-6 else value
        assert low - 1e-9 <= shown <= high + 1e-9


def test_lopsided_intervals_are_printed_as_such() -> None:
    assert spread_text(10.0, 9.0, 11.0, 0.1) == "± 1.0"
    assert spread_text(10.0, 9.9, 10.0 + LOPSIDED, 0.1) == "9.9–13.0"
    assert spread_text(95.0, 85.0, 100.0, 1.0, 100.0) == "85–100"
    assert "−" not in spread_text(0.0, 0.0, 0.0, 0.1)


@example([(0.0, 0.0, 2e-311)])
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2), st.floats(0, 0.2)), min_size=1, max_size=6))
def test_files_keep_numbers_within_their_intervals(cells: list[tuple[float, float, float]]) -> None:
    values, down, up = (np.array(part) for part in zip(*cells, strict=True))
    lower, upper = values - down, values + up
    half = (upper - lower) / 2
    rounded, low, high = for_files(values, lower, upper)
    assert low is not None
    assert high is not None
    told = half > 1e-9
    assert (np.abs(rounded - values)[told] <= 0.0251 * half[told] + 1e-12).all()
    assert (low[told] <= lower[told] + 1e-9).all()
    assert (high[told] >= upper[told] - 1e-9).all()


def test_numbers_without_uncertainty_keep_six_digits() -> None:
    assert for_files(np.array([1 / 3, 12345678.9]), None, None)[0].tolist() == [0.333333, 12345700.0]
    assert outward(0.0, 0.0, 0.1) == (0.0, 0.0)


@pytest.mark.parametrize("value", [1e308, -1e308, 1e-320, 5e-324, 0.0])
@pytest.mark.parametrize("uncertainty", [5e-324, 1e-320, 1.0, 1e308])
def test_any_number_that_a_file_may_state_can_be_printed(value: float, uncertainty: float) -> None:
    step = step_of(uncertainty)
    assert text_of(value, step)
    assert spread_text(value, value - uncertainty, value + uncertainty, step)
