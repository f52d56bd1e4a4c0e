"""Pseudo-records: the law of Dirichlet-multinomial counts, in integers."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpbayes import Dirichlet, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.urn import PseudoRecords, pseudo_records
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
ADD = Unit(adjacency=Adjacency.ADD_REMOVE)
NAMED = Unit(adjacency=Adjacency.REPLACE_ONE, person="id")


def law(weight, alphas, counts, records):
    """Exact probabilities of the Dirichlet-multinomial."""
    shapes = [Fraction(weight) * c + Fraction(a) for c, a in zip(counts, alphas, strict=True)]

    def rising(x, n):
        return math.prod((x + k for k in range(n)), start=Fraction(1))

    found = {}
    for split in itertools.product(range(records + 1), repeat=len(counts)):
        if sum(split) == records:
            ways = math.factorial(records) // math.prod(math.factorial(n) for n in split)
            inside = math.prod((rising(s, n) for s, n in zip(shapes, split, strict=True)), start=Fraction(1))
            found[split] = ways * inside / rising(sum(shapes), records)
    return found


@pytest.mark.parametrize("alphas", [0.7, (0.5, 1.25, 0.1)])
def test_the_urn_draws_exactly_the_dirichlet_multinomial(alphas):
    mechanism = Dirichlet(weight=0.5, concentration=alphas, unit=UNIT)
    counts, draws = [3, 0, 5], 40_000
    below = random.Random(3).randrange
    seen = {}
    for _ in range(draws):
        key = tuple(pseudo_records(mechanism, counts, 3, below=below).tolist())
        seen[key] = seen.get(key, 0) + 1
    expected = law(0.5, alphas if isinstance(alphas, tuple) else (alphas,) * 3, counts, 3)
    assert sum(expected.values()) == 1
    chi_squared = sum((seen.get(k, 0) - draws * float(v)) ** 2 / (draws * float(v)) for k, v in expected.items())
    assert chi_squared < 30  # 9 degrees of freedom, seeded


def test_the_urn_never_touches_floats_of_the_draw():
    mechanism = Dirichlet(weight=0.1, concentration=1e-3, unit=UNIT)
    asked = []

    def below(total):
        assert isinstance(total, int)
        asked.append(total)
        return total - 1

    drawn = pseudo_records(mechanism, np.array([[2, 0], [1, 4]]), 7, below=below)
    assert drawn.shape == (2, 2)
    assert drawn.sum() == 7
    assert drawn[1, 1] == 7
    assert all(b > a for a, b in itertools.pairwise(asked))


def test_wrong_shapes_and_counts_are_refused():
    mechanism = Dirichlet(weight=1, concentration=(1.0, 2.0), unit=UNIT)
    with pytest.raises(InvalidArgument, match="2 cells"):
        pseudo_records(mechanism, [1, 2, 3], 4)
    with pytest.raises(InvalidArgument, match="records"):
        pseudo_records(mechanism, [1, 2], 0)


def test_a_declared_lower_bound_holds_in_the_urn_too():
    mechanism = Dirichlet(weight=1, concentration=1, least_count=5, unit=UNIT)
    totals = []

    def below(total):
        totals.append(total)
        return 0

    pseudo_records(mechanism, [0, 9], 1, below=below)
    assert totals == [5 + 1 + 9 + 1]


def neighbours(counts, unit):
    """All tables that differ in one person's record."""
    for i in range(len(counts)):
        if unit.replaces:
            for j in range(len(counts)):
                if i != j and counts[i]:
                    yield tuple(c - (k == i) + (k == j) for k, c in enumerate(counts))
        if not unit.fixed_size:  # a row that names nobody is left out, so a replaced one may vanish
            yield tuple(c + (k == i) for k, c in enumerate(counts))
            if counts[i]:
                yield tuple(c - (k == i) for k, c in enumerate(counts))


def raised(counts, least):
    return tuple(max(c, least) for c in counts)


def check_domination(mechanism, counts):
    """Every outcome of the table and of all its neighbours, in exact fractions; the largest δ found at each ε."""
    alpha, least = mechanism.concentration, mechanism.least_count
    alphas = alpha if isinstance(alpha, tuple) else (alpha,) * len(counts)
    here = law(mechanism.weight, alphas, raised(counts, least), mechanism.records)
    pure = mechanism.renyi(math.inf)
    for other in neighbours(counts, mechanism.unit):
        there = law(mechanism.weight, alphas, raised(other, least), mechanism.records)
        for p, q in ((here, there), (there, here)):
            ratios = [(float(p[k]), math.log(p[k] / q[k])) for k in p]
            assert max(loss for _, loss in ratios) <= pure * (1 + 1e-12)
            for share in (0.0, 0.2, 0.5, 0.8, 0.97):
                found = math.fsum(
                    chance * -math.expm1(share * pure - loss) for chance, loss in ratios if loss > share * pure
                )
                assert found <= mechanism.delta(share * pure) + 1e-15
            for order in (1.3, 2.0, 6.0):
                found = math.log(math.fsum(chance * math.exp((order - 1) * loss) for chance, loss in ratios)) / (
                    order - 1
                )
                assert found <= mechanism.renyi(order) * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("unit", [UNIT, ADD, NAMED], ids=["replace", "change", "named"])
