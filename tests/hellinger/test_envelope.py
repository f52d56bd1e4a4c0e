"""The envelope dominates, and its certificate would notice if it did not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import sampler

CURVES = {"hellinger": sampler.HELLINGER, "squared": sampler.SQUARED_HELLINGER}
EVERYWHERE = np.concatenate([[0.0], np.geomspace(1e-14, 80.0, 30_001)])


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("sharpness", [1e-3, 0.2, 3.0, 50.0, 600.0, 15_000.0])
def test_a_fitted_envelope_dominates_everywhere(curve: sampler.Curve, sharpness: float) -> None:
    made = sampler.envelope_of(curve, sharpness)
    excess = made.log(EVERYWHERE) + sharpness * curve.score(EVERYWHERE)
    assert excess.min() >= 0.0
    assert sampler.shortfall(made, curve, sharpness) <= 2 * sampler.ROUNDING


@pytest.mark.parametrize("sharpness", [0.2, 3.0, 50.0, 600.0, 15_000.0])
def test_a_fitted_envelope_is_tight_where_the_mass_is(sharpness: float) -> None:
    made = sampler.envelope_of(sampler.HELLINGER, sharpness)
    depth = sharpness * sampler.HELLINGER.score(EVERYWHERE)
    core = (depth < 60.0) & (depth > 0.02)
    assert (made.log(EVERYWHERE) + depth)[core].max() < 0.12


def test_the_certificate_notices_a_missing_exponential() -> None:
    made = sampler.envelope_of(sampler.HELLINGER, 20.0)
    lower = made.log_weights.copy()
    lower[np.argmax(made.log_weights)] -= 3.0
    assert sampler.shortfall(replace(made, log_weights=lower), sampler.HELLINGER, 20.0) > 0.1


def test_the_certificate_notices_a_constant_that_is_too_small() -> None:
    made = sampler.envelope_of(sampler.HELLINGER, 2.0)
    lower = made.log_weights.copy()
    lower[0] -= 1.0
    assert sampler.shortfall(replace(made, log_weights=lower), sampler.HELLINGER, 2.0) > 0.5


def test_the_slope_is_the_derivative_of_the_logarithm() -> None:
    made = sampler.envelope_of(sampler.HELLINGER, 7.0)
    at = np.array([1e-3, 0.05, 0.7, 4.0])
    numeric = (made.log(at + 1e-7) - made.log(at - 1e-7)) / 2e-7
    np.testing.assert_allclose(made.slope(at), numeric, rtol=1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_sharpness_that_is_not_positive_is_refused(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="sharpness"):
        sampler.envelope_of(sampler.HELLINGER, bad)
