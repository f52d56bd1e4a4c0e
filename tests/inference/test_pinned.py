"""Estimates, variances and intervals in digits: even, uneven and exact tables, zeros, private totals, several rows."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from tests import digits

from dpbayes.inference import ask, intervals, law, measurement
from dpbayes.inference.ask import Asked, Reply
from dpbayes.inference.intervals import Spread, ratio
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.inference.numbers import Repeats
from dpbayes.inference.question import read
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.laplace import LaplaceNoise

SIZES = {"a": 2, "b": 3, "c": 4, "one": 1}
TRUTH = np.random.default_rng(5).multinomial(900, np.random.default_rng(6).dirichlet(np.full(24, 0.4))).reshape(2, 3, 4)
NOISES: dict[str, Any] = {
    "gaussian": GaussianNoise(sigma=5.0),
    "laplace": LaplaceNoise(scale=3.0),
    "gamma": GammaNoise(weight=0.5, concentration=9.0),
    "fine": GaussianNoise(sigma=0.4),
    "coarse": GaussianNoise(sigma=60.0),
    "exact": Exact(),
}


def table(axes: str, noise: str, seed: int = 1) -> Measurement:
    """A published table of these axes, in this order."""
    named, rng = tuple(axes.replace("1", "")), np.random.default_rng(seed)
    kept = np.einsum("abc->" + "".join(named), TRUTH).astype(np.float64)
    if "1" in axes:
        named, kept = (*named, "one"), kept[..., None]
    made = NOISES[noise]
    if noise == "gamma":
        values = rng.gamma(0.5 * kept + 9.0)
    else:
        values = kept + np.rint(rng.standard_normal(kept.shape) * np.sqrt(made.variance(kept)))
    return Measurement(axes=named, values=values, noise=made)


def laws() -> dict[str, LinearLaw]:
    """Linear laws of every kind of measurement."""
    empty = TRUTH.sum(axis=2) < 40
    return {
        "one": LinearLaw([table("ab", "gaussian")], SIZES),
        "overlapping": LinearLaw([table("ca", "gaussian"), table("bc", "laplace"), table("b", "fine")], SIZES, 900.0),
        "deep": LinearLaw([table("cab", "coarse"), table("ab", "laplace", 2), table("a1", "gaussian")], SIZES, 900.0),
        "uneven": LinearLaw([table("ba", "gamma"), table("bc", "gaussian")], SIZES),
        "uneven, known": LinearLaw(
            [table("cab", "gamma"), table("ca", "gamma", 3), table("c", "gaussian")], SIZES, 900.0
        ),
        "exact": LinearLaw([table("cab", "gaussian"), table("b", "exact"), table("ca", "exact")], SIZES, 900.0),
        "zeros": LinearLaw([table("ab", "gaussian"), table("bc", "gaussian")], SIZES, 900.0, [(("a", "b"), empty)]),
        "uneven, zeros": LinearLaw(
            [table("ab", "gamma"), table("cb", "gaussian")], SIZES, None, [(("b", "a"), empty.T)]
        ),
    }


@functools.cache
def posteriors() -> dict[str, JointPosterior]:
    empty = TRUTH.sum(axis=2) < 40
    both = [table("ab", "gaussian"), table("bc", "gaussian", 2)]
    repeats = Repeats(most=4, within={"c": np.array([1, 1, 2, 4])})
    return {
        "two": JointPosterior(both, SIZES, records=900),
        "private": JointPosterior([table("ab", "laplace"), table("bc", "gaussian", 2)], SIZES),
        "gamma": JointPosterior([table("ab", "gamma"), table("bc", "gamma", 2)], SIZES, records=900),
        "zeros": JointPosterior(both, SIZES, records=900, zeros=[(("a", "b"), empty)]),
        "rows": JointPosterior(both, SIZES, records=900, repeats=repeats),
        "coarse": JointPosterior([table("ab", "coarse")], SIZES),
        "fine": JointPosterior([table("ab", "fine"), table("bc", "fine", 2)], SIZES, records=900),
        "margins": JointPosterior(both, SIZES, margins=[table("b", "exact")]),
        "none": JointPosterior(
            [Measurement(axes=("a",), values=np.array([0.0, -3.0]), noise=NOISES["gaussian"])], SIZES, records=0
        ),
    }


NAMES = {
    name: {each: place for place, each in enumerate(levels)}
    for name, levels in (("a", "xy"), ("b", "uvw"), ("c", "0123"))
}
QUESTIONS = [
    "count()",
    "count(a=x)",
    "count(a=x, b=u)",
    "count(c=3)",
    "count(a=x) - count(a=y)",
    "count(a=x) + 2 * count(b=w) - 7",
    "count(b in (u, v))",
    "count(b != u) / 3",
    "share(a=x)",
    "share(a=x, b=v)",
    "share(b=u | a=y)",
    "share(c in (0, 1) | b=v)",
    "share(c=0 | b=v) - share(c=0 | b=w)",
    "share(a=x) - share(b=u)",
    "share(a=x) + share(c=1)",
    "share(a=x) * 100",
    "count(a=x) / count(a=y)",
    "count(a=x) * count(b=u)",
    "1 / count(c=2)",
    "share(b=u | a=x) / share(b=u | a=y)",
    "-count(a=y)",
    "count(a=x) - 0.3 * count(b=u)",
    "3",
    "2 - 5",
    "share(a=x) - share(c=1 | b=u)",
    "count(c=0) - count(c=1)",
    "count(a=x) - count(a=x)",
]
REFUSED = [
    "count(z=1)",
    "count(a=q)",
    "count(a=xx)",
    "1 / 0",
    "count(a=x, c=1)",
    "count(a=x) / (2 - 2)",
    "share(c=0 | a=x)",
]


def replied(posterior: JointPosterior, question: str, level: float = 0.95) -> list[object]:
    found: list[object] = []
    for target in ("records", "population"):
        try:
            reply = posterior.ask(question, NAMES, level=level, target=target)
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
            continue
        found.append([reply.estimate, reply.lower, reply.upper, reply.method, list(reply.notes), repr(reply)])
    return found


def estimated(posterior: JointPosterior, *asked: Any, **more: Any) -> list[object]:
    made = posterior.estimate(*asked, **more)
    parts = (made.counts, made.records, made.population)
    return [*([each.values, each.lower, each.upper, each.note] for each in parts), made.swallowed, list(made.axes)]


def told(found: LinearLaw) -> list[object]:
    tables = [axes for axes in found.tables if not found.missing(axes)]
    largest = max(tables, key=len)
    return [
        [list(axes) for axes in found.tables],
        [[found.mean(axes), found.variance(axes), found.slope(axes)] for axes in tables],
        [found.covariance_with_margin(largest, margin) for margin in measurement.subsets(largest)],
        found.moments(
            [{axes: np.arange(found.mean(axes).size).reshape(found.mean(axes).shape) % 3 - 0.5} for axes in tables]
        ),
        [found.draws([largest, ()], 3, np.random.default_rng(2)), list(found.missing(("a", "b", "c")))],
        [sorted((",".join(axes), value) for axes, value in found.noise.items()), found._zeros_kept],
    ]


SPREADS = [
    Spread(constant=np.array([9.0, 25.0, 1e4]), linear=b, square=q) for b, q in ((0.0, 0.0), (1.0, 0.01), (2.0, 0.0))
]


CASES: digits.Cases = {
    **{f"law, {name}": lambda name=name: told(laws()[name]) for name in laws()},
    **{
        f"ask, {name}, {question}": lambda name=name, question=question: replied(posteriors()[name], question)
        for name in posteriors()
        for question in QUESTIONS
        if name in ("two", "private", "rows")
        or (
            name in ("gamma", "zeros", "coarse", "none")
            and QUESTIONS.index(question) % 3 == 1
            and "/ share" not in question
        )
    },
    "asked at other levels": lambda: [
        replied(posteriors()["two"], q, level) for q in QUESTIONS[::4] for level in (0.5, 0.999)
    ],
    **{
        f"estimate, {name}": lambda name=name: [
            estimated(posteriors()[name], ("a", "b") if name != "none" else ("a",)),
            estimated(
                posteriors()[name], ("b",) if name != "none" else ("a",), ("a",) if name != "none" else (), level=0.8
            ),
            estimated(posteriors()[name], ("a",), prior_assisted=False),
            estimated(posteriors()[name], ()),
        ]
        for name in posteriors()
    },
    "refused": lambda: (
        [replied(posteriors()["two"], question) for question in REFUSED]
        + [
            digits.refusal(lambda: posteriors()["none"].ask("share(a=x)", NAMES)),
            digits.refusal(lambda: posteriors()["two"].ask("count()", NAMES, level=1.5)),
            digits.refusal(lambda: posteriors()["two"].ask("count()", NAMES, target="people")),  # type: ignore[arg-type]
        ]
    ),
    "slopes": lambda: [
        (asked := Asked(posteriors()["two"], NAMES)).slope(asked.value(read(q)))
        for q in ("count(a=x) * count(b=u)", "2 * count(a=x) - count(b=u)", "share(b=u | a=x) / share(a=x)", "3")
    ],
    "bounds": lambda: [
        [list((v := Asked(posteriors()[name], NAMES).value(read(q))).bounds), v.linear]
        for name in ("two", "private")
        for q in [*QUESTIONS, "(0 - count()) / count()", "share(a=x) * (0 - 2)", "(1 - count()) * (2 - count(a=x))"]
    ],
    "quantiles": lambda: [
        ask._quantiles(np.arange(n)[::-1] * 1.0, level) for n in (1, 10, 20_000) for level in (0.5, 0.9, 0.95)
    ],
    "draws": lambda: ask._draws(np.array([1.0, 2.0]), np.array([[4.0, 1.0], [1.0, 9.0]])),
    "replies": lambda: [
        repr(Reply(question="", estimate=e, lower=e - h, upper=e + h, level=0.9, target="records", method="table"))
        for e, h in ((3.0, 0.0), (0.123456, 0.01), (7.0, 10.0), (7.0, 9.99))
    ],
    "constants": lambda: [
        ask.DRAWS,
        ask.NEARLY,
        intervals.SAME_DATA,
        intervals.TAILS,
        intervals.RELEVANT,
        intervals.WIDER,
        intervals.MANY,
        intervals.ROUNDING,
        law.NEGLIGIBLE,
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_estimates_and_intervals_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])


@pytest.mark.parametrize(("level", "sampled"), list(itertools.product((0.5, 0.95), (0.0, 35.0))))
def test_the_ends_of_a_ratio_solve_fiellers_equation(level: float, sampled: float) -> None:
    z2 = norm.ppf(0.5 + level / 2) ** 2
    for x, n, v, c, w in ((12.0, 60.0, 9.0, 2.0, 16.0), (30.0, 45.0, 4.0, 4.0, 30.0)):

        def gap(t: float, x=x, n=n, v=v, c=c, w=w) -> float:
            return (x - t * n) ** 2 - z2 * (v - 2 * t * c + t * t * w + sampled * t * (1 - t))

        lower, upper = (float(end[0]) for end in ratio(*(np.array([e]) for e in (x, n, v, c, w)), level, sampled))
        assert lower == pytest.approx(brentq(gap, -0.5, x / n), abs=1e-9)
        assert upper == pytest.approx(min(brentq(gap, x / n, 2.0), 1.0), abs=1e-9)


@pytest.mark.parametrize("spread", SPREADS)
def test_the_ends_of_an_interval_solve_their_equation(spread: Spread) -> None:
    y = np.array([-2.0, 4.0, 70.0])
    for z in (-1.7, 0.4, 2.1):
        theta = spread.end(y, z)
        assert theta + z * np.sqrt(spread.at(theta)) == pytest.approx(y, abs=1e-9)


def test_a_ratio_that_may_be_infinite_is_shown_as_such() -> None:
    reply = posteriors()["zeros"].ask("share(b=u | a=x) / share(b=u | a=y)", NAMES)
    assert reply.upper == np.inf
    assert repr(reply).endswith("to inf, of the records")
