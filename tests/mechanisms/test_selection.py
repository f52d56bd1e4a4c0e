"""Private selection: the draw against its law, the price against every neighbour."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpbayes import Cost, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.selection import Selection, _accepted, numbers_below

UNIT = Unit(adjacency="replace-one")
SECRET = 987654321
mpmath.mp.dps = 40


def law(scores: tuple[int, ...], sharpness: float, spread: int) -> list[mpmath.mpf]:
    weights = [mpmath.exp(-mpmath.mpf(sharpness) * score / spread) for score in scores]
    return [weight / mpmath.fsum(weights) for weight in weights]


def enumerated(run: Callable[[Callable[[int], int]], int], depth: int, width: int) -> tuple[list[float], float]:
    """The chance of every outcome over all random numbers, and of those not followed to the end."""
    found, open_mass = [0.0] * width, 0.0
    scripts: deque[tuple[tuple[int, ...], float]] = deque([((), 1.0)])
    while scripts:
        script, mass = scripts.popleft()
        asked: list[int] = []

        def below(bound: int, script: tuple[int, ...] = script, asked: list[int] = asked) -> int:
            asked.append(bound)
            if len(asked) > len(script):
                raise StopIteration
            return script[len(asked) - 1]

        try:
            found[run(below)] += mass
        except StopIteration:
            if len(script) == depth:
                open_mass += mass
            else:
                scripts.extend(((*script, number), mass / asked[-1]) for number in range(asked[-1]))
    return found, open_mass


@pytest.mark.parametrize(("scores", "sharpness", "spread"), [((0, 1), 1.0, 2), ((3, 0), 0.5, 1), ((5, 5), 2.0, 1)])
def test_the_draw_has_its_law_over_all_random_numbers(scores: tuple[int, ...], sharpness: float, spread: int) -> None:
    selection = Selection(sharpness=sharpness, unit=UNIT)
    found, left = enumerated(lambda below: selection.choose(scores, spread=spread, below=below), 9, len(scores))
    assert left < 0.2
    for chance, exact in zip(found, law(scores, sharpness, spread), strict=True):
        assert chance <= exact <= chance + left + 1e-12


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 2), (2, 3), (1, 1), (4, 3), (2, 1)])
def test_a_weight_is_accepted_with_its_exact_probability(numerator: int, denominator: int) -> None:
    (refused, accepted), left = enumerated(lambda below: int(_accepted(numerator, denominator, below)), 9, 2)
    exact = math.exp(-numerator / denominator)
    assert left < (1e-5 if numerator <= denominator else 3e-3)
    assert accepted - 1e-12 <= exact <= accepted + left + 1e-12
    assert refused - 1e-12 <= 1 - exact <= refused + left + 1e-12


def test_draws_follow_the_law() -> None:
    scores, selection, draws = (7, 0, 3, 3, 40), Selection(sharpness=0.9, unit=UNIT), 8_000
    below = numbers_below(np.random.default_rng(3))
    found = np.bincount([selection.choose(scores, spread=6, below=below) for _ in range(draws)], minlength=5)
    expected = draws * np.array([float(p) for p in law(scores, 0.9, 6)])
    assert chisquare(found[:4], expected[:4] / expected[:4].sum() * found[:4].sum()).pvalue > 1e-4
    assert found[4] <= 100


def test_far_candidates_take_no_longer_and_are_never_drawn() -> None:
    selection = Selection(sharpness=1.0, unit=UNIT)
    assert {selection.choose([0, 10**18, 10**30], spread=1) for _ in range(50)} == {0}


def moved(scores: tuple[int, ...], spread: int) -> list[tuple[int, ...]]:
    """Scores after one person: the changes of any two candidates differ by at most the spread."""
    return [
        tuple(score + change for score, change in zip(scores, changes, strict=True))
        for changes in itertools.product(range(spread + 1), repeat=len(scores))
    ]


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0])
def test_no_neighbours_are_told_apart_beyond_the_claim(sharpness: float) -> None:
    selection, spread = Selection(sharpness=sharpness, unit=UNIT), 2
    at = np.linspace(0.0, 1.0, 5) * sharpness
    claimed = np.array([selection.delta(float(epsilon)) for epsilon in at])
    orders = (1.01, 1.5, 2.0, 5.0, 30.0)
    worst, divergence = np.zeros(len(at)), dict.fromkeys(orders, 0.0)
    for scores in itertools.product((0, 1, 3, 6), repeat=3):
        base = np.array([float(p) for p in law(scores, sharpness, spread)])
        for after in moved(scores, spread):
            other = np.array([float(p) for p in law(after, sharpness, spread)])
            for p, q in ((base, other), (other, base)):
                worst = np.maximum(worst, np.maximum(p - np.exp(at)[:, None] * q, 0.0).sum(axis=1))
                for order in orders:
                    moment = float((p**order * q ** (1 - order)).sum())
                    divergence[order] = max(divergence[order], math.log(moment) / (order - 1))
    assert (worst <= claimed + 1e-14).all()
    assert (worst[:3] >= 0.8 * claimed[:3]).all()
    for order in orders:
        assert divergence[order] <= selection.renyi(order) * (1 + 1e-12) + 1e-12
    assert divergence[1.5] >= 0.8 * selection.renyi(1.5) or sharpness > 1.0


@example(17.0, 0.9999999999999999)
@given(st.floats(1e-3, 30.0), st.floats(0.0, 1.0))
def test_the_profile_is_the_largest_of_any_bounded_range(sharpness: float, part: float) -> None:
    """Two outcomes with losses t and t − ε, at every t: nothing with a range of ε is worse."""
    epsilon = part * sharpness
    claimed = Selection(sharpness=sharpness, unit=UNIT).delta(epsilon)
    big, x = mpmath.exp(sharpness), mpmath.exp(epsilon)
    worst = mpmath.mpf(0)
    middle = (mpmath.mpf(sharpness) + epsilon) / 2  # near the end no double lies between the two
    for at in [*(mpmath.mpf(share) * sharpness for share in np.linspace(0.0, 1.0, 41)), middle]:
        t = mpmath.exp(at)
        worst = max(worst, (big - t) / (big - 1) * max(1 - x / t, mpmath.mpf(0)))
    assert worst * (1 - mpmath.mpf("1e-12")) <= claimed <= worst * (1 + mpmath.mpf("1e-10")) + mpmath.mpf("1e-30")


def test_it_is_pure_and_a_quarter_as_concentrated_as_a_pure_statement() -> None:
    selection = Selection(sharpness=0.4, unit=UNIT)
    stated = Stated(epsilon_stated=0.4, delta_stated=0.0, unit=UNIT, what="a choice")
    assert selection.renyi(math.inf) == 0.4
    assert selection.delta(0.4) == 0.0
    assert selection.concentrated(math.inf) == pytest.approx(stated.concentrated(math.inf) / 4)
    for epsilon in (0.0, 0.1, 0.3):
        assert selection.delta(epsilon) <= stated.delta(epsilon)
    assert Cost.of(selection, 30).epsilon(1e-6) < 0.62 * Cost.of(stated, 30).epsilon(1e-6)


@pytest.mark.parametrize("bad", [[], [SECRET, 0.5], [SECRET, None], "77", [SECRET, "x"], [[SECRET], [1]], None])
def test_scores_that_are_no_whole_numbers_are_refused_and_not_repeated(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="scores") as caught:
        Selection(sharpness=1.0, unit=UNIT).choose(bad, spread=1)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("bad", [0, -1, 1.5, None, True])
def test_the_spread_is_a_whole_number(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="spread"):
        Selection(sharpness=1.0, unit=UNIT).choose([1, 2], spread=bad)


def test_numbers_of_a_generator_are_uniform_and_repeatable() -> None:
    one, other = (numbers_below(np.random.default_rng(4)) for _ in range(2))
    drawn = [one(10) for _ in range(5000)]
    assert drawn == [other(10) for _ in range(5000)]
    assert chisquare(np.bincount(drawn, minlength=10)).pvalue > 1e-4
    assert 0 <= one(10**40) < 10**40
    assert one(1) == 0


@pytest.mark.parametrize(("adjacency", "spread"), [("add-remove", 2), ("replace-one", 4)])
def test_choosing_the_table_that_a_model_gets_most_wrong_has_this_range_and_price(adjacency: str, spread: int) -> None:
    """All tables of up to three records of two bits against all neighbours, for models that were published before.

    Candidates are the margins and the joint table. The scores are those of docs/explanation/proofs/selection.md.
    """
    records = list(itertools.product((0, 1), repeat=2))
    axes = ((0,), (1,), (0, 1))
    models = [np.array(cells).reshape(2, 2) for cells in itertools.product((0, 1, 2), repeat=4)][::7]

    def scores(table: tuple[tuple[int, int], ...], model: np.ndarray) -> tuple[int, ...]:
        counts = np.zeros((2, 2), dtype=int)
        for record in table:
            counts[record] += 1
        apart = counts - model
        gaps = [apart.sum(axis=1 - axis[0]) if len(axis) == 1 else apart for axis in axes]
        return tuple(cost - int(np.abs(gap).sum()) for cost, gap in zip((1, 1, 2), gaps, strict=True))

    selection = Selection(sharpness=1.3, unit=Unit(adjacency=adjacency))
    widest, worst = 0, mpmath.mpf(0)
    for model in models:
        for size in range(4):
            for table in itertools.combinations_with_replacement(records, size):
                if adjacency == "add-remove":
                    others = [(*table, record) for record in records]
                else:
                    others = [(*table[1:], record) for record in records] if table else []
                for other in others:
                    one, two = scores(table, model), scores(other, model)
                    changes = [b - a for a, b in zip(one, two, strict=True)]
                    widest = max(widest, max(changes) - min(changes))
                    p, q = law(one, 1.3, spread), law(two, 1.3, spread)
                    for first, second in ((p, q), (q, p)):
                        gained = mpmath.fsum(
                            max(a - mpmath.exp(0.4) * b, 0) for a, b in zip(first, second, strict=True)
                        )
                        worst = max(worst, gained)
    assert widest == spread
    assert worst <= selection.delta(0.4)
    assert worst >= 0.3 * selection.delta(0.4)
