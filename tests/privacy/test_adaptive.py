"""Limits for adaptive analysts: the sums, the game that broke the composed limit, and the price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binom

from dpbayes import RDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import PseudoRecords, Stated
from dpbayes.mechanisms.tuning import ConcentrationCurve, gaussian_noise, laplace_noise
from dpbayes.privacy import adaptive
from dpbayes.privacy.adaptive import AdaptiveDP, Step
from dpbayes.privacy.calibrate import calibrate, fit_to_limit, guarantee_from_record
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.guarantee import Charged, Guarantee
from dpbayes.schema import Adjacency

ADD = Unit(adjacency=Adjacency.ADD_REMOVE)
REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
LIMIT = ApproxDP(epsilon=1, delta=1e-6)
KEPT = {rule: AdaptiveDP(epsilon=1, delta=1e-6, rule=rule) for rule in ("gaussian", "renyi")}
each_rule = pytest.mark.parametrize("rule", KEPT)


# -- the game of findings: rounds of small noise, then a release whose kind depends on what came out ----------------


def hockey_stick(mechanism: Priced, epsilon: float) -> float:
    """At any real ε, for a pair that is the same in both directions."""
    return mechanism.delta(epsilon) if epsilon >= 0 else 1 - math.exp(epsilon) * (1 - mechanism.delta(-epsilon))


def delta_of_the_game(rounds: int, epsilon: float, finals: list[Priced]) -> float:
    """The true δ at ε = 1 of the whole interaction, by enumeration: the sum of the ±ε of the rounds is all that counts.

    After each outcome the analyst takes the final release that hurts most.
    """
    truth = 1 / (1 + math.exp(-epsilon))
    return sum(
        binom.pmf(k, rounds, truth) * max(hockey_stick(one, 1.0 - (2 * k - rounds) * epsilon) for one in finals)
        for k in range(rounds + 1)
    )


def largest(make: Callable[[float], Priced], fits: Callable[[Cost], bool]) -> Priced:
    """The least noise that fits; more noise fits too."""
    low, high = 0.3, 1e6
    for _ in range(45):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(Cost.of(make(middle))) else (middle, high)
    return make(high)


def stated(noise: float) -> Stated:
    return Stated(epsilon_stated=0.1 / noise, delta_stated=min(1e-6 / noise, 0.5), unit=ADD, what="another library")


FINALS = [lambda x: Gaussian(sigma=x, unit=ADD), lambda x: Laplace(scale=x, unit=ADD), stated]


@pytest.mark.parametrize("rounds", [1, 20])
def test_the_composed_limit_is_broken_by_a_choice_that_depends_on_outputs(rounds: int) -> None:
    first = Cost.of(Laplace(scale=1 / 0.03, unit=ADD), rounds)
    finals = [largest(make, lambda cost: LIMIT.gap(first + cost) <= 0) for make in FINALS]
    for one in finals:  # each on its own keeps the promise
        assert delta_of_the_game(rounds, 0.03, [one]) <= 1.0001e-6
    assert delta_of_the_game(rounds, 0.03, finals) > (1.9e-6 if rounds == 20 else 1.2e-6)


@each_rule
@pytest.mark.parametrize("rounds", [1, 20])
def test_the_adaptive_limit_stops_it(rule: str, rounds: int) -> None:
    limit, one = KEPT[rule], Cost.of(Laplace(scale=1 / 0.03, unit=ADD))
    before = [one] * rounds
    assert limit.used(before) < 1
    finals = [largest(make, lambda cost: limit.used([*before, cost]) <= 1) for make in FINALS]
    assert 1e-9 < delta_of_the_game(rounds, 0.03, finals) <= 1e-6


# -- sums ------------------------------------------------------------------------------------------------------


MECHANISMS: list[Priced] = [
    Gaussian(sigma=20.0, unit=REPLACE),
    Gaussian(sigma=2e5, unit=REPLACE),
    Laplace(scale=40.0, unit=REPLACE),
    Dirichlet(weight=0.2, concentration=30.0, unit=REPLACE),
    Stated(epsilon_stated=0.02, delta_stated=1e-10, unit=REPLACE, what="a map"),
]


@each_rule
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: f"{type(one).__name__}-{MECHANISMS.index(one)}")
def test_what_a_charge_is_said_to_cost_is_true_of_it(rule: str, mechanism: Priced) -> None:
    """ε by the rule, at the limit's δ, is never below the exact one; charged together is never dearer than apart."""
    limit = KEPT[rule]
    for times in (1, 4):
        cost = Cost.of(mechanism, times)
        assert limit.amount(cost) >= cost.epsilon(limit.delta) * (1 - 1e-9)
        assert 0 < limit.part(cost) <= limit.used([Cost.of(mechanism)] * times) * (1 + 1e-12)


