"""Files appear whole or not at all, and what a killed writer left goes when the name is next written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpbayes.base import files
from dpbayes.base.errors import DpbayesError

STUCK = """
import sys, time
from pathlib import Path
from dpbayes.base import files

def content(under_way):
    under_way.write_text("private")
    print("under way", flush=True)
    time.sleep(60)

files.write(Path(sys.argv[1]), content, private=True)
"""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.fixture
def writer(tmp_path: Path):
    """A process in the middle of writing ``table.npz``."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(tmp_path / "table.npz")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "under way\n"
        yield process
        process.kill()


def test_what_a_killed_writer_left_goes_with_the_next_writing(writer, tmp_path: Path) -> None:
    (left,) = hidden(tmp_path)
    assert (tmp_path / left).stat().st_mode & 0o777 == 0o600
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    files.write(tmp_path / "other.npz", "other")
    assert hidden(tmp_path) == [left]  # not that of another name
    files.write(tmp_path / "table.npz", "whole")
    assert hidden(tmp_path) == []
    assert (tmp_path / "table.npz").read_text() == "whole"


def test_what_a_living_writer_writes_stays(writer, tmp_path: Path) -> None:
    (under_way,) = hidden(tmp_path)
    files.write(tmp_path / "table.npz", "whole")
    files.sweep(tmp_path)
    assert hidden(tmp_path) == [under_way]


def test_only_names_of_ours_are_swept(tmp_path: Path) -> None:
    ours, others = ".a.0123456789abcdef", (".a", ".a.0123", ".a.0123456789abcdeg", "a.0123456789abcdef", ".git")
    for name in (ours, *others):
        (tmp_path / name).write_text("x")
    (tmp_path / ".out.fedcba9876543210").mkdir()
    (tmp_path / ".out.fedcba9876543210" / "release.json").write_text("x")
    files.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_a_failed_writing_leaves_what_was_there(tmp_path: Path) -> None:
    files.write(tmp_path / "a", "before")

    def fail(under_way: Path) -> None:
        under_way.write_text("half")
        raise PermissionError

    with pytest.raises(PermissionError):
        files.write(tmp_path / "a", fail)
    assert (tmp_path / "a").read_text() == "before"
    assert hidden(tmp_path) == []


def test_the_lock_goes_over_and_ends_with_its_holder(tmp_path: Path) -> None:
    with ExitStack() as held:
        files.write(tmp_path / "a", "text", held=held)
        assert files.lock(tmp_path / "a") is None
    handle = files.lock(tmp_path / "a")
    assert handle is not None
    os.close(handle)


def test_two_processes_that_write_one_name_at_once_never_lose_it(tmp_path: Path) -> None:
    """Each sweeps while the other writes: no error, and one of them wins."""
    script = (
        "import sys; from pathlib import Path; from dpbayes.base import files\n"
        "for number in range(300): files.write(Path(sys.argv[1]), sys.argv[2] * 1000)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a"), letter], stderr=subprocess.PIPE)
        for letter in "xy"
    ]
    deadline = time.monotonic() + 120
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        if (tmp_path / "a").exists():
            assert (tmp_path / "a").read_text() in ("x" * 1000, "y" * 1000)
    for process in running:
        assert process.communicate() == (None, b"")
        assert process.returncode == 0
    assert hidden(tmp_path) == []


def test_a_lock_that_cannot_be_had_is_refused_at_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with ExitStack() as held, pytest.raises(OSError, match="has no locks"):
        files.write(tmp_path / "draft", "private", held=held)
    assert list(tmp_path.iterdir()) == []
    files.write(tmp_path / "table", "whole")  # who needs no lock does without
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_folder_that_cannot_be_flushed_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(path: Path) -> None:
        raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr(files, "flush", flush)
    with pytest.raises(DpbayesError, match="cannot write to"):
        files.check_folder(tmp_path / "published")
    assert list(tmp_path.iterdir()) == []


def test_each_new_folder_is_on_disk_before_something_is_put_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, flush = [], files.flush
    monkeypatch.setattr(files, "flush", lambda path: (flush(path), flushed.append((path, sorted(path.iterdir())))))
    files.make_folder(tmp_path / "a" / "b" / "c", 0o700)
    assert flushed == [
        (tmp_path, [tmp_path / "a"]),
        (tmp_path / "a", [tmp_path / "a" / "b"]),
        (tmp_path / "a" / "b", [tmp_path / "a" / "b" / "c"]),
    ]
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
    files.make_folder(tmp_path / "a" / "b" / "c")
    assert len(flushed) == 3
