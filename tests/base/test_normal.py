"""Special functions of the normal law against scipy and mpmath, which share no code with them."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dpbayes.base.normal import erfcx, quantile, quantiles

ROUNDINGS = 16 * np.finfo(np.float64).eps


def test_quantiles_are_right_to_a_few_roundings_down_to_the_smallest_probabilities() -> None:
    p = np.concatenate([np.geomspace(1e-300, 0.5, 2000), 1 - np.geomspace(1e-15, 0.5, 500)])
    ours, theirs = quantiles(p), special.ndtri(p)
    assert np.abs(ours - theirs).max() <= ROUNDINGS * np.abs(theirs).max()
    assert (np.abs(ours - theirs) <= ROUNDINGS * np.maximum(np.abs(theirs), 1)).all()


def test_quantiles_of_many_are_those_of_each() -> None:
    p = np.concatenate([np.random.default_rng(0).random(10_000), np.geomspace(1e-300, 0.1, 1000)])
    assert quantiles(p) == pytest.approx([quantile(each) for each in p.tolist()], rel=1e-14, abs=1e-15)


def test_the_ends_are_infinite_and_nothing_lies_beyond() -> None:
    assert (quantile(0.0), quantile(1.0)) == (-math.inf, math.inf)
    assert all(math.isnan(quantile(each)) for each in (-0.1, 1.1, math.nan))
    both = np.array([0.0, 1.0, -0.1, 1.1, math.nan])
    assert np.array_equal(quantiles(both), [quantile(each) for each in both.tolist()], equal_nan=True)


def test_erfcx_is_right_to_a_few_roundings_on_both_sides_of_its_series() -> None:
    near = 25.0 + np.linspace(-1e-3, 1e-3, 11)
    x = np.concatenate([-np.geomspace(1e-3, 20, 50), [0.0], np.geomspace(1e-9, 1e8, 300), near])
    with mp.workdps(40):
        for each in x.tolist():
            truth = mp.exp(mp.mpf(each) ** 2) * mp.erfc(mp.mpf(each))
            assert abs(erfcx(each) / truth - 1) <= ROUNDINGS, each
