"""Certified bounds contain the truth, and lazy bits decide as the endless number would."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mechanisms.feed import DIGITS, Feed, magnitudes

from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.exact import Law, below_exp, bernoulli_exp, exp_bounds, invert
from dpbayes.mechanisms.noise import words

LAWS = [
    *(("gaussian", scale) for scale in (1e-3, 0.3, 1.0, 2.7, 20.0, 150.0)),
    *(("laplace", scale) for scale in (1e-3, 0.3, 1.0, 2.7, 20.0)),
]


def law_of(kind: str, scale: float) -> Law:
    return Law.gaussian(scale) if kind == "gaussian" else Law.laplace(scale)


@given(
    st.fractions(min_value=0, max_value=400, max_denominator=10**40) | st.floats(0, 400).map(Fraction),
    st.sampled_from([64, 127, 128, 320]),
)
def test_the_exponential_lies_within_its_bounds(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x.numerator, x.denominator, bits)
    with mp.workdps(DIGITS + 100):
        truth = mp.exp(-mp.mpf(x.numerator) / x.denominator) * mp.mpf(2) ** bits
        assert low <= truth <= high
    assert high - low <= 2


@pytest.mark.parametrize("bits", [63, 127, 255])
@pytest.mark.parametrize(("kind", "scale"), LAWS)
def test_cumulative_probabilities_lie_within_their_bounds(kind: str, scale: float, bits: int) -> None:
    found = law_of(kind, scale).cumulative(bits)
    with mp.workdps(DIGITS):
        truths = magnitudes(kind, scale, len(found) - 1)
        for bound, truth in zip(found, truths, strict=True):
            assert bound <= truth * mp.mpf(2) ** bits < bound + 2
        assert (1 - truths[-1]) * mp.mpf(2) ** bits < 1e-3  # what is left is the tail's


@pytest.mark.parametrize("shift", [1, 3, 6])
@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 30.5), ("laplace", 11.0)])
def test_the_law_of_blocks_has_the_weights_of_their_starts(kind: str, scale: float, shift: int) -> None:
    found = law_of(kind, scale).blocks(shift).cumulative(63)
    with mp.workdps(DIGITS):
        exact = mp.mpf(scale)
        starts = [mp.mpf(block << shift) for block in range(3 * len(found))]
        weights = [mp.exp(-(k**2) / (2 * exact**2) if kind == "gaussian" else -k / exact) for k in starts]
        total, sums = mp.fsum(weights), mp.mpf(0)
        for bound, each in zip(found, weights, strict=False):
            sums += each
            assert bound <= sums / total * mp.mpf(2) ** 63 < bound + 2


def binary(value: mp.mpf, count: int) -> list[int]:
    """The first words of a number below 1."""
    whole = int(mp.floor(value * mp.mpf(2) ** (64 * count)))
    return [whole >> 64 * (count - 1 - i) & (2**64 - 1) for i in range(count)]


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(1, 10**9), Fraction(7, 2), Fraction(44), Fraction(0.2)])
@pytest.mark.parametrize("ties", [1, 2, 4])
@pytest.mark.parametrize("step", [-1, 1])
def test_equal_words_are_followed_until_they_differ(x: Fraction, ties: int, step: int) -> None:
    with mp.workdps(DIGITS):
        digits = binary(mp.exp(-mp.mpf(x.numerator) / x.denominator), ties + 1)
    digits[-1] += step
    feed = Feed(*digits[1:])
    assert below_exp(digits[0], x.numerator, x.denominator, feed) == (step < 0)
    assert feed.taken == ties


def test_certain_and_impossible_chances_take_one_word() -> None:
    for word in (0, 2**64 - 1):
        assert bernoulli_exp(0, 1, Feed(word))
    assert not bernoulli_exp(10**30, 1, Feed(1))
    assert not bernoulli_exp(10**30, 1, Feed(0, 0, 1))


def test_chances_below_zero_are_refused() -> None:
    for numerator, denominator in ((-1, 2), (1, 0), (1, -2)):
        with pytest.raises(InvalidArgument, match="bernoulli_exp"):
            bernoulli_exp(numerator, denominator, Feed())


@pytest.mark.parametrize("x", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_chances_come_out_as_often_as_they_should(x: Fraction) -> None:
    source, draws = words(np.random.default_rng(7)), 4000
    hits = sum(bernoulli_exp(x.numerator, x.denominator, source) for _ in range(draws))
    p = float(np.exp(-float(x)))
    assert abs(hits - draws * p) < 5 * np.sqrt(draws * p * (1 - p)) + 1


@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 2.7), ("laplace", 1.0)])
@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_number_on_a_boundary_falls_on_the_side_its_further_bits_tell(
    kind: str, scale: float, k: int, step: int
) -> None:
    with mp.workdps(DIGITS):
        boundary = int(mp.floor(magnitudes(kind, scale, k)[k] * mp.mpf(2) ** (63 + 128)))
    number = boundary + 2 * step
    feed = Feed(number >> 64 & (2**64 - 1), number & (2**64 - 1))
    assert invert(law_of(kind, scale), number >> 128, 63, feed) == (k if step < 0 else k + 1)
    assert feed.taken == 2


@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 2.7), ("laplace", 1.0), ("gaussian", 0.05)])
def test_the_tail_goes_on_as_far_as_the_bits_do(kind: str, scale: float) -> None:
    ones = 2**64 - 1
    found = [invert(law_of(kind, scale), 2**63 - 1, 63, Feed(*[ones] * n, 0)) for n in range(4)]
    with mp.workdps(DIGITS):
        for n, k in enumerate(found):
            u = 1 - mp.mpf(2) ** -(63 + 64 * n)
            sums = [mp.mpf(0), *magnitudes(kind, scale, k)]
            assert sums[k] <= u < sums[k + 1]
    assert found == sorted(found)
