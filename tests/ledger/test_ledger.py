"""The laws of charging."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, InvalidArgument, LedgerError, ReleaseError, UnitMismatch
from dpbayes.ledger.history import read
from dpbayes.ledger.ledger import Ledger, Receipt
from dpbayes.mechanisms import Stated
from dpbayes.privacy.calibrate import Family, calibrate
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)
BUDGETS = [
    PureDP(epsilon=1.0),
    ApproxDP(epsilon=1.0, delta=1e-6),
    RDP(order=4.0, epsilon=0.5),
    TCDP(rho=0.05, omega=20.0),
    ZCDP(rho=0.05),
]
EVERY_KIND = [
    Laplace(scale=20.0, unit=UNIT),
    Gaussian(sigma=30.0, unit=UNIT),
    Dirichlet(weight=0.5, concentration=60.0, unit=UNIT),
    Stated(epsilon_stated=0.1, delta_stated=1e-8, unit=UNIT, what="a histogram of another library"),
]


@pytest.mark.parametrize("mechanism", EVERY_KIND, ids=lambda one: type(one).__name__)
def test_the_ledger_keeps_what_was_charged_and_never_prices_it_below_its_exact_cost(
    mechanism: Gaussian, ledger: Ledger
) -> None:
    ledger.open("census", ApproxDP(epsilon=5.0, delta=1e-6), UNIT)
    ledger.charge("census", Cost.of(mechanism), about="sex, income")
    account = ledger.account("census")
    assert account.cost == Cost.of(mechanism)
    assert account.spent == account.budget.amount(account.cost) >= mechanism.epsilon(1e-6)
    if isinstance(mechanism, Gaussian):
        assert account.spent <= 1.003 * mechanism.epsilon(1e-6)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.name)
def test_repeating_a_charge_costs_k_times(budget: Guarantee, ledger: Ledger) -> None:
    one = Cost.of(Laplace(scale=20.0, unit=UNIT))
    for name in ("at once", "one by one"):
        ledger.open(name, budget, UNIT)
    ledger.charge("at once", one * 3)
    for _ in range(3):
        ledger.charge("one by one", one)
    at_once, one_by_one = (ledger.account(name).spent for name in ("at once", "one by one"))
    assert at_once == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.name)
def test_a_refusal_names_its_numbers_and_leaves_the_ledger_unchanged(budget: Guarantee, path: Path) -> None:
    ledger = Ledger(path)
    ledger.open("census", budget, UNIT)
    some = Cost.of(Laplace(scale=20.0, unit=UNIT))
    ledger.charge("census", some)
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match="raise the limit") as refusal:
        ledger.charge("census", some * 100)
    account = ledger.account("census")
    assert path.read_bytes() == before
    assert refusal.value.asked == account.budget.amount(some * 100)
    assert refusal.value.spent == pytest.approx(account.budget.amount(some))
    assert refusal.value.spent > 0
    assert (
        refusal.value.limit
        == account.budget.size
        == pytest.approx(getattr(budget, "rho", getattr(budget, "epsilon", 0)))
    )
    assert 0 < refusal.value.fits < refusal.value.limit


def test_what_would_fit_fits_and_little_more_does_not(ledger: Ledger) -> None:
    budget = ApproxDP(epsilon=1.0, delta=1e-6)
    ledger.open("census", budget, UNIT)
    ledger.charge("census", Cost.of(Gaussian(sigma=9.0, unit=UNIT)) + Cost.of(Laplace(scale=30.0, unit=UNIT)))
    account = ledger.account("census")
    left = account.left()

    def gaussian_of(epsilon: float) -> Cost:
        low, high = 1.0, 1000.0
        while high - low > 1e-9 * high:
            sigma = (low + high) / 2
            low, high = (sigma, high) if Gaussian(sigma=sigma, unit=UNIT).epsilon(1e-6) > epsilon else (low, sigma)
        return Cost.of(Gaussian(sigma=high, unit=UNIT))

    assert account.affords(gaussian_of(left * 0.98))  # exactly calibrated: the rule costs a little more
    assert not account.affords(gaussian_of(left * 1.01))
    for mechanism in ("gaussian", "laplace"):
        family = Family(name=mechanism, make=lambda x, kind=mechanism: KINDS[kind](x))
        assert account.affords(Cost.of(calibrate(family, account.priced(ApproxDP(epsilon=left, delta=1e-6)))))


KINDS = {
    "gaussian": lambda sigma: Gaussian(sigma=sigma, unit=UNIT),
    "laplace": lambda scale: Laplace(scale=scale, unit=UNIT),
}


def test_when_the_slack_is_used_up_only_pure_releases_fit(ledger: Ledger) -> None:
    ledger.open("census", ApproxDP(epsilon=1.0, delta=1e-6), UNIT)
    ledger.charge("census", Cost.of(Stated(epsilon_stated=0.1, delta_stated=5e-8, unit=UNIT, what="x")))
    for more in (
        Stated(epsilon_stated=1e-6, delta_stated=1e-15, unit=UNIT, what="x"),
        Gaussian(sigma=1e6, unit=UNIT),
        Dirichlet(weight=0.01, concentration=60.0, unit=UNIT),
    ):
        with pytest.raises(BudgetExceeded):
            ledger.charge("census", Cost.of(more))
    ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=UNIT)))  # pure releases need none


def test_a_charge_may_use_the_last_digit_of_the_limit_and_nothing_after_it(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    for _ in range(10):
        ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=UNIT)))
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", Cost.of(Laplace(scale=1e7, unit=UNIT)))


def test_a_tiny_budget_is_not_drowned_by_the_tolerance(ledger: Ledger) -> None:
    ledger.open("census", ZCDP(rho=1e-12), UNIT)
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", Cost.of(Gaussian(sigma=5e5, unit=UNIT)))


def test_mixing_units_is_refused(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    other = Unit(adjacency=Adjacency.REPLACE_ONE)
    with pytest.raises(UnitMismatch):
        ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=other)))
    with pytest.raises(UnitMismatch):  # a cost that lies about its unit
        ledger.charge("census", Cost(unit=UNIT, entries=((Laplace(scale=10.0, unit=other), 1),)))
    assert len(ledger.account("census").entries) == 1


@pytest.mark.parametrize(
    "cost",
    [
        Cost(unit=UNIT),
        Cost(unit=UNIT, entries=((Laplace(scale=10.0, unit=UNIT), 2.5),)),  # type: ignore[arg-type]
        Cost(unit=UNIT, entries=((Laplace(scale=10.0, unit=UNIT), 10**12),)),
        Cost(unit=UNIT, entries=((object(), 1),)),  # type: ignore[arg-type]
    ],
)
def test_a_cost_that_no_reader_could_price_is_refused(cost: Cost, ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    with pytest.raises(InvalidArgument):
        ledger.charge("census", cost)
    assert len(ledger.account("census").entries) == 1


def test_data_sets_of_one_ledger_have_budgets_of_their_own(ledger: Ledger) -> None:
    ledger.open("north", PureDP(epsilon=0.1), UNIT)
    ledger.open("south", ZCDP(rho=1.0), Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=3))
    ledger.charge("north", Cost.of(Laplace(scale=10.0, unit=UNIT)))
    assert ledger.datasets() == ["north", "south"]
    assert ledger.account("north").left() == pytest.approx(0.0)
    assert ledger.account("south").left() == 1.0


def test_a_data_set_is_opened_once(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    with pytest.raises(LedgerError, match="already in it"):
        ledger.open("census", PureDP(epsilon=9.0), UNIT)
    assert ledger.account("census").budget.size == 1.0


@pytest.mark.parametrize("limit", BUDGETS, ids=lambda one: one.name)
def test_opening_a_data_set_again_as_it_is_changes_nothing(limit: Guarantee, ledger: Ledger) -> None:
    ledger.open("census", limit, UNIT, schema="a" * 64)
    ledger.charge("census", Cost.of(Laplace(scale=20.0, unit=UNIT)))
    before = ledger.account("census")
    ledger.open("census", limit, UNIT, schema="a" * 64)
    assert ledger.account("census") == before
    wider = Unit(adjacency=Adjacency.ADD_REMOVE, max_rows=3)
    for unit, schema in ((UNIT, "b" * 64), (wider, "a" * 64)):
        with pytest.raises(LedgerError, match="already in it, with the limit"):
            ledger.open("census", limit, unit, schema=schema)
    assert ledger.account("census") == before


def test_an_unknown_data_set_is_refused(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    with pytest.raises(LedgerError, match="no data set 'sensus'"):
        ledger.account("sensus")


@pytest.mark.parametrize("name", ["", "two\nlines", "nul\0", "x" * 1001, "\ud800"])
def test_names_are_plain_text(name: str, ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="line of text"):
        ledger.open(name, PureDP(epsilon=1.0), UNIT)


@pytest.mark.parametrize("budget", [RDP(order=math.inf, epsilon=1.0), TCDP(rho=1.0, omega=math.inf)])
def test_an_infinite_order_is_asked_for_by_its_own_notion(budget: Guarantee, ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="PureDP"):
        ledger.open("census", budget, UNIT)


def test_the_owner_can_raise_the_limit_and_the_chain_remembers_why(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=0.1), UNIT)
    ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=UNIT)))
    ledger.change_budget("census", PureDP(epsilon=0.3), about="board, 3 May")
    ledger.charge("census", Cost.of(Laplace(scale=5.0, unit=UNIT)))
    assert [entry.kind for entry in ledger.account("census").entries] == ["budget", "charge", "budget", "charge"]


def test_only_the_holder_of_a_receipt_can_void_its_charge(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    receipt = ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=UNIT)))
    forged = Receipt(dataset="census", serial=receipt.serial, hash=receipt.hash, key="0" * 64)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.void(forged, about="I want it back")
    ledger.void(receipt, about="the engine was not reached")
    account = ledger.account("census")
    assert account.left() == account.budget.size
    assert receipt.key not in repr(receipt)
    assert receipt.key not in json.dumps(receipt.record())


@pytest.mark.parametrize("first", ["confirm", "void"])
def test_a_charge_is_settled_once(first: str, ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    receipt = ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=UNIT)))
    ledger.confirm(receipt, digest="d") if first == "confirm" else ledger.void(receipt, about="not reached")
    with pytest.raises(ReleaseError, match="must not be published"):
        ledger.confirm(receipt, digest="another draw")
    with pytest.raises(LedgerError, match="already"):
        ledger.void(receipt, about="I want it back")


def test_to_note_the_same_draw_again_changes_nothing(ledger: Ledger) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    receipt = ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=UNIT)))
    ledger.confirm(receipt, digest="d")
    before = ledger.export("census")
    ledger.confirm(receipt, digest="d")
    assert ledger.export("census") == before


def test_a_changed_fingerprint_is_noticed_and_never_stored_as_it_is_or_exported(path: Path) -> None:
    ledger = Ledger(path)
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
    assert [ledger.remember_fingerprint("census", value) for value in ("rows=81", "rows=81", "rows=82", "rows=82")] == [
        False,
        False,
        True,
        False,
    ]
    assert b"rows=8" not in path.read_bytes()
    assert "fingerprint" not in "".join(ledger.export("census"))
    with pytest.raises(LedgerError, match="no data set"):
        ledger.remember_fingerprint("sensus", "rows=81")


class Machine(RuleBasedStateMachine):
    """Any sequence of charges, voids, confirmations and changes of the limit against a list in memory."""

    @initialize(budget=st.sampled_from([PureDP(epsilon=0.5), RDP(order=3.0, epsilon=0.05), ZCDP(rho=0.02)]))
    def start(self, budget: Guarantee) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(Path(self.folder.name) / "ledger")
        self.budget = budget
        self.ledger.open("census", budget, UNIT)
        self.spent: Counter[Laplace] = Counter()
        self.open: list[tuple[Receipt, Laplace, int]] = []

    def total(self) -> Cost:
        return Cost(unit=UNIT, entries=tuple((one, times) for one, times in self.spent.items() if times))

    @rule(scale=st.sampled_from([5.0, 10.0, 33.3]), times=st.integers(1, 3))
    def charge(self, scale: float, times: int) -> None:
        mechanism = Laplace(scale=scale, unit=UNIT)
        cost = Cost.of(mechanism, times)
        beyond = self.budget.gap(self.total() + cost)
        fits, in_doubt = beyond <= 1e-15, abs(beyond) <= 1e-12  # the last bit of a sum may decide against a charge
        before = self.ledger.account("census").head
        try:
            receipt = self.ledger.charge("census", cost)
        except BudgetExceeded:
            assert in_doubt or not fits
            assert self.ledger.account("census").head == before
        else:
            assert fits
            self.spent[mechanism] += times
            self.open.append((receipt, mechanism, times))

    @precondition(lambda self: self.open)
    @rule(pick=st.integers(0, 99), kept=st.booleans())
    def settle(self, pick: int, kept: bool) -> None:
        receipt, mechanism, times = self.open.pop(pick % len(self.open))
        if kept:
            self.ledger.confirm(receipt)
        else:
            self.ledger.void(receipt, about="nothing was read")
            self.spent[mechanism] -= times

    @precondition(lambda self: isinstance(self.budget, PureDP))
    @rule(epsilon=st.sampled_from([0.2, 0.5, 0.9]))
    def change(self, epsilon: float) -> None:
        self.budget = PureDP(epsilon=epsilon)
        self.ledger.change_budget("census", self.budget, about="decided")

    @invariant()
    def the_total_is_the_cost_of_the_accepted_charges(self) -> None:
        account = self.ledger.account("census")
        assert Counter(dict(account.cost.entries)) == +self.spent
        assert account.budget == self.budget
        assert read(self.ledger.export("census"))["census"] == account

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


Machine.TestCase.settings = settings(
    max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_history_adds_up = Machine.TestCase
