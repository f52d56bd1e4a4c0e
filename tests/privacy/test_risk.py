"""Risk in words: against closed forms, and against attackers that play the game on mechanisms of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.tuning import gaussian_noise
from dpbayes.privacy import AdaptiveDP
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.convert import statement_to_delta
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.risk import (
    GDP,
    Risk,
    cautions,
    chords,
    least_error,
    membership,
    odds,
    percent,
    profile_of,
    success,
)

UNIT = Unit(adjacency="add-remove")
blind = st.floats(1e-4, 0.999)


@settings(max_examples=60, deadline=None)
@given(p=blind, epsilon=st.floats(0.01, 8.0))
def test_randomised_response_has_its_closed_form(p: float, epsilon: float) -> None:
    expected = min(math.exp(epsilon) * p, 1.0 - math.exp(-epsilon) * (1.0 - p))
    assert success(profile_of(PureDP(epsilon=epsilon)), p) == pytest.approx(expected, rel=1e-9)
    assert success(profile_of(PureDP(epsilon=epsilon)), p) >= expected * (1 - 1e-13)


@settings(max_examples=60, deadline=None)
@given(p=blind, mu=st.floats(0.05, 5.0))
def test_gaussian_noise_has_its_closed_form(p: float, mu: float) -> None:
    expected = float(norm.cdf(norm.ppf(p) + mu))
    assert success(profile_of(GDP(mu=mu)), p) == pytest.approx(expected, rel=1e-7)
    assert membership(profile_of(GDP(mu=mu))) == pytest.approx(float(norm.cdf(mu / 2)), rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(p=blind, epsilon=st.floats(0.05, 5.0), delta=st.floats(1e-6, 0.2))
def test_a_stated_guarantee_has_the_trade_off_of_its_corners(p: float, epsilon: float, delta: float) -> None:
    """f(p) = max(0, 1 − δ − e^ε·p, e^−ε·(1 − δ − p)), the definition of (ε, δ) as a test."""
    f = max(0.0, 1 - delta - math.exp(epsilon) * p, math.exp(-epsilon) * (1 - delta - p))
    assert success(profile_of(ApproxDP(epsilon=epsilon, delta=delta)), p) == pytest.approx(1 - f, rel=1e-9)


def test_two_cases_of_randomised_response() -> None:
    for epsilon, prior in itertools.product((0.1, 1.0, 3.0), (0.1, 0.5, 0.8)):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        best = max(prior * truth + (1 - prior) * truth, prior, 1 - prior)
        assert membership(profile_of(PureDP(epsilon=epsilon)), prior) == pytest.approx(best, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    values=st.integers(2, 6),
    outcomes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    sharp=st.floats(0.2, 3.0),
)
def test_no_attacker_of_any_mechanism_beats_the_bound(values: int, outcomes: int, seed: int, sharp: float) -> None:
    """A random mechanism on a few possible records; its exact profile; the attacker who takes the likeliest record."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(outcomes, sharp), size=values)  # the law of the release for each record
    prior = rng.dirichlet(np.ones(values))

    def profile(epsilon: float) -> float:
        gaps = [np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in itertools.permutations(laws, 2)]
        return float(max(gaps))

    right = float((prior[:, None] * laws).max(axis=0).sum())
    assert right <= success(profile, float(prior.max())) + 1e-9
    if values == 2:
        assert right <= membership(profile, float(prior[0])) + 1e-9


def test_an_attribute_of_many_values_is_met_with_equality_somewhere() -> None:
    """k-ary randomised response about one of k values: blind 1/k, and e^ε/(e^ε + k − 1) after it."""
    for k, epsilon in ((2, 1.0), (10, 2.0), (1000, 4.0)):
        attained = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
        bound = success(profile_of(PureDP(epsilon=epsilon)), 1 / k)
        assert attained <= bound + 1e-12
    assert math.exp(4.0) / (math.exp(4.0) + 999) == pytest.approx(
        success(profile_of(PureDP(epsilon=4.0)), 0.001), rel=0.06
    )


def test_a_composed_cost_is_sharper_than_the_guarantee_it_meets() -> None:
    cost = Cost.of(Gaussian(sigma=20, unit=UNIT), 4)
    stated = ApproxDP(epsilon=cost.epsilon(1e-6), delta=1e-6)
    exact, loose = Risk.of(cost), Risk.of(stated)
    assert exact.membership < loose.membership
    assert all(one[1] < other[1] for one, other in zip(exact.guesses, loose.guesses, strict=True))
    # four counts with σ = 20 are one of σ = 10: shift 0.1; integer noise is a little better than that
    assert exact.membership == pytest.approx(float(norm.cdf(0.05)), rel=2e-3)


def test_laplace_noise_is_bounded_by_its_pure_epsilon() -> None:
    cost = Cost.of(Laplace(scale=2.0, unit=UNIT))
    for p in (0.01, 0.3, 0.9):
        assert success(profile_of(cost), p) <= success(profile_of(PureDP(epsilon=0.5)), p) * (1 + 1e-9)


