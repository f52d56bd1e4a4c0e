"""Theorem: the cost of a Dirichlet draw dominates every pair of neighbours, and one pair attains it."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.privacy import reference
from tests.privacy.reference import relative_error

from dpbayes import Dirichlet, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import UnroundedDirichlet
from dpbayes.mechanisms.kinds import from_record
from dpbayes.papers.tcdp import theorem_1
from dpbayes.privacy.bounds import trigamma_bound
from dpbayes.schema import Adjacency, Sensitivity

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


@st.composite
def tables(draw: st.DrawFn, unit: Unit) -> tuple[Dirichlet, tuple[int, ...]]:
    """A mechanism and a small table that respects its public lower bound."""
    cells = draw(st.integers(2, 5))
    concentration = draw(st.one_of(powers(-1, 1.5), st.tuples(*[powers(-1, 1.5)] * cells)))
    if isinstance(concentration, tuple) and draw(st.booleans()):  # ties
        concentration = (concentration[0],) * 2 + concentration[2:]
    least = draw(st.integers(0, 2))
    records = draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=6))
    counts = tuple(int(c) + least for c in np.bincount(records, minlength=cells))
    mechanism = Dirichlet(weight=draw(powers(-1.5, 1)), concentration=concentration, unit=unit, least_count=least)
    return mechanism, counts


def shapes(mechanism: Dirichlet, counts: tuple[int, ...]) -> list[mp.mpf]:
    """The parameters r·c + α of the draw, exactly."""
    alpha = mechanism.concentration
    alphas = alpha if isinstance(alpha, tuple) else (alpha,) * len(counts)
    with mp.workdps(60):
        return [mp.mpf(mechanism.weight) * c + mp.mpf(a) for c, a in zip(counts, alphas, strict=True)]


@given(st.sampled_from([REPLACE, CHANGE]).flatmap(tables), st.floats(0.01, 1.1))
@settings(max_examples=90)
def test_every_pair_of_neighbours_diverges_by_at_most_the_claim(
    table: tuple[Dirichlet, tuple[int, ...]], share: float
) -> None:
    mechanism, counts = table
    order = 1.0 + share * mechanism.smallest[0] / mechanism.weight
    claim = mechanism.renyi(order)
    here = shapes(mechanism, counts)
    for other in reference.neighbours(counts, replace=mechanism.unit.replaces, least=mechanism.least_count):
        there = shapes(mechanism, other)
        assert reference.exact_renyi(here, there, order) <= claim
        assert reference.exact_renyi(there, here, order) <= claim


def added_beta_delta(shape: mp.mpf, rest: mp.mpf, weight: float, epsilon: float, *, added: bool) -> mp.mpf:
    """δ of Beta(shape + r, rest) against Beta(shape, rest), or the reverse: one cell of a Dirichlet draw."""
    with mp.workdps(60):
        r, e = mp.mpf(weight), mp.mpf(epsilon)
        step = mp.log(mp.beta(shape + r, rest) / mp.beta(shape, rest))
        edge = mp.exp((step + (e if added else -e)) / r)  # the loss is ±(r·ln y − step)
        if edge >= 1:
            return mp.mpf(0) if added else 1 - mp.exp(e)
        with_record, without = reference.beta_cdf(edge, shape + r, rest), reference.beta_cdf(edge, shape, rest)
        if added:
            return (1 - with_record) - mp.exp(e) * (1 - without)
        return without - mp.exp(e) * with_record


@given(st.sampled_from([REPLACE, CHANGE]).flatmap(tables), st.floats(0, 3))
@settings(max_examples=60)
def test_no_pair_of_neighbours_has_a_larger_delta_than_the_claim(
    table: tuple[Dirichlet, tuple[int, ...]], epsilon: float
) -> None:
    mechanism, counts = table
    epsilon *= min(mechanism.weight / math.sqrt(mechanism.smallest[0]) * 2, 20.0)
    claim = mechanism.delta(epsilon)
    here = shapes(mechanism, counts)
    for other in reference.neighbours(counts, replace=mechanism.unit.replaces, least=mechanism.least_count):
        there = shapes(mechanism, other)
        moved = [k for k in range(len(counts)) if counts[k] != other[k]]
        if len(moved) == 2:  # the beta variable of the two cells carries all the information
            i, j = moved if counts[moved[0]] > other[moved[0]] else moved[::-1]
            assert reference.replaced_delta(mechanism.weight, there[i], here[j], epsilon) <= claim
        else:
            (k,) = moved
            smaller = min(here, there, key=lambda shape: shape[k])
            rest = mp.fsum(smaller) - smaller[k]
            for added in (True, False):
                exact = added_beta_delta(smaller[k], rest, mechanism.weight, epsilon, added=added)
                assert exact <= mp.mpf(claim) + mp.mpf("1e-40")


@given(st.integers(3, 5).flatmap(lambda d: st.tuples(*[powers(-1, 1.5)] * d)), powers(-1.5, 1), st.integers(0, 2))
@settings(max_examples=60)
def test_one_pair_attains_the_claim_exactly(alphas: tuple[float, ...], weight: float, least: int) -> None:
    mechanism = Dirichlet(weight=weight, concentration=alphas, unit=REPLACE, least_count=least)
    order = 1.0 + 0.5 * mechanism.smallest[0] / weight
    first, second = np.argsort(alphas)[:2]
    counts = [least + 2] * len(alphas)
    counts[first], counts[second] = least + 1, least
    moved = list(counts)
    moved[first], moved[second] = least, least + 1
    here, there = shapes(mechanism, tuple(counts)), shapes(mechanism, tuple(moved))
    worst = max(reference.exact_renyi(here, there, order), reference.exact_renyi(there, here, order))
    assert 0 <= relative_error(mechanism.renyi(order), worst) < 1e-9
    epsilon = mechanism.epsilon(1e-6)
    delta = max(
        reference.replaced_delta(weight, there[first], here[second], epsilon),
        reference.replaced_delta(weight, here[second], there[first], epsilon),
    )
    assert delta <= 1e-6
    if epsilon > 0:
        assert delta == pytest.approx(1e-6, rel=1e-8)


@given(powers(-1.5, 1), powers(-0.5, 2), st.integers(0, 3))
@settings(max_examples=40)
def test_one_huge_table_attains_the_claim_of_an_added_record_in_the_limit(
    weight: float, concentration: float, least: int
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=CHANGE, least_count=least)
    order = 1.0 + 0.5 * mechanism.smallest[0] / weight
    here, there = (shapes(mechanism, (least + extra, 10**14)) for extra in (0, 1))
    worst = max(reference.exact_renyi(here, there, order), reference.exact_renyi(there, here, order))
    assert worst <= mechanism.renyi(order)
    assert worst == pytest.approx(mechanism.renyi(order), rel=1e-6)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=3), min_size=2, max_size=3),
    powers(-1.5, 1),
    powers(-0.5, 1.5),
    st.floats(0.05, 0.95),
    st.sampled_from([REPLACE, CHANGE]),
)
@settings(max_examples=25)
def test_rows_that_are_normalised_apart_cost_no_more_than_the_whole_table(
    rows: list[list[int]], weight: float, concentration: float, share: float, unit: Unit
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=unit)
    order = 1.0 + share * concentration / weight
    claim = mechanism.renyi(order)
    flat = tuple(count for row in rows for count in row)
    starts = np.cumsum([0, *map(len, rows)])
    here = shapes(mechanism, flat)
    for other in reference.neighbours(flat, replace=unit.replaces):
        there = shapes(mechanism, other)
        pieces = [(here[a:b], there[a:b]) for a, b in itertools.pairwise(starts) if here[a:b] != there[a:b]]
        for p, q in ((0, 1), (1, 0)):
            together = mp.fsum(reference.exact_renyi(piece[p], piece[q], order) for piece in pieces)
            assert together <= claim


@pytest.mark.parametrize(("weight", "concentration", "rest"), [(1.0, 2.0, 4.0), (0.5, 1.0, 9.0), (2.0, 6.0, 3.0)])
def test_rows_that_are_normalised_apart_have_no_larger_delta_than_the_whole_table(
    weight: float, concentration: float, rest: float
) -> None:
    # one record leaves a row and enters another: two independent betas, each with the rest of its row
    def loss(*, leaves: bool) -> tuple[np.ndarray, np.ndarray]:
        more, less = stats.beta(concentration + weight, rest), stats.beta(concentration, rest)
        here, there = (more, less) if leaves else (less, more)
        y = 1 / (1 + np.exp(-np.linspace(-60, 60, 6001)))
        y = y[(y > 1e-25) & (y < 1 - 1e-12)]
        masses = here.pdf(y) * y * (1 - y)
        return here.logpdf(y) - there.logpdf(y), masses / masses.sum()

    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=REPLACE)
    for epsilon in (0.1, 0.5, 1.5, 3.0):
        apart = reference.joint_delta(loss(leaves=True), loss(leaves=False), epsilon)
        assert 0 < apart < mechanism.delta(epsilon)


@given(powers(-1.5, 1), powers(-0.5, 2), st.integers(1, 4), st.sampled_from(list(Adjacency)), st.floats(0.05, 0.9))
@settings(max_examples=60)
def test_the_bound_for_several_rows_per_person_covers_all_of_them_moving(
    weight: float, concentration: float, rows: int, adjacency: Adjacency, share: float
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=Unit(adjacency=adjacency, max_rows=rows))
    order = 1.0 + share * concentration / (weight * rows)
    claim = mechanism.renyi(order)
    replaced = mechanism.unit.replaces
    for moved in range(1, rows + 1):  # to one cell, or spread over two
        for target in ((0, moved, 0), (0, moved - moved // 2, moved // 2)):
            here = shapes(mechanism, (moved, 0, 0) if replaced else (0, 0, 0))
            there = shapes(mechanism, target)
            assert reference.gamma_renyi(here, there, order) <= claim
            assert reference.gamma_renyi(there, here, order) <= claim


def test_a_general_vector_is_priced_by_its_sensitivities() -> None:
    moved = Sensitivity(l1=3.0, l2_squared=5.0, linf=2.0)
    mechanism = Dirichlet(weight=0.5, concentration=4.0, unit=REPLACE, sensitivity=moved)
    assert not mechanism.exact
    assert mechanism.renyi(3.0) == trigamma_bound(3.0, weight=0.5, concentration=4.0, l2_squared=5.0, linf=2.0)
    assert mechanism.renyi(5.0) == math.inf
    line = theorem_1(alpha=4.0, gamma=2.0, r=0.5, l2_squared=5.0, linf=2.0)
    assert line.exact is None
    assert mechanism.concentrated(line.omega) == pytest.approx(line.rho, rel=1e-12)


@given(powers(-1.5, 1), powers(-0.5, 2), st.floats(0.05, 0.99), st.sampled_from([REPLACE, CHANGE]), st.booleans())
def test_the_concentrated_line_lies_above_the_divergences_and_touches_them_at_its_end(
    weight: float, concentration: float, share: float, unit: Unit, published: bool
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=unit)
    mechanism = mechanism.published() if published else mechanism
    omega = 1.0 + share * concentration / weight
    rho = mechanism.concentrated(omega)
    for part in (1e-3, 0.1, 0.5, 0.9, 1 - 1e-9):
        order = 1.0 + part * (omega - 1.0)
        assert mechanism.renyi(order) <= rho * order * (1 + 1e-12)
    assert mechanism.renyi(omega) == pytest.approx(rho * omega, rel=1e-12)
    assert mechanism.concentrated(math.inf) == math.inf


def test_the_two_smallest_concentrations_make_the_worst_pair() -> None:
    mechanism = Dirichlet(weight=0.5, concentration=(9.0, 2.0, 7.0, 3.0), unit=REPLACE, least_count=4)
    assert mechanism.smallest == pytest.approx((4.0, 5.0), rel=1e-15)
    tied = Dirichlet(weight=0.5, concentration=(2.0, 9.0, 2.0), unit=REPLACE)
    assert tied.smallest == (2.0, 2.0)
    assert tied.renyi(2.0) == Dirichlet(weight=0.5, concentration=2.0, unit=REPLACE).renyi(2.0)


@given(powers(-2, 1), powers(-1, 1), st.integers(1, 9), st.floats(1, 15))
def test_a_public_bound_is_added_on_the_private_side_even_next_to_the_last_order(
    weight: float, concentration: float, least: int, digits: float
) -> None:
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=REPLACE, least_count=least)
    order = 1.0 + (concentration + weight * least) / weight * (1.0 - 10.0**-digits)
    with mp.workdps(60):
        known = mp.mpf(concentration) + mp.mpf(weight) * least
    assert reference.replaced_renyi(weight, known, known, order) <= mechanism.renyi(order)


def test_draws_follow_the_shapes_they_are_priced_for() -> None:
    rng = np.random.default_rng(7)
    mechanism = Dirichlet(weight=2.0, concentration=(1.0, 3.0, 5.0), unit=REPLACE)
    draws = np.array([mechanism.gammas([4, 0, 1], rng) for _ in range(4000)])
    assert np.allclose(draws.mean(axis=0), [9.0, 3.0, 7.0], rtol=0.05)
    assert np.allclose(draws.var(axis=0), [9.0, 3.0, 7.0], rtol=0.12)


def test_a_draw_is_a_distribution_of_the_same_shape_as_the_table() -> None:
    table = np.arange(12).reshape(3, 4)
    y = Dirichlet(weight=1.0, concentration=1.0, unit=REPLACE).draw(table, np.random.default_rng(1))
    assert y.shape == table.shape
    assert y.min() > 0
    assert y.sum() == pytest.approx(1.0)


def test_a_draw_is_its_gammas_normalised() -> None:
    mechanism = Dirichlet(weight=1.0, concentration=2.0, unit=REPLACE)
    z = mechanism.gammas([3, 1, 4], np.random.default_rng(3))
    y = mechanism.draw([3, 1, 4], np.random.default_rng(3))
    assert np.allclose(y, z / z.sum(), rtol=1e-15)


def test_counts_below_the_public_bound_are_drawn_as_if_they_met_it() -> None:
    mechanism = Dirichlet(weight=2.0, concentration=1.0, unit=REPLACE, least_count=5)
    low, met = (mechanism.gammas(counts, np.random.default_rng(3)) for counts in ([0, 9, 2], [5, 9, 5]))
    assert (low == met).all()


def test_draws_of_tiny_concentrations_are_distributions() -> None:
    mechanism = Dirichlet(weight=1.0, concentration=1e-3, unit=REPLACE)
    for seed in range(60):
        assert mechanism.draw([0, 0, 0], np.random.default_rng(seed)).sum() == pytest.approx(1.0)


def test_draws_without_a_generator_differ() -> None:
    mechanism = Dirichlet(weight=1.0, concentration=1.0, unit=REPLACE)
    assert (mechanism.draw([1, 2, 3]) != mechanism.draw([1, 2, 3])).all()


@pytest.mark.parametrize("counts", [[1, 2], [[1, 2], [3, 4]], np.ones((2, 3), int)])
def test_a_table_has_as_many_cells_as_concentrations(counts: object) -> None:
    mechanism = Dirichlet(weight=1.0, concentration=(1.0, 2.0, 3.0), unit=REPLACE)
    with pytest.raises(InvalidArgument, match="3 cells"):
        mechanism.draw(counts)


@pytest.mark.parametrize("bad", [(), (1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, math.nan), (1.0, "2"), ((1.0, 2.0), 3.0)])
def test_vectors_of_concentrations_are_checked(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="concentration"):
        Dirichlet(weight=1.0, concentration=bad, unit=REPLACE)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "1", None, True])
def test_the_public_lower_bound_is_checked(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="least_count"):
        Dirichlet(weight=1.0, concentration=1.0, unit=REPLACE, least_count=bad)


def test_lists_and_arrays_of_concentrations_become_tuples_of_floats() -> None:
    for given_as in ([1, 2], (1, 2), np.array([1, 2])):
        mechanism = Dirichlet(weight=1, concentration=given_as, unit=REPLACE)
        assert mechanism.concentration == (1.0, 2.0)
        assert isinstance(mechanism.concentration[0], float)
        assert hash(mechanism) == hash(from_record(mechanism.record()))


def test_parameters_that_differ_by_three_hundred_decades_are_still_priced() -> None:
    strong = UnroundedDirichlet(weight=1e-150, concentration=1e150, unit=REPLACE)
    weak = UnroundedDirichlet(weight=1e120, concentration=1e-120, unit=REPLACE)
    assert strong.epsilon(1e-9) == 0.0
    assert weak.epsilon(0.5) > 1e200


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
def test_cells_of_a_draw_follow_their_beta_marginals(seeded: bool) -> None:
    mechanism = Dirichlet(weight=0.7, concentration=(0.4, 2.0, 5.0), unit=REPLACE)
    rng = np.random.default_rng(11) if seeded else None
    draws = np.array([mechanism.draw([3, 0, 6], rng) for _ in range(20000)])
    shape = np.array([2.5, 2.0, 9.2])
    for cell in range(3):
        fit = stats.kstest(draws[:, cell], stats.beta(shape[cell], shape.sum() - shape[cell]).cdf)
        assert fit.pvalue > 1e-5


@pytest.mark.slow
def test_unnormalised_draws_are_independent_gammas() -> None:
    mechanism = Dirichlet(weight=2.0, concentration=0.3, unit=REPLACE)
    seeds = range(20000)
    before = np.array([mechanism._raw([0, 4], np.random.default_rng(seed)) for seed in seeds])
    draws = np.array([mechanism.gammas([0, 4], np.random.default_rng(seed)) for seed in seeds])
    for cell, shape in enumerate((0.3, 8.3)):
        assert stats.kstest(before[:, cell], stats.gamma(shape).cdf).pvalue > 1e-5
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / math.sqrt(20000)
    assert (np.abs(draws - before) <= np.maximum(mechanism.grid, np.sqrt(before) / 64)).all()
    at_floor = stats.binomtest(
        int((draws[:, 0] == mechanism.grid).sum()), 20000, stats.gamma(0.3).cdf(1.5 * mechanism.grid)
    )
    assert at_floor.pvalue > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("unit", [REPLACE, CHANGE], ids=["replace", "change"])
@pytest.mark.parametrize(("weight", "concentration"), [(1.0, 2.0), (2.0, 8.0)])
def test_an_attack_on_the_worst_pair_stays_below_the_claim_and_comes_near_it(
    weight: float, concentration: float, unit: Unit
) -> None:
    mechanism, trials, delta = Dirichlet(weight=weight, concentration=concentration, unit=unit), 200_000, 0.01
    rng = np.random.default_rng(5)
    rest = 10**7  # a heavy third cell: the limit in which an added record is best seen
    tables = ([1, 0, rest], [0, 1, rest]) if unit.replaces else ([0, 0, rest], [1, 0, rest])

    def statistic(table: list[int]) -> np.ndarray:
        z = mechanism.gammas(np.tile(table, (trials, 1)), rng)  # cells are independent: one draw per row
        y = z / z.sum(axis=1, keepdims=True)
        return np.log(y[:, 0] / y[:, 1]) if unit.replaces else -np.log(y[:, 0])

    here, there = (statistic(table) for table in tables)
    # the attacker fixes a threshold on one half of the draws and is judged on the other
    half = trials // 2
    levels = np.quantile(here[:half], np.linspace(0.5, 0.999, 200))
    gains = [
        math.log(((here[:half] > x).mean() - delta) / max((there[:half] > x).mean(), 1e-4))
        for x in levels
        if (here[:half] > x).mean() > 2 * delta
    ]
    best = levels[int(np.argmax(gains))]
    hits, false = int((here[half:] > best).sum()), int((there[half:] > best).sum())
    sure = stats.beta.ppf(1e-4, hits, half - hits + 1), stats.beta.ppf(1 - 1e-4, false + 1, half - false)
    audited = math.log((sure[0] - delta) / sure[1])
    claim = mechanism.epsilon(delta)
    assert audited < claim
    assert audited > 0.75 * claim


@pytest.mark.parametrize("concentration", [0.3, 1.0, 3.0, 4e5])
def test_all_that_is_drawn_lies_on_the_public_grid(concentration: float) -> None:
    made = Dirichlet(weight=1.0, concentration=concentration, unit=Unit(adjacency="replace-one"))
    z = made.gammas(np.array([0, 1, 7, 5_000] * 50), np.random.default_rng(1))
    assert (z / made.grid == np.rint(z / made.grid)).all()
    raw = made._raw(np.array([0, 1, 7, 5_000] * 50), np.random.default_rng(1))
    assert (raw / made.grid != np.rint(raw / made.grid)).any()
