"""Choosing parameters by purpose, never by data."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms.tuning import (
    ConcentrationCurve,
    PseudoRecordsCurve,
    _minimum,
    dirichlet_at_weight,
    dirichlet_draws,
    gaussian_noise,
    laplace_noise,
    published_dirichlet,
)
from dpbayes.mechanisms.utility import expected_kl, worst_expected_kl, zipf
from dpbayes.privacy.calibrate import calibrate, calibrate_together
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
ADD = Unit(adjacency=Adjacency.ADD_REMOVE)
P = [0.5, 0.3, 0.1, 0.06, 0.04]

targets = st.one_of(
    st.builds(RDP, order=st.floats(1.5, 50), epsilon=st.floats(0.001, 10)),
    st.builds(TCDP, rho=st.floats(0.001, 5), omega=st.floats(1.5, 50)),
)


@pytest.mark.parametrize(
    ("order", "epsilon", "published", "best"),
    [(5, 1, 0.0040, 0.0021), (5, 10, 0.0032, 0.00053), (20, 10, 0.0354, 0.0045)],
)
def test_the_curve_holds_the_checked_improvements_over_the_papers(order, epsilon, published, best):
    target = RDP(order=order, epsilon=epsilon)
    paper = published_dirichlet(target, REPLACE)
    ours = ConcentrationCurve(target=target, unit=REPLACE).best(cells=5, records=1000, guess=P)

    def kl(made):
        return expected_kl(P, records=1000, weight=made.weight, concentration=made.concentration)

    assert kl(paper) == pytest.approx(published, rel=0.02)
    assert kl(ours) == pytest.approx(best, rel=0.03)


@settings(max_examples=40, deadline=None)
@given(target=targets, log_weight=st.floats(-4, 4), unit=st.sampled_from([REPLACE, ADD]), releases=st.integers(1, 30))
def test_every_point_of_the_curve_meets_its_target_and_nearly_so(target, log_weight, unit, releases):
    made = ConcentrationCurve(target=target, unit=unit, releases=releases).at(math.exp(log_weight))
    gap = target.gap(Cost.of(made, releases))
    assert gap <= 0
    # near its pole a cost may jump by more than the tolerance between neighbouring floats
    below = replace(made, concentration=made.concentration * (1 - 16 * 2**-52))
    assert gap >= -1e-9 or target.gap(Cost.of(below, releases)) > 0


@settings(max_examples=25, deadline=None)
@given(target=targets, log_weight=st.floats(-3, 3), unit=st.sampled_from([REPLACE, ADD]))
def test_the_exact_curve_never_needs_more_than_the_published_one(target, log_weight, unit):
    weight = math.exp(log_weight)
    exact = ConcentrationCurve(target=target, unit=unit).concentration(weight)
    published = ConcentrationCurve(target=target, unit=unit, accounting="published").concentration(weight)
    assert exact <= published * (1 + 1e-9)


def test_the_curve_tends_to_gaussian_noise_and_lies_half_a_record_below_it():
    target = RDP(order=5, epsilon=0.5)
    curve = ConcentrationCurve(target=target, unit=REPLACE)
    for weight in (100, 1000, 1e5):
        assert curve.concentration(weight) / weight**2 == pytest.approx(5 / 0.5 - 0.5 / weight, abs=0.1 / weight)
    assert calibrate(gaussian_noise(REPLACE), target).sigma ** 2 == pytest.approx(5 / 0.5, rel=1e-6)


def test_an_estimate_is_tuned_within_a_hundredth_of_the_gaussian_noise():
    target = ApproxDP(epsilon=1, delta=1e-6)
    made = ConcentrationCurve(target=target, unit=REPLACE, releases=21).best(purpose="estimate", records=5000)
    sigma = calibrate(gaussian_noise(REPLACE), target, times=21).sigma
    noise_at_most = (made.weight * 5000 + made.concentration) / made.weight**2
    assert noise_at_most <= 1.02 * sigma**2


@pytest.mark.parametrize("cells", [2, 10, 500])
def test_the_draw_is_tuned_to_the_least_worst_case(cells):
    curve = ConcentrationCurve(target=RDP(order=5, epsilon=1), unit=REPLACE)
    chosen = curve.best(cells=cells, records=2000)

    def worst(made):
        return worst_expected_kl(cells=cells, records=2000, weight=made.weight, concentration=made.concentration)

    others = [worst(curve.at(weight)) for weight in np.geomspace(0.01, 100, 30)]
    assert worst(chosen) <= 1.01 * min(others)


def test_a_public_lower_bound_on_counts_lowers_the_concentration():
    plain = ConcentrationCurve(target=RDP(order=5, epsilon=1), unit=REPLACE).concentration(1.0)
    bounded = ConcentrationCurve(target=RDP(order=5, epsilon=1), unit=REPLACE, least_count=3).concentration(1.0)
    assert bounded == pytest.approx(plain - 3.0, rel=1e-6)


@pytest.mark.parametrize("target", [ZCDP(rho=0.5), PureDP(epsilon=1)])
def test_an_unbounded_loss_meets_no_pure_or_zero_concentrated_target(target):
    with pytest.raises(TargetUnreachable, match="Ask for"):
        ConcentrationCurve(target=target, unit=REPLACE).best()
    with pytest.raises(TargetUnreachable):
        calibrate(dirichlet_at_weight(1.0, REPLACE), target)


def test_what_is_released_alongside_leaves_less_for_the_rest():
    target, other = ApproxDP(epsilon=1, delta=1e-6), Cost.of(Gaussian(sigma=20, unit=REPLACE), 3)
    alone = ConcentrationCurve(target=target, unit=REPLACE, releases=2).at(1.0)
    beside = ConcentrationCurve(target=target, unit=REPLACE, releases=2, alongside=other).at(1.0)
    assert beside.concentration > alone.concentration
    assert -1e-9 <= target.gap(other + Cost.of(beside, 2)) <= 0


@pytest.mark.parametrize(
    "family", [dirichlet_at_weight(1.0, REPLACE), gaussian_noise(REPLACE), laplace_noise(REPLACE)], ids=lambda f: f.name
)
def test_tables_of_several_sizes_land_on_their_target_together(family):
    target, beside = ApproxDP(epsilon=2, delta=1e-6), (Laplace(scale=5, unit=REPLACE),)
    made = calibrate_together(family, [1.0, 1.5, 4.0], target, alongside=beside)
    assert -1e-9 <= target.gap(Cost.total((*made, *beside))) <= 0


def test_published_parameters_cost_less_than_they_promise():
    for target in (RDP(order=5, epsilon=1), ApproxDP(epsilon=1, delta=1e-5), TCDP(rho=0.2, omega=8)):
        made = published_dirichlet(target, REPLACE, releases=4)
        assert target.gap(Cost.of(made, 4)) < 0
        assert target.gap(Cost.of(made.published(), 4)) <= 1e-9


@pytest.mark.parametrize("unit", [REPLACE, ADD, Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=2)])
@pytest.mark.parametrize("releases", [1, 3])
@pytest.mark.parametrize(
    "target",
    [
        PureDP(epsilon=1),
        ApproxDP(epsilon=1, delta=1e-6),
        RDP(order=5, epsilon=1),
        ZCDP(rho=0.5),
        TCDP(rho=0.2, omega=9),
    ],
    ids=str,
)
def test_pseudo_records_meet_every_notion_of_privacy_and_nearly_so(target, releases, unit):
    made = PseudoRecordsCurve(target=target, unit=unit, drawn=40, releases=releases).at(0.3)
    assert -1e-9 <= target.gap(Cost.of(made, releases)) <= 0
    assert made.records == 40


def test_fewer_pseudo_records_need_less_concentration():
    found = [
        PseudoRecordsCurve(target=PureDP(epsilon=1), unit=REPLACE, drawn=drawn).at(1.0).concentration
        for drawn in (1, 10, 1000, 10**7)
    ]
    assert found == pytest.approx([drawn / math.expm1(1.0) for drawn in (1, 10, 1000, 10**7)], rel=1e-8)


@pytest.mark.parametrize("target", [PureDP(epsilon=1), ApproxDP(epsilon=0.5, delta=1e-6)])
def test_the_weight_of_pseudo_records_is_near_the_least_worst_case(target):
    curve = PseudoRecordsCurve(target=target, unit=REPLACE, drawn=200)
    chosen = curve.best(cells=8, records=2000)

    def worst(made):
        return worst_expected_kl(cells=8, records=2000, weight=made.weight, concentration=made.concentration)

    others = [worst(curve.at(weight, tolerance=1e-3)) for weight in np.geomspace(0.003, 10, 20)]
    assert worst(chosen) <= 1.15 * min(others)


@pytest.mark.parametrize("bad", [{"purpose": "guess"}, {"cells": 0}, {"records": 0.5}])
def test_wrong_purposes_are_refused_in_one_sentence(bad):
    with pytest.raises(InvalidArgument, match="expected"):
        ConcentrationCurve(target=RDP(order=5, epsilon=1), unit=REPLACE).best(**bad)


# -- several draws under one target -----------------------------------------------------------------------------------

TABLES = [(1, 4), (2, 3), (2, 12), (2, 3), (10, 17)]


@pytest.mark.parametrize(
    "target", [RDP(order=5, epsilon=0.3), ApproxDP(epsilon=1.0, delta=1e-6), TCDP(rho=0.05, omega=6.0)], ids=str
)
def test_draws_of_many_tables_just_meet_their_target_together(target) -> None:
    made = dirichlet_draws(target, REPLACE, tables=TABLES, records=5000)
    gap = target.gap(Cost.total(made))
    assert -1e-6 * target.size <= gap <= 0
    assert made[1] == made[3]
    assert len(set(made)) == 4


def test_the_weight_of_a_draw_is_the_best_for_a_zipf_row_of_its_size() -> None:
    target = RDP(order=5, epsilon=0.4)
    parts = (1.0, 3.0)
    for (rows, width), part, made in zip(
        [(2, 30), (4, 6)],
        parts,
        dirichlet_draws(target, REPLACE, tables=[(2, 30), (4, 6)], records=2000, parts=parts),
        strict=True,
    ):
        share = RDP(order=5, epsilon=0.4 * part / sum(parts))
        curve = ConcentrationCurve(target=share, unit=REPLACE)
        p = 1.0 / np.arange(1, width + 1)

        shares = p / p.sum()

        def loss(weight: float, curve=curve, p=shares, rows=rows) -> float:
            alpha = curve.concentration(weight)
            return expected_kl(p, records=2000 / rows, weight=weight, concentration=alpha)

        assert made.renyi(5.0) == pytest.approx(share.epsilon, rel=1e-2)
        grid = [loss(made.weight * factor) for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)]
        assert loss(made.weight) <= min(grid)


def test_what_else_is_bought_leaves_less_for_draws() -> None:
    target, beside = ApproxDP(epsilon=1.0, delta=1e-6), Laplace(scale=8.0, unit=REPLACE)
    alone = dirichlet_draws(target, REPLACE, tables=TABLES, records=5000)
    less = dirichlet_draws(target, REPLACE, tables=TABLES, records=5000, alongside=[beside])
    assert target.gap(Cost.total([*less, beside])) <= 0
    assert Cost.total(less).epsilon(1e-6) < Cost.total(alone).epsilon(1e-6)


def test_zipf_shares_fall_like_one_over_the_rank() -> None:
    assert zipf(4)[0] / zipf(4)[3] == pytest.approx(4.0)
    assert zipf(1).size == 2  # a row of one cell is drawn as a row of two


@pytest.mark.parametrize(("bottom", "expected"), [(0.3, 0.3), (10.0, 1.0), (-10.0, 0.0)])
def test_the_bottom_of_a_valley_is_found_and_never_looked_for_outside_the_range(bottom: float, expected: float) -> None:
    looked: list[float] = []

    def valley(x: float) -> float:
        looked.append(x)
        return (x - bottom) ** 2

    assert _minimum(valley, 0.0, 1.0) == pytest.approx(expected, abs=1e-12)
    assert 0.0 <= min(looked) <= max(looked) <= 1.0
