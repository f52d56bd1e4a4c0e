"""Estimates of conditional tables: rows that share a distribution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimate_draws import divergence, drawn, inside

from dpbayes.errors import InvalidArgument
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise
from dpbayes.estimate.rows import estimate_rows

NOISES = [GaussianNoise(sigma=4.0), LaplaceNoise(scale=3.0), GammaNoise(weight=2.0, concentration=64.0)]
ROWS = np.array([[900, 80, 20], [100, 700, 200], [5, 3, 2]])


def alike(rows, cells, records, rng, strength=30.0):
    """Rows that differ from a common distribution as Dirichlet(strength · it) does, and their counts."""
    shared = rng.dirichlet(np.full(cells, 0.5)) + 1e-6
    shares = np.stack([rng.dirichlet(strength * shared / shared.sum()) for _ in range(rows)])
    return shares, np.stack([rng.multinomial(records, row) for row in shares])


def test_rows_keep_their_own_shape_where_noise_lets_them():
    noise = GaussianNoise(sigma=0.5)
    found = estimate_rows(drawn(ROWS, noise, np.random.default_rng(3)), noise)
    assert found.population[:2] == pytest.approx(ROWS[:2] / ROWS[:2].sum(axis=1, keepdims=True), abs=0.03)


def test_rows_share_their_shape_where_noise_hides_them():
    noise = GaussianNoise(sigma=1e6)
    found = estimate_rows(drawn(ROWS, noise, np.random.default_rng(3)), noise, total=2010)
    assert np.ptp(found.population, axis=0).max() < 0.05


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("public", ["rows", "total", "nothing"])
def test_rows_are_distributions_and_their_intervals_are_honest(noise, public):
    rng = np.random.default_rng(1)
    shares, counts = alike(24, 6, 200, rng)
    known = {"rows": {"records": counts.sum(axis=1)}, "total": {"total": int(counts.sum())}, "nothing": {}}[public]
    found = estimate_rows(drawn(counts, noise, rng), noise, **known)
    assert found.population.sum(axis=1) == pytest.approx(np.ones(24))
    assert found.empirical.sum(axis=1) == pytest.approx(np.ones(24))
    assert found.records == pytest.approx(counts.sum(axis=1), abs=60 if public != "rows" else 0)
    assert (found.counts_interval.lower == np.rint(found.counts_interval.lower)).all()
    assert inside(shares, found.population_interval) > 0.9
    assert inside(counts, found.counts_interval) > 0.9


def test_sharing_beats_rows_taken_one_by_one():
    from dpbayes.estimate.table import estimate

    rng = np.random.default_rng(2)
    shares, counts = alike(30, 8, 100, rng)
    values, noise = drawn(counts, NOISES[0], rng), NOISES[0]
    together = estimate_rows(values, noise, records=counts.sum(axis=1), level=None).population
    alone = np.stack([estimate(row, noise, records=100, level=None).population for row in values])
    assert divergence(shares, together) < 0.8 * divergence(shares, alone)


def test_a_public_guess_at_what_rows_share_helps_and_a_wrong_one_is_outvoted():
    rng = np.random.default_rng(4)
    shape = np.array([0.6, 0.25, 0.1, 0.04, 0.01])
    noise, counts = GaussianNoise(sigma=20.0), rng.multinomial(100, shape, size=6)
    values = drawn(counts, noise, rng)
    right, none, wrong = (
        divergence(np.tile(shape, (6, 1)), estimate_rows(values, noise, total=600, shape=guess, level=None).population)
        for guess in (shape, None, shape[::-1])
    )
    assert right < 0.5 * none
    assert wrong < 1.1 * none


def test_long_rows_are_answered_by_representatives():
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.full(6000, 0.5))
    counts = rng.multinomial(20_000, shares, size=2)
    found = estimate_rows(drawn(counts, NOISES[0], rng), NOISES[0], records=[20_000, 20_000])
    assert found.population.sum(axis=1) == pytest.approx(np.ones(2))
    assert inside(counts, found.counts_interval) > 0.93


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([1.0, 2.0], {}),
        ([[1.0, 2.0]], {"records": [1, 2]}),
        ([[1.0, 2.0]], {"records": [-1]}),
        ([[1.0, 2.0]], {"records": [1.5]}),
        ([[1.0, 2.0]], {"records": ["many"]}),
        ([[1.0, 2.0]], {"shape": [1.0]}),
        ([[1.0, 2.0]], {"total": -1}),
    ],
)
def test_what_cannot_be_estimated_is_refused(values, options):
    with pytest.raises(InvalidArgument, match="estimate_rows: expected"):
        estimate_rows(values, NOISES[0], **options)
