"""A ledger that forgot what its witness saw is refused, and a crash between the two never locks it out."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from dpbayes import Cost, Laplace, PureDP, Unit
from dpbayes.base.errors import InvalidArgument, LedgerError
from dpbayes.ledger.connection import Witness
from dpbayes.ledger.ledger import Ledger


@pytest.fixture
def watched(path: Path, unit: Unit) -> Ledger:
    ledger = Ledger(path)
    ledger.open("census", PureDP(epsilon=1.0), unit, witness=str(path.with_name("witness")))
    return ledger


def charge(ledger: Ledger, unit: Unit) -> int:
    return ledger.charge("census", Cost.of(Laplace(scale=10.0, unit=unit))).serial


def test_an_older_copy_that_is_put_back_is_refused(watched: Ledger, unit: Unit, path: Path) -> None:
    shutil.copy(path, path.with_name("older"))
    charge(watched, unit)
    shutil.copy(path, path.with_name("newest"))
    shutil.copy(path.with_name("older"), path)
    for use in (lambda: charge(watched, unit), lambda: watched.account("census"), watched.datasets):
        with pytest.raises(LedgerError, match=r"older copy.*Put the newest copy back"):
            use()
    shutil.copy(path.with_name("newest"), path)
    assert charge(watched, unit) == 2


def test_a_copy_that_goes_another_way_is_refused_before_anything_is_drawn(
    watched: Ledger, unit: Unit, path: Path
) -> None:
    watched.account("census")
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    charge(watched, unit)
    with pytest.raises(LedgerError, match="went another way"):
        charge(Ledger(copy), unit)


def test_a_ledger_ahead_of_its_witness_is_made_up_for(
    watched: Ledger, unit: Unit, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.account("census")

    def die(self: Witness, new: object, name: str) -> None:
        if new:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "note", die)
        with pytest.raises(KeyboardInterrupt):
            charge(watched, unit)  # committed, and the witness does not know
    shutil.copy(path, path.with_name("ahead"))
    assert len(watched.account("census").charges) == 1
    shutil.copy(path.with_name("ahead"), path)
    assert charge(watched, unit) == 2
    with sqlite3.connect(path.with_name("witness")) as connection:
        seen = [serial for (serial,) in connection.execute("SELECT serial FROM dpbayes_witness ORDER BY serial")]
    assert seen == [0, 1, 2]


def test_a_witness_that_is_gone_or_emptied_is_told_in_a_sentence(watched: Ledger, unit: Unit, path: Path) -> None:
    charge(watched, unit)
    witness = path.with_name("witness")
    shutil.move(witness, path.with_name("away"))
    with pytest.raises(LedgerError, match=r"witness .* is not there. Put it back"):
        charge(watched, unit)
    shutil.copy(path.with_name("away"), witness)
    with sqlite3.connect(witness) as connection:
        connection.execute("DELETE FROM dpbayes_witness")
    connection.close()
    with pytest.raises(LedgerError, match="has forgotten it"):
        charge(watched, unit)
    shutil.copy(path.with_name("away"), witness)
    assert charge(watched, unit) == 2


def test_the_witness_of_a_ledger_stays_and_holds_no_password(watched: Ledger, unit: Unit, path: Path) -> None:
    with pytest.raises(LedgerError, match="Leave --witness out"):
        watched.open("other", PureDP(epsilon=1.0), unit, witness=str(path.with_name("second")))
    with pytest.raises(InvalidArgument, match="without a password"):
        Ledger(path.with_name("new")).open("x", PureDP(epsilon=1.0), unit, witness="postgresql://a:b@host/x")
    watched.open("other", PureDP(epsilon=1.0), unit)
    assert watched.datasets() == ["census", "other"]


DOCS = Path(__file__).parents[2] / "docs" / "reference" / "ledger.md"


def test_a_witness_that_is_lost_is_written_again_as_the_documentation_says(
    watched: Ledger, unit: Unit, path: Path
) -> None:
    charge(watched, unit)
    shutil.copy(path, path.with_name("older"))
    charge(watched, unit)
    path.with_name("witness").unlink()
    (script,) = re.findall(r"```sql\n(ATTACH.*?)```", DOCS.read_text(), flags=re.DOTALL)
    connection = sqlite3.connect(path.with_name("witness"))
    connection.executescript(script.replace("survey.ledger", str(path)))
    connection.close()
    assert charge(watched, unit) == 3
    shutil.copy(path.with_name("older"), path)
    with pytest.raises(LedgerError, match="older copy"):
        charge(watched, unit)


def test_a_witness_on_a_server_that_lets_writers_only_add_sees_an_older_copy(
    server: object, unit: Unit, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute("CREATE ROLE watched LOGIN PASSWORD 'correct-horse'")
    server.execute("CREATE DATABASE audit")
    address = f"postgresql://127.0.0.1:{server.port}/audit"
    monkeypatch.setenv("PGPASSWORD", "correct-horse")
    monkeypatch.setenv("PGUSER", "owner")
    ledger = Ledger(path)
    ledger.open("census", PureDP(epsilon=1.0), unit, witness=address)
    with Witness(address, "")._opened() as connection:
        connection.execute("GRANT SELECT, INSERT ON dpbayes_witness TO watched")
        connection.commit()
    monkeypatch.setenv("PGUSER", "watched")
    shutil.copy(path, path.with_name("older"))
    assert charge(ledger, unit) == 1
    shutil.copy(path.with_name("older"), path)
    with pytest.raises(LedgerError, match="older copy"):
        charge(ledger, unit)
    with pytest.raises(LedgerError, match="refuses this user"), Witness(address, "")._opened() as connection:
        connection.execute("DELETE FROM dpbayes_witness")


def test_analysts_of_a_ledger_on_a_server_tell_its_witness(server: object, unit: Unit, tmp_path: Path) -> None:
    server.execute("CREATE DATABASE seen")
    owner, seen = Ledger(server.url("seen")), str(tmp_path / "witness")
    for dataset in ("census", "second"):
        owner.open(dataset, PureDP(epsilon=1.0), unit, witness=seen)
    server.execute("CREATE ROLE anaseen LOGIN PASSWORD 'x' IN ROLE seen_ledger_analyst")
    assert charge(Ledger(server.url("seen", user="anaseen", password="x")), unit) == 1
    with sqlite3.connect(seen) as connection:
        rows = connection.execute("SELECT dataset, serial FROM dpbayes_witness ORDER BY 1, 2").fetchall()
    connection.close()
    assert rows == [("census", 0), ("census", 1), ("second", 0)]


def test_a_witness_that_contradicts_one_entry_keeps_none_of_those_told_with_it(watched: Ledger) -> None:
    with watched._store.reading() as connection:
        witness = Witness.of(connection)
    assert witness is not None
    before = witness.last()
    with pytest.raises(LedgerError, match="went another way"):
        witness.note({"another": (0, "a" * 64), "census": (0, "b" * 64)}, "it")
    assert witness.last() == before
