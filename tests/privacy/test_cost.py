"""Composition: what several releases cost together."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy import reference

from dpbayes import Cost, Dirichlet, Gaussian, Laplace, Unit
from dpbayes.base.errors import InvalidArgument, UnitMismatch
from dpbayes.mechanisms import PseudoRecords, Stated
from dpbayes.mechanisms.stated import StatedRDP
from dpbayes.privacy import AdaptiveDP
from dpbayes.privacy.convert import renyi_to_epsilon
from dpbayes.privacy.cost import Priced, _BesidePure
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)
units = st.sampled_from([REPLACE, CHANGE])


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


def mechanisms(unit: Unit) -> st.SearchStrategy[Priced]:
    weights, concentrations = powers(-1.5, 1), powers(0, 3)
    return st.one_of(
        st.builds(Dirichlet, weight=weights, concentration=concentrations, unit=st.just(unit)),
        st.builds(
            Dirichlet, weight=weights, concentration=st.tuples(concentrations, concentrations), unit=st.just(unit)
        ),
        st.builds(Gaussian, sigma=powers(0, 1.5), unit=st.just(unit)),
        st.builds(Laplace, scale=powers(0, 2), unit=st.just(unit)),
        st.builds(
            Stated,
            epsilon_stated=st.floats(0.05, 1),
            delta_stated=st.sampled_from([0.0, 1e-9]),
            unit=st.just(unit),
            what=st.just("elsewhere"),
        ),
    )


mixes = units.flatmap(lambda unit: st.lists(st.tuples(mechanisms(unit), st.integers(1, 6)), min_size=1, max_size=3))


def total(mix: list[tuple[Priced, int]]) -> Cost:
    costs = [Cost.of(mechanism, times) for mechanism, times in mix]
    return sum(costs[1:], costs[0])


@given(mixes, st.integers(1, 9))
@settings(max_examples=40)
def test_repeating_a_cost_is_adding_it_again_and_again(mix: list[tuple[Priced, int]], times: int) -> None:
    cost = total(mix)
    summed = cost
    for _ in range(times - 1):
        summed = summed + cost
    assert dict(summed.entries) == dict((cost * times).entries)
    assert (cost * times).releases == times * cost.releases
    for order in (1.5, 3.0, math.inf):
        assert (cost * times).renyi(order) == pytest.approx(times * cost.renyi(order), rel=1e-12)


@given(mixes)
@settings(max_examples=40)
def test_divergences_and_concentrated_costs_add(mix: list[tuple[Priced, int]]) -> None:
    cost = total(mix)
    for order in (1.01, 2.0, 7.0, math.inf):
        parts = [times * mechanism.renyi(order) for mechanism, times in mix]
        assert cost.renyi(order) == pytest.approx(math.fsum(parts), rel=1e-12)
        parts = [times * mechanism.concentrated(order) for mechanism, times in mix]
        assert cost.concentrated(order) == pytest.approx(math.fsum(parts), rel=1e-12)


@given(mixes)
@settings(max_examples=10)
def test_epsilon_falls_with_delta_and_delta_with_epsilon_and_both_tell_the_same_story(
    mix: list[tuple[Priced, int]],
) -> None:
    cost = total(mix)
    deltas = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.3]
    epsilons = [cost.epsilon(delta) for delta in deltas]
    assert all(a >= b for a, b in itertools.pairwise(epsilons))
    told = [(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=True) if math.isfinite(epsilon)]
    spent = [cost.delta(epsilon) for epsilon, _ in told]
    assert all(a <= b for a, b in itertools.pairwise(spent))
    for (epsilon, delta), found in zip(told, spent, strict=True):
        assert epsilon == 0 or found <= delta * (1 + 1e-6)


@given(mixes, st.data())
@settings(max_examples=10)
def test_adding_a_release_never_lowers_any_cost(mix: list[tuple[Priced, int]], data: st.DataObject) -> None:
    cost = total(mix)
    more = cost + Cost.of(data.draw(mechanisms(cost.unit)))
    for order in (1.1, 2.0, 5.0, math.inf):
        assert more.renyi(order) >= cost.renyi(order)
        assert more.concentrated(order) >= cost.concentrated(order)
    for delta in (1e-9, 1e-6, 1e-3):
        # the common discretisation may be finer than before: it is worth less than a thousandth
        assert more.epsilon(delta) >= cost.epsilon(delta) * (1 - 1e-3) - 1e-9


@given(mixes)
@settings(max_examples=6)
def test_the_reported_epsilon_is_the_least_of_all_accountings(mix: list[tuple[Priced, int]]) -> None:
    cost = total(mix)
    for delta in (1e-9, 1e-5):
        found = cost.epsilons(delta)
        assert cost.epsilon(delta) <= min(found.values()) * (1 + 2e-3) + 1e-12
        assert found["renyi"] == renyi_to_epsilon(
            cost.renyi_epsilon(delta)[0], cost.renyi(cost.renyi_epsilon(delta)[0]), delta
        )


dirichlets = units.flatmap(
    lambda unit: st.lists(
        st.tuples(
            st.builds(
                Dirichlet,
                weight=powers(-1.5, 1),
                concentration=st.one_of(powers(0, 3), st.tuples(powers(0, 3), powers(0, 3))),
                unit=st.just(unit),
                least_count=st.integers(0, 3),
            ),
            st.integers(1, 8),
        ),
        min_size=1,
        max_size=3,
    )
)


@given(dirichlets, st.floats(-14, -1))
@settings(max_examples=10)
def test_exact_accounting_of_a_mixture_is_never_worse_than_published(
    mix: list[tuple[Dirichlet, int]], log_delta: float
) -> None:
    exact = total(mix)
    published = total([(mechanism.published(), times) for mechanism, times in mix])
    for order in (1.01, 1.5, 2.0, 10.0):
        assert exact.renyi(order) <= published.renyi(order) * (1 + 3e-12)
        assert exact.concentrated(order) <= published.concentrated(order) * (1 + 3e-12)
    assert exact.epsilon(10.0**log_delta) <= published.epsilon(10.0**log_delta) * (1 + 1e-9)
    for epsilon in (0.1, 1.0, 5.0):
        assert exact.delta(epsilon) <= published.delta(epsilon) * (1 + 1e-9)


@given(units, powers(-1.5, 1), powers(-0.5, 4), st.integers(0, 4), st.floats(-60, -1))
@settings(max_examples=60)
def test_exact_accounting_of_one_release_is_never_worse_than_published(
    unit: Unit, weight: float, concentration: float, least: int, log_delta: float
) -> None:
    exact = Dirichlet(weight=weight, concentration=concentration, unit=unit, least_count=least)
    published = exact.published()
    limit = 1.0 + (concentration + weight * least) / weight
    for order in (1.0001, 1 + 0.3 * (limit - 1), 1 + 0.9 * (limit - 1), limit + 1):
        assert exact.renyi(order) <= published.renyi(order) * (1 + 3e-12)
    assert exact.epsilon(10.0**log_delta) <= published.epsilon(10.0**log_delta)
    for epsilon in (0.0, 0.1, 1.0, 10.0):
        assert exact.delta(epsilon) <= published.delta(epsilon)


@pytest.mark.parametrize("times", [2, 5, 13])
@pytest.mark.parametrize(("weight", "concentration"), [(1.0, 10.0), (0.2, 5.0), (2.0, 3.0)])
def test_composed_replacements_lie_between_an_optimistic_and_a_pessimistic_count(
    weight: float, concentration: float, times: int
) -> None:
    cost = Cost.of(Dirichlet(weight=weight, concentration=concentration, unit=REPLACE), times)
    loss = reference.replaced_loss(weight, concentration, concentration, points=40001)
    spread = math.sqrt(np.cov(loss[0], aweights=loss[1]))
    epsilon = cost.epsilon(1e-5)
    assert reference.optimistic_delta(loss, times, 0.002 * spread, epsilon) <= 1e-5
    assert reference.optimistic_delta(loss, times, 0.002 * spread, 0.99 * epsilon) > 1e-5


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize(("weight", "concentration"), [(1.0, 6.0), (0.5, 2.0)])
def test_composed_additions_and_removals_are_both_covered_and_the_worse_is_not_exceeded(
    weight: float, concentration: float, times: int
) -> None:
    cost = Cost.of(Dirichlet(weight=weight, concentration=concentration, unit=CHANGE), times)
    losses = [reference.changed_loss(weight, concentration, added=added, points=40001) for added in (True, False)]
    step = 0.002 * math.sqrt(np.cov(losses[0][0], aweights=losses[0][1]))
    epsilon = cost.epsilon(1e-5)
    spent = [reference.optimistic_delta(loss, times, step, epsilon) for loss in losses]
    assert max(spent) <= 1e-5
    assert spent[1] > 1.5 * spent[0]  # to remove costs more than to add: the directions differ
    assert max(reference.optimistic_delta(loss, times, step, 0.99 * epsilon) for loss in losses) > 1e-5


@pytest.mark.parametrize(("weight", "small", "large"), [(1.0, 0.5, 3.0), (1.0, 2.0, 40.0), (0.3, 0.4, 0.9)])
def test_a_replaced_record_may_move_one_way_in_one_table_and_the_other_way_in_the_next(
    weight: float, small: float, large: float
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=(small, large, 2 * large), unit=REPLACE)
    gains, loses = (reference.replaced_loss(weight, *cells, points=20001) for cells in ((small, large), (large, small)))
    cost = Cost.of(mechanism, 2)
    for delta in (1e-2, 1e-4, 1e-7):
        epsilon = cost.epsilon(delta)
        together = [reference.joint_delta(one, other, epsilon) for one in (gains, loses) for other in (gains, loses)]
        assert max(together) <= delta * (1 + 1e-6)
    # the profile is the larger of two at every ε, and the worst mix comes close to it
    assert max(together) >= 0.5 * delta


@pytest.mark.parametrize("concentration", [(0.05, 0.06), (0.05, 30.0)])
def test_losses_too_large_for_an_exponential_are_composed_all_the_same(concentration: tuple[float, float]) -> None:
    mechanism = Dirichlet(weight=1.0, concentration=concentration, unit=REPLACE)
    single, double = Cost.of(mechanism).epsilon(1e-5), Cost.of(mechanism, 2).epsilon(1e-5)
    assert single < double < 2 * single


def test_almost_equal_concentrations_cost_almost_the_same() -> None:
    equal = Cost.of(Dirichlet(weight=3.0, concentration=0.15, unit=REPLACE), 3)
    unequal = Cost.of(Dirichlet(weight=3.0, concentration=(0.15, 0.15 + 1e-9), unit=REPLACE), 3)
    assert unequal.epsilon(1e-5) == pytest.approx(equal.epsilon(1e-5), rel=1e-6)


def test_very_weak_noise_composes() -> None:
    cost = Cost.of(Laplace(scale=1e9, unit=CHANGE), 1000)
    assert cost.epsilon(1e-6) == 0.0
    assert 0 < cost.delta(0.0) < 1e-6


def test_the_interval_makes_the_discretisation_small_and_follows_the_parameters_smoothly() -> None:
    costs = [Cost.of(Dirichlet(weight=1.0, concentration=10.0 * (1 + 1e-9 * i), unit=REPLACE), 30) for i in range(3)]
    steps = np.diff([cost.interval for cost in costs])
    assert (np.abs(steps) < 1e-6 * costs[0].interval).all()
    deviation = math.sqrt(30 * 2 * costs[0].entries[0][0].renyi(1.001))
    assert costs[0].interval < deviation / 50


def test_one_release_is_priced_exactly_by_its_mechanism() -> None:
    mechanism = Dirichlet(weight=1.0, concentration=7.0, unit=REPLACE)
    assert Cost.of(mechanism).epsilon(1e-7) == mechanism.epsilon(1e-7)
    assert Cost.of(mechanism).delta(0.5) == mechanism.delta(0.5)
    assert Cost.of(mechanism).epsilons(1e-7)["exact"] == mechanism.epsilon(1e-7)


def test_nothing_costs_nothing() -> None:
    nothing = Cost(unit=REPLACE)
    assert nothing.epsilon(1e-6) == nothing.delta(0.0) == nothing.renyi(3.0) == nothing.concentrated(2.0) == 0.0
    cost = Cost.of(Gaussian(sigma=2.0, unit=REPLACE))
    assert (nothing + cost) == cost


def test_different_units_do_not_add() -> None:
    with pytest.raises(UnitMismatch, match="add-remove"):
        Cost.of(Gaussian(sigma=2.0, unit=REPLACE)) + Cost.of(Gaussian(sigma=2.0, unit=CHANGE))
    with pytest.raises(UnitMismatch, match="at most 2 rows"):
        Cost.of(Gaussian(sigma=2.0, unit=REPLACE)) + Cost.of(
            Gaussian(sigma=2.0, unit=Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=2))
        )


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "3", None, math.nan])
def test_repetitions_are_whole_and_positive(bad: object) -> None:
    cost = Cost.of(Gaussian(sigma=2.0, unit=REPLACE))
    with pytest.raises(InvalidArgument, match="times"):
        cost * bad
    with pytest.raises(InvalidArgument, match="times"):
        Cost.of(Gaussian(sigma=2.0, unit=REPLACE), bad)


def test_a_total_needs_at_least_one_mechanism() -> None:
    with pytest.raises(InvalidArgument, match="at least one"):
        Cost.total([])
    assert Cost.total([Gaussian(sigma=2.0, unit=REPLACE)] * 3).releases == 3


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-9, math.nan, True, "1e-6", None])
def test_deltas_are_checked(bad: object) -> None:
    cost = Cost.of(Gaussian(sigma=2.0, unit=REPLACE), 2)
    for ask in (cost.epsilon, cost.epsilons):
        with pytest.raises(InvalidArgument, match="delta"):
            ask(bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", None])
def test_epsilons_are_checked(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        Cost.of(Gaussian(sigma=2.0, unit=REPLACE), 2).delta(bad)


def test_a_statement_with_a_delta_has_no_epsilon_below_it() -> None:
    stated = Stated(epsilon_stated=0.5, delta_stated=1e-6, unit=REPLACE, what="a survey")
    cost = Cost.of(stated, 2)
    assert cost.epsilon(1e-7) == math.inf
    assert cost.epsilon(1e-5) == pytest.approx(1.0, rel=2e-2)
    assert cost.epsilon(1e-5) <= 1.0 + cost.interval


def _mix(rng: np.random.Generator, unit: Unit) -> list[Cost]:
    """A few charges of all kinds."""
    makers = [
        lambda z: Stated(epsilon_stated=0.05 * z, delta_stated=float(rng.choice([0, 1e-9, 1e-8])), unit=unit, what="x"),
        lambda z: Laplace(scale=30 / z, unit=unit),
        lambda z: Gaussian(sigma=20 / z, unit=unit),
        lambda z: Dirichlet(weight=0.1 * z, concentration=8.0, unit=unit),
        lambda z: PseudoRecords(weight=0.1 * z, concentration=4.0, records=int(rng.integers(1, 99)), unit=unit),
        lambda z: StatedRDP(order=float(rng.choice([3, 8, 32])), epsilon_stated=0.01 * z, unit=unit, what="y"),
    ]
    chosen = [
        makers[number](float(np.exp(rng.normal()))) for number in rng.integers(len(makers), size=rng.integers(1, 4))
    ]
    return [Cost.of(each, int(rng.integers(1, 3))) for each in chosen]


def _admitted_mixes_keep_their_price(seed: int, many: int) -> int:
    rng, admitted = np.random.default_rng(seed), 0
    for number in range(many):
        unit = Unit(adjacency=["add-remove", "replace-one"][number % 2])
        charges = _mix(rng, unit)
        together = sum(charges[1:], charges[0])
        for rule in ("gaussian", "renyi"):
            for epsilon in (0.3, 1.0, 3.0):
                limit = AdaptiveDP(epsilon=epsilon, delta=1e-6, rule=rule)
                if limit.used(charges) <= 1:
                    admitted += 1
                    assert together.delta(epsilon) <= 1e-6, (rule, epsilon, together)
                    break  # the tightest limit that admits them
    return admitted


def test_the_price_of_charges_never_contradicts_the_limit_that_admitted_them() -> None:
    assert _admitted_mixes_keep_their_price(1, 10) >= 6


@pytest.mark.slow
def test_the_price_of_many_mixes_never_contradicts_the_limit_that_admitted_them() -> None:
    assert _admitted_mixes_keep_their_price(2, 400) >= 200


@pytest.mark.parametrize(("one", "other"), [(0.22, 0.22), (0.1, 0.2), (0.3, 0.41)])
def test_statements_that_add_up_to_epsilon_cost_their_deltas(one: float, other: float) -> None:
    """Losses need not fall on the multiples of an interval: a sum of two is not a little above it."""
    unit = Unit(adjacency="add-remove")
    made = [Stated(epsilon_stated=each, delta_stated=1e-8, unit=unit, what=str(each)) for each in (one, other)]
    cost = Cost.total(made)
    assert cost.delta(one + other) <= 2e-8 * (1 + 1e-7)
    assert cost.epsilon(2e-8) <= (one + other) * (1 + 1e-15)
    alike = Cost.of(Stated(epsilon_stated=one, delta_stated=0.1, unit=unit, what="x"), 2)
    assert alike.delta(2 * one) <= 0.2
    assert AdaptiveDP(epsilon=2 * one, delta=2.1e-8, slack=2e-8).used([Cost.of(each) for each in made]) <= max(
        1, (one + other) / (2 * one)
    ) * (1 + 1e-15)


def test_pseudo_records_beside_statements_are_priced_by_their_divergences_too() -> None:
    unit = Unit(adjacency="add-remove")
    records = PseudoRecords(weight=0.1, concentration=4.0, records=20, unit=unit)
    alone = Cost.of(records, 6)
    beside = alone + Cost.of(Stated(epsilon_stated=1e-9, delta_stated=1e-9, unit=unit, what="x"))
    for epsilon in (0.2, 0.4):
        assert beside.delta(epsilon) <= alone.delta(epsilon - 1e-9) * (1 + 1e-6) + 1.01e-9


@pytest.mark.parametrize(("epsilon", "beyond"), [(0.8, 1e-9), (0.3, 0.0), (1.5, 0.01)])
def test_beside_pure_releases_the_others_are_priced_at_what_is_left_of_epsilon(epsilon: float, beyond: float) -> None:
    """δ ≤ δ₀ + e^E·δ′(ε − E), and ε the other way round; below the pure ε nothing is promised."""
    other = Gaussian(sigma=4.0, unit=CHANGE)
    both = _BesidePure(Cost.of(Laplace(scale=10.0, unit=CHANGE), 2), Cost.of(other), beyond)
    delta = beyond + math.exp(0.2) * other.delta(epsilon - 0.2)
    assert delta * (1 - 1e-9) <= both.delta(epsilon) <= delta * (1 + 1e-6)
    least = 0.2 + other.epsilon((0.02 - beyond) * math.exp(-0.2))
    assert least * (1 - 1e-9) <= both.epsilon(0.02) <= least * (1 + 1e-6)
    assert both.delta(0.19) == 1.0
    assert both.epsilon(beyond) == math.inf
    assert both._replace(betrayed=0.999).delta(0.2) == 1.0
