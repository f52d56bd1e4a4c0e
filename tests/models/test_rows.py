from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise
from dpbayes.models import rows as module
from dpbayes.models.rows import pooled_shape, shrunk_rows


def made(rows: int, cells: int, strength: float = 20.0, records: int = 5000, seed: int = 0):
    rng = np.random.default_rng(seed)
    shape = rng.dirichlet(np.ones(cells))
    shares = rng.dirichlet(strength * shape + 1e-3, rows)
    totals = rng.multinomial(records, rng.dirichlet(np.ones(rows)))
    counts = np.array([rng.multinomial(n, row) for n, row in zip(totals, shares, strict=True)])
    return counts, totals.astype(float), shape


def test_without_noise_rows_are_their_counts_and_a_little_of_what_they_share():
    counts, totals, shape = made(6, 5)
    found = shrunk_rows(counts.astype(float), GaussianNoise(sigma=0.01), totals=totals, doubt=0.01, shape=shape)
    beta = np.exp(found.log_strength)
    assert found.shares == pytest.approx((counts + beta * shape) / (totals[:, None] + beta), abs=0.01)


def test_the_strength_is_found_from_the_rows():
    strengths = []
    for strength in (2.0, 200.0):
        counts, totals, shape = made(60, 6, strength=strength, records=60_000)
        noisy = counts + np.random.default_rng(1).normal(0, 3, counts.shape)
        found = shrunk_rows(noisy, GaussianNoise(sigma=3.0), totals=totals, doubt=3.0, shape=shape)
        strengths.append(np.exp(found.log_strength))
    assert 1.0 < strengths[0] < 6.0  # the grid has steps of e
    assert 80.0 < strengths[1] < 600.0


@pytest.mark.parametrize(
    "noise", [GaussianNoise(sigma=30.0), LaplaceNoise(scale=20.0), GammaNoise(weight=0.05, concentration=2.0)]
)
def test_shrinking_beats_clipping_for_every_noise(noise):
    errors = {"shrunk": [], "clipped": []}
    for seed in range(5):
        counts, totals, _ = made(8, 12, seed=seed)
        rng = np.random.default_rng(seed)
        if isinstance(noise, GammaNoise):
            values = rng.standard_gamma(noise.weight * counts + 2.0)
        elif isinstance(noise, LaplaceNoise):
            values = counts + np.round(rng.laplace(0, 20.0, counts.shape))
        else:
            values = counts + np.round(rng.normal(0, 30.0, counts.shape))
        total = float(totals.sum())
        shape = pooled_shape(values, noise, total=total, doubt=1e-3)
        shares = shrunk_rows(values, noise, totals=totals, doubt=1.0, shape=shape).shares
        clipped = np.maximum(noise.center(values), 0) + 1.0
        clipped /= clipped.sum(axis=1, keepdims=True)
        truth = counts / total
        for name, found in (("shrunk", shares), ("clipped", clipped)):
            errors[name].append(-(truth * np.log(found)).sum())
    assert np.mean(errors["shrunk"]) < np.mean(errors["clipped"])


def test_rows_are_distributions_even_with_one_level_or_no_records():
    for counts in (np.zeros((3, 4)), np.full((3, 1), 7.0)):
        cells = counts.shape[1]
        found = shrunk_rows(
            counts, GaussianNoise(sigma=5.0), totals=counts.sum(axis=1), doubt=5.0, shape=np.full(cells, 1 / cells)
        )
        assert found.shares.sum(axis=1) == pytest.approx(1.0)
        assert np.isfinite(found.shares).all()


def test_the_lattice_agrees_with_the_full_computation(monkeypatch):
    counts, totals, shape = made(4000, 6, records=40_000)
    noisy = counts + np.round(np.random.default_rng(2).normal(0, 4, counts.shape))
    options = {"totals": np.maximum(totals, 0.1), "doubt": 1e6, "shape": shape}
    full = shrunk_rows(noisy, GaussianNoise(sigma=4.0), **options)
    monkeypatch.setattr(module, "BULK", 1)
    fast = shrunk_rows(noisy, GaussianNoise(sigma=4.0), **options)
    assert np.abs(full.shares - fast.shares).max() < 0.05
    assert np.abs(full.shares - fast.shares).mean() < 0.005


@pytest.mark.slow
def test_ten_million_cells_need_a_few_hundred_megabytes():
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0, 5, (1_000_000, 10)))
    totals = rng.gamma(0.5, 2.0, 1_000_000)
    tracemalloc.start()
    found = shrunk_rows(values, GaussianNoise(sigma=5.0), totals=totals, doubt=5.0, shape=np.full(10, 0.1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shares.sum(axis=1) == pytest.approx(1.0)
    assert peak < 400e6
