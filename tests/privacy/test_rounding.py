"""No stated number is below the truth, by rounding either: composed costs against 400 digits on a random grid."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Cost, Dirichlet, Gaussian, Laplace, Unit
from dpbayes.base.display import rounded_down, rounded_up
from dpbayes.mechanisms import Stated
from dpbayes.privacy.convert import rounded_towards_infinity
from dpbayes.privacy.cost import PLD_FLOOR
from dpbayes.privacy.pld import compose, delta_of
from dpbayes.schema import Adjacency

DIGITS = 400
LOOSE = 1e-9
"""What the safety margins may add at most, as a share."""

Law = dict[mp.mpf, mp.mpf]


def atoms(mechanism: Laplace | Stated) -> tuple[Law, mp.mpf]:
    """Losses with their probabilities, and the chance of an infinite loss: the definitions, in many digits."""
    if isinstance(mechanism, Stated):
        e, lost = mp.mpf(mechanism.epsilon_stated), mp.mpf(mechanism.delta_stated)
        return {e: (1 - lost) / (1 + mp.exp(-e)), -e: (1 - lost) / (1 + mp.exp(e))}, lost
    e = 1 / mp.mpf(mechanism.scale)
    truth = 1 / (1 + mp.exp(-e))
    if not mechanism.unit.replaces:
        return {e: truth, -e: 1 - truth}, mp.mpf(0)
    return {2 * e: truth**2, mp.mpf(0): 2 * truth * (1 - truth), -2 * e: (1 - truth) ** 2}, mp.mpf(0)


def composed(mechanisms: list[Laplace | Stated]) -> tuple[Law, mp.mpf]:
    law: Law = {mp.mpf(0): mp.mpf(1)}
    lost = mp.mpf(0)
    for mechanism in mechanisms:
        one, chance = atoms(mechanism)
        lost += (1 - lost) * chance
        joint: Law = {}
        for loss, p in law.items():
            for step, q in one.items():
                joint[loss + step] = joint.get(loss + step, mp.mpf(0)) + p * q
        law = joint
    return law, lost


def true_delta(law: Law, lost: mp.mpf, epsilon: float) -> mp.mpf:
    e = mp.mpf(epsilon)
    return lost + mp.fsum(p * (1 - mp.exp(e - loss)) for loss, p in law.items() if loss > e)


def random_releases(rng: np.random.Generator, unit: Unit) -> list[Laplace | Stated]:
    kinds = [
        Laplace(scale=float(np.exp(rng.uniform(-1, 3))), unit=unit),
        Laplace(scale=float(rng.integers(1, 30)), unit=unit),
        Stated(
            epsilon_stated=float(np.exp(rng.uniform(-3, 1))),
            delta_stated=float(rng.choice([0.0, 1e-9, 1e-5])),
            unit=unit,
            what="elsewhere",
        ),
    ]
    return [kinds[index] for index in rng.integers(0, len(kinds), rng.integers(1, 7))]


@pytest.mark.parametrize("seed", range(20))
def test_composed_deltas_and_epsilons_are_never_below_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unit = Unit(adjacency=list(Adjacency)[seed % 2])
    releases = random_releases(rng, unit)
    cost = Cost.total(releases)
    with mp.workdps(DIGITS):
        law, lost = composed(releases)
        top = float(max(law))
        for epsilon in [0.0, *(top * rng.uniform(0, 1, 4)), *(top * (1 - x) for x in (1e-6, 1e-12, 1e-15)), top]:
            assert cost.delta(epsilon) >= true_delta(law, lost, epsilon)
        for delta in 10.0 ** rng.uniform(-14, -1, 4):
            epsilon = cost.epsilon(delta)
            assert math.isinf(epsilon) or true_delta(law, lost, epsilon) <= mp.mpf(delta)
        if not lost:
            assert mp.mpf(cost.renyi(math.inf)) >= max(law)
            assert cost.renyi(math.inf) <= top * (1 + 1e-14)


def test_the_safety_margin_is_below_a_billionth() -> None:
    """Losses of 1/4 and 1/8 are multiples of 1/24, where nothing but the margins is added."""
    unit, interval = Unit(adjacency=Adjacency.ADD_REMOVE), 1 / 24.0
    releases: list[Laplace | Stated] = [Laplace(scale=4.0, unit=unit), Laplace(scale=8.0, unit=unit)]
    one, other = (release.pld(interval) for release in releases)
    with mp.workdps(DIGITS):
        law, lost = composed(releases)
        for epsilon in (0.0, 3 * interval, 6 * interval):
            truth = true_delta(law, lost, epsilon)
            assert truth <= mp.mpf(delta_of(compose([(one, 1), (other, 1)]), epsilon)) <= truth * (1 + mp.mpf(LOOSE))


def gaussian_profile(mechanism: Gaussian, epsilon: mp.mpf) -> mp.mpf:
    """δ at any real ε, by the sum over the noise."""
    sigma = mp.mpf(mechanism.sigma)
    reach = int(40 * mechanism.sigma) + 2
    weights = {k: mp.exp(-mp.mpf(k * k) / (2 * sigma**2)) for k in range(-reach, reach + 1)}
    norm = mp.fsum(weights.values())
    losses = ((mp.mpf(2 * k + 1) / (2 * sigma**2), weight) for k, weight in weights.items())
    return mp.fsum(weight * (1 - mp.exp(epsilon - loss)) for loss, weight in losses if loss > epsilon) / norm


def dirichlet_profile(mechanism: Dirichlet, epsilon: mp.mpf) -> mp.mpf:
    """δ at any real ε, by the incomplete beta function."""
    alpha, r = mp.mpf(mechanism.concentration), mp.mpf(mechanism.weight)
    t = 1 / (1 + mp.exp(epsilon / r))
    return mp.betainc(alpha, alpha + r, 0, t, regularized=True) - mp.exp(epsilon) * mp.betainc(
        alpha + r, alpha, 0, t, regularized=True
    )


@pytest.mark.parametrize("seed", range(6))
def test_gaussian_and_dirichlet_releases_beside_laplace_ones_are_never_below_the_truth(seed: int) -> None:
    """With losses l of probability p beside a profile δ, the composed profile is Σ p·δ(ε − l)."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        unit = Unit(adjacency=Adjacency.ADD_REMOVE)
        alone, profile = Gaussian(sigma=float(rng.uniform(1.0, 6.0)), unit=unit), gaussian_profile
    else:
        unit = Unit(adjacency=Adjacency.REPLACE_ONE)
        weight, concentration = float(rng.uniform(0.2, 2.0)), float(rng.uniform(3.0, 40.0))
        alone, profile = Dirichlet(weight=weight, concentration=concentration, unit=unit), dirichlet_profile
    beside = [Laplace(scale=float(rng.uniform(1.0, 20.0)), unit=unit) for _ in range(2)]
    cost = Cost.total([alone, *beside])
    with mp.workdps(60):
        law, _ = composed(beside)

        def truth(epsilon: float) -> mp.mpf:
            return mp.fsum(p * profile(alone, mp.mpf(epsilon) - loss) for loss, p in law.items())

        for epsilon in rng.uniform(0.0, 2.0, 2):
            assert cost.delta(epsilon) >= truth(epsilon)
        for delta in (1e-3, 1e-9):
            assert truth(cost.epsilon(delta)) <= mp.mpf(delta)


