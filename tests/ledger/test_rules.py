"""What belongs to the ledger: the rule of a limit, the schema, the person; and ledgers that dpbayes 0.1 wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dpbayes import ZCDP, Adjacency, ApproxDP, Cost, Gaussian, Laplace, PrivacyUnit, PureDP
from dpbayes.errors import BudgetExceeded, DpbayesError, InvalidArgument, LedgerError, UnitMismatch
from dpbayes.ledger.entry import Entry, digest
from dpbayes.ledger.export import read
from dpbayes.ledger.ledger import Ledger
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.guarantee import Guarantee

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
LIMIT = ApproxDP(epsilon=1.0, delta=1e-6)
NOISE = Cost.of(Gaussian(sigma=30.0, unit=UNIT))
ONE, OTHER = "1" * 64, "2" * 64


# -- the rule --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_the_rule_is_fixed_at_the_opening_and_stays_when_the_limit_changes(rule: str, ledger: Ledger) -> None:
    ledger.open("census", LIMIT, UNIT, rule=rule, slack=1e-7)  # type: ignore[arg-type]
    assert ledger.account("census").budget == AdaptiveDP(epsilon=1.0, delta=1e-6, rule=rule, slack=1e-7)  # type: ignore[arg-type]
    ledger.change_budget("census", ApproxDP(epsilon=2.0, delta=1e-6), about="the board")
    budget = ledger.account("census").budget
    assert isinstance(budget, AdaptiveDP)
    assert (budget.epsilon, budget.rule) == (2.0, rule)


def test_charges_made_one_by_one_fill_the_limit_and_never_exceed_it(ledger: Ledger) -> None:
    ledger.open("census", LIMIT, UNIT)
    while ledger.account("census").affords(NOISE):
        ledger.charge("census", NOISE)
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", NOISE)
    account = ledger.account("census")
    one = account.budget.part(NOISE)
    assert account.used <= 1.0 < account.used + one
    assert account.spent <= 1.0
    # composed exactly they cost about the same: Gaussian noise loses next to nothing
    assert account.cost.epsilon(1e-6) > 0.98 * account.spent


def test_a_series_is_priced_by_its_composition(ledger: Ledger) -> None:
    for name in ("series", "one by one"):
        ledger.open(name, LIMIT, UNIT)
    ledger.charge("series", Cost.of(Laplace(scale=60.0, unit=UNIT), 20))
    for _ in range(20):
        ledger.charge("one by one", Cost.of(Laplace(scale=60.0, unit=UNIT)))
    together, apart = ledger.account("series"), ledger.account("one by one")
    assert together.cost == apart.cost
    assert together.cost.epsilon(1e-6) <= together.spent < 0.9 * apart.spent


# -- the schema ------------------------------------------------------------------------------------------------


def test_another_schema_is_refused_until_the_owner_accepts_it_with_a_reason(ledger: Ledger) -> None:
    ledger.open("census", LIMIT, UNIT, schema=ONE)
    ledger.charge("census", NOISE, schema=ONE)
    with pytest.raises(LedgerError, match="dpbayes ledger accept"):
        ledger.charge("census", NOISE, schema=OTHER)
    with pytest.raises(InvalidArgument, match="reason"):
        ledger.accept("census", OTHER, about=" ")
    ledger.accept("census", OTHER, about="regions were bought")
    for each in (ONE, OTHER, ""):  # a release without a schema, such as one made elsewhere, reads no table through it
        ledger.charge("census", NOISE, schema=each)
    account = ledger.account("census")
    assert account.schemas == (ONE, OTHER)
    assert read(ledger.export("census"))["census"] == account
    bodies = [charge.entry.body for charge in account.charges.values()]
    assert [body["schema"] for body in bodies] == [ONE, ONE, OTHER, ""]
    assert all({"dpbayes", "numpy"} <= set(body["software"]) for body in bodies)  # type: ignore[call-overload]


def test_without_a_registered_schema_the_first_that_is_charged_is_taken(ledger: Ledger) -> None:
    ledger.open("census", LIMIT, UNIT)
    ledger.charge("census", NOISE)
    ledger.charge("census", NOISE, schema=ONE)
    with pytest.raises(LedgerError, match="another schema"):
        ledger.charge("census", NOISE, schema=OTHER)


# -- the person ------------------------------------------------------------------------------------------------


def test_releases_per_person_and_per_row_do_not_share_a_ledger(ledger: Ledger) -> None:
    people = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE, person="id")
    ledger.open("census", LIMIT, people)
    ledger.charge("census", Cost.of(Gaussian(sigma=30.0, unit=people)))
    with pytest.raises(UnitMismatch, match=r"column 'id'.*owner's word"):
        ledger.charge("census", NOISE)
    assert ledger.account("census").unit.record() == {"adjacency": "add-remove", "max_rows": 1, "person": "id"}


# -- what dpbayes 0.1 wrote --------------------------------------------------------------------------------------


@pytest.fixture
def old(path: Path) -> Callable[..., Ledger]:
    """A ledger of format 1: its tables, its budget, and charges of Gaussian noise."""

    def make(budget: Guarantee = LIMIT, charges: int = 2) -> Ledger:
        details: dict[str, object] = {"format": 1, "budget": budget.record(), "unit": UNIT.record()}
        entries = [Entry.write(dataset="census", after=None, kind="budget", about="", **details)]
        for _ in range(charges):
            releases = [{"mechanism": Gaussian(sigma=6.2, unit=UNIT).record(), "times": 1}]
            entries.append(
                Entry.write(dataset="census", after=entries[-1], kind="charge", about="", releases=releases, lock=ONE)
            )
        with closing(sqlite3.connect(path)) as file:
            file.executescript(
                "CREATE TABLE dpbayes_ledger (format INTEGER PRIMARY KEY);"
                "CREATE TABLE dpbayes_datasets (dataset VARCHAR PRIMARY KEY, head VARCHAR, fingerprint VARCHAR);"
                "CREATE TABLE dpbayes_entries (dataset VARCHAR, serial INTEGER, text TEXT, hash VARCHAR,"
                " PRIMARY KEY (dataset, serial));"
                "INSERT INTO dpbayes_ledger VALUES (1);"
            )
            old_digest = f"{digest('')} {digest('rows=81')}"
            file.execute("INSERT INTO dpbayes_datasets VALUES ('census', ?, ?)", (entries[-1].hash, old_digest))
            rows = [("census", entry.serial, entry.text, entry.hash) for entry in entries]
            file.executemany("INSERT INTO dpbayes_entries VALUES (?, ?, ?, ?)", rows)
            file.commit()
        return Ledger(path)

    return make


def test_an_old_ledger_is_read_shown_and_exported_but_not_charged(old: Callable[..., Ledger], path: Path) -> None:
    ledger, before = old(), path.read_bytes()
    account = ledger.account("census")
    assert account.format == 1
    assert account.spent == account.cost.epsilon(1e-6) == pytest.approx(0.96, abs=0.005)
    assert read(ledger.export("census"))["census"] == account
    for attempt in (
        lambda: ledger.charge("census", NOISE),
        lambda: ledger.change_budget("census", ApproxDP(epsilon=9.0, delta=1e-6), about="x"),
        lambda: ledger.accept("census", ONE, about="x"),
    ):
        with pytest.raises(LedgerError, match="dpbayes ledger convert"):
            attempt()
    assert path.read_bytes() == before


def test_the_owner_converts_it_with_a_reason_and_history_is_priced_by_the_rule(old: Callable[..., Ledger]) -> None:
    ledger = old()
    with pytest.raises(InvalidArgument, match="reason"):
        ledger.convert("census", about="")
    ledger.convert("census", about="upgrade")
    account = ledger.account("census")
    assert isinstance(account.budget, AdaptiveDP)
    assert account.used == pytest.approx(2 * account.budget.part(Cost.of(Gaussian(sigma=6.2, unit=UNIT))))
    ledger.charge("census", Cost.of(Gaussian(sigma=1000.0, unit=UNIT)), schema=ONE)
    assert len(ledger.account("census").charges) == 3
    assert read(ledger.export("census"))["census"] == ledger.account("census")
    with pytest.raises(LedgerError, match="no conversion"):
        ledger.convert("census", about="again")


def test_a_converted_ledger_may_show_more_spent_than_its_limit_and_then_takes_nothing(
    old: Callable[..., Ledger],
) -> None:
    ledger = old(charges=3)
    ledger.convert("census", about="upgrade", rule="renyi")
    account = ledger.account("census")
    assert account.spent > 1.0
    assert account.left() == 0.0
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", Cost.of(Gaussian(sigma=1e6, unit=UNIT)))
    ledger.change_budget("census", ApproxDP(epsilon=2.0, delta=1e-6), about="raised")
    ledger.charge("census", Cost.of(Gaussian(sigma=1e6, unit=UNIT)))


def test_conversion_may_name_the_person_that_old_ledgers_left_out(old: Callable[..., Ledger]) -> None:
    ledger = old()
    ledger.convert("census", about="all releases used id", person="id")
    account = ledger.account("census")
    assert account.unit == PrivacyUnit(adjacency=Adjacency.ADD_REMOVE, person="id")
    assert account.used > 0
    ledger.charge("census", Cost.of(Gaussian(sigma=1000.0, unit=account.unit)))
    with pytest.raises(UnitMismatch):
        ledger.charge("census", NOISE)


def test_old_limits_that_are_sums_go_on_as_they_are(old: Callable[..., Ledger], path: Path) -> None:
    ledger = old(ZCDP(rho=1.0))
    ledger.charge("census", NOISE)
    assert len(ledger.account("census").charges) == 3
    with closing(sqlite3.connect(path)) as file:  # from now on dpbayes 0.1 refuses it, rather than misreads it
        assert file.execute("SELECT format FROM dpbayes_ledger").fetchall() == [(2,)]


def test_a_limit_without_its_rule_is_no_limit_of_today(old: Callable[..., Ledger]) -> None:
    lines = old(charges=0).export("census")
    body: dict[str, object] = {"format": 2, "budget": LIMIT.record(), "unit": UNIT.record(), "schema": ""}
    forged = Entry.write(dataset="census", after=None, kind="budget", about="", **body)
    with pytest.raises(DpbayesError, match="entry 0"):
        read([forged.text, lines[1]])


# -- the fingerprint -------------------------------------------------------------------------------------------


def test_fingerprints_have_a_secret_key_and_unkeyed_ones_are_forgotten(old: Callable[..., Ledger], path: Path) -> None:
    ledger = old(PureDP(epsilon=1.0))
    assert [ledger.remember_fingerprint("census", value) for value in ("rows=81", "rows=81", "rows=82")] == [
        False,
        False,
        True,
    ]
    with closing(sqlite3.connect(path)) as file:
        ((kept,),) = file.execute("SELECT fingerprint FROM dpbayes_datasets").fetchall()
    for guess in ("rows=81", "rows=82"):
        assert digest(guess) not in kept
    lines = dict(line.split(" ") for line in kept.splitlines())
    assert lines["key"] not in "".join(ledger.export("census"))
