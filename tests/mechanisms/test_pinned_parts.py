"""Variances, grids, utilities, calibrations and seeded draws in digits, on both sides of every threshold."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests import digits
from tests.mechanisms.test_pinned import ADD, ADD3, MECHANISMS, MOVED, REPLACE, REPLACE2

from dpbayes import PureDP, Unit
from dpbayes.mechanisms import dirichlet, selection, sum_zero, threshold, tuning, utility
from dpbayes.mechanisms.dirichlet import Dirichlet, GammaNoise
from dpbayes.mechanisms.gaussian import Gaussian, GaussianNoise
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise
from dpbayes.mechanisms.lazy import LazyDirichlet
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.subsampled import subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace, SumZeroNoise
from dpbayes.mechanisms.threshold import Threshold, threshold_for
from dpbayes.mechanisms.urn import PseudoRecords, pseudo_records
from dpbayes.privacy.guarantee import RDP, TCDP, ApproxDP
from dpbayes.schema.counts import SparseCounts


def seeded(made: Any, counts: object, seed: int = 5) -> object:
    return made.draw(np.asarray(counts), np.random.default_rng(seed))


GUESS = [0.5, 0.3, 0.1, 0.06, 0.04]
COUNTS = [0, 1, 7, 30, 1000]


def wide(law: str, *, weight: float = 1.0, alpha: float = 0.3) -> LazyDirichlet:
    counts = SparseCounts.of_rows((5, 130, 3), np.array([[4, 7, 2]] * 5 + [[4, 128, 0]] * 3 + [[0, 0, 1]]))
    made = Dirichlet(weight=weight, concentration=alpha, unit=REPLACE)
    return LazyDirichlet(made, counts, key=bytes(range(32)), law=law)  # type: ignore[arg-type]


def of_wide(asked: LazyDirichlet) -> list[object]:
    return [
        asked.cost.releases,
        asked.shares(np.array([[4, 7, 2], [4, 128, 0], [0, 0, 0], [3, 65, 1]])),
        asked.marginal([0]),
        asked.marginal([1], where={0: 4}),
        asked.marginal([2, 0], where={1: 7}),
        asked.marginal([1, 0]),
        list(asked._below),
        [[step.axis, step.branches, step.width] for step in asked._steps],
    ]


def curve(target: Any, unit: Unit = REPLACE, **more: Any) -> tuning.ConcentrationCurve:
    return tuning.ConcentrationCurve(target=target, unit=unit, **more)


def parameters(made: Any) -> list[object]:
    return [made.weight, made.concentration, getattr(made, "grid", 0.0)]


def scripted(answers: list[int]) -> tuple[list[int], Callable[[int], int]]:
    """Uniform numbers that are given, and the bounds that were asked for."""
    bounds: list[int] = []
    left, after = iter(answers), random.Random(7)

    def below(bound: int) -> int:
        bounds.append(bound)
        return min(next(left), bound - 1) if len(bounds) <= len(answers) else after.randrange(bound)

    return bounds, below


def chosen(sharpness: float, scores: list[int], spread: int, answers: list[int]) -> list[object]:
    bounds, below = scripted(answers)
    made = Selection(sharpness=sharpness, unit=ADD).choose(scores, spread=spread, below=below)
    return [made, [str(bound) for bound in bounds]]


def urn_run(made: Any, counts: object, records: int) -> list[object]:
    bounds: list[int] = []

    def below(bound: int) -> int:
        bounds.append(bound)
        return (bound * (len(bounds) % 7)) // 7

    return [pseudo_records(made, counts, records, below=below).tolist(), [str(bound) for bound in bounds]]


def number_of(draw: Callable[[int], int]) -> list[str]:
    return [str(draw(bound)) for bound in (1, 2, 3, 200, 256, 257, 10**9, 10**40)]


CASES: digits.Cases = {
    "variances": lambda: [
        [each.variance(np.zeros(2)).tolist(), each.slope(), each.even, each.center(np.array([3.0])).tolist()]
        for each in [
            *(GaussianNoise(sigma=s) for s in (0.05, 0.3, 1.0, 3.0, 3.01, 40.0)),
            *(LaplaceNoise(scale=s) for s in (0.001, 0.0017, 0.3, 1.0, 90.0)),
            *(SumZeroNoise(scale=s, cells=d) for s in (0.002, 0.8, 50.0) for d in (2, 3, 40)),
        ]
    ],
    "log laws": lambda: [
        each.log_law(value, np.array([0, 3, 9]))
        for each in (GaussianNoise(sigma=2.0), LaplaceNoise(scale=3.0), GammaNoise(weight=0.5, concentration=2.0))
        for value in (0.0, 2.5, 11.0)
    ],
    "gamma noise": lambda: [
        [made.even, made.slope(), made.center(np.array([0.5, 9.0])).tolist(), made.variance(np.array([0.0, 7.0]))]
        for made in (
            GammaNoise(weight=0.5, concentration=2.0),
            GammaNoise(weight=3.0, concentration=np.array([1.0, 4])),
        )
    ],
    "grids": lambda: [
        dirichlet.grid_for(a) for a in (1e-9, 0.999, 1.0, 1.5, 3.999, 4.0, 15.9, 16.0, 100.0, 2.0**40, 2.0**49)
    ],
    "on the grid": lambda: [
        dirichlet.on_grid(np.array([0.0, 1e-300, 0.3, 0.999, 1.0, 1.49, 2.0, 77.7, 4096.3, 5e9 / 7, 1e30 / 3]), grid)
        for grid in (2.0**-16, 0.25, 8.0)
    ],
    "steps of the grid": lambda: [dirichlet._steps(grid)[1000::7] for grid in (2.0**-16, 0.25)],
    "dirichlet draws": lambda: [
        seeded(made, COUNTS)
        for made in (
            Dirichlet(weight=1.0, concentration=0.3, unit=ADD),
            Dirichlet(weight=0.01, concentration=1.0, unit=ADD),
            Dirichlet(weight=0.5, concentration=(0.2, 3.0, 1.0, 1.5, 9.0), unit=ADD),
            Dirichlet(weight=2.0, concentration=1.01, unit=ADD, least_count=3),
            Dirichlet(weight=2.0, concentration=5.0, unit=ADD, grid=2.0),
        )
    ],
    "gammas": lambda: [
        made.values(np.array([COUNTS, COUNTS]), np.random.default_rng(1))
        for made in (
            Dirichlet(weight=3.0, concentration=40.0, unit=ADD),
            Dirichlet(weight=1, concentration=0.4, unit=ADD),
        )
    ],
    "largest counts": lambda: [
        Dirichlet(weight=w, concentration=a, unit=ADD).largest_count
        for w, a in ((1.0, 1.0), (2.0**32, 2.0**49), (1e-9, 5.0), (3.0, 2.0**49))
    ],
    "shapes": lambda: [
        Dirichlet(weight=w, concentration=2.0, unit=ADD, least_count=least)._shapes([0, 5, 2**61])
        for w, least in ((1.0, 0), (3.0, 4), (2.0**32, 0))
    ],
    "smallest": lambda: [MECHANISMS[name].smallest for name in MECHANISMS if name.startswith("dirichlet")],
    "noise of cells": lambda: [
        Dirichlet(weight=1, concentration=(1.0, 2.0, 3.0, 4.0), unit=ADD).noise((2, 2)).concentration,
        Dirichlet(weight=1, concentration=(1.0, 2.0), unit=ADD).noise().concentration,
        GaussianNoise(sigma=2.0) == Gaussian(sigma=2.0, unit=ADD).noise(),
        SumZeroNoise(scale=4.0, cells=3) == MECHANISMS["sum-zero 4"].noise(),
    ],
    "growth": lambda: [sum_zero._growth(s, d) for s in (0.003, 0.4, 5.0, 1e6) for d in (1, 2, 3, 17, 256)],
    "chance of loss": lambda: [sum_zero.chance_of_loss(s, d) for s in (0.1, 1.0, 50.0) for d in (2, 3, 90)],
    "sum-zero draws": lambda: [
        seeded(SumZeroLaplace(scale=s, cells=d, unit=REPLACE), np.arange(d))
        for s, d in ((4.0, 3), (0.5, 2), (30.0, 200))
    ],
    "of a size": lambda: [
        made.record()
        for made in (
            SumZeroLaplace.of_size(4.0, REPLACE, 5, joint=True),
            SumZeroLaplace.of_size(4.0, REPLACE, 256, joint=True),
            SumZeroLaplace.of_size(4.0, REPLACE, 257, joint=True),
            SumZeroLaplace.of_size(4.0, REPLACE, 2, joint=True),
            SumZeroLaplace.of_size(4.0, REPLACE, 1, joint=True),
            SumZeroLaplace.of_size(4.0, REPLACE, 5),
            Gaussian.of_size(4.0, REPLACE),
            Laplace.of_size(4.0, REPLACE),
        )
    ],
    "choices": lambda: [
        chosen(1.0, [0, 500, 700], 1, [0, 0]),
        chosen(1.0, [3, 4, 9], 2, [1, 0, 5, 0, 2]),
        chosen(0.75, [3, 9, 4], 1, [1, 0, 0, 1, 1, 3, 2]),
        chosen(2.0, [5, 6], 1, [1, 0, 0, 0, 5, 0, 5, 0, 0, 0]),
        chosen(1.5, [7, 8], 1, [1, 0, 1, 2, 4, 1, 3]),
    ],
    "numbers below": lambda: number_of(selection.numbers_below(np.random.default_rng(3))),
    "betrayals": lambda: [
        threshold.betrayal(scale=s, threshold=t, rows=m) for s in (0.02, 0.9, 6.0) for t, m in ((1, 1), (4, 4), (40, 3))
    ],
    "kept": lambda: [threshold._kept(c, 1.3, 6) for c in (1, 5, 6, 7, 8, 30)],
    "found": lambda: [MECHANISMS["threshold"].found(rows) for rows in (-1, 0, 1, 2, 19, 20, 21, 22, 60)],
    "hidden": lambda: [
        MECHANISMS[name].hidden(*chance)
        for name in ("threshold", "threshold, replaced")
        for chance in ((), (0.4,), (0.9,))
    ],
    "thresholds for": lambda: [
        [(made := threshold_for(epsilon=e, delta=d, unit=unit)).threshold, made.scale, made.least_delta]
        for e, d in ((1.0, 1e-6), (0.1, 1e-9), (3.0, 0.4))
        for unit in (ADD, ADD3, REPLACE2)
    ],
    "threshold draws": lambda: seeded(Threshold(scale=2.0, threshold=5, unit=ADD), np.arange(12)),
    "expected kl": lambda: [
        [utility.expected_kl(GUESS, records=n, weight=w, concentration=a), utility.zipf(4).tolist(), utility.zipf(1)]
        for n, w, a in ((1000, 2.4, 40.0), (3, 0.1, 0.5), (10**6, 1.0, 300.0))
    ],
    "worst expected kl": lambda: [
        utility.worst_expected_kl(cells=d, records=n, weight=w, concentration=a)
        for d, n, w, a in ((2, 30, 1.0, 2.0), (10, 1000, 0.3, 4.0), (3000, 10**5, 0.01, 1.0), (40, 5, 3.0, 9.0))
    ],
    "kl tails": lambda: [
        utility.kl_tail(p, beta=b, concentration=a, eta=e)
        for p, b, a in (([0.3, 0.7], 120, 1.5), (GUESS, 40, 0.7), ([0.0, 0.2, 0.8], 300, 3.0))
        for e in (1e-4, 0.01, 0.05, 0.3, 3.0)
    ],
    "log moments": lambda: [
        [(found := utility.log_moment(np.array(GUESS), 50.0, 2.0, 0.1, np.array([2 + 1j, -3.5j]))).real, found.imag]
    ],
    "wide, cells": lambda: of_wide(wide("cells")),
    "wide, splits": lambda: of_wide(wide("splits")),
    "wide, tiny": lambda: of_wide(wide("splits", alpha=0.002, weight=0.01)),
    "wide, cut": lambda: wide("cells", weight=2.0**32, alpha=2.0**40)._split(0, np.array([0])),
    "sampled draws": lambda: [
        [made.sample([40, 0, 9], np.random.default_rng(2)), seeded(made, [40, 0, 9])]
        for made in (
            subsampled(Laplace(scale=1.0, unit=ADD), 0.4),
            subsampled(Gaussian(sigma=1.0, unit=REPLACE), 0.3),
            subsampled(Laplace(scale=1.0, unit=REPLACE), 0.01),
        )
    ],
    "sampled, many": lambda: subsampled(Laplace(scale=1.0, unit=ADD), 0.5).sample(
        [2**20 - 3, 1, 5, 2**20], np.random.default_rng(2)
    ),
    "urns": lambda: [
        urn_run(Dirichlet(weight=0.75, concentration=1.5, unit=ADD), [0, 3, 1], 9),
        urn_run(PseudoRecords(weight=1, concentration=(1.0, 0.25), records=3, unit=ADD, least_count=2), [[5], [0]], 8),
        urn_run(Dirichlet(weight=2.0, concentration=1.0, unit=ADD), np.arange(13) % 4, 30),
    ],
    "pseudo-records drawn": lambda: seeded(PseudoRecords(weight=1, concentration=0.5, records=50, unit=ADD), COUNTS),
    "curves": lambda: [
        parameters(curve(target, **more).at(weight))
        for target, more in (
            (RDP(order=5, epsilon=1), {}),
            (RDP(order=5, epsilon=1), {"accounting": "published"}),
            (ApproxDP(epsilon=1, delta=1e-6), {"releases": 3}),
            (TCDP(rho=0.1, omega=20), {"least_count": 5}),
            (RDP(order=5, epsilon=1), {"sensitivity": MOVED}),
        )
        for weight in (0.5, 2.4412)
    ],
    "first guesses": lambda: [
        curve(RDP(order=5, epsilon=1), least_count=least, releases=k)._first_guess(w)
        for least, k in ((0, 1), (50, 2))
        for w in (0.3, 4.0)
    ],
    "best": lambda: [
        parameters(curve(RDP(order=5, epsilon=1)).best(**asked))
        for asked in ({}, {"cells": 3, "records": 40}, {"guess": GUESS, "records": 500}, {"purpose": "estimate"})
    ],
    "estimates": lambda: [
        parameters(curve(target).best(purpose="estimate", records=n))
        for target in (RDP(order=2, epsilon=0.01), RDP(order=30, epsilon=9), ApproxDP(epsilon=1, delta=1e-6))
        for n in (1, 500, 10**7)
    ],
    "estimates refused": lambda: digits.refusal(
        lambda: curve(RDP(order=2, epsilon=5.0)).best(purpose="estimate", records=10**13)
    ),
    "several draws": lambda: [
        parameters(made)
        for made in tuning.dirichlet_draws(
            RDP(order=5, epsilon=1), REPLACE, tables=[(2, 40), (2, 3), (1, 1)], records=1000, parts=[1, 2, 1]
        )
    ],
    "published": lambda: [
        parameters(tuning.published_dirichlet(target, unit, releases=k, **more))
        for target, unit, k, more in (
            (RDP(order=5, epsilon=1), REPLACE, 1, {}),
            (RDP(order=5, epsilon=1), ADD3, 2, {"slack": 1.0}),
            (ApproxDP(epsilon=1, delta=1e-6), REPLACE, 1, {}),
            (TCDP(rho=0.1, omega=20), REPLACE, 1, {}),
            (RDP(order=5, epsilon=1), REPLACE, 1, {"sensitivity": MOVED}),
        )
    ],
    "pseudo-records curves": lambda: [
        parameters(tuning.PseudoRecordsCurve(target=PureDP(epsilon=1), unit=REPLACE, drawn=1000).at(1.0)),
        parameters(
            tuning.PseudoRecordsCurve(target=PureDP(epsilon=1), unit=REPLACE, drawn=50, releases=2).best(records=90)
        ),
        parameters(tuning.PseudoRecordsCurve(target=PureDP(epsilon=1), unit=REPLACE, drawn=50).best(guess=GUESS)),
    ],
    "minimum": lambda: [
        tuning._minimum(lambda x, at=at: abs(x - at) ** 1.5, -1.0, 2.0, passes)
        for at in (-1.0, -0.2, 0.55, 1.99)
        for passes in ((7, 5), (5,), (7, 5, 5, 5))
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_mechanisms_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])
