"""Drafts and draws beside the ledger: on disk before they are needed, locked while somebody works on them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dpbayes.base import files
from dpbayes.base.errors import LedgerError
from dpbayes.ledger.kept import DRAFT, Kept


def test_a_draft_is_on_disk_and_private_while_it_is_worked_on(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "census.ledger.draws")
    with kept.begin({"plan": {}}) as slot:
        (path,) = kept.folder.glob(f"*{DRAFT}")
        assert json.loads(path.read_text())["key"] == slot.key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700
        with kept.unfinished() as (other,):
            assert not other.held  # it is locked


def test_a_new_draft_is_never_taken_for_one_that_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, found, flush = Kept(tmp_path / "draws"), [], files.flush
    kept.folder.mkdir()

    def and_look(path: Path) -> None:
        flush(path)
        with kept.unfinished() as others:
            found.append(([each.held for each in others], len(list(kept.folder.glob(f"*{DRAFT}")))))

    monkeypatch.setattr(files, "flush", and_look)
    with kept.begin({}):
        assert found == [([], 0), ([False], 1)]  # it is locked from the moment it has its name


def test_what_was_left_is_found_with_its_draw(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "draws")
    with kept.begin({"plan": {"n": 1}}) as slot:
        slot.reading()
        slot.keep("the draw")
        key = slot.key
    with kept.unfinished() as (left,):
        assert (left.key, left.kept(), left.reads) == (key, "the draw", True)
        left.done()
    with kept.unfinished() as none:
        assert none == []
    assert [draw.text() for draw in kept.draws()] == ["the draw"]  # the archive stays


def test_a_draft_without_a_draw_says_whether_rows_may_have_been_read(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "draws")
    with kept.begin({}):
        pass
    with kept.unfinished() as (left,):
        assert (left.kept(), left.reads) == (None, False)


def test_two_keys_are_never_the_same(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "draws")
    with kept.begin({}) as one, kept.begin({}) as other:
        assert one.key != other.key


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    (tmp_path / "draws").write_text("a file")
    with pytest.raises(LedgerError, match="cannot be used"), Kept(tmp_path / "draws").begin({}):
        pytest.fail("the block must not run")


def test_a_foreign_file_is_named(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "draws")
    kept.folder.mkdir()
    (kept.folder / f"x{DRAFT}").write_text("[]")
    with kept.unfinished() as (left,), pytest.raises(LedgerError, match="not a draft"):
        assert left.key


def test_a_ledger_on_a_server_keeps_its_draws_under_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPBAYES_STATE", str(tmp_path))
    one, other = (Kept.of(None, identity * 32, name="postgresql://host/a") for identity in "01")
    assert one.folder != other.folder
    assert os.fspath(one.folder).startswith(str(tmp_path))
    assert Kept.of(tmp_path / "x.ledger", "0" * 32).folder == tmp_path / "x.ledger.draws"
