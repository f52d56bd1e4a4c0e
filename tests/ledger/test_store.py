"""Ledgers that cannot be used say so in one sentence, with the remedy, and stay as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dpbayes import Cost, Laplace, PureDP, Unit
from dpbayes.base.errors import LedgerError, MissingExtra
from dpbayes.ledger import connection
from dpbayes.ledger.ledger import Ledger

NOBODY = 65534


@pytest.fixture
def used(ledger: Ledger, unit: Unit) -> Ledger:
    ledger.open("census", PureDP(epsilon=1.0), unit)
    for _ in range(3):
        ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)), about="sex, income")
    return ledger


def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount != 0


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may write anything: become nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_new_ledger_is_readable_by_its_owner_only(used: Ledger, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_ledger_is_not_created_by_reading_or_charging(ledger: Ledger, path: Path, unit: Unit) -> None:
    with pytest.raises(LedgerError, match="ledger init"):
        ledger.account("census")
    with pytest.raises(LedgerError, match="ledger init"):
        ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))
    assert not path.exists()


def test_every_commit_waits_for_the_disk(ledger: Ledger, unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of the very connection that commits: ``synchronous`` EXTRA, and a journal that a power cut leaves whole."""
    settings, commit = [], connection.Connection.commit

    def and_ask(self: connection.Connection) -> None:
        settings.append(tuple(self.scalar(f"PRAGMA {name}") for name in ("synchronous", "fullfsync", "journal_mode")))
        commit(self)

    monkeypatch.setattr(connection.Connection, "commit", and_ask)
    ledger.open("census", PureDP(epsilon=1.0), unit)
    receipt = ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))
    ledger.confirm(receipt, digest="d")
    ledger.remember_fingerprint("census", "f")
    assert settings == [(3, 1, "delete")] * 4


@pytest.mark.parametrize("content", [b"", b"date,amount\n1,2\n", b"\0" * 5000])
def test_a_file_that_is_no_ledger_is_refused(content: bytes, ledger: Ledger, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a dpbayes ledger"):
        ledger.datasets()
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(ledger: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE dpbayes_datasets (dataset TEXT)")
    with pytest.raises(LedgerError, match="not a dpbayes ledger"):
        ledger.datasets()


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is not there"):
        Ledger(tmp_path).datasets()


def test_a_ledger_in_a_missing_folder_cannot_be_made(tmp_path: Path, unit: Unit) -> None:
    with pytest.raises(LedgerError, match="Check the name"):
        Ledger(tmp_path / "absent" / "ledger").open("census", PureDP(epsilon=1.0), unit)


def test_names_with_odd_letters_are_names(tmp_path: Path, unit: Unit) -> None:
    odd = tmp_path / "ü ?mode=memory&#%41.ledger"
    Ledger(odd).open("census – '24\"; --", PureDP(epsilon=1.0), unit)
    assert odd.exists()
    assert Ledger(str(odd)).datasets() == ["census – '24\"; --"]


def test_a_newer_ledger_asks_for_an_upgrade(used: Ledger, path: Path, unit: Unit) -> None:
    execute(path, "UPDATE dpbayes_ledger SET format = 3")
    with pytest.raises(LedgerError, match="Upgrade"):
        used.account("census")
    with pytest.raises(LedgerError, match="Upgrade"):
        used.open("other", PureDP(epsilon=1.0), unit)


def test_a_locked_ledger_is_waited_for_then_refused(
    used: Ledger, path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.01)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(used.account("census").charges) == 3  # readers do not wait for a writer at work
        with pytest.raises(LedgerError, match="locked by another process"):
            used.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))
    assert len(used.account("census").charges) == 3


def test_a_read_only_ledger_can_be_read_but_not_charged(used: Ledger, unit: Unit, public_folder: Path) -> None:
    copy = shutil.copy(used._store.path, public_folder / "copy.ledger")
    copy.chmod(0o444)
    public_folder.chmod(0o555)
    with as_somebody_else():
        assert len(Ledger(copy).account("census").charges) == 3
        with pytest.raises(LedgerError, match="read-only"):
            Ledger(copy).charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))


def test_a_ledger_without_permission_cannot_be_opened(used: Ledger, public_folder: Path) -> None:
    copy = shutil.copy(used._store.path, public_folder / "copy.ledger")
    copy.chmod(0o000)
    with as_somebody_else(), pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(copy).account("census")


def test_a_ledger_cut_short_is_noticed(used: Ledger, path: Path) -> None:
    whole = path.read_bytes()
    for length in range(1, len(whole), 512):
        path.write_bytes(whole[:length])
        with pytest.raises(LedgerError):
            used.account("census")


def test_no_changed_byte_of_the_file_changes_what_the_ledger_says(used: Ledger, path: Path) -> None:
    whole, before, noticed = path.read_bytes(), used.export("census"), 0
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert used.export("census") == before
        except LedgerError:
            noticed += 1
    assert noticed > 20


@pytest.mark.parametrize("serial", range(4))
@pytest.mark.parametrize("column", ["text", "hash"])
def test_a_changed_entry_is_named(serial: int, column: str, used: Ledger, path: Path) -> None:
    change = f"UPDATE dpbayes_entries SET {column} = upper({column}) WHERE serial = ?"
    execute(path, change, serial)
    with pytest.raises(LedgerError, match=f"entry {serial} of data set 'census'"):
        used.account("census")


def test_where_the_last_entries_are_missing_the_first_of_them_is_named(used: Ledger, path: Path) -> None:
    execute(path, "DELETE FROM dpbayes_entries WHERE serial >= 2")
    with pytest.raises(LedgerError, match="entry 2 of data set 'census' and perhaps later ones are missing"):
        used.account("census")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM dpbayes_entries WHERE serial = 3",
        "DELETE FROM dpbayes_entries WHERE serial = 1",
        "DELETE FROM dpbayes_entries",
        "UPDATE dpbayes_entries SET serial = serial + 1 WHERE serial = 3",
        "UPDATE dpbayes_entries SET text = 7 WHERE serial = 2",
        "UPDATE dpbayes_entries SET text = x'ff' WHERE serial = 2",
        "UPDATE dpbayes_entries SET text = CAST(x'ff' AS TEXT) WHERE serial = 2",
        "UPDATE dpbayes_datasets SET head = 'f'",
        "UPDATE dpbayes_datasets SET dataset = 'sensus'",
        "UPDATE dpbayes_ledger SET format = 0",
        "DELETE FROM dpbayes_ledger",
        "DROP TABLE dpbayes_entries",
    ],
)
def test_no_change_of_the_tables_goes_unnoticed(change: str, used: Ledger, path: Path, unit: Unit) -> None:
    execute(path, change)
    with pytest.raises(LedgerError):
        used.account("census")
    with pytest.raises(LedgerError):
        used.charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))


@pytest.mark.parametrize("where", ["sqlite:///census.ledger", "mysql://host/db", "postgresql://host:port/db", "://"])
def test_other_databases_are_refused(where: str) -> None:
    with pytest.raises(LedgerError, match="postgresql://"):
        Ledger(where)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"dpbayes\[postgres\]"):
        Ledger("postgresql://127.0.0.1/db")
