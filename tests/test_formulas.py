"""Formulas that other tests reach only through what uses them, each by itself: against mpmath, sums and enumeration."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import dpbayes as dp
from dpbayes.hellinger.baselines import kl_sensitivity, total_variation_sensitivity
from dpbayes.hellinger.candidates import cell_divergences, log_number
from dpbayes.hellinger.sensitivity import range_excess, step_divergence
from dpbayes.inference.intervals import Spread
from dpbayes.jobs.edges import Quantiles
from dpbayes.jobs.model import CANDIDATES, choose_temperature
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.threshold import betrayal
from dpbayes.privacy.bounds import AtomicLoss
from dpbayes.privacy.convert import gaussian_delta
from dpbayes.release.products import complete
from dpbayes.tables.sources import open_table

ADD, REPLACE = dp.Unit(adjacency="add-remove"), dp.Unit(adjacency="replace-one")


# -- estimates ---------------------------------------------------------------------------------------------------------


def test_the_end_of_a_score_interval_solves_its_equation() -> None:
    y, spread = np.array([0.0, 3.0, 250.0]), Spread(constant=np.array([4.0, 9.0, 25.0]), linear=1.5, square=0.001)
    for z in (-1.96, 1.0, 2.5):
        theta = spread.end(y, z)
        assert theta + z * np.sqrt(spread.at(theta)) == pytest.approx(y, abs=1e-9)


def test_groups_say_how_much_of_a_row_is_prior() -> None:
    sex, job = (dp.Attribute(name=name, categories=("a", "b"), missing="other") for name in ("sex", "job"))
    schema = dp.Schema(id="people", unit=REPLACE, attributes=(sex, job))
    curator = dp.Curator({"sex": ["a"] * 400 + ["b"] * 20, "job": ["a", "b"] * 210}, schema, seed=1)
    release = curator.release(dp.Tables("job|sex", mechanism="dirichlet"), dp.ApproxDP(epsilon=1, delta=1e-6))
    mechanism = release.paid[0].mechanism
    groups = complete(release.drawn()).tables[0].groups
    assert [group.levels for group in groups] == [("a",), ("b",), ("other",)]
    for group in groups:
        prior = 3 * mechanism.concentration
        assert group.prior_share == pytest.approx(prior / (mechanism.weight * group.records + prior))


# -- bought edges and temperatures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [ADD, REPLACE, dp.Unit(adjacency="add-remove", max_rows=3)], ids=str)
def test_no_person_moves_the_score_of_an_edge_further_than_stated(unit: dp.Unit) -> None:
    quantiles = Quantiles(lower=0, upper=3, bins=3, candidates=4)
    rng, m = np.random.default_rng(0), unit.max_rows
    reached = dict.fromkeys((1, 2), 0)
    for _ in range(60):
        rows = rng.integers(5, size=6).tolist()
        for there, here in itertools.product(range(5), repeat=2):
            others = [*rows, *[there] * m]
            mine = [*rows, *[here] * m] if unit.replaces else rows
            for rank in (1, 2):
                pair = [
                    quantiles.scores(np.cumsum(np.bincount(each, minlength=5))[:-1], len(each), rank)
                    for each in (others, mine)
                ]
                moved = max(abs(one - other) for one, other in zip(*pair, strict=True))
                assert moved <= quantiles.moved(unit, rank)
                reached[rank] = max(reached[rank], moved)
    assert all(reached[rank] == quantiles.moved(unit, rank) for rank in (1, 2))


def test_sharp_edges_are_the_quantiles() -> None:
    schema = dp.Schema(id="people", unit=ADD, attributes=(dp.Attribute(name="age", edges=(0, 100), missing="other"),))
    table = open_table({"age": np.arange(100.0)})
    selection = Selection(sharpness=1000.0, unit=ADD)
    found = Quantiles(lower=0, upper=100, bins=4, candidates=101).edges(table, "age", schema, selection, None)
    assert found == (-math.inf, 25.0, 50.0, 75.0, math.inf)


def test_a_sharp_temperature_is_the_one_with_the_least_loss() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=4000)
    seen = np.where(rng.random(4000) < 0.8, truth, 1 - truth)
    names = ("no", "yes")
    columns = {name: np.take(names, truth if name == "y" else seen) for name in ("y", "a", "b", "c", "d")}
    attributes = tuple(dp.Attribute(name=name, categories=names, unknown="drop", missing="drop") for name in columns)
    schema = dp.Schema(id="copies", unit=ADD, attributes=attributes)
    model = dp.Curator(columns, schema, seed=1).release(dp.NaiveBayes(target="y"), dp.ZCDP(rho=100)).model()
    sharp = Selection(sharpness=1e4, unit=ADD)
    assert choose_temperature(model, open_table(columns), sharp) == 0.25  # four copies of one attribute
    assert 0.25 in CANDIDATES


# -- the Hellinger family ----------------------------------------------------------------------------------------------


def test_candidates_are_counted() -> None:
    for total, cells in ((4, 2), (5, 3), (3, 4)):
        listed = sum(1 for table in itertools.product(range(total + 1), repeat=cells) if sum(table) == total)
        assert math.exp(log_number(total, cells)) == pytest.approx(listed)


def test_a_cell_contributes_its_part_of_the_divergence() -> None:
    prior, count = 0.7, 4
    for k, found in zip(range(2, 12), cell_divergences(prior, count, 2, 11), strict=True):
        u, v = mp.mpf(prior) + count, mp.mpf(prior) + k
        true = (mp.loggamma(u) + mp.loggamma(v)) / 2 - mp.loggamma((u + v) / 2)
        assert found == pytest.approx(float(true), rel=1e-11)


def test_a_step_divides_by_half_a_record() -> None:
    for u in (0.01, 1.0, 30.0, 1e6):
        with mp.workdps(60):
            true = (mp.loggamma(u) + mp.loggamma(u + mp.mpf(1))) / 2 - mp.loggamma(u + mp.mpf(1) / 2)
        assert float(step_divergence(u)) == pytest.approx(float(true), rel=1e-9)


def _kl(one: tuple[float, ...], other: tuple[float, ...]) -> mp.mpf:
    total, others = mp.mpf(sum(one)), mp.mpf(sum(other))
    found = mp.loggamma(total) - mp.loggamma(others)
    for a, b in zip(one, other, strict=True):
        found += mp.loggamma(b) - mp.loggamma(a) + (mp.mpf(a) - b) * (mp.digamma(a) - mp.digamma(total))
    return found


def test_the_sensitivity_of_kl_bounds_every_step_and_is_nearly_reached() -> None:
    prior, total, largest = (1.0, 2.0), 6, mp.mpf(0)
    tables = [(prior[0] + k, prior[1] + total - k) for k in range(total + 1)]
    for candidate in tables:
        for one, other in itertools.pairwise(tables):
            largest = max(largest, abs(_kl(candidate, one) - _kl(candidate, other)))
    stated = kl_sensitivity(prior, total)
    assert 0.99 * stated <= float(largest) <= stated * (1 + 1e-12)


def test_the_sensitivity_of_total_variation_is_the_largest_step() -> None:
    prior, total = (1.0, 2.0), 5

    def step(p: int) -> mp.mpf:
        a, b = mp.mpf(prior[0]) + p, mp.mpf(prior[1]) + total - 1 - p
        x = a / (a + b)  # where the two densities cross
        return mp.betainc(a, b + 1, 0, x, regularized=True) - mp.betainc(a + 1, b, 0, x, regularized=True)

    assert total_variation_sensitivity(prior, total) == pytest.approx(float(max(map(step, range(total)))), rel=1e-10)


def test_the_score_moves_no_further_than_the_excess_allows() -> None:
    from dpbayes.hellinger.sensitivity import local_sensitivity

    prior, total, smoothing = (1.0, 1.0), 12, 0.5
    tables = [(k, total - k) for k in range(total + 1)]
    local = [local_sensitivity(prior, table) for table in tables]
    smooth = [max(math.exp(-smoothing * abs(i - j)) * local[j] for j in range(total + 1)) for i in range(total + 1)]

    def distance(one: tuple[int, int], other: tuple[int, int]) -> float:
        gap = mp.mpf(0)
        for a, c, k in zip(prior, one, other, strict=True):
            u, v = mp.mpf(a) + c, mp.mpf(a) + k
            gap += (mp.loggamma(u) + mp.loggamma(v)) / 2 - mp.loggamma((u + v) / 2)
        return float(mp.sqrt(1 - mp.exp(-gap)))

    widest = 0.0
    for at, (one, other) in enumerate(itertools.pairwise(tables)):
        moves = [distance(one, each) / smooth[at] - distance(other, each) / smooth[at + 1] for each in tables]
        widest = max(widest, max(moves) - min(moves))
    assert widest / 2 <= 1 + range_excess(prior, total, smoothing) / 2
    assert range_excess(prior, total, 0.0) == 0.0


# -- noise and prices --------------------------------------------------------------------------------------------------


def test_the_misfit_of_perfect_counts_is_nothing_and_of_constant_noise_too_much() -> None:
    law = noise._probabilities("laplace", 5)
    perfect = np.repeat(np.arange(-200, 201), np.rint(law * 10**6).astype(int))
    assert noise.misfit(perfect, "laplace", 5) < 0.1
    assert noise.misfit(np.zeros(4096, dtype=np.int64), "laplace", 5) > noise.LIMIT


def test_a_stated_release_is_pure_except_for_its_delta() -> None:
    stated = dp.mechanisms.Stated(epsilon_stated=0.5, delta_stated=1e-7, unit=ADD, what="a list")
    rest, lost = stated.but_for()
    assert lost == 1e-7
    for epsilon in (0.0, 0.2, 0.4):
        assert stated.delta(epsilon) == pytest.approx(lost + (1 - lost) * rest.delta(epsilon), rel=1e-9)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_category_of_one_person_is_kept_with_the_chance_that_a_sum_gives(rows: int) -> None:
    scale, threshold = 1.5, 6
    q = mp.exp(-mp.mpf(1) / scale)

    def kept(count: int) -> mp.mpf:
        return mp.nsum(lambda k: (1 - q) / (1 + q) * q ** abs(int(k)), [threshold - count + 1, mp.inf])

    expected = max(kept(rows), 1 - (1 - kept(1)) ** rows)
    assert betrayal(scale=scale, threshold=threshold, rows=rows) == pytest.approx(float(expected), rel=1e-9)


def test_every_pair_of_the_menu_keeps_its_part_of_delta() -> None:
    limit = dp.privacy.AdaptiveDP(epsilon=1.0, delta=1e-6)
    used = [math.exp(pure) * gaussian_delta(shift, limit.epsilon - pure) for pure, shift in limit.menu if shift > 0]
    assert len(used) == len(limit.menu) - 1
    assert 0.9e-6 < sum(used) <= 1e-6
    assert limit.menu[-1] == (limit.epsilon, 0.0)


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
def test_the_divergence_of_finitely_many_losses_is_the_sum(order: float) -> None:
    losses = [mp.mpf(1), mp.mpf(1) / 2, -mp.mpf(1) / 2, -mp.mpf(1)]
    weights = [mp.exp(loss / 2) for loss in losses]  # then P and Q mirror each other, as Σ P·e^−L = 1 asks for
    weights = [weight / sum(weights) for weight in weights]
    true = mp.log(sum(w * mp.exp((mp.mpf(order) - 1) * loss) for w, loss in zip(weights, losses, strict=True)))
    found = AtomicLoss(losses=np.array(losses, float), probabilities=np.array(weights, float)).renyi(order)
    assert 0 <= found - float(true / (mp.mpf(order) - 1)) <= 1e-9
