"""Integer noise in digits: bounds, tables, words taken, and draws from scripted words against plain definitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from tests import digits
from tests.mechanisms.feed import DIGITS, Feed

from dpbayes import Laplace, Unit
from dpbayes.base.errors import NoiseError
from dpbayes.mechanisms import exact, noise
from dpbayes.mechanisms.exact import InversionTable, Law, below_exp, exp_bounds, table_for
from dpbayes.mechanisms.noise import words

TOP = 2**64 - 1
XS = [
    Fraction(0),
    Fraction(1, 2**40),
    Fraction(3, 2**34),
    Fraction(1, 2**80),
    Fraction(1, 3),
    Fraction(1, 1000),
    Fraction(1),
    Fraction(7, 2),
    Fraction(255, 256),
    Fraction(60),
    Fraction(127, 1),
    Fraction(1023, 8),
    Fraction(128),
    Fraction(129),
    Fraction(2**20 + 1, 2**14),
]
LAWS = {
    "narrow": Law.gaussian(0.3),
    "one": Law.gaussian(1.0),
    "gaussian": Law.gaussian(30.5),
    "laplace": Law.laplace(11.0),
    "sharp": Law.laplace(0.05),
    "blocks": Law.gaussian(700.0).blocks(5),
    "laplace blocks": Law.laplace(100.0).blocks(4),
    "unsigned": Law(3, 2, 50, signed=False),
}


def stream(seed: int) -> Callable[[int], np.ndarray]:
    return words(np.random.default_rng(seed))


def decided(x: Fraction, first: int) -> list[object]:
    """What is decided of a first word, and how many further words it takes."""
    found: list[object] = []
    for more in (2**63, 0):
        feed = Feed(more, 5, 9, 11)
        found += [below_exp(first, x.numerator, x.denominator, feed), feed.taken]
    return found


def close_to(x: Fraction) -> list[int]:
    """Words around all the borders that a decision compares with."""
    scaled = (x.numerator << 64) // x.denominator
    low, high = (bound >> 64 for bound in exp_bounds(x.numerator, x.denominator, 128))
    borders = [(1 << 64) - scaled, (1 << 64) - scaled + ((scaled + 1) ** 2 >> 65) + 1, low, high]
    return sorted({b + s for b in borders for s in (-2, -1, 0, 1, 2) if 0 <= b + s <= TOP} | {0, TOP})


def with_few_digits(law: Law) -> list[object]:
    """Where the own estimate of the error finds the digits too few."""
    return [None if (got := law._cumulative(20, digits)) is None else sum(got) % 2**31 for digits in range(56, 84)]


def drawn(law: Law, shift: int, count: int, source: Callable[[int], np.ndarray]) -> np.ndarray:
    found = np.empty(count, dtype=np.int64)
    InversionTable(law, shift).fill(found, source)
    return found


def sizes(repeatable: bool) -> list[list[int]]:
    """The shift and the length of the table that is chosen for so many cells."""
    found = []
    for scale in (1.0, 20.0, 40.0, 300.0, 476.0, 480.0, 5e3, 1e5):
        for cells in (1, 40, 900, 40_000, 10**6):
            exact._tables.clear()
            table = table_for(Law.laplace(scale), cells, repeatable=repeatable)
            found.append([table.shift, len(table.bounds)])
    return found


def borders_of_choice() -> list[int]:
    """Laws with just so many entries that a full table is still worth while, or no more: by repeatability."""
    found = []
    for cells, repeatable in ((100, False), (10_000, False), (100, True), (10**6, True), (10**6, False)):
        for entries in (256 + 12 * 10 + 25, 256 + 1200 + 2500, 2**12, 2**15):
            for step in (-1, 0, 1):
                exact._tables.clear()
                law = Law(67, 0, entries + step - 2)
                assert law.entries == entries + step
                found.append(table_for(law, cells, repeatable=repeatable).shift)
    return found


def kept() -> list[list[object]]:
    """Which tables are at hand after more were asked for than are kept, and one of them again."""
    exact._tables.clear()
    seen = []
    for scale in [*range(1, 17), 1, 17, 18]:
        table_for(Law.laplace(float(scale)), 1, repeatable=False)
        seen.append([len(exact._tables), next(iter(exact._tables))[0].over])
    wide = Law.laplace(300.0)
    before = table_for(wide, 1, repeatable=False).shift
    exact._kept(wide, 0)
    return [*seen, [before, table_for(wide, 1, repeatable=False).shift, table_for(wide, 1, repeatable=True).shift]]


def surely(law: Law, shift: int) -> np.ndarray:
    table = InversionTable(law, shift)
    blocks = np.repeat(np.arange(12), 40)
    places = np.tile(np.arange(40) % (1 << shift), 12)
    lots = np.random.default_rng(1).integers(0, 2**64, 480, dtype=np.uint64)
    lots[::7] = TOP - np.arange(len(lots[::7])).astype(np.uint64) ** 9
    return table.surely_kept(blocks, places, lots)


SMALL = [Law.laplace(s / 64) for s in range(1, 40)] + [Law.gaussian(s / 32) for s in range(2, 40)]


def to_the_last_digit(x: Fraction) -> list[list[str]]:
    """Bounds whose spare digits are too few to hide any unit of their error."""
    return [[str(each) for each in exp_bounds(x.numerator, x.denominator, 40, spare)] for spare in (-8, -4, 0, 1)]


def most_bits(law: Law) -> list[int]:
    """The most bits that the own estimate of the error leaves of so many digits."""
    return [
        max((bits for bits in range(8, digits) if law._cumulative(bits, digits) is not None), default=0)
        for digits in (36, 40, 47)
    ]


CASES: digits.Cases = {
    "exp bounds": lambda: [
        [str(each) for each in exp_bounds(x.numerator, x.denominator, bits)] for x in XS for bits in (63, 64, 128, 320)
    ],
    "exp bounds, to the last digit": lambda: [to_the_last_digit(x) for x in XS],
    "most bits": lambda: [most_bits(law) for law in SMALL],
    "exp bounds, unreduced": lambda: [str(each) for each in exp_bounds(3 * 10**40, 7 * 10**40, 128)],
    **{f"below exp({x})": lambda x=x: [decided(x, first) for first in close_to(x)] for x in XS[1:9]},
    "laws": lambda: [
        [law.slope, law.bend, law.over, law.signed, law.entries, *law.exponent(5, 3), *law.exponent(0, 9)]
        for law in LAWS.values()
    ],
    **{
        f"cumulative, {name}": lambda law=law: [np.array(law.cumulative(62)), [str(e) for e in law.cumulative(127)[:4]]]
        for name, law in LAWS.items()
    },
    **{f"digits, {name}": lambda law=law: with_few_digits(law) for name, law in LAWS.items()},
    **{
        f"guide, {name}": lambda law=law: [InversionTable(law, 0).guide, InversionTable(law, 0).bounds.view(np.int64)]
        for name, law in LAWS.items()
    },
    **{
        f"surely kept, {shift}": lambda shift=shift: [
            surely(Law.gaussian(900.0), shift),
            surely(Law.laplace(99), shift),
        ]
        for shift in (1, 3, 6, 9)
    },
    "tables chosen": lambda: sizes(False),
    "tables chosen, repeatable": lambda: sizes(True),
    "borders of the choice": borders_of_choice,
    "tables kept": kept,
    "draws": lambda: [drawn(Law.gaussian(30.5), 0, n, stream(1)) for n in (5, 2**12 - 1, 2**12, 2**14 + 1)],
    "draws in blocks": lambda: [drawn(Law.gaussian(3e4), s, n, stream(2)) for s, n in ((3, 5), (6, 2**14 + 7))],
    "draws in large blocks": lambda: [drawn(Law.laplace(1e15), s, 9, stream(3)) for s in (40, 41, 43)],
    "draws in vast blocks": lambda: drawn(Law.laplace(1e60), 190, 6, stream(4)),
    "seeded": lambda: [
        kind(np.arange(n), scale, np.random.default_rng(n))
        for kind in (noise.gaussian, noise.laplace)
        for n, scale in ((1, 0.01), (20, 3.0), (700, 50.0), (9, 1e9), (5000, 2e4))
    ],
    "keyed streams": lambda: [
        noise.KeyedStreams(bytes(range(32))).at(n).integers(0, 2**60, 3) for n in (0, 1, 2**20, 2**63)
    ],
    "misfit": lambda: [
        noise.misfit(noise.draw(noise._law(name, scale), n, np.random.default_rng(n)), name, scale)
        for name in ("gaussian", "laplace")
        for scale in (2, 5, 600)
        for n in (100, 4096)
    ],
    "laws of the self-test": lambda: [noise._probabilities(name, 2) for name in ("gaussian", "laplace")],
    "constants": lambda: [
        exact.WORD,
        exact.GUARD,
        exact.TABLES_KEPT,
        noise.FEW,
        noise.MANY,
        noise.LIMIT,
        noise.PARALLEL,
    ],
    "constants of the self-test": lambda: [list(noise.SCALES), noise.LAWS, [[*k, v] for k, v in noise.KNOWN.items()]],
    "refusals": lambda: [
        digits.refusal(lambda: exact.bernoulli_exp(-1, 2, Feed())),
        str(noise._refusal("it was planted")),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_noise_is_what_it_was(name: str) -> None:
    digits.check(__name__, name, CASES[name])


@pytest.mark.parametrize("x", XS[1:])
def test_bounds_of_the_exponential_hold_the_truth_and_decisions_follow_it(x: Fraction) -> None:
    with mp.workdps(DIGITS):
        truth = mp.exp(-mp.mpf(x.numerator) / x.denominator)
        for bits in (63, 64, 128, 320):
            low, high = exp_bounds(x.numerator, x.denominator, bits)
            assert low <= truth * mp.mpf(2) ** bits <= high <= low + 2
        number = (((2**63 << 64) + 5 << 64) + 9 << 64) + 11
        for first in close_to(x):
            assert decided(x, first)[0] == ((mp.mpf(first) + mp.mpf(number) / mp.mpf(2) ** 256) < truth * 2**64)


@pytest.mark.parametrize("law", LAWS.values())
@pytest.mark.parametrize("size", [2**12 - 1, 2**12])
def test_a_word_is_placed_where_the_exact_table_places_it_or_not_at_all(law: Law, size: int) -> None:
    table = InversionTable(law, 0)
    listed = law.cumulative(63)
    near = [b + s for b in listed[: len(table.bounds)] for s in (-2, -1, 0, 1, 2, 3) if 0 <= b + s < 2**63]
    cells = [(c << 48) + s for c in range(1, 2**15, 611) for s in (-1, 0, 1)]
    known = ([0, 1, 2**63 - 1, *cells, *near] * size)[:size]
    places, unsure = table._places(np.array(known, dtype=np.uint64))
    doubtful = set(unsure.tolist())
    for at, word in enumerate(known[:400]):
        truth = exact.place(listed, word)
        assert (truth is None) == (at in doubtful) or (at in doubtful and truth >= len(table.bounds) - 1)
        assert at in doubtful or places[at] == truth
        below = bisect_right(listed, word)
        assert truth is None or (truth == below and (not below or word >= listed[below - 1] + 2))


def plainly(law: Law, shift: int, count: int, source: Callable[[int], np.ndarray]) -> list[int]:
    """The same by the definition, one number at a time."""
    found: dict[int, int] = {}
    missing, listed = list(range(count)), law.blocks(shift).cumulative(63)
    while missing:
        bits, places, lots = source(3 * len(missing)).reshape(3, -1).tolist()
        again = []
        for at, bit, place, lot in zip(missing, bits, places, lots, strict=True):
            block, inside, sign = bisect_right(listed, bit % 2**63), place >> (64 - shift), -1 if bit >= 2**63 else 1
            x = law.exponent(block << shift, inside)
            with mp.workdps(60):
                kept = lot < mp.exp(-mp.mpf(x[0]) / x[1]) * 2**64
            k = (block << shift) + inside
            if kept and (k or sign > 0):
                found[at] = sign * k
            else:
                again.append(at)
        missing = again
    return [found[at] for at in range(count)]


@pytest.mark.parametrize(("law", "shift"), [(Law.gaussian(40.0), 2), (Law.gaussian(40.0), 5), (Law.laplace(25.5), 3)])
def test_draws_in_blocks_follow_the_definition_word_by_word(law: Law, shift: int) -> None:
    assert drawn(law, shift, 600, stream(8)).tolist() == plainly(law, shift, 600, stream(8))


def test_a_word_on_a_border_takes_further_words_whatever_the_sign_and_the_block() -> None:
    law = Law.gaussian(40.0)
    border = law.cumulative(127)[3] >> 64
    for sign in (0, 1):
        feed = Feed(*([border + (sign << 63)] * 2), 0, TOP)
        assert np.abs(drawn(law, 0, 2, feed)).tolist() == [3, 4]
    blocks = law.blocks(3)
    border = blocks.cumulative(127)[1] >> 64
    assert [drawn(law, 3, 1, Feed(border + s, 5 << 61, 0, w))[0] for s in (0, 2**63) for w in (0, TOP)] == [
        13,
        21,
        -13,
        -21,
    ]
    assert drawn(law, 3, 1, Feed(2**63, 0, 0, 0, 1 << 61, 0))[0] == 1  # minus zero is drawn again


def test_the_table_ends_where_nothing_is_placed_any_more_and_numbers_are_cut_to_64_bits() -> None:
    full = 2**63 - 2
    assert [exact._end(each) for each in ([1, full - 1, full, full + 1], [full], [5, full - 1, full + 1])] == [3, 1, 3]
    assert [exact._fitting(k) for k in (2**63, 2**63 - 1, 5, -(2**63), -(2**63) - 1)] == [
        2**63 - 1,
        2**63 - 1,
        5,
        -(2**63),
        -(2**63),
    ]
    table = InversionTable(Law.laplace(3.0), 0)
    table.shift = 70
    assert table._place(2**63, Feed(1)) == (2**63 << 64 | 1) >> (128 - 70)
    table.shift = 64
    assert table._place(7, Feed()) == 7


def test_noisy_counts_are_cut_at_both_ends_and_nowhere_else() -> None:
    low, high = -(2**62), 2**63 - 1
    counts = [0, 1, 5, 2**62 - 1, 2**62]
    drawn = [-(2**63), low - 1, low, low + 1, -1, 0, 1, 2**62 - 1, 2**62, 2**62 + 1, high]
    for count in counts:
        for each in drawn:
            for beside in (0, 2**62, -(2**63)):
                got = noise.plus(np.array([count, 0]), np.array([each, beside]))
                assert got.tolist() == [min(max(count + each, low), high), min(max(beside, low), high)]


def test_every_wrong_draw_is_refused_by_the_self_test() -> None:
    def spoilt(name: str, scale: int, seeded: bool, change: Callable[[np.ndarray], np.ndarray]) -> exact.Words:
        def draw(law: Law, cells: int, rng: np.random.Generator | None) -> np.ndarray:
            found = noise.draw(law, cells, rng or np.random.default_rng(5))
            return change(found) if law == noise._law(name, scale) and (rng is not None) == seeded else found

        return draw

    noise.check(512, spoilt("none", 5, True, np.copy))
    for name in ("gaussian", "laplace"):
        for scale in noise.SCALES:
            with pytest.raises(NoiseError, match=f"{name} noise of scale {scale} does not follow"):
                noise.check(4096, spoilt(name, scale, False, lambda each: each + np.maximum(1, np.abs(each) // 2)))
        for scale in (2, 5, 20):
            with pytest.raises(NoiseError, match=f"known bits give wrong {name} noise of scale {scale}"):
                noise.check(64, spoilt(name, scale, True, lambda each: np.append(each[:7], each[7] + 1)))


def test_the_known_noise_is_that_of_the_published_stream() -> None:
    first = np.random.Generator(noise._known_stream().bit_generator).integers(0, 2**64, 8, dtype=np.uint64).tolist()
    for (name, scale), expected in noise.KNOWN.items():
        with mp.workdps(80):
            exactly = mp.mpf(scale)
            weights = [mp.exp(-(k**2) / (2 * exactly**2) if name == "gaussian" else -k / exactly) for k in range(2000)]
            sums, total = [], weights[0] / 2
            for each in [mp.mpf(0), *weights[1:]]:
                total += each
                sums.append(total)
            found = [bisect_right(sums, mp.mpf(word % 2**63) / 2**63 * total) for word in first]
        assert [-k if word >= 2**63 else k for k, word in zip(found, first, strict=True)] == expected


def test_many_gammas_are_drawn_in_parts_that_differ() -> None:
    shapes = np.tile([1.0, 1e6], noise.PARALLEL // 2).reshape(2, -1)
    found = noise.standard_gamma(shapes)
    assert found.shape == shapes.shape
    assert np.unique(found).size > 0.99 * found.size
    assert abs(found[:, ::2].mean() - 1) < 0.01
    assert abs(found[:, 1::2].mean() / 1e6 - 1) < 1e-5
    seeded = [noise.standard_gamma(shapes[0, :5], np.random.default_rng(3)) for _ in range(2)]
    assert (seeded[0] == np.random.default_rng(3).standard_gamma(shapes[0, :5])).all()
    assert (seeded[1] == seeded[0]).all()


def test_a_seed_repeats_draws_of_any_number() -> None:
    one, other = (noise.standard_gamma(np.ones(noise.PARALLEL), np.random.default_rng(2)) for _ in range(2))
    assert (one == other).all()
    first, second = (noise.draw(Law.laplace(2.0), noise.PARALLEL, np.random.default_rng(2)) for _ in range(2))
    assert (first == second).all()


def test_a_table_is_chosen_alike_for_every_kind_of_draw() -> None:
    unit = Unit(adjacency="add-remove")
    drawn = Laplace(scale=33.0, unit=unit).draw(np.zeros((2, 300), dtype=np.int64), np.random.default_rng(4))
    assert drawn.ravel().tolist() == noise.draw(Law.laplace(33.0), 600, np.random.default_rng(4)).tolist()


@pytest.mark.parametrize("spare", [-6, -1, 0, 1, 5])
def test_the_bounds_hold_the_truth_without_digits_to_spare(spare: int) -> None:
    with mp.workdps(60):
        for n in range(1, 400):
            x = Fraction(n * n * 7 % 1009, 97 + n % 13)
            low, high = exp_bounds(x.numerator, x.denominator, 60, spare)
            assert low <= mp.exp(-mp.mpf(x.numerator) / x.denominator) * 2**60 <= high


def test_cumulative_bounds_hold_the_truth_wherever_they_are_given() -> None:
    for law in SMALL[::5]:
        for bits in range(20, 40):
            if (found := law._cumulative(bits, 40)) is None:
                continue
            with mp.workdps(40):
                weights = [mp.exp(-mp.mpf(law.exponent(0, k)[0]) / law.over) for k in range(80)]
                whole, total = weights[0] / 2 + mp.fsum(weights[1:]), -weights[0] / 2
                for bound, weight in zip(found, weights, strict=False):
                    total += weight
                    assert bound <= total / whole * 2**bits < bound + 2


@pytest.mark.parametrize("law", [Law.gaussian(900.0), Law.laplace(99.3), Law.gaussian(61.7)])
@pytest.mark.parametrize("shift", [2, 4])
def test_a_lot_that_may_lie_beyond_one_less_the_exponent_is_never_sure(law: Law, shift: int) -> None:
    table, size = InversionTable(law, shift), 1 << shift
    pairs = [(block, place) for block in range(6) for place in range(1, size)]
    x = [Fraction(p * (law.slope + law.bend * (b * size + size // 2)), law.over) for b, p in pairs]
    borders = [int((1 - each) * 2**64) for each in x]
    blocks, places = (np.array(each, dtype=np.int64) for each in zip(*pairs, strict=True))
    for step, sure in ((0, False), (-3 * 6 * size, True)):
        lots = np.array([border + step for border in borders], dtype=np.uint64)
        assert (table.surely_kept(blocks, places, lots) == sure).all()
