"""Reading a released posterior: against enumeration of the law, and how often its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc, gammaln

from dpbayes import Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import calibration, candidates
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.distance import Laws, Rows
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.inference import GaussianNoise, LaplaceNoise, Measurement, everywhere, importance
from dpbayes.inference.product import Normaliser
from dpbayes.inference.released import Reading, reading

UNIT = Unit(adjacency="replace-one")


def laplace(prior: tuple[float, ...], total: int, epsilon: float, *, cut: bool = True) -> PosteriorLaplace:
    return PosteriorLaplace.at(prior=prior, total=total, epsilon=epsilon, unit=UNIT, truncated=cut)


def log_prior(tables: np.ndarray, prior: tuple[float, ...]) -> np.ndarray:
    alpha = np.asarray(prior)
    return (gammaln(alpha + tables) - gammaln(alpha) - gammaln(tables + 1)).sum(axis=1)


def enumerated(log_likelihood: np.ndarray, tables: np.ndarray, prior: tuple[float, ...]) -> np.ndarray:
    """Probabilities of all tables."""
    return candidates.shares(log_likelihood + log_prior(tables, prior))


def likelihood(mechanism: object, tables: np.ndarray, released: np.ndarray) -> np.ndarray:
    """ln P(released | each table), by the mechanism's own law."""
    found = np.empty(len(tables))
    for row, table in enumerate(tables):
        listed, chances = mechanism.law(table)  # type: ignore[attr-defined]
        found[row] = np.log(chances[(listed == released).all(axis=1)][0] + 1e-300)
    return found


def assert_agrees(read: Reading, tables: np.ndarray, chances: np.ndarray, error: float = 4.0) -> None:
    """Means and standard deviations of the counts, within so many standard errors of the draws."""
    mean = chances @ tables
    sd = np.sqrt(chances @ np.square(tables - mean))
    own = read.expected_counts
    spread = np.sqrt(read.weights @ np.square(read.counts - own))
    allowed = error * np.sqrt(np.square(read.weights).sum())
    exact = read.counts.shape[1] == 2
    np.testing.assert_array_less(np.abs(own - mean), 1e-6 + (0 if exact else allowed) * np.maximum(sd, 1e-3))
    np.testing.assert_allclose(spread, sd, rtol=1e-6 if exact else allowed, atol=1e-6)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 3.0), (1.0, 1.0, 1.0), (0.5, 2.0, 5.0), (1.0, 0.3, 1.0, 2.0)])
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_the_law_of_the_counts_is_that_of_enumeration(prior: tuple[float, ...], epsilon: float) -> None:
    total = {2: 60, 3: 20, 4: 10}[len(prior)]
    made, rng = laplace(prior, total, epsilon), np.random.default_rng(len(prior))
    tables = candidates.all_tables(total, len(prior))
    for truth in tables[rng.integers(len(tables), size=2)]:
        released = made.draw_many(truth, 1, rng)[0]
        chances = enumerated(likelihood(made, tables, released), tables, prior)
        assert_agrees(reading(made, tuple(np.asarray(prior) + released)), tables, chances)


def by(name: str, prior: tuple[float, ...], total: int, epsilon: float) -> Hellinger | PosteriorExponential:
    common = {"prior": prior, "total": total, "epsilon": epsilon, "unit": UNIT}
    if name == "global":
        return PosteriorExponential(prior=prior, total=total, sharpness=epsilon, score="hellinger", unit=UNIT)
    if name == "certified":
        return calibration.certified(**common)  # type: ignore[arg-type]
    return getattr(calibration, name)(**common, delta=1e-6)  # type: ignore[no-any-return]


