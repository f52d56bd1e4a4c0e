"""The lazy draw has the law of the materialised one, and its answers agree with each other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbayes import Cost, Dirichlet, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import lazy
from dpbayes.mechanisms.lazy import LazyDirichlet
from dpbayes.schema.counts import SparseCounts

UNIT = Unit(adjacency="replace-one")
SHAPE = (2, 3, 2)
ROWS = np.array([[0, 0, 0]] * 6 + [[0, 2, 1]] * 3 + [[1, 1, 0]])


def key(number: int) -> bytes:
    return number.to_bytes(32)


def draw(number=0, law="cells", shape=SHAPE, rows=ROWS, weight=1.5, concentration=0.8):
    mechanism = Dirichlet(weight=weight, concentration=concentration, unit=UNIT)
    return LazyDirichlet(mechanism, SparseCounts.of_rows(shape, rows), key=key(number), law=law)


def cells(shape):
    return np.array(list(product(*map(range, shape))))


def test_every_cell_has_the_law_of_the_materialised_draw():
    """Cells of Dirichlet(r·c + α) are Beta(a, A − a), and sums of them too."""
    table = np.zeros(SHAPE)
    np.add.at(table, tuple(ROWS.T), 1)
    shapes = 1.5 * table + 0.8
    drawn = np.array([draw(number).shares(cells(SHAPE)) for number in range(1500)])
    for place, a in enumerate(shapes.ravel()):
        assert stats.kstest(drawn[:, place], stats.beta(a, shapes.sum() - a).cdf).pvalue > 1e-4
    last_axis = drawn.reshape(-1, *SHAPE).sum(axis=(1, 2))[:, 0]
    a = shapes.sum(axis=(0, 1))[0]
    assert stats.kstest(last_axis, stats.beta(a, shapes.sum() - a).cdf).pvalue > 1e-4
    expected = shapes.ravel() / shapes.sum()
    covariance = (np.diag(expected) - np.outer(expected, expected)) / (shapes.sum() + 1)
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=5 * covariance.max() / np.sqrt(1500))


def test_splits_are_independent_conditional_tables():
    """With the law of splits each row of each conditional table is Dirichlet(r·c + α) with the same α."""
    table = np.zeros(SHAPE)
    np.add.at(table, tuple(ROWS.T), 1)
    drawn = np.array([draw(n, law="splits").shares(cells(SHAPE)) for n in range(1500)]).reshape(-1, *SHAPE)
    first = drawn.sum(axis=(2, 3))[:, 0]
    second = drawn.sum(axis=3)[:, 0, 2] / first
    third = drawn[:, 0, 2, 1] / drawn.sum(axis=3)[:, 0, 2]
    for found, mine, all_of_them in (
        (first, table[0].sum(), table.sum((1, 2))),
        (second, table[0, 2].sum(), table[0].sum(-1)),
        (third, table[0, 2, 1], table[0, 2]),
    ):
        a, total = 1.5 * mine + 0.8, np.sum(1.5 * all_of_them + 0.8)
        assert stats.kstest(found, stats.beta(a, total - a).cdf).pvalue > 1e-4
    assert abs(np.corrcoef([first, second, third])[np.triu_indices(3, 1)]).max() < 0.1


def test_a_long_axis_is_split_in_steps_without_changing_the_law():
    shape, rows = (200,), np.array([[137]] * 4)
    drawn = np.array([draw(n, shape=shape, rows=rows).shares([[137], [199], [0]]) for n in range(1500)])
    total = 1.5 * 4 + 0.8 * 200
    for found, a in zip(drawn.T, (1.5 * 4 + 0.8, 0.8, 0.8), strict=True):
        assert stats.kstest(found, stats.beta(a, total - a).cdf).pvalue > 1e-4


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(1, 70), min_size=1, max_size=3).map(tuple),
    law=st.sampled_from(["cells", "splits"]),
    data=st.data(),
)
def test_answers_agree_however_they_are_asked_for(shape, law, data):
    rows = np.array([[data.draw(st.integers(0, size - 1)) for size in shape] for _ in range(3)])
    wide = draw(7, law=law, shape=shape, rows=rows)
    some = cells(shape)[:: max(1, np.prod(shape) // 200)]
    together = wide.shares(some)
    one_by_one = np.concatenate([wide.shares(row[None]) for row in some[::-7]])
    assert one_by_one.tolist() == together[::-7].tolist()
    whole = wide.marginal(range(len(shape)))
    assert whole[tuple(some.T)] == pytest.approx(together, rel=1e-7)
    assert whole.sum() == pytest.approx(1.0)
    axis = data.draw(st.integers(0, len(shape) - 1))
    others = tuple(other for other in range(len(shape)) if other != axis)
    assert wide.marginal([axis]) == pytest.approx(whole.sum(axis=others), rel=1e-6)
    level = data.draw(st.integers(0, shape[axis] - 1))
    assert wide.marginal([], {axis: level}) == pytest.approx(whole.sum(axis=others)[level], rel=1e-6)


def test_axes_may_be_asked_for_in_any_order():
    wide = draw()
    assert wide.marginal([2, 0]) == pytest.approx(wide.marginal([0, 2]).T)


def test_another_key_gives_another_draw():
    assert not np.intersect1d(draw(1).shares(cells(SHAPE)), draw(2).shares(cells(SHAPE))).size


def test_places_of_the_tree_do_not_share_their_random_numbers():
    """Two rows with equal counts below equal axes would be drawn alike if streams met."""
    wide = draw(law="splits", shape=(50, 2), rows=np.zeros((0, 2), dtype=int))
    given = wide.marginal([0, 1]) / wide.marginal([0])[:, None]
    assert len(set(given[:, 0].round(12))) == 50


@pytest.mark.parametrize(("law", "times"), [("cells", 1), ("splits", 3)])
def test_all_answers_together_cost_one_draw_of_each_table(law, times):
    wide = draw(law=law)
    assert wide.cost.epsilon(1e-6) == Cost.of(wide.mechanism, times).epsilon(1e-6)


def test_a_domain_of_a_trillion_cells_is_answered_where_it_is_asked():
    shape = (10,) * 12
    rows = np.random.default_rng(0).integers(0, 3, (1000, 12))
    wide = draw(law="splits", shape=shape, rows=rows, concentration=1e-3)
    occupied = wide.marginal([0])[:3].sum()
    assert occupied > 0.99
    assert wide.shares(np.full((1, 12), 9))[0] < 1e-12
    with pytest.raises(InvalidArgument, match="10,000,000 places"):
        wide.marginal([6])
    assert wide.marginal([6], dict.fromkeys(range(6), 0)).shape == (10,)


@pytest.mark.parametrize("law", ["cells", "splits"])
@pytest.mark.parametrize("concentration", [1e-3, 0.8, 30.0])
def test_every_answer_is_made_of_shares_that_were_rounded_in_their_split(law, concentration):
    """A split's shares are n/Σn with whole n, Σn near 2²⁶: then no question sees more digits of the draw than these."""
    wide = draw(5, law=law, concentration=concentration)
    first = wide.marginal([0])
    second = wide.marginal([0, 1]) / first[:, None]
    for split in (first, *second):
        totals = 2**lazy.BITS + np.arange(-4, 5)[:, None]
        off = np.abs(split * totals - np.rint(split * totals)).max(axis=1)
        assert off.min() < 1e-6
        assert (np.rint(split * 2**lazy.BITS) >= 1).all()


