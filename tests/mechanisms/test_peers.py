"""What public test suites expect of the same releases, as figures. Each names its source."""

from __future__ import annotations

import math

import dp_accounting as dpa
import pytest
from dp_accounting import dp_event

from dpbayes import Cost, Laplace, Unit
from dpbayes.mechanisms.stated import ForeignEvent

UNIT = Unit(adjacency="add-remove")
MIXTURES = [
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), 3),
    (dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33]), 2),
]
SAMPLED = dpa.PoissonSampledDpEvent(0.2, dpa.GaussianDpEvent(0.5))


def cost(*parts: tuple[object, int]) -> Cost:
    made = [ForeignEvent.cost(event, UNIT, what="x", times=times) for event, times in parts]
    return sum(made[1:], made[0])


@pytest.mark.parametrize(
    ("parts", "epsilon", "delta", "within"),
    [
        # dp-accounting 0.6.0, pld/pld_privacy_accountant_test.py: sampled and self-composed Gaussian noise
        ([(SAMPLED, 1), (SAMPLED, 2)], 1.0, 0.15594, 1e-3),
        ([(dpa.SelfComposedDpEvent(SAMPLED, 3), 1)], 1.0, 0.15594, 1e-3),
        ([(dpa.GaussianDpEvent(math.sqrt(3)), 1), (dpa.GaussianDpEvent(math.sqrt(3)), 2)], 1.0, 0.126936, 1e-5),
        # the same file: three Laplace releases of scale 1 and two of scale 2 add up to ε = 4
        ([(dpa.LaplaceDpEvent(1.0), 3), (dpa.LaplaceDpEvent(2.0), 2)], 4.0, 1e-14, 1e-6),
        # the same file: mixtures of Gaussians
        (MIXTURES, 17.193115, 1e-6, 1e-7),
    ],
)
def test_composed_events_cost_what_dp_accounting_expects(
    parts: list[tuple[object, int]], epsilon: float, delta: float, within: float
) -> None:
    assert cost(*parts).delta(epsilon) == pytest.approx(delta, abs=within)


@pytest.mark.parametrize(
    ("scale", "masses"),
    [
        # dp-accounting 0.6.0, pld/privacy_loss_distribution_test.py: Laplace noise on whole multiples of the loss
        (1.0, {1: 0.69673467, 0: 0.11932561, -1: 0.18393972}),
        (0.5, {2: 0.69673467, 1: 0.11932561, 0: 0.07237464, -1: 0.04389744, -2: 0.06766764}),
    ],
)
def test_laplace_noise_has_the_profile_that_dp_accounting_expects(scale: float, masses: dict[int, float]) -> None:
    event = Cost.of(ForeignEvent.cost(dpa.LaplaceDpEvent(scale), UNIT, what="x").entries[0][0])
    for epsilon in range(max(masses)):
        expected = math.fsum(mass * -math.expm1(min(epsilon - loss, 0)) for loss, mass in masses.items())
        assert event.delta(float(epsilon)) <= expected * (1 + 1e-6)
        assert event.delta(float(epsilon)) == pytest.approx(-math.expm1((epsilon - 1 / scale) / 2), rel=1e-2)


@pytest.mark.parametrize(
    ("noise", "sensitivity", "masses"),
    [
        # dp-accounting 0.6.0, pld/privacy_loss_distribution_test.py: discrete Laplace noise, losses on whole multiples
        (1.0, 1, {1: 0.73105858, -1: 0.26894142}),
        (1.0, 2, {2: 0.73105858, 0: 0.17000340, -2: 0.09893802}),
    ],
)
def test_discrete_laplace_noise_has_the_profile_that_dp_accounting_expects(
    noise: float, sensitivity: int, masses: dict[int, float]
) -> None:
    event = cost((dp_event.DiscreteLaplaceDpEvent(noise, sensitivity), 1))
    for epsilon in (0.0, 0.3, 0.9, 1.5):
        expected = math.fsum(mass * -math.expm1(min(epsilon - loss, 0)) for loss, mass in masses.items())
        assert expected - 1e-8 <= event.delta(epsilon) <= expected + 0.004  # on a grid of losses, upwards
        if sensitivity == 1:
            assert Cost.of(Laplace(scale=1.0 / noise, unit=UNIT)).delta(epsilon) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [2.0, 8.0, 20.0])
def test_gaussian_noise_has_the_divergence_of_its_multiplier(multiplier: float, order: float) -> None:
    """dp-accounting 0.6.0, rdp/rdp_privacy_accountant_test.py: λ/(2z²), and λ·ρ for a concentrated event."""
    assert cost((dpa.GaussianDpEvent(multiplier), 1)).renyi(order) == pytest.approx(0.5 * order / multiplier**2)
    assert cost((dpa.ZCDpEvent(0.5 / multiplier**2), 1)).renyi(order) == pytest.approx(0.5 * order / multiplier**2)
