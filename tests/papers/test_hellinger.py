"""[H-full] theorems 4.2 to 4.5 against exact arithmetic: what holds, and the counterexamples to what does not."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from dpbayes.base.errors import InvalidArgument
from dpbayes.papers import hellinger
from dpbayes.papers.hellinger import laplace_radius, theorem_4_2, theorem_4_3, theorem_4_4, theorem_4_5, ties


@cache
def gamma(halves: int) -> Fraction:
    """Γ(halves/2), without the factor √π that odd ones have."""
    return Fraction(1) if halves <= 2 else gamma(halves - 2) * Fraction(halves - 2, 2)


def score(alpha: tuple[int, ...], beta: tuple[int, ...]) -> tuple[Fraction, int]:
    """Π Γ((α+β)/2)²/(Γ(α)Γ(β)) as a fraction and a power of π: equal exactly where Hellinger distances are."""
    value, odd = Fraction(1), 0
    for a, b in zip(alpha, beta, strict=True):
        value *= gamma(a + b) ** 2 / (gamma(2 * a) * gamma(2 * b))
        odd += (a + b) % 2
    return value, odd


def candidates(cells: int, total: int) -> list[tuple[int, ...]]:
    """All parameters with prior 1 in every cell."""
    if cells == 1:
        return [(total + 1,)]
    return [(k + 1, *rest) for k in range(total + 1) for rest in candidates(cells - 1, total - k)]


def test_the_counterexample_to_theorem_4_5_has_one_candidate_where_the_formula_says_36() -> None:
    alpha, beta = (2, 5, 9), (3, 6, 7)
    same = [each for each in candidates(3, 13) if score(alpha, each) == score(alpha, beta)]
    assert same == [beta]
    assert theorem_4_5(alpha, beta).printed == 36
    assert theorem_4_5(alpha, beta).exact == 1
    assert ties(alpha, beta) == (1, 1)


def test_theorem_4_5_fails_for_most_candidates_of_a_small_table() -> None:
    alpha, wrong = (2, 3, 4), 0
    everyone = candidates(3, 6)
    for beta in everyone:
        wrong += theorem_4_5(alpha, beta).printed != sum(score(alpha, each) == score(alpha, beta) for each in everyone)
    assert wrong == len(everyone)


@pytest.mark.parametrize(("cells", "total"), [(2, 30), (3, 7), (4, 4)])
def test_what_is_true_instead_bounds_the_number_from_both_sides(cells: int, total: int) -> None:
    everyone = candidates(cells, total)
    for alpha in everyone[:: max(len(everyone) // 12, 1)]:
        scores = {beta: score(alpha, beta) for beta in everyone}
        most = theorem_4_4(np.subtract(alpha, 1), prior=(1,) * cells)
        assert most.exact == max(Counter(scores.values()).values()) <= most.bound
        for beta in everyone[:: max(len(everyone) // 6, 1)]:
            many = sum(value == scores[beta] for value in scores.values())
            by_symmetry, by_condition = ties(alpha, beta)
            assert 1 <= by_symmetry <= by_condition <= many <= most.exact
            assert theorem_4_5(alpha, beta).exact == many


def test_the_condition_of_theorem_4_3_suffices_and_is_not_necessary() -> None:
    everyone, exceptions = candidates(3, 5), 0
    for alpha in everyone:
        for one, other in itertools.combinations(everyone, 2):
            equal = score(alpha, one) == score(alpha, other)
            if theorem_4_3(alpha, one, other):
                assert equal
            exceptions += equal and not theorem_4_3(alpha, one, other)
    assert exceptions > 0
    assert score((2, 2, 3), (1, 1, 5)) == score((2, 2, 3), (1, 4, 2))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_the_condition_of_theorem_4_2_asks_for_a_symmetric_centre_and_suffices(a: int, b: int, c: int) -> None:
    if theorem_4_2((a, b), (a, c), (c, a)):
        assert a == b
        assert score((a, b), (a, c)) == score((a, b), (c, a))
    assert theorem_4_2((a, a), (b, c), (c, b))


def test_two_betas_can_be_equally_far_without_the_condition_of_theorem_4_2() -> None:
    mp.dps = 40
    a = mp.findroot(lambda x: far(x, 0) - far(x, 3), (0.05, 0.3))
    assert float(a) == pytest.approx(0.12346518844797326, rel=1e-12)
    assert not theorem_4_2((float(a) + 1, 3.0), (float(a), 4.0), (float(a) + 3, 1.0))


def far(prior: object, count: int) -> object:
    """−ln BC between one record of three in the first cell and ``count`` of them, with prior (prior, 1)."""
    pairs = ((prior + 1, prior + count), (mp.mpf(3), mp.mpf(4 - count)))
    return sum(mp.loggamma(x) / 2 + mp.loggamma(y) / 2 - mp.loggamma((x + y) / 2) for x, y in pairs)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 9), st.floats(0.05, 9), st.integers(2, 40), st.data())
def test_with_two_cells_no_three_candidates_have_one_score(
    first: float, second: float, total: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, total))
    k = np.arange(total + 1)
    lgamma = np.vectorize(math.lgamma)
    rise = np.zeros(total + 1)
    for prior, mine, theirs in ((first, at, k), (second, total - at, total - k)):
        u, v = prior + mine, prior + theirs
        rise += 0.5 * math.lgamma(u) + 0.5 * lgamma(v) - lgamma(0.5 * (u + v))
    assert (np.diff(rise[: at + 1]) < 0).all()
    assert (np.diff(rise[at:]) > 0).all()


@pytest.mark.parametrize(("cells", "epsilon", "failure"), [(2, 0.8, 0.05), (5, 0.5, 0.3)])
def test_laplace_noise_leaves_the_radius_as_often_as_a_product_says(cells: int, epsilon: float, failure: float) -> None:
    found = laplace_radius(m=cells, epsilon=epsilon, gamma=failure)
    largest, together = found.linf, found.l1
    exact = 1 - (1 - math.exp(-largest * epsilon / 2)) ** cells
    assert exact == pytest.approx(1 - (1 - failure / cells) ** cells)
    assert exact == pytest.approx(found.exact)
    assert exact <= failure
    noise = np.abs(np.random.default_rng(3).laplace(scale=2 / epsilon, size=(100_000, cells)))
    assert (noise.max(axis=1) >= largest).mean() == pytest.approx(exact, rel=0.05)
    assert (noise.sum(axis=1) >= together).mean() <= failure


@pytest.mark.parametrize("bad", [((1, 2), (1, 2, 3)), ((), ()), ((0, 2), (1, 2))])
def test_vectors_are_of_one_length_and_positive(bad: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    for function in (theorem_4_5, ties):
        with pytest.raises(InvalidArgument):
            function(*bad)
    with pytest.raises(InvalidArgument, match="cells"):
        ties((1,) * 12, (1,) * 12)


TABLES = ([-1, 4], [0.5, 3], [], [[1, 2], [3, 4]], [1, 2, 3], [math.nan, 2], ["a", "b"], [0, 0], None)
SETTINGS = {"prior": (1, 1), "epsilon": 0.8, "delta": 1e-8}


@pytest.mark.parametrize("function", ["M_H", "law", "expected_H", "steps", "laplace", "laplace_law", "BI", "LS"])
def test_bad_tables_are_refused_in_one_sentence(function: str) -> None:
    wanted = {"BI": ("prior",), "LS": ("prior",), "laplace": ("prior", "epsilon"), "laplace_law": ("prior", "epsilon")}
    settings = {name: SETTINGS[name] for name in wanted.get(function, tuple(SETTINGS))}
    for table in TABLES:
        if function == "BI" and table == [0, 0]:
            continue  # the prior itself
        with pytest.raises(InvalidArgument) as refused:
            getattr(hellinger, function)(table, **settings)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        *({"prior": prior} for prior in ((), (1,), (0, 1), (1, math.nan), 3, ("a", 1), None)),
        *({"epsilon": epsilon} for epsilon in (0, -1, math.inf, math.nan, "1")),
        *({"delta": delta} for delta in (None, 0, 1, -1, math.nan)),
        {"sensitivity": "none"},
    ],
    ids=str,
)
def test_bad_settings_are_refused_in_one_sentence(change: dict[str, object]) -> None:
    for call in (lambda **each: hellinger.M_H([4, 4], **each), lambda **each: hellinger.loss(n=8, **each)):
        with pytest.raises(InvalidArgument) as refused:
            call(**(SETTINGS | change))
        assert "\n" not in str(refused.value)