def test_no_outcome_of_any_small_table_exceeds_the_price(unit):
    rng = np.random.default_rng(4)
    for number in range(30):
        cells = int(rng.integers(2, 5))
        counts = tuple(int(c) for c in rng.multinomial(rng.integers(1, 5), np.full(cells, 1 / cells)))
        alphas = tuple(float(a) for a in np.exp(rng.normal(0, 1, cells)))
        mechanism = PseudoRecords(
            weight=float(np.exp(rng.normal(0, 0.8))),
            concentration=alphas[0] if number % 2 else alphas,
            records=int(rng.integers(1, 6)),
            unit=unit,
            least_count=int(number % 5 == 0),
        )
        check_domination(mechanism, counts)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [UNIT, ADD, NAMED], ids=["replace", "change", "named"])
def test_no_outcome_of_many_small_tables_exceeds_the_price(unit):
    rng = np.random.default_rng(5)
    for _ in range(300):
        cells = int(rng.integers(2, 5))
        counts = tuple(int(c) for c in rng.multinomial(rng.integers(1, 6), np.full(cells, 1 / cells)))
        alphas = tuple(float(a) for a in np.exp(rng.normal(0, 1.5, cells)))
        mechanism = PseudoRecords(
            weight=float(np.exp(rng.normal(0, 1))), concentration=alphas, records=int(rng.integers(1, 7)), unit=unit
        )
        check_domination(mechanism, counts)


def test_the_pair_of_a_replaced_record_is_not_the_price_where_a_record_may_vanish():
    made = PseudoRecords(weight=1.0, concentration=10.0, records=100, unit=NAMED)
    assert not made.exact
    draw, plain = Dirichlet(weight=1.0, concentration=10.0, unit=NAMED), replace(made, unit=UNIT)
    assert made.renyi(math.inf) == pytest.approx(plain.renyi(math.inf), rel=1e-11)
    for delta in (1e-3, 1e-6, 1e-9):
        assert plain.epsilon(delta) <= made.epsilon(delta) <= min(draw.epsilon(delta), made.renyi(math.inf))
    assert made.pld(1e-2).delta(1.0) >= made.delta(1.0)


def test_the_price_of_a_replaced_record_is_attained_in_the_limit_of_light_others():
    """With cells i, j alone (c_i = 1, c_j = 0) the two laws are the pair itself."""
    mechanism = PseudoRecords(weight=1.5, concentration=0.8, records=6, unit=UNIT)
    here, there = (law(1.5, (0.8, 0.8), counts, 6) for counts in ((1, 0), (0, 1)))
    worst = max(math.log(here[k] / there[k]) for k in here)
    assert mechanism.renyi(math.inf) == pytest.approx(worst, rel=1e-11)
    found = math.fsum(max(float(here[k]) - math.e * float(there[k]), 0.0) for k in here)
    assert mechanism.delta(1.0) == pytest.approx(found, rel=1e-8)


def test_an_added_record_has_the_pure_price_and_never_more_than_the_draw():
    mechanism = PseudoRecords(weight=1.0, concentration=10.0, records=100, unit=ADD)
    draw = Dirichlet(weight=1.0, concentration=10.0, unit=ADD)
    assert mechanism.renyi(math.inf) == pytest.approx(math.log(11.0), rel=1e-11)
    assert mechanism.epsilon(1e-5) <= draw.epsilon(1e-5)
    assert mechanism.delta(math.log(11.1)) == 0.0 < draw.delta(math.log(11.1))
    many = PseudoRecords(weight=1.0, concentration=10.0, records=100, unit=Unit(adjacency="add-remove", max_rows=3))
    assert many.renyi(math.inf) == pytest.approx(3 * math.log(11.0), rel=1e-11)


def test_a_mechanism_draws_as_many_records_as_it_prices():
    mechanism = PseudoRecords(weight=0.5, concentration=(0.3, 2.0, 1.0), records=57, unit=UNIT)
    drawn = mechanism.draw([4, 0, 9])
    assert drawn.sum() == 57
    assert drawn.dtype == np.int64
    assert PseudoRecords.of(Dirichlet(weight=0.5, concentration=(0.3, 2.0, 1.0), unit=UNIT), 57) == mechanism


@pytest.mark.parametrize("bad", [0, -3, 1.5, True, None, "9", 2**63])
def test_the_number_of_records_is_checked(bad):
    with pytest.raises(InvalidArgument, match="records"):
        PseudoRecords(weight=1.0, concentration=1.0, records=bad, unit=UNIT)
