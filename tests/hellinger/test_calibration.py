"""Calibrations meet their target, and certified ones pay off."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpbayes import ApproxDP, Cost, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import calibration
from dpbayes.hellinger.certificate import certify
from dpbayes.hellinger.distance import Laws, Rows
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.hellinger.promise import SmoothTail
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def expected(made: Hellinger, x: int) -> float:
    return Laws.of(made.prior, made.total, made.sharpness, made.smoothing).expected_distance((x, made.total - x))


def gains(total: int) -> list[float]:
    common = {"prior": (1.0, 1.0), "total": total, "epsilon": 0.8, "delta": 1e-8, "unit": UNIT}
    certified, published = calibration.certified(**common), calibration.published(**common)
    assert certified.renyi(math.inf) <= 0.8
    return [expected(published, x) / expected(certified, x) for x in (total // 2, total // 10)]


def test_a_certified_mechanism_is_nearer_by_a_factor_of_two_at_200_records() -> None:
    assert min(gains(200)) >= 1.8


@pytest.mark.slow
@pytest.mark.parametrize("total", [1000, 3000])
def test_a_certified_mechanism_is_nearer_by_a_factor_of_two(total: int) -> None:
    assert min(gains(total)) >= 1.8


@pytest.mark.parametrize(
    ("prior", "total"), [((1.0, 1.0), 60), ((0.5, 3.0), 40), ((1.0, 1.0, 1.0), 9), ((5.0, 1.0, 2.0), 7)]
)
def test_certified_mechanisms_just_meet_their_target(prior: tuple[float, ...], total: int) -> None:
    made = calibration.certified(prior=prior, total=total, epsilon=0.8, delta=1e-8, unit=UNIT)
    assert 0.79 <= made.renyi(math.inf) <= 0.8
    derived = certify(prior, total, sharpness=made.sharpness, smoothing=made.smoothing, delta=1e-8)
    assert made.certificate is not None
    assert replace(made.certificate, digest="", profile=(), divergences=()) == derived


@pytest.mark.parametrize(
    ("prior", "total"), [((1.0, 1.0), 98), ((1.0,) * 4, 10_000), ((0.5,) * 16, 100_000), ((50.0,) * 3, 15)]
)
def test_proved_mechanisms_meet_their_target(prior: tuple[float, ...], total: int) -> None:
    made = calibration.proved(prior=prior, total=total, epsilon=0.8, delta=1e-8, unit=UNIT)
    gap = ApproxDP(epsilon=0.8, delta=1e-8).gap(Cost.of(replace(made, certificate=None)))
    assert -2e-4 <= gap <= 1e-12  # the theorem's range of the loss gives a little more than its pure ε
    assert made.epsilon(1e-8) <= 0.8


def test_calibrations_never_look_at_the_data() -> None:
    common = {"prior": (1.0, 1.0), "total": 300, "epsilon": 0.8, "delta": 1e-8, "unit": UNIT}
    assert calibration.proved(**common) == calibration.proved(**common)
    assert calibration.references((1.0, 1.0), 300, None) == calibration.references((1.0, 1.0), 300, None)


def test_a_public_guess_changes_the_tuning() -> None:
    common = {"prior": (1.0, 1.0), "total": 3000, "epsilon": 0.8, "delta": 1e-8, "unit": UNIT}
    even = calibration.proved(**common, around=[(1500, 1500)])
    assert even.exponent([1500, 1500]) >= calibration.proved(**common).exponent([1500, 1500])


def test_a_mechanism_for_a_pure_target_needs_no_delta() -> None:
    made = calibration.certified(prior=(1.0, 1.0), total=20, epsilon=1.0, unit=UNIT)
    assert made.certificate is not None
    assert made.certificate.epsilon_at_delta == made.certificate.epsilon


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"total": 0}, "between 1"),
        ({"prior": (1.0, -2.0)}, "above 0"),
        ({"prior": (1.0,) * 6, "total": 10_000}, "proved"),
        ({"around": [(1, 2)]}, "declared total"),
        ({"around": []}, "at least one"),
        ({"unit": Unit(adjacency=Adjacency.ADD_REMOVE)}, "keeps private"),
    ],
)
def test_bad_targets_are_refused_with_a_reason(change: dict[str, object], sentence: str) -> None:
    common: dict[str, object] = {"prior": (1.0, 1.0), "total": 30, "epsilon": 0.8, "delta": 1e-8, "unit": UNIT}
    with pytest.raises(InvalidArgument, match=sentence):
        calibration.certified(**(common | change))


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "total"), [((1.0,) * 3, 60), ((1.0,) * 4, 20)])
def test_three_and_four_cells_are_certified(prior: tuple[float, ...], total: int) -> None:
    made = calibration.certified(prior=prior, total=total, epsilon=0.8, delta=1e-8, unit=UNIT)
    assert 0.79 <= made.renyi(math.inf) <= 0.8
    assert np.isfinite(made.exponent([total] + [0] * (len(prior) - 1)))


@pytest.mark.parametrize(
    ("prior", "table", "exponent"),
    [
        ((1.0, 1.0), (100, 100), 8.0),
        ((1.0, 1.0), (500, 500), 20.0),
        ((1.0, 1.0), (500, 500), 2.0),
        ((1.0, 1.0, 1.0), (30, 30, 30), 12.0),
        ((1.0, 1.0, 1.0), (30, 30, 30), 3.0),
        ((2.0, 2.0, 2.0, 2.0), (8, 8, 8, 8), 4.0),
    ],
)
def test_the_expected_distance_is_roughly_that_of_enumeration(
    prior: tuple[float, ...], table: tuple[int, ...], exponent: float
) -> None:
    rows = Rows(prior, sum(table))
    distances = rows.distances(table)
    weights = np.exp(-exponent * distances)
    assert calibration.expected_distance(prior, table, exponent) == pytest.approx(
        float(weights @ distances / weights.sum()), rel=0.3
    )


@pytest.mark.parametrize(
    ("prior", "table", "exponent"),
    [
        ((1.0, 1.0, 1.0), (30, 30, 30), 7.0),
        ((1.0, 1.0, 1.0), (60, 60, 60), 8.0),
        ((1.0,) * 4, (20, 20, 20, 20), 9.0),
        ((1.0,) * 5, (6, 6, 6, 6, 6), 9.0),
    ],
)
def test_where_near_and_far_candidates_weigh_alike_the_expected_distance_is_right_to_a_tenth(
    prior: tuple[float, ...], table: tuple[int, ...], exponent: float
) -> None:
    distances = Rows(prior, sum(table)).distances(table)
    weights = np.exp(-exponent * distances)
    exact = float(weights @ distances / weights.sum())
    assert calibration.expected_distance(prior, table, exponent) == pytest.approx(exact, rel=0.1)


def test_proved_mechanisms_are_nearer_than_the_tail_theorem_allows() -> None:
    """Expected H at pure ε = 0.8, averaged over the reference tables, against (0.8, 1e-8) by the tail alone."""
    made = calibration.proved(prior=(1.0, 1.0), total=200, epsilon=0.8, unit=UNIT)
    assert replace(made, certificate=None).renyi(math.inf) == pytest.approx(0.8, abs=1e-9)
    tables = calibration.references((1.0, 1.0), 200, None)
    laws = Laws.of(made.prior, 200, made.sharpness, made.smoothing)
    found = np.mean([laws.expected_distance(table) for table in tables])
    logs = math.log(201)
    by_tail = []
    for smoothing in np.geomspace(1e-4, 0.05, 12):
        left = 0.8 - SmoothTail(sharpness=0.0, smoothing=smoothing, log_candidates=logs).epsilon(1e-8)
        if left > 0:
            laws = Laws.of((1.0, 1.0), 200, left, smoothing)
            by_tail.append(np.mean([laws.expected_distance(table) for table in tables]))
    assert found <= 0.41
    assert min(by_tail) >= 1.5 * found


def test_a_proved_mechanism_never_needs_a_delta_it_was_not_given() -> None:
    for prior, total in (((1.0,) * 8, 10_000), ((0.5,) * 3, 50), ((30.0, 30.0), 20)):
        made = calibration.proved(prior=prior, total=total, epsilon=0.8, unit=UNIT)
        assert 0.8 * (1 - 1e-9) <= replace(made, certificate=None).renyi(math.inf) <= 0.8
