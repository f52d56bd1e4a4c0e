"""Numbers that the theory of exact accounting states: our own derivations, checked once by hand."""

from __future__ import annotations

import math

import pytest

from dpbayes import Cost, Dirichlet, Unit
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.papers.tcdp import theorem_2
from dpbayes.privacy.bounds import algorithm_1
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)


@pytest.mark.parametrize(
    ("concentration", "exact", "published"),
    [(2, 6.10, 14.5), (5, 2.97, 6.27), (10, 1.877, 3.63), (30, 0.978, 1.69), (100, 0.4995, 0.81)],
)
def test_exact_epsilon_of_one_draw_beside_theorem_2_of_tcdp(concentration: int, exact: float, published: float) -> None:
    spent = Dirichlet(weight=1, concentration=concentration, unit=REPLACE).epsilon(1e-5)
    assert spent == pytest.approx(exact, abs=0.005 if exact > 2 else 0.0005)
    bound = theorem_2(alpha=concentration, delta=1e-5).printed
    assert bound == pytest.approx(published, abs=0.05 if published > 10 else 0.005)


@pytest.mark.parametrize(("order", "epsilon", "ratio"), [(2, 0.001, 0.96), (2, 10.0, 0.68), (5, 1.0, 0.74)])
def test_exact_divergence_over_the_bound_of_algorithm_1(order: float, epsilon: float, ratio: float) -> None:
    weight, concentration = algorithm_1(order=order, epsilon=epsilon)
    exact = Dirichlet(weight=weight, concentration=concentration, unit=REPLACE).renyi(order)
    assert exact / epsilon == pytest.approx(ratio, abs=0.006)


def coarse_epsilon(times: int, interval: float) -> float:
    """As a plain discretisation gives it: every loss rounded up to a multiple, by dp-accounting itself."""
    from dp_accounting.pld import privacy_loss_distribution
    from scipy.special import betainc, expit

    def cdf(loss: float) -> float:
        return float(betainc(5.2, 5.0, expit(loss / 0.2)))

    pld = privacy_loss_distribution.create_from_cdf(cdf, value_discretization_interval=interval)
    return float(pld.self_compose(times).get_epsilon_for_delta(1e-5))


@pytest.mark.parametrize(
    ("times", "converged", "coarse", "renyi"), [(21, 2.4779, 2.49, 2.70), (65, 4.7033, 4.74, 5.08)]
)
def test_twenty_one_and_sixty_five_releases(times: int, converged: float, coarse: float, renyi: float) -> None:
    cost = Cost.of(Dirichlet(weight=0.2, concentration=5.0, unit=REPLACE), times)
    assert cost.epsilon(1e-5) == pytest.approx(converged, rel=2e-4)
    assert cost.renyi_epsilon(1e-5)[1] == pytest.approx(renyi, abs=0.005)
    # 2.49 and 4.74 come from rounding up to multiples of 1e-3; finer multiples come down to our numbers
    assert coarse_epsilon(times, 1e-3) == pytest.approx(coarse, abs=0.005)
    assert cost.epsilon(1e-5) < coarse_epsilon(times, 1e-4) < coarse_epsilon(times, 1e-3)
    assert coarse_epsilon(times, 1e-4) == pytest.approx(converged, rel=2e-3)


@pytest.mark.parametrize(
    ("concentration", "records", "pure", "approximate"), [(2, 20, 2.40, None), (10, 100, 2.40, 1.587)]
)
def test_finitely_many_pseudo_records_have_a_pure_price(
    concentration: float, records: int, pure: float, approximate: float | None
) -> None:
    """The draw itself costs 6.10 and 1.877 at δ = 1e-5, and nothing pure."""
    made = PseudoRecords(weight=1, concentration=concentration, records=records, unit=REPLACE)
    assert made.renyi(math.inf) == pytest.approx(pure, abs=0.005)
    assert made.renyi(math.inf) == pytest.approx(math.log1p(records / concentration), rel=1e-11)
    if approximate is not None:
        assert made.epsilon(1e-5) == pytest.approx(approximate, abs=0.0005)
