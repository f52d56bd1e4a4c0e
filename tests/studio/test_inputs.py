"""What is typed is kept, and what is shown is about what is typed: on every page, through every error."""

from __future__ import annotations

import re

import pytest
from tests.studio.house import ASKED, Visitor, begun, confirmed, declared, ready, survey, text_of

from dpbayes.jobs.request import Request
from dpbayes.ledger.ledger import Ledger
from dpbayes.privacy.guarantee import ApproxDP
from dpbayes.release.format import Release
from dpbayes.studio import outlook

THREE = {**ASKED, "cell": ["2-2", "4-0", "3-1"], "keep": "income|sex,age", "form": ["income|sex"]}


@pytest.fixture
def visitor(tmp_path):
    return Visitor(survey(tmp_path))


def ticked(answer) -> set[str]:
    return set(re.findall(r'name="cell" value="([\d-]+)" checked', answer.text))


def value(answer, name: str) -> str:
    found = re.search(rf'name="{name}"[^>]*? value="([^"]*)"', answer.text)
    return "" if found is None else found[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": "much"},
        {"epsilon": "1,5"},
        {"delta": "2"},
        {"other": "nobody,sex"},
        {"action": "solve", "within": "few"},
        {"action": "solve", "within": "0.0000001"},
        {"action": "budget", "limit-epsilon": "lots", "ledger": "new.ledger"},
        {"action": "budget", "limit-epsilon": "5", "limit-delta": "1e-6", "ledger": "../new.ledger"},
    ],
)
def test_an_error_on_ask_keeps_ticked_tables_and_typed_text(visitor, wrong):
    name = begun(visitor)
    visitor.post(f"/d/{name}/declare", declared(visitor, name))
    visitor.post(f"/d/{name}/ask", {**ASKED, "cell": ["2-2"], "other": "income|sex,age"})
    answer = visitor.post(f"/d/{name}/ask", {**THREE, **wrong})
    assert answer.status_code == 422
    assert ticked(answer) == {"2-2", "4-0", "3-1"}
    assert "income|sex,age" in re.findall(r'name="keep" value="([^"]*)"', answer.text)
    for key, typed in wrong.items():
        assert key == "action" or value(answer, key) == typed
    again = visitor.post(f"/d/{name}/ask", {**THREE, "keep": "income|sex,age"})
    assert again.status_code == 303
    assert set(requests_of(visitor, name).tables) >= {"region", "income|sex", "income|sex,age"}


def requests_of(visitor: Visitor, name: str) -> Request:
    return Request.load(visitor.desk.folder.start / f"{name}.request.toml")


def test_a_forecast_is_for_what_is_in_the_box_or_there_is_none(visitor):
    name = ready(visitor)
    assert "fits the limit" in text_of(visitor.post(f"/d/{name}/ask/forecast", {**ASKED, "epsilon": "1"}))
    for wrong in ({"epsilon": "much"}, {"epsilon": "0,5"}, {"delta": "7"}, {"epsilon": "-1"}):
        shown = visitor.post(f"/d/{name}/ask/forecast", {**THREE, **wrong})
        assert "fits the limit" not in text_of(shown)
        assert "± records" not in text_of(shown)
        assert 'name="form" value="income|sex"' in shown.text  # the form of a table is kept with it
        page = visitor.post(f"/d/{name}/ask", {**ASKED, **wrong})
        assert "fits the limit" not in text_of(page)


def test_a_tick_is_kept_without_a_button(visitor):
    name = ready(visitor)
    visitor.post(f"/d/{name}/ask/forecast", {**ASKED, "cell": ["1-0"], "epsilon": "0.5"})
    assert ticked(visitor.get(f"/d/{name}/ask")) == {"1-0"}
    assert requests_of(visitor, name).guarantee() == ApproxDP(0.5, 1e-6)
    visitor.post(f"/d/{name}/ask/forecast", {**ASKED, "cell": ["1-0", "2-2"], "epsilon": "0,5"})
    assert ticked(visitor.get(f"/d/{name}/ask")) == {"1-0", "2-2"}
    assert requests_of(visitor, name).guarantee() == ApproxDP(0.5, 1e-6)


def test_what_is_typed_on_review_reaches_the_release(visitor, tmp_path):
    name = ready(visitor)
    said = {"title": "Income by sex", "author": "A. Nyman", "contact": "a@b.org", "purpose": "Planning\r\nof tables"}
    fields = {**confirmed(visitor, name), **said}
    wrong = visitor.post(f"/d/{name}/release", {**fields, "confirm": "exmple"})
    assert wrong.status_code == 422
    assert value(wrong, "title") == "Income by sex"
    fields |= {key: re.search(rf'name="{key}" value="(\w+)"', wrong.text)[1] for key in ("once", "reviewed")}
    assert visitor.post(f"/d/{name}/release", fields).status_code == 303
    visitor.desk.work.wait(fields["once"])
    made = Release.load(tmp_path / "published" / f"{name}-1")
    assert {key: made.about[key] for key in said} == {**said, "purpose": "Planning\nof tables"}


def test_what_is_wrong_with_the_words_for_readers_is_said_before_the_charge(visitor, tmp_path):
    name = ready(visitor)
    answer = visitor.post(f"/d/{name}/release", {**confirmed(visitor, name), "title": "x" * 10_000})
    assert answer.status_code == 422
    assert not Ledger(tmp_path / "survey.ledger").account("example-survey").charges


@pytest.mark.parametrize("within", [1e-9, 0.5, 20.0, 1e9])
def test_solving_for_an_accuracy_ends_within_what_is_left_or_says_that_it_cannot(
    visitor, tmp_path, within, monkeypatch
):
    name = ready(visitor)
    desk = visitor.desk
    draft = desk.drafts.load(name)
    schema, account, asked = desk.drafts.schema(draft), desk.account(draft), requests_of(visitor, name)
    tried = []
    plan = outlook.outlook_of
    monkeypatch.setattr(outlook, "outlook_of", lambda *given: tried.append(given) or plan(*given))
    answer = visitor.post(f"/d/{name}/ask", {**ASKED, "action": "solve", "within": repr(within)})
    assert len(tried) <= 16
    if answer.status_code == 303:
        found = requests_of(visitor, name)
        assert plan(found, schema, account).worst <= within
        assert found.guarantee().epsilon <= account.left()
    else:
        assert "would take more than ε = 2, all that still fits the limit" in text_of(answer)
        assert (
            plan(asked.with_changes(target=asked.guarantee().of_size(account.left())), schema, account).worst > within
        )
