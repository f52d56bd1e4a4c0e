"""What mechanisms refuse, one step before and after every limit; and bounds that lie on the safe side of the truth."""

from __future__ import annotations

import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from tests import digits
from tests.mechanisms.test_pinned import ADD, ADD3, INF, MECHANISMS, MOVED, NAMED, REPLACE, REPLACE2
from tests.mechanisms.test_pinned_parts import wide

from dpbayes import PureDP
from dpbayes.mechanisms import dirichlet, kinds, threshold, tuning, urn, utility
from dpbayes.mechanisms.dirichlet import Dirichlet, GammaNoise, UnroundedDirichlet
from dpbayes.mechanisms.gaussian import Gaussian, GaussianNoise
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise
from dpbayes.mechanisms.lazy import LARGEST_TOTAL, LazyDirichlet
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.stated import ForeignEvent, Stated, StatedRDP
from dpbayes.mechanisms.subsampled import Subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.threshold import Threshold, threshold_for
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.guarantee import RDP
from dpbayes.schema.counts import SparseCounts

UP = math.nextafter
PLAIN = {"weight": 1.0, "concentration": 5.0, "unit": ADD}
PSEUDO = {"weight": 1.0, "concentration": 5.0, "records": 9, "unit": REPLACE}
ZERO = {"scale": 2.0, "cells": 3, "unit": REPLACE}
KEPT = {"scale": 2.0, "threshold": 9, "unit": ADD3}
LAPLACE = Laplace(scale=1.0, unit=ADD)
SAMPLED = {"mechanism": LAPLACE, "rate": 0.1, "sampling": "poisson"}
RDP5 = RDP(order=5, epsilon=1)
CURVE = {"target": RDP5, "unit": REPLACE}
WRONG: list[tuple[Any, dict[str, Any], list[dict[str, Any]]]] = [
    (GaussianNoise, {}, [{"sigma": 0.0}, {"sigma": INF}]),
    (LaplaceNoise, {}, [{"scale": 0.0}, {"scale": -1.0}]),
    (
        GammaNoise,
        {"weight": 1.0, "concentration": 1.0},
        [
            {"weight": 0.0},
            {"concentration": 0.0},
            {"concentration": INF},
            {"concentration": np.zeros(0)},
            {"concentration": np.array([1.0, 0.0])},
        ],
    ),
    (Gaussian, {"unit": ADD}, [{"sigma": 0.0}, {"sigma": True}, {"sigma": 3}, {"sigma": "3"}]),
    (Laplace, {"unit": ADD}, [{"scale": 0.0}, {"scale": INF}]),
    (Selection, {"unit": ADD}, [{"sharpness": 0.0}]),
    (
        Dirichlet,
        PLAIN,
        [
            {"weight": 0.0},
            {"weight": 2.0**32},
            {"weight": UP(2.0**32, INF)},
            {"concentration": 2.0**49},
            {"concentration": UP(2.0**49, INF)},
            {"concentration": 0.0},
            {"concentration": (1.0,)},
            {"concentration": [1, 2]},
            {"concentration": (1.0, 0.0)},
            {"concentration": (1.0, 2.0**50)},
            {"least_count": -1},
            {"least_count": 7},
            {"grid": -1.0},
            {"grid": 3.0},
            {"grid": 2.0**-16},
            {"grid": 2.0**-17},
            {"grid": 2.0**52},
            {"grid": 2.0**53},
            {"least_count": 2**52 - 5},
            {"least_count": 2**52 - 4},
        ],
    ),
    (UnroundedDirichlet, PLAIN, [{"grid": 1.0}, {"weight": 2.0**40}]),
    (
        PseudoRecords,
        PSEUDO,
        [
            {"records": 0},
            {"records": 2**62},
            {"records": 2**62 + 1},
            {"records": np.int64(3)},
            {"weight": 0.0},
            {"weight": 1},
        ],
    ),
    (
        SumZeroLaplace,
        ZERO,
        [
            {"unit": ADD},
            {"unit": NAMED},
            {"cells": 1},
            {"cells": 2},
            {"cells": 256},
            {"cells": 257},
            {"scale": 2.0**40},
            {"scale": UP(2.0**40, INF)},
            {"scale": 0.0},
        ],
    ),
    (
        Threshold,
        KEPT,
        [{"threshold": 2}, {"threshold": 3}, {"threshold": 2**50}, {"threshold": 2**50 + 1}, {"scale": 0.0}],
    ),
    (
        Subsampled,
        SAMPLED,
        [
            {"rate": 0.0},
            {"rate": 1.0},
            {"rate": 1.5},
            {"sampling": "all"},
            {"sampling": "fixed"},
            {"mechanism": MECHANISMS["stated"]},
            {"mechanism": MECHANISMS["sampled laplace"]},
            {"mechanism": MECHANISMS["threshold"]},
            {"mechanism": Laplace(scale=1.0, unit=ADD3)},
            {"mechanism": Laplace(scale=1.0, unit=REPLACE)},
            {"mechanism": Laplace(scale=1.0, unit=NAMED), "sampling": "fixed"},
            {"mechanism": Laplace(scale=1.0, unit=REPLACE2), "sampling": "fixed"},
            {"mechanism": Dirichlet(**PLAIN, sensitivity=MOVED)},
        ],
    ),
    (
        Stated,
        {"epsilon_stated": 1.0, "delta_stated": 0.0, "unit": ADD, "what": "x"},
        [
            {"epsilon_stated": 0.0},
            {"delta_stated": -0.1},
            {"delta_stated": 1.0},
            {"delta_stated": 0.5},
            {"epsilon_stated": 2},
        ],
    ),
    (
        StatedRDP,
        {"order": 2.0, "epsilon_stated": 1.0, "unit": ADD, "what": "x"},
        [{"order": 1.0}, {"epsilon_stated": 0.0}],
    ),
    (
        ForeignEvent,
        {"event": '{"class":"GaussianDpEvent","noise_multiplier":2.0}', "unit": ADD, "what": "x"},
        [{"event": 3}, {"unit": REPLACE}, {"event": "{}"}],
    ),
    (tuning.ConcentrationCurve, CURVE, [{"releases": 0}, {"accounting": "both"}]),
]


