"""Where random numbers come from."""

from __future__ import annotations

import numpy as np

from dpbayes.mechanisms.randomness import generator, secure


def test_the_generator_of_the_caller_is_used() -> None:
    mine = np.random.default_rng(1)
    assert generator(mine) is mine


def test_two_secure_generators_do_not_agree() -> None:
    one, other = secure().random(64), secure().random(64)
    assert not np.intersect1d(one, other).size


def test_numpy_seeds_do_not_reach_the_secure_generator() -> None:
    draws = []
    for _ in range(2):
        np.random.seed(0)
        draws.append(generator(None).random(8))
    assert (draws[0] != draws[1]).all()


def test_a_secure_generator_draws_uniform_numbers() -> None:
    numbers = secure().random(20000)
    assert abs(numbers.mean() - 0.5) < 0.02
    assert abs(numbers.var() - 1 / 12) < 0.01
