"""Prices, conversions and plans are what they were, to twelve digits, and on the safe side of the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pinned import NEITHER, check, numbers, truth_of, value_of

HERE = Path(__file__).parent


@pytest.mark.parametrize("module", numbers(HERE))
def test_numbers_are_what_they_were(module: str) -> None:
    check(HERE, module)


def test_numbers_are_true_and_rounded_to_the_safe_side() -> None:
    known = [(module, each) for module, found in numbers(HERE).items() for each in found if truth_of(each)]
    assert len(known) > 60
    for module, expression in known:
        (name, truth), value = truth_of(expression) or ("", 0), float(value_of(module, expression))
        if name in NEITHER:
            assert abs(value - truth) <= 1e-11 * abs(truth), expression
        else:
            assert truth <= value <= truth * (1 + 2e-9) + 5e-15, expression