def made(kind: Any, usual: dict[str, Any], more: dict[str, Any]) -> object:
    found = kind(**usual | more)
    return found.record() if hasattr(found, "record") else "made"


def lazily(**more: Any) -> object:
    counts = SparseCounts.of_rows((5, 4), np.array([[4, 1]] * 5))
    asked = {
        "mechanism": Dirichlet(weight=1, concentration=0.5, unit=REPLACE),
        "counts": counts,
        "key": bytes(32),
    } | more
    return LazyDirichlet(asked.pop("mechanism"), asked.pop("counts"), **asked).cost.releases


def file(text: str) -> str:
    path = Path(tempfile.mkdtemp()) / "made.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def priced(text: str) -> object:
    try:
        return [[each.record(), times] for each, times in kinds.from_text(text, ADD).entries]
    except kinds.InvalidArgument as error:
        return str(error).replace(text, "FILE") if text.endswith(".json") else str(error)


CHOSEN = Selection(sharpness=1.0, unit=ADD)
CASES: digits.Cases = {
    **{
        f"made, {kind.__name__}": lambda kind=kind, usual=usual, all_wrong=all_wrong: [
            digits.refusal(made, kind, usual, more) for more in all_wrong
        ]
        for kind, usual, all_wrong in WRONG
    },
    "choices": lambda: [
        digits.refusal(lambda scores, spread: CHOSEN.choose(scores, spread=spread, below=lambda _: 0), scores, spread)
        for scores, spread in (
            ([1], 0),
            ([], 1),
            ([1.5], 1),
            ([1, 2.0], 1),
            ([True], 1),
            ("12", 1),
            ({1: 2}, 1),
            ([3], 1),
        )
    ],
    "lazy": lambda: [
        digits.refusal(lambda given: lazily(**given), more)
        for more in (
            {"mechanism": Dirichlet(weight=1, concentration=(1.0, 2.0), unit=REPLACE)},
            {"mechanism": Dirichlet(weight=1, concentration=1.0, unit=REPLACE, least_count=1)},
            {"law": "rows"},
            {"key": bytes(31)},
            {"key": "0" * 32},
            {"law": "splits"},
            {
                "mechanism": Dirichlet(weight=1, concentration=2.0**49, unit=REPLACE),
                "counts": SparseCounts.of_rows((2**21,), np.zeros((1, 1), dtype=int)),
            },
            {
                "mechanism": Dirichlet(weight=1, concentration=2.0**49, unit=REPLACE),
                "counts": SparseCounts.of_rows((2**21 + 1,), np.zeros((1, 1), dtype=int)),
            },
        )
    ],
    "asked of lazy": lambda: [
        *(
            digits.refusal(wide("cells").shares, np.array(rows))
            for rows in ([0, 0, 0], [[0, 0]], [[0.0, 0, 0]], [[-1, 0, 0]], [[5, 0, 0]], [[4, 129, 2]])
        ),
        digits.refusal(wide("cells").shares, np.zeros((0, 3), dtype=int)),
        *(
            digits.refusal(wide("cells").marginal, *asked)
            for asked in (([],), ([0, 0],), ([3],), ([0], {0: 1}), ([0], {1: 130}), ([0], {1: -1}), ([], {0: 1}))
        ),
        digits.refusal(
            lambda: LazyDirichlet(
                Dirichlet(weight=1, concentration=0.5, unit=REPLACE),
                SparseCounts.of_rows((1500, 1500), np.array([[0, 0]])),
                key=bytes(32),
            ).marginal([1])
        ),
        LARGEST_TOTAL,
    ],
    "read as text": lambda: [
        priced(text)
        for text in (
            "3 * Gaussian(4)",
            "Laplace(scale=2)",
            "Gausian(3)",
            "Gaussian()",
            "Stated(1, 1e-6)",
            "ForeignEvent(1)",
            "PseudoRecords(1, 2, 30)",
            file("["),
            file("{}"),
            file("[]"),
            file("[3]"),
            file(json.dumps([LAPLACE.record(), {**LAPLACE.record(), "times": 4}])),
            "/nowhere/at/all.json",
        )
    ],
    "records": lambda: [
        digits.refusal(lambda record: kinds.from_record(record).record(), record)
        for record in (
            3,
            {},
            {"mechanism": "laplace-9"},
            {"mechanism": "laplace-1"},
            {"mechanism": "laplace-1", "scale": 0, "unit": ADD.record()},
            {**Dirichlet(**PLAIN).record(), "grid": 0},
            {**Dirichlet(**PLAIN).record(), "grid": 0.5},
            {**LAPLACE.record(), "scale": None},
        )
    ],
    "drawn": lambda: [
        digits.refusal(UnroundedDirichlet(**PLAIN).draw, [1, 2]),
        digits.refusal(Dirichlet(**PLAIN | {"concentration": (1.0, 2.0)}).draw, [1, 2, 3]),
        digits.refusal(SumZeroLaplace(**ZERO).draw, [1, 2]),
        digits.refusal(MECHANISMS["threshold"].noise),
        digits.refusal(urn.pseudo_records, Dirichlet(**PLAIN), [1, 2], 0),
        digits.refusal(urn.pseudo_records, Dirichlet(**PLAIN | {"concentration": (1.0, 2.0)}), [1, 2, 3], 4),
        digits.refusal(GammaNoise(weight=1.0, concentration=np.ones(2)).log_law, 1.0, np.ones(2)),
        digits.refusal(Selection.family(ADD).make, 0.0),
        digits.refusal(Dirichlet.family, ADD),
        digits.refusal(lambda: [LAPLACE.renyi(0.5)]),
        digits.refusal(LAPLACE.delta, -1.0),
        digits.refusal(LAPLACE.epsilon, 0.0),
        digits.refusal(LAPLACE.concentrated, 1.0),
        LAPLACE.renyi(np.array([[2.0, 3.0]])),
        LAPLACE.delta([0.0, 0.1]),
    ],
    "tuning": lambda: [
        *(
            digits.refusal(lambda given: tuning.ConcentrationCurve(**CURVE).best(**given).weight > 0, more)
            for more in ({"purpose": "both"}, {"cells": 0}, {"records": 0}, {"cells": 1})
        ),
        *(
            digits.refusal(
                lambda given: (
                    tuning.PseudoRecordsCurve(target=PureDP(epsilon=1), unit=REPLACE, drawn=9).best(**given).weight > 0
                ),
                more,
            )
            for more in ({"cells": 0}, {"records": 0})
        ),
        digits.refusal(tuning.published_dirichlet, RDP5, REPLACE, slack=-1.0),
        digits.refusal(tuning.dirichlet_at_weight, 0.0, REPLACE),
        digits.refusal(tuning.ConcentrationCurve(target=PureDP(epsilon=1), unit=REPLACE).best),
        digits.refusal(tuning._scalar, Dirichlet(**PLAIN | {"concentration": (1.0, 2.0)})),
        digits.refusal(tuning.ConcentrationCurve(**CURVE).at, 2.0**33),
    ],
    "thresholds": lambda: [
        digits.refusal(lambda e, d: threshold_for(epsilon=e, delta=d, unit=ADD).threshold, e, d)
        for e, d in ((0.0, 0.1), (1.0, 0.0), (1.0, 1.0), (1e-14, 1e-300))
    ],
    "distributions": lambda: [
        digits.refusal(lambda p: utility.distribution("It", p).tolist(), p)
        for p in (
            [0.5, 0.5],
            [0.5, 0.5 + 0.9e-9],
            [0.5, 0.5 + 2e-9],
            [1.0],
            [1.5, -0.5],
            [[0.5, 0.5]],
            ["a", "b"],
            [[1], [2, 3]],
            [0.0, 1.0],
        )
    ],
    "grids": lambda: dirichlet.on_grid(np.array([2.0**-17, 2.0**-16, 3.1 * 2.0**-16, 63.999, 64.0]), 2.0**-16),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_is_what_it_was(name: str) -> None:
    digits.check(__name__, name, CASES[name])


@pytest.mark.parametrize("epsilon", [0.013, 0.3, 0.77, 1.0, 1.9, 4.4])
def test_a_selection_is_priced_on_the_safe_side_of_the_truth(epsilon: float) -> None:
    chosen = Selection(sharpness=epsilon, unit=ADD)
    assert 0 < Fraction(chosen.concentrated(2.0)) - Fraction(epsilon) ** 2 / 8 < 2e-12 * epsilon**2
    with mp.workdps(60):
        e = mp.mpf(epsilon)
        for part in (0.0, 0.1, 0.37, 0.5, 0.83):
            at = part * epsilon
            truth = (mp.exp(e / 2) - mp.exp(mp.mpf(at) / 2)) ** 2 / mp.expm1(e)
            assert truth <= mp.mpf(chosen.delta(at)) <= truth * (1 + mp.mpf(10) ** -11)
            least = chosen.epsilon(max(part, 1e-9) * float((1 - mp.exp(-e / 2)) ** 2 / (1 - mp.exp(-e))))
            met = (mp.exp(e / 2) - mp.exp(mp.mpf(least) / 2)) ** 2 / mp.expm1(e)
            assert met <= max(part, 1e-9) * float((1 - mp.exp(-e / 2)) ** 2 / (1 - mp.exp(-e)))


@pytest.mark.parametrize(("scale", "at", "rows"), [(0.7, 3, 1), (2.0, 9, 3), (5.5, 40, 2), (1.0, 4, 4), (30.0, 9, 9)])
def test_a_betrayal_is_at_least_as_likely_as_stated(scale: float, at: int, rows: int) -> None:
    with mp.workdps(60):
        q = mp.exp(-1 / mp.mpf(scale))
        kept = [q ** (at - c + 1) / (1 + q) for c in (rows, 1)]
        truth = max(kept[0], 1 - (1 - kept[1]) ** rows)
        assert (
            truth <= mp.mpf(threshold.betrayal(scale=scale, threshold=at, rows=rows)) <= truth * (1 + mp.mpf(10) ** -11)
        )


@pytest.mark.parametrize("sigma", [0.4, 0.55, 0.9])
@pytest.mark.parametrize("order", [1.25, 1.7, 3.5, 9.6])
def test_the_divergence_of_discrete_gaussian_noise_is_at_least_the_sum(sigma: float, order: float) -> None:
    with mp.workdps(40):
        s, o = mp.mpf(sigma), mp.mpf(order)
        theta = [mp.fsum(mp.exp(-((k - u) ** 2) / (2 * s * s)) for k in range(-12, 24)) for u in (o - 1, mp.mpf(0))]
        truth = o / (2 * s * s) + mp.log(theta[0] / theta[1]) / (o - 1)
        for unit in (ADD, REPLACE):
            sides = 2 if unit.replaces else 1
            found = mp.mpf(Gaussian(sigma=sigma, unit=unit).renyi(order))
            assert sides * truth <= found <= sides * truth * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -12


@pytest.mark.parametrize("cells", [2, 3, 9])
@pytest.mark.parametrize("scale", [0.5, 2.0, 11.0])
def test_the_largest_loss_of_closed_noise_is_no_likelier_than_stated(scale: float, cells: int) -> None:
    with mp.workdps(50):
        x = mp.coth(1 / mp.mpf(scale))
        ratio = mp.legendre(cells - 1, x) / mp.legendre(cells - 2, x)
        truth = 1 / ((1 - mp.exp(-2 / mp.mpf(scale))) * ratio)
        from dpbayes.mechanisms.sum_zero import chance_of_loss

        assert truth <= mp.mpf(chance_of_loss(scale, cells)) <= truth * (1 + mp.mpf(10) ** -11)
