"""Releases under way: each is asked for by name, and made once, however often its form is sent.

The name is claimed by creating a file that must not exist. Two tabs, a second click, a reload, the back button, and a
second studio on the same folder all meet the claim that is there. Whoever works on it holds its lock; so a claim that
nobody holds and that is not finished was interrupted, and ``dpbayes finish`` goes on with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpbayes.base import files
from dpbayes.base.errors import DpbayesError, InvalidArgument, Unfinished
from dpbayes.studio.folder import writing

Say = Callable[[str], None]


class Work:
    """The claims of one start folder."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "releases"
        self._threads: dict[str, threading.Thread] = {}

    def start(self, once: str, about: dict[str, str], make: Callable[[Say], None]) -> bool:
        """Make a release in the background, unless it was asked for before; whether this call started it."""
        path = self._path(once)
        try:
            with writing():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                handle = os.open(path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            with writing():
                self._note(path, {**about, "state": "running", "says": "starting"})
        except InvalidArgument:
            path.with_suffix(".lock").unlink(missing_ok=True)
            os.close(handle)
            raise
        thread = threading.Thread(target=self._run, args=(path, about, make, handle), name="release", daemon=False)
        self._threads[once] = thread
        thread.start()
        return True

    def status(self, once: str) -> dict[str, Any] | None:
        """Where a release stands; None if it was never asked for."""
        path = self._path(once)
        if not path.with_suffix(".lock").exists():
            return None
        held = _is_locked(path.with_suffix(".lock"))
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {"state": "running", "says": "starting"}
        if found.get("state") == "running" and not held:
            found |= {"state": "interrupted", "says": "The studio was stopped while it worked on this release."}
        return found

    def settle(self, once: str, **news: str) -> None:
        """Note how an interrupted release ended."""
        path = self._path(once)
        self._note(path, {**(self.status(once) or {}), **news})

    def wait(self, once: str, seconds: float = 60.0) -> None:
        """Until the release that this process works on has ended."""
        thread = self._threads.get(once)
        if thread is not None:
            thread.join(seconds)

    def _run(self, path: Path, about: dict[str, str], make: Callable[[Say], None], handle: int) -> None:
        def note(state: str, says: str) -> None:
            try:
                self._note(path, {**about, "state": state, "says": says})
            except OSError:  # the release itself is safe: the house keeps it
                return

        try:
            make(lambda says: note("running", says))
            note("done", "")
        except Unfinished as problem:
            note("unfinished", str(problem))
        except DpbayesError as problem:
            note("refused", str(problem))
        except BaseException as problem:  # its text may quote a private value, so it goes nowhere
            note("unfinished", f"An unexpected {type(problem).__name__}. If it was charged, it can be finished.")
        finally:
            os.close(handle)

    def _path(self, once: str) -> Path:
        if len(once) != 32 or not all(letter in "0123456789abcdef" for letter in once):
            raise InvalidArgument("studio: there is no such release under way. Review it again.")
        return self._folder / f"{once}.json"

    @staticmethod
    def _note(path: Path, said: dict[str, Any]) -> None:
        files.write(path, json.dumps(said, ensure_ascii=False))


def _is_locked(lock: Path) -> bool:
    """Whether somebody works on it."""
    try:
        with lock.open("r", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
