"""Weighted draws of a table, where no linear law tells all: margins, groups and questions follow from the draws."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes import Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.inference.numbers import Repeats
from dpbayes.inference.released import Reading, reading
from dpbayes.inference.weighted import Weighted

UNIT = Unit(adjacency="replace-one")


def _law(prior: tuple[float, ...] = (1.0, 2.0, 0.5, 1.0), scale: float = 2.0) -> Weighted:
    made = PosteriorLaplace(prior=prior, total=60, scale=scale, truncated=True, unit=UNIT)
    read = reading(made, tuple(np.add(prior, (20, 10, 5, 25))))
    return Weighted(reading=read, sizes={"a": 2, "b": 2}, repeats=Repeats())


def test_a_margin_is_the_reading_of_the_summed_table() -> None:
    law = _law()
    found = law.estimate(("b",))
    counts = law.reading.counts.reshape(-1, 2, 2).sum(axis=1)
    summed = Reading(prior=np.array([1.5, 3.0]), total=60, counts=counts, weights=law.reading.weights)
    np.testing.assert_allclose(found.population.values, summed.mean)
    np.testing.assert_allclose(found.population.lower, summed.interval()[0])
    np.testing.assert_allclose(found.counts.values, summed.expected_counts)
    np.testing.assert_allclose(found.records.values, found.counts.values / 60)


def test_axes_come_in_the_order_asked_for() -> None:
    law = _law()
    np.testing.assert_array_equal(law.estimate(("b", "a")).counts.values, law.estimate(("a", "b")).counts.values.T)
    one, other = law.draws([("a", "b"), ("b",)], 50, np.random.default_rng(0))
    np.testing.assert_array_equal(one.sum(axis=1), other)
    with pytest.raises(InvalidArgument, match="named twice"):
        law.estimate(("a", "a"))


def test_questions_and_shares_within_groups_are_read_off_the_same_draws() -> None:
    law, levels = _law(scale=0.05), {"a": {"x": 0, "y": 1}, "b": {"x": 0, "y": 1}}
    asked = law.ask("share(b='x' | a='x')", levels, level=0.95, target="records")
    assert (asked.estimate, asked.lower, asked.upper) == pytest.approx((2 / 3, 2 / 3, 2 / 3), abs=1e-3)
    assert law.ask("count(a='x') - count(a='y')", levels, level=0.95, target="records").estimate == pytest.approx(
        0, abs=0.1
    )
    noisy = _law()
    within = noisy.estimate(("b",), ("a",))
    for target, part in (("records", within.records), ("population", within.population)):
        found = noisy.ask("share(b='x' | a='x')", levels, level=0.95, target=target)  # type: ignore[arg-type]
        assert (found.estimate, found.lower, found.upper) == pytest.approx(
            (part.values[0, 0], part.lower[0, 0], part.upper[0, 0])
        )
        np.testing.assert_allclose(part.values.sum(axis=1), 1.0)
    assert within.population.lower[0, 0] < within.records.lower[0, 0]
