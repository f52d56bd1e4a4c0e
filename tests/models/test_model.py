"""How the budget of draws is split, and how often a draw is inferred from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from tests.releases import REPLACE, release_of

from dpbayes import ApproxDP, Gaussian
from dpbayes.models.model import Published, by_cells


def test_parts_are_the_cells_to_the_nearest_power_of_two_and_so_near_the_best_ones() -> None:
    cells = np.array([3, 8, 20, 100, 1])
    parts = np.array(by_cells(cells.tolist()))
    assert parts.tolist() == [4.0, 8.0, 16.0, 128.0, 1.0]

    def error(logs: np.ndarray) -> float:  # Σ cells²/part, for parts that add up to one
        shares = np.exp(logs) / np.exp(logs).sum()
        return float((cells**2 / shares).sum())

    best = minimize(error, np.zeros(5)).fun
    assert abs(error(np.log(cells)) / best - 1) < 1e-3
    assert error(np.log(parts)) < 1.05 * best


def test_the_same_draw_is_inferred_from_once_and_another_one_anew() -> None:
    def inferred(*releases: object) -> object:
        return Published.of(releases).posterior.joint

    noise, promise = Gaussian(sigma=8, unit=REPLACE), ApproxDP(epsilon=1, delta=1e-6)
    made = release_of("sex", "income,sex", mechanism=noise, promise=promise)
    found = inferred(made)
    assert inferred(replace(made, about={"title": "The same draw"})) is found
    others = (
        replace(made, records=4001),
        replace(made, paid=tuple(replace(each, mechanism=replace(noise, sigma=9.0)) for each in made.paid)),
        replace(made, job=made.job | {"priors": [{"of": ["sex"], "shares": [0.4, 0.5, 0.1]}]}),
        replace(made, tables=tuple(replace(each) for each in made.tables)),
    )
    for other in others:
        assert inferred(other) is not inferred(made)
    again = inferred(made)
    assert again is not found
    assert inferred(made, release_of("sex", mechanism=noise, promise=promise, schema=made.schema)) is not again