def test_a_million_values_of_the_sampler_give_the_same_share_of_a_split():
    """A gamma of shape above 1 steps by 3·2⁻⁵² of itself at most, so a share of 2⁻²⁶ or more holds 2²⁶/3 steps."""
    assert 2.0**-lazy.BITS / (3 * 2.0**-52) >= 2**20


def test_a_total_that_rounding_would_spoil_is_refused_before_anything_is_charged():
    with pytest.raises(InvalidArgument, match="add up to"):
        draw(shape=(10**6, 10**6, 10**6), rows=np.zeros((1, 3), int), concentration=1e6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: draw().shares([[0, 0]]),
        lambda: draw().shares([[0, 3, 0]]),
        lambda: draw().shares([[-1, 0, 0]]),
        lambda: draw().shares([[0.5, 0, 0]]),
        lambda: draw().marginal([3]),
        lambda: draw().marginal([0, 0]),
        lambda: draw().marginal([0], {0: 1}),
        lambda: draw().marginal([0], {1: 9}),
        lambda: draw(law="other"),
        lambda: LazyDirichlet(draw().mechanism, SparseCounts.of_rows(SHAPE, ROWS), key=b"short"),
        lambda: LazyDirichlet(
            Dirichlet(weight=1, concentration=(1, 2), unit=UNIT), SparseCounts.of_rows(SHAPE, ROWS), key=key(0)
        ),
        lambda: SparseCounts((2,), np.array([1, 0]), np.array([1, 1])),
        lambda: SparseCounts((2,), np.array([2]), np.array([1])),
        lambda: SparseCounts((2,), np.array([1]), np.array([1, 1])),
        lambda: SparseCounts((0,), np.array([]), np.array([])),
        lambda: SparseCounts((2**40, 2**40), np.zeros(0, int), np.zeros(0, int)),
    ],
)
def test_impossible_questions_are_refused(ask):
    with pytest.raises(InvalidArgument, match="expected"):
        ask()


def test_parts_of_sparse_counts_add_up(monkeypatch):
    monkeypatch.setattr("dpbayes.schema.counts._FEW", 3)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, (4, 5), (60, 2))
    parts = (SparseCounts.of_rows((4, 5), rows[start : start + 7]) for start in range(0, 60, 7))
    found, expected = SparseCounts.total(parts, (4, 5)), SparseCounts.of_rows((4, 5), rows)
    assert found.cells.tolist() == expected.cells.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    assert "60" not in repr(found)


def test_concentrations_of_splits_add_up_over_the_attribute_with_most_levels():
    shape, rows = (2, 10**7), np.array([[0, 0]])
    most = lazy.LARGEST_TOTAL / 10**7
    assert draw(law="splits", shape=shape, rows=rows, concentration=most).law == "splits"
    for law, concentration in (("splits", most * 1.001), ("cells", most)):
        with pytest.raises(InvalidArgument, match="add up"):
            draw(law=law, shape=shape, rows=rows, concentration=concentration)
