"""Prices, conversions and plans are what they were, to twelve digits, and on the safe side of the truth."""

from __future__ import annotations

import json
import math

import pytest
from tests.privacy.numbers import FILE, NEITHER, flat, truth_of, value_of

NUMBERS = json.loads(FILE.read_text(encoding="utf-8"))


def same(now: object, then: object, near: float) -> bool:
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(same, now, then, [near] * len(then)))
    if isinstance(then, float) and isinstance(now, (int, float)):
        noise = 3e-16 if 1e-17 < abs(then) < 2e-15 else 0.0  # what a sum of probabilities leaves of one
        return (
            now == then
            or math.isclose(now, then, rel_tol=near, abs_tol=noise)
            or (math.isnan(now) and math.isnan(then))
        )
    return now == then


@pytest.mark.parametrize("module", NUMBERS)
def test_numbers_are_what_they_were(module: str) -> None:
    for expression, then in NUMBERS[module].items():
        now = flat(value_of(module, expression))
        assert same(now, then, 2e-13), f"{expression}: {now} instead of {then}"


def test_numbers_are_true_and_rounded_to_the_safe_side() -> None:
    known = [(each, value) for found in NUMBERS.values() for each, value in found.items() if truth_of(each)]
    assert len(known) > 60
    for expression, value in known:
        name, truth = truth_of(expression) or ("", 0)
        if name in NEITHER:
            assert abs(value - truth) <= 1e-11 * abs(truth), expression
        else:
            assert truth <= value <= truth * (1 + 2e-9) + 5e-15, expression
