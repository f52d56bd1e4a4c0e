"""Composed losses: against sums written out, against dp-accounting, and what is cut off is raised, never lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Dirichlet, Gaussian, Laplace, PrivacyUnit
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convolution import CUT, _bounds, _fast_length, compose, repeated, together
from dpbayes.privacy.pld import TAIL, Masses, Pld, accounted, read

UNIT = PrivacyUnit(adjacency="replace-one")
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
    whole, cut = (Pld(0.01, (together(one, one, cut=each),)) for each in (0.0, CUT))
    assert cut.size < whole.size
    for epsilon in np.linspace(-5, 30, 36):
        assert cut.delta(epsilon) >= whole.delta(epsilon) * (1 - 1e-14) - NOISE
        assert cut.delta(epsilon) <= whole.delta(epsilon) * (1 + 1e-14) + CUT
    assert cut.directions[0][1].sum() + cut.directions[0][2] == pytest.approx(1.0, abs=1e-14)


@given(MASSES, st.integers(2, 9), st.floats(0, 0.1))
def test_a_repeated_loss_is_the_sum_of_so_many(a: np.ndarray, times: int, lost: float) -> None:
    lowest, truth = -4, a
    for _ in range(times - 1):
        lowest, truth = summed((lowest, truth, 0.0), (-4, a, 0.0))
    found_lowest, masses, infinity = repeated((-4, a, lost), times)
    assert found_lowest == lowest
    assert np.abs(masses - truth).max() <= times * NOISE * 10
    assert infinity == pytest.approx(1 - (1 - lost) ** times, abs=1e-15)


def test_a_loss_that_is_always_infinite_stays_so() -> None:
    assert repeated((0, np.array([0.0]), 1.0), 3)[2] == 1.0


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
    lowest, found, infinity = repeated((0, masses, 0.0), 40, tail)
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
    theirs, *others = (accounted(pld).self_compose(k, 0.0) for pld, k in parts)
    for each in others:
        theirs = theirs.compose(each, CUT)
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
