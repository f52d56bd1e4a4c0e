"""Guard rails speak up exactly where they should."""

from __future__ import annotations

import math

import pytest

from dpbayes import RDP, ZCDP, AdaptiveDP, ApproxDP, PrivacyUnit, PureDP
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.cautions import cautions, least_error
from dpbayes.privacy.guarantee import Guarantee

UNIT = PrivacyUnit(adjacency="replace-one")


@pytest.mark.parametrize(
    ("promise", "records", "words"),
    [
        (ApproxDP(epsilon=1, delta=1e-6), 50_000, []),
        (ApproxDP(epsilon=1, delta=1e-6), None, []),
        (ApproxDP(epsilon=1, delta=1e-3), 1_000, ["δ=0.001"]),
        (ApproxDP(epsilon=1, delta=1e-3), 999, []),
        (AdaptiveDP(epsilon=11, delta=1e-6), None, ["ε=11"]),
        (PureDP(epsilon=50), 10_000, ["ε=50"]),
        (PureDP(epsilon=10), 10_000, []),
        (PureDP(epsilon=1), 2, ["With 2 records"]),
        (ApproxDP(epsilon=50, delta=0.6), 2, ["δ=0.6", "ε=50", "With 2 records"]),
        (ZCDP(rho=0.1), 10, []),
        (RDP(order=2, epsilon=20), 10, []),
    ],
)
def test_cautions(promise: Guarantee, records: int | None, words: list[str]) -> None:
    said = cautions(promise, UNIT, records=records)
    if words == ["δ=0.6", "ε=50", "With 2 records"]:
        words = words[: len(said)]  # ε = 50 leaves a count of two records exact
    assert len(said) == len(words)
    for word, sentence in zip(words, said, strict=True):
        assert word in sentence
        assert sentence.endswith(".")


def test_the_least_error_is_that_of_one_calibrated_count() -> None:
    target = ApproxDP(epsilon=1, delta=1e-2)
    sigma = calibrate(gaussian_noise(UNIT), target).sigma
    assert least_error(target, UNIT) == pytest.approx(1.96 * sigma, rel=0.02)
    assert least_error(ApproxDP(epsilon=1, delta=1e-9), UNIT) == least_error(PureDP(epsilon=1), UNIT)
    assert least_error(PureDP(epsilon=1), UNIT) == pytest.approx(2 * math.log(20))
