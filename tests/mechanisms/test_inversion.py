"""Tables of noise: every word goes where the endless number would, whatever path it takes."""

from __future__ import annotations

from bisect import bisect_right

import mpmath as mp
import numpy as np
import pytest
from tests.mechanisms.feed import DIGITS, Feed, magnitudes

from dpbayes.mechanisms import exact as integers
from dpbayes.mechanisms.exact import InversionTable as Table
from dpbayes.mechanisms.exact import Law, table_for
from dpbayes.mechanisms.noise import words

LAWS = [
    ("gaussian", 1e-3),
    ("gaussian", 0.4),
    ("gaussian", 5.0),
    ("gaussian", 61.7),
    ("laplace", 0.2),
    ("laplace", 5.0),
    ("laplace", 33.0),
]


def law_of(kind: str, scale: float) -> Law:
    return Law.gaussian(scale) if kind == "gaussian" else Law.laplace(scale)


def drawn(table: Table, count: int, source) -> list[int]:
    noise = np.empty(count, dtype=np.int64)
    table.fill(noise, source)
    return noise.tolist()


def borders(kind: str, scale: float) -> list[int]:
    """⌊2⁶³·P[|K| ≤ k]⌋, as far as it stays below 2⁶³ − 1."""
    with mp.workdps(DIGITS):
        reach = len(law_of(kind, scale).cumulative(63))
        found = [int(mp.floor(p * mp.mpf(2) ** 63)) for p in magnitudes(kind, scale, reach)]
    return [border for border in found if border < 2**63 - 3]


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize(("kind", "scale"), LAWS)
def test_words_around_every_border_and_everywhere_fall_into_their_share(kind: str, scale: float, guided: bool) -> None:
    truth = borders(kind, scale)
    near = [border + step for border in truth for step in (-4, -3, 3, 4) if 0 <= border + step < 2**63 - 3]
    edges = [(cell << 48) + step for cell in range(1, 2**15, 97) for step in (-1, 0, 1)]
    chosen = [0, 1, *near, *edges, *np.random.default_rng(3).integers(0, 2**63 - 3, 3000).tolist()]
    values = [v for v in chosen if not any(abs(v - b) < 3 for b in truth[max(bisect_right(truth, v) - 1, 0) :][:2])]
    values = values[: 2**12 - 1] if not guided else (values * 5)[: 2**12 + 5000]
    signs = [i % 2 for i in range(len(values))]
    found = drawn(
        Table(law_of(kind, scale), 0),
        len(values),
        Feed(*(v | s << 63 for v, s in zip(values, signs, strict=True))),
    )
    expected = [(-1) ** s * bisect_right(truth, v) for v, s in zip(values, signs, strict=True)]
    assert found == expected


def test_the_guide_leaves_out_every_cell_that_a_border_may_touch() -> None:
    """A bound T stands for a border in [T, T + 2): just below the end of a cell it may lie in the next one."""
    table = Table(Law.gaussian(5.0), 0)
    starts = np.array([100, 200, 300, 2**15], dtype=np.uint64) << np.uint64(48)
    table.bounds = starts - np.array([0, 1, 2, 2], dtype=np.uint64)
    assert np.flatnonzero(table.guide == -1).tolist() == [100, 199, 200, 299, 2**15 - 1]
    assert table.guide[[0, 99, 101, 198, 201, 298, 300, 2**15 - 2]].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("cells", [3, 2**12])
@pytest.mark.parametrize(("further", "side"), [(0, 0), (2**64 - 1, 1)])
def test_a_word_that_holds_a_border_asks_for_one_more(cells: int, further: int, side: int) -> None:
    kind, scale, k = "gaussian", 5.0, 3
    border = borders(kind, scale)[k]
    feed = Feed(*[0] * (cells - 1), border | 1 << 63, further)
    assert drawn(Table(law_of(kind, scale), 0), cells, feed)[-1] == -(k + side)
    assert feed.taken == cells + 1


@pytest.mark.parametrize("cells", [1, 2**12])
def test_the_last_word_of_all_asks_until_it_knows(cells: int) -> None:
    ones = 2**64 - 1
    feed = Feed(*[0] * (cells - 1), ones, ones, 0)
    found = -drawn(Table(law_of("laplace", 2.0), 0), cells, feed)[-1]
    with mp.workdps(DIGITS):
        sums = magnitudes("laplace", 2.0, found)
        assert sums[found - 1] <= 1 - mp.mpf(2) ** -127 < sums[found]
    assert feed.taken == cells + 2


def chances_of(kind: str, scale: float, blocks: np.ndarray, places: np.ndarray, shift: int) -> list[mp.mpf]:
    """2⁶⁴·w(J·B + place)/w(J·B)."""
    starts = [int(block) << shift for block in blocks]
    ends = [start + int(place) for start, place in zip(starts, places, strict=True)]
    exact = mp.mpf(scale)
    if kind == "gaussian":
        x = [mp.mpf(k * k - s * s) / (2 * exact**2) for s, k in zip(starts, ends, strict=True)]
    else:
        x = [(k - s) / exact for s, k in zip(starts, ends, strict=True)]
    return [mp.exp(-each) * mp.mpf(2) ** 64 for each in x]


