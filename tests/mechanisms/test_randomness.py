"""Where random numbers come from."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes.mechanisms.randomness import PARALLEL, KeyedStreams, generator, secure, software, standard_gamma


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
