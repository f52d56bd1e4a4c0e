"""On a real server, an analyst can charge, note and read, and the database refuses the rest, whatever SQL is spoken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import pytest

from dpbayes import Cost, Laplace, PrivacyUnit, PureDP
from dpbayes.errors import BudgetExceeded, LedgerError
from dpbayes.ledger.entry import Entry
from dpbayes.ledger.ledger import Ledger

NAMES = count()


@pytest.fixture
def urls(server: object, unit: PrivacyUnit) -> Iterator[tuple[str, str]]:
    """A ledger as its owner and as an analyst reach it."""
    name = f"roles{next(NAMES)}"
    server.execute(f"CREATE DATABASE {name}")
    Ledger(server.url(name)).open("census", PureDP(epsilon=1.0), unit)
    server.execute(f"CREATE ROLE ana{name} LOGIN PASSWORD 'x' IN ROLE {name}_ledger_analyst")
    return server.url(name), server.url(name, user=f"ana{name}", password="x")


def test_an_analyst_charges_within_the_limit_notes_and_reads(urls: tuple[str, str], unit: PrivacyUnit) -> None:
    owner, analyst = map(Ledger, urls)
    one = Cost.of(Laplace(scale=2.0, unit=unit))
    receipt = analyst.charge("census", one, about="sex")
    analyst.confirm(receipt, digest="0" * 64)
    owner.charge("census", one)
    with pytest.raises(BudgetExceeded):
        analyst.charge("census", one)
    assert analyst.export("census") == owner.export("census")
    assert [charge.state for charge in owner.account("census").charges.values()] == ["drawn", "charged"]


def test_limits_voids_acceptances_and_fingerprints_are_the_owners(urls: tuple[str, str], unit: PrivacyUnit) -> None:
    owner, analyst = map(Ledger, urls)
    receipt = analyst.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))
    before = owner.export("census")
    for refused in (
        lambda: analyst.change_budget("census", PureDP(epsilon=9.0), about="more"),
        lambda: analyst.accept("census", "0" * 64, about="mine"),
        lambda: analyst.void(receipt, about="never was"),
        lambda: analyst.remember_fingerprint("census", "x"),
        lambda: analyst.open("other", PureDP(epsilon=9.0), unit),
    ):
        with pytest.raises(LedgerError, match="refuses this user"):
            refused()
    assert owner.export("census") == before
    owner.void(receipt, about="given up")
    assert owner.account("census").spent == 0.0


def test_a_hostile_client_that_speaks_sql_changes_nothing(urls: tuple[str, str], unit: PrivacyUnit) -> None:
    import psycopg

    owner, analyst = map(Ledger, urls)
    receipt = analyst.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))
    account = owner.account("census")
    before = owner.export("census")

    def next_entry(**changed: object) -> str:
        body = {**json.loads(account.entries[1].text), "serial": 2, "previous": account.head.hash, **changed}
        return json.dumps({key: value for key, value in body.items() if value is not None}, sort_keys=True)

    void = Entry.write(dataset="census", after=account.head, kind="void", about="", charge=1, key=receipt.key).text
    raised = Entry.write(
        dataset="census", after=account.head, kind="budget", about="", **{
            key: account.entries[0].body[key] for key in ("format", "budget", "unit", "schema")
        }
    ).text  # fmt: skip
    texts = [
        void, raised, next_entry(serial=1), next_entry(previous="0" * 64), next_entry(dataset="other"),
        next_entry(kind="schema"), next_entry(lock=None), next_entry(extra=1), next_entry(releases=[]),
        Entry.write(dataset="census", after=account.head, kind="drawn", about="", charge=0, digest="x").text, "null",
    ]  # fmt: skip
    release = account.entries[1].body["releases"][0]
    above = next_entry(releases=[{**release, "mechanism": {**release["mechanism"], "scale": 1.9}}])
    statements = [
        *((f"SELECT dpbayes_append('census', {text!r})") for text in texts),
        "DELETE FROM dpbayes_entries",
        "TRUNCATE dpbayes_entries",
        "UPDATE dpbayes_entries SET text = ''",
        "UPDATE dpbayes_datasets SET head = ''",
        "INSERT INTO dpbayes_entries VALUES ('census', 2, '', '')",
        "INSERT INTO dpbayes_datasets VALUES ('mine', '')",
        "UPDATE dpbayes_ledger SET format = 1",
        "SELECT fingerprint FROM dpbayes_datasets",
        "DROP TABLE dpbayes_entries",
        "ALTER TABLE dpbayes_entries DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION dpbayes_lock(wanted text) RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
        f"SET ROLE {urls[0].rpartition('/')[2]}_ledger_owner",
    ]
    with psycopg.connect(urls[1], autocommit=True) as connection:
        connection.execute("GRANT ALL ON dpbayes_entries TO PUBLIC")  # a warning: there is nothing to grant
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT dpbayes_append('census', %s)", [above])
        assert refused.value.sqlstate == "DP001"
        for statement in statements:
            with pytest.raises(psycopg.Error):
                connection.execute(statement)
        connection.execute("CREATE TEMP TABLE dpbayes_datasets (dataset text, head text, fingerprint text)")
        connection.execute("INSERT INTO dpbayes_datasets VALUES ('census', 'mine', '')")
        assert connection.execute("SELECT dpbayes_lock('census')").fetchone() == (account.head.hash,)
    assert owner.export("census") == before
