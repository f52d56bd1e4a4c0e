"""No value of a private row is on any page, in any log or error; rows are read by the release and by nothing else."""

from __future__ import annotations

import csv
import io
import logging
from pathlib import Path

import pytest
from tests.canaries import NUMBER, WORD
from tests.studio.house import ASKED, Visitor, begun, confirmed, declared, ready, released, survey, text_of

from dpbayes.studio.app import studio
from dpbayes.tables import duckdb


@pytest.fixture
def spoiled(tmp_path, caplog):
    """The survey, with values in every column that must not be seen again."""
    caplog.set_level(logging.DEBUG)
    survey(tmp_path)
    path = tmp_path / "private" / "survey.csv"
    rows = list(csv.reader(io.StringIO(path.read_text())))
    for place in range(1, 400):
        rows[place] = [WORD, NUMBER, WORD, f"{WORD},{NUMBER}", NUMBER]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return Visitor(tmp_path)


def pages(name: str) -> list[str]:
    steps = ("table", "declare", "ask", "risk", "preview", "preview/report", "review")
    return ["/", "/models", "/explain", "/models/synthetic.csv?rows=500", *(f"/d/{name}/{step}" for step in steps)]


def assert_clean(text: str) -> None:
    assert WORD not in text
    assert NUMBER not in text


def test_no_page_file_or_log_holds_a_value(spoiled, tmp_path, caplog, capfd):
    name = ready(spoiled)
    seen = [spoiled.get(path).text for path in pages(name)]
    where = released(spoiled, name)
    seen += [spoiled.get(path).text for path in pages(name)]
    for path in ("/release", "/release/report"):
        seen.append(spoiled.get(path, params={"at": where}).text)
    for file in Path(tmp_path / where).iterdir():
        seen.append(file.read_text())
    for file in (tmp_path / ".studio").rglob("*"):
        seen.append(file.read_text() if file.is_file() else "")
    printed = capfd.readouterr()
    for text in [*seen, caplog.text, printed.out, printed.err]:
        assert_clean(text)
    assert len("".join(seen)) > 50_000


def test_rows_are_read_by_the_release_and_by_nothing_else(spoiled, monkeypatch):
    read: list[str] = []
    for method in ("count", "values", "fingerprint", "codes", "occupied"):
        honest = getattr(duckdb.DuckDBEngine, method, None)
        if honest is not None:

            def told(self, *args, _honest=honest, _name=method, **more):
                read.append(_name)
                return _honest(self, *args, **more)

            monkeypatch.setattr(duckdb.DuckDBEngine, method, told)
    name = ready(spoiled)
    for path in pages(name):
        if not path.endswith("report"):  # it counts made-up rows: test_pages shows that no others have a part in it
            spoiled.get(path)
    spoiled.post(f"/d/{name}/ask", {**ASKED, "action": "solve", "within": "30"})
    spoiled.post(f"/d/{name}/ask/forecast", ASKED)
    confirmed(spoiled, name)
    assert read == []
    released(spoiled, name)
    assert read == ["count", "count"]  # how many rows there are, since the schema declares it, and then the release


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyError, MemoryError])
def test_an_engine_that_quotes_a_value_is_not_quoted(spoiled, monkeypatch, caplog, capfd, kind):
    name = ready(spoiled)
    fields = confirmed(spoiled, name)

    def quoting(*_args: object, **_more: object) -> None:
        raise kind(WORD)

    monkeypatch.setattr(duckdb.DuckDBEngine, "count", quoting)
    spoiled.post(f"/d/{name}/release", fields)
    spoiled.desk.work.wait(fields["once"])
    shown = spoiled.get(f"/d/{name}/released/{fields['once']}")
    assert spoiled.desk.work.status(fields["once"])["state"] == "unfinished"
    printed = capfd.readouterr()
    for text in (shown.text, caplog.text, printed.out, printed.err):
        assert_clean(text)


def test_a_page_that_breaks_says_so_and_quotes_nothing(spoiled, monkeypatch, caplog, capfd):
    name = begun(spoiled)

    def quoting(*_args: object, **_more: object) -> None:
        raise ValueError(WORD)

    monkeypatch.setattr("dpbayes.studio.drafts.Draft.faults", quoting)
    monkeypatch.setattr(duckdb.DuckDBEngine, "columns", quoting)
    for answer in (
        spoiled.get(f"/d/{name}/table"),
        spoiled.post(f"/d/{name}/declare", declared(spoiled, name)),
    ):
        assert answer.status_code == 500
        assert "ValueError" in text_of(answer)
        assert_clean(answer.text)
        assert "default-src" in answer.headers["content-security-policy"]
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert_clean(text)


def test_what_is_typed_is_text_and_never_markup(tmp_path):
    (tmp_path / "private").mkdir()
    evil = "<script>alert(1)</script>"
    (tmp_path / "private" / "x.csv").write_text(f'"{evil}",b\n1,2\n')
    visitor = Visitor(tmp_path)
    name = visitor.post("/begin", {"table": "private/x.csv"}).headers["location"].split("/")[2]
    said = {"table": "private/x.csv", "id": evil, "several": "no", "size": "public"}
    assert visitor.post(f"/d/{name}/table", said).status_code == 303
    fields = declared(visitor, name, **{"use.0": "use", "values.0": "categories", "text.0": f"{evil}\n\"'>"})
    assert visitor.post(f"/d/{name}/declare", fields).status_code == 303
    budget = {"action": "budget", "limit-epsilon": "2", "limit-delta": "1e-6", "limit-about": evil}
    visitor.post(f"/d/{name}/ask", {**ASKED, "cell": ["0-0"], "form": [], **budget})
    visitor.post(f"/d/{name}/review", {"title": evil, "purpose": evil})
    for path in pages(name):
        assert "<script>alert" not in visitor.get(path).text, path
    assert "<script>alert" not in visitor.get("/explain", params={"ask": evil, "of": evil}).text


def test_readers_see_releases_and_nothing_else(spoiled, tmp_path):
    name = ready(spoiled)
    where = released(spoiled, name)
    from starlette.testclient import TestClient

    app = studio(tmp_path / "published", session=None, hosts=("127.0.0.1:8765",))
    reader = TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False)
    shown = reader.get("/")
    assert shown.status_code == 200
    folder = where.removeprefix("published/")
    assert folder in shown.text
    assert "verified" in text_of(reader.get("/release", params={"at": folder}))
    assert "confidence" in text_of(reader.get("/explain", params={"ask": "count(region='North')"}))
    assert reader.get("/models").status_code == 200
    for path in (f"/d/{name}/ask", f"/d/{name}/review", "/begin"):
        assert reader.get(path).status_code == 404
    for path in ("/begin", f"/d/{name}/release", "/"):
        assert reader.post(path, data={"csrf": ""}).status_code == 405
    assert reader.get("/", headers={"host": "evil.example"}).status_code == 421
    assert "set-cookie" not in shown.headers
    assert '<form method="post"' not in shown.text
