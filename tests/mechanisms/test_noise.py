"""Integer noise, where its random numbers come from, and its self-test."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from tests.mechanisms.feed import magnitudes
from tests.privacy import reference

from dpbayes import Gaussian, Laplace, Unit
from dpbayes.base.checks import LARGEST_COUNT
from dpbayes.base.errors import DpbayesError, NoiseError
from dpbayes.mechanisms import exact as integers
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.exact import Law
from dpbayes.mechanisms.noise import PARALLEL, KeyedStreams, generator, secure, software, standard_gamma, words
from dpbayes.schema import Adjacency

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
    integers._tables.clear()
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
        found = noise.plus(np.full(len(lengths), count, dtype=np.int64), cut).tolist()
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
    noisy = np.empty(6_000, dtype=np.int64)
    integers.InversionTable(law, shift).fill(noisy, words(np.random.default_rng(4)))
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
    parameter = 60.0 if kind == "gaussian" else 30.0
    exact = reference.discrete_gaussian if kind == "gaussian" else reference.discrete_laplace
    noisy = np.empty(400_000, dtype=np.int64)
    integers.InversionTable(getattr(Law, kind)(parameter), shift).fill(noisy, words(None))
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


# -- where random numbers come from ------------------------------------------------------------------------------------


def test_the_generator_of_the_caller_is_used() -> None:
    mine = np.random.default_rng(1)
    assert generator(mine) is mine


def test_two_secure_generators_do_not_agree() -> None:
    one, other = secure().random(64), secure().random(64)
    assert not np.intersect1d(one, other).size


def test_numpy_seeds_do_not_reach_the_secure_generator() -> None:
    draws = []
    for _ in range(2):
        np.random.seed(0)
        draws.append(generator(None).random(8))
    assert (draws[0] != draws[1]).all()


def test_a_secure_generator_draws_uniform_numbers() -> None:
    numbers = secure().random(20000)
    assert abs(numbers.mean() - 0.5) < 0.02
    assert abs(numbers.var() - 1 / 12) < 0.01


def chacha20_block(key: bytes, number: int) -> int:
    """The first 64 bits of a block, by the published definition of ChaCha20."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start += [int.from_bytes(part) for part in (key[i : i + 4][::-1] for i in range(0, 32, 4))]
    start += [(number >> shift) & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
    x = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for into, by, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[into] = (x[into] + x[by]) & 0xFFFFFFFF
            mixed = x[turned] ^ x[into]
            x[turned] = ((mixed << bits) | (mixed >> (32 - bits))) & 0xFFFFFFFF

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
    first, second = ((x[i] + start[i]) & 0xFFFFFFFF for i in (0, 1))
    return first | second << 32


def test_streams_are_far_apart_on_the_stream_of_their_key() -> None:
    key = bytes(range(32))
    streams = KeyedStreams(key)
    for number in (0, 1, 2, 77, 2**62):
        assert int(streams.at(number).bit_generator.random_raw()) == chacha20_block(key, number << 60)


def test_a_stream_starts_anew_however_much_was_drawn_before() -> None:
    streams = KeyedStreams(bytes(32))
    fresh = streams.at(3).standard_gamma(np.full(9, 0.7)).tolist()
    streams.at(4).random(1001)
    assert streams.at(3).standard_gamma(np.full(9, 0.7)).tolist() == fresh


def test_many_secure_gammas_are_drawn_in_parts_that_differ_and_follow_the_law() -> None:
    cells = PARALLEL
    drawn = standard_gamma(np.full((2, cells // 2), 3.0))
    assert drawn.shape == (2, cells // 2)
    assert np.unique(drawn).size == cells
    assert drawn.mean() == pytest.approx(3.0, abs=6 * np.sqrt(3 / cells))
    assert drawn.var() == pytest.approx(3.0, rel=0.02)


def test_gammas_of_a_given_generator_are_that_generators_however_many() -> None:
    shapes = np.linspace(0.5, 9.0, PARALLEL)
    drawn = standard_gamma(shapes, np.random.default_rng(3))
    assert (drawn == np.random.default_rng(3).standard_gamma(shapes)).all()


def test_the_software_that_draws_is_named_with_its_versions() -> None:
    versions = software()
    assert set(versions) == {"python", "dpbayes", "numpy", "randomgen"}
    assert versions["numpy"] == np.__version__


# -- the self-test -----------------------------------------------------------------------------------------------------

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)


def biased(law: Law, cells: int, rng) -> np.ndarray:
    """Right but for discrete Laplace noise of scale 5, whose ratios are e^0.347 instead of e^0.2: opendp 0.14.1."""
    return noise.draw(Law.laplace(1 / 0.347) if law == Law.laplace(5) else law, cells, rng)


def only_fresh_noise_biased(law: Law, cells: int, rng) -> np.ndarray:
    return biased(law, cells, rng) if rng is None else noise.draw(law, cells, rng)


@pytest.fixture(autouse=True)
def untested():
    noise.once.cache_clear()
    yield
    noise.once.cache_clear()


@pytest.mark.parametrize("draws", [noise.FEW, noise.MANY])
def test_the_samplers_of_this_installation_pass(draws: int) -> None:
    noise.check(draws, noise.draw)


@pytest.mark.parametrize("draws", [noise.FEW, noise.MANY])
@pytest.mark.parametrize("draw", [biased, only_fresh_noise_biased])
def test_the_bias_of_opendp_0_14_1_is_caught(draw, draws: int) -> None:
    with pytest.raises(NoiseError, match="Do not publish") as caught:
        noise.check(draws, draw)
    assert "laplace noise of scale 5" in str(caught.value)


@pytest.mark.parametrize("scale", [2, 5, 20])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_known_answers_are_those_of_the_definition(kind: str, scale: int) -> None:
    stream = noise._known_stream().integers(0, 2**64, 8, dtype=np.uint64).tolist()
    with mp.workdps(60):
        sums = magnitudes(kind, scale, 20 * scale)
        sizes = [sum(p <= mp.mpf(word & (2**63 - 1)) / 2**63 for p in sums) for word in stream]
    assert noise.KNOWN[kind, scale] == [-k if word >> 63 else k for word, k in zip(stream, sizes, strict=True)]


@pytest.mark.parametrize("factor", [0.8, 1.25])
@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 2), ("gaussian", 20), ("laplace", 5), ("laplace", 600)])
def test_noise_a_quarter_too_narrow_or_too_wide_is_caught(kind: str, scale: int, factor: float) -> None:
    def wrong(law: Law, cells: int, rng) -> np.ndarray:
        meant = getattr(Law, kind)(scale)
        return noise.draw(getattr(Law, kind)(scale * factor) if law == meant and rng is None else law, cells, rng)

    with pytest.raises(NoiseError, match=f"{kind} noise of scale {scale}"):
        noise.check(noise.FEW, wrong)


def test_noise_that_is_not_centred_is_caught() -> None:
    with pytest.raises(NoiseError):
        noise.check(noise.FEW, lambda law, cells, rng: noise.draw(law, cells, rng) + (rng is None))


def test_a_generator_without_its_published_stream_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_known_stream", lambda: np.random.default_rng(0))
    with pytest.raises(NoiseError, match="ChaCha20"):
        noise.check(noise.FEW, noise.draw)


def test_a_false_alarm_is_rarer_than_one_in_a_billion() -> None:
    x, degrees = mp.mpf(noise.LIMIT), noise._BINS - 1
    bound = mp.exp(-x) * (mp.e * x / degrees) ** degrees
    assert bound * noise.LAWS < 1e-9


@pytest.mark.parametrize("mechanism", [Gaussian(sigma=3, unit=UNIT), Laplace(scale=3, unit=UNIT)])
def test_the_first_secure_draw_is_refused_where_the_samplers_are_wrong(mechanism, monkeypatch) -> None:
    monkeypatch.setattr(noise, "draw", lambda law, cells, rng: np.zeros(cells, dtype=np.int64))
    for _ in range(2):  # and so is the second
        with pytest.raises(DpbayesError, match="Do not publish"):
            mechanism.draw([1, 2, 3])
    assert mechanism.draw([1, 2, 3], np.random.default_rng(1)).tolist() == [1, 2, 3]


def test_a_process_is_tested_once() -> None:
    Gaussian(sigma=3, unit=UNIT).draw([1])
    assert noise.once.cache_info().misses == 1
    Laplace(scale=3, unit=UNIT).draw([1])
    assert noise.once.cache_info() == (1, 1, None, 1)
