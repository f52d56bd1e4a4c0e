"""Certificates against plain enumeration, and the numbers they must show."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.hellinger import candidates, certificate, distance, sensitivity
from dpbayes.hellinger.distance import Laws, Rows
from dpbayes.hellinger.mechanism import published_smoothing


def plain(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, delta: float
) -> tuple[float, float]:
    """Pure ε and ε at δ by a matrix of all laws and a bisection: the slow and obvious way."""
    tables = candidates.all_tables(total, len(prior))
    posteriors = tables + np.asarray(prior)
    scores = distance.hellinger(posteriors[:, None, :], posteriors[None, :, :])
    steps = np.array([sensitivity.smooth_sensitivity(prior, table, smoothing) for table in tables])
    logs = -sharpness * scores / (2 * steps[:, None])
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    moves = np.abs(tables[:, None] - tables[None]).sum(axis=-1) // 2
    x, y = np.nonzero(moves == 1)
    pure = np.abs(logs[x] - logs[y]).max()

    def lost(epsilon: float) -> float:
        return float(np.maximum(np.exp(logs[x]) - math.exp(epsilon) * np.exp(logs[y]), 0).sum(axis=1).max())

    low, high = 0.0, float(pure)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if lost(middle) <= delta else (middle, high)
    return float(pure), high


@pytest.mark.parametrize(
    ("prior", "total", "sharpness", "smoothing"),
    [
        ((1.0, 1.0), 25, 0.8, 0.02),
        ((0.3, 2.0), 18, 1.7, 0.3),
        ((1.0, 1.0, 1.0), 7, 0.8, 0.05),
        ((0.5, 0.5, 3.0), 6, 3.0, 0.4),
        ((0.5, 2.0, 3.0), 5, 3.0, 0.1),
        ((1.0,) * 4, 4, 1.0, 0.02),
    ],
)
@pytest.mark.parametrize("delta", [1e-8, 0.05])
def test_certificates_are_those_of_plain_enumeration(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, delta: float
) -> None:
    made = certificate.certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=delta)
    pure, at_delta = plain(prior, total, sharpness, smoothing, delta)
    assert made.epsilon == pytest.approx(pure + certificate.SLACK, abs=1e-9)
    assert made.epsilon_at_delta == pytest.approx(at_delta + certificate.SLACK, abs=1e-9)


def test_the_worst_pair_shows_the_stated_loss() -> None:
    prior, total, sharpness, smoothing = (1.0, 2.0, 1.0), 8, 1.0, 0.1
    made = certificate.certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=1e-6)
    laws = Laws.of(prior, total, sharpness, smoothing)
    index = laws.rows.all_tables().tolist().index(list(made.candidate))
    loss = laws.probabilities(made.table)[0][index] - laws.probabilities(made.neighbour)[0][index]
    assert loss == pytest.approx(made.epsilon - certificate.SLACK, abs=1e-11)
    assert np.abs(np.subtract(made.table, made.neighbour)).sum() == 2


@pytest.mark.parametrize(("total", "epsilon"), [(200, 0.412), (1000, 0.415)])
def test_the_published_mechanism_is_purely_private_with_half_its_epsilon(total: int, epsilon: float) -> None:
    smoothing = published_smoothing(0.8, 1e-8, math.log(total + 1))
    made = certificate.certify((1.0, 1.0), total, sharpness=0.8, smoothing=smoothing, delta=1e-8)
    assert round(made.epsilon, 3) == epsilon
    assert made.epsilon_at_delta <= made.epsilon


def test_rows_of_two_cells_keep_ten_digits() -> None:
    rows = Rows((1.0, 0.5), 10_000)
    for x in (0, 1, 170, 5000, 9999):
        others = np.array([0, 1, x, min(x + 1, 10_000), 4000, 10_000])
        tables = np.column_stack([others, 10_000 - others])
        truth = distance.hellinger(tables + np.array(rows.prior), np.array([x, 10_000 - x]) + np.array(rows.prior))
        np.testing.assert_allclose(rows.distances((x, 10_000 - x))[others], truth, rtol=1e-10)


@pytest.mark.parametrize("prior", [(1e6, 1e6), (1e9, 3e8), (1e7, 1e7, 1e7)])
def test_the_slack_covers_the_rounding_of_strong_priors(prior: tuple[float, ...]) -> None:
    total = 6
    made = certificate.certify(prior, total, sharpness=1.0, smoothing=0.1, delta=1e-8)
    pure, at_delta = plain(prior, total, 1.0, 0.1, 1e-8)
    assert pure <= made.epsilon <= pure + 1e-3
    assert at_delta <= made.epsilon_at_delta


def test_a_mechanism_with_global_sensitivity_is_within_its_theorem() -> None:
    made = certificate.certify((1.0, 1.0, 1.0), 12, sharpness=0.8, smoothing=0.0, delta=1e-8)
    assert made.epsilon <= 0.8


@pytest.mark.parametrize("offset", [-0.7, -0.3, 0.0, 0.4])
def test_the_profile_covers_losses_and_probabilities_that_are_wrong_by_as_much_as_rounding_may(
    offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables told apart by one bit, whose loss lies within a step of one where δ is stated."""
    epsilon, place = 1.0, certificate.STEPS // 2
    step = epsilon / (certificate.STEPS * certificate.FINE)
    at, wrong = epsilon * place / certificate.STEPS, 0.75 * step
    loss = at + offset * step
    truth = 1.0 / (1.0 + math.exp(-loss))
    bits = {(0,): np.array([truth, 1.0 - truth]), (1,): np.array([1.0 - truth, truth])}
    laws = SimpleNamespace(
        rows=SimpleNamespace(tables=lambda: [(0,)], neighbours=lambda _: [(1,)]),
        rounding=wrong,
        probabilities=lambda table: (np.log(bits[table]), bits[table]),
    )
    monkeypatch.setattr(certificate, "Laws", SimpleNamespace(of=lambda *_: laws))
    profile, _ = certificate._curves.__wrapped__((1.0, 1.0), 1, 1.0, 0.1, epsilon)
    assert profile[place] >= truth * (1.0 + wrong) * max(-math.expm1(at - loss - wrong), 0.0) > 0.0


