"""Keeping categories by a threshold: the price against the exact law of what is published."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import beta

from dpbayes import Cost, Laplace, Unit
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.mechanisms.kinds import from_record
from dpbayes.mechanisms.threshold import Threshold, betrayal, threshold_for

UNITS = [Unit(adjacency=adjacency, max_rows=rows) for adjacency in ("add-remove", "replace-one") for rows in (1, 2, 3)]
every_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.adjacency}-{unit.max_rows}")
mpmath.mp.dps = 40


def chance(count: int, scale: float, threshold: int) -> mpmath.mpf:
    """P[a category of this count is kept], summed over the noise itself."""
    if count == 0:
        return mpmath.mpf(0)
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    weight = (1 - q) / (1 + q)
    first = threshold - count + 1  # the least noise that lifts the count above the threshold
    lowest = weight * mpmath.nsum(lambda k: q**k, [max(first, 1), mpmath.inf])
    return lowest + sum(weight * q ** abs(k) for k in range(first, 1))


def hockey_stick(
    one: tuple[int, ...], other: tuple[int, ...], scale: float, threshold: int, epsilon: float
) -> mpmath.mpf:
    """Σ over all sets of kept categories of (P − e^ε·Q)₊."""
    factor, total = mpmath.exp(epsilon), mpmath.mpf(0)
    laws = [[(1 - p, p) for p in (chance(count, scale, threshold) for count in table)] for table in (one, other)]
    for kept in itertools.product((0, 1), repeat=len(one)):
        p, q = (mpmath.fprod(cell[k] for cell, k in zip(law, kept, strict=True)) for law in laws)
        total += max(p - factor * q, mpmath.mpf(0))
    return total


def sides(rows: int, others: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """Every way in which up to so many rows of one person lie in categories: pairs of (others' rows, own rows).

    A category in which both people of a replacement have rows is one in which only the larger of them has some, and
    others have more: so what one takes away and what the other brings may be taken to be apart.
    """
    shapes = {
        tuple(sorted(shape))
        for cells in range(rows + 1)
        for shape in itertools.product(range(1, rows + 1), repeat=cells)
        if sum(shape) <= rows
    }
    return sorted(
        {
            tuple(sorted(zip(base, shape, strict=True)))
            for shape in shapes
            for base in itertools.product(others, repeat=len(shape))
        }
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@every_unit
def test_no_neighbours_are_told_apart_beyond_the_claimed_delta(unit: Unit, epsilon: float) -> None:
    mechanism = threshold_for(epsilon=epsilon, delta=1e-3, unit=unit)
    top = mechanism.threshold

    @functools.cache
    def law(count: int) -> np.ndarray:
        kept = chance(count, mechanism.scale, top)
        return np.array([float(1 - kept), float(kept)])

    def laws(side: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
        """Of all sets of kept categories, with the person's rows and without them."""
        present, absent = np.ones(1), np.ones(1)
        for others, own in side:
            present, absent = np.outer(present, law(others + own)).ravel(), np.outer(absent, law(others)).ravel()
        return present, absent

    made = [laws(side) for side in sides(unit.max_rows, (0, 1, top - 1, top, top + 1))]
    at = np.array([0.0, 0.3 * epsilon, 0.9 * epsilon, mechanism.noise_epsilon, 2.0 * epsilon])
    claimed = np.array([mechanism.delta(float(value)) for value in at])
    worst, nobody = np.zeros(len(at)), (np.ones(1), np.ones(1))
    for (with_one, without_one), (with_other, without_other) in itertools.product(
        made, made if unit.replaces else [nobody]
    ):
        p = np.outer(with_one, without_other).ravel()
        q = np.outer(without_one, with_other).ravel()
        for one, other in ((p, q),) if unit.replaces else ((p, q), (q, p)):
            worst = np.maximum(worst, np.maximum(one - np.exp(at)[:, None] * other, 0.0).sum(axis=1))
    assert (worst <= claimed * (1 + 1e-9) + 1e-15).all()
    assert worst[-1] == pytest.approx(claimed[-1], rel=1e-6)  # beyond the pure part δ is attained


@every_unit
def test_the_claim_holds_at_forty_digits_where_it_is_tight(unit: Unit) -> None:
    mechanism = threshold_for(epsilon=0.7 * unit.max_rows, delta=1e-9, unit=unit)
    m = unit.max_rows
    alone = [((m,), (0,)), ((1,) * m, (0,) * m)]
    if unit.replaces:
        alone += [((m, 0), (0, m)), ((1,) * m + (0,) * m, (0,) * m + (1,) * m)]
    worst = max(
        hockey_stick(*pair, mechanism.scale, mechanism.threshold, mechanism.noise_epsilon)
        for one, other in alone
        for pair in ((one, other), (other, one))
    )
    assert worst <= mechanism.least_delta
    assert mechanism.least_delta <= worst * (1 + mpmath.mpf("2e-12"))


@every_unit
def test_the_threshold_is_the_smallest_that_meets_delta(unit: Unit) -> None:
    for epsilon, delta in itertools.product((0.1, 1.0, 8.0, 20.0), (1e-12, 1e-6, 1e-3, 0.2)):
        made = threshold_for(epsilon=epsilon, delta=delta, unit=unit)
        assert Fraction(unit.sensitivity.l1) / Fraction(made.scale) <= Fraction(epsilon)
        assert made.epsilon(delta) <= epsilon
        assert made.threshold >= unit.max_rows
        if made.threshold > unit.max_rows:
            lower = Threshold(scale=made.scale, threshold=made.threshold - 1, unit=unit)
            assert lower.least_delta > delta


@every_unit
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 8.0, 20.0])
def test_a_lone_text_appears_no_more_often_than_claimed(unit: Unit, epsilon: float) -> None:
    draws, m = 100_000, unit.max_rows
    mechanism = threshold_for(epsilon=epsilon, delta=0.01, unit=unit)
    for rows in ([m], [1] * m):
        counts = np.tile(np.array(rows), (draws, 1))
        kept = mechanism.draw(counts, np.random.default_rng(5)).any(axis=1).sum()
        lower = beta.ppf(1e-6, kept, draws - kept + 1) if kept else 0.0
        assert lower <= mechanism.least_delta
        upper = beta.ppf(1 - 1e-6, kept + 1, draws - kept)
        exact = 1 - math.prod(1 - float(chance(count, mechanism.scale, mechanism.threshold)) for count in rows)
        assert lower <= exact <= upper


