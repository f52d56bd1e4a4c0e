"""Intervals for the population: several rows of one person, and sums over tables that nobody crossed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm

from dpbayes.inference import Exact, GaussianNoise, Measurement, Posterior
from dpbayes.inference.intervals import half_step
from dpbayes.inference.numbers import Repeats

Z = norm.ppf(0.975)
SIZES = {"a": 2, "b": 3, "c": 2}


@given(st.integers(1, 3), st.integers(0, 10**6))
def test_no_law_of_rows_varies_more_than_the_most_rows_of_one_person_allow(most, seed):
    """Every way to have up to m rows, each with or without a trait, gets a chance; the variance is summed exactly."""
    rng = np.random.default_rng(seed)
    people = [rows for number in range(1, most + 1) for rows in itertools.product((0, 1), repeat=number)]
    chance = rng.dirichlet(np.full(len(people), 0.3))
    rows, trait = (np.array([size(each) for each in people], dtype=float) for size in (len, sum))
    share = chance @ trait / (chance @ rows)
    variance = chance @ (trait - share * rows) ** 2 / (chance @ rows)
    assert variance <= Repeats(most=most).among({}) * share * (1 - share) + 1e-12


def test_the_bound_is_met_where_all_rows_of_a_person_are_alike():
    trait, rows, share = np.array([0.0, 4.0]), 4.0, 0.3
    variance = np.array([0.7, 0.3]) @ (trait - share * rows) ** 2 / rows
    assert variance == pytest.approx(Repeats(most=4).among({}) * share * (1 - share))


def test_fewer_rows_count_within_what_is_conditioned_on():
    repeats = Repeats(most=8, within={"c": np.array([1, 2]), "b": np.array([3, 3, 8])})
    assert repeats.among({"c": np.array([0, 1])}) == 2
    assert repeats.among({"c": np.array([1, 1])}) == 3
    assert repeats.among({"b": np.array([1, 1, 1]), "a": np.array([1, 0])}) == 8
    assert repeats.table(("a", "c")).tolist() == [[1, 2]]
    assert repeats.table(()) == 8
    assert "up to 8 rows" in repeats.said
    assert "within c or b" in repeats.said


def built(counts, repeats=None, noise=None, tables=(("a", "c"), ("b", "c"))):
    whole = {"a": 0, "b": 1, "c": 2}
    measured = []
    for axes in tables:
        lost = tuple(place for name, place in whole.items() if name not in axes)
        measured.append(Measurement(axes=axes, values=counts.sum(axis=lost), noise=noise or Exact()))
    return Posterior(measured, SIZES, records=int(counts.sum()), repeats=repeats)


COUNTS = np.random.default_rng(3).integers(20, 200, (2, 3, 2)).astype(float)


@pytest.mark.parametrize("most", [1, 5])
def test_every_interval_for_the_population_takes_the_rows_of_one_person_into_account(most):
    """Without noise the variance of a share is m times that of independent rows, in tables and in questions."""
    posterior = built(COUNTS, Repeats(most=most), GaussianNoise(sigma=1e-3))
    total, group = COUNTS.sum(), COUNTS[:, :, 1].sum()
    for share, rows, table in (
        (COUNTS[1].sum() / total, total, posterior.estimate(("a",), prior_assisted=False).population),
        (COUNTS[1, :, 1].sum() / group, group, posterior.estimate(("a",), given=("c",)).population),
    ):
        cell = (1,) if table.values.ndim == 1 else (1, 1)
        for end in (table.lower[cell], table.upper[cell]):
            assert (share - end) ** 2 == pytest.approx(Z**2 * most * end * (1 - end) / rows, rel=1e-3)
    for question, variance in {
        "share(a=1, c=0) - share(a=0, c=1)": (
            (COUNTS[1, :, 0].sum() + COUNTS[0, :, 1].sum()) / total
            - ((COUNTS[1, :, 0].sum() - COUNTS[0, :, 1].sum()) / total) ** 2
        )
        / total,
        "share(a=1 | c=0) - share(a=1 | c=1)": sum(
            (one := COUNTS[1, :, at].sum()) * (all_ := COUNTS[:, :, at].sum()) ** -2 * (1 - one / all_) for at in (0, 1)
        ),
    }.items():
        found = posterior.ask(question, target="population")
        assert (found.upper - found.lower) / (2 * Z) == pytest.approx(np.sqrt(most * variance), rel=0.02)
        assert bool(found.notes) == (most > 1)
        assert posterior.ask(question).notes == ()


def test_records_do_not_feel_how_many_rows_a_person_has():
    one, many = (built(COUNTS, Repeats(most=most), GaussianNoise(sigma=4.0)) for most in (1, 9))
    for given_ in ((), ("c",)):
        first, second = (each.estimate(("a",), given=given_) for each in (one, many))
        np.testing.assert_array_equal(first.records.upper, second.records.upper)
        np.testing.assert_array_equal(first.counts.lower, second.counts.lower)
        assert (first.population.upper < second.population.upper).all()
        assert first.population.note == "" != second.population.note


def test_what_is_declared_shortens_shares_within_that_attribute_only():
    plain, declared = (
        built(COUNTS, Repeats(most=6, within=within), GaussianNoise(sigma=1e-3))
        for within in ({}, {"c": np.array([1, 6])})
    )
    for axes, given_, factor in ((("a",), (), [1, 1]), (("a",), ("c",), [[6**0.5], [1]])):
        first, second = (each.estimate(axes, given=given_).population for each in (plain, declared))
        wider = (first.upper - first.lower) / (second.upper - second.lower)
        np.testing.assert_allclose(wider, np.broadcast_to(factor, wider.shape), rtol=0.05)
    for question, factor in {
        "share(b in (0, 1) | c=0)": 6**0.5,
        "share(b in (0, 1) | c=0) * 2": 6**0.5,
        "share(b in (0, 1) | c=0) - share(b=1 | c=1)": 1.0,
        "2 * share(a=1)": 1.0,
    }.items():
        first, second = (each.ask(question, target="population") for each in (plain, declared))
        assert (first.upper - first.lower) / (second.upper - second.lower) == pytest.approx(factor, rel=0.05)


def largest_variance(question_weights, counts, tables):
    """The most that N·Var of a sum can be over all joint tables with the published margins, by linear programming."""
    shares = counts / counts.sum()
    cells = list(np.ndindex(shares.shape))
    rows, totals = [], []
    for axes in tables:
        kept = [("a", "b", "c").index(name) for name in axes]
        for levels in itertools.product(*(range(shares.shape[place]) for place in kept)):
            inside = [tuple(cell[place] for place in kept) == levels for cell in cells]
            rows.append(np.array(inside, dtype=float))
            totals.append(float(rows[-1] @ shares.ravel()))
    values = np.array([question_weights(cell) for cell in cells])
    found = linprog(-(values**2), A_eq=np.array(rows), b_eq=totals, bounds=(0, 1))
    assert found.status == 0
    return -found.fun - float(values @ shares.ravel()) ** 2


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("tables", [(("a",), ("b",)), (("a", "c"), ("b", "c"))])
@pytest.mark.parametrize(
    ("question", "weights"),
    [
        ("share(a=1) - share(b=2)", lambda cell: (cell[0] == 1) - (cell[1] == 2)),
        ("share(a=1) + share(b=2)", lambda cell: (cell[0] == 1) + (cell[1] == 2)),
        ("3 * share(a=0) - 2 * share(b != 1)", lambda cell: 3 * (cell[0] == 0) - 2 * (cell[1] != 1)),
    ],
)
def test_tables_that_were_never_crossed_may_overlap_in_any_way(question, weights, tables, most):
    posterior = built(COUNTS, Repeats(most=most), GaussianNoise(sigma=1e-3), tables)
    found = posterior.ask(question, target="population")
    plain = largest_variance(weights, COUNTS, (("a",), ("b",)))
    wanted = 2 * Z * np.sqrt(most * plain / COUNTS.sum())
    assert found.upper - found.lower == pytest.approx(wanted, rel=1e-3)
    assert any("a × b would make it shorter" in note for note in found.notes)
    assert not any("never published" in note for note in posterior.ask(question).notes)


def test_attributes_that_both_tables_have_bound_the_overlap():
    posterior = built(COUNTS, None, GaussianNoise(sigma=1e-3))
    found = posterior.ask("share(a=1, c=0) - share(b=2, c=0)", target="population")
    wanted = largest_variance(
        lambda cell: (cell[2] == 0) * ((cell[0] == 1) - (cell[1] == 2)), COUNTS, (("a", "c"), ("b", "c"))
    )
    assert found.upper - found.lower == pytest.approx(2 * Z * np.sqrt(wanted / COUNTS.sum()), rel=1e-3)


@pytest.mark.parametrize("question", ["share(a=1) * share(b=2)", "share(a=1) / share(b=2)", "count(a=0) / count(b=1)"])
def test_products_and_ratios_over_tables_that_were_never_crossed_take_the_worst_overlap(question):
    posterior = built(COUNTS, None, GaussianNoise(sigma=1e-3), (("a",), ("b",)))
    level = {"a": int(question.split("a=")[1][0]), "b": int(question.split("b=")[1][0])}
    p, q = COUNTS[level["a"]].sum() / COUNTS.sum(), COUNTS[:, level["b"]].sum() / COUNTS.sum()
    slope = (q, p) if "*" in question else (1 / q, -p / q**2)
    wanted = largest_variance(
        lambda cell: slope[0] * (cell[0] == level["a"]) + slope[1] * (cell[1] == level["b"]), COUNTS, (("a",), ("b",))
    )
    found = posterior.ask(question, target="population")
    assert found.upper - found.lower == pytest.approx(2 * Z * np.sqrt(wanted / COUNTS.sum()), rel=0.03)


def test_a_condition_that_all_levels_fulfil_changes_nothing():
    posterior = built(COUNTS, None, GaussianNoise(sigma=2.0), (("a",), ("b",)))
    for target in ("records", "population"):
        short = posterior.ask("2 * share(a=1)", target=target)
        long = posterior.ask("2 * share(a=1, b in (0, 1, 2))", target=target)
        assert (short.lower, short.upper) == (long.lower, long.upper)


# -- the same number, the same interval -----------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sigma", [0.3, 0.5, 20.0])
def test_a_question_about_one_cell_gets_what_is_printed(sigma, known):
    rng = np.random.default_rng(5)
    values = COUNTS + np.rint(rng.normal(0, sigma, COUNTS.shape))
    table = Measurement(axes=("a", "b", "c"), values=values, noise=GaussianNoise(sigma=sigma))
    posterior = Posterior([table], SIZES, records=int(COUNTS.sum()) if known else None)
    cells, rows = posterior.estimate(("a", "b")), posterior.estimate(("b",), given=("a",))
    for a, b in np.ndindex(2, 3):
        for target, part in (("records", "records"), ("population", "population")):
            for question, printed in (
                (f"share(b={b}, a={a})", getattr(cells, part)),
                (f"share(b={b} | a={a})", getattr(rows, part)),
            ):
                found = posterior.ask(question, target=target)
                wanted = [getattr(printed, each)[a, b] for each in ("values", "lower", "upper")]
                assert [found.estimate, found.lower, found.upper] == wanted
        found = posterior.ask(f"count(a={a}, b={b})")
        assert [found.lower, found.upper] == [cells.counts.lower[a, b], cells.counts.upper[a, b]]


@pytest.mark.parametrize("sigma", [0.45, 0.5, 0.8])
@pytest.mark.parametrize(
    "question", ["count(a in (0, 1))", "count(a=0) - count(a=1)", "share(a in (0, 1))", "count(a=0) / count(a=1)"]
)
def test_answers_about_records_cover_however_small_the_noise_is(question, sigma):
    """All noises of two cells, with their chances: the third has none, so the sum is exact."""
    counts = np.array([300.0, 200.0, 150.0])
    truth = {"count(a in (0, 1))": 500, "count(a=0) - count(a=1)": 100, "share(a in (0, 1))": 500 / 650}.get(
        question, 1.5
    )
    k = np.arange(-6, 7)
    chance = np.exp(-0.5 * (k / sigma) ** 2)
    chance = chance / chance.sum()
    covered = 0.0
    for (i, first), (j, second) in itertools.product(enumerate(k), repeat=2):
        if chance[i] * chance[j] > 1e-3:
            values = counts + np.array([first, second, 0])
            measured = Measurement(axes=("a",), values=values, noise=GaussianNoise(sigma=sigma))
            found = Posterior([measured], {"a": 3}).ask(question)
            covered += chance[i] * chance[j] * (found.lower - 1e-9 <= truth <= found.upper + 1e-9)
    assert covered > 0.94


def test_half_a_step_more_is_half_a_step_more():
    for level, step in ((0.5, 1.0), (0.95, 0.25)):
        z = norm.ppf(0.5 + level / 2)
        variance = np.array([0.0, 0.04, 9.0])
        wanted = np.where(variance > 0, z * np.sqrt(variance) + step / 2, 0.0)
        np.testing.assert_allclose(z * np.sqrt(variance + half_step(variance, level, step)), wanted)