def test_certificates_are_refused_where_they_would_take_too_long() -> None:
    assert certificate.affordable((1.0, 1.0), 10_000)
    assert not certificate.affordable((1.0,) * 4, 200)
    assert certificate.affordable((1.0,) * 11, 15)
    assert not certificate.affordable((1.0,) * 11, 16)  # little work, but too long a list
    with pytest.raises(InvalidArgument, match="proved"):
        certificate.certify((1.0,) * 4, 200, sharpness=1.0, smoothing=0.1, delta=1e-8)


def test_a_certificate_survives_its_record_and_a_damaged_one_does_not() -> None:
    made = certificate.certify((1.0, 1.0), 6, sharpness=1.0, smoothing=0.1, delta=1e-8)
    assert certificate.Certificate.from_record(made.record()) == made
    with pytest.raises(ReleaseError, match="Certificate"):
        certificate.Certificate.from_record({"epsilon": 1.0})


@pytest.mark.slow
def test_ten_thousand_records_in_two_cells_are_certified() -> None:
    smoothing = published_smoothing(0.8, 1e-8, math.log(10_001))
    made = certificate.certify((1.0, 1.0), 10_000, sharpness=0.8, smoothing=smoothing, delta=1e-8)
    assert round(made.epsilon, 3) == 0.419


@pytest.mark.slow
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 0.5), (3.0, 1.0)])
@pytest.mark.parametrize("total", [50, 200, 1000, 3000])
@pytest.mark.parametrize("sharpness", [0.1, 0.5, 0.8, 1.0, 2.0])
def test_the_pure_epsilon_is_half_to_three_quarters_of_the_nominal_one(
    prior: tuple[float, ...], total: int, sharpness: float
) -> None:
    smoothing = published_smoothing(sharpness, 1e-8, math.log(total + 1))
    made = certificate.certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=1e-8)
    assert 0.49 * sharpness <= made.epsilon <= 0.75 * sharpness