@each_rule
def test_the_whole_limit_is_its_epsilon_and_parts_are_less(rule: str) -> None:
    limit = KEPT[rule]
    assert limit.at(1.0) == pytest.approx(1.0, rel=1e-9)
    assert limit.at(0.0) == 0.0
    values = [limit.at(part / 20) for part in range(21)]
    assert values == sorted(values)


def test_a_mixture_uses_shift_and_slack_and_neither_exceeds_its_limit() -> None:
    limit = KEPT["gaussian"]
    dirichlet = MECHANISMS[3]
    part = limit.part(Cost.of(dirichlet))
    assert 0 < part < 1
    # the pair at the balance: a Gaussian of that share of the limit covers all but that share of the slack
    assert dirichlet.delta(0.3) <= part * 5e-8 + Gaussian(
        sigma=math.sqrt(2) / (limit.shift * math.sqrt(part)), unit=REPLACE
    ).delta(0.3)
    assert limit.part(Cost.of(Stated(epsilon_stated=1e-9, delta_stated=2.5e-8, unit=ADD, what="x"))) == pytest.approx(
        0.5
    )


def test_a_limit_with_a_large_delta_has_a_number_for_every_charge() -> None:
    """Gaussian noise that it allows has ε = 0 at this δ."""
    limit = AdaptiveDP(epsilon=0.1, delta=0.2, rule="renyi")
    assert 0 < limit.spent([Cost.of(Laplace(scale=40.0, unit=REPLACE))]) <= 0.1


# -- targets ---------------------------------------------------------------------------------------------------


@each_rule
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (0.3, 1e-9), (1.0, 1e-6)])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "dirichlet"])
def test_a_target_priced_by_the_limit_keeps_its_promise_and_costs_no_more_than_it_says(
    rule: str, kind: str, epsilon: float, delta: float
) -> None:
    limit, target = KEPT[rule], ApproxDP(epsilon=epsilon, delta=delta)
    goal = fit_to_limit(target, limit)
    made: dict[str, Callable[[Guarantee], Priced]] = {
        "gaussian": lambda goal: calibrate(gaussian_noise(REPLACE), goal, times=3),
        "laplace": lambda goal: calibrate(laplace_noise(REPLACE), goal, times=3),
        "dirichlet": lambda goal: ConcentrationCurve(target=goal, unit=REPLACE, releases=3).at(0.1),
    }
    cost = Cost.of(made[kind](goal), 3)
    assert target.gap(cost) <= 1e-9 * epsilon
    assert limit.used([cost]) <= 1
    if delta == limit.delta:
        assert limit.amount(cost) <= 1.01 * epsilon
    if kind == "gaussian" and rule == "gaussian":
        assert target.gap(cost) > -0.01 * epsilon


@each_rule
@pytest.mark.parametrize(
    "first", [Laplace(scale=4.0, unit=REPLACE), Gaussian(sigma=9.0, unit=REPLACE)], ids=["pure", "noise"]
)
def test_a_release_of_what_is_left_fits_and_keeps_its_promise(rule: str, first: Priced) -> None:
    limit, charged = KEPT[rule], [Cost.of(first)]
    left = limit.left(charged)
    assert 0.05 < left < 1
    goal = fit_to_limit(ApproxDP(epsilon=left, delta=1e-6), limit, charged)
    for family in (gaussian_noise(REPLACE), laplace_noise(REPLACE)):
        made = Cost.of(calibrate(family, goal))
        assert limit.used([*charged, made]) <= 1
        assert made.epsilon(1e-6) <= left


def test_pure_releases_alone_add_up_to_the_limit_as_pure_ones_do() -> None:
    """They are an item of the menu that needs no δ; beside them Gaussian noise still has some room."""
    limit = AdaptiveDP(epsilon=2, delta=1e-6)
    half = Cost.of(Laplace(scale=2.0, unit=REPLACE))
    assert limit.used([half]) == pytest.approx(0.5)
    assert limit.amount(half) == pytest.approx(1.0)
    assert limit.used([half, half]) == pytest.approx(1.0)
    assert limit.used([half, Cost.of(Gaussian(sigma=9.0, unit=REPLACE))]) <= 1 < limit.used([half, half, half])
    # the true cost of that mixture, fixed beforehand, is below the limit
    assert (half + Cost.of(Gaussian(sigma=9.0, unit=REPLACE))).epsilon(1e-6) <= 2


def test_other_targets_stay_as_they_are() -> None:
    for target in (PureDP(epsilon=1), RDP(order=3, epsilon=0.1)):
        assert fit_to_limit(target, KEPT["gaussian"]) is target


