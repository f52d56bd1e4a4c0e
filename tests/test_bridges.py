from __future__ import annotations

import arviz
import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException
from tests.releases import REPLACE, release_of

from dpbayes import ApproxDP, Dirichlet, Gaussian, Laplace, Posterior, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.bridges import to_arviz, to_opendp, to_xarray
from dpbayes.mechanisms import Stated
from dpbayes.schema import Adjacency

ADDED, REPLACED = (Unit(adjacency=adjacency) for adjacency in Adjacency)


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


@pytest.mark.parametrize("unit", [ADDED, REPLACED], ids=lambda unit: unit.adjacency.value)
@pytest.mark.parametrize(
    "make",
    [
        lambda unit: Gaussian(sigma=4.0, unit=unit),
        lambda unit: Laplace(scale=3.0, unit=unit),
        lambda unit: Dirichlet(weight=0.5, concentration=8.0, unit=unit),
    ],
    ids=["gaussian", "laplace", "dirichlet"],
)
def test_the_profile_comes_back_from_opendp(make, unit):
    mechanism = make(unit)
    measurement = to_opendp(mechanism)
    assert len(measurement([5, 0, 7])) == 3
    profile = measurement.map(1)
    for epsilon in (0.1, 0.5, 1.0):
        assert profile.delta(epsilon) == mechanism.delta(epsilon)
    assert profile.epsilon(1e-5) == pytest.approx(mechanism.epsilon(1e-5), rel=1e-9)


def test_opendp_composes_the_measurement():
    mechanism = Gaussian(sigma=5.0, unit=ADDED)
    fixed = dp.c.make_fix_delta(to_opendp(mechanism), 1e-6)
    epsilon, delta = dp.c.make_composition([fixed, fixed]).map(1)
    assert epsilon == pytest.approx(2 * mechanism.epsilon(1e-6), rel=1e-9)
    assert delta == pytest.approx(2e-6)


def test_more_rows_than_the_unit_allows_are_refused():
    with pytest.raises(OpenDPException, match="protects 1 rows, not 2"):
        to_opendp(Gaussian(sigma=5.0, unit=ADDED)).map(2)
    three = Unit(adjacency=Adjacency.ADD_REMOVE, max_rows=3)
    assert to_opendp(Gaussian(sigma=5.0, unit=three)).map(3).epsilon(1e-6) > 1


def test_a_statement_cannot_be_drawn():
    with pytest.raises(InvalidArgument, match="a mechanism that draws"):
        to_opendp(Stated(epsilon_stated=1.0, delta_stated=0.0, unit=ADDED, what="elsewhere"))


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
