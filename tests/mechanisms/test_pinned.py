"""Prices, variances, calibrations and seeded draws of the mechanisms, in digits, on both sides of every threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from tests import digits

from dpbayes import PureDP, Unit
from dpbayes.mechanisms import dirichlet, gaussian, kinds, sum_zero, threshold, tuning
from dpbayes.mechanisms.dirichlet import Dirichlet, UnroundedDirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.stated import ForeignEvent, Stated, StatedRDP
from dpbayes.mechanisms.subsampled import Subsampled, subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.mechanisms.urn import PseudoRecords, _Urn
from dpbayes.privacy.guarantee import ZCDP, ApproxDP
from dpbayes.schema.unit import Sensitivity

ADD, REPLACE = Unit(adjacency="add-remove"), Unit(adjacency="replace-one")
ADD3, REPLACE2 = Unit(adjacency="add-remove", max_rows=3), Unit(adjacency="replace-one", max_rows=2)
NAMED = Unit(adjacency="replace-one", person="who")
INF = math.inf
MOVED = Sensitivity(l1=2.0, l2_squared=3.0, linf=1.5)


def priced(made: Any, orders: Iterable[float] = (1.001, 1.5, 2.0, 3.0, 7.3, 40.0, INF)) -> list[object]:
    """All that a mechanism says of its cost."""
    epsilons = [made.delta(each) for each in (0.0, 0.1, 0.5, 1.0, 2.5)]
    return [
        made.exact,
        [made.renyi(order) for order in orders],
        [made.concentrated(omega) for omega in (1.5, 4.0, 30.0, INF)],
        epsilons,
        [made.epsilon(delta) for delta in (1e-12, 1e-6, 1e-3, 0.2)],
    ]


def steps(made: Any, interval: float = 0.05) -> object:
    """Its loss distribution in steps."""
    return made.pld(interval)


MECHANISMS: dict[str, Any] = {
    "gaussian 0.4": Gaussian(sigma=0.4, unit=ADD),
    "gaussian 2": Gaussian(sigma=2.0, unit=ADD),
    "gaussian 4": Gaussian(sigma=4.0, unit=REPLACE),
    "gaussian 4.01": Gaussian(sigma=4.01, unit=REPLACE),
    "gaussian 1.5 replaced": Gaussian(sigma=1.5, unit=REPLACE),
    "gaussian 2, three rows": Gaussian(sigma=2.0, unit=ADD3),
    "gaussian 2.01, three rows": Gaussian(sigma=2.01, unit=ADD3),
    "gaussian 9, two rows": Gaussian(sigma=9.0, unit=REPLACE2),
    "gaussian 300": Gaussian(sigma=300.0, unit=ADD),
    "gaussian 301": Gaussian(sigma=301.0, unit=REPLACE),
    "gaussian 20001": Gaussian(sigma=20001.0, unit=ADD),
    "laplace 4": Laplace(scale=4.0, unit=ADD),
    "laplace 0.7 replaced": Laplace(scale=0.7, unit=REPLACE),
    "laplace 5, three rows": Laplace(scale=5.0, unit=ADD3),
    "sum-zero 4": SumZeroLaplace(scale=4.0, cells=3, unit=REPLACE),
    "sum-zero 0.6": SumZeroLaplace(scale=0.6, cells=2, unit=REPLACE),
    "sum-zero 3, two rows": SumZeroLaplace(scale=3.0, cells=5, unit=REPLACE2),
    "sum-zero 256": SumZeroLaplace(scale=2.0, cells=256, unit=REPLACE),
    "selection 1": Selection(sharpness=1.0, unit=ADD),
    "selection 0.02": Selection(sharpness=0.02, unit=ADD),
    "selection 6": Selection(sharpness=6.0, unit=ADD),
    "threshold": Threshold(scale=1.5, threshold=20, unit=ADD),
    "threshold, three rows": Threshold(scale=2.0, threshold=9, unit=ADD3),
    "threshold, replaced": Threshold(scale=1.0, threshold=2, unit=REPLACE2),
    "dirichlet 10": UnroundedDirichlet(weight=1.0, concentration=10.0, unit=REPLACE),
    "dirichlet 0.7": UnroundedDirichlet(weight=0.5, concentration=0.7, unit=ADD),
    "dirichlet, cells": UnroundedDirichlet(weight=2.0, concentration=(30.0, 8.0, 9.5), unit=REPLACE),
    "dirichlet, least": UnroundedDirichlet(weight=0.25, concentration=3.5, unit=ADD, least_count=4),
    "dirichlet, three rows": UnroundedDirichlet(weight=0.25, concentration=12.0, unit=ADD3),
    "dirichlet, moved": Dirichlet(weight=1.0, concentration=25.0, unit=REPLACE, sensitivity=MOVED),
    "dirichlet, published": UnroundedDirichlet(weight=1.0, concentration=25.0, unit=REPLACE).published(),
    "pseudo 100": PseudoRecords(weight=1.0, concentration=10.0, records=100, unit=REPLACE),
    "pseudo, few": PseudoRecords(weight=2.0, concentration=5.0, records=3, unit=REPLACE),
    "pseudo, named": PseudoRecords(weight=1.0, concentration=10.0, records=40, unit=NAMED),
    "pseudo, least": PseudoRecords(weight=1.0, concentration=(4.0, 6.0), records=40, unit=REPLACE, least_count=2),
    "pseudo, rows": PseudoRecords(weight=1.0, concentration=10.0, records=100, unit=REPLACE2),
    "pseudo, added": PseudoRecords(weight=0.1, concentration=10.0, records=5000, unit=ADD),
    "pseudo 4096": PseudoRecords(weight=1.0, concentration=200.0, records=4096, unit=REPLACE),
    "pseudo 4097": PseudoRecords(weight=1.0, concentration=200.0, records=4097, unit=REPLACE),
    "stated": Stated(0.7, 0.0, ADD, "a map"),
    "stated, delta": Stated(0.7, 1e-4, REPLACE, "a map"),
    "stated rdp": StatedRDP(order=8.0, epsilon_stated=0.1, unit=ADD, what="a map"),
    "stated rdp, low": StatedRDP(order=1.8, epsilon_stated=2.0, unit=ADD, what="a map"),
    "sampled laplace": subsampled(Laplace(scale=1.0, unit=ADD), 0.1),
    "sampled, fixed": subsampled(Laplace(scale=1.0, unit=REPLACE), 0.25),
    "sampled gaussian": subsampled(Gaussian(sigma=1.5, unit=ADD), 0.05),
    "sampled gaussian, fixed": subsampled(Gaussian(sigma=3.0, unit=REPLACE), 0.2),
}
STEPPED = {
    name: made
    for name, made in MECHANISMS.items()
    if name not in ("gaussian 300", "gaussian 301", "gaussian 20001", "pseudo 4096", "pseudo 4097", "sum-zero 256")
}
"""Those whose loss distribution is not a matter of seconds."""


def event(name: str, **numbers: float) -> ForeignEvent:
    import dp_accounting

    cost = ForeignEvent.cost(getattr(dp_accounting, name)(**numbers), ADD, what="training")
    return cost.entries[0][0]


CASES: digits.Cases = {
    **{f"price, {name}": lambda made=made: priced(made) for name, made in MECHANISMS.items()},
    **{f"steps, {name}": lambda made=made: steps(made) for name, made in STEPPED.items()},
    **{
        f"price, {name}": lambda name=name, numbers=numbers: priced(event(name, **numbers))
        for name, numbers in (
            ("GaussianDpEvent", {"noise_multiplier": 2.0}),
            ("LaplaceDpEvent", {"noise_multiplier": 3.0}),
        )
    },
    "records": lambda: [made.record() for made in MECHANISMS.values()],
    "shifts": lambda: [made.gdp() for made in MECHANISMS.values() if hasattr(made, "gdp")],
    "but for": lambda: [
        [a.record(), b] for a, b in (m.but_for() for m in MECHANISMS.values() if hasattr(m, "but_for"))
    ],
    "suits": lambda: [
        kind.suits(target, unit)
        for kind in kinds.noises()
        for target in (PureDP(epsilon=1), ApproxDP(epsilon=1, delta=1e-6), ZCDP(rho=1))
        for unit in (ADD, REPLACE, NAMED)
    ],
    "profiles": lambda: [Selection(sharpness=s, unit=ADD).profile(np.linspace(0, 3, 9)) for s in (0.5, 2.0, 3.0)],
    "families": lambda: (
        [[kind.family(ADD).name, kind.family(ADD).make(2.0).record()] for kind in (Gaussian, Laplace, Selection)]
        + [tuning.gaussian_noise(ADD).make(3.0).record(), tuning.laplace_noise(ADD).make(3.0).record()]
    ),
    "constants": lambda: [
        gaussian.LARGEST_EXACT_SIGMA,
        gaussian.TAIL_DEVIATIONS,
        dirichlet.DIGITS,
        dirichlet.STEPS,
        dirichlet.FINEST,
        dirichlet.LARGEST_CONCENTRATION,
        dirichlet.LARGEST_WEIGHT,
        dirichlet.LARGEST_SHAPE,
        dirichlet._LOWEST,
        sum_zero.MOST_CELLS,
        sum_zero.LARGEST_SCALE,
        threshold.LARGEST,
        tuning.SLACK,
        tuning.REFERENCE_CELLS,
        tuning.REFERENCE_RECORDS,
    ],
    "faces": lambda: [[kind, (c := kinds.class_of(kind)).__name__, list(c.tables), c.closed] for kind in kinds.KINDS],
}


@pytest.mark.parametrize("name", CASES)
def test_prices_and_seeded_draws_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])


def test_an_urn_finds_the_cell_of_every_ball() -> None:
    for size in (1, 2, 3, 7, 8, 9, 16):
        balls = [(3 * k * k + 1) % 5 for k in range(size)]
        urn = _Urn(balls)
        for cell in (0, size // 2, size - 1):
            urn.add(cell, 2)
            balls[cell] += 2
            assert urn.total == sum(balls)
            assert [urn.find(ball) for ball in range(urn.total)] == [k for k in range(size) for _ in range(balls[k])]


def test_sampling_refuses_what_its_proof_does_not_cover() -> None:
    refused = (
        lambda: Subsampled(mechanism=Laplace(scale=1.0, unit=ADD), rate=0.1, sampling="fixed"),
        lambda: Subsampled(mechanism=Laplace(scale=1.0, unit=REPLACE), rate=0.1, sampling="poisson"),
        lambda: subsampled(Laplace(scale=1.0, unit=ADD3), 0.1),
        lambda: subsampled(Laplace(scale=1.0, unit=NAMED), 0.1),
        lambda: subsampled(MECHANISMS["dirichlet, moved"], 0.1),
        lambda: subsampled(MECHANISMS["stated, delta"], 0.1),
        lambda: subsampled(MECHANISMS["sampled laplace"], 0.1),
        lambda: subsampled(MECHANISMS["threshold"], 0.1),
    )
    assert all(digits.refusal(each).startswith("InvalidArgument: Subsampled: ") for each in refused)
