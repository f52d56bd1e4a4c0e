"""As the noise vanishes, estimates become the released counts, alone and together, and models those without noise."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dpbayes import ApproxDP, Attribute, BayesNet, Curator, PureDP, Schema, Tables, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.measurement import Measurement
from dpbayes.jobs import Fit
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.laplace import LaplaceNoise
from dpbayes.release.estimates import measured_noise

COUNTS = np.array(
    [[[12, 0, 0], [51, 81, 57], [10, 771, 11]], [[106, 172, 1], [3176, 42, 38], [170, 163, 15139]]], dtype=np.float64
)
"""Some empty cells, some that whole numbers tell apart, and some far from what their margins suggest."""

SIZES = {"a": 2, "b": 3, "c": 3}
LISTS = ("c", "bc", "abc", "ab ac bc", "a b c ab ac bc abc")
EPSILONS = (1.0, 10.0, 30.0, 60.0, 100.0, 1e3, 1e4, 1e5, 1e6)
QUICK = (1.0, 60.0, 100.0, 1e3, 1e6)
MOST_DRAWN = 1e5
"""Beyond this ε doubles cannot carry gammas, and a Dirichlet draw is refused."""


def margin(axes: str) -> np.ndarray:
    return COUNTS.sum(axis=tuple(place for place, name in enumerate("abc") if name not in axes))


@pytest.mark.parametrize("asked", LISTS)
@pytest.mark.parametrize("sd", [3.0, 0.1, 0.05, 0.01, 1e-6])
@pytest.mark.parametrize(("kind", "known"), [("gaussian", True), ("laplace", False), ("gamma", True)])
def test_estimates_tend_to_the_counts_as_the_noise_vanishes(kind, known, sd, asked):
    """What is released is exact here, so that only the estimate can be off."""
    noise = {
        "gaussian": GaussianNoise(sigma=sd),
        "laplace": LaplaceNoise(scale=sd),
        "gamma": GammaNoise(weight=20_000 / sd**2, concentration=1.0),
    }[kind]
    measured = [
        Measurement(
            axes=tuple(axes),
            values=margin(axes) * noise.weight + 1 if isinstance(noise, GammaNoise) else margin(axes),
            noise=noise,
        )
        for axes in asked.split()
    ]
    posterior = JointPosterior(measured, SIZES, records=int(COUNTS.sum()) if known else None)
    for axes in asked.split():
        found, truth = posterior.estimate(tuple(axes)).counts, margin(axes)
        np.testing.assert_allclose(found.values, truth, atol=2 * sd + 1e-9, rtol=0)
        assert (found.lower <= truth).all()
        assert (truth <= found.upper).all()


def test_a_cell_that_its_margins_all_but_rule_out_is_what_was_released():
    """Sixty records where a trillion others make its margins expect none: sums over whole counts underflow."""
    counts = np.array([[60.0, 0.0], [0.0, 1e12]])
    table = Measurement(axes=("a", "b"), values=counts, noise=GaussianNoise(sigma=0.3))
    found = JointPosterior([table], {"a": 2, "b": 2}, records=int(counts.sum())).estimate(("a", "b"))
    np.testing.assert_allclose(found.counts.values, counts, atol=0.5)


def schema() -> Schema:
    attributes = (
        Attribute(name=name, categories=[f"{name}{level}" for level in range(size)], missing="other")
        for name, size in SIZES.items()
    )
    return Schema(id="small", unit=Unit(adjacency="replace-one"), attributes=tuple(attributes))


@cache
def rows() -> dict[str, list[str]]:
    places = np.repeat(np.indices(COUNTS.shape).reshape(3, -1), COUNTS.ravel().astype(int), axis=1)
    return {name: [f"{name}{level}" for level in column] for name, column in zip(SIZES, places, strict=True)}


@pytest.mark.parametrize(
    "epsilon", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in EPSILONS]
)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dirichlet"])
def test_estimates_of_a_release_tend_to_what_it_released(mechanism, epsilon):
    """Within the noise of what was drawn, whatever the noise; which is none at last."""
    targets = [ApproxDP(epsilon=epsilon, delta=1e-6), *([PureDP(epsilon=epsilon)] if mechanism == "laplace" else [])]
    for target in targets:
        if mechanism == "dirichlet" and epsilon > MOST_DRAWN:
            with pytest.raises(DpbayesError, match="doubles cannot carry"):
                Curator(rows(), schema(), seed=1).release(Tables("a,b,c", mechanism=mechanism), target)
            continue
        release = Curator(rows(), schema(), seed=1).release(Tables("a", "b,c", "a,b,c", mechanism=mechanism), target)
        for table in release.tables:
            if table.kind != "derived":
                noise = measured_noise(release.paid[table.by].mechanism)
                values = noise.center(np.asarray(table.values))
                sd = np.sqrt(noise.variance(np.maximum(values, 0.0)))
                gaps = np.abs(np.asarray(table.products["counts"].values) - values)
                assert (gaps < 6 * sd + (1e-9 if epsilon >= 1e3 else 1e-3)).all()


@pytest.mark.parametrize("pure", [True, False])
def test_networks_tend_to_the_one_without_noise(pure):
    """Total variation of the model from the records is that of their own rows, smoothed, at every large ε."""
    spec = BayesNet(edges=(("a", "b"), ("a", "c"), ("b", "c")))
    for epsilon in (100.0, 1e3, 1e6):
        target = PureDP(epsilon=epsilon) if pure else ApproxDP(epsilon=epsilon, delta=1e-6)
        network = Curator(rows(), schema(), seed=1).release(Fit(model=spec), target, estimates=False).model().network
        sizes = [len(schema()[name].levels) for name in SIZES]
        first, second, third = (
            network.tables[name].reshape(sizes[:end]) for name, end in zip("abc", (1, 2, 3), strict=True)
        )
        joint = first[:, None, None] * second[:, :, None] * third
        assert 0.5 * np.abs(joint[:2, :3, :3] - COUNTS / COUNTS.sum()).sum() < 0.002
