"""The proved bound holds against exact laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes import Unit
from dpbayes.hellinger.distance import Laws
from dpbayes.hellinger.promise import Proved, SmoothTail
from dpbayes.hellinger.sensitivity import pure_epsilon
from dpbayes.mechanisms.selection import Selection
from dpbayes.privacy.pld import epsilon_of

CASES = [
    ((1.0, 1.0), 30, 0.8, 0.02),
    ((0.4, 2.0), 25, 2.0, 0.2),
    ((1.0, 1.0, 1.0), 8, 1.0, 0.05),
    ((1.0,) * 4, 5, 3.0, 0.4),
]


def proved(pure: float, tail: SmoothTail) -> Proved:
    return Proved(ranged=Selection(sharpness=pure, unit=Unit(adjacency="replace-one")), tail=tail)


def all_losses(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Probabilities and losses of every neighbouring pair, both directions."""
    laws = Laws.of(prior, total, sharpness, smoothing)
    found = []
    for table in laws.rows.tables():
        for other in laws.rows.neighbours(table):
            (log_p, p), (log_q, q) = laws.probabilities(table), laws.probabilities(other)
            found += [(p, log_p - log_q), (q, log_q - log_p)]
    return found


@pytest.mark.parametrize(("prior", "total", "sharpness", "smoothing"), CASES)
def test_the_proved_profile_and_divergence_bound_every_pair(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float
) -> None:
    laws = Laws.of(prior, total, sharpness, smoothing)
    tail = SmoothTail(sharpness=sharpness, smoothing=smoothing, log_candidates=math.log(laws.rows.size))
    pairs = all_losses(prior, total, sharpness, smoothing)
    better = proved(pure_epsilon(prior, total, sharpness, smoothing), tail)
    pld = better.pld(0.01)
    for epsilon in (0.0, 0.1, 0.5 * sharpness, sharpness, 1.5 * sharpness, 4 * sharpness):
        worst = max(float((p * np.maximum(-np.expm1(epsilon - loss), 0.0)).sum()) for p, loss in pairs)
        assert worst <= better.delta(epsilon) + 1e-12 <= tail.delta(epsilon) + 2e-12
        assert worst <= pld.delta(epsilon)
    for order in (1.1, 2.0, 4.0, 200.0):
        worst = max(math.log((p * np.exp((order - 1) * loss)).sum()) / (order - 1) for p, loss in pairs)
        assert worst <= better.renyi(order) <= tail.renyi(order)
        assert better.renyi(order) <= better.concentrated(math.inf) * order


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("smoothing", [1e-4, 0.015, 0.3])
def test_the_profile_improves_on_the_tail_bound(smoothing: float, delta: float) -> None:
    logs = math.log(1001)
    tail = SmoothTail(sharpness=0.8, smoothing=smoothing, log_candidates=logs)
    plain = 0.8 + math.expm1(smoothing) * (logs - math.log(delta)) + smoothing * logs
    assert 0.8 < tail.epsilon(delta) <= plain
    assert tail.delta(tail.epsilon(delta)) == pytest.approx(delta, rel=1e-9)


def test_with_the_smoothing_of_the_papers_less_than_twice_epsilon_is_proved() -> None:
    from dpbayes.hellinger.mechanism import published_smoothing

    for total in (10, 1000, 10**6):
        for epsilon in (0.1, 0.8, 2.0):
            logs = math.log(total + 1)
            tail = SmoothTail(
                sharpness=epsilon, smoothing=published_smoothing(epsilon, 1e-8, logs), log_candidates=logs
            )
            assert tail.epsilon(1e-8) < 2 * epsilon


def test_the_divergence_is_infinite_from_a_finite_order_on() -> None:
    tail = SmoothTail(sharpness=0.8, smoothing=math.log(1.5), log_candidates=5.0)
    assert math.isfinite(tail.renyi(2.9))
    assert math.isinf(tail.renyi(3.1))
    assert math.isinf(tail.concentrated(math.inf))
    assert tail.concentrated(2.0) >= tail.renyi(1.9999) / 2.0


def test_below_its_base_nothing_is_promised() -> None:
    tail = SmoothTail(sharpness=0.8, smoothing=0.02, log_candidates=5.0)
    assert tail.delta(0.5 * tail.base) == 1.0


def test_the_better_theorem_is_stated_in_every_notion() -> None:
    """Little smoothing and a generous δ: the tail wins there, the pure theorem everywhere else."""
    tail = SmoothTail(sharpness=0.79, smoothing=1e-5, log_candidates=math.log(100_001))
    made = proved(1.2, tail)
    assert made.epsilon(1e-6) == tail.epsilon(1e-6) < 1.2
    assert made.delta(1.0) == tail.delta(1.0)
    assert made.delta(0.5) < tail.delta(0.5) == 1.0
    assert made.renyi(1e7) == pytest.approx(1.2)
    assert math.isinf(tail.renyi(1e7))
    assert tail.epsilon(1e-6) <= epsilon_of(made.pld(1e-3), 1e-6) <= tail.epsilon(1e-6) + 5e-3
    assert not made.exact
    assert proved(0.7, tail).exact
