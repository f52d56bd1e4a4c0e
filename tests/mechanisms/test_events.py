"""DpEvents of dp-accounting in a cost and in a ledger."""

from __future__ import annotations

import json
import math
from pathlib import Path

import dp_accounting as dpa
import pytest
from tests.commands import dpbayes

from dpbayes import ApproxDP, Cost, Gaussian, Ledger, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms.kinds import from_record
from dpbayes.mechanisms.stated import ForeignEvent, GaussianEvent
from dpbayes.privacy import AdaptiveDP, events
from dpbayes.privacy.convert import gaussian_epsilon
from dpbayes.privacy.pld import epsilon_of
from dpbayes.privacy.pld import read as pld_read

UNIT = Unit(adjacency="add-remove")
TRAINING = dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(1.0)), 50)


def test_compositions_are_taken_apart_and_repeated_events_counted() -> None:
    event = dpa.ComposedDpEvent([dpa.GaussianDpEvent(4.0), TRAINING, dpa.SelfComposedDpEvent(dpa.NoOpDpEvent(), 3)])
    cost = ForeignEvent.cost(event, UNIT, what="x", times=2)
    assert sorted(times for _, times in cost.entries) == [2, 100]
    assert [name for name, _ in events.leaves(dpa.GaussianDpEvent(4.0))] == [
        '{"class":"GaussianDpEvent","noise_multiplier":4.0}'
    ]


def test_gaussian_events_cost_what_the_gaussian_formula_says() -> None:
    cost = ForeignEvent.cost(dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(8.0), 16), UNIT, what="x")
    (leaf, _), *_ = cost.entries
    assert isinstance(leaf, GaussianEvent)
    assert leaf.multiplier == 8.0
    assert leaf.gdp()[0] == pytest.approx(0.125)
    assert leaf.concentrated(5.0) == pytest.approx(1 / 128)
    assert cost.renyi(3.0) == pytest.approx(16 * 3 / 128)
    assert cost.epsilon(1e-6) == pytest.approx(gaussian_epsilon(0.5, 1e-6), rel=1e-9)


def test_a_sampled_event_costs_what_its_own_accountants_say() -> None:
    cost = ForeignEvent.cost(TRAINING, UNIT, what="training")
    for accountant in (dpa.rdp.RdpAccountant(), dpa.pld.PLDAccountant()):
        accountant.compose(TRAINING)
        assert cost.epsilon(1e-6) <= accountant.get_epsilon(1e-6) * 1.02
    pld = dpa.pld.PLDAccountant(value_discretization_interval=1e-4)
    pld.compose(TRAINING)
    assert cost.epsilon(1e-6) >= pld.get_epsilon(1e-6) * 0.97
    rdp = dpa.rdp.RdpAccountant([5.0])
    rdp.compose(TRAINING)
    assert cost.renyi(5.0) == pytest.approx(rdp._rdp[0], rel=1e-9)


def test_the_concentrated_cost_of_a_sampled_event_bounds_every_order() -> None:
    (leaf, _), *_ = ForeignEvent.cost(TRAINING, UNIT, what="x").entries
    rho = leaf.concentrated(6.0)
    assert all(leaf.renyi(order) <= rho * order for order in (1.01, 1.7, 3.0, 5.9))
    assert leaf.concentrated(math.inf) == math.inf


def test_an_event_of_distributions_alone_has_no_divergences_and_still_a_cost() -> None:
    (leaf, _), *_ = ForeignEvent.cost(dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 1), UNIT, what="x").entries
    assert leaf.renyi(2.0) == math.inf
    assert leaf.epsilon(1e-9) <= 0.5 * (1 + 1e-2)
    assert leaf.delta(0.0) == pytest.approx(math.tanh(0.25), rel=5e-3)  # in steps, rounded up


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_both_rules_admit_events_and_never_below_their_cost(rule: str) -> None:
    limit = AdaptiveDP(epsilon=3.0, delta=1e-6, rule=rule)
    for event in (dpa.GaussianDpEvent(9.0), dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(1.0))):
        cost = ForeignEvent.cost(event, UNIT, what="x")
        assert 0 < limit.part(cost) < 1
        assert limit.amount(cost) >= cost.epsilon(1e-6) * (1 - 1e-9)


def test_a_ledger_holds_events_beside_releases_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("d.ledger")
    ledger.open("d", ApproxDP(epsilon=3, delta=1e-6), UNIT)
    cost = ForeignEvent.cost(TRAINING, UNIT, what="training") + Cost.of(Gaussian(sigma=6.0, unit=UNIT))
    Path("series.json").write_text(json.dumps([{**made.record(), "times": k} for made, k in cost.entries]))
    done = dpbayes("ledger", "charge", "d.ledger", "series.json", "--about", "training")
    assert done.code == 0, done.err
    again = Ledger("d.ledger").account("d").cost
    assert again.renyi(2.0) == pytest.approx(cost.renyi(2.0))
    assert from_record(cost.entries[0][0].record()) == cost.entries[0][0]


