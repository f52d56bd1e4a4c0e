from __future__ import annotations

import arviz
import numpy as np
import pytest
from tests.releases import REPLACE, release_of

from dpbayes import ApproxDP, Gaussian, Posterior
from dpbayes.bridges import to_arviz, to_xarray


@pytest.fixture(scope="module")
def posterior():
    noise, promise = Gaussian(sigma=8, unit=REPLACE), ApproxDP(epsilon=1, delta=1e-6)
    return Posterior(release_of("region", "income|sex", mechanism=noise, promise=promise, estimates=False))


def test_draws_are_labelled_and_agree(posterior):
    data = to_xarray(posterior, ["region", "income|sex", "sex"], draws=50, seed=1)
    assert data["count(region)"].dims == ("chain", "draw", "region")
    assert data["count(region)"].sizes["draw"] == 50
    assert list(data.coords["sex"].values) == list(posterior.schema["sex"].levels)
    joint = next(name for name in data.data_vars if "," in name)
    np.testing.assert_allclose(data[joint].sum("income"), data["count(sex)"], atol=1e-6)


def test_arviz_summarises_the_draws_as_the_linear_law_does(posterior):
    summary = arviz.summary(to_arviz(posterior, ["region"], draws=4000, seed=2), kind="stats", round_to="none")
    mean, variance = posterior.joint.linear(("region",))
    np.testing.assert_allclose(summary["mean"], mean, atol=5 * np.sqrt(variance.max() / 4000))
    np.testing.assert_allclose(summary["sd"], np.sqrt(variance), rtol=0.1)
