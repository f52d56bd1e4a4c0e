"""No name leads out of the start folder."""

from __future__ import annotations

import pytest
from tests.studio.house import Visitor, survey, text_of

from dpbayes.base.errors import InvalidArgument, TableError
from dpbayes.studio.folder import Folder


@pytest.fixture
def start(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("a,b\nKanari-Zyxwvut,1\n")
    (outside / "secret.ledger").write_text("")
    where = tmp_path / "start"
    where.mkdir()
    survey(where)
    (where / "link.csv").symlink_to(outside / "secret.csv")
    (where / "door").symlink_to(outside)
    return where


OUT = [
    "../outside/secret.csv",
    "private/../../outside/secret.csv",
    "link.csv",
    "door/secret.csv",
    "door/*.csv",
    "*/*.csv",
    "l*.csv",
    "../outside/*.csv",
    "/etc/passwd",
    "/etc/*.csv",
    "file:///etc/passwd.csv",
    "https://example.org/x.csv",
    "s3://bucket/x.parquet",
    "spark://host:7077?path=/etc/x.csv",
    "private/survey.csv\x00.csv",
    "",
    "x" * 5000,
]


@pytest.mark.parametrize("name", OUT)
def test_no_table_outside_is_opened(start, name):
    with pytest.raises((InvalidArgument, TableError)) as met:
        Folder(start).table(name)
    assert "outside" not in str(met.value).replace("inside", "")


@pytest.mark.parametrize("name", OUT)
def test_the_pages_refuse_it_too(start, name):
    visitor = Visitor(start)
    for fields in ({"table": name}, {"table": "private/survey.csv", "schema": name}, {"ledger": name or "x"}):
        answer = visitor.post("/begin", fields)
        if answer.status_code == 303:  # an empty name names nothing
            assert not name
        assert "Kanari" not in answer.text


def test_what_is_inside_is_found_and_opened(start):
    folder = Folder(start)
    assert folder.tables() == ["private/survey.csv"]
    assert folder.table("private/survey.csv") == str(start / "private" / "survey.csv")
    assert folder.table("private/s*.csv").endswith("private/s*.csv")
    assert folder.table("./private/../private/survey.csv?delimiter=,").endswith("survey.csv?delimiter=,")
    assert list(folder.schemas()) == ["private/survey.toml"]


def test_a_missing_file_is_told_only_inside(start):
    folder = Folder(start)
    with pytest.raises(TableError, match="there is no file"):
        folder.table("private/nothing.csv")
    there, not_there = "../outside/secret.csv", "../outside/nothing.csv"
    said = []
    for name in (there, not_there):
        with pytest.raises(InvalidArgument) as met:
            folder.table(name)
        said.append(str(met.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "name", ["../x.ledger", "door/secret.ledger", "private/survey.csv", ".ledger", "no/such/x.ledger"]
)
def test_a_ledger_is_written_inside_or_not_at_all(start, name):
    with pytest.raises(InvalidArgument):
        Folder(start).ledger(name)


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:secret@host/db?table=x", "postgresql://host/db?table=x&password=secret", "postgres://a:b@c/d"],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(start, address):
    answer = Visitor(start).post("/begin", {"table": address})
    assert answer.status_code == 400
    assert "leave the password out" in text_of(answer)
    assert "secret" not in answer.text


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="no folder"):
        Folder(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="not a folder"):
        Folder(tmp_path / "file")


def test_a_state_folder_that_is_a_link_is_refused(tmp_path):
    from dpbayes.studio.app import studio

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / ".studio").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidArgument, match="is a link"):
        studio(tmp_path / "start", session=None, hosts=("x",))
