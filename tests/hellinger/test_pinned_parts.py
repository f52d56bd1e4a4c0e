"""Distances, sensitivities, envelopes and samplers in digits, on both sides of every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import digits
from tests.hellinger.test_pinned import INF, PRIORS, SMALL

from dpbayes.hellinger import candidates, distance, sampler, sensitivity
from dpbayes.hellinger.distance import Laws, Rows, Sensitivities

SMOOTHINGS = (0.0, 0.01, 0.2, 1.0, 3.0, INF)
PAIRS = [
    ([7.0, 4.0, 5.0], [8.0, 3.0, 5.0]),
    ([1.0, 1.0], [1.0, 1.0]),
    ([0.2, 3.0], [4.0, 0.01]),
    ([63.9, 64.1], [64.0, 65.0]),
    ([1e9, 2e8], [1e9 + 3, 2e8 - 3]),
    ([100.0, 30.0, 9.0], [160.0, 1.0, 40.0]),
    ([0.01, 0.02, 0.03], [500.0, 1.0, 2.0]),
]
BETAS = [
    ([7.0, 4.0], [8.0, 3.0]),
    ([1.0, 2.0], [2.0, 1.0]),
    ([0.5, 30.0], [30.0, 0.5]),
    ([500.0, 3.0], [3.0, 500.0]),
    ([2.0, 2.0], [2.0, 2.0]),
    ([9.0, 70.0], [2.0, 77.0]),
]


def curves_of(curve: sampler.Curve, a: float) -> list[object]:
    grid = sampler.certificate_grid(curve, a)
    flat = sampler.Envelope(rates=np.array([0.0, 1.0, 7.0]), log_weights=np.array([-a, -0.5, -3.0]))
    points = np.array([0.0, 1e-6, 0.02, 0.7, 5.0, 60.0])
    return [
        grid,
        sampler._ladder(curve, a),
        curve.score(points),
        curve.bend(points[1:]),
        flat.log(points),
        flat.slope(points),
        sampler.shortfall(flat, curve, a),
        flat.raised(0.25).log(points),
    ]


def cells_of(kind: Any) -> list[object]:
    found: list[object] = []
    for prior, count, total, reach in (
        (1.0, 3, 50, 0.5),
        (0.2, 0, 900, 2.0),
        (4.0, 300, 300, 1.0),
        (2.0, 40, 10**6, 0.1),
    ):
        cell = kind(prior=prior, count=count, total=total, reach=reach)
        window, low = cell.window
        some = np.unique(
            np.clip(np.array([0, 1, low - 1, low, low + 3, count, low + window.size, total - 1, total]), 0, total)
        )
        found += [[low, window.size, list(cell._ends())], window, cell.divergence(some), cell._far(some.astype(float))]
    return found


def lines() -> list[object]:
    line = sampler.Line(np.array([-3.0, -0.5, 0.0, -0.2, -4.0]), 6, 8)
    tilted = line.tilted(0.7)
    cell = sampler.ScoreCell(prior=1.0, count=20, total=300, reach=sampler.UNDERFLOW)
    near = [sampler._line(cell, rate) for rate in (1.0, 40.0, 2000.0, 1e6)]
    return [
        *([each.log_top, each.log_mass, *each.moments(), each.anchor] for each in (line, tilted, *near)),
        [[each._low, each._logs.size] for each in near],
        line.log_factor(np.array([5, 6, 8, 10, 11, 400])),
        tilted.log_factor(np.array([6, 9])),
        line.draw(30, np.random.default_rng(1)),
        near[0].draw(200, np.random.default_rng(1)),
    ]


def sums() -> list[object]:
    found: list[object] = []
    for total, places in ((30, (5, 5, 20)), (30, (1, 9, 20)), (90, (40, 10, 40))):
        made = [sampler.Line(-0.05 * np.arange(total + 1.0) - 0.001 * k, 0, k) for k in places]
        closed = sampler.ClosedSum(made, total, 2)
        tables, kept = closed.propose(60, np.random.default_rng(2))
        found += [closed.log_mass, list(sampler._surplus(made, total)), tables, kept, closed._lines[0].moments()[0]]
    uniform = sampler._Uniform(total=9, cells=3)
    return [*found, uniform.log_mass, uniform.propose(20, np.random.default_rng(4))[0]]


def rows_of(prior: tuple[float, ...], total: int) -> list[object]:
    rows = Rows(prior, total)
    tables = list(rows.tables())
    laws = Laws.of(prior, total, 0.9, 0.15)
    return [
        rows.size,
        [rows.candidate(at) for at in (0, rows.size // 2, rows.size - 1)],
        rows.all_tables(),
        tables,
        [list(rows.neighbours(table)) for table in tables[:3]],
        rows.canonical(tuple(rows.candidate(1))),
        [rows.distances(table) for table in tables[:: max(len(tables) // 4, 1)]],
        laws.rounding,
        [laws.exponent(table) for table in tables[:4]],
        laws.probabilities(tables[1])[0],
        [laws.expected_distance(table) for table in tables[:4]],
        [Sensitivities(rows, 0.3)(t) for t in tables[:5]],
    ]


CASES: digits.Cases = {
    "half steps": lambda: candidates.half_step(
        np.array([1e-3, 0.4, 1.0, 3.0, 18.9, 19.0, 19.5, 20.0, 20.1, 500.0, 1e9])
    ),
    "numbers": lambda: [[candidates.number(n, d), candidates.log_number(n, d)] for n, d in ((98, 2), (5, 3), (300, 9))],
    "all tables": lambda: [candidates.all_tables(n, d) for n, d in ((4, 2), (3, 3), (2, 5), (0, 3))],
    "neighbours": lambda: [list(candidates.neighbours(table)) for table in ((0, 2), (1, 0, 3), (5, 5))],
    "cell divergences": lambda: [
        candidates.cell_divergences(a, c, low, high)
        for a, c, low, high in ((0.2, 0, 0, 9), (3.0, 5, 2, 5), (1.0, 4, 4, 9), (60.0, 30, 0, 60))
    ],
    "divergences": lambda: [candidates.divergences(p, np.array(t), np.array([t, t[::-1]])) for p, t in PRIORS],
    "shares": lambda: candidates.shares(np.array([-1000.0, -1001.0, -1003.5])),
    "distances": lambda: [
        [float(each(p, q)) for each in (distance.kl, distance.bhattacharyya, distance.hellinger, distance.chi_squared)]
        for p, q in PAIRS
    ],
    "renyi": lambda: [
        [float(distance.renyi(p, q, order)) for order in (0.3, 0.5, 0.9, 1.01, 1.5, 2.0, 9.0)] for p, q in PAIRS
    ],
    "several at once": lambda: distance.renyi([[3.0, 2.0], [1.0, 9.0], [5.0, 5.0]], [4.0, 8.0], 1.7),
    "total variation": lambda: [
        *(float(distance.beta_total_variation(p, q)) for p, q in BETAS),
        *([float(each) for each in distance.total_variation_bounds(p, q)] for p, q in PAIRS),
    ],
    "bregman": lambda: distance.bregman(
        np.array([0.1, 3.0, 63.5, 64.0, 64.5, 900.0]),
        np.array([4.0, 3.5, 64.5, 66.0, 200.0, 901.0]),
        np.array([3.9, 0.5, 1.0, 2.0, 135.5, 1.0]),
    ),
    "excess and deficit": lambda: [
        each(np.ones(6) * 2, 2 + s, s)
        for each in (distance._deficit, distance._excess, distance._stirling)
        for s in [np.array([-1.9, -1.0, -0.999, 1e-9, 1.0, 1.001])]
    ],
    "closing": lambda: distance._closing_to_zero(np.array([[1.0, -2.0, 5.0]]), np.array([[2.0, 9.0, 1.0]])),
    **{f"rows, {prior}": lambda prior=prior, n=n: rows_of(prior, n) for prior, n in SMALL},
    "local and global": lambda: [
        [sensitivity.local_sensitivity(p, t), sensitivity.global_sensitivity(p, sum(t))] for p, t in PRIORS
    ],
    "smooth": lambda: [[sensitivity.smooth_sensitivity(p, t, g) for g in SMOOTHINGS] for p, t in PRIORS],
    "smooth, many tables": lambda: [
        sensitivity.many_cells((1.0, 1.0, 1.0, 4.0), candidates.all_tables(6, 4), g) for g in (0.05, 0.6, INF)
    ],
    "two cells": lambda: [sensitivity.two_cell_sensitivities((0.5, 2.0), 30, g) for g in SMOOTHINGS],
    "fewest": lambda: [
        list(sensitivity._fewest((1.0, 2.0, 1.0, 1.0, 1.0), np.array([[0, 5, 3, 0, 9], [4, 0, 2, 7, 1]])))
    ],
    "growth": lambda: [
        [
            sensitivity.growth(p, sum(t)),
            sensitivity.least_sensitivity(p, sum(t)),
            sensitivity._two_cell_ends(p[:2], sum(t)),
            sensitivity.largest_useful_smoothing(p, sum(t)),
        ]
        for p, t in PRIORS
    ],
    "range excess": lambda: [
        [sensitivity.range_excess(p, sum(t), g) for g in (0.0, 1e-4, *SMOOTHINGS[1:5])] for p, t in PRIORS
    ],
    "pure": lambda: [sensitivity.pure_epsilon(p, sum(t), 0.7, 0.3) for p, t in PRIORS],
    "farthest": lambda: [
        sensitivity._farthest(g, r, n) for g, r, n in ((0.1, 0.3, 50), (0.01, 3.0, 50), (1e-5, 1.0, 9), (0.5, 1.8, 1))
    ],
    "gain": lambda: [sensitivity._gain(g, k) for g, k in ((0.1, 3), (200.0, 2), (1.0, 350))],
    "steps": lambda: sensitivity.step_divergence(np.array([0.01, 1.0, 30.0])),
    **{
        f"curve, {name}, {a}": lambda curve=curve, a=a: curves_of(curve, a)
        for name, curve in (("hellinger", sampler.HELLINGER), ("squared", sampler.SQUARED_HELLINGER))
        for a in (0.01, 0.7, 12.0, 300.0)
    },
    "cells": lambda: cells_of(sampler.ScoreCell),
    "cells of kl": lambda: cells_of(sampler.KlCell),
    "lines": lines,
    "closed sums": sums,
}


@pytest.mark.parametrize("name", CASES)
def test_distances_and_samplers_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])
