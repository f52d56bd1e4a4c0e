"""Releases that are under way, and draws that were paid for, in a folder beside the ledger.

Before a charge, a *draft* is on disk that says what will be drawn and holds the key of the charge. After the draw, and
before anything else can see it, the draw is on disk too. So whatever happens in between, ``dpbayes finish`` completes
the release: from the draw that was kept, or by drawing again under the same charge. Drawing again is sound, since
nothing of a draw that was not kept has left the process: what is published is one draw, as if there had been no other.
The draws stay as the archive of the data set; they are public.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpbayes.domain import durable
from dpbayes.domain.codec import Record, digest
from dpbayes.errors import LedgerError

DRAFT, READING, DRAW = ".draft", ".reading", ".draw.json"

STATE = "DPBAYES_STATE"
"""Environment variable: where the folder of a ledger that is no file is kept."""


class Slot:
    """One release under way. Whoever holds it holds its lock."""

    def __init__(self, path: Path, draft: Record) -> None:
        self._path = path
        self.draft = draft

    @property
    def key(self) -> str:
        """The secret that proves who made the charge."""
        return str(self.draft["key"])

    @property
    def reads(self) -> bool:
        """Whether rows may have been read for it."""
        return self._path.suffix == READING

    def reading(self) -> None:
        """Note durably that rows are about to be read: from here on the charge stays, whatever happens."""
        with _told(self._path.parent):
            self._path = self._path.rename(self._path.with_suffix(READING))
            durable.flush(self._path.parent)

    def keep(self, text: str) -> None:
        """Keep the draw."""
        with _told(self._path.parent):
            durable.write(self._draw, text)

    def kept(self) -> str | None:
        """The draw, if it was kept."""
        with _told(self._path.parent):
            return self._draw.read_text(encoding="utf-8") if self._draw.is_file() else None

    def done(self) -> None:
        """The release is finished, or was never charged: nothing is left to do."""
        with _told(self._path.parent):
            self._path.unlink(missing_ok=True)

    @property
    def _draw(self) -> Path:
        return self._path.with_suffix(DRAW)


class Kept:
    """The folder of drafts and draws of one ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, path: Path | None, name: str) -> Kept:
        """Beside a ledger that is a file; else under the user's state folder, by the name of the database."""
        if path is not None:
            return cls(path.with_name(path.name + ".draws"))
        state = os.environ.get(STATE) or os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return cls(Path(state).expanduser() / "dpbayes" / digest(name)[:32])

    @contextmanager
    def begin(self, draft: Record) -> Iterator[Slot]:
        """A new draft, on disk and locked. It is forgotten if nothing was charged for it, and else stays until done."""
        made = {**draft, "key": secrets.token_hex(32)}
        with ExitStack() as held:
            with _told(self.folder):
                durable.make_folder(self.folder, 0o700)
                durable.sweep(self.folder)
                path = self.folder / f"{secrets.token_hex(16)}{DRAFT}"
                durable.write(path, json.dumps(made), private=True, held=held)  # locked before it has its name
            yield Slot(path, made)

    @contextmanager
    def unfinished(self) -> Iterator[list[Slot]]:
        """All releases that no living process works on, locked until the block ends. Half-written files go."""
        slots: list[Slot] = []
        with ExitStack() as held:
            with _told(self.folder):
                durable.sweep(self.folder)
                for path in sorted([*self.folder.glob(f"*{DRAFT}"), *self.folder.glob(f"*{READING}")]):
                    handle = durable.locked(path)
                    if handle is not None:
                        held.callback(os.close, handle)
                        slots.append(Slot(path, _draft(path)))
            yield slots

    def draws(self) -> list[str]:
        """Every draw that was kept, as the text of a release."""
        with _told(self.folder):
            return [path.read_text(encoding="utf-8") for path in sorted(self.folder.glob(f"*{DRAW}"))]


def _draft(path: Path) -> Record:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("key"), str):
        raise LedgerError(f"Ledger: {path.name} in {str(path.parent)!r} is not a draft of dpbayes. Move it away.")
    return found


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise LedgerError(
            f"Ledger: the folder {str(folder)!r}, which keeps what is drawn, cannot be used: {problem.strerror}."
        ) from None
    except UnicodeError:
        raise LedgerError(f"Ledger: a file in {str(folder)!r} is damaged: it is not text. Move it away.") from None
