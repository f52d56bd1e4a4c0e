"""GET never spends; one review is charged once, however its form is sent. On the real ledger."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.studio.house import ASKED, Visitor, confirmed, ready, released, survey, text_of

from dpbayes import ApproxDP, Cost, Gaussian
from dpbayes.ledger.ledger import Ledger
from dpbayes.release.format import Release


def charges(folder: Path) -> int:
    return len(Ledger(folder / "survey.ledger").account("example-survey").charges)


@pytest.fixture
def at_review(tmp_path):
    visitor = Visitor(survey(tmp_path))
    return visitor, ready(visitor), tmp_path


def test_no_get_spends(at_review):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    paths = [f"/d/{name}/{step}" for step in ("table", "declare", "ask", "risk", "preview", "preview/report", "review")]
    for path in [*paths, "/", "/models", "/explain", f"/d/{name}/released/{fields['once']}"]:
        visitor.get(path)
    asked = visitor.client.get(f"/d/{name}/release", params={**fields, "csrf": visitor.csrf(f"/d/{name}/release")})
    assert asked.status_code == 405
    assert visitor.client.head(f"/d/{name}/release", params=fields).status_code == 405
    assert charges(folder) == 0


def test_a_double_click_a_reload_and_the_back_button_charge_once(at_review):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    answers = [visitor.post(f"/d/{name}/release", fields) for _ in range(3)]
    visitor.desk.work.wait(fields["once"])
    answers += [visitor.post(f"/d/{name}/release", fields) for _ in range(2)]
    assert {answer.headers["location"] for answer in answers} == {f"/d/{name}/released/{fields['once']}"}
    assert charges(folder) == 1
    assert len(list((folder / "published").iterdir())) == 1
    assert visitor.get(f"/d/{name}/review").headers["location"] == f"/d/{name}/released/{fields['once']}"


def test_two_tabs_charge_once(at_review):
    visitor, name, folder = at_review
    one, other = confirmed(visitor, name), confirmed(visitor, name)
    assert one == other
    visitor.post(f"/d/{name}/release", one)
    visitor.post(f"/d/{name}/release", other)
    visitor.desk.work.wait(one["once"])
    assert charges(folder) == 1


def test_many_at_the_same_moment_charge_once(at_review):
    visitor, name, folder = at_review
    fields, gate, codes = confirmed(visitor, name), threading.Barrier(6), []

    def send() -> None:
        gate.wait()
        codes.append(visitor.post(f"/d/{name}/release", fields).status_code)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    visitor.desk.work.wait(fields["once"])
    assert codes == [303] * 6
    assert charges(folder) == 1


def test_two_studios_on_one_folder_charge_once(at_review):
    visitor, name, folder = at_review
    other = Visitor(folder)
    fields = confirmed(visitor, name)
    visitor.post(f"/d/{name}/release", fields)
    other.post(f"/d/{name}/release", fields)
    visitor.desk.work.wait(fields["once"])
    other.desk.work.wait(fields["once"])
    assert charges(folder) == 1


def test_a_second_release_has_to_be_asked_for(at_review):
    visitor, name, folder = at_review
    first = released(visitor, name)
    assert visitor.post(f"/d/{name}/again").status_code == 303
    assert "was published before" in text_of(visitor.get(f"/d/{name}/ask"))
    visitor.post(f"/d/{name}/ask", {**ASKED, "epsilon": "0.5", "cell": ["1-1"]})
    second = released(visitor, name)
    assert first != second
    assert charges(folder) == 2


def test_what_was_not_reviewed_is_not_released(at_review):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    visitor.post(f"/d/{name}/ask", {**ASKED, "epsilon": "1.5"})  # in another tab
    answer = visitor.post(f"/d/{name}/release", fields)
    assert answer.status_code == 422
    assert "has changed since this page was shown" in text_of(answer)
    assert charges(folder) == 0
    released(visitor, name)
    assert charges(folder) == 1


def test_a_balance_that_moved_is_reviewed_again(at_review):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    ledger = Ledger(folder / "survey.ledger")
    unit = ledger.account("example-survey").unit
    ledger.charge("example-survey", Cost.of(Gaussian(sigma=40, unit=unit)), about="a colleague")
    assert visitor.post(f"/d/{name}/release", fields).status_code == 422
    assert charges(folder) == 1


@pytest.mark.parametrize("typed", ["", "Example-survey", "example-surve", "yes"])
def test_the_name_must_be_typed(at_review, typed):
    visitor, name, folder = at_review
    answer = visitor.post(f"/d/{name}/release", {**confirmed(visitor, name), "confirm": typed})
    assert answer.status_code == 422
    assert charges(folder) == 0


@pytest.mark.parametrize("once", ["", "x", "0" * 32, "../../../../etc/passwd", "f" * 33])
def test_a_name_that_was_made_up_releases_nothing(at_review, once):
    visitor, name, folder = at_review
    answer = visitor.post(f"/d/{name}/release", {**confirmed(visitor, name), "once": once})
    assert answer.status_code in (400, 422)
    assert charges(folder) == 0


def test_a_budget_that_does_not_suffice_is_refused_and_says_what_fits(at_review):
    visitor, name, folder = at_review
    visitor.post(f"/d/{name}/ask", {**ASKED, "epsilon": "3"})
    shown = visitor.get(f"/d/{name}/review")
    assert "does not fit" in text_of(shown)
    assert 'name="confirm"' not in shown.text
    draft = visitor.desk.drafts.load(name)
    answer = visitor.post(f"/d/{name}/release", {"once": draft.once, "reviewed": "", "confirm": "example-survey"})
    assert answer.status_code == 422
    assert charges(folder) == 0


def test_the_release_is_verified_and_the_page_offers_its_files(at_review):
    visitor, name, folder = at_review
    where = released(visitor, name)
    release = Release.load(folder / where)
    assert release.promise == ApproxDP(epsilon=1, delta=1e-6)
    assert release.verify(ledger=folder / "survey.ledger").ok
    shown = visitor.get("/release", params={"at": where})
    assert "verified" in text_of(shown)
    assert "not verified" not in text_of(shown)
    for file in ("release.json", *release.files):
        answer = visitor.get("/release/file", params={"at": where, "name": file})
        assert answer.content == (folder / where / file).read_bytes()
        assert "attachment" in answer.headers["content-disposition"]
    for wrong in ("../survey.ledger", "../../private/survey.csv", "", "style.css"):
        assert visitor.get("/release/file", params={"at": where, "name": wrong}).status_code == 400
    for wrong in ("../" + where, "private", "", "/etc"):
        assert visitor.get("/release", params={"at": wrong}).status_code == 400


def test_a_tampered_release_is_not_called_verified(at_review):
    visitor, name, folder = at_review
    where = released(visitor, name)
    report = folder / where / "report.html"
    report.write_text(report.read_text() + "<!-- -->")
    assert "not verified" in text_of(visitor.get("/release", params={"at": where}))


def test_a_release_that_a_newer_one_replaces_says_so(at_review):
    visitor, name, folder = at_review
    first = released(visitor, name)
    visitor.post(f"/d/{name}/again")
    visitor.post(f"/d/{name}/ask", {**ASKED, "epsilon": "0.5"})
    earlier = Release.load(folder / first)
    said = {"title": "Revised", "supersedes": earlier.id}
    assert visitor.post(f"/d/{name}/review", said).status_code == 303
    second = released(visitor, name)
    assert Release.load(folder / second).about["supersedes"] == earlier.id
    assert "Revised" in text_of(visitor.get("/release", params={"at": first}))
    asked = visitor.get("/explain", params={"at": first})
    assert f"dpbayes ask {second}" in asked.text
    assert f"--also {first}" not in asked.text


def test_an_interrupted_release_is_finished_under_its_charge(at_review, monkeypatch):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)

    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("dpbayes.report.folder.report_html", full)
        visitor.post(f"/d/{name}/release", fields)
        visitor.desk.work.wait(fields["once"])
    assert visitor.desk.work.status(fields["once"])["state"] == "unfinished"
    shown = visitor.get(f"/d/{name}/released/{fields['once']}")
    assert "nothing is lost" in text_of(shown)
    assert charges(folder) == 1
    assert visitor.get(f"/d/{name}/review").status_code == 303  # not a new one: this one
    path = f"/d/{name}/released/{fields['once']}/finish"
    assert visitor.post(path).status_code == 303
    assert visitor.desk.work.status(fields["once"])["state"] == "done"
    assert charges(folder) == 1
    assert Release.load(folder / "published" / f"{name}-1").verify(ledger=folder / "survey.ledger").ok


def test_a_claim_that_nobody_works_on_is_called_interrupted(at_review):
    visitor, name, folder = at_review
    once = visitor.desk.drafts.load(name).once
    claims = folder / ".studio" / "releases"
    claims.mkdir(parents=True)
    (claims / f"{once}.lock").touch()
    said = {"state": "running", "says": "counting", "draft": name, "folder": "published/x", "ledger": ""}
    (claims / f"{once}.json").write_text(json.dumps(said))
    assert visitor.desk.work.status(once)["state"] == "interrupted"
    visitor.post(f"/d/{name}/released/{once}/finish")
    assert visitor.desk.work.status(once)["state"] == "refused"
    assert "Nothing was charged" in text_of(visitor.get(f"/d/{name}/released/{once}"))
    released(visitor, name)  # the next review has a name of its own
    assert charges(folder) == 1


def test_a_refusal_at_the_last_moment_charges_nothing_and_can_be_tried_again(at_review, monkeypatch):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    from dpbayes.base.errors import LedgerError

    def locked(*_args: object, **_more: object) -> None:
        raise LedgerError("Ledger: it is locked by another process. Try again.")

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "charge", locked)
        visitor.post(f"/d/{name}/release", fields)
        visitor.desk.work.wait(fields["once"])
    shown = visitor.get(f"/d/{name}/released/{fields['once']}")
    assert "locked by another process" in text_of(shown)
    assert charges(folder) == 0
    released(visitor, name)
    assert charges(folder) == 1


def test_a_draft_that_is_reset_does_not_release_again_by_itself(at_review):
    visitor, name, folder = at_review
    fields = confirmed(visitor, name)
    released(visitor, name)
    visitor.desk.drafts.save(replace(visitor.desk.drafts.load(name), once="a" * 32))
    assert visitor.post(f"/d/{name}/release", fields).status_code == 303
    assert charges(folder) == 1
