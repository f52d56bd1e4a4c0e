"""A ledger has an id of its own: what is kept for it is found by every name it has, and by no other ledger."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dpbayes import Cost, Laplace, PureDP, Unit
from dpbayes.base.errors import LedgerError
from dpbayes.ledger.ledger import Ledger


def forget_id(path: Path) -> None:
    """As 0.2.0 made it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE dpbayes_ledger DROP COLUMN id")


@pytest.fixture
def opened(ledger: Ledger, unit: Unit) -> Ledger:
    ledger.open("census", PureDP(epsilon=1.0), unit)
    return ledger


def test_two_ledgers_never_have_one_id_and_a_copy_keeps_it(opened: Ledger, unit: Unit, tmp_path: Path) -> None:
    other = Ledger(tmp_path / "other.ledger")
    other.open("census", PureDP(epsilon=1.0), unit)
    copy = Ledger(shutil.copy(tmp_path / "census.ledger", tmp_path / "copy.ledger"))
    assert opened.kept.ledger == copy.kept.ledger != other.kept.ledger
    assert len(opened.kept.ledger) == 32


def test_every_draft_names_its_ledger(opened: Ledger) -> None:
    with opened.kept.begin({}) as slot:
        assert slot.ledger == opened.kept.ledger
        assert slot.path.name.startswith(opened.kept.ledger)


def test_a_ledger_named_through_a_link_keeps_its_draws_in_one_place(opened: Ledger, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.ledger").symlink_to(tmp_path / "census.ledger")
    (tmp_path / "folder").symlink_to(tmp_path)
    for name in ("elsewhere/link.ledger", "folder/census.ledger", "elsewhere/../census.ledger"):
        assert Ledger(tmp_path / name).kept.folder == tmp_path / "census.ledger.draws"


def test_what_was_kept_beside_a_link_is_still_found(opened: Ledger, tmp_path: Path) -> None:
    (tmp_path / "link.ledger").symlink_to("census.ledger")
    (tmp_path / "link.ledger.draws").mkdir()
    (tmp_path / "link.ledger.draws" / "0123.draft").write_text('{"key": "k"}')
    with Ledger(tmp_path / "link.ledger").kept.unfinished() as (left,):
        assert left.key == "k"


def test_a_ledger_of_an_earlier_version_gets_one_id_for_ever_and_loses_nothing(
    opened: Ledger, path: Path, unit: Unit
) -> None:
    opened.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))
    before = opened.export("census")
    forget_id(path)
    assert opened.export("census") == before  # reading gives no id
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(Ledger(path).kept.ledger)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert set(ids) == {opened.kept.ledger}
    assert opened.export("census") == before


def test_a_ledger_with_a_place_for_an_id_and_none_in_it_gets_one(opened: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE dpbayes_ledger SET id = NULL")
    assert len(Ledger(path).kept.ledger) == 32
    assert Ledger(path).kept.ledger == Ledger(path).kept.ledger


@pytest.mark.parametrize("damaged", ["", "../../elsewhere", "0" * 31])
def test_a_damaged_id_is_refused(damaged: str, opened: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE dpbayes_ledger SET id = ?", [damaged])
    with pytest.raises(LedgerError, match="id is damaged"):
        opened.kept  # noqa: B018 - it is asked for


def test_ledgers_on_servers_that_look_alike_keep_their_draws_apart(
    server: object, tmp_path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One name may mean several ledgers: another port, socket or search path is another ledger."""
    monkeypatch.setenv("DPBAYES_STATE", str(tmp_path))
    server.execute("CREATE DATABASE alike")
    address = server.url("alike")
    import psycopg

    with psycopg.connect(address) as connection:
        for schema in ("one", "two"):
            connection.execute(f"CREATE SCHEMA {schema}")
    one, two = (Ledger(f"{address}?options=-csearch_path%3D{schema}") for schema in ("one", "two"))
    for each in (one, two):
        each.open("census", PureDP(epsilon=1.0), unit)
    assert one.kept.folder != two.kept.folder
    assert Ledger(f"{address}?application_name=x&options=-csearch_path%3Done").kept.folder == one.kept.folder
    with one.kept.begin({}) as slot:
        pass
    with two.kept.unfinished() as none:
        assert none == []
    with one.kept.unfinished() as (left,):
        assert left.key == slot.key


def test_a_ledger_on_a_server_of_an_earlier_version_gets_one_id_and_still_finds_its_drafts(
    server: object, tmp_path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setenv("DPBAYES_STATE", str(tmp_path))
    server.execute("CREATE DATABASE earlier")
    ledger = Ledger(server.url("earlier"))
    ledger.open("census", PureDP(epsilon=1.0), unit)
    with psycopg.connect(server.url("earlier")) as connection:
        connection.execute("ALTER TABLE dpbayes_ledger DROP COLUMN id")
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(Ledger(server.url("earlier")).kept.ledger)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
    (_, before) = ledger.kept._folders
    before.mkdir(parents=True)
    (before / "0123.draft").write_text('{"key": "k"}')
    with ledger.kept.unfinished() as (left,):
        assert left.key == "k"
