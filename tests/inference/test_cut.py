"""Estimates are non-negative, agree in all shared margins, and are better than the tables as they were drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpbayes.inference import cut
from dpbayes.inference.cut import settle
from dpbayes.inference.law import LinearLaw
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.laplace import LaplaceNoise

SIZES = {"a": 4, "b": 3, "c": 5, "d": 2, "e": 6}


def people(rng, number=3000):
    """Dependent attributes with rare levels and impossible combinations, as codes."""
    a = rng.choice(4, number, p=[0.6, 0.3, 0.09, 0.01])
    b = np.minimum(a // 2 + (rng.random(number) < 0.2), 2)
    c = (a + rng.choice(3, number, p=[0.7, 0.25, 0.05])) % 5
    d = (rng.random(number) < np.where(b == 0, 0.1, 0.8)).astype(int)
    e = rng.choice(6, number, p=[0.9, 0.06, 0.02, 0.01, 0.01, 0.0])
    return dict(zip("abcde", (a, b, c, d, e), strict=True))


def table(codes, axes):
    found = np.zeros([SIZES[name] for name in axes])
    np.add.at(found, tuple(codes[name] for name in axes), 1)
    return found


def agreement(tables):
    """The largest difference of a table from its margin in a larger one."""
    gaps = [0.0]
    for large, small in itertools.permutations(tables, 2):
        if set(small) < set(large):
            summed = tables[large].sum(axis=tuple(i for i, name in enumerate(large) if name not in small))
            gaps.append(float(np.abs(summed - tables[small]).max()))
    return max(gaps)


WORKLOADS = {
    "pairs": list(itertools.combinations("abcde", 2)),
    "triples": [("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d"), ("a", "e"), ("b", "d", "e")],
    "four-way": [("a", "b", "c", "d"), ("a", "e"), ("b", "c", "e")],
}


@pytest.mark.parametrize("sigma", [0.7, 8.0, 120.0])
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("known", [True, False])
def test_all_margins_agree_and_nothing_is_negative(name, sigma, known):
    rng = np.random.default_rng(2)
    codes = people(rng)
    released = {axes: table(codes, axes) for axes in WORKLOADS[name]}
    released = {axes: clean + np.round(rng.normal(0, sigma, clean.shape)) for axes, clean in released.items()}
    law = LinearLaw(
        [Measurement(axes=axes, values=values, noise=GaussianNoise(sigma=sigma)) for axes, values in released.items()],
        SIZES,
        records=3000 if known else None,
    )
    found = settle(law, {})
    for tables in (found.counts, found.levels):
        assert set(tables) == set(law.tables)
        assert agreement(tables) < 1e-6
        assert min(float(each.min()) for each in tables.values()) >= 0
        assert float(tables[()]) == pytest.approx(3000 if known else max(float(law.mean(())), 0.0))
    ours = sum(np.abs(found.counts[axes] - table(codes, axes)).sum() for axes in released)
    drawn = sum(np.abs(values - table(codes, axes)).sum() for axes, values in released.items())
    assert ours < drawn


def test_public_margins_and_structural_zeros_are_kept():
    rng = np.random.default_rng(3)
    codes = people(rng)
    zeros = table(codes, ("a", "b")) == 0
    assert zeros.any()
    released = {
        axes: table(codes, axes) + np.round(rng.normal(0, 20, [SIZES[n] for n in axes]))
        for axes in WORKLOADS["triples"]
    }
    measured = [
        Measurement(axes=axes, values=values, noise=GaussianNoise(sigma=20)) for axes, values in released.items()
    ]
    public = Measurement(axes=("c",), values=table(codes, ("c",)), noise=Exact())
    found = settle(LinearLaw([*measured, public], SIZES, 3000, zeros=[(("a", "b"), zeros)]), {})
    assert agreement(found.counts) < 1e-6
    np.testing.assert_allclose(found.counts["c",], table(codes, ("c",)), atol=1e-6)
    assert (found.counts["a", "b"][zeros] == 0).all()
    assert (found.counts["a", "b", "c"][np.broadcast_to(zeros[..., None], (4, 3, 5))] == 0).all()


@pytest.mark.parametrize("noise", [LaplaceNoise(scale=6.0), GammaNoise(weight=0.4, concentration=9.0)])
def test_other_noises_are_served_alike(noise):
    rng = np.random.default_rng(4)
    codes = people(rng)
    measured = []
    for axes in WORKLOADS["pairs"]:
        clean = table(codes, axes)
        drawn = (
            rng.gamma(0.4 * clean + 9.0)
            if isinstance(noise, GammaNoise)
            else clean + np.round(rng.laplace(0, 6, clean.shape))
        )
        measured.append(Measurement(axes=axes, values=drawn, noise=noise))
    found = settle(LinearLaw(measured, SIZES, 3000), {})
    assert agreement(found.counts) < 1e-6
    error = np.mean([np.abs(found.counts[axes] - table(codes, axes)).mean() for axes in WORKLOADS["pairs"]])
    raw = np.mean([np.abs(each.noise.center(each.values) - table(codes, each.axes)).mean() for each in measured])
    assert error < 0.75 * raw


def test_a_right_guess_helps_and_a_wrong_one_is_outvoted():
    rng = np.random.default_rng(5)
    shares = np.sort(rng.dirichlet(np.full(40, 0.4)))
    errors = {}
    for name, guess in {"none": None, "right": shares + 1e-6, "wrong": shares[::-1] + 1e-6}.items():
        total = 0.0
        for repeat in range(12):
            own = np.random.default_rng([5, repeat])
            counts = own.multinomial(2000, shares)
            drawn = Measurement(
                axes=("x",), values=counts + np.round(own.normal(0, 15, 40)), noise=GaussianNoise(sigma=15)
            )
            found = settle(LinearLaw([drawn], {"x": 40}, 2000), {} if guess is None else {("x",): guess})
            total += np.abs(found.counts["x",] - counts).sum()
        errors[name] = total
    assert errors["right"] < 0.7 * errors["none"]
    assert errors["wrong"] < 1.1 * errors["none"]


@pytest.mark.parametrize("sigma", [0.3, 3.0])
@pytest.mark.parametrize("records", [400, 40_000])
def test_where_noise_is_small_shares_of_the_population_are_those_of_the_records_up_to_sampling(records, sigma):
    """The factors lie 28 % apart: the level of a cell must not be rounded to them."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        shares = rng.dirichlet([3.0, 2.0, 5.0])
        counts = rng.multinomial(records, shares).astype(float)
        noisy = counts + np.round(rng.normal(0, sigma, 3))
        law = LinearLaw([Measurement(axes=("b",), values=noisy, noise=GaussianNoise(sigma=sigma))], SIZES, records)
        found = settle(law, {}).levels[("b",)]
        sampling = np.sqrt(counts * (1 - counts / records)) + sigma
        assert (np.abs(found - counts) < sampling + 1).all()


