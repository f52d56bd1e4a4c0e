"""Bounds of related mechanisms: never below the exact price of the same draw, and exact where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp

from dpbayes import Dirichlet, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import PseudoRecords
from dpbayes.papers.related import bounded, commuters_prior, simplex_epsilon
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("alpha", [1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize(("weight", "cells", "records"), [(1.0, 2, 50), (0.3, 3, 1000), (2.0, 8, 200)])
def test_the_bound_on_the_simplex_holds_and_is_far_above_the_exact_price(
    weight: float, alpha: float, cells: int, records: int
) -> None:
    bound = float(simplex_epsilon(r=weight, alpha=alpha, d=cells, N=records, delta=1e-5))
    exact = Dirichlet(weight=weight, concentration=alpha, unit=UNIT).epsilon(1e-5)
    assert bound > exact


def test_outside_the_given_up_outcomes_no_loss_exceeds_the_bound() -> None:
    weight, alpha, cells, records, delta = 1.0, 4.0, 3, 30, 1e-2
    bound = float(simplex_epsilon(r=weight, alpha=alpha, d=cells, N=records, delta=delta))
    here, there = np.array([0, records, 0]) * weight + alpha, np.array([1, records - 1, 0]) * weight + alpha
    draws = np.random.default_rng(2).dirichlet(here, 200_000)
    mp.dps = 30
    constant = float(mp.loggamma(there[0]) + mp.loggamma(there[1]) - mp.loggamma(here[0]) - mp.loggamma(here[1]))
    loss = constant + ((here - there) * np.log(draws)).sum(axis=1)
    assert (np.abs(loss) > bound).mean() <= delta


@pytest.mark.parametrize(("drawn", "epsilon"), [(20, 0.5), (1000, 1.0), (7, 3.0)])
def test_synthetic_commuters_cost_exactly_what_pseudo_records_cost(drawn: int, epsilon: float) -> None:
    alpha = float(commuters_prior(drawn=drawn, epsilon=epsilon))
    made = PseudoRecords(weight=1.0, concentration=alpha, records=drawn, unit=UNIT)
    assert made.renyi(math.inf) == pytest.approx(epsilon, rel=1e-9)
    assert made.epsilon(1e-6) < epsilon


def test_a_bounded_log_density_costs_four_times_its_bound() -> None:
    assert float(bounded(0.25)) == 1.0
    assert "−1" in (bounded(0.25).erratum or "")


def test_senseless_numbers_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        commuters_prior(drawn=0, epsilon=1.0)
    with pytest.raises(InvalidArgument):
        simplex_epsilon(r=1, alpha=0, d=3, N=10, delta=1e-5)
