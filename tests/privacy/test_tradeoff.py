"""The trade-off curve: that of the best tests, from below, and never above guessing."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes import Cost, Gaussian, Laplace, PrivacyUnit
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.tradeoff import profile, tradeoff

UNIT = PrivacyUnit(adjacency="add-remove")
ALPHAS = np.linspace(0.0, 1.0, 101)


POINTS = np.arange(-400, 401)


def best_tests(weights: np.ndarray) -> np.ndarray:
    """How often the best test of a law on the integers against itself moved by one misses, by Neyman and Pearson."""
    p = weights / weights.sum()
    q = np.roll(p, 1)
    order = np.argsort(-(q / np.maximum(p, 1e-300)), kind="stable")
    alarms, found = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (p, q))
    return np.interp(ALPHAS, alarms, 1.0 - found)


@pytest.mark.parametrize(
    ("mechanism", "weights"),
    [
        (Gaussian(sigma=1.0, unit=UNIT), np.exp(-(POINTS**2) / 2)),
        (Gaussian(sigma=7.0, unit=UNIT), np.exp(-(POINTS**2) / 98)),
        (Laplace(scale=2.0, unit=UNIT), np.exp(-np.abs(POINTS) / 2)),
    ],
    ids=["gaussian 1", "gaussian 7", "laplace 2"],
)
def test_the_curve_is_that_of_the_best_tests_and_never_above_them(mechanism: Priced, weights: np.ndarray) -> None:
    found, truth = tradeoff(Cost.of(mechanism), ALPHAS), best_tests(weights)
    assert (found <= truth + 1e-9).all()
    assert (truth - found).max() < 1e-2  # the profile is followed in steps


def test_the_curve_falls_is_convex_and_never_above_guessing() -> None:
    cost = Cost.of(Gaussian(sigma=5, unit=UNIT), 3) + Cost.of(Laplace(scale=9, unit=UNIT))
    found = tradeoff(cost, ALPHAS)
    assert (found <= 1 - ALPHAS + 1e-12).all()
    assert (np.diff(found) <= 1e-12).all()
    assert (np.diff(found, 2) >= -1e-9).all()
    assert (tradeoff(cost * 2, ALPHAS) <= found + 1e-9).all()


def test_the_profile_starts_at_zero_and_falls() -> None:
    epsilons, deltas = profile(Cost.of(Gaussian(sigma=3, unit=UNIT)), steps=20)
    assert epsilons[0] == 0
    assert (np.diff(deltas) <= 0).all()
    assert deltas[-1] <= 1e-11
