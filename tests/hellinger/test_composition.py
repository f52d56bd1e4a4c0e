"""What released posteriors cost beside others: the certificate's curves against plain enumeration of every pair."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.special import logsumexp

from dpbayes import ApproxDP, Cost, Gaussian, Ledger, Unit
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.hellinger import calibration, certificate, sensitivity
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.distance import Laws
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.hellinger.promise import Enumerated
from dpbayes.mechanisms.kinds import from_record

UNIT = Unit(adjacency="replace-one")
Pair = tuple[np.ndarray, np.ndarray]

CASES = [
    ((1.0, 1.0), 20, 0.8, 0.0),
    ((0.3, 2.0), 18, 1.7, 0.3),
    ((1.0, 1.0), 12, 8.0, 0.05),
    ((1.0, 1.0, 1.0), 7, 0.8, 0.05),
    ((0.5, 0.5, 3.0), 6, 3.0, 0.4),
    ((1.0,) * 4, 4, 1e-3, 0.02),
]


@lru_cache
def pairs(prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> tuple[Pair, ...]:
    """The laws of every neighbouring pair, both ways round."""
    laws = Laws.of(prior, total, sharpness, smoothing)
    found = []
    for table in laws.rows.tables():
        for other in laws.rows.neighbours(table):
            p, q = laws.probabilities(table)[1], laws.probabilities(other)[1]
            found += [(p, q), (q, p)]
    return tuple(found)


def enumerated(prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> Hellinger:
    made = certificate.certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=0.0)
    made = certificate.with_curves(made, prior, total, sharpness, smoothing)
    return calibration.with_certificate(prior, total, sharpness, smoothing, UNIT, made)


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    tilted = (order - 1) * np.log(p / q)
    if tilted.max() > 100:
        return float(logsumexp(tilted, b=p)) / (order - 1)
    return math.log1p(math.fsum(p * np.expm1(tilted))) / (order - 1)


@pytest.mark.parametrize("case", CASES)
def test_no_pair_exceeds_the_curves_and_the_worst_comes_near(case: tuple[tuple[float, ...], int, float, float]) -> None:
    made = enumerated(*case)
    for order in (1.01, 1.3, 2.0, 2.9, 7.0, 40.0, 127.0, 300.0):
        worst = max(divergence(p, q, order) for p, q in pairs(*case))
        assert worst <= made.renyi(order)
        assert made.renyi(order) <= 1.08 * worst + 1e-9
        assert made.renyi(order) <= made.concentrated(math.inf) * order * (1 + 1e-12)
        assert made.renyi(order) <= made.concentrated(order + 0.1) * order * (1 + 1e-12)
    for share in (0.0, 0.1, 0.37, 0.6, 0.83, 0.99):
        epsilon = share * made.renyi(math.inf)
        worst = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in pairs(*case))
        assert worst <= made.delta(epsilon) <= 1.02 * worst + 2e-4 * made.renyi(math.inf)
        assert made.delta(epsilon) <= made.pld(made.renyi(math.inf) / 200).delta(epsilon) * (1 + 1e-9)
    assert made.delta(made.renyi(math.inf)) == 0.0
    assert made.certificate is not None
    assert made.promise == Enumerated(made.certificate)


def twice(pair: Pair, other: Pair, epsilon: float) -> float:
    """δ of one release by a pair, and then one by another, both enumerated."""
    p, q = (np.outer(one, two) for one, two in zip(pair, other, strict=True))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("case", CASES[:3])
def test_two_releases_cost_no_less_than_the_worst_two_pairs_composed(
    case: tuple[tuple[float, ...], int, float, float],
) -> None:
    made = enumerated(*case)
    cost = Cost.of(made, 2)
    for delta in (1e-2, 1e-4):
        epsilon = cost.epsilon(delta)
        assert max(twice(one, other, epsilon) for one in pairs(*case) for other in pairs(*case)) <= delta
        near = epsilon * 0.93
        assert max(twice(one, other, near) for one in pairs(*case) for other in pairs(*case)) > delta


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
@pytest.mark.parametrize("together", [True, False])
def test_by_every_rule_of_a_ledger_releases_cost_at_least_their_exact_composition(
    rule: str, together: bool, tmp_path: Path
) -> None:
    """Sixteen releases, composed on a fine grid by the worst single pair: below every price, and not far below."""
    case = ((1.0, 1.0), 30, 1.0, 0.0)
    made, times, delta = enumerated(*case), 16, 1e-6
    ledger = Ledger(tmp_path / "book.ledger")
    ledger.open("survey", ApproxDP(epsilon=20.0, delta=delta), UNIT, rule=rule)  # type: ignore[arg-type]
    for _ in range(1 if together else times):
        ledger.charge("survey", Cost.of(made, times if together else 1))
    spent = ledger.account("survey").spent
    exact = max(composed(p, q, times, delta) for p, q in pairs(*case)[::7])
    assert exact <= Cost.of(made, times).epsilon(delta) <= 1.3 * exact
    assert exact <= spent < 0.8 * times * made.renyi(math.inf)


def composed(p: np.ndarray, q: np.ndarray, times: int, delta: float) -> float:
    """ε of repeated draws of one pair, the losses rounded down to a grid: never more than the truth."""
    step = 1e-3
    losses = np.floor(np.log(p / q) / step).astype(int)
    low = losses.min()
    law = np.bincount(losses - low, p)
    for _ in range(round(math.log2(times))):
        law = np.maximum(fftconvolve(law, law), 0.0)
    at = step * (times * low + np.arange(law.size))
    epsilons = np.linspace(0.0, float(at[-1]), 2000)
    lost = [float((law[at > e] * -np.expm1(e - at[at > e])).sum()) for e in epsilons]
    return float(epsilons[np.argmax(np.array(lost) <= delta)])


TWENTY = [
    ((1.0, 1.0), 50, 1.0, (5.4, 7.1, 18.1)),
    ((1.0, 1.0), 400, 0.8, (2.02, 6.01, 15.2)),
    ((1.0, 1.0, 1.0), 20, 1.0, (2.88, 4.66, 12.6)),
]


@pytest.mark.parametrize(("prior", "total", "epsilon", "most"), TWENTY)
def test_twenty_releases_cost_far_less_than_twenty_times_their_epsilon(
    prior: tuple[float, ...], total: int, epsilon: float, most: tuple[float, ...]
) -> None:
    common = {"prior": prior, "total": total, "epsilon": epsilon, "unit": UNIT}
    made = (calibration.with_global(**common), calibration.proved(**common), calibration.certified(**common))
    for each, limit in zip(made, most, strict=True):
        assert Cost.of(each, 20).epsilon(1e-6) <= limit
        assert from_record(json.loads(json.dumps(each.record()))) == each


def test_the_nominal_epsilon_of_a_smooth_variant_does_not_bound_the_range_of_its_loss() -> None:
    """ε²/8 with the nominal ε would be a wrong guarantee: the exact ρ of the certified mechanism is above it."""
    made = calibration.certified(prior=(1.0, 1.0), total=50, epsilon=1.0, unit=UNIT)
    assert max(divergence(p, q, 1.5) for p, q in pairs((1.0, 1.0), 50, made.sharpness, made.smoothing)) / 1.5 > 0.3
    assert made.concentrated(math.inf) > 0.3 > 1.0**2 / 8


@pytest.mark.parametrize(("prior", "total", "sharpness", "smoothing"), [*CASES, ((1.0, 1.0), 60, 1.0, 0.6)])
def test_where_nothing_is_enumerated_the_range_of_the_loss_is_what_the_theorem_bounds(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float
) -> None:
    bound = sensitivity.pure_epsilon(prior, total, sharpness, smoothing)
    ranges = [float(np.ptp(np.log(p / q))) for p, q in pairs(prior, total, sharpness, smoothing)]
    assert max(ranges) <= bound * (1 + 1e-9)
    made = Hellinger(
        prior=prior, total=total, sharpness=sharpness, smoothing=smoothing, calibration="proved", unit=UNIT
    )
    for order in (1.5, 3.0, 30.0):
        worst = max(divergence(p, q, order) for p, q in pairs(prior, total, sharpness, smoothing))
        assert worst <= made.renyi(order) <= max(order * bound**2 / 8 * (1 + 1e-9), worst)


def test_large_tables_compose_by_the_range_of_their_loss() -> None:
    made = calibration.with_global(prior=(1.0,) * 8, total=10_000, epsilon=1.0, unit=UNIT)
    assert made.certificate is None
    assert Cost.of(made, 20).epsilon(1e-6) < 14.3
    assert Cost.of(calibration.proved(prior=(1.0,) * 8, total=10_000, epsilon=1.0, unit=UNIT), 20).epsilon(1e-6) < 14.3


@pytest.mark.parametrize("score", ["hellinger", "kl", "total-variation"])
def test_the_exponential_mechanism_composes_by_the_range_of_its_loss(score: str) -> None:
    made = PosteriorExponential(prior=(1.0, 2.0), total=15, sharpness=1.2, score=score, unit=UNIT)
    laws = [made.law([x, 15 - x])[1] for x in range(16)]
    both = [pair for p, q in pairwise(laws) for pair in ((p, q), (q, p))]
    assert max(float(np.ptp(np.log(p / q))) for p, q in both) <= 1.2 * (1 + 1e-9)
    for order in (1.5, 4.0, 50.0):
        assert max(divergence(p, q, order) for p, q in both) <= made.renyi(order) <= 1.2
    assert made.concentrated(math.inf) == pytest.approx(1.2**2 / 8)
    assert Cost.of(made, 20).epsilon(1e-6) < 0.8 * 20 * 1.2


def test_laplace_noise_composes_at_its_exact_loss() -> None:
    """Two cells: noise moved by one is randomised response, so that no price is lower."""
    made = PosteriorLaplace.at(prior=(1.0, 1.0), total=50, epsilon=1.0, truncated=False, unit=UNIT)
    at = np.arange(-200, 200)
    p, q = (np.exp(-np.abs(at - moved)) * math.tanh(0.5) for moved in (0, 1))
    assert made.renyi(2.0) == pytest.approx(divergence(p, q, 2.0), rel=1e-9)


def test_a_release_made_before_is_priced_as_before() -> None:
    """A certificate without curves: randomised response of its pure ε."""
    made = calibration.certified(prior=(1.0, 1.0), total=20, epsilon=1.0, unit=UNIT)
    assert made.certificate is not None
    bare = replace(made.certificate, profile=(), divergences=())
    old = calibration.with_certificate(made.prior, 20, made.sharpness, made.smoothing, UNIT, bare)
    assert set(old.record()["certificate"]) == {  # type: ignore[call-overload]
        "epsilon", "delta", "epsilon_at_delta", "table", "neighbour", "candidate", "digest"
    }  # fmt: skip
    assert from_record(old.record()) == old
    assert Cost.of(old, 20).epsilon(1e-6) > 19.9


@pytest.mark.parametrize("curve", ["profile", "divergences"])
@pytest.mark.parametrize("at", [0, 20, -2])
def test_a_record_whose_curve_is_below_the_derived_one_is_refused(curve: str, at: int, tmp_path: Path) -> None:
    made = enumerated(*CASES[0])
    assert made.certificate is not None
    made.confirm()
    values = list(getattr(made.certificate, curve))
    values[at] *= 1 - 1e-7
    forged = calibration.with_certificate(
        made.prior, made.total, made.sharpness, 0.0, UNIT, replace(made.certificate, **{curve: tuple(values)})
    )
    ledger = Ledger(tmp_path / "book.ledger")
    ledger.open("survey", ApproxDP(epsilon=20.0, delta=1e-6), UNIT)
    with pytest.raises(ReleaseError, match="enumeration"):
        ledger.charge("survey", Cost.of(forged))
    assert not ledger.account("survey").charges


@pytest.mark.parametrize(
    "change",
    [
        {"profile": ()},
        {"divergences": (0.1,)},
        {"profile": (-0.1,) + (0.0,) * certificate.STEPS},
        {"profile": (0.1,) * (certificate.STEPS + 1)},
        {"divergences": (math.nan,) * len(certificate.ORDERS)},
    ],
    ids=str,
)
def test_curves_that_are_none_are_refused(change: dict[str, tuple[float, ...]]) -> None:
    made = enumerated(*CASES[0]).certificate
    assert made is not None
    with pytest.raises(InvalidArgument, match="Certificate"):
        replace(made, **change)


def test_a_released_posterior_composes_with_noise_on_tables() -> None:
    made, noise = (
        calibration.with_global(prior=(1.0, 1.0), total=50, epsilon=1.0, unit=UNIT),
        Gaussian(sigma=8, unit=UNIT),
    )
    cost = Cost.of(made, 5) + Cost.of(noise, 3)
    assert max(Cost.of(made, 5).epsilon(1e-6), Cost.of(noise, 3).epsilon(1e-6)) < cost.epsilon(1e-6)
    assert cost.epsilon(1e-6) < Cost.of(made, 5).epsilon(1e-7) + Cost.of(noise, 3).epsilon(9e-7)
