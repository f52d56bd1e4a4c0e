"""Which mechanism releases a posterior, at what price, and when it is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpbayes import ApproxDP, Attribute, Laplace, PosteriorTable, PureDP, Schema, Unit
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.design.plan import Plan
from dpbayes.hellinger import calibration, candidates
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.inference.importance import chance_of_noise, error

UNIT = Unit(adjacency="replace-one")


def planned(cells: int, records: int, target: PureDP | ApproxDP, **options: object) -> Plan:
    levels = tuple("abcdefghijklmnop"[:cells])
    attribute = Attribute(name="x", categories=levels, unknown=levels[0], missing=levels[0])
    schema = Schema(id="people", unit=UNIT, records=records, attributes=(attribute,))
    return PosteriorTable(marginal="x", **options).plan(schema, target)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [PureDP(epsilon=0.8), ApproxDP(epsilon=0.8, delta=1e-8)])
def test_auto_takes_cut_noise_for_two_cells_and_noise_on_every_count_for_more(target: PureDP | ApproxDP) -> None:
    assert isinstance(planned(2, 98, target).paid[0].mechanism, PosteriorLaplace)
    for cells, records in ((3, 100), (16, 10_000)):
        plan = planned(cells, records, target)
        assert isinstance(plan.paid[0].mechanism, Laplace)
        assert plan.choice.startswith("auto: laplace noise on every count, by which a share is expected to be ")
        assert target.gap(plan.cost) <= 1e-9


def test_what_auto_takes_is_never_expected_to_be_worse_than_the_hellinger_mechanism() -> None:
    for cells, records, epsilon in ((2, 98, 0.2), (3, 60, 0.8), (4, 10_000, 4.0)):
        prior = (1.0,) * cells
        best = error(planned(cells, records, PureDP(epsilon=epsilon)).paid[0].mechanism, prior, records)  # type: ignore[arg-type]
        for made in (
            calibration.with_global(prior=prior, total=records, epsilon=epsilon, unit=UNIT),
            calibration.proved(prior=prior, total=records, epsilon=epsilon, delta=1e-8, unit=UNIT),
        ):
            assert best < error(made, prior, records)


@pytest.mark.parametrize("cells", [2, 3])
def test_the_largest_loss_over_all_neighbours_is_the_price(cells: int) -> None:
    mechanism = planned(cells, 2, PureDP(epsilon=0.7)).paid[0].mechanism
    tables = candidates.all_tables(2, cells)
    outcomes = tables if cells == 2 else np.array(list(product(range(-3, 6), repeat=cells)))

    def logs(table: np.ndarray) -> np.ndarray:
        if isinstance(mechanism, PosteriorLaplace):
            return np.log(mechanism.law(table)[1])
        return -np.abs(outcomes - table).sum(axis=1) / mechanism.scale  # type: ignore[attr-defined, no-any-return]

    pairs = [(one, two) for one in tables for two in tables if np.abs(one - two).sum() == 2]
    worst = max(np.abs(logs(one) - logs(two)).max() for one, two in pairs)
    assert worst == pytest.approx(0.7, rel=1e-9)
    assert mechanism.renyi(float("inf")) == pytest.approx(0.7, rel=1e-9)


@pytest.mark.parametrize(
    "unit", [Unit(adjacency="replace-one", max_rows=2), Unit(adjacency="replace-one", person="name")]
)
def test_a_unit_with_another_price_is_refused(unit: Unit) -> None:
    schema = Schema(id="p", unit=UNIT, records=9, attributes=(Attribute(name="x", categories=("a", "b")),))
    records = 9 if unit.person is None else None
    with pytest.raises(DpbayesError, match=r"one row per person|person column|records"):
        PosteriorTable(marginal="x").plan(replace(schema, unit=unit, records=records), PureDP(epsilon=1))  # type: ignore[arg-type]


def test_the_chance_of_noise_is_the_prior_average_of_the_uniform_part() -> None:
    """Figures of a prototype: 1 of 8 cells with 10,000 records, .09 and .74 of 98 records in two certified cells."""
    for epsilon, expected in ((0.8, 0.09), (0.2, 0.74)):
        made = calibration.certified(prior=(1.0, 1.0), total=98, epsilon=epsilon, unit=UNIT)
        assert chance_of_noise(made) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("option", ["mechanism", "calibration", "score"])
def test_an_unknown_choice_is_refused_and_never_taken_for_another(option: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"expected {option} to be one of .*, got 'foo'"):
        PosteriorTable(marginal="x", **{option: "foo"})


def test_a_posterior_without_estimates_is_announced_before_it_is_paid() -> None:
    made = planned(2, 98, PureDP(epsilon=0.8), mechanism="exponential", score="kl")
    assert "no estimates" in made.choice
    assert "no estimates" not in planned(2, 98, PureDP(epsilon=0.8), mechanism="laplace").choice


def test_mostly_noise_is_refused_unless_confirmed() -> None:
    target = ApproxDP(epsilon=0.8, delta=1e-8)
    with pytest.raises(InvalidArgument, match=r"probability 1, on average.*drawn at random.*even_if_noise"):
        planned(8, 10_000, target, mechanism="hellinger")
    assert "drawn at random" in planned(8, 10_000, target, mechanism="hellinger", even_if_noise=True).choice
    assert "probability 0.1, on" in planned(2, 98, target, mechanism="hellinger").choice
