"""Privacy loss distributions: pessimistic, and no more than needed."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Dirichlet, Gaussian, Laplace, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.pld import (
    TAIL,
    Masses,
    Pld,
    _bounds,
    _fast_length,
    compose,
    delta_of,
    epsilon_of,
    from_atoms,
    from_masses,
    from_profile,
    from_statement,
    largest_convex_below,
    read,
    repeat,
    span,
    split,
    to_accounting,
    together,
)


def profile_of(losses: np.ndarray, masses: np.ndarray, epsilon: float) -> float:
    above = losses > epsilon
    return float(-(masses[above] * np.expm1(epsilon - losses[above])).sum())


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8),
    st.floats(0.05, 0.9),
    st.randoms(use_true_random=False),
)
def test_splitting_atoms_keeps_both_laws_and_never_lowers_a_delta(atoms: list[float], interval: float, random) -> None:
    losses = np.array(atoms)
    probabilities = np.array([random.random() + 0.01 for _ in atoms])
    probabilities /= probabilities.sum()
    first, last = span(losses, probabilities, interval)
    lowest, masses, infinity = split(losses, probabilities, interval, first, last)
    multiples = (lowest + np.arange(masses.size)) * interval
    assert masses.min() >= 0
    assert infinity == 0
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert (masses * np.exp(-multiples)).sum() == pytest.approx((probabilities * np.exp(-losses)).sum(), rel=1e-12)
    for epsilon in np.linspace(-3.5, 3.5, 29):
        assert profile_of(multiples, masses, epsilon) >= profile_of(losses, probabilities, epsilon) - 1e-14
    for epsilon in multiples:
        assert profile_of(multiples, masses, epsilon) == pytest.approx(
            profile_of(losses, probabilities, epsilon), abs=1e-13
        )


def test_losses_outside_the_range_move_up_to_its_start_or_to_infinity() -> None:
    lowest, masses, infinity = split(np.array([-9.0, 0.0, 9.0]), np.array([0.2, 0.5, 0.3]), 1.0, -2, 3)
    assert lowest == -2
    assert masses[0] == 0.2
    assert infinity == 0.3


def test_a_span_leaves_out_less_than_its_tail() -> None:
    losses = np.arange(-50.0, 51.0)
    probabilities = np.exp(-(losses**2))
    probabilities /= probabilities.sum()
    first, last = span(losses, probabilities, 1.0)
    outside = probabilities[(losses < first) | (losses > last)].sum()
    assert outside <= 2e-20
    assert last - first < 20


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.floats(0.01, 2))
def test_the_convex_hull_lies_below_touches_and_is_convex(values: list[float], interval: float) -> None:
    y = np.array(values)
    hull = largest_convex_below(y, interval)
    x = np.exp(interval * np.arange(y.size))
    assert (hull <= y + 1e-12).all()
    assert hull[0] == y[0]
    assert hull[-1] == y[-1]
    slopes = np.diff(hull) / np.diff(x)
    assert (np.diff(slopes) >= -1e-9 * (1 + np.abs(slopes[1:]))).all()
    # the largest one: every corner touches the points
    corners = np.flatnonzero(np.diff(slopes) > 1e-6 * (1 + np.abs(slopes[1:]))) + 1
    assert np.allclose(hull[corners], y[corners], atol=1e-9)


def test_the_convex_hull_does_not_overflow_where_e_to_the_epsilon_does() -> None:
    epsilons = np.arange(0.0, 3000.0, 10.0)
    y = np.exp(-epsilons / 100.0)
    assert np.allclose(largest_convex_below(y, 10.0), y, rtol=1e-12)


def test_a_profile_that_is_already_convex_is_kept() -> None:
    losses, masses = np.array([-1.0, 1.0]), np.array([1.0, math.e]) / (1 + math.e)
    pld = from_profile(lambda e: np.array([profile_of(losses, masses, x) for x in e]), 0.25, 2.0)
    for epsilon in np.arange(0.0, 2.0, 0.25):
        assert float(pld.delta(epsilon)) == pytest.approx(profile_of(losses, masses, epsilon), abs=1e-15)


def test_a_loose_profile_still_makes_a_probability_distribution() -> None:
    pld = from_profile(lambda e: np.minimum(1.0, 0.9 * np.exp(-3.0 * e)), 0.05, 5.0)
    ((_, masses, infinity),) = pld.directions
    assert masses.min() >= 0
    assert masses.sum() + infinity == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("interval", [0.25, 0.1, 0.03])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 0.0), (3.7, 0.01)])
def test_a_statement_is_priced_as_the_worst_mechanism_that_meets_it(
    epsilon: float, delta: float, interval: float
) -> None:
    pld = from_statement(epsilon, delta, interval)
    truth = 1 / (1 + math.exp(-epsilon))
    assert float(pld.delta(-100.0)) == pytest.approx(1.0, abs=1e-12)  # all its masses
    for at in np.linspace(0.0, 1.5 * epsilon, 23):
        worst = delta + (1 - delta) * max(truth - math.exp(at) * (1 - truth), 0.0)
        made = float(pld.delta(at))
        assert made >= worst - 1e-16
        assert made <= worst + 0.6 * interval
    assert float(pld.delta(epsilon + interval)) == pytest.approx(delta, abs=1e-15)


def test_a_statement_far_above_the_interval_of_its_company_keeps_its_epsilon() -> None:
    tiny = from_statement(1e-9, 0.0, 0.5)
    assert epsilon_of(compose([(tiny, 1000)]), 1e-6) < 1e-3
    assert float(tiny.delta(0.0)) >= 0.49e-9


def test_one_release_is_rounded_up_as_one() -> None:
    pld = from_statement(1.0, 1e-6, 0.01)
    assert delta_of(pld, 0.5) == delta_of(pld, 0.5, 1) < delta_of(pld, 0.5, 1000)
    assert epsilon_of(pld, 1e-3) == epsilon_of(pld, 1e-3, 1) < epsilon_of(pld, 1e-3, 1000)


def response_delta(times: int, epsilon: object, at: float) -> mp.mpf:
    """δ of repeated randomised response, from the binomial law of its loss."""
    epsilon = mp.mpf(epsilon)
    truth = 1 / (1 + mp.exp(-epsilon))
    return mp.fsum(
        mp.binomial(times, j) * truth**j * (1 - truth) ** (times - j) * -mp.expm1(at - (2 * j - times) * epsilon)
        for j in range(times + 1)
        if (2 * j - times) * epsilon > at
    )


@pytest.mark.parametrize(("times", "scale"), [(100, 30), (1000, 100), (4000, 200)])
def test_composed_deltas_stay_above_the_truth_down_to_the_noise_of_fourier_transforms(times: int, scale: int) -> None:
    losses = np.array([1.0, -1.0]) / scale
    truth = 1 / (1 + math.exp(-1 / scale))
    pld = compose([(from_atoms(losses, np.array([truth, 1 - truth]), 1.0 / scale), times)])
    for delta in (1e-3, 1e-6, 1e-10, 1e-11):
        epsilon = epsilon_of(pld, delta)
        with mp.workdps(40):
            exact = response_delta(times, mp.mpf(1) / scale, epsilon)
        assert exact <= delta
        assert exact >= delta * (1 - 1e-9) - 1e-15 * times


def test_composition_does_not_depend_on_the_order_of_its_parts() -> None:
    parts = [(from_statement(epsilon, 1e-9, 0.01), times) for epsilon, times in ((0.3, 5), (0.1, 40), (0.55, 2))]
    forward, backward = compose(parts), compose(parts[::-1])
    assert epsilon_of(forward, 1e-6) == pytest.approx(epsilon_of(backward, 1e-6), rel=1e-9)


def test_both_directions_of_an_asymmetric_pair_are_composed_apart() -> None:
    one = (0, np.array([0.7, 0.3]), 0.0)
    other = (-1, np.array([0.5, 0.5]), 0.0)
    pld = compose([(from_masses(1.0, one, other), 3)])
    for masses, (lowest, made, _) in zip((one, other), pld.directions, strict=True):
        expected = np.convolve(np.convolve(masses[1], masses[1]), masses[1])
        assert lowest == 3 * masses[0]
        assert np.allclose(made, expected, atol=1e-12)


def test_epsilon_of_a_distribution_is_infinite_below_its_mass_at_infinity() -> None:
    pld = from_statement(1.0, 1e-3, 0.1)
    assert epsilon_of(pld, 9e-4) == math.inf
    assert epsilon_of(pld, 0.5) == 0.0
    assert 0 < epsilon_of(pld, 2e-3) < 1.1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.integers(-9, 9),
    st.floats(0.01, 2),
    st.floats(-12, 12),
)
def test_a_delta_is_that_of_dp_accounting(
    removed: list[float], added: list[float], lowest: int, interval: float, epsilon: float
) -> None:
    pld = Pld(interval, ((lowest, np.array(removed), 0.01), (-lowest, np.array(added), 0.02)))
    theirs = float(to_accounting(pld).get_delta_for_epsilon(epsilon))
    assert pld.delta(epsilon) == pytest.approx(max(theirs, 0.0), rel=1e-9, abs=1e-9)


def test_one_release_is_composed_as_it_is() -> None:
    one = from_statement(1.0, 1e-3, 0.1)
    assert compose([(one, 1)]) is one


UNIT = Unit(adjacency="replace-one")
NOISE = 1e-16
"""What Fourier transforms may be off by in an entry: a fifth of what every release gives to infinity for it."""

MASSES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=200).map(lambda p: np.array(p) / max(sum(p), 1.0))


def summed(one: Masses, other: Masses) -> tuple[int, np.ndarray]:
    """The law of a sum, one product at a time."""
    (low, a, _), (other_low, b, _) = one, other
    found = np.zeros(a.size + b.size - 1)
    for at, mass in enumerate(a):
        found[at : at + b.size] += mass * b
    return low + other_low, found


@given(MASSES, MASSES, st.integers(-9, 9), st.floats(0, 0.5), st.floats(0, 0.5))
def test_two_losses_together_are_their_sum(a: np.ndarray, b: np.ndarray, low: int, lost: float, gone: float) -> None:
    one, other = (low, a, lost), (3, b, gone)
    lowest, masses, infinity = together(one, other, cut=0.0)
    truth_lowest, truth = summed(one, other)
    first = lowest - truth_lowest
    assert first >= 0
    assert np.abs(masses - truth[first : first + masses.size]).max() <= NOISE * 10
    assert truth[:first].sum() + truth[first + masses.size :].sum() <= NOISE * 10
    assert infinity == pytest.approx(1 - (1 - lost) * (1 - gone), abs=1e-15)


def test_what_is_cut_moves_up_and_no_delta_falls() -> None:
    tails = np.exp(-0.5 * np.linspace(-12, 12, 4001) ** 2)
    one = (-2000, tails / tails.sum(), 0.0)
    whole, cut = (Pld(0.01, (together(one, one, cut=each),)) for each in (0.0, 1e-15))
    assert cut.size < whole.size
    for epsilon in np.linspace(-5, 30, 36):
        assert cut.delta(epsilon) >= whole.delta(epsilon) * (1 - 1e-14) - NOISE
        assert cut.delta(epsilon) <= whole.delta(epsilon) * (1 + 1e-14) + 1e-15
    assert cut.directions[0][1].sum() + cut.directions[0][2] == pytest.approx(1.0, abs=1e-14)


@given(MASSES, st.integers(2, 9), st.floats(0, 0.1))
def test_a_repeated_loss_is_the_sum_of_so_many(a: np.ndarray, times: int, lost: float) -> None:
    lowest, truth = -4, a
    for _ in range(times - 1):
        lowest, truth = summed((lowest, truth, 0.0), (-4, a, 0.0))
    found_lowest, masses, infinity = repeat((-4, a, lost), times)
    assert found_lowest == lowest
    assert np.abs(masses - truth).max() <= times * NOISE * 10
    assert infinity == pytest.approx(1 - (1 - lost) ** times, abs=1e-15)


def test_a_loss_that_is_always_infinite_stays_so() -> None:
    assert repeat((0, np.array([0.0]), 1.0), 3)[2] == 1.0


@pytest.mark.parametrize("tail", [1e-6, 1e-12, TAIL])
def test_beyond_the_bounds_of_a_repeated_loss_lies_less_than_was_given_up(tail: float) -> None:
    rng = np.random.default_rng(0)
    masses = rng.dirichlet(np.full(60, 0.2))
    truth = masses
    for _ in range(39):
        truth = np.convolve(truth, masses)
    first, last = _bounds(masses, 40, tail)
    assert 0 < first < last < truth.size - 1
    assert truth[:first].sum() <= tail / 2
    assert truth[last + 1 :].sum() <= tail / 2
    lowest, found, infinity = repeat((0, masses, 0.0), 40, tail)
    assert (lowest, found.size) == (first, last - first + 1)
    assert infinity == pytest.approx(tail, rel=1e-9)
    assert np.abs(found - truth[first : last + 1]).max() <= tail + 1e-14


@pytest.mark.parametrize("times", [(1, 1, 1), (3, 1, 40), (1, 500, 2)])
def test_compositions_are_those_of_dp_accounting(times: tuple[int, ...]) -> None:
    mechanisms = (
        Gaussian(sigma=30.0, unit=UNIT),
        Laplace(scale=50.0, unit=UNIT),
        Dirichlet(weight=0.1, concentration=300.0, unit=UNIT),
    )
    parts = [(mechanism.pld(0.002), k) for mechanism, k in zip(mechanisms, times, strict=True)]
    theirs, *others = (to_accounting(pld).self_compose(k, 0.0) for pld, k in parts)
    for each in others:
        theirs = theirs.compose(each, 1e-15)
    ours, reference = compose(parts), read(theirs, 0.002)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 6.0):
        assert ours.delta(epsilon) == pytest.approx(reference.delta(epsilon), rel=1e-10, abs=sum(times) * NOISE + 8e-15)


def test_losses_on_different_lattices_are_not_added() -> None:
    one, other = (Gaussian(sigma=30.0, unit=UNIT).pld(interval) for interval in (0.002, 0.001))
    with pytest.raises(InvalidArgument, match="one interval"):
        compose([(one, 1), (other, 1)])


@given(st.integers(1, 10**6))
def test_lengths_of_transforms_are_the_least_of_small_factors(size: int) -> None:
    found = _fast_length(size)
    assert size <= found <= 2 * size
    rest = found
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    assert rest == 1
    smaller = (2**a * 3**b * 5**c for a in range(21) for b in range(13) for c in range(9))
    assert not any(size <= each < found for each in smaller)


def test_a_loss_of_one_direction_composes_with_one_of_two_in_either_order() -> None:
    one = Pld(0.01, ((-3, np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]), 0.0),))
    two = Pld(0.01, ((-2, np.array([0.4, 0.2, 0.4]), 0.0), (0, np.array([0.9]), 0.1)))
    twice = Pld(0.01, one.directions * 2)
    for parts in ([one, two], [two, one]):
        found, wanted = (compose([(each, 1) for each in made]) for made in (parts, [twice, two]))
        for (low, masses, lost), (at, truth, gone) in zip(found.directions, wanted.directions, strict=True):
            assert (low, lost) == (at, pytest.approx(gone))
            assert masses == pytest.approx(truth)
