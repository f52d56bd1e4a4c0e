"""The posterior of a few small releases: what it prints, what it promises and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.inference import GammaNoise, GaussianNoise, LaplaceNoise, Measurement, NotEstimable, Posterior

SIZES = {"a": 4, "b": 3, "c": 5}
PAIRS = list(itertools.combinations(SIZES, 2))


def shares(rng):
    table = rng.dirichlet(np.full(60, 0.3)).reshape(4, 3, 5)
    table[3, 2] = 0
    return table / table.sum()


def margin(table, axes):
    kept = table.sum(axis=tuple(place for place, name in enumerate(SIZES) if name not in axes))
    return kept.transpose([sorted(axes).index(name) for name in axes])


def posterior(rng, counts, sigma=12.0, known=True, tables=PAIRS):
    measured = []
    for axes in tables:
        clean = margin(counts, axes)
        values = clean + np.round(rng.normal(0, sigma, clean.shape))
        measured.append(Measurement(axes=axes, values=values, noise=GaussianNoise(sigma=sigma)))
    return Posterior(measured, SIZES, records=int(counts.sum()) if known else None)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("assisted", [True, False])
def test_intervals_hold_the_printed_estimate_and_shares_add_up(known, assisted):
    rng = np.random.default_rng(1)
    counts = rng.multinomial(1500, shares(rng).ravel()).reshape(4, 3, 5).astype(float)
    found = posterior(rng, counts, known=known)
    for axes, given in [(("a",), ()), (("c", "a"), ()), (("a",), ("b",)), (("c",), ("a",))]:
        table = found.estimate(axes, given, prior_assisted=assisted)
        assert table.axes == (*given, *axes)
        shape = tuple(SIZES[name] for name in table.axes)
        for part in (table.counts, table.records, table.population):
            assert part.values.shape == part.lower.shape == part.upper.shape == shape
            assert (part.lower <= part.values + 1e-12).all()
            assert (part.values <= part.upper + 1e-12).all()
            assert (part.lower >= 0).all()
        for part in (table.records, table.population):
            assert (part.upper <= 1 + 1e-9).all()
            summed = part.values.sum(axis=tuple(range(len(given), len(shape))))
            np.testing.assert_allclose(summed, 1.0, atol=1e-6)
        assert (table.counts.lower == np.floor(table.counts.lower)).all() or not assisted
        assert table.swallowed.shape == shape
        assert np.array_equal(found.shares(axes, given), table.population.values)


def test_axes_come_in_the_order_asked_for():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(1500, shares(rng).ravel()).reshape(4, 3, 5).astype(float)
    found = posterior(rng, counts)
    straight, turned = found.estimate(("a", "c")), found.estimate(("c", "a"))
    np.testing.assert_array_equal(straight.counts.values.T, turned.counts.values)
    np.testing.assert_array_equal(found.linear(("c", "a"))[0], found.linear(("a", "c"))[0].T)
    np.testing.assert_array_equal(found.draws([("c", "a")], 2, np.random.default_rng(0))[0].shape, (2, 5, 4))


def test_cells_that_noise_alone_could_explain_are_marked():
    counts = np.zeros((4, 3, 5))
    counts[:3] = 40.0
    table = posterior(np.random.default_rng(3), counts, sigma=9.0).estimate(("a", "c"))
    assert table.swallowed[3].mean() > 0.5
    assert not table.swallowed[:3].any()


def test_a_row_that_noise_swallows_says_so_and_claims_nothing():
    counts = np.zeros((4, 3, 5))
    counts[:3] = 40.0
    rng = np.random.default_rng(3)
    table = posterior(rng, counts, sigma=9.0).estimate(("b",), given=("a",))
    assert table.swallowed[3].all()
    assert not table.swallowed[:3].any()
    assert (table.records.lower[3] == 0).all()
    assert (table.records.upper[3] == 1).all()


def test_an_estimate_that_nothing_explains_gets_no_certain_answer():
    """A cell far below zero has no count within its interval: then the interval says what noise alone allows."""
    values = np.array([-60.0, 30.0, 40.0, 50.0])
    found = Posterior([Measurement(axes=("a",), values=values, noise=GaussianNoise(sigma=10.0))], SIZES)
    assert found.estimate(("a",)).counts.upper[0] >= 16
    assert found.ask("count(a=0)").upper >= 16
    assert found.ask("count(a=0) - 0").upper > 19
    assert found.ask("count(a=0)").lower == 0


def test_public_zeros_stay_zero_in_every_table():
    public = Measurement(axes=("a",), values=np.array([0.0, 0.0, 24.0, 24.0]), noise=GaussianNoise(sigma=1.0))
    values = np.random.default_rng(0).normal(4, 5, (4, 3))
    drawn = Measurement(axes=("a", "b"), values=values, noise=GaussianNoise(sigma=5.0))
    found = Posterior([drawn], SIZES, records=48, margins=[public])
    assert (found.estimate(("a",)).counts.values[:2] < 1e-9).all()
    assert (found.estimate(("a", "b")).counts.values[:2] < 1e-9).all()
    given = found.estimate(("b",), given=("a",))
    np.testing.assert_allclose(given.records.values.sum(axis=1), 1.0)
    assert (given.records.upper[:2] == 1).all()


def test_covariances_and_sums_of_cells_follow_the_law():
    rng = np.random.default_rng(4)
    counts = rng.multinomial(1500, shares(rng).ravel()).reshape(4, 3, 5).astype(float)
    found = posterior(rng, counts)
    first, second = np.zeros((3, 4)), np.zeros((5, 3))
    first[2, 1] = second[4, 2] = 1
    mean, covariance = found.functional({("b", "a"): first}, {("c", "b"): second})
    assert mean[0] == pytest.approx(found.linear(("a", "b"))[0][1, 2])
    assert covariance[1, 1] == pytest.approx(found.linear(("b", "c"))[1][2, 4])


def test_a_second_release_sharpens_the_first():
    rng = np.random.default_rng(5)
    counts = rng.multinomial(1500, shares(rng).ravel()).reshape(4, 3, 5).astype(float)
    one = posterior(rng, counts, tables=PAIRS[:1])
    two = posterior(rng, counts, tables=[*PAIRS[:1], *PAIRS])
    assert (two.linear(("a", "b"))[1] < 0.6 * one.linear(("a", "b"))[1]).all()


def test_what_is_not_determined_is_refused_with_what_would_tell():
    rng = np.random.default_rng(6)
    found = posterior(rng, np.full((4, 3, 5), 9.0), tables=PAIRS[:2])
    assert found.estimable(("c", "a"))
    assert not found.estimable(("b", "c"))
    assert found.missing(("b", "c")) == [("b", "c")]
    with pytest.raises(NotEstimable, match="contains b × c"):
        found.estimate(("c",), given=("b",))
    with pytest.raises(SchemaError, match="no attribute 'x'"):
        found.estimate(("x",))
    with pytest.raises(InvalidArgument, match="named twice"):
        found.estimate(("a",), given=("a",))
    with pytest.raises(InvalidArgument, match="shape"):
        Posterior([Measurement(axes=("a",), values=np.ones(3), noise=GaussianNoise(sigma=1))], SIZES)
    with pytest.raises(InvalidArgument, match="prior share > 0"):
        Posterior([], SIZES, records=3, priors={("a",): np.zeros(4)})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "gamma"])
def test_intervals_cover_as_often_as_they_say(kind):
    """95 % of the cells of random tables, for all three kinds of noise and both targets, and of conditional shares."""
    hits: dict[str, list[float]] = {"counts": [], "population": [], "share": [], "population share": []}
    for repeat in range(250):
        rng = np.random.default_rng([9, repeat])
        truth = shares(rng)
        counts = rng.multinomial(4000, truth.ravel()).reshape(4, 3, 5).astype(float)
        measured = []
        for axes in PAIRS:
            clean = margin(counts, axes)
            if kind == "gaussian":
                values, noise = clean + np.round(rng.normal(0, 14, clean.shape)), GaussianNoise(sigma=14.0)
            elif kind == "laplace":
                values = (
                    clean + rng.geometric(1 - np.exp(-0.1), clean.shape) - rng.geometric(1 - np.exp(-0.1), clean.shape)
                )
                noise = LaplaceNoise(scale=10.0)
            else:
                values, noise = rng.gamma(0.5 * clean + 30.0), GammaNoise(weight=0.5, concentration=30.0)
            measured.append(Measurement(axes=axes, values=values, noise=noise))
        found = Posterior(measured, SIZES, records=4000)
        for axes in PAIRS:
            table, rows = found.estimate(axes), found.estimate(axes[1:], given=axes[:1])
            clean, level = margin(counts, axes), margin(truth, axes)
            inner = clean / np.maximum(clean.sum(axis=1, keepdims=True), 1)
            outer = level / np.maximum(level.sum(axis=1, keepdims=True), 1e-300)
            for name, part, true in (
                ("counts", table.counts, clean),
                ("population", table.population, level),
                ("share", rows.records, inner),
                ("population share", rows.population, outer),
            ):
                hits[name].append(float(((part.lower <= true + 1e-12) & (true <= part.upper + 1e-12)).mean()))
    for name, values in hits.items():
        assert 0.935 < np.mean(values) < 0.985, (name, np.mean(values))


def test_shares_of_no_records_are_even_and_their_intervals_hold_them():
    values = np.array([[3.0, -4.0], [0.0, 1.0], [2.0, -1.0]])
    measured = Measurement(axes=("x", "y"), values=values, noise=GaussianNoise(sigma=3.0))
    found = Posterior([measured], {"x": 3, "y": 2}, records=0)
    for table, share in ((found.estimate(("x", "y")), 1 / 6), (found.estimate(("y",), ("x",)), 1 / 2)):
        for part in (table.records, table.population):
            np.testing.assert_allclose(part.values, share)
            assert (part.lower <= part.values).all()
            assert (part.values <= part.upper).all()


@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.8, 1.0, 1.7, 3.0, 6.0])
@pytest.mark.parametrize("tables", [1, 3])
def test_whole_ends_lose_no_coverage_however_small_the_noise(sigma, tables):
    """Whole noise, measured once or averaged over releases: rounding to the nearest whole numbers covers."""
    truth = np.random.default_rng(0).integers(30, 300, 3000).astype(float)
    k = np.arange(-60, 61)
    law = np.exp(-0.5 * (k / sigma) ** 2)
    rng = np.random.default_rng([1, tables, int(100 * sigma)])
    measured = [
        Measurement(
            axes=("cell",),
            values=truth + rng.choice(k, truth.size, p=law / law.sum()),
            noise=GaussianNoise(sigma=sigma),
        )
        for _ in range(tables)
    ]
    found = Posterior(measured, {"cell": truth.size}, records=int(truth.sum())).estimate(("cell",)).counts
    np.testing.assert_allclose(found.lower, np.rint(found.lower), atol=1e-5)
    covered = np.mean((found.lower <= truth) & (truth <= found.upper))
    assert covered > 0.95 - 3 * np.sqrt(0.95 * 0.05 / truth.size)
    assert ((found.lower <= found.values) & (found.values <= found.upper)).all()


def test_doubt_about_large_counts_is_the_variance_of_the_noise_over_their_square():
    rng = np.random.default_rng(8)
    counts = rng.integers(20_000, 60_000, (4, 3, 5))
    found = posterior(rng, counts, sigma=40.0, tables=[("b", "a")])
    expected = 40.0**2 / margin(counts, ("a", "b")) ** 2
    assert found.doubt(("a", "b")) / expected == pytest.approx(np.ones((4, 3)), rel=0.4)
    assert found.doubt(("b", "a")) == pytest.approx(found.doubt(("a", "b")).T)
    with pytest.raises(NotEstimable):
        found.doubt(("a", "c"))


@pytest.mark.parametrize("known", [True, False])
def test_the_table_of_one_attribute_is_the_same_before_and_after_larger_ones_are_settled(known):
    counts = np.round(3000 * shares(np.random.default_rng(4)))
    tables = [*PAIRS, ("a", "b", "c")]
    quick, slow = (posterior(np.random.default_rng(5), counts, known=known, tables=tables) for _ in range(2))
    assert set(slow.settled.counts) > {("a", "b", "c")}
    for name in SIZES:
        one, other = quick.estimate((name,)), slow.estimate((name,))
        for part in ("counts", "records", "population"):
            for end in ("values", "lower", "upper"):
                assert np.array_equal(getattr(getattr(one, part), end), getattr(getattr(other, part), end))
    assert quick.total == slow.total
    assert quick._settled is None


def test_a_table_of_one_attribute_waits_for_larger_ones_with_impossible_cells():
    mask = np.array([[False, True], [False, False]])
    measured = [
        Measurement(axes=("a", "b"), values=np.array([[10.0, 3.0], [1.0, 8.0]]), noise=GaussianNoise(sigma=40.0)),
        Measurement(axes=("a",), values=np.array([90.0, 2.0]), noise=GaussianNoise(sigma=40.0)),
    ]
    quick, slow = (Posterior(measured, {"a": 2, "b": 2}, zeros=[(("a", "b"), mask)]) for _ in range(2))
    assert slow.settled.counts[("a",)] == pytest.approx(slow.estimate(("a",)).counts.values)
    assert np.array_equal(quick.estimate(("a",)).counts.values, slow.estimate(("a",)).counts.values)
