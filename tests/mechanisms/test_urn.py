"""Pseudo-records: the law of Dirichlet-multinomial counts, in integers."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from dpbayes import Adjacency, Dirichlet, PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.urn import pseudo_records

UNIT = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)


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
