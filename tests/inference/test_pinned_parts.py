"""Parts of the linear law and of intervals in digits, on both sides of every threshold."""

from __future__ import annotations

import numpy as np
import pytest
from tests import digits
from tests.inference.test_pinned import SIZES, SPREADS, TRUTH, table

from dpbayes.inference import intervals, measurement
from dpbayes.inference.cut import Cells
from dpbayes.inference.intervals import Spread, assist, half_step, ratio, symmetric, whole
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.inference.numbers import Repeats


def assisted(count: int, level: float, *, even: bool = True) -> list[object]:
    rng = np.random.default_rng(count)
    shape = rng.gamma(0.5, 30.0, count)
    center = np.rint(rng.poisson(shape) + rng.normal(0, 4, count)) + (0 if even else rng.random(count))
    cells = Cells.of(shape, center, np.full(count, 16.0))
    prior = np.exp(-0.5 * (np.arange(measured_factors()) / 9.0 - 3) ** 2)
    spread = Spread(constant=np.full(count, 16.0), linear=0.5, square=1e-4)
    return list(assist(cells, prior / prior.sum(), spread, level))


def measured_factors() -> int:
    return len(intervals.FACTORS)


def alike(count: int, variance: float = 0.0, step: float = 0.0) -> object:
    base = np.arange(count) % 40 + 0.25
    base[-1] += step
    cells = Cells.of(1.0 + np.arange(count) % 7, base, np.full(count, 4.0))
    spread = Spread(constant=np.append(np.full(count - 1, 4.0), 4.0 + variance))
    found = intervals._alike(cells, spread)
    return None if found is None else list(found)


