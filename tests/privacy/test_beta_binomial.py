"""The pair of pseudo-records, against 50-digit arithmetic that shares no formula with it."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.reference import relative_error

from dpbayes.privacy.beta_binomial import (
    MOST_ATOMS,
    BetaBinomialPair,
    jensen_gap,
    log1p_deficit,
    log1p_excess,
    loss_at_mode_down,
    loss_at_mode_up,
    pure_loss,
)

DIGITS = 50
CASES = [
    (1.0, 2.0, 2.0, 20),
    (1.0, 10.0, 10.0, 100),
    (0.3, 0.01, 0.01, 50),
    (5.0, 1e6, 1e6, 120),
    (1e-3, 50.0, 80.0, 90),
    (100.0, 1e4, 3e4, 80),
    (1.0, 1e10, 1e10, 60),
    (2.0, 0.5, 7.0, 1),
    (40.0, 1e-3, 3.0, 150),
    (1.0, 1.0, 2.0, 30),  # as much in one cell as in the other
]
every = pytest.mark.parametrize(("weight", "first", "second", "records"), CASES)


def law(records: int, a: mp.mpf, b: mp.mpf) -> list[mp.mpf]:
    """Beta-binomial probabilities by the beta function."""
    return [mp.binomial(records, k) * mp.beta(k + a, records - k + b) / mp.beta(a, b) for k in range(records + 1)]


def both(weight: float, first: float, second: float, records: int) -> list[tuple[list[mp.mpf], list[mp.mpf]]]:
    """P and Q in each direction."""
    r, a, b = mp.mpf(weight), mp.mpf(first), mp.mpf(second)
    p, q = law(records, a + r, b), law(records, a, b + r)
    return [(p, q), (q, p)]


@every
def test_divergences_are_those_of_50_digits_and_never_below(weight, first, second, records):
    pair = BetaBinomialPair(weight=weight, first=first, second=second, records=records)
    with mp.workdps(DIGITS):
        pairs = both(weight, first, second, records)
        for order in (1.0001, 1.5, 2.0, 8.0, 100.0, 1e4):
            less = mp.mpf(order) - 1
            exact = max(mp.log(mp.fsum(p * (p / q) ** less for p, q in zip(*one, strict=True))) / less for one in pairs)
            assert exact <= pair.renyi(order) <= exact * (1 + mp.mpf("1e-9"))
        pure = max(mp.log(p / q) for one in pairs for p, q in zip(*one, strict=True))
        assert pure <= pair.renyi(math.inf) <= pure * (1 + mp.mpf("1e-10"))


@every
def test_deltas_are_those_of_50_digits_and_never_below(weight, first, second, records):
    pair = BetaBinomialPair(weight=weight, first=first, second=second, records=records)
    with mp.workdps(DIGITS):
        pairs = both(weight, first, second, records)
        for share in (0.0, 0.05, 0.3, 0.7, 0.95):
            epsilon = share * pair.pure
            above = mp.exp(mp.mpf(epsilon))
            exact = max(mp.fsum(max(p - above * q, 0) for p, q in zip(*one, strict=True)) for one in pairs)
            assert exact <= pair.delta(epsilon) <= exact * (1 + mp.mpf("1e-7")) + mp.mpf("1e-290")
            if 1e-250 < exact < 0.9:
                assert pair.epsilon(float(exact)) == pytest.approx(epsilon, rel=1e-5, abs=1e-7)
    assert pair.delta(pair.pure) == 0.0


def test_a_million_records_are_as_exact_as_few():
    """Atoms from the lowest to the highest, each by log-gamma functions in 50 digits."""
    weight, alpha, records = 1.0, 2.0, 10**6
    pair = BetaBinomialPair(weight=weight, first=alpha, second=alpha, records=records)
    (atoms,) = pair.laws()
    with mp.workdps(DIGITS):
        for k in (0, 1, 17, 250_000, 500_000, 777_777, 999_999, records):
            weights = (mp.mpf(alpha) + weight, mp.mpf(alpha))
            log_p = (
                mp.loggamma(records + 1)
                - mp.loggamma(k + 1)
                - mp.loggamma(records - k + 1)
                + mp.loggamma(k + weights[0])
                + mp.loggamma(records - k + weights[1])
                - mp.loggamma(records + sum(weights))
                - mp.loggamma(weights[0])
                - mp.loggamma(weights[1])
                + mp.loggamma(sum(weights))
            )
            assert float(atoms.probabilities[k]) == pytest.approx(float(mp.exp(log_p)), rel=5e-11)
            loss = mp.log((alpha + k) / mp.mpf(alpha)) - mp.log((alpha + records - k) / mp.mpf(alpha))  # r = 1
            assert loss <= atoms.losses[k] <= loss + 1e-10
    assert math.fsum(atoms.probabilities.tolist()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("records", [1, 100, 4096, 4097, MOST_ATOMS + 5, 10**12])
@pytest.mark.parametrize(("weight", "alpha"), [(1.0, 10.0), (0.01, 0.3), (30.0, 1e5), (1e4, 2.0)])
def test_the_pure_loss_is_that_of_50_digits_and_never_below(weight, alpha, records):
    with mp.workdps(DIGITS):
        a, r = mp.mpf(alpha), mp.mpf(weight)
        exact = mp.loggamma(a + r + records) - mp.loggamma(a + r) - mp.loggamma(a + records) + mp.loggamma(a)
        assert exact <= pure_loss(weight, alpha, records) <= exact * (1 + mp.mpf("1e-10"))


def test_the_price_grows_with_the_records_up_to_that_of_the_draw():
    from dpbayes.privacy.pair import GammaPair

    whole = GammaPair(weight=1.0, first=30.0, second=30.0)
    prices = [
        BetaBinomialPair(weight=1.0, first=30.0, second=30.0, records=m) for m in (1, 10, 100, 1000, 10**4, 10**5)
    ]
    for number in (lambda pair: pair.delta(0.5), lambda pair: pair.renyi(4.0), lambda pair: pair.epsilon(1e-7)):
        found = [number(pair) for pair in (*prices, whole)]
        assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(found))
    assert prices[-1].epsilon(1e-7) == pytest.approx(whole.epsilon(1e-7), rel=1e-3)


def test_unequal_cells_have_two_directions_and_a_symmetric_distribution_above_both():
    pair = BetaBinomialPair(weight=1.0, first=1.0, second=9.0, records=12)
    assert len(pair.laws()) == 2
    pld = pair.pld(0.01)
    for epsilon in np.linspace(0.0, pair.pure, 9):
        assert float(pld.delta(epsilon)) >= pair.delta(float(epsilon)) * (1 - 1e-9)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


@given(powers(-12, 6))
def test_the_deficit_and_the_excess_of_the_logarithm_keep_fourteen_digits(x: float) -> None:
    with mp.workdps(60):
        exact = mp.mpf(x)
        deficit, excess = exact - mp.log1p(exact), (1 + exact) * mp.log1p(exact) - exact
    assert abs(relative_error(float(log1p_deficit(np.float64(x))), deficit)) < 1e-14
    assert abs(relative_error(float(log1p_excess(np.float64(x), log1p_deficit(np.float64(x)))), excess)) < 1e-14


def test_the_deficit_and_the_excess_do_not_jump_where_their_formulas_change() -> None:
    around = np.array([0.5, math.nextafter(0.5, 1.0)])
    deficit = log1p_deficit(around)
    for low, high in (deficit, log1p_excess(around, deficit)):
        assert low <= high <= low * (1 + 1e-14)


@given(powers(-3, 12), powers(-6, 7), powers(-6, 7))
@settings(max_examples=200)
def test_the_jensen_gap_keeps_twelve_digits(x: float, left: float, right: float) -> None:
    with mp.workdps(120):
        start, a, b = mp.mpf(x), mp.mpf(left), mp.mpf(right)
        truth = b * mp.loggamma(start) + a * mp.loggamma(start + a + b) - (a + b) * mp.loggamma(start + a)
    assert abs(relative_error(float(jensen_gap(x, left, right)), truth)) < 1e-12


def test_the_jensen_gap_broadcasts_like_numpy() -> None:
    table = jensen_gap(np.array([[0.5], [50.0], [5e6]]), np.array([1.0, 2.0]), 3.0)
    assert table.shape == (3, 2)
    assert table[1, 1] == pytest.approx(float(jensen_gap(50.0, 2.0, 3.0)), rel=1e-14)


@given(powers(-3, 12), powers(-4, 3))
@settings(max_examples=200)
def test_the_loss_at_the_mode_keeps_eleven_digits(concentration: float, weight: float) -> None:
    with mp.workdps(120):
        a, r = mp.mpf(concentration), mp.mpf(weight)
        step = mp.loggamma(a + r) - mp.loggamma(a)
        up, down = r * mp.log(a + r) - step, step - r * mp.log(a)
    # what counts is the loss in units of the weight: an error there moves a threshold on ln z
    assert abs(mp.mpf(loss_at_mode_up(concentration, weight)) - up) < 1e-11 * up + 1e-13 * r
    assert abs(mp.mpf(loss_at_mode_down(concentration, weight)) - down) < 1e-11 * abs(down) + 1e-13 * r
