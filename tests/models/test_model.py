"""How the budget of draws is split."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from dpbayes.models.model import by_cells


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
