"""The root finder may miss the root, but never the safe side."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes.privacy.solve import exact_parts, safe_root

ends = st.floats(-50, 50)


@given(ends, ends, ends, st.floats(0.1, 9), st.sampled_from([-1.0, 1.0]))
def test_the_result_is_safe_and_near_the_root(root: float, one: float, other: float, power: float, sign: float) -> None:
    safe, unsafe = root - sign * (abs(one) + 1e-3), root + sign * (abs(other) + 1e-3)

    def gap(x: float) -> float:
        distance = sign * (x - root)
        return math.copysign(abs(distance) ** power, distance)

    found = safe_root(gap, safe=safe, unsafe=unsafe, tolerance=1e-10)
    assert gap(found) <= 0
    assert gap(found) >= -1e-10 or abs(found - root) < 1e-9 * max(1.0, abs(root))


@given(st.floats(-5, 5), st.floats(1e-3, 10), st.floats(1e-3, 10))
def test_a_jump_is_approached_from_the_safe_side(jump: float, below: float, above: float) -> None:
    found = safe_root(lambda x: -below if x <= jump else above, safe=-6.0, unsafe=6.0, tolerance=1e-12)
    assert found <= jump
    assert found == pytest.approx(jump, abs=1e-9)


@given(st.floats(0.5, 5.5))
def test_infinite_gaps_on_either_side_do_no_harm(root: float) -> None:
    def gap(x: float) -> float:
        if x < root - 0.3:
            return -math.inf
        return math.inf if x > root + 0.2 else x - root

    found = safe_root(gap, safe=0.0, unsafe=6.0, tolerance=1e-12)
    assert -1e-11 <= gap(found) <= 0


@given(st.floats(0.5, 5.5))
def test_gaps_that_are_not_numbers_count_as_unsafe(edge: float) -> None:
    found = safe_root(lambda x: -1.0 if x < edge else math.nan, safe=0.0, unsafe=6.0, tolerance=1e-12)
    assert found < edge


def test_an_unsafe_end_that_is_safe_after_all_is_returned() -> None:
    assert safe_root(lambda x: -1.0, safe=0.0, unsafe=3.0, tolerance=1e-9) == 3.0


def test_a_safe_end_within_the_tolerance_is_kept() -> None:
    assert safe_root(lambda x: x - 1.0, safe=1.0, unsafe=2.0, tolerance=1e-9) == 1.0


@given(st.lists(st.floats(0, 1e300, allow_nan=False) | st.just(math.inf), max_size=30))
def test_an_exact_sum_that_grows_is_the_sum_of_all(numbers: list[float]) -> None:
    parts: list[float] = []
    for place, number in enumerate(numbers, start=1):
        parts = exact_parts(parts, number)
        assert math.fsum(parts) == math.fsum(numbers[:place])
