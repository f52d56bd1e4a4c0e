"""Conversions between notions of privacy."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbayes import Gaussian, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import (
    ULPS,
    Corners,
    best_order,
    exact_parts,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    renyi_to_delta,
    renyi_to_epsilon,
    safe_root,
    tcdp_to_epsilon,
)
from dpbayes.schema import Adjacency

orders = st.floats(1.01, 1e4)
divergences = st.floats(1e-6, 50)


def exact_delta(mu: float, epsilon: float) -> float:
    """The exact profile of a Gaussian mechanism, whose divergence is ½·λ·μ²."""
    tail = stats.norm.logsf(epsilon / mu - mu / 2), epsilon + stats.norm.logsf(epsilon / mu + mu / 2)
    return float(math.exp(tail[0]) - math.exp(tail[1]))


@given(orders, divergences, st.floats(1e-12, 0.5))
def test_epsilon_and_delta_are_two_readings_of_one_formula(order: float, renyi: float, delta: float) -> None:
    epsilon = renyi_to_epsilon(order, renyi, delta)
    assert epsilon >= 0
    assert renyi_to_delta(order, renyi, epsilon) <= delta * (1 + 1e-9 * order)
    if epsilon > 0:
        assert renyi_to_delta(order, renyi, epsilon) == pytest.approx(delta, rel=1e-9 * order)


@given(st.floats(0.05, 5), st.floats(0, 20))
def test_the_conversion_never_claims_less_than_a_gaussian_mechanism_costs(mu: float, epsilon: float) -> None:
    best = min(renyi_to_delta(1 + x, 0.5 * (1 + x) * mu**2, epsilon) for x in (0.01, 0.1, 0.5, 1, 3, 10, 40, 200))
    assert best >= exact_delta(mu, epsilon)


@given(orders, divergences, st.floats(1e-12, 0.4))
def test_a_larger_delta_never_needs_a_larger_epsilon(order: float, renyi: float, delta: float) -> None:
    assert renyi_to_epsilon(order, renyi, 2 * delta) <= renyi_to_epsilon(order, renyi, delta)


def test_infinite_orders_and_divergences_have_their_plain_meaning() -> None:
    assert renyi_to_epsilon(math.inf, 0.7, 1e-6) == 0.7
    assert renyi_to_epsilon(2.0, math.inf, 1e-6) == math.inf
    assert renyi_to_delta(math.inf, 0.7, 0.7) == 0.0
    assert renyi_to_delta(math.inf, 0.7, 0.6) == 1.0
    assert renyi_to_delta(3.0, math.inf, 5.0) == 1.0


def test_delta_is_a_probability() -> None:
    assert renyi_to_delta(2.0, 100.0, 0.0) == 1.0
    assert 0.0 <= renyi_to_delta(1e6, 1.0, 1e4) < 1e-300


@given(st.floats(1e-6, 5), st.floats(1.01, 100), st.floats(1e-12, 0.5))
def test_the_tcdp_conversion_is_lemma_1_of_its_paper_and_joins_both_branches(
    rho: float, omega: float, delta: float
) -> None:
    depth = math.log(1 / delta)
    value = tcdp_to_epsilon(rho, omega, delta)
    near, far = rho + 2 * math.sqrt(rho * depth), rho * omega + depth / (omega - 1)
    assert value == pytest.approx(near if depth <= (omega - 1) ** 2 * rho else far, rel=1e-12)
    assert value <= far * (1 + 1e-12)
    assert value >= near * (1 - 1e-12)


def test_zcdp_is_tcdp_without_end() -> None:
    assert tcdp_to_epsilon(0.1, math.inf, 1e-5) == pytest.approx(0.1 + 2 * math.sqrt(0.1 * math.log(1e5)))
    assert tcdp_to_epsilon(math.inf, 2.0, 1e-5) == math.inf


@pytest.mark.parametrize("minimum", [1.0 + 1e-4, 1.5, 30.0, 1e6])
def test_the_best_order_is_found_over_ten_decades(minimum: float) -> None:
    found = best_order(lambda order: (math.log(order - 1) - math.log(minimum - 1)) ** 2)
    assert found - 1 == pytest.approx(minimum - 1, rel=1e-3)


def test_the_best_order_avoids_infinities() -> None:
    assert best_order(lambda order: math.inf if order > 4 else -order) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("bad", [1.0, 0.5, -2.0, math.nan, True, "two", None])
def test_orders_lie_above_one(bad: object) -> None:
    for convert in (renyi_to_epsilon, renyi_to_delta):
        with pytest.raises(InvalidArgument, match="order"):
            convert(bad, 0.1, 0.1)
    with pytest.raises(InvalidArgument, match="order"):
        tcdp_to_epsilon(0.1, bad, 0.1)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, math.nan, True, "1e-5", None])
def test_deltas_lie_between_zero_and_one(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="delta"):
        renyi_to_epsilon(2.0, 0.1, bad)
    with pytest.raises(InvalidArgument, match="delta"):
        tcdp_to_epsilon(0.1, 2.0, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1"])
def test_epsilons_are_finite_and_not_negative(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        renyi_to_delta(2.0, 0.1, bad)


def profile(mu: object, epsilon: object) -> mp.mpf:
    with mp.workdps(60):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@settings(deadline=None, max_examples=150)
@given(st.floats(-6, 1.5), st.floats(0, 30))
def test_the_profile_is_never_below_the_truth_and_within_a_billionth_of_it(exponent: float, steps: float) -> None:
    mu = 10.0**exponent
    epsilon = steps * mu
    truth = profile(mu, epsilon)
    assert truth <= gaussian_delta(mu, epsilon)
    if truth > mp.mpf(10) ** -290:
        assert gaussian_delta(mu, epsilon) <= truth * (1 + mp.mpf("2.1e-9"))


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 200.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-15])
def test_limits_are_rounded_to_the_private_side(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert delta * (1 - 1e-8) <= profile(mu, epsilon) <= delta
    back = gaussian_epsilon(mu, delta)
    assert profile(mu, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-8)


def discrete(sigma: float, span: int) -> list[mp.mpf]:
    """The discrete Gaussian law on −span … span."""
    weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-span, span + 1)]
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


def true_delta(sigma: float, shift: tuple[int, ...], epsilons: list[float]) -> list[mp.mpf]:
    """Σ (P − e^ε·Q)₊ over all outcomes of the cells that move, by enumeration in 30 digits."""
    with mp.workdps(30):
        span = math.ceil(9 * sigma) + max(map(abs, shift))
        law = discrete(sigma, span + 4)
        middle = span + 4
        found = [mp.mpf(0)] * len(epsilons)
        for noise in itertools.product(range(-span, span + 1), repeat=len(shift)):
            p = mp.fprod(law[middle + k] for k in noise)
            q = mp.fprod(
                law[middle + k + s] if abs(k + s) <= middle else mp.mpf(0) for k, s in zip(noise, shift, strict=True)
            )
            for place, epsilon in enumerate(epsilons):
                found[place] += max(p - mp.exp(mp.mpf(epsilon)) * q, 0)
        return found


@pytest.mark.parametrize("sigma", [0.4, 0.9, 2.0, 7.3])
def test_the_shift_of_discrete_gaussian_noise_covers_an_added_record_at_every_epsilon(sigma: float) -> None:
    mu, betrayed = Gaussian(sigma=sigma, unit=Unit(adjacency=Adjacency.ADD_REMOVE)).gdp()
    epsilons = [x * mu for x in np.linspace(0, 7, 57)]
    for epsilon, truth in zip(epsilons, true_delta(sigma, (1,), epsilons), strict=True):
        assert truth <= profile(mu, epsilon) + betrayed + mp.mpf(10) ** -17  # what the enumeration cuts off
    assert 1 <= mu * sigma <= 1 + 0.07 / sigma**2 or sigma < 0.9


@pytest.mark.parametrize("sigma", [0.7, 1.6])
def test_the_shift_of_discrete_gaussian_noise_covers_a_replaced_record_at_every_epsilon(sigma: float) -> None:
    mu, betrayed = Gaussian(sigma=sigma, unit=Unit(adjacency=Adjacency.REPLACE_ONE)).gdp()
    epsilons = [x * mu for x in np.linspace(0, 6, 13)]
    for epsilon, truth in zip(epsilons, true_delta(sigma, (1, -1), epsilons), strict=True):
        assert truth <= profile(mu, epsilon) + betrayed + mp.mpf(10) ** -17


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_for_gaussian_noise_the_shift_is_nearly_that_of_continuous_noise(adjacency: Adjacency) -> None:
    unit = Unit(adjacency=adjacency)
    moved = unit.sensitivity.l2_squared
    for sigma, loss in ((5.0, 1.8e-3), (10.0, 4.5e-4), (100.0, 5e-6), (299.0, 1e-6), (301.0, 2e-5), (1e6, 1e-9)):
        mu, betrayed = Gaussian(sigma=sigma, unit=unit).gdp()
        assert 1 <= mu * sigma / math.sqrt(moved) <= 1 + loss
        assert betrayed <= 1e-17


def numeric_delta(sigma: float, shift: tuple[int, ...], epsilon: float) -> float:
    """The same in floats, by convolving the losses of the cells: quick enough for four cells."""
    span = math.ceil(12 * sigma) + 8
    k = np.arange(-span, span + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    weights /= weights.sum()
    masses = np.ones(1)
    offset = 0  # losses are multiples of 1/2σ²
    for step in shift:
        units = 2 * k * step + step * step
        lowest = int(units.min())
        law = np.bincount(units - lowest, weights)
        masses, offset = np.convolve(masses, law), offset + lowest
    losses = (offset + np.arange(masses.size)) / (2 * sigma**2)
    above = losses > epsilon
    return float((masses[above] * -np.expm1(epsilon - losses[above])).sum())


@pytest.mark.parametrize(
    ("rows", "shifts"),
    [
        (2, [(2, -2), (1, 1, -2), (1, 1, -1, -1), (2,), (1, 1), (2, -1, -1)]),
        (3, [(3, -3), (2, 1, -3), (1, 1, 1, -3), (3,)]),
    ],
)
@pytest.mark.parametrize("sigma", [2.5, 6.0])
def test_the_shift_for_several_rows_covers_every_way_to_move_them(
    rows: int, shifts: list[tuple[int, ...]], sigma: float
) -> None:
    mu, betrayed = Gaussian(sigma=sigma, unit=Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=rows)).gdp()
    for shift in shifts:
        for epsilon in (x * mu for x in np.linspace(0, 6, 25)):
            truth = numeric_delta(sigma, shift, epsilon)
            assert truth * (1 - 1e-9) <= gaussian_delta(mu, epsilon) + betrayed + 1e-16
    assert mu < 1.3 * rows * math.sqrt(2) / sigma


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-7, 12), st.floats(0, 1))
def test_a_pure_guarantee_is_covered_and_touched(epsilon: float, share: float) -> None:
    """Randomised response, which every pure mechanism comes from: losses ±ε."""
    mu = pure_mu(epsilon)
    with mp.workdps(40):
        at, truth = mp.mpf(share) * mp.mpf(epsilon), 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        delta = truth - mp.exp(at) * (1 - truth)
        assert delta <= profile(mu, at)
        # a little less does not cover the corner, where tests of the loss's sign err
        corner = mp.ncdf(mp.mpf(mu) * (1 - mp.mpf("1e-6")) / 2)
        assert corner < truth or epsilon < 1e-5


@settings(deadline=None, max_examples=40)
@example([(0.03125, 1.0), (0.03125, 1.0)], 0.03125)  # every loss is positive, and the other data set errs as often
@given(st.lists(st.tuples(st.floats(-4, 4), st.floats(0.01, 1)), min_size=2, max_size=6), st.floats(1e-6, 0.05))
def test_any_loss_is_covered_by_its_corners(atoms: list[tuple[float, float]], betrayed: float) -> None:
    """Random losses, made a pair by giving Q the mass that is missing where P has none."""
    atoms = sorted(atoms)
    losses = np.array([loss for loss, _ in atoms])
    p = np.array([weight for _, weight in atoms])
    p /= p.sum()
    q = p * np.exp(-losses)
    if q.sum() > 1:
        losses = losses + math.log(q.sum())
        q = p * np.exp(-losses)
    mu = Corners.of(losses, p).mu(betrayed)
    for epsilon in np.linspace(0, 10, 101):
        truth = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert truth <= betrayed + (1 - betrayed) * (gaussian_delta(mu, epsilon) if mu > 0 else 0.0) + 1e-12


ends = st.floats(-50, 50)


@given(ends, ends, ends, st.floats(0.1, 9), st.sampled_from([-1.0, 1.0]))
def test_the_result_is_safe_and_near_the_root(root: float, one: float, other: float, power: float, sign: float) -> None:
    safe, unsafe = root - sign * (abs(one) + 1e-3), root + sign * (abs(other) + 1e-3)

    def gap(x: float) -> float:
        distance = sign * (x - root)
        return math.copysign(abs(distance) ** power, distance)

    found = safe_root(gap, safe=safe, unsafe=unsafe, tolerance=1e-10)
    assert gap(found) <= 0
    assert gap(found) >= -1e-10 or abs(found - root) < 1e-9 * max(1.0, abs(root))


@given(st.floats(-5, 5), st.floats(1e-3, 10), st.floats(1e-3, 10))
def test_a_jump_is_approached_from_the_safe_side(jump: float, below: float, above: float) -> None:
    found = safe_root(lambda x: -below if x <= jump else above, safe=-6.0, unsafe=6.0, tolerance=1e-12)
    assert found <= jump
    assert found == pytest.approx(jump, abs=1e-9)


@given(st.floats(0.5, 5.5))
def test_infinite_gaps_on_either_side_do_no_harm(root: float) -> None:
    def gap(x: float) -> float:
        if x < root - 0.3:
            return -math.inf
        return math.inf if x > root + 0.2 else x - root

    found = safe_root(gap, safe=0.0, unsafe=6.0, tolerance=1e-12)
    assert -1e-11 <= gap(found) <= 0


@given(st.floats(0.5, 5.5))
def test_gaps_that_are_not_numbers_count_as_unsafe(edge: float) -> None:
    found = safe_root(lambda x: -1.0 if x < edge else math.nan, safe=0.0, unsafe=6.0, tolerance=1e-12)
    assert found < edge


def test_an_unsafe_end_that_is_safe_after_all_is_returned() -> None:
    assert safe_root(lambda x: -1.0, safe=0.0, unsafe=3.0, tolerance=1e-9) == 3.0


def test_a_safe_end_within_the_tolerance_is_kept() -> None:
    assert safe_root(lambda x: x - 1.0, safe=1.0, unsafe=2.0, tolerance=1e-9) == 1.0


@given(st.lists(st.floats(0, 1e300, allow_nan=False) | st.just(math.inf), max_size=30))
def test_an_exact_sum_that_grows_is_the_sum_of_all(numbers: list[float]) -> None:
    parts: list[float] = []
    for place, number in enumerate(numbers, start=1):
        parts = exact_parts(parts, number)
        assert math.fsum(parts) == math.fsum(numbers[:place])


@pytest.mark.parametrize(
    ("order", "renyi", "delta"),
    [(1.5, 0.1, 1e-300), (1.0001, 0.1, 0.5), (1e6, 0.01, 0.9), (2.0, 500.0, 0.9), (40.0, 3.0, 1e-9), (3.0, 0.5, 1e-6)],
)
def test_an_epsilon_is_raised_by_what_its_terms_may_lose(order: float, renyi: float, delta: float) -> None:
    with mp.workdps(50):
        less, entropy = mp.mpf(order) - 1, order * mp.log(order)
        parts = [mp.mpf(renyi), mp.log(less), -mp.log(mp.mpf(delta)) / less, -entropy / less]
        raised = (renyi_to_epsilon(order, renyi, delta) - mp.fsum(parts)) / mp.fsum(map(abs, parts))
        assert 0.6 * ULPS < raised < 1.4 * ULPS


@pytest.mark.parametrize(
    ("order", "renyi", "epsilon"),
    [(1.01, 0.1, 0.2), (2.0, 0.1, 0.2), (2.0, 10.0, 20.0), (2.0, 0.001, 9.0), (30.0, 1.0, 1.5), (1.000001, 0.5, 30.0)],
)
def test_a_delta_is_raised_by_what_its_exponent_may_lose(order: float, renyi: float, epsilon: float) -> None:
    with mp.workdps(50):
        less = mp.mpf(order) - 1
        exponent = less * (mp.mpf(renyi) - epsilon) + order * mp.log(1 - 1 / mp.mpf(order)) - mp.log(less)
        terms = less * (renyi + abs(mp.mpf(renyi) - epsilon)) + 3 + abs(mp.log(less))
        raised = (renyi_to_delta(order, renyi, epsilon) / mp.exp(exponent) - 1) / terms
        assert 0.6 * ULPS < raised < 1.4 * ULPS
