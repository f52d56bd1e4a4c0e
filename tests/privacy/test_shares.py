"""What charges use of a limit: one δ for each step, balanced to the last digits, and priced once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp

from dpbayes import Adjacency, Cost, Dirichlet, Gaussian, Laplace, PrivacyUnit, PseudoRecords, Stated
from dpbayes.privacy import shares
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.shares import Step

UNIT = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
LIMIT = AdaptiveDP(epsilon=3, delta=1e-6)


def profile(shift: object, epsilon: object) -> mp.mpf:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), at 40 digits."""
    mu, at = mp.mpf(shift), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - at / mu) - mp.exp(at) * mp.ncdf(-mu / 2 - at / mu)


def stated(epsilon: float, delta: float) -> Stated:
    return Stated(epsilon_stated=epsilon, delta_stated=delta, unit=UNIT, what="a map")


CHARGES = [
    Cost.of(Laplace(scale=30.0, unit=UNIT)),
    Cost.of(Laplace(scale=1.0, unit=UNIT)),
    Cost.of(Laplace(scale=60.0, unit=UNIT), 20),
    Cost.of(Gaussian(sigma=15.0, unit=UNIT)),
    Cost.of(Dirichlet(weight=0.05, concentration=20.0, unit=UNIT)),
    Cost.of(Dirichlet(weight=0.05, concentration=20.0, unit=UNIT), 6),
    Cost.of(PseudoRecords(weight=0.1, concentration=4.0, records=200, unit=UNIT)),
    Cost.of(stated(0.1, 2e-9)),
    Cost.total(
        [stated(0.02, 1e-9), Laplace(scale=50.0, unit=UNIT), Dirichlet(weight=0.1, concentration=9.0, unit=UNIT)]
    ),
]


@pytest.mark.parametrize("slack", [None, 1e-8, 8e-7])
def test_the_written_argument_gives_no_more_than_the_claim(slack: float | None) -> None:
    """Theorem 3: Σ over pairs of e^E·δ_μ(ε − E), and Σ over steps of their one δ, for whatever is admitted."""
    limit = AdaptiveDP(epsilon=3, delta=1e-6, slack=slack)
    rng = np.random.default_rng(3)
    with mp.workdps(40):
        pairs = mp.fsum(
            mp.exp(pure) * profile(shift, mp.mpf(limit.epsilon) - mp.mpf(pure)) for pure, shift in limit.menu if shift
        )
        assert limit.menu[-1] == (3.0, 0.0)  # which needs no δ
        for _ in range(30):
            history: list[Cost] = []
            for number in rng.integers(len(CHARGES), size=60):
                if limit.used([*history, CHARGES[number]]) <= 1:
                    history.append(CHARGES[number])
            charged = [step for cost in history for step in shares.steps(limit, cost.entries)]
            flagged = mp.fsum(step.times * mp.mpf(step.flagged) for step in charged)
            assert pairs + flagged <= mp.mpf(limit.delta)
            assert any(within(charged, *pair) for pair in limit.menu)


def within(charged: list[Step], epsilon: float, shift: float) -> bool:
    """Whether each step can count as pure or as covered so that both sums stay within a pair, by trying the shares."""
    by_share = [
        (0, step.times * step.pure)
        if not shift or (epsilon and step.pure / epsilon <= step.square / shift**2)
        else (1, step.times * step.square)
        for step in charged
    ]
    sums = [math.fsum(size for kind, size in by_share if kind == wanted) for wanted in (0, 1)]
    return sums[0] <= epsilon * (1 + 1e-12) and sums[1] <= shift**2 * (1 + 1e-12)


@pytest.mark.parametrize("cost", CHARGES, ids=range(len(CHARGES)))
def test_each_step_is_what_it_is_said_to_be(cost: Cost) -> None:
    """All steps of a charge together: pure but for their flags, and covered by a Gaussian pair but for their flags."""
    charged = shares.steps(LIMIT, cost.entries)
    flagged = math.fsum(step.times * step.flagged for step in charged)
    shift = math.sqrt(math.fsum(step.times * step.square for step in charged))
    pure = math.fsum(step.times * step.pure for step in charged)
    for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0, 2.0):
        true = mechanism.delta(epsilon) if (mechanism := cost._single) else cost.pld().delta(epsilon)
        assert true <= (flagged + float(profile(shift, epsilon))) * (1 + 1e-6) + 1e-14 * cost.releases
    betrayed = math.fsum(times * getattr(mechanism, "delta_stated", 0.0) for mechanism, times in cost.entries)
    assert flagged >= betrayed
    rests = [getattr(mechanism, "epsilon_stated", None) or mechanism.renyi(math.inf) for mechanism, _ in cost.entries]
    assert pure == pytest.approx(math.fsum(rest * times for rest, (_, times) in zip(rests, cost.entries, strict=True)))


@pytest.mark.parametrize("one", [1.0, 0.1, 0.01])
def test_pure_releases_run_out_of_epsilon_before_slack(one: float) -> None:
    cost = Cost.of(Laplace(scale=2.0 / one, unit=UNIT))
    for history in ([cost] * round(3.0 / one), [cost * round(3.0 / one)]):
        assert LIMIT.used(history) <= 1 + 1e-9
        pure, square, betrayed = shares.uses(
            LIMIT, LIMIT.menu[-1], [*itertools.chain(*(shares.steps(LIMIT, each.entries) for each in history))]
        )
        assert (pure, square) == (pytest.approx(1.0), 0.0)
        assert betrayed <= 1 + 1e-9


def test_a_history_longer_than_a_thousand_charges_is_priced_once() -> None:
    costs = [Cost.of(Laplace(scale=40000.0 + i, unit=UNIT)) for i in range(900)]
    used = LIMIT.used(costs)
    before = shares.steps.cache_info().misses
    assert before >= len(costs)
    assert LIMIT.used(costs) == used
    assert shares.steps.cache_info().misses == before


@pytest.mark.parametrize("mechanism", [CHARGES[4].entries[0][0], Dirichlet(weight=0.3, concentration=30.0, unit=UNIT)])
def test_shift_and_slack_are_used_up_together(mechanism: Priced) -> None:
    cost, shift, slack = Cost.of(mechanism), LIMIT.shift, LIMIT.slack
    assert slack is not None
    (found,) = shares.steps(LIMIT, cost.entries)

    def mu(delta: float) -> float:
        return max(corner.mu(delta) for corner in shares._corners(cost))

    part = found.flagged / slack
    assert mu(found.flagged) ** 2 == found.square <= part * shift**2  # on the safe side
    less = part * (1 - 1e-8)
    assert (mu(less * slack) / shift) ** 2 > less  # and no more than needed


def test_what_needs_more_than_the_limit_says_how_much() -> None:
    cost = Cost.of(Dirichlet(weight=3.0, concentration=2.0, unit=UNIT))
    assert 1.0 < LIMIT.used([cost]) < math.inf
    assert LIMIT.gap(cost) > 0


def test_many_different_releases_take_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of many tables prices many such lists."""
    searches, search = [], shares.safe_root
    monkeypatch.setattr(shares, "safe_root", lambda *args, **named: searches.append(1) or search(*args, **named))
    limit = AdaptiveDP(epsilon=2.9, delta=1e-6)
    limit.used([Cost.total(Laplace(scale=300.0 + scale, unit=UNIT) for scale in range(60))])
    assert len(searches) <= 1
