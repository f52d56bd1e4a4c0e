"""Laplace noise that adds up to zero, against enumeration, convolution and Legendre polynomials."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import eval_legendre
from scipy.stats import chisquare

from dpbayes import ApproxDP, Attribute, Curator, Posterior, PureDP, Release, Schema, Tables, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.laplace import LaplaceNoise
from dpbayes.mechanisms.sum_zero import LARGEST_SCALE, MOST_CELLS, SumZeroLaplace, SumZeroNoise, _growth, chance_of_loss
from dpbayes.release.verify import verify
from dpbayes.words.promise import law

REPLACE = Unit(adjacency="replace-one")
GAINS = {2: 0.47, 3: 0.61, 4: 0.69, 8: 0.83}
"""Variance over that of independent noise corrected for the total, ε = 1."""


def lattice(cells: int, reach: int) -> np.ndarray:
    """All whole vectors that add up to zero, with numbers up to ``reach``."""
    free = np.array(list(itertools.product(range(-reach, reach + 1), repeat=cells - 1)))
    return np.column_stack([free, -free.sum(axis=1)])


def weights(table: np.ndarray, center: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-np.abs(table - center).sum(axis=1) / scale)


@pytest.mark.parametrize(("cells", "rows"), [(2, 1), (3, 1), (4, 1), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_neighbour_is_told_from_another_by_more_than_the_claim(cells: int, rows: int, epsilon: float) -> None:
    if cells == 4 and epsilon < 2:
        epsilon = 4.0  # a shorter enumeration
    unit = Unit(adjacency="replace-one", max_rows=rows)
    made = SumZeroLaplace(scale=2 * rows / epsilon, cells=cells, unit=unit)
    points = lattice(cells, math.ceil(16 * made.scale) if cells < 4 else 14)
    here = weights(points, np.zeros(cells), made.scale)
    largest, deltas, whole = 0.0, dict.fromkeys((0.0, 0.3 * epsilon, 0.9 * epsilon), 0.0), here.sum()
    for i, j in itertools.permutations(range(cells), 2):
        for moved in range(1, rows + 1):
            step = np.zeros(cells)
            step[i], step[j] = moved, -moved
            there = weights(points, step, made.scale)
            loss = np.log(here / there)
            largest = max(largest, float(np.abs(loss).max()))
            for at in deltas:
                deltas[at] = max(deltas[at], float(np.maximum(here - math.exp(at) * there, 0).sum() / whole))
    assert largest == pytest.approx(made.renyi(math.inf), rel=1e-12) == pytest.approx(epsilon)
    assert made.renyi(math.inf) >= epsilon
    for at, found in deltas.items():
        assert found <= made.delta(at) * (1 + 1e-6)
        if made.exact:
            assert made.delta(at) == pytest.approx(found, rel=1e-5)
    assert made.delta(epsilon) == pytest.approx(0.0, abs=1e-15)


def test_three_cells_cost_exactly_what_the_theory_says() -> None:
    made = SumZeroLaplace(scale=2.0, cells=3, unit=REPLACE)
    assert made.renyi(math.inf) == 1.0
    assert made.delta(0.5) == pytest.approx(0.206, abs=5e-4)
    x = 1 / math.tanh(0.5)
    p = x / -math.expm1(-1) / eval_legendre(2, x)
    assert chance_of_loss(2.0, 3) == pytest.approx(p, rel=1e-12)
    assert made._loss().probabilities.tolist() == pytest.approx([p, 1 - p - p / math.e, p / math.e])


@pytest.mark.parametrize("cells", [2, 3, 4, 8])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_variance_is_that_of_a_convolution(cells: int, epsilon: float) -> None:
    scale = 2.0 / epsilon
    k = np.arange(-400, 401)
    one = np.exp(-np.abs(k) / scale)
    rest = np.array([1.0])
    for _ in range(cells - 1):
        rest = np.convolve(rest, one)
    own = one * rest[(cells - 1) * 400 - k]
    own /= own.sum()
    noise = SumZeroNoise(scale=scale, cells=cells)
    cell = float(noise.variance(np.zeros(1))[0]) * (1 - 1 / cells)
    assert cell == pytest.approx(float((own * k**2).sum()), rel=1e-9)
    if epsilon == 1.0:
        projected = (1 - 1 / cells) * float(LaplaceNoise(scale=scale).variance(np.zeros(1))[0])
        assert cell / projected == pytest.approx(GAINS[cells], abs=0.006)


@pytest.mark.parametrize("cells", [1, 2, 5, 40])
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_growth_is_a_ratio_of_legendre_polynomials(cells: int, scale: float) -> None:
    x = 1 / math.tanh(1 / scale)
    ratio = eval_legendre(cells, x) / eval_legendre(cells - 1, x)
    assert _growth(scale, cells) == pytest.approx(x * ratio - 1, rel=1e-6)


@pytest.mark.parametrize("cells", [2, 3, 8, 64, MOST_CELLS])
def test_noise_of_a_size_has_at_most_the_variance_of_laplace_noise_of_that_scale(cells: int) -> None:
    for size in (0.1, 0.7, 3.0, 40.0, 1e5):
        made = SumZeroLaplace.of_size(size, REPLACE, cells, joint=True)
        assert 0 < float(made.noise().variance(np.zeros(1))[0]) <= 2 * size**2 * (1 + 1e-12)
    assert float(made.noise().variance(np.zeros(1))[0]) == pytest.approx(2 * size**2, rel=1e-4)


def test_draws_follow_the_law_of_the_lattice() -> None:
    rng = np.random.default_rng(5)
    made = SumZeroLaplace(scale=1.5, cells=3, unit=REPLACE)
    drawn = np.array([made.draw([4, 0, 9], rng) for _ in range(8000)]) - [4, 0, 9]
    assert (drawn.sum(axis=1) == 0).all()
    points = lattice(3, 12)
    law = weights(points, np.zeros(3), made.scale)
    law /= law.sum()
    place = {tuple(point): at for at, point in enumerate(points.tolist())}
    seen = np.bincount([place[tuple(point)] for point in drawn.tolist() if tuple(point) in place], minlength=len(law))
    often = 8000 * law >= 10
    observed, expected = np.append(seen[often], 8000 - seen[often].sum()), np.append(law[often], 1 - law[often].sum())
    assert chisquare(observed, 8000 * expected).pvalue > 1e-4
    shape = made.draw(np.array([[4, 0, 9]]))  # secure
    assert shape.shape == (1, 3)
    assert shape.sum() == 13


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": Unit(adjacency="add-remove")}, "public"),
        ({"unit": Unit(adjacency="replace-one", person="name")}, "public"),
        ({"cells": 1}, "cells"),
        ({"cells": MOST_CELLS + 1}, "cells"),
        ({"scale": 2 * LARGEST_SCALE}, "scale"),
    ],
)
def test_what_it_cannot_do_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        replace(SumZeroLaplace(scale=2.0, cells=3, unit=REPLACE), **change)
    with pytest.raises(InvalidArgument, match="cells"):
        SumZeroLaplace(scale=2.0, cells=3, unit=REPLACE).draw([1, 2])


SCHEMA = Schema(
    id="people",
    unit=REPLACE,
    attributes=(
        Attribute(name="sex", categories=("F", "M"), unknown="drop", missing="drop"),
        Attribute(name="town", categories=("a", "b", "c"), unknown="drop", missing="drop"),
    ),
)


def rows(table: np.ndarray) -> dict[str, list[str]]:
    places = np.repeat(np.arange(table.size), table.ravel())
    sexes, towns = np.unravel_index(places, table.shape)
    return {"sex": ["FM"[at] for at in sexes], "town": ["abc"[at] for at in towns]}


TRUTHS = {
    "even": np.array([[100, 100, 100], [100, 100, 100]]),
    "with empty cells": np.array([[0, 0, 200], [1, 0, 0]]),
    "small": np.array([[3, 5, 0], [9, 2, 1]]),
}


def published(truth: np.ndarray, seed: int, *marginals: str, target: object = None) -> Release:
    return Curator(rows(truth), SCHEMA, seed=seed).release(Tables(*marginals), target or PureDP(epsilon=1.0))


def test_a_pure_target_takes_it_and_the_table_adds_up_to_the_records() -> None:
    for marginals in (("sex,town",), ("sex", "town"), ("sex,town", "town|sex")):
        release = published(TRUTHS["even"], 3, *marginals)
        joint = [table for table in release.tables if table.kind == "noisy-counts" and not table.marginal.given]
        assert joint
        for table in joint:
            made = release.paid[table.by].mechanism
            assert isinstance(made, SumZeroLaplace)
            assert made.cells == len(table.values)
            assert table.values.sum() == release.records == 600
            assert "keeps its public total" in law(table, made.record())
        assert [check.name for check in verify(release).checks if not check.passed] == ["randomness"]
        assert Release.from_json(release.to_json()).to_json() == release.to_json()
    assert release.choice.startswith("sum-zero laplace noise: errors 0.")


def test_other_targets_and_tables_keep_independent_noise() -> None:
    def kinds(*marginals: str, target: object, unit: Unit = REPLACE) -> set[str]:
        plan = Tables(*marginals).plan(replace(SCHEMA, unit=unit), target)
        return {str(paid.mechanism.record()["mechanism"]) for paid in plan.paid}

    assert kinds("sex,town", target=ApproxDP(epsilon=1.0, delta=1e-6)) <= {"gaussian-1", "laplace-1"}
    assert kinds("town|sex", target=PureDP(epsilon=1.0)) == {"laplace-1"}
    assert kinds("town", target=PureDP(epsilon=1.0), unit=Unit(adjacency="add-remove")) == {"laplace-1"}
    assert kinds("town", target=PureDP(epsilon=1.0), unit=Unit(adjacency="replace-one", person="name")) == {"laplace-1"}


def test_a_file_that_claims_another_size_or_total_is_refused() -> None:
    release = published(TRUTHS["even"], 3, "town")
    (table,) = release.tables
    off = replace(release, tables=(replace(table, values=table.values + 1),))
    assert "add up to" in str(verify(off))
    other = replace(release.paid[0], mechanism=replace(release.paid[0].mechanism, cells=5))
    assert "number of cells" in str(verify(replace(release, paid=(other,))))


@pytest.mark.parametrize("name", TRUTHS)
def test_intervals_cover_the_truth(name: str) -> None:
    truth, held, many = TRUTHS[name], 0, 60
    first = published(truth, 1, "sex,town")
    (table,) = first.tables
    made, rng = first.paid[table.by].mechanism, np.random.default_rng(1)
    whole = np.zeros((3, 4), dtype=int)  # with the cells of what is dropped
    whole[:2, :3] = truth
    for _ in range(many):
        again = replace(table, values=made.draw(whole, rng).ravel().astype(float))
        found = Posterior(replace(first, tables=(again,))).table("sex,town").counts
        held += int(((found.lower[:2, :3] <= truth) & (truth <= found.upper[:2, :3])).sum())
        assert found.values.sum() == pytest.approx(truth.sum())
    assert held / (6 * many) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / (6 * many))


def test_the_linear_law_has_the_variance_of_the_noise() -> None:
    release = published(TRUTHS["even"], 3, "sex,town")
    joint = Posterior(release).joint
    made = release.paid[release.tables[0].by].mechanism
    own = float(made.noise().variance(np.zeros(1))[0])
    _, variance = joint.linear(("sex", "town"))
    assert np.asarray(variance)[0, 0] == pytest.approx(own * 11 / 12)  # with what is dropped, there are twelve cells


def test_wanted_errors_take_a_smaller_guarantee_with_it() -> None:
    wants = {"sex": "± 5 records", "town": "± 10 records"}
    schema = replace(SCHEMA, records=10_000)
    least = {
        kind: Tables(want=wants, mechanism=kind).least(schema, PureDP(epsilon=5.0)) for kind in ("auto", "laplace")
    }
    assert least["auto"].epsilon < 0.9 * least["laplace"].epsilon
    plan = Tables(want=wants).plan(schema, least["auto"])
    assert {type(paid.mechanism) for paid in plan.paid} == {SumZeroLaplace}
