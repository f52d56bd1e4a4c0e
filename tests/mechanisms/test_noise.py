"""Integer noise: shapes, integers, seeds, laws, and what happens at the end of 64 bits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from tests.privacy import reference

from dpbayes._checks import LARGEST_COUNT
from dpbayes.mechanisms import inversion, noise
from dpbayes.mechanisms.exact import Law
from dpbayes.mechanisms.randomness import PARALLEL

SAMPLERS = [(noise.gaussian, 3.0), (noise.laplace, 2.0)]


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (2, 1, 5)])
def test_noise_keeps_the_shape_and_stays_whole(sampler, parameter: float, seeded: bool, shape: tuple[int, ...]) -> None:
    counts = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    noisy = sampler(counts, parameter, np.random.default_rng(1) if seeded else None)
    assert noisy.shape == shape
    assert noisy.dtype == np.int64
    assert (np.abs(noisy - counts) < 200).all()


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
def test_a_seed_repeats_and_the_system_does_not(sampler, parameter: float) -> None:
    counts = np.zeros(200, dtype=np.int64)
    one, other = (sampler(counts, parameter, np.random.default_rng(5)) for _ in range(2))
    assert (one == other).all()
    assert (sampler(counts, parameter, None) != sampler(counts, parameter, None)).any()


@pytest.mark.parametrize(("sampler", "parameter"), SAMPLERS)
def test_the_counts_themselves_are_left_alone(sampler, parameter: float) -> None:
    counts = np.zeros(5, dtype=np.int64)
    sampler(counts, parameter, np.random.default_rng(5))
    assert not counts.any()


@pytest.mark.parametrize("seeded", [True, False])
def test_tiny_noise_changes_nothing_and_large_noise_spreads(seeded: bool) -> None:
    rng = np.random.default_rng(2) if seeded else None
    counts = np.zeros(400, dtype=np.int64)
    assert not noise.gaussian(counts, 1e-3, rng).any()
    assert not noise.laplace(counts, 1e-3, rng).any()
    assert 500 < noise.gaussian(counts, 1000.0, rng).std() < 1500
    assert 900 < noise.laplace(counts, 1000.0, rng).std() < 2100


@pytest.mark.parametrize(("sampler", "parameter"), [*SAMPLERS, (noise.gaussian, 1e5), (noise.laplace, 1e5)])
def test_the_words_that_are_used_do_not_depend_on_the_counts(sampler, parameter: float) -> None:
    states = []
    for counts in (np.zeros(5000), np.full(5000, LARGEST_COUNT), np.arange(5000)):
        rng = np.random.default_rng(9)
        sampler(counts.astype(np.int64), parameter, rng)
        states.append(rng.bit_generator.state)
    assert states[0] == states[1] == states[2]


def test_a_seed_repeats_whatever_was_drawn_before() -> None:
    counts = np.zeros(50, dtype=np.int64)
    first = noise.gaussian(counts, 700.0, np.random.default_rng(5))
    noise.gaussian(np.zeros(10**5, dtype=np.int64), 700.0, np.random.default_rng(6))
    assert (noise.gaussian(counts, 700.0, np.random.default_rng(5)) == first).all()
    inversion._tables.clear()
    assert (noise.gaussian(counts, 700.0, np.random.default_rng(5)) == first).all()


@pytest.mark.parametrize("scale", [2.0**50, 2.0**61, 2.0**64, 1e100])
def test_sums_that_do_not_fit_into_64_bits_stop_at_the_ends_instead_of_wrapping_round(scale: float) -> None:
    """The same noise on small and large counts, beside sums of whole numbers of any length."""
    for counts in (np.zeros(300, dtype=np.int64), np.full(300, LARGEST_COUNT), np.arange(300) * 2**53):
        noisy = noise.laplace(counts.astype(np.int64), scale, np.random.default_rng(11)).tolist()
        raw = noise.draw(Law.laplace(scale), 300, np.random.default_rng(11)).tolist()
        wanted = [min(max(int(c) + n, -(2**62)), 2**63 - 1) for c, n in zip(counts, raw, strict=True)]
        assert noisy == wanted


def test_noise_cut_to_64_bits_and_noise_of_any_length_publish_the_same_number() -> None:
    lengths = [-(2**70), -(2**63) - 1, -(2**63), -(2**62) - 1, -5, 0, 5, 2**62, 2**63 - 1, 2**63, 2**70]
    cut = np.array([min(max(n, -(2**63)), 2**63 - 1) for n in lengths])
    for count in (0, 1, 2**40, LARGEST_COUNT - 1, LARGEST_COUNT):
        found = noise._sum(np.full(len(lengths), count, dtype=np.int64), cut).tolist()
        assert found == [min(max(count + n, -(2**62)), 2**63 - 1) for n in lengths]


def test_many_secure_draws_come_in_parts_that_differ_and_follow_the_law() -> None:
    drawn = noise.draw(Law.gaussian(2000.0), PARALLEL, None)
    first, second = drawn.reshape(2, -1)
    assert (first == second).mean() < 0.01
    assert drawn.std() == pytest.approx(2000.0, rel=0.01)
    assert abs(drawn.mean()) < 6 * 2000 / np.sqrt(PARALLEL)


LAWS = [
    (noise.gaussian, reference.discrete_gaussian, 0.4),
    (noise.gaussian, reference.discrete_gaussian, 1.0),
    (noise.gaussian, reference.discrete_gaussian, 5.5),
    (noise.laplace, reference.discrete_laplace, 0.5),
    (noise.laplace, reference.discrete_laplace, 4.0),
]


def fit(noisy: np.ndarray, law, parameter: float) -> float:
    """The p-value of χ² against the exact probabilities; rare values are one cell."""
    draws, reach = noisy.size, int(8 * parameter) + 40
    expected = draws * np.array([float(p) for p in law(mp.mpf(parameter), reach)])
    seen = np.bincount(np.clip(noisy, -reach, reach) + reach, minlength=2 * reach + 1)
    often = expected > 20
    wanted = np.append(expected[often], max(draws - expected[often].sum(), 0.1))  # the rest is one cell
    observed = np.append(seen[often], seen[~often].sum())
    return float(stats.chisquare(observed, wanted * draws / wanted.sum()).pvalue)


@pytest.mark.parametrize(("sampler", "law", "parameter"), LAWS)
def test_some_seeded_noise_follows_its_law(sampler, law, parameter: float) -> None:
    noisy = sampler(np.zeros(20_000, dtype=np.int64), parameter, np.random.default_rng(3))
    assert fit(noisy, law, parameter) > 1e-4


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize(
    ("law", "exact", "parameter"),
    [
        (Law.gaussian(12.5), reference.discrete_gaussian, 12.5),
        (Law.gaussian(2.0), reference.discrete_gaussian, 2.0),
        (Law.laplace(7.0), reference.discrete_laplace, 7.0),
    ],
)
def test_noise_drawn_in_blocks_of_any_width_follows_its_law(law: Law, exact, parameter: float, shift: int) -> None:
    from dpbayes.mechanisms.randomness import words

    noisy = np.empty(6_000, dtype=np.int64)
    inversion.Table(law, shift).fill(noisy, words(np.random.default_rng(4)))
    assert fit(noisy, exact, parameter) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(
    ("sampler", "law", "parameter"),
    [*LAWS, (noise.gaussian, reference.discrete_gaussian, 60.0), (noise.laplace, reference.discrete_laplace, 30.0)],
)
def test_noise_follows_its_law(sampler, law, parameter: float, seeded: bool) -> None:
    draws = 1_000_000
    noisy = sampler(np.zeros(draws, dtype=np.int64), parameter, np.random.default_rng(3) if seeded else None)
    assert fit(noisy, law, parameter) > 1e-5
    assert abs((noisy > 0).mean() - (noisy < 0).mean()) < 6 / np.sqrt(draws)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1, 3, 5])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_noise_in_blocks_follows_its_law(kind: str, shift: int) -> None:
    from dpbayes.mechanisms.randomness import words

    parameter = 60.0 if kind == "gaussian" else 30.0
    exact = reference.discrete_gaussian if kind == "gaussian" else reference.discrete_laplace
    noisy = np.empty(400_000, dtype=np.int64)
    inversion.Table(getattr(Law, kind)(parameter), shift).fill(noisy, words(None))
    assert fit(noisy, exact, parameter) > 1e-5


@pytest.mark.parametrize(("kind", "parameter"), [("gaussian", 2.0), ("gaussian", 20.0), ("laplace", 5.0)])
def test_noise_agrees_with_the_sampler_of_opendp(kind: str, parameter: float) -> None:
    """Two samples of the same law: ours seeded, OpenDP's from the system."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    make, metric = (
        (measurements.make_gaussian, metrics.l2_distance(T="f64"))
        if kind == "gaussian"
        else (measurements.make_laplace, metrics.l1_distance(T="i64"))
    )
    draws = 20_000
    theirs = np.asarray(make(domain, metric, parameter)([0] * draws))
    ours = getattr(noise, kind)(np.zeros(draws, dtype=np.int64), parameter, np.random.default_rng(8))
    edges = np.unique(np.round(np.quantile(np.concatenate([ours, theirs]), np.linspace(0.03, 0.97, 15))))
    table = [np.bincount(np.searchsorted(edges, sample), minlength=edges.size + 1) for sample in (ours, theirs)]
    assert stats.chi2_contingency(np.array(table)[:, np.sum(table, axis=0) > 0]).pvalue > 1e-6