@pytest.mark.parametrize(("unit", "epsilon"), [(UNITS[0], 8.0), (UNITS[4], 1.0)], ids=["add-remove", "replace-one"])
def test_a_lone_text_drawn_as_in_a_release_appears_no_more_often_than_claimed(unit: Unit, epsilon: float) -> None:
    mechanism, draws = threshold_for(epsilon=epsilon, delta=0.01, unit=unit), 100_000
    kept = int(mechanism.draw(np.full(draws, unit.max_rows)).sum())
    assert (beta.ppf(1e-9, kept, draws - kept + 1) if kept else 0.0) <= mechanism.least_delta


def test_a_category_of_nobody_is_never_kept() -> None:
    mechanism = Threshold(scale=50.0, threshold=1, unit=UNITS[0])
    assert not mechanism.draw(np.zeros(20_000, dtype=np.int64)).any()


def test_counts_at_the_threshold_need_noise_to_pass_it() -> None:
    quiet = Threshold(scale=1e-3, threshold=7, unit=UNITS[0])
    assert quiet.draw([6, 7, 8]).tolist() == [False, False, True]


@every_unit
def test_the_price_is_that_of_the_noise_betrayed_with_probability_delta(unit: Unit) -> None:
    mechanism = Threshold(scale=4.0, threshold=30, unit=unit)
    noise, least = Laplace(scale=4.0, unit=unit), mechanism.least_delta
    for epsilon in (0.0, 0.1, 0.3, 1.0, 3.0):
        assert mechanism.delta(epsilon) == pytest.approx(least + (1 - least) * noise.delta(epsilon), rel=1e-12)
    assert mechanism.epsilon(least) == noise.renyi(math.inf)
    assert mechanism.epsilon(least * 0.99) == mechanism.renyi(2.0) == mechanism.concentrated(3.0) == math.inf
    several = Cost.of(mechanism, 3)
    assert several.epsilon(3.1 * least) <= 3 * noise.renyi(math.inf) * 1.05  # losses between multiples move up
    assert several.delta(3 * noise.renyi(math.inf)) >= 1 - (1 - least) ** 3


@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_chance_of_a_betrayal_is_exact_whether_the_rows_pass_the_threshold_or_not(
    scale: float, threshold: int
) -> None:
    alone, single = (chance(count, scale, threshold) for count in (3, 1))
    exact = float(max(alone, 1 - (1 - single) ** 3))
    assert betrayal(scale=scale, threshold=threshold, rows=3) == pytest.approx(exact, rel=1e-11)


def test_a_threshold_below_the_rows_of_one_person_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="threshold"):
        Threshold(scale=1.0, threshold=2, unit=Unit(adjacency="add-remove", max_rows=3))
    with pytest.raises(InvalidArgument, match="threshold"):
        from_record({**Threshold(scale=1.0, threshold=3, unit=UNITS[2]).record(), "threshold": 1})


def test_a_threshold_that_no_table_reaches_is_refused() -> None:
    with pytest.raises(TargetUnreachable, match="epsilon"):
        threshold_for(epsilon=1e-16, delta=1e-9, unit=UNITS[0])


def test_the_chance_of_a_lone_text_never_rounds_to_nothing() -> None:
    assert Threshold(scale=1e-3, threshold=10_000, unit=UNITS[0]).least_delta > 0


@pytest.mark.parametrize("scale", [0.3, 2.0, 17.5])
def test_a_category_is_found_as_often_as_the_forecast_says(scale: float) -> None:
    made = Threshold(scale=scale, threshold=40, unit=Unit(adjacency="add-remove"))
    hidden, found = made.hidden()
    assert made.found(hidden) <= 0.05 < made.found(hidden + 1)
    assert made.found(found) >= 0.95 > made.found(found - 1)
    for rows in {max(hidden, 1), 40, found}:
        drawn = made.draw(np.full(20_000, rows), np.random.default_rng(5)).mean()
        assert drawn == pytest.approx(made.found(rows), abs=0.012)
    assert made.found(0) == 0.0
