"""The same laws on a real PostgreSQL server, as many releasers share one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from dpbayes import ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, LedgerError
from dpbayes.ledger import store
from dpbayes.ledger.history import read
from dpbayes.ledger.ledger import Ledger

RACERS = 16
NAMES = count()


@pytest.fixture
def url(server: object) -> Iterator[str]:
    """A database whose defaults are the worst for a ledger."""
    name = f"ledger{next(NAMES)}"
    server.execute(f"CREATE DATABASE {name}")
    server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    return server.url(name)


def test_of_sixteen_processes_exactly_as_many_charge_as_fit(
    url: str, unit: Unit, run_script: Callable[..., str]
) -> None:
    ledger = Ledger(url)
    budget = ApproxDP(epsilon=0.5, delta=1e-6)
    ledger.open("census", budget, unit)
    one = Cost.of(Gaussian(sigma=25.0, unit=unit))
    fitting = max(k for k in range(1, RACERS) if budget.gap(one * k) <= 1e-9)
    ends = run_script("racer.py", url, "census", RACERS, 25.0).split()
    charged = {entry.hash for entry in ledger.account("census").entries[1:]}
    assert len(ends) == RACERS
    assert ends.count("refused") == RACERS - fitting
    assert {end for end in ends if end != "refused"} == charged
    assert len(charged) == fitting


def test_a_charge_that_is_stopped_at_any_step_is_whole_or_absent_and_never_lost_after_it_returned(
    url: str, unit: Unit, run_script: Callable[..., str]
) -> None:
    Ledger(url).open("census", PureDP(epsilon=1.0), unit)
    steps = [json.loads(line) for line in run_script("crasher.py", url, "census", "statement").splitlines()]
    assert all(step["killed"] for step in steps[:-1])
    assert len(steps) > 10
    charges = [step["charges"] for step in steps]
    assert charges == [0] * (len(steps) - 2) + [1, 2]  # killed after the commit: kept; not killed: charged


def test_many_may_create_one_ledger_at_the_same_time(url: str, unit: Unit) -> None:
    problems: list[Exception] = []

    def create(name: str) -> None:
        try:
            Ledger(url).open(name, PureDP(epsilon=1.0), unit)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=create, args=(f"set {i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert Ledger(url).datasets() == [f"set {i}" for i in range(8)]


def test_a_ledger_lives_there_as_in_a_file(url: str, unit: Unit) -> None:
    ledger = Ledger(url)
    ledger.open("census – ü", PureDP(epsilon=1.0), unit, about="für alle")
    receipt = ledger.charge("census – ü", Cost.of(Laplace(scale=2.0, unit=unit)))
    ledger.void(receipt, about="not reached")
    ledger.confirm(ledger.charge("census – ü", Cost.of(Laplace(scale=1.25, unit=unit))))
    with pytest.raises(BudgetExceeded):
        ledger.charge("census – ü", Cost.of(Laplace(scale=4.0, unit=unit)))
    assert [ledger.remember_fingerprint("census – ü", value) for value in "aab"] == [False, False, True]
    assert read(ledger.export("census – ü"))["census – ü"] == ledger.account("census – ü")
    with pytest.raises(LedgerError, match="already in it"):
        ledger.open("census – ü", PureDP(epsilon=2.0), unit)
    ledger.open("census – ü", PureDP(epsilon=1.0), unit)


def test_tampering_is_noticed(server: object, url: str, unit: Unit) -> None:
    import psycopg

    ledger = Ledger(url)
    ledger.open("census", PureDP(epsilon=1.0), unit)
    ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))
    with psycopg.connect(url) as connection:
        connection.execute("""UPDATE dpbayes_entries SET text = replace(text, '2.0', '9.0') WHERE serial = 1""")
    with pytest.raises(LedgerError, match="entry 1 of"):
        ledger.account("census")


def test_a_locked_data_set_is_waited_for_then_refused_while_others_are_charged(
    url: str, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    ledger = Ledger(url)
    for name in ("north", "south"):
        ledger.open(name, PureDP(epsilon=1.0), unit)
    monkeypatch.setattr(store, "PATIENCE", 1)
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM dpbayes_datasets WHERE dataset = 'north' FOR UPDATE")
        with pytest.raises(LedgerError, match="locked by another process"):
            ledger.charge("north", Cost.of(Laplace(scale=2.0, unit=unit)))
        ledger.charge("south", Cost.of(Laplace(scale=2.0, unit=unit)))
    assert [len(ledger.account(name).charges) for name in ("north", "south")] == [0, 1]


def test_a_read_only_database_can_be_read_but_not_charged(server: object, url: str, unit: Unit) -> None:
    ledger = Ledger(url)
    ledger.open("census", PureDP(epsilon=1.0), unit)
    server.execute(f"ALTER DATABASE {url.rsplit('/', 1)[1]} SET default_transaction_read_only = on")
    assert ledger.account("census").left() == 1.0
    with pytest.raises(LedgerError, match="read-only"):
        ledger.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))


def test_a_database_without_a_ledger_says_so(url: str) -> None:
    with pytest.raises(LedgerError, match="not a dpbayes ledger"):
        Ledger(url).datasets()


def test_a_wrong_password_is_named_as_the_cause_and_no_message_holds_it(server: object) -> None:
    for where, words in (
        (server.url(password="wrong-guess"), "refuses this user. Check name, password"),
        (server.url("absent"), "not a dpbayes ledger"),
        ("postgresql://owner:wrong-guess@127.0.0.1:1/db", "does not answer"),
    ):
        with pytest.raises(LedgerError, match=words) as problem:
            Ledger(where).datasets()
        assert "wrong-guess" not in str(problem.value)
        assert "correct-horse" not in str(problem.value)


def test_every_charge_that_returned_survives_a_server_that_crashes(server: object, url: str, unit: Unit) -> None:
    ledger = Ledger(url)
    ledger.open("census", PureDP(epsilon=1.0), unit)
    cost = Cost.of(Laplace(scale=1000.0, unit=unit))
    receipts = [ledger.charge("census", cost)]
    crash = threading.Timer(0.4, server.stop, args=("immediate",))
    crash.start()

    def charge_on() -> None:
        while True:
            receipts.append(ledger.charge("census", cost))

    with pytest.raises(LedgerError, match="does not answer"):
        charge_on()
    crash.join()
    server.start()
    kept = {entry.hash for entry in ledger.account("census").entries}
    assert {receipt.hash for receipt in receipts} <= kept
    assert len(kept) - 1 - len(receipts) in (0, 1)  # one may have been committed without an answer