@pytest.mark.parametrize("shift", [1, 4, 7])
@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 50.0), ("laplace", 40.0), ("gaussian", 1e6)])
def test_no_lot_above_the_exact_chance_is_surely_kept(kind: str, scale: float, shift: int) -> None:
    table = Table(law_of(kind, scale), shift) if scale < 100 else Table(law_of(kind, scale), 10 + shift)
    places = np.arange(0, 1 << table.shift, max(1, (1 << table.shift) // 16) + 1)
    blocks, places = (grid.ravel() for grid in np.meshgrid(np.arange(0, len(table.bounds), 9), places))
    with mp.workdps(40):
        chances = chances_of(kind, scale, blocks, places, table.shift)
        above = np.array([min(int(mp.ceil(chance)), 2**64 - 1) for chance in chances], dtype=np.uint64)
    assert not table.surely_kept(blocks, places, above).any()


@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 50.0), ("laplace", 40.0)])
def test_most_lots_below_the_exact_chance_are_surely_kept(kind: str, scale: float) -> None:
    table = Table(law_of(kind, scale), 1)
    blocks, places = (grid.ravel() for grid in np.indices((int(scale), 2)))
    with mp.workdps(40):
        below = [int(chance) - 2**58 for chance in chances_of(kind, scale, blocks, places, 1)]
    assert table.surely_kept(blocks, places, np.array(below, dtype=np.uint64)).all()


def test_a_place_is_kept_by_comparing_with_its_exact_chance() -> None:
    """σ = 50, blocks of 16: k = 16·2 + 5, sign −; the lot is just below or above exp(−(37² − 32²)/2σ²)."""
    table = Table(Law.gaussian(50.0), 4)
    with mp.workdps(60):
        chance = int(mp.floor(mp.exp(-mp.mpf(37**2 - 32**2) / 5000) * mp.mpf(2) ** 64))
    word = (int(table.bounds[1]) + int(table.bounds[2])) // 2 | 1 << 63
    place = 5 << 60 | 12345
    assert drawn(table, 1, Feed(word, place, chance - 1)) == [-37]
    again = Feed(word, place, chance + 1, 0, 7 << 60, 0)
    assert drawn(table, 1, again) == [7]
    assert again.taken == 6
    tie = Feed(word, place, chance, 0)  # the chance is irrational, so a further 0 lies below it
    assert drawn(table, 1, tie) == [-37]


def test_zero_with_a_minus_is_drawn_again_in_blocks() -> None:
    table = Table(Law.gaussian(50.0), 4)
    feed = Feed(1 << 63, 0, 0, 0, 3 << 60, 0)
    assert drawn(table, 1, feed) == [3]
    assert feed.taken == 6


def test_a_block_wider_than_a_word_takes_more_words() -> None:
    table = Table(Law.laplace(2.0**80), 70)
    feed = Feed(0, 5, 0, 3 << 58)  # the place has 70 bits: 64 of one word, 6 of the next
    assert drawn(table, 1, feed) == [5 << 6 | 3]


@pytest.mark.parametrize("scale", [1e20, 1e300])
def test_noise_beyond_64_bits_is_cut_to_the_nearest_number_that_fits(scale: float) -> None:
    noise = np.empty(60, dtype=np.int64)
    table_for(Law.gaussian(scale), 60, repeatable=True).fill(noise, words(np.random.default_rng(1)))
    ends = np.iinfo(np.int64)
    at_an_end = np.isin(noise, [ends.min, ends.max])
    assert at_an_end.all() if scale == 1e300 else at_an_end.sum() > 40
    assert (noise > 0).any()
    assert (noise < 0).any()


def test_few_cells_never_pay_for_a_long_table_and_many_get_a_full_one() -> None:
    integers._tables.clear()  # one at hand would be taken
    for scale in (1e-300, 0.5, 20.0, 3000.0, 1e9, 1e300):
        assert len(table_for(Law.gaussian(scale), 10, repeatable=False).bounds) < 300
        assert len(table_for(Law.laplace(scale), 10, repeatable=False).bounds) < 300
    assert table_for(Law.gaussian(600.0), 10**6, repeatable=True).shift == 0


def test_tables_are_shared_and_few_are_kept() -> None:
    law = Law.gaussian(20.25)
    assert table_for(law, 10, repeatable=True) is table_for(law, 10**6, repeatable=False)
    for scale in range(1, 60):
        table_for(Law.gaussian(scale), 10, repeatable=True)
    assert len(integers._tables) <= integers.TABLES_KEPT
    assert table_for(law, 10, repeatable=True) is not None


def test_a_full_table_at_hand_serves_fresh_draws_but_not_repeatable_ones() -> None:
    law = Law.gaussian(900.0)
    full = table_for(law, 10**6, repeatable=True)
    assert full.shift == 0
    assert table_for(law, 5, repeatable=False) is full
    assert table_for(law, 5, repeatable=True).shift > 0
