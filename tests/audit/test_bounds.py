"""The audit's bounds are bounds: they hold for known laws, and refute claims that are false."""

from __future__ import annotations

import math

import numpy as np
import pytest
from audit.bounds import distinguish, lower, upper
from scipy.stats import binom


@pytest.mark.parametrize("trials", [1, 20, 500])
@pytest.mark.parametrize("error", [1e-10, 1e-3])
def test_a_bound_is_the_probability_at_which_the_count_becomes_incredible(trials: int, error: float) -> None:
    for successes in {0, 1, trials // 2, trials - 1, trials} - {-1}:
        low, high = float(lower(successes, trials, error)), float(upper(successes, trials, error))
        if successes:
            assert binom.sf(successes - 1, trials, low) == pytest.approx(error, rel=1e-6)
        if successes < trials:
            assert binom.cdf(successes, trials, high) == pytest.approx(error, rel=1e-6)
    assert (float(lower(0, trials)), float(upper(trials, trials))) == (0.0, 1.0)


def response(epsilon: float, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response, whose loss is exactly ε."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return rng.random(draws) < truth, rng.random(draws) >= truth


def test_a_true_claim_holds_and_the_evidence_comes_near_it() -> None:
    found = distinguish(*response(1.0, 100_000, np.random.default_rng(1)), [(1.0, 0.0)])
    assert found.holds
    assert 0.9 < found.epsilon_proved <= 1.0


def test_a_false_epsilon_is_refuted_in_both_directions() -> None:
    one, other = response(1.0, 20_000, np.random.default_rng(2))
    for scores in ((one, other), (other, one)):
        found = distinguish(*scores, [(0.7, 0.0)])
        assert not found.holds
        assert found.epsilon_proved > 0.7


def test_a_false_delta_is_refuted_on_its_own() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.random(20_000) < 0.05, np.zeros(20_000)
    found = distinguish(one, other, [(2.0, 0.001)])
    assert not found.holds
    assert 0.001 < found.delta_proved < 0.05
    assert distinguish(one, other, [(2.0, 0.051)]).holds


def test_of_several_claims_the_one_that_is_refuted_is_reported() -> None:
    scores = response(1.0, 20_000, np.random.default_rng(4))
    found = distinguish(*scores, [(5.0, 0.0), (0.7, 0.0), (1.0, 0.5)])
    assert (found.epsilon, found.delta) == (0.7, 0.0)


def test_equal_laws_are_never_told_apart() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        one, other = rng.normal(size=(2, 2_000))
        found = distinguish(one, other, [(0.01, 1e-9)])
        assert found.holds