def test_below_the_floor_composed_costs_use_divergences_which_are_not_below_the_truth_either() -> None:
    unit = Unit(adjacency=Adjacency.ADD_REMOVE)
    releases: list[Laplace | Stated] = [Laplace(scale=0.5, unit=unit), Laplace(scale=0.7, unit=unit)] * 3
    with mp.workdps(DIGITS):
        law, lost = composed(releases)
        for delta in (1e-13, 1e-20, 1e-40):
            assert delta < PLD_FLOOR
            assert true_delta(law, lost, Cost.total(releases).epsilon(delta)) <= mp.mpf(delta)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10**6)))
def test_the_next_float_above_an_exact_number_is_found(number: Fraction) -> None:
    found = rounded_towards_infinity(number)
    assert Fraction(math.nextafter(found, 0.0)) < number <= Fraction(found)


@given(st.floats(1e-12, 1e6), st.integers(1, 8))
def test_printed_numbers_are_on_the_safe_side_but_for_the_last_bits(number: float, digits: int) -> None:
    exact, bits = Fraction(number), Fraction(number) / 2**50
    assert Fraction(rounded_up(number, digits)) >= exact - bits
    assert Fraction(rounded_down(number, digits)) <= exact + bits
    assert Fraction(rounded_up(number, digits)) <= exact * (1 + Fraction(10) ** (1 - digits)) + bits


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0.1, "0.1"),
        (0.1 + 0.2, "0.3"),
        (0.3 * (1 + 1e-14), "0.300001"),
        (0.3 * (1 + 4e-13), "0.300001"),
        (0.3 * (1 - 1e-13), "0.3"),
        (1e-6, "1e-06"),
        (math.inf, "inf"),
    ],
)
def test_more_than_the_last_bits_is_rounded_up(number: float, printed: str) -> None:
    assert rounded_up(number) == printed
