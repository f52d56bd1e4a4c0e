"""[RDP], Dirichlet Mechanism for Differentially Private KL Divergence Minimization: its numbers and figures."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from tests.privacy import reference

from dpbayes import Dirichlet, Unit
from dpbayes.papers.rdp import equation_10
from dpbayes.privacy.bounds import algorithm_1
from dpbayes.privacy.convert import renyi_to_delta, renyi_to_epsilon
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
HISTOGRAM, NEIGHBOUR = (11, 8, 65, 25, 38, 0), (11, 7, 65, 25, 38, 1)


def root_of_line_1(order: int, epsilon: str) -> tuple[mp.mpf, mp.mpf]:
    """Lines 1 and 2 of algorithm 1 with Δ₂² = 2 and Δ∞ = 1, in 40 digits."""
    with mp.workdps(40):
        target = mp.mpf(epsilon)
        r = mp.findroot(
            lambda r: order * r**2 * mp.polygamma(1, 1 + 3 * (order - 1) * r) - target, mp.sqrt(target / order)
        )
        return r, 1 + 4 * (order - 1) * r


@pytest.mark.parametrize(
    ("epsilon", "weight", "concentration"),
    [("0.1", 0.27756768989605785, 5.4410830383369255), ("1", 2.44119266, 40.0590826)],
)
def test_algorithm_1_at_order_5(epsilon: str, weight: float, concentration: float) -> None:
    found = algorithm_1(order=5, epsilon=float(epsilon))
    r, alpha = root_of_line_1(5, epsilon)
    assert found[0] == pytest.approx(float(r), rel=1e-12)
    assert found[1] == pytest.approx(float(alpha), rel=1e-12)
    assert found == (pytest.approx(weight, rel=1e-8), pytest.approx(concentration, rel=1e-8))
    assert found[0] <= r * (1 + mp.mpf("1e-15"))


@pytest.mark.parametrize("order", [2, 5, 10, 20])
@pytest.mark.parametrize("weight", [0.05, 0.3, 1.0, 3.0, 10.0])
def test_figure_2_the_divergence_of_two_histograms_lies_below_algorithm_1_and_close_to_it(
    order: int, weight: float
) -> None:
    with mp.workdps(60):
        r = mp.mpf(weight)
        alpha = 1 + 4 * (order - 1) * r
        here, there = ([r * c + alpha for c in counts] for counts in (HISTOGRAM, NEIGHBOUR))
        suggested = order * r**2 * mp.polygamma(1, 1 + 3 * (order - 1) * r)
    drawn = max(reference.exact_renyi(here, there, order), reference.exact_renyi(there, here, order))
    claim = Dirichlet(weight=weight, concentration=float(alpha), unit=REPLACE).renyi(order)
    assert drawn < claim < suggested
    assert drawn > 0.3 * suggested  # "close to the actual Rényi divergences"


@pytest.mark.parametrize("order", [2, 5, 20])
def test_figure_2_grows_with_the_weight(order: int) -> None:
    weights = [0.05, 0.2, 1.0, 4.0, 10.0]
    claims = [Dirichlet(weight=r, concentration=1 + 4 * (order - 1) * r, unit=REPLACE).renyi(order) for r in weights]
    assert claims == sorted(claims)


def test_remark_1_without_slack_needs_no_root_finding() -> None:
    weight, concentration = algorithm_1(order=5, epsilon=0.1, slack=lambda weight: 0.0)
    assert weight == pytest.approx(math.sqrt(2 * 0.1 / (5 * 2 * math.pi**2 / 6)), rel=1e-12)
    assert concentration == pytest.approx(1 + 4 * weight, rel=1e-12)


def test_remark_2_a_known_lower_bound_allows_more_weight_at_the_same_price() -> None:
    plain = algorithm_1(order=5, epsilon=1.0)[0]
    for least in (1, 5, 50):
        weight, concentration = algorithm_1(order=5, epsilon=1.0, least_count=least)
        assert weight > plain
        assert Dirichlet(weight=weight, concentration=concentration, unit=REPLACE, least_count=least).renyi(5) <= 1.0


def test_lemma_1_divergences_of_independent_draws_add() -> None:
    with mp.workdps(60):
        one, other = [mp.mpf(3), mp.mpf(2)], [mp.mpf(2), mp.mpf(3)]
        single = reference.gamma_renyi(one, other, 1.5)
        double = reference.gamma_renyi(one * 2, other * 2, 1.5)
    assert double == pytest.approx(2 * single, rel=1e-14)


def test_lemma_3_from_rdp_to_approximate_dp() -> None:
    order, renyi, epsilon = 5.0, 0.1, 2.0
    assert renyi_to_delta(order, renyi, epsilon) == pytest.approx(math.exp(4 * (0.1 - 2.0)) / 4 * (1 - 1 / 5) ** 5)
    assert renyi_to_epsilon(order, renyi, 1e-5) == pytest.approx(
        0.1 + math.log(4) - (math.log(1e-5) + 5 * math.log(5)) / 4
    )


@pytest.mark.parametrize("order", [2, 10, 50, 200])
def test_figure_7_equation_10_rises_with_the_weight_and_stays_above_the_exact_cost(order: int) -> None:
    weights = [0.01, 0.1, 1.0, 10.0]
    values = [equation_10(r=r, order=order, delta=1e-5).printed for r in weights]
    assert values == sorted(values)
    for weight, value in zip(weights, values, strict=True):
        exact = Dirichlet(weight=weight, concentration=1 + 4 * (order - 1) * weight, unit=REPLACE).epsilon(1e-5)
        assert exact <= value


def test_figure_7_larger_orders_give_smaller_epsilons_where_the_conversion_dominates() -> None:
    values = [equation_10(r=0.01, order=order, delta=1e-5).printed for order in (2, 10, 50, 200)]
    assert values == sorted(values, reverse=True)