def hellinger_law(made: Hellinger | PosteriorExponential, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    laws = Laws.of(made.prior, made.total, made.sharpness, getattr(made, "smoothing", 0.0))
    tables = candidates.all_tables(made.total, len(made.prior))
    at = int(np.flatnonzero((tables == released).all(axis=1))[0])
    told = np.array([laws.probabilities(tuple(map(int, table)))[0][at] for table in tables])
    return tables, enumerated(told, tables, made.prior)


@pytest.mark.parametrize("calibrated", ["global", "proved", "published", "certified"])
@pytest.mark.parametrize(("prior", "total"), [((1.0, 1.0), 90), ((0.5, 3.0, 1.0), 9), ((0.5,) * 4, 6)])
def test_the_hellinger_mechanism_is_read_as_enumeration_reads_it(
    calibrated: str, prior: tuple[float, ...], total: int
) -> None:
    rng = np.random.default_rng(total)
    for epsilon in (0.8, 6.0):
        made = by(calibrated, prior, total, epsilon)
        released = made.draw_many(rng.multinomial(total, rng.dirichlet(prior)), 1, rng)[0]
        tables, chances = hellinger_law(made, released)
        read = reading(made, tuple(np.asarray(prior) + released))
        mean = chances @ tables
        sd = np.sqrt(chances @ np.square(tables - mean))
        spread = np.sqrt(read.weights @ np.square(read.counts - read.expected_counts))
        assert np.abs(read.expected_counts - mean).max() < 0.08 * sd.max()
        np.testing.assert_allclose(spread, sd, rtol=0.003 if len(prior) == 2 else 0.12)
        assert 1.0 / np.square(read.weights).sum() > (1 if len(prior) == 2 else 1500)


def test_a_hellinger_release_and_a_table_of_the_same_cells_sharpen_each_other() -> None:
    prior, total, rng = (1.0,) * 3, 40, np.random.default_rng(8)
    made, truth = by("proved", prior, total, 6.0), np.array([25, 10, 5])
    released = made.draw_many(truth, 1, rng)[0]
    tables, chances = hellinger_law(made, released)
    noise, other = LaplaceNoise(scale=3.0), np.array([23.0, 14.0, 4.0])
    chances = candidates.shares(
        np.log(chances) + sum(noise.log_law(value, tables[:, cell]) for cell, value in enumerate(other))
    )
    both = reading(
        made, tuple(np.asarray(prior) + released), factor=Measurement(axes=("a",), values=other, noise=noise)
    )
    mean = chances @ tables
    sd = np.sqrt(chances @ np.square(tables - mean))
    assert np.abs(both.expected_counts - mean).max() < 0.08 * sd.max()


@pytest.mark.parametrize("exponent", [0.3, 3.0, 30.0])
@pytest.mark.parametrize(("prior", "total"), [((0.5, 0.5), 200), ((1.0, 5.0, 0.5), 30), ((1.0,) * 4, 14)])
def test_the_normaliser_is_the_sum_over_all_candidates(prior: tuple[float, ...], total: int, exponent: float) -> None:
    rows, tables = Rows(prior, total), candidates.all_tables(total, len(prior))
    chosen = tables[np.random.default_rng(0).integers(len(tables), size=12)]
    exact = [np.log(np.exp(-exponent * rows.distances(tuple(map(int, table)))).sum()) for table in chosen]
    found = Normaliser(prior, total, exponent).log(chosen, np.full(12, exponent))
    np.testing.assert_allclose(found, exact, atol=5e-5)


@pytest.mark.parametrize("exponent", [0.3, 3.0, 30.0])
def test_the_exponential_of_the_distance_is_a_mixture_of_powers(exponent: float) -> None:
    """At D = 0 and at every D that two tables can have; the sums of powers over all candidates are those listed."""
    prior, total = (1.0, 2.0, 0.5), 25
    made, tables = Normaliser(prior, total, exponent), candidates.all_tables(total, 3)
    amounts = np.exp(made.mixture(exponent))
    depth = np.append(0.0, np.geomspace(1 / (4.4 * 28.5), 30, 500))
    powers = np.exp(-np.multiply.outer(depth, np.append(0, made.rates)))
    found = powers @ amounts[:-1] + amounts[-1] * (depth == 0)
    np.testing.assert_allclose(found, np.exp(-exponent * np.sqrt(-np.expm1(-depth))), rtol=2e-3)

    rows, used = Rows(prior, total), np.arange(0, made.rates.size, 4)
    for table in tables[[0, 40, 200]]:
        divergence = -np.log1p(-np.square(rows.distances(tuple(map(int, table)))))
        exact = [np.log(np.exp(-rate * divergence).sum()) for rate in made.rates[used]]
        np.testing.assert_allclose(made.log_powers(table[None], used)[0], exact, atol=1e-4)


@pytest.mark.parametrize(("smoothing", "sharpness"), [(0.0, 2.0), (0.1, 4.0)])
def test_weighted_draws_have_the_law_that_listing_gives(smoothing: float, sharpness: float) -> None:
    prior, total, rng = (1.0, 2.0), 60, np.random.default_rng(2)
    made = importance.Observed(
        prior=prior, sharpness=sharpness, smoothing=smoothing, released=np.array([20, 40], dtype=np.int64)
    )
    logs = reading.__globals__["_prior_logs"](prior, total)
    tables, chances = importance.list_tables(made, logs)
    before = log_prior(tables, prior)
    mass = float(np.logaddexp.reduce(before))
    background = tables[rng.choice(len(tables), 4800, p=np.exp(before - mass))]
    tilt = total * float(np.log(total / (total + 3.0)))
    counts, weights = importance.draw_tables(made, logs, (background, mass + tilt), rng)
    law = np.bincount(counts[:, 0], weights, total + 1)
    exact = np.bincount(tables[:, 0], chances, total + 1)
    assert np.abs(np.cumsum(law) - np.cumsum(exact)).max() < 0.03


def test_the_noise_of_a_cell_is_known_given_the_sum_of_all_noise() -> None:
    law = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    values, total = np.array([7, 1, 3], dtype=np.int64), 9
    z = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    chance = law[z + 2].prod(axis=1) * (z.sum(axis=1) == values.sum() - total)
    exact = np.bincount(z[:, 0] + 2, chance, 5) / chance.sum()
    for value, cell in zip(values, everywhere.of_sum(values, law, total), strict=True):
        assert (cell.value, cell.first) == (value, -2)
        np.testing.assert_allclose(cell.law, exact, atol=1e-12)


def test_what_has_no_known_law_is_not_read() -> None:
    made = PosteriorExponential(prior=(1.0, 1.0), total=50, sharpness=1.0, score="kl", unit=UNIT)
    with pytest.raises(InvalidArgument, match="no estimates"):
        reading(made, (20.0, 32.0))
    with pytest.raises(InvalidArgument, match="one parameter for each cell"):
        reading(made, (20.0, 30.0, 2.0))


@pytest.mark.parametrize("noise", [LaplaceNoise(scale=3.0), GaussianNoise(sigma=2.0)])
def test_noise_on_every_count_and_a_second_measurement_multiply(noise: LaplaceNoise | GaussianNoise) -> None:
    prior, total = (1.0, 0.5, 2.0), 25
    tables = candidates.all_tables(total, 3)
    noisy, other = np.array([11.0, -2.0, 19.0]), np.array([8.0, 1.0, 12.0])
    read = reading(noise, tuple(noisy + np.asarray(prior)), prior=prior, total=total)
    told = sum(noise.log_law(value, tables[:, cell]) for cell, value in enumerate(noisy))
    assert_agrees(read, tables, enumerated(told, tables, prior))
    second = Measurement(axes=("a",), values=other, noise=GaussianNoise(sigma=3.0))
    both = reading(noise, tuple(noisy + np.asarray(prior)), prior=prior, total=total, factor=second)
    told = told - np.square(tables - other).sum(axis=1) / 18
    assert_agrees(both, tables, enumerated(told, tables, prior))


def test_shares_are_a_mixture_of_dirichlets() -> None:
    made = laplace((1.0, 2.0, 1.0), 50, 0.5)
    read = reading(made, (21.0, 30.0, 3.0))
    draws = read.draws(40_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), read.mean, atol=4e-3)
    lower, upper = read.credible(0.9)
    for cell in range(3):
        np.testing.assert_allclose(np.quantile(draws[:, cell], [0.05, 0.95]), [lower[cell], upper[cell]], atol=6e-3)
        np.testing.assert_allclose(read.cdf(cell, [lower[cell], upper[cell]]), [0.05, 0.95], atol=1e-4)
        grid = np.linspace(0, 1, 4001)
        now, before = read.density(cell, grid)
        assert np.trapezoid(now, grid) == pytest.approx(1, abs=1e-3)
        assert np.trapezoid(before, grid) == pytest.approx(1, abs=1e-3)
    low, high = read.credible(0.9, of="counts")
    inside = (read.counts >= low) & (read.counts <= high)
    assert ((read.weights @ inside) >= 0.9 - 1e-9).all()