@each_rule
def test_equal_shares_fill_the_limit_and_no_more(rule: str) -> None:
    limit = KEPT[rule]
    one = calibrate(gaussian_noise(REPLACE), limit.share(7))
    assert 0.999 <= 7 * limit.part(Cost.of(one)) <= 1


# -- records ---------------------------------------------------------------------------------------------------


@each_rule
def test_records_hold_what_was_fixed_at_the_opening(rule: str) -> None:
    limit = KEPT[rule]
    assert guarantee_from_record(limit.record()) == limit
    assert ("order" in limit.record()) == (rule == "renyi")
    assert str(limit) == "ε=1 at δ=1e-06"


@pytest.mark.parametrize(
    "wrong",
    [
        {"slack": 1e-6},
        {"slack": 0.0},
        {"rule": "hope"},
        {"order": 3.0},
        {"rule": "renyi", "order": 1.5},
        {"epsilon": -1.0},
        {"delta": 0.0},
    ],
)
def test_limits_without_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        AdaptiveDP(**{"epsilon": 1.0, "delta": 1e-6, **wrong})  # type: ignore[arg-type]
    record = KEPT["gaussian"].record()
    with pytest.raises(InvalidArgument):
        guarantee_from_record({**record, "order": 2.0})


def test_the_order_is_the_best_for_what_the_slack_leaves() -> None:
    limit = AdaptiveDP(epsilon=1.0, delta=1e-6, slack=9e-7, rule="renyi")
    left = {order: adaptive._renyi_limit(order, 1.0, 1e-7) / order for order in np.geomspace(2.0, 200.0, 2000)}
    assert limit.order == pytest.approx(max(left, key=lambda order: left[order]), rel=0.01)


# -- the price -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize(("sigma", "epsilon"), [(5.0, 4.0), (20.0, 1.0), (100.0, 1.0)])
def test_gaussian_noise_loses_at_most_one_release_in_a_hundred(unit: Unit, sigma: float, epsilon: float) -> None:
    mechanism, composed = Gaussian(sigma=sigma, unit=unit), ApproxDP(epsilon=epsilon, delta=1e-6)
    one_by_one = math.floor(1 / AdaptiveDP(epsilon=epsilon, delta=1e-6).part(Cost.of(mechanism)))
    assert composed.gap(Cost.of(mechanism, one_by_one)) <= 0
    assert composed.gap(Cost.of(mechanism, math.ceil((one_by_one + 1) / 0.99))) > 0


def test_a_mixture_loses_at_most_a_fifth_by_the_renyi_rule() -> None:
    mixture = Cost.of(Gaussian(sigma=60, unit=REPLACE)) + Cost.of(Laplace(scale=60, unit=REPLACE))
    mixture = mixture + Cost.of(Dirichlet(weight=0.05, concentration=6.0, unit=REPLACE))
    one_by_one = 0
    charges: list[Cost] = []
    while KEPT["renyi"].used(more := [*charges, *(Cost.of(one) for one, _ in mixture.entries)]) <= 1:
        one_by_one, charges = one_by_one + 1, more
    assert one_by_one >= 10
    assert LIMIT.gap(mixture * one_by_one) <= 0
    assert LIMIT.gap(mixture * math.ceil((one_by_one + 1) / 0.8)) > 0


MIXED_HISTORY = [
    Cost.of([Gaussian(sigma=40.0, unit=ADD), Laplace(scale=30.0, unit=ADD), stated(9.0)][place % 3], 1 + place % 2)
    for place in range(12)
]
LIMITS = [*KEPT.values(), AdaptiveDP(epsilon=1, delta=1e-6, slack=5e-7), RDP(order=8, epsilon=2), LIMIT]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("history", [MIXED_HISTORY, MIXED_HISTORY[::3], [MIXED_HISTORY[0]] * 10, []])
def test_running_totals_are_what_is_spent_after_each_charge_to_the_last_bit(limit, history):
    totals = [limit.spent(history[: place + 1]) for place in range(len(history))]
    assert list(limit.running(history)) == totals
    assert list(limit.running(history, 3)) == totals[3:]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("place", [0, 1, 5, 12])
def test_sums_say_to_the_last_bit_what_the_charges_say_one_by_one(limit, place):
    costs = [*MIXED_HISTORY, *[MIXED_HISTORY[0]] * 7]
    charged = Charged(limit, tuple(costs[:place])).summed()
    for cost in costs[place:]:
        charged = charged.plus(cost)
    for found in (charged, charged.summed(), charged.summed().summed()):
        assert len(found) == len(costs)
        assert (limit.used(found), limit.spent(found), limit.left(found)) == (
            limit.used(costs),
            limit.spent(costs),
            limit.left(costs),
        )
        assert limit.routes(found) == limit.routes(costs)


