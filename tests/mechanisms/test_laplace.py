"""Discrete Laplace noise against enumeration of both cells."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import reference
from tests.privacy.reference import relative_error

from dpbayes import Laplace, Unit
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)


def enumerated(scale: float, unit: Unit, reach: int) -> dict[mp.mpf, mp.mpf]:
    noise = reference.discrete_laplace(scale, reach)
    return reference.two_cell_pmf(noise, (1, -1) if unit.replaces else (1, 0))


@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
@pytest.mark.parametrize(("scale", "reach"), [(0.2, 10), (0.5, 22)])
def test_the_cost_is_that_of_the_enumerated_pair(scale: float, reach: int, unit: Unit) -> None:
    mechanism = Laplace(scale=scale, unit=unit)
    with mp.workdps(50):
        law = enumerated(scale, unit, reach)
        for epsilon in (0.0, 0.3 / scale, 0.9 / scale, 1.4 / scale):
            truth = reference.law_delta(law, epsilon)
            assert mechanism.delta(epsilon) >= truth * (1 - mp.mpf("1e-15"))
            assert mechanism.delta(epsilon) == pytest.approx(float(truth), rel=1e-9, abs=1e-18)
        for order in (1.0001, 1.5, 3.0, 7.0):
            truth = reference.law_renyi(law, order)
            assert relative_error(mechanism.renyi(order), truth) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
def test_the_pure_cost_is_the_distance_over_the_scale(unit: Unit) -> None:
    assert Laplace(scale=4.0, unit=unit).renyi(math.inf) == unit.sensitivity.l1 / 4.0
    assert Laplace(scale=4.0, unit=unit).delta(unit.sensitivity.l1 / 4.0) == 0.0


@given(st.floats(0.01, 1e9), st.floats(1.0001, 1e4))
def test_the_divergence_lies_below_the_concentrated_line_and_below_the_pure_cost(scale: float, order: float) -> None:
    for unit in (REPLACE, CHANGE):
        mechanism = Laplace(scale=scale, unit=unit)
        assert 0 < mechanism.renyi(order) <= mechanism.renyi(math.inf)
        assert mechanism.renyi(order) <= mechanism.concentrated(order) * order * (1 + 2e-15)


@given(st.floats(0.5, 100), st.integers(2, 5), st.sampled_from(list(Adjacency)))
def test_several_rows_cost_as_much_as_all_of_them_in_one_cell(scale: float, rows: int, adjacency: Adjacency) -> None:
    mechanism = Laplace(scale=scale, unit=Unit(adjacency=adjacency, max_rows=rows))
    moved = rows * (2 if adjacency is Adjacency.REPLACE_ONE else 1)
    assert mechanism.renyi(math.inf) == pytest.approx(moved / scale)
    with mp.workdps(40):  # one cell that moves by all rows is no worse than the pure guarantee says
        q = mp.exp(-1 / mp.mpf(scale))
        truth = {}
        for k in range(-200, 201):
            loss = (abs(k + moved) - abs(k)) / mp.mpf(scale)
            truth[loss] = truth.get(loss, 0) + (1 - q) / (1 + q) * q ** abs(k)
        for epsilon in (0.0, 0.5 / scale, 0.9 * moved / scale):
            assert mechanism.delta(epsilon) >= reference.law_delta(truth, epsilon) * (1 - mp.mpf("1e-14"))


def test_a_scale_near_zero_hides_nothing_and_breaks_nothing() -> None:
    mechanism = Laplace(scale=1e-4, unit=REPLACE)
    assert mechanism.delta(0.0) == pytest.approx(1.0)
    assert mechanism.epsilon(0.5) == pytest.approx(2e4, rel=1e-3)
    assert mechanism.renyi(2.0) == pytest.approx(2e4, rel=1e-3)
