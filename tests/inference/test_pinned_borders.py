"""Estimates and intervals at their borders: thin rows, empty tables, broken totals, tables never crossed."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from tests import digits
from tests.inference.test_pinned import NAMES, NOISES, SIZES, TRUTH, estimated, posteriors, replied, table

from dpbayes.inference import ask, intervals, measurement
from dpbayes.inference.ask import _Value
from dpbayes.inference.cut import Cells
from dpbayes.inference.intervals import Spread, ratio
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.mechanisms.gaussian import GaussianNoise


def clear(axes: str, values: object) -> Measurement:
    """A public table."""
    return Measurement(axes=tuple(axes), values=np.array(values), noise=Exact())


@functools.cache
def thin() -> dict[str, JointPosterior]:
    """Posteriors of nearly nothing."""
    few = Measurement(axes=("a", "b"), values=np.array([[40.0, 3.0, -2.0], [0.3, -0.4, 0.2]]), noise=NOISES["fine"])
    less = Measurement(
        axes=("a", "b"), values=np.array([[9.0, -30.0, -25.0], [-9.0, -4.0, 2.0]]), noise=NOISES["gaussian"]
    )
    far = Measurement(
        axes=("a", "b"), values=np.array([[9.0, 930.0, 925.0], [-30.0, -40.0, 2.0]]), noise=NOISES["fine"]
    )
    uneven = Measurement(axes=("b",), values=np.array([0.2, 0.1, 0.4]), noise=NOISES["gamma"])
    return {
        "few": JointPosterior([few], SIZES),
        "few, known": JointPosterior([few], SIZES, records=41),
        "less": JointPosterior([less], SIZES),
        "less, known": JointPosterior([less], SIZES, records=3),
        "far": JointPosterior([far], SIZES, records=1700),
        "uneven": JointPosterior([uneven], SIZES),
        "not whole": JointPosterior([table("ab", "gaussian")], SIZES, margins=[clear("b", [100.2, 300.0, 499.3])]),
        "nearly whole": JointPosterior(
            [table("ab", "gaussian")], SIZES, margins=[clear("b", [100.0, 300.0, 499.9999999])]
        ),
        "nothing": JointPosterior([less], SIZES, records=0),
        "deep zeros": JointPosterior(
            [table("cab", "gaussian"), table("ab", "laplace")], SIZES, zeros=[(("a", "b"), TRUTH.sum(axis=2) < 40)]
        ),
        "two zeros": JointPosterior(
            [table("ab", "gaussian"), table("bc", "gaussian")],
            SIZES,
            records=900,
            zeros=[(("a",), np.array([False, False])), (("c", "b"), TRUTH.sum(axis=0).T < 20), (("b",), np.zeros(3))],
        ),
    }


OF_THIN = [
    "share(b=u | a=y)",
    "share(b=u | a=y) + 1",
    "share(b=u | a=y) - share(b=u | a=x)",
    "count(a=y)",
    "count(a=y, b=v)",
    "share(a=y)",
    "count(a=x) * count(a=y)",
    "count(a=x) / count(a=y)",
    "count(b=u) + count(b=v)",
    "share(b in (u, v) | a=x)",
]
NEVER_CROSSED = [
    "share(a=x) - share(c=1)",
    "share(a=x) + share(c=1)",
    "count(a=x) * count(c=0)",
    "count(a=x) + 0 * count(c=1)",
    "0 * count(a=x) + count(c=1)",
    "share(b=u | c in (0, 1))",
    "share(b=u | c=3)",
    "count(a=x, b=u) - count(b=u, c=1)",
    "share(c=1) - share(a=y) - share(b=v)",
    "share(c=1) / share(a=y)",
]


def normal(
    estimate: float,
    weights: list[float],
    variance: float,
    *,
    linear: dict[int, float],
    sampled: list[float] | None = None,
) -> list[float]:
    value = _Value(lambda sums: sums[:, 0], (0.0, 10.0), linear)
    noise = np.eye(len(weights)) * variance
    sampling = np.diag(sampled or [0.0] * len(weights))
    return list(ask._normal(value, estimate, np.array(weights), noise, sampling, 0.95))


def named(levels: list[str], question: str) -> str:
    made = Measurement(axes=("k",), values=np.ones(len(levels)), noise=NOISES["gaussian"])
    places = {level: place for place, level in enumerate(levels)}
    return digits.refusal(JointPosterior([made], {"k": len(levels)}).ask, question, {"k": places})


def alike(count: int, *, variance: float = 0.0, spread: float = 0.0, step: float = 0.0) -> object:
    base, steps = np.arange(count) % 10 + 0.25, np.zeros(count)
    steps[-1] = 1.0
    cells = Cells.of(1.0 + np.arange(count) % 3, base + step * steps, 4.0 + variance * steps)
    found = intervals._alike(cells, Spread(constant=4.0 + spread * steps))
    return None if found is None else list(found)


def agreeing(by: float, at: int = 0) -> str:
    """Whether public margins that differ by so much in one place are taken."""
    moved = TRUTH.sum(axis=(0, 2)) * 1.0
    moved[at] += by
    moved[at + 1] -= by
    return digits.refusal(lambda: LinearLaw([table("ab", "exact"), clear("b", moved)], SIZES).mean(("b",)) is not None)


EVEN = LinearLaw([table("ab", "gaussian"), table("c", "gaussian")], SIZES)
PART = np.array([30.0, 60.0, 3.0, 0.4, 0.0, 49.0])
WHOLE = np.array([60.0, 50.0, 4.0, 0.5, 0.0, 50.0])

CASES: digits.Cases = {
    **{
        f"thin, {name}, {question}": lambda name=name, question=question: replied(thin()[name], question)
        for name in ("few", "few, known", "less", "less, known", "far", "not whole")
        for question in OF_THIN
        if "/" not in question or name == "far"
    },
    **{
        f"never crossed, {name}, {question}": lambda name=name, question=question: replied(posteriors()[name], question)
        for name in ("two", "rows", "private")
        for question in NEVER_CROSSED
    },
    **{
        f"estimated, {name}": lambda name=name: [
            estimated(thin()[name], axes, given, prior_assisted=assisted, level=level)
            for axes, given in ((("b",), ()), *((((("b",), ("a",))), (("a", "b"), ()))) * (name != "uneven"))
            for assisted, level in ((True, 0.95), (False, 0.6))
        ]
        for name in thin()
    },
    "sums": lambda: [
        normal(estimate, weights, variance, linear=linear, sampled=sampled)
        for estimate in (-5.0, -0.1, 4.3, 10.5, 14.0)
        for weights, variance, linear, sampled in (
            ([1.0], 4.0, {0: 1.0}, None),
            ([1.0, 2.0], 1.0, {0: 1.0, 1: 2.0}, None),
            ([1.0, 0.3], 1.0, {0: 1.0, 1: 0.3}, None),
            ([2.0, 0.0], 1.0, {0: 2.0, -1: 0.5}, None),
            ([1.0, 1.0], 0.0, {0: 1.0}, None),
            ([1.0, 1.0], 1.0, {0: 1.0}, [3.0, 0.0]),
            ([0.0], 1.0, {}, None),
        )
    ],
    "names": lambda: [
        sorted(ask.names_in(question))
        for question in ("share(b=1 | a=2) + count(c=1) - 3", "2 * count()", "share(b=1)")
    ],
    "hints": lambda: (
        [named([f"l{n}" for n in range(11, 11 + size)], "count(k=zz)") for size in (11, 12, 13)]
        + [named(["ab1", "ab2", "ab3", "x"], "count(k=ab4)")]
    ),
    "bounds": lambda: [
        list(ask.Asked(posteriors()["two"], NAMES).value(ask.read(question)).bounds)
        for question in (
            "(count(a=x) + 5) + (count(b=u) + 7)",
            "(count(a=x) + 5) - (count(b=u) + 7)",
            "(count(a=x) + 5) / (count() + 1)",
        )
    ],
    "alike": lambda: [
        alike(4000),
        alike(60),
        alike(70),
        *(alike(4000, variance=by) for by in (3.9e-6, 4.1e-6)),
        *(alike(4000, spread=by) for by in (3.9e-6, 4.1e-6)),
        *(alike(4000, step=by) for by in (0.9e-6, 1.1e-6)),
        alike(4000, step=0.5, variance=1.0),
    ],
    "ratios": lambda: [
        list(ratio(PART, WHOLE, np.full(6, v), np.full(6, c), np.full(6, w), level, s))
        for v, c, w in ((4.0, 1.0, 9.0), (0.01, 0.0, 0.01), (0.0, 0.0, 0.0))
        for level in (0.5, 0.95)
        for s in (0.0, 20.0)
    ],
    "missing": lambda: [
        [[list(part) for part in law.missing(law.ordered(axes))] for axes in measurement.subsets(tuple(SIZES))]
        for law in (EVEN, LinearLaw([table("a1", "gaussian")], SIZES))
    ],
    "undetermined": lambda: [
        digits.refusal(EVEN.draws, [("a", "c")], 2, np.random.default_rng(1)),
        digits.refusal(EVEN.covariance_with_margin, ("a", "c"), ("a",)),
        digits.refusal(EVEN.variance, ("b", "c")),
        digits.refusal(EVEN.moments, [{("a", "c"): np.full((2, 4), 1.0)}]),
        digits.refusal(EVEN.moments, [{("a", "c"): np.outer([1.0, -1.0], [1.0, -1.0, 0.0, 0.0])}]),
    ],
    "agreeing": lambda: [agreeing(by, at) for by in (8e-7, 1e-6, 3.0) for at in (0, 1)],
    "fitted": lambda: [
        measurement.fit_margins(
            np.array(start), ("a", "b"), [(("a",), np.array(rows)), (("b",), np.array(columns))], *sweeps
        )
        for start, rows, columns in (
            ([[0.0, 0.0], [1.0, 2.0]], [0.0, 5.0], [2.0, 3.0]),
            ([[0.0, 0.0], [1.0, 2.0]], [2.0, 5.0], [4.0, 3.0]),
            ([[1.0, 1.0], [1.0, 1.0]], [5.0, 5.0], [5.0, 5.0]),
            ([[1e-3, 9.0], [5.0, 1e-3]], [3.0, 7.0], [6.0, 4.0]),
        )
        for sweeps in ((), (1,), (29,), (31,))
    ],
    "one margin": lambda: [
        measurement.fit_margins(np.ones((2, 3)) * 2, ("a", "b"), [(("a", "b"), np.arange(6.0).reshape(2, 3))], 3),
        measurement.fit_margins(np.ones((2, 3)) * 2, ("a", "b"), [((), np.array(9.0))], 3),
    ],
    "finished": lambda: (
        [
            measurement._finish(np.array([[5.0, 1.0], [2.0, 2.0]]), np.array([4.0, 6.0]), np.array(columns))
            for columns in ([2.0, 8.0], [3.0, 3.0], [9.0, 9.0], [4.0, 6.0])
        ]
        + [measurement._finish(np.zeros((2, 2)), np.array([4.0, 6.0]), np.array([0.0, 0.0]))]
    ),
    "measured": lambda: [
        list((made := Measurement(axes=["a", "b"], values=[[1, 2], [3, 4]], noise=Exact())).axes),  # type: ignore[arg-type]
        made.values,
        str(made.values.dtype),
        type(made.axes).__name__,
    ],
    "inner": lambda: [
        measurement.inner({("a",): np.ones((2, 3)), (): np.ones(2)}, {("a",): np.arange(3.0), (): np.array(5.0)}, 2),
        measurement.inner({("a",): np.ones((2, 3)) + np.array([[0], [1]])}, {("a",): np.arange(6.0).reshape(2, 3)}, 2),
        measurement.inner({("a",): np.ones((2, 3))}, {("b",): np.ones(3)}, 2),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_estimates_at_borders_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])


def test_conditioning_on_empty_cells_gives_the_normal_law_given_them() -> None:
    """By dense algebra: the mean and the covariance of a table whose cells Z are known to be zero."""
    empty = np.array([[True, False, False], [False, False, True]])
    free = LinearLaw([table("ab", "gaussian"), table("b", "laplace")], SIZES)
    held = LinearLaw([table("ab", "gaussian"), table("b", "laplace")], SIZES, zeros=[(("a", "b"), empty)])
    cells = [{("a", "b"): np.eye(6)[k].reshape(2, 3)} for k in range(6)]
    (mean, cov), (found, left) = free.moments(cells), held.moments(cells)
    z = np.flatnonzero(empty)
    gain = cov[:, z] @ np.linalg.inv(cov[np.ix_(z, z)])
    assert found == pytest.approx(mean - gain @ mean[z], abs=1e-9)
    assert left == pytest.approx(cov - gain @ cov[z], abs=1e-9)
    assert held.variance(("a", "b")).ravel() == pytest.approx(np.diag(left), abs=1e-9)


def test_a_row_that_adds_up_to_zero_and_a_single_record_are_asked_about_like_others() -> None:
    balanced = Measurement(
        axes=("a", "b"), values=np.array([[9.0, 3.0, 2.0], [4.0, -4.0, 0.0]]), noise=NOISES["gaussian"]
    )
    for target in ("records", "population"):
        reply = JointPosterior([balanced], SIZES).ask("share(b=u | a=y)", NAMES, target=target)
        assert (reply.lower, reply.upper) == (0.0, 1.0)
    assert JointPosterior([balanced], SIZES, records=1).ask("share(a=x, b in (u, v))", NAMES).upper == 1.0


def test_a_single_record_that_is_told_is_all_of_its_table() -> None:
    told = Measurement(axes=("a",), values=np.array([1.0, 0.0]), noise=GaussianNoise(sigma=0.1))
    found = JointPosterior([told], SIZES, records=1).estimate(("a",)).records
    assert found.lower == pytest.approx([1.0, 0.0], abs=1e-9)
    assert found.upper == pytest.approx([1.0, 0.0], abs=1e-9)


def test_without_records_every_share_of_the_population_is_possible() -> None:
    for name, axes in (("nothing", ("a", "b")), ("nothing", ("b",))):
        found = thin()[name].estimate(axes).population
        assert (found.lower.max(), found.upper.min()) == (0.0, 1.0)


def test_an_end_that_no_count_explains_is_what_noise_alone_allows() -> None:
    made: Any = thin()["less"].estimate(("a", "b"), prior_assisted=False, level=0.95)
    [[_, upper, _], _] = made.counts.upper
    assert upper == np.ceil(5.0 * norm.ppf(0.95) - 0.5 - 1e-6)
