"""Intervals cover at every true value, whatever the prior; ratios agree with a search over all shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpbayes.inference import intervals
from dpbayes.inference.cut import FACTORS, STEP, Cells
from dpbayes.inference.intervals import RELEVANT, SAME_DATA, TAILS, WIDER, Spread, assist, ratio, symmetric


def law(*peaks):
    """A law of factors that believes in a few values only, and in nothing else."""
    weights = np.full(FACTORS.size, 1e-9)
    for peak in peaks:
        weights[np.abs(FACTORS - peak).argmin()] = 1.0
    return weights / weights.sum()


PRIORS = {"empty": law(0.0), "as the shape": law(1.0), "two kinds": law(0.0, 30.0), "anything": law(*FACTORS)}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("truth", [0.0, 3.0, 20.0, 55.0, 400.0])
@pytest.mark.parametrize("sampled", [False, True])
def test_assisted_intervals_cover_at_every_true_count_even_if_the_prior_is_absurd(prior, truth, sampled):
    rng = np.random.default_rng(1)
    spread = Spread(constant=np.full(4000, 100.0), linear=float(sampled), square=1e-4 * sampled)
    y = rng.normal(truth, np.sqrt(spread.at(np.full(4000, truth))))
    cells = Cells.of(np.full(4000, 12.0), y, np.full(4000, 100.0))
    lower, upper = assist(cells, PRIORS[prior], spread, 0.95)
    covered = np.mean((np.maximum(lower, 0) <= truth) & (truth <= np.maximum(upper, 0)))
    assert covered > 0.955 - 3.5 * np.sqrt(0.955 * 0.045 / 4000)


def test_assisted_intervals_are_shorter_where_the_prior_is_right_and_bounded_below():
    rng = np.random.default_rng(2)
    y = rng.normal(0.0, 10.0, 3000)
    spread = Spread(constant=np.full(3000, 100.0))
    cells = Cells.of(np.full(3000, 12.0), y, np.full(3000, 100.0))
    widths = {}
    for name, prior in PRIORS.items():
        lower, upper = assist(cells, prior, spread, 0.95)
        widths[name] = np.mean(np.maximum(upper, 0) - np.maximum(lower, 0))
    lower, upper = symmetric(y, spread, 0.95)
    plain = np.mean(np.maximum(upper, 0) - np.maximum(lower, 0))
    assert widths["empty"] < 0.93 * plain
    assert widths["empty"] > 0.8 * plain
    assert widths["anything"] < 1.1 * plain


def searched(y, shape, variance, law, spread, upper):
    """An end by the definition: all regions in turn, from the innermost on, with the predictive density written out."""
    groups = [(law[0], 0.0)] + [
        (law[at : at + WIDER].sum(), (law * FACTORS)[at : at + WIDER].sum() / law[at : at + WIDER].sum())
        for at in range(1, law.size, WIDER)
    ]
    groups = [(weight, factor) for weight, factor in groups if weight > RELEVANT * max(w for w, _ in groups)]

    weights, levels = np.array([weight for weight, _ in groups]), shape * np.array([factor for _, factor in groups])
    scales = np.sqrt(levels + (WIDER * STEP * levels) ** 2 + variance)

    def log_predictive(at):
        return np.logaddexp.reduce(np.log(weights) + norm.logpdf(at, levels, scales))

    alpha = 0.05 * SAME_DATA
    end, before = None, None
    for tail in TAILS if upper else TAILS[::-1]:
        low, high = norm.ppf(alpha * (1 - tail)), norm.isf(alpha * tail)
        near, far = (low, high) if upper else (high, low)
        theta = spread.end(np.array([y]), near)
        other = float((theta + np.sqrt(spread.at(theta)) * far)[0])
        theta, margin = float(theta[0]), log_predictive(other) + far**2 / 2 - log_predictive(y) - near**2 / 2
        if end is None or margin > 0:
            end = theta
        elif before[1] > 0:
            end = before[0] + before[1] / (before[1] - margin) * (theta - before[0])
        before = theta, margin
    return end


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("sampled", [False, True])
def test_ends_are_those_of_a_search_through_all_regions(prior, sampled):
    rng = np.random.default_rng(4)
    shape, y = np.exp(rng.normal(1.5, 2, 20)), rng.normal(20, 40, 20)
    spread = Spread(constant=np.full(20, 50.0), linear=float(sampled), square=1e-4 * sampled)
    found = assist(Cells.of(shape, y, np.full(20, 50.0)), PRIORS[prior], spread, 0.95)
    for ends, upper in zip(found, (False, True), strict=True):
        one = Spread(constant=np.array([50.0]), linear=spread.linear, square=spread.square)
        wanted = [searched(y[at], shape[at], 50.0, PRIORS[prior], one, upper) for at in range(20)]
        np.testing.assert_allclose(ends, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("prior", ["two kinds", "anything"])
def test_cells_that_share_intervals_get_what_holds_their_own_and_is_hardly_wider(prior, sampled, monkeypatch):
    rng = np.random.default_rng(5)
    shape = rng.gamma(0.5, 2.0, 120_000)
    y = rng.poisson(shape) + np.rint(rng.normal(0, 6, shape.size)) + 0.37
    spread = Spread(constant=np.full(y.size, 36.0), linear=float(sampled), square=1e-6 * sampled)
    cells = Cells.of(shape, y, np.full(y.size, 36.0))
    assert intervals._alike(cells, spread) is not None
    lower, upper = assist(cells, PRIORS[prior], spread, 0.95)
    monkeypatch.setattr(intervals, "MANY", y.size + 1)
    own_lower, own_upper = assist(cells, PRIORS[prior], spread, 0.95)
    for wider in ((own_lower - lower) / 6, (upper - own_upper) / 6):
        assert wider.min() > -1e-4
        assert wider.mean() < 1e-3
        assert wider.max() < 0.05


@pytest.mark.parametrize("fault", ["fractions", "variances", "few alike"])
def test_cells_that_are_not_alike_share_nothing(fault):
    rng = np.random.default_rng(6)
    y = rng.normal(0, 6, 500) if fault == "fractions" else np.rint(rng.normal(0, 6, 500))
    variance = np.full(500, 36.0) + (rng.random(500) if fault == "variances" else 0.0)
    shape = np.exp(rng.normal(0, 5, 500)) if fault == "few alike" else np.ones(500)
    assert intervals._alike(Cells.of(shape, y, variance), Spread(constant=variance)) is None


def test_plain_intervals_solve_for_the_truth():
    spread = Spread(constant=np.array([40.0, 9.0]), linear=1.3, square=0.01)
    y = np.array([12.0, -4.0])
    lower, upper = symmetric(y, spread, 0.9)
    z = norm.ppf(0.95)
    np.testing.assert_allclose(np.abs(y - upper), z * np.sqrt(spread.at(upper)), rtol=1e-9)
    np.testing.assert_allclose(np.abs(y - lower), z * np.sqrt(spread.at(lower)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sampled", [0.0, 80.0])
def test_ratios_hold_the_shares_that_a_search_keeps(sampled):
    rng = np.random.default_rng(3)
    grid = np.linspace(0, 1, 200_001)
    z = norm.ppf(0.975)
    for _ in range(20):
        whole, share = rng.uniform(40, 200), rng.uniform(0, 1)
        root = rng.normal(0, 6, (2, 2))
        (v, cov), (_, w) = root @ root.T
        part = whole * share
        kept = (part - grid * whole) ** 2 <= z**2 * (v - 2 * grid * cov + grid**2 * w + sampled * grid * (1 - grid))
        lower, upper = ratio(
            *(np.array([each]) for each in (part, whole, v, cov, w)), 0.95, sampled=np.array([sampled])
        )
        if whole**2 > z**2 * w:
            assert lower[0] == pytest.approx(grid[kept].min(), abs=1e-5)
            assert upper[0] == pytest.approx(grid[kept].max(), abs=1e-5)
        else:
            assert (lower[0], upper[0]) == (0.0, 1.0)
