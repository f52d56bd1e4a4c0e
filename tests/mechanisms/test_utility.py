"""How far a draw is from its table: closed forms against simulation, brute force and 50 digits."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.utility import distribution, expected_kl, kl_tail, log_moment, worst_expected_kl

P = np.array([0.5, 0.3, 0.1, 0.06, 0.04])


@pytest.mark.parametrize(("beta", "alpha"), [(200, 1.0), (2441, 40.0), (30, 0.3)])
def test_expected_kl_and_its_tail_agree_with_simulation(beta: float, alpha: float) -> None:
    rng = np.random.default_rng(5)
    kl = (P * np.log(P / rng.dirichlet(beta * P + alpha, 100_000))).sum(axis=1)
    assert expected_kl(P, records=beta, weight=1, concentration=alpha) == pytest.approx(kl.mean(), rel=0.01)
    for probability in (0.5, 0.1, 0.01):
        eta = float(np.quantile(kl, 1 - probability))
        assert kl_tail(P, beta=beta, concentration=alpha, eta=eta) == pytest.approx(probability, rel=0.1)


@pytest.mark.parametrize(("cells", "beta", "alpha"), [(1000, 10, 0.1), (1000, 1000, 1.0), (100, 10, 0.1)])
@pytest.mark.parametrize("power", [0.0, 1.5])
def test_tails_of_many_cells_agree_with_simulation_at_both_ends(
    cells: int, beta: float, alpha: float, power: float
) -> None:
    p = np.arange(1, cells + 1) ** -power
    p /= p.sum()
    gammas = np.random.default_rng(7).standard_gamma(beta * p + alpha, (3000, cells))
    kl = (p * np.log(p * gammas.sum(axis=1, keepdims=True) / np.maximum(gammas, 1e-300))).sum(axis=1)
    for probability in (0.9, 0.5, 0.1):
        found = kl_tail(p, beta=beta, concentration=alpha, eta=float(np.quantile(kl, 1 - probability)))
        assert found == pytest.approx(probability, abs=0.03)
    mean = expected_kl(p, records=beta, weight=1, concentration=alpha)
    assert kl_tail(p, beta=beta, concentration=alpha, eta=0.1 * mean) == 1.0
    assert kl_tail(p, beta=beta, concentration=alpha, eta=3 * mean) < 1e-8


def test_the_moment_of_kl_is_its_mean_over_draws() -> None:
    kl = (P * np.log(P / np.random.default_rng(6).dirichlet(200 * P + 1.0, 200_000))).sum(axis=1)
    found = log_moment(P, 200.0, 1.0, 0.02, np.array([30 + 0j])).real[0]
    assert np.exp(found) == pytest.approx(np.exp(30 * (kl - 0.02)).mean(), rel=0.01)


@settings(max_examples=60, deadline=None)
@given(
    cells=st.integers(2, 40),
    records=st.integers(1, 5000),
    weight=st.floats(0.01, 10),
    alpha=st.floats(0.02, 20),
    evenness=st.sampled_from([0.02, 0.2, 1.0, 10.0]),
    seed=st.integers(0, 10**6),
)
def test_no_distribution_is_worse_than_the_worst(
    cells: int, records: int, weight: float, alpha: float, evenness: float, seed: int
) -> None:
    p = np.random.default_rng(seed).dirichlet(np.full(cells, evenness))
    p = np.nan_to_num(p, nan=1 / cells)
    p /= p.sum()
    numbers = {"records": records, "weight": weight, "concentration": alpha}
    assert expected_kl(p, **numbers) <= worst_expected_kl(cells=cells, **numbers) * (1 + 2e-3) + 1e-12


@pytest.mark.parametrize(
    "bad", [[1.0], [0.5, 0.6], [-0.1, 1.1], [[0.5, 0.5]], [], ["a", "b"], [[1], [0, 1]], [np.nan, 1]]
)
def test_what_is_no_distribution_is_refused(bad: list[object]) -> None:
    with pytest.raises(InvalidArgument, match="sum to 1"):
        distribution("expected_kl", bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "concentration", "beta", "eta"),
    [
        (0.3, 1.5, 120.0, 0.1),
        (0.15, 2.0, 400.0, 0.06),
        (0.5, 1.0, 50.0, 0.001),
        (0.5, 0.2, 30.0, 0.02),
        (0.9, 3.0, 1000.0, 0.004),
        (0.02, 1.0, 80.0, 0.5),
        (0.4, 5.0, 20.0, 0.03),
    ],
)
def test_tails_of_two_cells_are_those_of_50_digits_and_never_below(
    first: float, concentration: float, beta: float, eta: float
) -> None:
    """KL(p‖y) exceeds η outside of an interval around p, and y₁ has a beta law."""
    with mp.workdps(50):
        p, h = mp.mpf(first), mp.mpf(eta)

        def over(y: mp.mpf) -> mp.mpf:
            return p * mp.log(p / y) + (1 - p) * mp.log((1 - p) / (1 - y)) - h

        low, high = _crossing(over, p, mp.mpf(0)), _crossing(over, p, mp.mpf(1))
        a, b = mp.mpf(beta) * p + concentration, mp.mpf(beta) * (1 - p) + concentration
        exact = mp.betainc(a, b, 0, low, regularized=True) + mp.betainc(b, a, 0, 1 - high, regularized=True)
    found = kl_tail([first, 1.0 - first], beta=beta, concentration=concentration, eta=eta)
    assert float(exact) <= found <= float(exact) * (1 + 1e-7) + 2e-9 * (found > 0.1)


def _crossing(over: Callable[[mp.mpf], mp.mpf], inside: mp.mpf, outside: mp.mpf) -> mp.mpf:
    """Where a function that is negative inside crosses zero, by bisection."""
    for _ in range(170):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if over(middle) < 0 else (inside, middle)
    return outside
