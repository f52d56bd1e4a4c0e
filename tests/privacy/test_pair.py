"""The dominating pair: every digit of its divergence and its profile, and never on the wrong side."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.privacy import reference
from tests.privacy.reference import relative_error

from dpbayes.privacy.pair import GammaPair, LogGammaLaw, LogitLaw, LossLaw

DELTAS = [0.3, 1e-2, 1e-5, 1e-12, 1e-40, 1e-100]
CASES = [
    (1.0, 2.0, 2.0),
    (1.0, 10.0, 10.0),
    (0.2, 5.0, 5.0),
    (1e-4, 1e-3, 1e-3),
    (1e3, 0.5, 0.5),
    (3.0, 1e8, 1e8),
    (1e3, 1e6, 1e6),
    (1.0, 0.5, 3.0),
    (0.7, 0.05, 400.0),
    (0.0007, 0.0043, 3.4e6),
    (2.0, 1e4, 1e8),
]


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


def both_orders(weight: float, first: float, second: float, order: float) -> mp.mpf:
    return max(
        reference.replaced_renyi(weight, first, second, order),
        reference.replaced_renyi(weight, second, first, order),
    )


def true_delta(pair: GammaPair, epsilon: float) -> mp.mpf:
    if pair.second is None:
        up = reference.added_delta(pair.weight, pair.first, epsilon)
        return max(up, reference.removed_delta(pair.weight, pair.first, epsilon))
    up = reference.replaced_delta(pair.weight, pair.first, pair.second, epsilon)
    if pair.first == pair.second:
        return up
    return max(up, reference.replaced_delta(pair.weight, pair.second, pair.first, epsilon))


@st.composite
def renyi_cases(draw: st.DrawFn) -> tuple[float, float, float]:
    """Weight, concentration and order over all the range, a third of them close to the last order."""
    weight, concentration = draw(powers(-4, 3)), draw(powers(-3, 12))
    order = 1.0 + 10.0 ** draw(st.floats(-4, 4))
    kind = draw(st.sampled_from(["any", "inside", "pole"]))
    if kind == "inside":
        order = 1.0 + concentration / weight * draw(st.floats(1e-3, 0.999))
    if kind == "pole":
        order = 1.0 + concentration / weight * (1.0 - 10.0 ** -draw(st.floats(1, 15)))
    assume(1.0001 <= order <= 1e4)
    return weight, concentration, order


@given(renyi_cases())
@settings(max_examples=300)
def test_the_divergence_of_a_replaced_record_has_ten_digits_and_is_never_below_the_truth(
    case: tuple[float, float, float],
) -> None:
    weight, concentration, order = case
    claim = GammaPair(weight=weight, first=concentration, second=concentration).renyi(order)
    truth = reference.replaced_renyi(weight, concentration, concentration, order)
    assert math.isinf(claim) == mp.isinf(truth)
    if math.isfinite(claim):
        assert 0 <= relative_error(claim, truth) <= 1e-10


@given(renyi_cases())
@settings(max_examples=200)
def test_the_divergence_of_an_added_or_removed_record_has_ten_digits_and_is_never_below_the_truth(
    case: tuple[float, float, float],
) -> None:
    weight, concentration, order = case
    claim = GammaPair(weight=weight, first=concentration, second=None).renyi(order)
    truth = max(
        reference.added_renyi(weight, concentration, order), reference.removed_renyi(weight, concentration, order)
    )
    assert math.isinf(claim) == mp.isinf(truth)
    if math.isfinite(claim):
        assert 0 <= relative_error(claim, truth) <= 1e-10


@given(renyi_cases(), st.floats(0, 4))
@settings(max_examples=200)
def test_the_divergence_of_unequal_cells_has_ten_digits_and_covers_both_orders(
    case: tuple[float, float, float], apart: float
) -> None:
    weight, concentration, order = case
    other = concentration * 10.0**apart
    claim = GammaPair(weight=weight, first=concentration, second=other).renyi(order)
    truth = both_orders(weight, concentration, other, order)
    assert math.isinf(claim) == mp.isinf(truth)
    if math.isfinite(claim):
        assert 0 <= relative_error(claim, truth) <= 1e-10


@pytest.mark.parametrize("second", [3.0, 4.0, None])
def test_the_divergence_is_infinite_from_the_last_order_on(second: float | None) -> None:
    pair = GammaPair(weight=0.5, first=3.0, second=second)  # last order 1 + 3/0.5 = 7
    assert math.isfinite(pair.renyi(math.nextafter(7.0, 0.0)))
    assert pair.renyi(7.0) == math.inf
    assert pair.renyi(1e9) == math.inf
    assert pair.renyi(math.inf) == math.inf


@given(powers(-3, 2), powers(-2, 6), st.floats(0, 3), st.sampled_from(["equal", "unequal", "changed"]))
def test_the_divergence_and_its_share_of_the_order_grow_with_the_order(
    weight: float, concentration: float, apart: float, kind: str
) -> None:
    second = {"equal": concentration, "unequal": concentration * 10.0**apart, "changed": None}[kind]
    pair = GammaPair(weight=weight, first=concentration, second=second)
    orders = [1.0 + concentration / weight * share for share in (0.001, 0.1, 0.3, 0.6, 0.9, 0.99, 0.9999)]
    divergences = [pair.renyi(order) for order in orders]
    ratios = [divergence / order for divergence, order in zip(divergences, orders, strict=True)]
    assert all(a <= b * (1 + 1e-13) for a, b in itertools.pairwise(divergences))
    assert all(a <= b * (1 + 1e-13) for a, b in itertools.pairwise(ratios))


@pytest.mark.parametrize(("weight", "first", "second"), CASES)
def test_the_profile_of_a_replaced_record_has_eight_digits_and_is_never_below_the_truth(
    weight: float, first: float, second: float
) -> None:
    pair = GammaPair(weight=weight, first=first, second=second)
    for delta in DELTAS if first < 1e8 else [1e-5, 1e-100]:  # the reference is slow near the mode of large shapes
        epsilon = pair.epsilon(delta)
        assert 0 <= relative_error(pair.delta(epsilon), true_delta(pair, epsilon)) <= 1e-8


@pytest.mark.parametrize(
    ("weight", "concentration"), [(1.0, 10.0), (0.1, 0.01), (1e3, 2.0), (1.0, 1e3), (1e-3, 1e5), (5.0, 1e8)]
)
def test_the_profile_of_an_added_or_removed_record_has_eight_digits_and_is_never_below_the_truth(
    weight: float, concentration: float
) -> None:
    pair = GammaPair(weight=weight, first=concentration, second=None)
    for delta in DELTAS if concentration < 1e8 else [1e-5, 1e-100]:
        epsilon = pair.epsilon(delta)
        assert 0 <= relative_error(pair.delta(epsilon), true_delta(pair, epsilon)) <= 1e-8


@given(
    powers(-4, 3), powers(-3, 4), st.floats(0, 3), st.floats(0.3, 100), st.sampled_from(["equal", "unequal", "changed"])
)
@settings(max_examples=60)
def test_profiles_are_right_for_any_parameters(
    weight: float, concentration: float, apart: float, digits: float, kind: str
) -> None:
    second = {"equal": concentration, "unequal": concentration * 10.0**apart, "changed": None}[kind]
    pair = GammaPair(weight=weight, first=concentration, second=second)
    epsilon = pair.epsilon(10.0**-digits)
    assert 0 <= relative_error(pair.delta(epsilon), true_delta(pair, epsilon)) <= 1e-8


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("second", [10.0, 25.0, None])
def test_the_epsilon_of_a_delta_is_just_on_the_private_side(delta: float, second: float | None) -> None:
    pair = GammaPair(weight=1.0, first=10.0, second=second)
    epsilon = pair.epsilon(delta)
    if epsilon == 0:
        assert pair.delta(0.0) <= delta
    else:
        assert true_delta(pair, epsilon) <= delta
        assert true_delta(pair, epsilon * (1 - 1e-9)) > delta


def test_a_delta_that_needs_no_epsilon_costs_none() -> None:
    assert GammaPair(weight=1.0, first=1e6, second=1e6).epsilon(0.5) == 0.0


@pytest.mark.parametrize("second", [10.0, 30.0, None])
def test_delta_falls_as_epsilon_grows(second: float | None) -> None:
    pair = GammaPair(weight=1.0, first=10.0, second=second)
    values = [pair.delta(epsilon) for epsilon in np.linspace(0.0, 12.0, 80)]
    assert all(a >= b for a, b in itertools.pairwise(values))


def test_laws_of_equal_cells_are_one_and_of_unequal_cells_two() -> None:
    assert len(GammaPair(weight=1.0, first=2.0, second=2.0).laws()) == 1
    assert len(GammaPair(weight=1.0, first=2.0, second=3.0).laws()) == 2
    assert len(GammaPair(weight=1.0, first=2.0, second=None).laws()) == 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_parameters_beyond_all_floats_hide_nothing() -> None:
    pair = GammaPair(weight=1e300, first=1e-300, second=1e-300)
    assert pair.delta(0.0) == pair.delta(1e6) == 1.0
    assert pair.epsilon(0.5) == math.inf


@pytest.mark.parametrize("share", [0.3, 0.05])
@pytest.mark.parametrize(
    ("weight", "first", "second"),
    [(1.0, 10.0, 10.0), (1.0, 1.0, 2.0), (1.0, 5.0, None), (0.5, 0.1, 100.0), (1.0, 1e6, 2e6), (1.0, 1e8, 1e8)],
)
def test_the_distribution_dominates_the_profile_at_every_multiple_and_agrees_with_it_there(
    weight: float, first: float, second: float | None, share: float
) -> None:
    pair = GammaPair(weight=weight, first=first, second=second)
    divergence = pair.renyi(1.001)
    interval = share * (math.sqrt(2 * divergence) if math.isfinite(divergence) else 1.0)
    pld = pair.pld(interval)
    for index in np.unique(np.geomspace(1, pair.epsilon(1e-15) / interval, 15).astype(int)) - 1:
        made, exact = float(pld.delta(index * interval)), pair.delta(index * interval)
        assert made >= exact * (1 - 1e-9)
        assert made <= exact * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("first", "second"), [(4.0, 4.0), (2.0, 9.0), (4.0, None)])
def test_the_distribution_dominates_between_the_multiples_and_converges(first: float, second: float | None) -> None:
    pair = GammaPair(weight=1.0, first=first, second=second)
    excess = []
    for interval in (0.4, 0.1, 0.025):
        pld = pair.pld(interval)
        points = (np.arange(12) + 0.37) * 0.4
        made = np.array([float(pld.delta(epsilon)) for epsilon in points])
        exact = np.array([pair.delta(epsilon) for epsilon in points])
        assert (made >= exact * (1 - 1e-9)).all()
        excess.append((made / exact).max() - 1)
    assert excess[0] > 8 * excess[1] > 64 * excess[2]


@pytest.mark.parametrize(("first", "second"), [(4.0, 4.0), (2.0, 9.0), (4.0, None), (0.05, 0.06)])
def test_the_masses_of_the_distribution_sum_to_one(first: float, second: float | None) -> None:
    pld = GammaPair(weight=1.0, first=first, second=second).pld(0.25)
    for _, masses, infinity in pld.directions:
        assert masses.min() >= 0
        assert masses.sum() + infinity == pytest.approx(1.0, abs=1e-9)


LAWS = [
    law
    for pair in (
        GammaPair(weight=1.0, first=5.0, second=5.0),
        GammaPair(weight=2.0, first=0.01, second=0.01),
        GammaPair(weight=0.3, first=0.02, second=5e5),
        GammaPair(weight=1.0, first=40.0, second=None),
        GammaPair(weight=1.0, first=0.05, second=None),
        GammaPair(weight=1.0, first=1e7, second=1e7),
    )
    for law in pair.laws()
]


def statistic(law: LossLaw) -> tuple[stats.rv_continuous, float, float]:
    """The law of the statistic, the sign with which y follows it, and where its mode lies."""
    if isinstance(law, LogitLaw):
        return stats.betaprime(law.rise, law.fall), 1.0, math.log(law.rise / law.fall)
    assert isinstance(law, LogGammaLaw)
    return stats.gamma(law.shape), 1.0 if law.rising else -1.0, math.log(law.shape)


@pytest.mark.parametrize("law", LAWS)
def test_probabilities_of_the_loss_are_those_of_the_beta_or_gamma_variable(law: LossLaw) -> None:
    distribution, sign, mode = statistic(law)
    for level in (1e-12, 1e-4, 0.1, 0.5, 0.9, 1 - 1e-6):
        at = float(np.log(distribution.ppf(level)))
        if not abs(at) < 700:  # a quantile that no float can hold
            continue
        y = sign * (at - mode)
        losses, masses = law.nodes(np.array([law.at_mode + law.weight * y]))
        below = masses[losses <= law.at_mode + law.weight * y].sum()
        assert (below if sign > 0 else 1.0 - below) == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("law", [law for law in LAWS if law.nodes(np.zeros(0))[0].min() > -700])
def test_the_loss_is_the_logarithm_of_two_densities_so_its_exponential_has_mean_one_under_the_other_law(
    law: LossLaw,
) -> None:
    losses, masses = law.nodes(np.array([0.0]))
    assert (masses * np.exp(-losses)).sum() == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("law", LAWS)
def test_depth_is_zero_at_the_mode_and_grows_away_from_it(law: LossLaw) -> None:
    left, right = law.reach(np.array([0.5, 5.0, 50.0, 800.0]))
    y = np.concatenate([-left[::-1], [0.0], right])
    depth = law.depth(y)
    assert depth[4] == 0.0
    assert (np.diff(depth[:5]) < 0).all()
    assert (np.diff(depth[4:]) > 0).all()


@pytest.mark.parametrize("law", LAWS)
def test_the_reach_comes_near_the_depth_it_is_asked_for(law: LossLaw) -> None:
    levels = np.array([0.1, 1.0, 10.0, 100.0, 800.0])
    for y in (-law.reach(levels)[0], law.reach(levels)[1]):
        assert (law.depth(y) >= 0.3 * levels).all()
    assert law.depth(-law.reach(levels)[0])[-1] > 745 * 0.9  # nothing a float could hold is cut


@pytest.mark.parametrize("law", LAWS)
def test_masses_keep_all_probability(law: LossLaw) -> None:
    interval = 0.2 * math.sqrt(np.cov(law.nodes(np.zeros(0))[0], aweights=law.nodes(np.zeros(0))[1]))
    _, probabilities, infinity = law.masses(interval)
    assert probabilities.min() >= 0
    assert probabilities.sum() + infinity == pytest.approx(1.0, abs=1e-12)
    assert infinity < 1e-19
