"""What a long ledger amounts to is remembered, and nothing is believed of entries that anybody wrote meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpbayes import ApproxDP, Cost, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.codec import digest
from dpbayes.base.errors import BudgetExceeded, LedgerError
from dpbayes.ledger import kept
from dpbayes.ledger import ledger as ledgers
from dpbayes.ledger.account import Entry
from dpbayes.ledger.history import read
from dpbayes.ledger.ledger import Ledger

SIGMAS = (300.0, 400.0, 1000.0)


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "LONG", 2)


@pytest.fixture
def used(ledger: Ledger, unit: Unit) -> Ledger:
    fill(ledger, unit)
    return ledger


def fill(ledger: Ledger, unit: Unit) -> None:
    ledger.open("census", ApproxDP(epsilon=1.0, delta=1e-6), unit)
    for sigma in SIGMAS:
        ledger.charge("census", Cost.of(Gaussian(sigma=sigma, unit=unit), 3), about="sex, income")
    ledger.charge("census", Cost.of(Laplace(scale=100.0, unit=unit)))


@pytest.fixture
def entries_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    real = Entry.read
    monkeypatch.setattr(Entry, "read", lambda text, **place: (seen.append(text), real(text, **place))[1])
    return seen


def memory(path: Path) -> Path:
    (found,) = path.with_name(f"{path.name}.draws").glob("*.seen")
    return found


def one(unit: Unit) -> Cost:
    return Cost.of(Gaussian(sigma=500.0, unit=unit))


def test_a_charge_on_a_remembered_ledger_reads_its_own_entry_only_and_costs_the_same_to_the_last_bit(
    used: Ledger, path: Path, unit: Unit, entries_read: list[str]
) -> None:
    receipt = Ledger(path).charge("census", one(unit))
    assert len(entries_read) == 1
    again = Ledger(path).standing("census")
    assert len(entries_read) == 1
    whole = read(used.export("census"))["census"]
    assert (again.spent, again.used, again.left()) == (whole.spent, whole.used, whole.left())
    assert (receipt.spending.spent, receipt.spending.left) == (whole.spent, whole.left())
    assert again == whole
    assert again.charges == whole.charges
    assert (again.cost, len(again.charged)) == (whole.cost, len(whole.costs))


def test_a_remembered_limit_is_kept_to_the_last_charge(ledger: Ledger, path: Path, unit: Unit) -> None:
    ledger.open("census", PureDP(epsilon=1.0), unit)
    for _ in range(10):
        Ledger(path).charge("census", Cost.of(Laplace(scale=10.0, unit=unit)))
    with pytest.raises(BudgetExceeded):
        Ledger(path).charge("census", Cost.of(Laplace(scale=1e9, unit=unit)))


def test_whatever_is_settled_changed_or_accepted_is_seen_by_the_next_reader(
    used: Ledger, path: Path, unit: Unit
) -> None:
    receipt = Ledger(path).charge("census", one(unit))
    before = used.account("census").spent
    Ledger(path).void(receipt, about="nothing was read")
    assert Ledger(path).standing("census").spent < before
    kept_receipt = used.charge("census", one(unit))
    Ledger(path).confirm(kept_receipt, digest="d")
    used.confirm(kept_receipt, digest="d")
    assert Ledger(path).standing("census").charges[kept_receipt.serial].state == "drawn"
    Ledger(path).change_budget("census", ApproxDP(epsilon=2.0, delta=1e-6), about="board")
    assert Ledger(path).standing("census").budget.size == 2.0
    Ledger(path).accept("census", "abc", about="board")
    assert Ledger(path).standing("census").schemas == ("abc",)
    assert read(used.export("census"))["census"] == Ledger(path).standing("census")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM dpbayes_entries WHERE serial = 4",
        "DELETE FROM dpbayes_entries WHERE serial = 1",
        "UPDATE dpbayes_entries SET serial = serial + 1 WHERE serial = 4",
        "UPDATE dpbayes_entries SET text = replace(text, '300.0', '900.0') WHERE serial = 1",
        "UPDATE dpbayes_entries SET hash = upper(hash) WHERE serial = 1",
        "UPDATE dpbayes_datasets SET head = 'f'",
        "PRAGMA journal_mode = WAL; UPDATE dpbayes_entries SET text = replace(text, '300.0', '900.0') WHERE serial = 1",
    ],
)
@pytest.mark.parametrize("fresh", [True, False])
def test_no_change_of_a_remembered_ledger_goes_unnoticed(
    change: str, fresh: bool, used: Ledger, path: Path, unit: Unit
) -> None:
    assert memory(path).is_file()
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in change.split("; "):
            connection.execute(statement)
    reader = Ledger(path) if fresh else used
    for _ in range(2):
        with pytest.raises(LedgerError):
            reader.account("census")
        with pytest.raises(LedgerError):
            reader.standing("census")
        with pytest.raises(LedgerError):
            reader.charge("census", one(unit))


def test_not_even_a_byte_that_no_database_wrote_goes_unnoticed(used: Ledger, path: Path, unit: Unit) -> None:
    """With the size and the time of its content as they were; the time of its change cannot be set."""
    before = path.stat()
    with path.open("r+b") as file:
        place = path.read_bytes().index(b"300.0")
        file.seek(place)
        file.write(b"9")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    for reader in (used, Ledger(path)):
        with pytest.raises(LedgerError, match="entry 1 of"):
            reader.charge("census", one(unit))


def test_an_older_copy_put_back_is_read_as_it_is(used: Ledger, path: Path, unit: Unit) -> None:
    older = path.read_bytes()
    before = used.account("census").spent
    Ledger(path).charge("census", one(unit))
    path.write_bytes(older)
    assert used.standing("census").spent == Ledger(path).standing("census").spent == before


@pytest.mark.parametrize("how", ["damaged", "of another code", "of another data set", "writable by others"])
def test_a_memory_that_is_not_ours_or_not_whole_is_read_anew(
    how: str, used: Ledger, path: Path, entries_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, true = memory(path), used.standing("census").spent
    seal, _, text = where.read_text().partition("\n")
    code, content = json.loads(text)
    content["charged"]["sums"] = [[0.0] for _ in content["charged"]["sums"]]
    if how == "of another code":
        monkeypatch.setattr(kept, "_code", lambda: "another")
    if how == "of another data set":
        content["dataset"] = "sensus"
    made = json.dumps([code, content], sort_keys=True, separators=(",", ":"))
    where.write_text(f"{seal if how == 'damaged' else digest(made)}\n{made}")
    if how == "writable by others":
        where.chmod(0o666)
    assert Ledger(path).standing("census").spent == true
    assert len(entries_read) == 5


def test_a_ledger_whose_folder_cannot_be_written_is_read_whole_each_time(
    ledger: Ledger, path: Path, unit: Unit, entries_read: list[str]
) -> None:
    path.with_name(f"{path.name}.draws").write_text("in the way")
    fill(ledger, unit)
    entries_read.clear()
    Ledger(path).standing("census")
    assert len(entries_read) == 5


def test_an_entry_that_another_wrote_between_commit_and_look_is_not_sealed(
    used: Ledger, path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ledgers.Connection.commit

    def commit(connection: ledgers.Connection) -> None:
        real(connection)
        monkeypatch.setattr(ledgers.Connection, "commit", real)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE dpbayes_entries SET text = replace(text, '300.0', '900.0') WHERE serial = 1")

    monkeypatch.setattr(ledgers.Connection, "commit", commit)
    used.charge("census", one(unit))
    for reader in (used, Ledger(path)):
        with pytest.raises(LedgerError, match="entry 1 of"):
            reader.standing("census")


def test_on_a_server_what_others_charged_is_read_and_what_they_changed_is_noticed(
    server: object, unit: Unit, entries_read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPBAYES_STATE", str(tmp_path))
    server.execute("CREATE DATABASE remembered")
    url = server.url("remembered")
    ledger = Ledger(url)
    fill(ledger, unit)
    other = Ledger(url)
    entries_read.clear()
    receipt = other.charge("census", one(unit))
    ledger.confirm(receipt, digest="d")
    assert len(entries_read) == 3  # its own, and by the other the charge and its own
    whole = read(ledger.export("census"))["census"]
    assert Ledger(url).standing("census") == whole
    assert Ledger(url).standing("census").spent == whole.spent
    with ledger._store.writing() as connection:
        connection.execute("UPDATE dpbayes_entries SET text = replace(text, '300.0', '900.0') WHERE serial = 1")
    for reader in (ledger, other, Ledger(url)):
        with pytest.raises(LedgerError, match="entry 1 of"):
            reader.charge("census", one(unit))


def test_a_full_reading_believes_no_memory(used: Ledger, path: Path) -> None:
    """Not even one that its owner has changed, with a digest that is right."""
    where, true = memory(path), used.standing("census").spent
    code, content = json.loads(where.read_text().partition("\n")[2])
    content["charged"]["sums"] = [[0.0] for _ in content["charged"]["sums"]]
    made = json.dumps([code, content], sort_keys=True, separators=(",", ":"))
    where.write_text(f"{digest(made)}\n{made}")
    assert Ledger(path).account("census").spent == true
    assert Ledger(path).standing("census").spent == true


@pytest.mark.parametrize("text", ["5", "[1,2]", '["a",[]]', "null", "[" * 100_000, '["a",{"dataset":"census"}]'])
def test_a_memory_that_holds_anything_else_is_read_anew(text: str, used: Ledger, path: Path) -> None:
    true = used.standing("census").spent
    memory(path).write_text(f"{digest(text)}\n{text}")
    assert Ledger(path).standing("census").spent == true