def test_each_charge_of_a_running_total_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, used_by = [], adaptive.used_by

    def counted(*asked):
        looks.append(asked)
        return used_by(*asked)

    monkeypatch.setattr(adaptive, "used_by", counted)
    per_charge = []
    for many in (50, 200):
        looks.clear()
        list(KEPT["gaussian"].running([MIXED_HISTORY[0]] * many))
        per_charge.append(len(looks) / many)
    assert per_charge[0] == per_charge[1] == len(KEPT["gaussian"].menu)


UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
WIDE = AdaptiveDP(epsilon=3, delta=1e-6)


def profile(shift: object, epsilon: object) -> mp.mpf:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), at 40 digits."""
    mu, at = mp.mpf(shift), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - at / mu) - mp.exp(at) * mp.ncdf(-mu / 2 - at / mu)


def a_map(epsilon: float, delta: float) -> Stated:
    return Stated(epsilon_stated=epsilon, delta_stated=delta, unit=UNIT, what="a map")


CHARGES = [
    Cost.of(Laplace(scale=30.0, unit=UNIT)),
    Cost.of(Laplace(scale=1.0, unit=UNIT)),
    Cost.of(Laplace(scale=60.0, unit=UNIT), 20),
    Cost.of(Gaussian(sigma=15.0, unit=UNIT)),
    Cost.of(Dirichlet(weight=0.05, concentration=20.0, unit=UNIT)),
    Cost.of(Dirichlet(weight=0.05, concentration=20.0, unit=UNIT), 6),
    Cost.of(PseudoRecords(weight=0.1, concentration=4.0, records=200, unit=UNIT)),
    Cost.of(a_map(0.1, 2e-9)),
    Cost.total(
        [a_map(0.02, 1e-9), Laplace(scale=50.0, unit=UNIT), Dirichlet(weight=0.1, concentration=9.0, unit=UNIT)]
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
            charged = [step for cost in history for step in adaptive.steps(limit, cost.entries)]
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
    charged = adaptive.steps(WIDE, cost.entries)
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
        assert WIDE.used(history) <= 1 + 1e-9
        pure, square, betrayed = adaptive.uses(
            WIDE, WIDE.menu[-1], [*itertools.chain(*(adaptive.steps(WIDE, each.entries) for each in history))]
        )
        assert (pure, square) == (pytest.approx(1.0), 0.0)
        assert betrayed <= 1 + 1e-9


def test_a_history_longer_than_a_thousand_charges_is_priced_once() -> None:
    costs = [Cost.of(Laplace(scale=40000.0 + i, unit=UNIT)) for i in range(900)]
    used = WIDE.used(costs)
    before = adaptive.steps.cache_info().misses
    assert before >= len(costs)
    assert WIDE.used(costs) == used
    assert adaptive.steps.cache_info().misses == before


@pytest.mark.parametrize("mechanism", [CHARGES[4].entries[0][0], Dirichlet(weight=0.3, concentration=30.0, unit=UNIT)])
def test_shift_and_slack_are_used_up_together(mechanism: Priced) -> None:
    cost, shift, slack = Cost.of(mechanism), WIDE.shift, WIDE.slack
    assert slack is not None
    (found,) = adaptive.steps(WIDE, cost.entries)

    def mu(delta: float) -> float:
        return max(corner.mu(delta) for corner in adaptive._corners(cost))

    part = found.flagged / slack
    assert mu(found.flagged) ** 2 == found.square <= part * shift**2  # on the safe side
    less = part * (1 - 1e-8)
    assert (mu(less * slack) / shift) ** 2 > less  # and no more than needed


def test_what_needs_more_than_the_limit_says_how_much() -> None:
    cost = Cost.of(Dirichlet(weight=3.0, concentration=2.0, unit=UNIT))
    assert 1.0 < WIDE.used([cost]) < math.inf
    assert WIDE.gap(cost) > 0
    (step,) = adaptive.steps(WIDE, cost.entries)
    assert step.flagged <= WIDE.slack  # it lacks shift: no charge takes more than the whole slack


def test_many_different_releases_take_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of many tables prices many such lists."""
    searches, search = [], adaptive.safe_root
    monkeypatch.setattr(adaptive, "safe_root", lambda *args, **named: searches.append(1) or search(*args, **named))
    limit = AdaptiveDP(epsilon=2.9, delta=1e-6)
    limit.used([Cost.total(Laplace(scale=300.0 + scale, unit=UNIT) for scale in range(60))])
    assert len(searches) <= 1
