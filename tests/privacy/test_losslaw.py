"""The quadrature of the privacy loss: its density, its probabilities and its masses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpbayes.privacy.losslaw import LogGammaLaw, LogitLaw, LossLaw
from dpbayes.privacy.pair import GammaPair

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