@pytest.mark.parametrize("sigma", [3e4, 3e6])
def test_noise_far_beyond_the_number_of_records_leaves_what_was_known_before(sigma):
    """No cell holds more than all records, so noise of a hundred times as many says next to nothing."""
    rng = np.random.default_rng(4)
    noisy = np.round(rng.normal(0, sigma, (4, 3)))
    law = LinearLaw([Measurement(axes=("a", "b"), values=noisy, noise=GaussianNoise(sigma=sigma))], SIZES, 300)
    found = settle(law, {})
    assert found.counts[("a", "b")] == pytest.approx(np.full((4, 3), 25.0), rel=0.05)
    assert found.levels[("a", "b")] == pytest.approx(np.full((4, 3), 25.0), rel=0.05)


def test_a_large_table_is_worked_on_in_blocks_and_its_law_is_learned_from_a_part(monkeypatch) -> None:
    rng = np.random.default_rng(5)
    shape = np.full(6000, 20.0)
    center = rng.poisson(20.0 * rng.gamma(2.0, 0.5, 6000)) + rng.normal(0.0, 6.0, 6000)
    arguments = (shape, center, np.full(6000, 36.0), 1e6)
    whole = cut.Cells.of(*arguments)
    (law,) = cut.own_laws([whole], cut.common_law([whole]))
    monkeypatch.setattr(cut, "MOST_POOLED", 2000)
    monkeypatch.setattr(cut, "BLOCK", 700)
    parts = cut.Cells.of(*arguments)
    assert parts.thinned == pytest.approx(1 / 3)
    for one, other in zip(whole.moments(law), parts.moments(law), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert parts.log_evidence(law) == pytest.approx(whole.log_evidence(law), rel=1e-12)
    (near,) = cut.own_laws([parts], cut.common_law([parts]))
    np.testing.assert_allclose(parts.moments(near)[0], whole.moments(law)[0], atol=1.5)


def test_laws_that_are_learned_together_are_those_that_are_learned_alone() -> None:
    rng = np.random.default_rng(6)
    sizes = [12, 5, 12, 1, 12, 3000, 5]
    tables = [cut.Cells.of(np.full(k, 9.0), rng.normal(9.0, 5.0, k), np.full(k, 25.0), 1e4) for k in sizes]
    common = cut.common_law(tables)
    for together, table in zip(cut.own_laws(tables, common), tables, strict=True):
        assert np.array_equal(together, cut.own_laws([table], common)[0])


def test_larger_tables_follow_those_of_one_attribute_that_were_settled_first() -> None:
    values = np.random.default_rng(7).normal(25, 9, (4, 3))
    law = LinearLaw([Measurement(axes=("a", "b"), values=values, noise=GaussianNoise(sigma=9))], SIZES, 300)
    whole, continued = settle(law, {}), settle(law, {}, single=settle(law, {}, most=1))
    for kind in ("counts", "levels", "laws"):
        one, other = getattr(whole, kind), getattr(continued, kind)
        assert one.keys() == other.keys()
        assert all(np.array_equal(table, other[axes]) for axes, table in one.items())
