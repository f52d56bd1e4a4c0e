"""Who may speak to the studio, and what an outsider gets."""

from __future__ import annotations

import pytest
from tests.studio.house import ORIGIN, Visitor, survey

from dpbayes.base.errors import InvalidArgument
from dpbayes.studio.safety import HEADERS, LARGEST_FORM, LIFETIME, allowed_hosts, check_host


@pytest.fixture
def outside(tmp_path):
    return Visitor(survey(tmp_path), enter=False)


@pytest.fixture
def inside(tmp_path):
    return Visitor(survey(tmp_path))


def test_nothing_is_shown_without_the_cookie(outside):
    for path in ("/", "/d/survey/table", "/models", "/explain", "/release?at=x"):
        answer = outside.get(path)
        assert answer.status_code == 403
        assert "survey" not in answer.text.replace("survey/table", "")


def test_a_token_opens_once_and_the_terminal_gets_a_new_address(outside):
    address = outside.session.address().removeprefix(ORIGIN)
    first = outside.get(address)
    assert first.status_code == 303
    assert first.headers["location"] == "/"
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    outside.client.cookies.clear()
    assert outside.get(address).status_code == 403
    assert len(outside.told) == 1
    assert outside.get(outside.told[0].removeprefix(ORIGIN)).status_code == 303


def test_a_token_expires(outside):
    address = outside.session.address().removeprefix(ORIGIN)
    outside.clock.now += LIFETIME + 1
    assert outside.get(address).status_code == 403
    assert outside.get(outside.told[-1].removeprefix(ORIGIN)).status_code == 303


def test_a_guessed_token_opens_nothing(outside):
    outside.session.address()
    assert outside.get("/?token=x").status_code == 403
    assert outside.get("/?token=").status_code == 403
    assert outside.told == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8765", "127.0.0.1:8766", "127.0.0.1", ""])
def test_another_host_name_is_refused_even_with_the_cookie(inside, host):
    assert inside.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:8765"])
def test_the_names_of_this_machine_are_known(inside, host):
    cookies = "; ".join(f"{name}={value}" for name, value in inside.client.cookies.items())
    assert inside.get("/", headers={"host": host, "cookie": cookies}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8765", ""]
)
def test_a_form_of_another_origin_is_refused(inside, origin):
    answer = inside.post("/begin", {"table": "private/survey.csv"}, origin=origin)
    assert answer.status_code == 403
    assert not inside.desk.drafts.all()


def test_a_form_without_an_origin_is_refused(inside):
    answer = inside.client.post("/begin", data={"csrf": inside.csrf("/begin"), "table": "private/survey.csv"})
    assert answer.status_code == 403


def test_a_browser_that_says_cross_site_is_believed(inside):
    fields = {"table": "private/survey.csv"}
    assert inside.post("/begin", fields, **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert inside.post("/begin", fields, **{"sec-fetch-site": "same-site"}).status_code == 403
    assert inside.post("/begin", fields, **{"sec-fetch-site": "same-origin"}).status_code == 303


@pytest.mark.parametrize("token", ["", "x", "0" * 64])
def test_a_form_needs_its_own_token(inside, token):
    assert inside.post("/begin", {"csrf": token, "table": "private/survey.csv"}).status_code == 403
    other = inside.csrf("/d/survey/table")
    assert inside.post("/begin", {"csrf": other, "table": "private/survey.csv"}).status_code == 403


def test_the_token_of_one_run_is_worth_nothing_in_the_next(inside, tmp_path):
    again = Visitor(tmp_path)
    assert again.post("/begin", {"csrf": inside.csrf("/begin"), "table": "private/survey.csv"}).status_code == 403
    cookie = dict(inside.client.cookies)
    again.client.cookies.clear()
    again.client.cookies.update(cookie)
    assert again.get("/").status_code == 403


def test_files_cannot_be_uploaded(inside):
    answer = inside.client.post("/begin", files={"table": ("a.csv", b"x,y\n1,2\n")}, headers={"origin": ORIGIN})
    assert answer.status_code == 415


def test_a_form_that_is_too_long_is_refused(inside):
    answer = inside.post("/begin", {"table": "x" * (LARGEST_FORM + 1)})
    assert answer.status_code == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(inside, method):
    assert inside.client.request(method, "/").status_code == 405


def test_every_answer_carries_the_policy(inside, outside):
    answers = [inside.get(path) for path in ("/", "/nowhere", "/static/style.css", "/static/htmx.min.js")]
    answers += [outside.get("/"), inside.post("/begin", {"table": "../x.csv"})]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, name
    assert "default-src 'self'" in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(inside):
    import re

    page = inside.get("/").text
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(each.startswith(("/", "#")) for each in sources)
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)


def test_other_machines_need_to_be_asked_for():
    check_host("127.0.0.1", exposed=False)
    check_host("localhost", exposed=False)
    with pytest.raises(InvalidArgument, match="--expose"):
        check_host("192.168.1.5", exposed=False)
    check_host("192.168.1.5", exposed=True)
    for anywhere in ("0.0.0.0", "::", ""):
        with pytest.raises(InvalidArgument, match="one address"):
            check_host(anywhere, exposed=True)
    assert allowed_hosts("192.168.1.5", 80) == ("192.168.1.5:80",)