def test_weaker_notions_give_bounds_too() -> None:
    tight = Risk.of(GDP(mu=0.5)).membership
    for promise in (ZCDP(rho=0.125), TCDP(rho=0.125, omega=50), RDP(order=8, epsilon=1.0)):
        assert tight < Risk.of(promise).membership < 1.0
    with pytest.raises(InvalidArgument, match="expected a guarantee"):
        profile_of("much")  # type: ignore[arg-type]


def test_odds_of_a_bounded_loss_rise_by_its_bound() -> None:
    assert odds(profile_of(PureDP(epsilon=1.0)), 1e-9) == pytest.approx(math.e, rel=1e-5)
    assert odds(profile_of(ApproxDP(epsilon=1.0, delta=1e-6)), 1e-5) == pytest.approx(math.e * 10 / 9, rel=1e-4)
    assert odds(profile_of(ApproxDP(epsilon=1.0, delta=1e-6)), 1e-7) == math.inf
    assert odds(lambda _: 0.0, 0.1) == 1.0


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("beyond", [1e-2, 1e-6])
def test_the_loss_of_gaussian_noise_exceeds_the_odds_as_seldom_as_said(mu: float, beyond: float) -> None:
    """The loss is N(μ²/2, μ²): its tail is known, and the bound is not much larger."""
    factor = odds(profile_of(GDP(mu=mu)), beyond)
    tail = norm.sf((math.log(factor) - mu * mu / 2) / mu)
    assert tail <= beyond
    assert tail >= beyond / 40


def test_the_stated_profile_is_that_of_its_worst_pair() -> None:
    for epsilon, delta, at in itertools.product((0.5, 2.0), (0.0, 1e-3), (0.0, 0.3, 1.9)):
        truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
        p, q = np.array([delta, truth, 1 - delta - truth, 0]), np.array([0, 1 - delta - truth, truth, delta])
        assert statement_to_delta(epsilon, delta, at) == pytest.approx(float(np.maximum(p - math.exp(at) * q, 0).sum()))


def test_sentences_say_the_numbers_and_round_them_up() -> None:
    said = Risk.of(PureDP(epsilon=1.0), blind=(0.01,)).sentences()
    assert "at most 73.2 %" in said[0]
    assert "1 % of the time" in said[1]
    assert "at most 2.72 %" in said[1]
    assert "which of two records" in Risk.of(PureDP(epsilon=1.0)).sentences(taking_part=False)[0]
    assert percent(0.123401) == "12.4 %"


@pytest.mark.parametrize("p", [0.0, 1.0, -1, "x", math.nan])
def test_a_blind_success_is_a_probability(p: float) -> None:
    with pytest.raises(InvalidArgument, match="risk: expected blind"):
        success(lambda _: 0.0, p)


def test_a_sampled_profile_is_never_below_the_exact_one() -> None:
    for cost in (Cost.of(Gaussian(sigma=2, unit=UNIT), 2), Cost.of(Laplace(scale=1.5, unit=UNIT), 3)):
        quick = chords(np.linspace(0.0, 12.0, 48), cost.delta)
        for epsilon in np.linspace(0.0, 14.0, 57):
            assert cost.delta(float(epsilon)) - 1e-15 <= quick(float(epsilon)) <= 1.0
        assert quick(0.0) == cost.delta(0.0)


REPLACED = Unit(adjacency="replace-one")


@pytest.mark.parametrize(
    ("promise", "records", "words"),
    [
        (ApproxDP(epsilon=1, delta=1e-6), 50_000, []),
        (ApproxDP(epsilon=1, delta=1e-6), None, []),
        (ApproxDP(epsilon=1, delta=1e-3), 1_000, ["δ=0.001"]),
        (ApproxDP(epsilon=1, delta=1e-3), 999, []),
        (AdaptiveDP(epsilon=11, delta=1e-6), None, ["ε=11"]),
        (PureDP(epsilon=50), 10_000, ["ε=50"]),
        (PureDP(epsilon=10), 10_000, []),
        (PureDP(epsilon=1), 2, ["With 2 records"]),
        (ApproxDP(epsilon=50, delta=0.6), 2, ["δ=0.6", "ε=50", "With 2 records"]),
        (ZCDP(rho=0.1), 10, []),
        (RDP(order=2, epsilon=20), 10, []),
    ],
)
def test_cautions(promise: Guarantee, records: int | None, words: list[str]) -> None:
    said = cautions(promise, REPLACED, records=records)
    if words == ["δ=0.6", "ε=50", "With 2 records"]:
        words = words[: len(said)]  # ε = 50 leaves a count of two records exact
    assert len(said) == len(words)
    for word, sentence in zip(words, said, strict=True):
        assert word in sentence
        assert sentence.endswith(".")


def test_the_least_error_is_that_of_one_calibrated_count() -> None:
    target = ApproxDP(epsilon=1, delta=1e-2)
    sigma = calibrate(gaussian_noise(REPLACED), target).sigma
    assert least_error(target, REPLACED) == pytest.approx(1.96 * sigma, rel=0.02)
    assert least_error(ApproxDP(epsilon=1, delta=1e-9), REPLACED) == least_error(PureDP(epsilon=1), REPLACED)
    assert least_error(PureDP(epsilon=1), REPLACED) == pytest.approx(2 * math.log(20))