@pytest.mark.parametrize(
    "event",
    [
        dpa.NonPrivateDpEvent(),
        dpa.UnsupportedDpEvent(),
        dpa.NoOpDpEvent(),
        dpa.GaussianDpEvent(0.0),
        dpa.GaussianDpEvent(-1.0),
        dpa.GaussianDpEvent(math.nan),
        dpa.PoissonSampledDpEvent(0.1, dpa.LaplaceDpEvent(0.0)),
        dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(0.0)),
        dpa.PoissonSampledDpEvent(0.0, dpa.GaussianDpEvent(1.0)),
        dpa.LaplaceDpEvent(0.0),
        dpa.dp_event.DiscreteLaplaceDpEvent(0.0, 1),
        dpa.dp_event.MixtureOfGaussiansDpEvent(0.0, [0.0, 1.0], [0.5, 0.5]),
        dpa.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 0.0),
        dpa.dp_event.RandomizedResponseDpEvent(0.0, 4),
        dpa.ComposedDpEvent([dpa.GaussianDpEvent(1.0), dpa.LaplaceDpEvent(0.0)]),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), 0),
        "GaussianDpEvent",
    ],
    ids=repr,
)
def test_events_that_say_nothing_are_refused(event: object) -> None:
    with pytest.raises(InvalidArgument, match=r"Event|Record"):
        ForeignEvent.cost(event, UNIT, what="x")


@pytest.mark.parametrize(
    ("event", "kind", "name", "answer"),
    [
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 1), dpa.pld.PLDAccountant, "get_delta", 0.9),
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 1), dpa.pld.PLDAccountant, "get_epsilon", 7.0),
        (dpa.ZCDpEvent(0.1), dpa.rdp.RdpAccountant, "get_epsilon", 70.0),
    ],
)
def test_an_accountant_that_keeps_a_part_elsewhere_is_not_believed(
    event: object, kind: type, name: str, answer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As later versions do with the δ of an (ε, δ) event: what is said in public is more than what can be read."""
    assert ForeignEvent.cost(event, UNIT, what="x").epsilon(1e-6) > 0
    events._read.cache_clear()
    monkeypatch.setattr(kind, name, lambda *_: answer)
    with pytest.raises(InvalidArgument, match="price"):
        ForeignEvent.cost(event, UNIT, what="x")
    events._read.cache_clear()


def test_mass_at_an_infinite_loss_is_kept() -> None:
    """Truncated noise of dp-accounting has some; no ε is enough below it."""
    made = dpa.pld.privacy_loss_distribution.from_privacy_parameters(
        dpa.pld.common.DifferentialPrivacyParameters(1.0, 0.1)
    )
    read = pld_read(made, 1e-4)
    assert read.delta(1.0) == pytest.approx(made.get_delta_for_epsilon(1.0), rel=1e-9)
    assert read.delta(1.0) == pytest.approx(0.1, rel=1e-4)
    assert epsilon_of(read, 0.09) == math.inf


def test_units_on_which_dp_accounting_disagrees_with_itself_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="add-remove"):
        ForeignEvent.cost(dpa.GaussianDpEvent(2.0), Unit(adjacency="replace-one"), what="x")
    with pytest.raises(InvalidArgument, match="one row"):
        ForeignEvent.cost(TRAINING, Unit(adjacency="add-remove", max_rows=2), what="x")
    one, two = (
        dpa.rdp.RdpAccountant([2.0], dpa.NeighboringRelation.REPLACE_ONE),
        dpa.pld.PLDAccountant(dpa.NeighboringRelation.REPLACE_ONE),
    )
    for accountant in (one, two):
        accountant.compose(dpa.GaussianDpEvent(2.0))
    assert one._rdp[0] == pytest.approx(0.25)  # a shift of 1/z
    assert two.get_delta(0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-3)  # a shift of 2/z


@pytest.mark.parametrize(
    "text",
    ['{"class":"os"}', '{"class":"GaussianDpEvent"}', "[]", '{"class":"GaussianDpEvent","noise_multiplier":"1"}', "7"],
)
def test_records_of_no_event_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        ForeignEvent(event=text, unit=UNIT, what="x")
    with pytest.raises(InvalidArgument):
        events.read(text)


@pytest.mark.parametrize("shift", [-1.0, True, math.inf, math.nan])
def test_numbers_of_an_event_are_finite_and_not_negative(shift: float) -> None:
    record = {"class": "MixtureOfGaussiansDpEvent", "standard_deviation": 1.0, "sensitivities": [0.0, 1.0]}
    assert ForeignEvent(event=json.dumps({**record, "sampling_probs": [0.5, 0.5]}), unit=UNIT, what="x")
    wrong = {**record, "sensitivities": [0.0, shift], "sampling_probs": [0.5, 0.5]}
    with pytest.raises(InvalidArgument, match="can price"):
        ForeignEvent(event=json.dumps(wrong), unit=UNIT, what="x")
