"""A reader who follows one release passes through few files; the number is known, and does not creep up."""

from __future__ import annotations

from pathlib import Path

from benchmarks import flow

MOST = 101
"""A new file on the way needs a reason, or the end of another one."""


def test_a_release_passes_through_few_files(tmp_path: Path) -> None:
    found = flow.release(tmp_path)
    assert (tmp_path / "published" / "release.json").is_file()
    assert "curator.py" in found
    assert "ledger/ledger.py" in found
    assert len(found) <= MOST, found
