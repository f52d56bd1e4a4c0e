"""The self-test of the noise: it knows the truth, and a biased sampler does not pass it."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from tests.mechanisms.feed import magnitudes

from dpbayes import Adjacency, Gaussian, Laplace, PrivacyUnit
from dpbayes.errors import DpbayesError, NoiseError
from dpbayes.mechanisms import noise, selftest
from dpbayes.mechanisms.exact import Law

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)


def biased(law: Law, cells: int, rng) -> np.ndarray:
    """Right but for discrete Laplace noise of scale 5, whose ratios are e^0.347 instead of e^0.2: opendp 0.14.1."""
    return noise.draw(Law.laplace(1 / 0.347) if law == Law.laplace(5) else law, cells, rng)


def only_fresh_noise_biased(law: Law, cells: int, rng) -> np.ndarray:
    return biased(law, cells, rng) if rng is None else noise.draw(law, cells, rng)


@pytest.fixture(autouse=True)
def untested():
    selftest.once.cache_clear()
    yield
    selftest.once.cache_clear()


@pytest.mark.parametrize("draws", [selftest.FEW, selftest.MANY])
def test_the_samplers_of_this_installation_pass(draws: int) -> None:
    selftest.check(draws)


@pytest.mark.parametrize("draws", [selftest.FEW, selftest.MANY])
@pytest.mark.parametrize("draw", [biased, only_fresh_noise_biased])
def test_the_bias_of_opendp_0_14_1_is_caught(draw, draws: int) -> None:
    with pytest.raises(NoiseError, match="Do not publish") as caught:
        selftest.check(draws, draw)
    assert "laplace noise of scale 5" in str(caught.value)


@pytest.mark.parametrize("scale", [2, 5, 20])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_known_answers_are_those_of_the_definition(kind: str, scale: int) -> None:
    stream = selftest._known_stream().integers(0, 2**64, 8, dtype=np.uint64).tolist()
    with mp.workdps(60):
        sums = magnitudes(kind, scale, 20 * scale)
        sizes = [sum(p <= mp.mpf(word & (2**63 - 1)) / 2**63 for p in sums) for word in stream]
    assert selftest.KNOWN[kind, scale] == [-k if word >> 63 else k for word, k in zip(stream, sizes, strict=True)]


@pytest.mark.parametrize("factor", [0.8, 1.25])
@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 2), ("gaussian", 20), ("laplace", 5), ("laplace", 600)])
def test_noise_a_quarter_too_narrow_or_too_wide_is_caught(kind: str, scale: int, factor: float) -> None:
    def wrong(law: Law, cells: int, rng) -> np.ndarray:
        meant = getattr(Law, kind)(scale)
        return noise.draw(getattr(Law, kind)(scale * factor) if law == meant and rng is None else law, cells, rng)

    with pytest.raises(NoiseError, match=f"{kind} noise of scale {scale}"):
        selftest.check(selftest.FEW, wrong)


def test_noise_that_is_not_centred_is_caught() -> None:
    with pytest.raises(NoiseError):
        selftest.check(selftest.FEW, lambda law, cells, rng: noise.draw(law, cells, rng) + (rng is None))


def test_a_generator_without_its_published_stream_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_known_stream", lambda: np.random.default_rng(0))
    with pytest.raises(NoiseError, match="ChaCha20"):
        selftest.check(selftest.FEW)


def test_a_false_alarm_is_rarer_than_one_in_a_billion() -> None:
    x, degrees = mp.mpf(selftest.LIMIT), selftest._BINS - 1
    bound = mp.exp(-x) * (mp.e * x / degrees) ** degrees
    assert bound * selftest.LAWS < 1e-9


@pytest.mark.parametrize("mechanism", [Gaussian(sigma=3, unit=UNIT), Laplace(scale=3, unit=UNIT)])
def test_the_first_secure_draw_is_refused_where_the_samplers_are_wrong(mechanism, monkeypatch) -> None:
    monkeypatch.setattr(noise, "draw", lambda law, cells, rng: np.zeros(cells, dtype=np.int64))
    for _ in range(2):  # and so is the second
        with pytest.raises(DpbayesError, match="Do not publish"):
            mechanism.draw([1, 2, 3])
    assert mechanism.draw([1, 2, 3], np.random.default_rng(1)).tolist() == [1, 2, 3]


def test_a_process_is_tested_once() -> None:
    Gaussian(sigma=3, unit=UNIT).draw([1])
    assert selftest.once.cache_info().misses == 1
    Laplace(scale=3, unit=UNIT).draw([1])
    assert selftest.once.cache_info() == (1, 1, None, 1)
