"""What a ledger says about earlier releases: read back from its own lines, whatever titles look like."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.releases import PEOPLE, people

from dpbayes import ApproxDP, Curator, Ledger, Release, Request, Tables
from dpbayes.base.errors import InvalidArgument, LedgerError
from dpbayes.ledger.history import _tables, already, history, line, timeline
from dpbayes.schema import Marginal

USUAL = ApproxDP(epsilon=0.5, delta=1e-6)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "people.ledger")
    book.open("people", ApproxDP(epsilon=4, delta=1e-6), PEOPLE.unit, schema=PEOPLE.digest)
    return book


def made(ledger: Ledger, *tables: str, **about: str) -> Release:
    return Curator(people(), PEOPLE, ledger=ledger).release(Tables(*tables, mechanism="gaussian"), USUAL, about=about)


def test_a_second_release_supersedes_the_first_and_both_are_on_the_timeline(ledger: Ledger) -> None:
    first = made(ledger, "sex", "income|sex", title="Income: first")
    with pytest.warns(UserWarning, match=rf"{first.id}, which this supersedes, has income\|sex; readers lose that"):
        second = made(ledger, "sex", title="Income", supersedes=first.id)
    past = history(ledger.account("people"))
    assert [each.id for each in past] == [first.id, second.id]
    assert past[0].tables == (Marginal("sex"), Marginal(("income",), ("sex",)))
    assert past[1].supersedes == first.id == second.about["supersedes"]
    events = timeline(ledger.account("people"))
    assert events[0].what.startswith("limit: ε=4")
    assert f"superseded by entry {past[1].serial}" in events[1].what
    assert events[1].what.startswith("Income: first: sex; income|sex")
    assert f"supersedes {first.id}" in events[2].what


def test_tables_published_before_are_named_and_those_that_follow_from_them(ledger: Ledger) -> None:
    account = ledger.account("people")
    assert already(account, [Marginal("sex")]) == []
    made(ledger, "income|sex", title="T")
    account = ledger.account("people")
    same, inner = already(account, [Marginal(("income",), ("sex",)), Marginal("sex"), Marginal("age")])
    assert same.startswith("income|sex was published before (entry 1 of ")
    assert inner.startswith("sex follows from income|sex, published before")


def test_an_unknown_release_cannot_be_superseded_and_nothing_is_charged(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="It has none yet"):
        made(ledger, "sex", supersedes="0123456789abcdef")
    first = made(ledger, "sex")
    with pytest.raises(LedgerError, match=first.id):
        made(ledger, "sex", supersedes="0123456789abcdef")
    assert len(ledger.account("people").charges) == 1
    curator = Curator(people(), PEOPLE, ledger=ledger)
    plan = curator.plan(Request(tables=("sex",), target=USUAL, supersedes="0123456789abcdef"))
    with pytest.raises(LedgerError, match="has the id"):
        curator.check(plan)


def test_a_plan_of_another_schema_is_not_released(ledger: Ledger) -> None:
    curator = Curator(people(), PEOPLE, ledger=ledger)
    plan = Tables("sex").plan(PEOPLE.project(["sex"]), USUAL)
    with pytest.raises(InvalidArgument, match="of this curator's own"):
        curator.release(plan)
    assert curator.release(curator.plan(Tables("sex", mechanism="gaussian"), USUAL)).lock


@given(
    title=st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=30).map(str.strip),
    tables=st.lists(st.sampled_from(["sex", "income|sex", "age,sex", '"a,b"|c']), min_size=1, max_size=3, unique=True),
)
def test_a_line_names_its_tables_whatever_its_title(title: str, tables: list[str]) -> None:
    found = _tables(line("; ".join(tables), title=title))
    assert [str(each) for each in found][-len(tables) + 1 :] == tables[-len(tables) + 1 :] or len(tables) == 1
    if ";" not in title:
        assert [str(each) for each in found] == tables


def test_a_long_line_keeps_what_it_supersedes() -> None:
    assert line("x" * 2000, supersedes="0123456789ab").endswith("[supersedes 0123456789ab]")
    assert len(line("x" * 2000, supersedes="0123456789ab")) == 1000


def test_a_day_is_told_without_the_time_of_day(ledger: Ledger) -> None:
    made(ledger, "sex")
    [past] = history(ledger.account("people"))
    assert date.fromisoformat(past.day).isoformat() == past.day == past.time.partition("T")[0]