EIGHT = [(2, 98, 0.2), (2, 1000, 0.1), (3, 100, 0.8), (4, 10**4, 0.8)]
EIGHT += [(8, 10**4, 0.8), (16, 10**4, 0.8), (16, 10**4, 0.1), (16, 10**6, 0.8)]
"""Cells, records and ε."""

QUICK = [(*EIGHT[0], 150), (*EIGHT[1], 50), (*EIGHT[2], 100), (*EIGHT[5], 9), (*EIGHT[6], 6)]
TRUTHS = ("drawn from the prior", "even", "skewed", "at the edge")


def coverage(mechanism: str, cells: int, total: int, epsilon: float, truth: str, releases: int) -> tuple[float, float]:
    """How often intervals of 95 % held shares and counts, and the standard error of that."""
    rng, prior, rates = np.random.default_rng(cells), (1.0,) * cells, []
    squares = np.square(np.arange(1.0, cells + 1))
    fixed = {"even": np.full(cells, 1 / cells), "skewed": squares / squares.sum(), "at the edge": np.eye(cells)[0]}
    every = mechanism == "auto" and cells > 2
    made = laplace(prior, total, epsilon) if mechanism in ("auto", "cut") else by(mechanism, prior, total, epsilon)
    for _ in range(releases):
        shares = rng.dirichlet(prior) if truth not in fixed else fixed[truth]
        counts = rng.multinomial(total, shares)
        if every:
            steps = rng.geometric(1 - np.exp(-epsilon / 2), (2, cells))
            drawn = counts + steps[0] - steps[1]
        else:
            drawn = made.draw_many(counts, 1, rng)[0]
        law = LaplaceNoise(scale=2 / epsilon) if every else made
        read = reading.__globals__["_read"](law, tuple(1.0 + drawn), prior, total)
        hits = []
        for of, true in (("shares", shares), ("counts", counts)):
            lower, upper = read.interval(of=of)
            hits.append(((lower <= true + 1e-12) & (true - 1e-12 <= upper)).mean())
        rates.append(np.mean(hits))
    least = np.sqrt(0.05 * 0.95 / (releases * (cells - 1)))
    return float(np.mean(rates)), max(float(np.std(rates, ddof=1)) / np.sqrt(releases), least)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize(("cells", "total", "epsilon", "releases"), QUICK)