CASES: digits.Cases = {
    "refused by the law": lambda: [
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], SIZES).mean(("a", "c"))),
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], SIZES).moments([{("a", "c"): np.eye(2, 4)}])),
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], SIZES).ordered(("a", "a"))),
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], SIZES).ordered("d")),
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], {"a": 2, "b": 4})),
        digits.refusal(lambda: LinearLaw([Measurement(axes=(), values=np.ones(()), noise=Exact())], SIZES, 2.0)),
        digits.refusal(
            lambda: LinearLaw([table("ab", "exact"), Measurement(axes=("a",), values=np.ones(2), noise=Exact())], SIZES)
        ),
        digits.refusal(lambda: LinearLaw([table("ab", "gaussian")], SIZES, zeros=[(("a",), np.zeros(3))])),
        digits.refusal(lambda: Measurement(axes=("a", "a"), values=np.ones((2, 2)), noise=Exact())),
        digits.refusal(lambda: Measurement(axes=("a",), values=np.ones((2, 2)), noise=Exact())),
        digits.refusal(lambda: Measurement(axes=("a",), values=np.ones(0), noise=Exact())),
        digits.refusal(lambda: Measurement(axes=("a",), values=np.array([1.0, np.inf]), noise=Exact())),
    ],
    "spreads": lambda: [
        [each.at(np.array([0.0, 3.0, 90.0])), each.end(np.array([-2.0, 0.0, 70.0]), z), each.take(slice(1, 2)).constant]
        for each in SPREADS
        for z in (-2.5, -1.0, 1.0, 2.5)
    ],
    "symmetric": lambda: [
        symmetric(np.array([-2.0, 0.0, 70.0]), each, level) for each in SPREADS for level in (0.5, 0.95)
    ],
    "reach": lambda: [intervals.reach(level) for level in (0.5, 0.9, 0.95)],
    "half steps": lambda: [
        half_step(np.array([0.0, 1.0, 50.0]), level, step) for level in (0.5, 0.95) for step in (1.0, 3.0)
    ],
    "whole": lambda: whole(
        np.array([0.0, 2.4, 7.0, 3.0000001, 2.9999999]),
        np.array([0.5, 2.499999, 6.5000001, 2.2, -0.5]),
        np.array([0.5, 2.500001, 7.4999999, 3.9, 3.5]),
    ),
    "ratios": lambda: [
        ratio(
            np.array([3.0, 40.0, -2.0, 5.0]),
            np.array([20.0, 50.0, 30.0, 4.0]),
            np.full(4, v),
            np.full(4, c),
            np.full(4, w),
            level,
            s,
        )
        for v, c, w in ((4.0, 1.0, 9.0), (25.0, 0.0, 30.0))
        for level in (0.5, 0.95)
        for s in (0.0, 20.0)
    ],
    "assisted": lambda: [
        assisted(300, 0.95),
        assisted(300, 0.6),
        assisted(60_000, 0.95),
        assisted(60, 0.95, even=False),
    ],
    "alike": lambda: [
        alike(400),
        alike(400, 3e-6),
        alike(400, 5e-6),
        alike(400, step=0.9e-6),
        alike(400, step=1.1e-6),
        alike(80),
    ],
    "grouped": lambda: intervals._group(np.arange(1.0, measured_factors() + 1) / 1000),
    "repeats": lambda: [
        [r.most, r.said, r.among({"c": np.array([1.0, 1, 0, 0])}), r.among({}), r.table(("a", "c")), r.table(())]
        for r in (Repeats(), Repeats(most=4, within={"c": np.array([1, 1, 2, 4])}), Repeats(most=2))
    ],
    "parts": lambda: [
        [p for _, p in sorted(measurement.split(TRUTH * 1.0, ("a", "b", "c")).items())],
        measurement.assemble(measurement.split(TRUTH * 1.0, ("a", "b", "c")), ("a", "c"), SIZES),
        measurement.assemble({("a",): np.array([1.0, -1.0])}, ("a", "b"), SIZES),
        measurement.assemble({}, ("a",), SIZES),
        measurement.assemble({("b",): np.ones((5, 3))}, ("b", "c"), SIZES),
        measurement.centre(TRUTH * 1.0, 1),
        [list(each) for each in measurement.closure([("a", "b"), ("b", "c")])],
        measurement.cells(("b", "c"), SIZES),
    ],
    "even noise": lambda: sorted(
        (",".join(axes), v)
        for axes, v in measurement.even_noise(
            SIZES, [(("a", "b"), 4.0), (("b", "c"), 2.5), (("b",), 1.0)], [("a",)]
        ).items()
    ),
    "even covariances": lambda: [
        measurement.even_covariance(
            measurement.even_noise(SIZES, [(("a", "b", "c"), 4.0), (("b",), 1.0)]), SIZES, ("a", "b", "c"), margin
        )
        for margin in measurement.subsets(("a", "b", "c"))
    ],
    "fitted": lambda: (
        [
            measurement.fit_margins(
                TRUTH.sum(axis=2) + 1.0,
                ("a", "b"),
                [(("a",), np.array([400.0, 500.0])), (("b",), np.array([100.0, 300, 500]))],
                *n,
            )
            for n in ((), (1,), (3,))
        ]
        + [
            measurement.fit_margins(
                np.array([[1e-9, 1.0], [1.0, 1.0]]),
                ("a", "b"),
                [(("b",), np.array([60.0, 40.0])), (("a",), np.array([99.9, 0.1]))],
            ),
            measurement.fit_margins(
                np.array([[0.0, 1.0], [1.0, 0.0]]),
                ("a", "b"),
                [(("b",), np.array([60.0, 40.0])), (("a",), np.array([30.0, 70.0]))],
            ),
            measurement.fit_margins(
                TRUTH + 1.0,
                ("a", "b", "c"),
                [(("a", "b"), TRUTH.sum(axis=2) * 1.0), (("c",), TRUTH.sum(axis=(0, 1)) * 1.0)],
                7,
            ),
        ]
    ),
    "finished": lambda: measurement._finish(
        np.array([[5.0, 1.0], [2.0, 2.0]]), np.array([4.0, 6.0]), np.array([7.0, 3.0])
    ),
    "shared gaps": lambda: [
        measurement.share_gaps(
            np.ones((2, 3)),
            np.array([[1.0, 2, 0], [0, 0, 0]]),
            ("a", "b"),
            [(("a",), np.array([5.0, 7])), (("b",), np.array([2.0, 3, 4]))],
            n,
        )
        for n in (1, 5)
    ],
    "tolerances": lambda: [measurement.tolerance(np.array([n])) for n in (1.0, 1e6, 1.1e6, 1e9)],
    "exact": lambda: [Exact().variance(np.ones(3)), Exact().log_law(2.0, np.array([1, 2]))],
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_estimates_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])
