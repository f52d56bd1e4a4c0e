"""What belongs to the ledger: the rule of a limit, the schema, the person; and ledgers that dpbayes 0.1 wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpbayes import ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument, LedgerError, UnitMismatch
from dpbayes.ledger.account import Entry, digest
from dpbayes.ledger.history import read
from dpbayes.ledger.ledger import Ledger
from dpbayes.ledger.pricing import _decimals
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)
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
    people = Unit(adjacency=Adjacency.ADD_REMOVE, person="id")
    ledger.open("census", LIMIT, people)
    ledger.charge("census", Cost.of(Gaussian(sigma=30.0, unit=people)))
    with pytest.raises(UnitMismatch, match=r"column 'id'.*owner's word"):
        ledger.charge("census", NOISE)
    assert ledger.account("census").unit.record() == {"adjacency": "add-remove", "max_rows": 1, "person": "id"}


# -- what dpbayes 0.1.0 wrote ----------------------------------------------------------------------------------------


def test_a_ledger_of_0_1_0_is_refused_in_one_sentence(ledger: Ledger, path: Path) -> None:
    ledger.open("census", LIMIT, UNIT)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE dpbayes_ledger SET format = 1")
        file.commit()
    with pytest.raises(LedgerError, match=r"^Ledger: written by dpbayes 0\.1\.0, which no later version reads\."):
        ledger.account("census")
    old: dict[str, object] = {"format": 1, "budget": LIMIT.record(), "unit": UNIT.record()}
    exported = Entry.write(dataset="census", after=None, kind="budget", about="", **old)
    with pytest.raises(LedgerError, match=r"written by dpbayes 0\.1\.0"):
        read([exported.text])


def test_a_limit_without_its_rule_is_no_limit(ledger: Ledger) -> None:
    ledger.open("census", LIMIT, UNIT)
    lines = ledger.export("census")
    body: dict[str, object] = {"format": 2, "budget": LIMIT.record(), "unit": UNIT.record(), "schema": ""}
    forged = Entry.write(dataset="census", after=None, kind="budget", about="", **body)
    with pytest.raises(DpbayesError, match="entry 0"):
        read([forged.text, *lines[1:]])


# -- the fingerprint -------------------------------------------------------------------------------------------


def test_fingerprints_have_a_secret_key(ledger: Ledger, path: Path) -> None:
    ledger.open("census", PureDP(epsilon=1.0), UNIT)
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


def test_constants_of_the_database_have_fifty_decimals_rounded_up() -> None:
    assert _decimals(Fraction(1, 3)) == "0." + 49 * "3" + "4"
    assert _decimals(Fraction(25, 2)) == "12.5" + 49 * "0"