def test_intervals_hold_at_every_truth(cells: int, total: int, epsilon: float, releases: int, truth: str) -> None:
    rate, error = coverage("auto", cells, total, epsilon, truth, releases)
    assert rate + 3 * error > 0.93
    assert rate - 3 * error < 0.98


@pytest.mark.parametrize(("total", "released"), [(300, 84), (2000, 700)])
def test_the_ends_of_shares_are_those_of_all_counts_even_where_a_far_mode_has_a_fortieth(
    total: int, released: int
) -> None:
    """Where little is known between two modes, an end lies among counts that few draws reach."""
    mechanism = calibration.certified(prior=(1.0, 1.0), total=total, epsilon=240 / total, delta=0.0, unit=UNIT)
    read = reading(mechanism, (released + 1.0, total - released + 1.0))
    lower, upper = read.interval()
    for cell in (0, 1):
        a = read.prior[cell] + read.counts[:, cell]
        below = [float(betainc(a, read.size - a, end) @ read.weights) for end in (lower[cell], upper[cell])]
        np.testing.assert_allclose(below, [0.025, 0.975], atol=1e-3)
    np.testing.assert_allclose(lower, 1.0 - upper[::-1], atol=0.005)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("cells", "total", "epsilon"), EIGHT)
def test_intervals_hold_at_every_truth_or_on_average_over_the_prior(cells: int, total: int, epsilon: float) -> None:
    """``auto`` at every truth; the others, whose laws tie the cells together, over shares drawn from the prior."""
    strata = [("auto", truth) for truth in TRUTHS] + [(each, TRUTHS[0]) for each in ("cut", "proved", "global")]
    for mechanism, truth in strata:
        rate, error = coverage(mechanism, cells, total, epsilon, truth, 200 if cells < 8 else 40)
        print(f"{cells} {total} {epsilon} {mechanism} {truth}: {100 * rate:.1f} ± {100 * error:.1f} %")
        assert rate + 3 * error > 0.93, (mechanism, truth)
        assert rate - 3 * error < 0.975, (mechanism, truth)


@pytest.mark.parametrize("calibrated", ["proved", "global"])
def test_no_interval_of_the_hellinger_mechanism_is_promised_where_the_prior_expects_nobody(calibrated: str) -> None:
    """The sentence that goes with them is no modesty: with all records in one cell they miss it nearly always."""
    assert coverage(calibrated, 2, 98, 0.2, "at the edge", 20)[0] < 0.1
    assert coverage(calibrated, 2, 98, 0.2, "even", 20)[0] > 0.9


def test_two_readers_read_the_same() -> None:
    made = laplace((1.0, 1.0, 1.0), 100, 0.8)
    one = reading(made, (31.0, 42.0, 30.0))
    assert reading(made, (31.0, 42.0, 30.0)) is one
    reading.__globals__["_kept"].cache_clear()
    again = reading(made, (31.0, 42.0, 30.0))
    assert again is not one
    np.testing.assert_array_equal(again.counts, one.counts)


@pytest.mark.parametrize(("cells", "total"), [(2, 1), (2, 10**9), (3, 10**6), (16, 1), (16, 10**9), (1200, 10**6)])
def test_any_size_is_read_in_a_moment(cells: int, total: int) -> None:
    prior = (1.0,) * cells
    truth = np.full(cells, total // cells)
    truth[0] += total - truth.sum()
    for noise in (LaplaceNoise(scale=2.5), GaussianNoise(sigma=4.0)):
        noisy = truth + np.rint(np.random.default_rng(3).normal(0, 3, cells))
        read = reading(noise, tuple(noisy + 1), prior=prior, total=total)
        if cells < 100:
            lower, upper = read.interval()
            assert ((lower <= read.mean) & (read.mean <= upper)).all()
        assert np.abs(read.counts - truth)[read.weights > 1e-9].max() < 100
