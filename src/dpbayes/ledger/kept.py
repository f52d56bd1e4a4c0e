"""Releases that are under way, and draws that were paid for, in a folder beside the ledger.

Before a charge, a *draft* is on disk that says what will be drawn and holds the key of the charge. After the draw, and
before anything else can see it, the draw is on disk too. So whatever happens in between, ``dpbayes ledger finish``
completes the release: from the draw that was kept, or by drawing again under the same charge. Drawing again is sound,
since nothing of a draw that was not kept has left the process: what is published is one draw, as if there had been no
other.
The draws stay as the archive of the data set; they are public.

The name of each file begins with the id of its ledger, so that no other ledger takes it for its own. A draft whose
charge is not found is never removed, since the ledger may be an older copy that was put back: it is set aside.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from dpbayes.base import files
from dpbayes.base.codec import Record, canonical, digest, fields_record, from_fields
from dpbayes.base.errors import DpbayesError, LedgerError
from dpbayes.ledger.account import Account

DRAFT, READING, ASIDE, DRAW, PRIVATE, SEEN = ".draft", ".reading", ".aside", ".draw.json", ".private", ".seen"

UNKNOWN = ""
"""The ledger of a file that does not say: until 0.2.0 none did."""


class _Named:
    """A draft or a draw, by the name of its file: that of its ledger, a dash, its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def ledger(self) -> str:
        """The id of the ledger that it was made for, as far as its name says."""
        first, dash, _ = self._path.name.partition("-")
        return first if dash else UNKNOWN

    @property
    def name(self) -> str:
        """By which people tell it from others."""
        return self._path.name.partition(".")[0].rpartition("-")[2][:12]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path


class Draw(_Named):
    """A draw that was kept: the text of a release."""

    def text(self) -> str:
        """The release, without its estimates."""
        with _explain_faults(self._path.parent):
            return self._path.read_text(encoding="utf-8")


class Slot(_Named):
    """One release under way. Whoever holds it holds its lock."""

    def __init__(self, path: Path, draft: Record | None = None, *, held: bool = True) -> None:
        super().__init__(path)
        self._draft = draft
        self.held = held
        """Whether it is ours to work on: no living process does."""
        self.over = False
        """Whether nothing is left to do."""

    @property
    def draft(self) -> Record:
        """What will be drawn, and the key."""
        if self._draft is None:
            self._draft = _draft(self._path)
        return self._draft

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
        self._become(READING)

    def aside(self) -> None:
        """Set it aside: its charge is not in the ledger. It is looked at again whenever releases are finished."""
        self._become(ASIDE)

    def _become(self, suffix: str) -> None:
        with _explain_faults(self._path.parent):
            self._path = self._path.rename(self._path.with_suffix(suffix))
            files.flush(self._path.parent)

    def keep(self, text: str, private: bytes = b"") -> None:
        """Keep the draw. What is private about it is kept with it, at once or not at all, until the release is done."""
        with _explain_faults(self._path.parent):
            if private:
                public = text.encode()
                whole = b"%d\n" % len(public) + public + private
                files.write(self._path.with_suffix(PRIVATE), whole, private=True)
            files.write(self._draw, text)

    def kept(self) -> str | None:
        """The draw, if it was kept."""
        with _explain_faults(self._path.parent):
            if self._draw.is_file():
                return self._draw.read_text(encoding="utf-8")
            if (both := self._both()) is None:
                return None
            files.write(self._draw, both[0])
            return both[0]

    def private(self) -> bytes:
        """What was kept with the draw; nothing if there was nothing, or once it is where it belongs."""
        with _explain_faults(self._path.parent):
            both = self._both()
            return b"" if both is None else both[1]

    def _both(self) -> tuple[str, bytes] | None:
        path = self._path.with_suffix(PRIVATE)
        if not path.is_file():
            return None
        length, _, rest = path.read_bytes().partition(b"\n")
        return rest[: int(length)].decode(), rest[int(length) :]

    def done(self) -> None:
        """The release is finished, or was never charged: nothing is left to do."""
        with _explain_faults(self._path.parent):
            self._path.with_suffix(PRIVATE).unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        self.over = True

    @property
    def _draw(self) -> Path:
        return self._path.with_suffix(DRAW)


class Kept:
    """The folder of drafts and draws of one ledger.

    ``earlier`` are folders where versions up to 0.2.0 kept those of the same ledger, and perhaps of others.
    """

    def __init__(self, folder: Path, ledger: str = UNKNOWN, earlier: tuple[Path, ...] = ()) -> None:
        self.folder = folder
        self.ledger = ledger
        self._folders = (folder, *earlier)

    @classmethod
    def of(cls, path: Path | None, ledger: str, *, earlier: Path | None = None, name: str = "") -> Kept:
        """Beside a ledger that is a file; else under the user's state folder, by the id of the ledger.

        Until 0.2.0 it was beside the path as given, which may be a link, or went by the ``name`` of the database.
        """
        if path is not None:
            here = beside(path)
            before = here if earlier is None else beside(earlier)
        else:
            here = files.state() / ledger
            before = here.with_name(digest(name)[:32])
        return cls(here, ledger, () if before == here else (before,))

    @contextmanager
    def begin(self, draft: Record) -> Iterator[Slot]:
        """A new draft, on disk and locked. It is forgotten if nothing was charged for it, and else stays until done."""
        made = {**draft, "key": secrets.token_hex(32)}
        with ExitStack() as held:
            with _explain_faults(self.folder):
                files.make_folder(self.folder, 0o700)
                files.sweep(self.folder)
                path = self.folder / f"{self.ledger}-{secrets.token_hex(16)}{DRAFT}"
                files.write(path, json.dumps(made), private=True, held=held)  # locked before it has its name
            yield Slot(path, made)

    @contextmanager
    def unfinished(self) -> Iterator[list[Slot]]:
        """All drafts, in any state; those that no living process works on are locked until the block ends.

        Half-written files go.
        """
        slots: list[Slot] = []
        with ExitStack() as until:
            for folder in self._folders:
                with _explain_faults(folder):
                    files.sweep(folder)
                    for path in sorted(each for end in (DRAFT, READING, ASIDE) for each in folder.glob(f"*{end}")):
                        handle = files.lock(path)
                        if handle is not None:
                            until.callback(os.close, handle)
                        if path.exists():  # else it was finished meanwhile
                            slots.append(Slot(path, held=handle is not None))
            yield slots

    def remember(self, account: Account) -> None:
        """Keep what the entries of an account amount to, so that those under its seal need not be read again."""
        text = canonical([_code(), fields_record(account, without=("chain", "open"))])
        path = self.folder / f"{self.ledger}-{digest(account.dataset)[:32]}{SEEN}"
        with suppress(OSError):
            files.make_folder(self.folder, 0o700)
            files.write(path, f"{digest(text)}\n{text}", private=True)

    def remembered(self, dataset: str) -> Account | None:
        """The account that was kept, if this user and this very code kept it."""
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, DpbayesError):
            path = self.folder / f"{self.ledger}-{digest(dataset)[:32]}{SEEN}"
            check, _, text = path.read_text(encoding="utf-8").partition("\n")
            (code, record), held = json.loads(text), path.stat()
            ours = held.st_uid == os.geteuid() and not held.st_mode & 0o022
            if ours and (check, code, record["dataset"]) == (digest(text), _code(), dataset):
                return from_fields(Account, record)
        return None

    def draws(self) -> list[Draw]:
        """Every draw that was kept."""
        return [Draw(path) for folder in self._folders for path in sorted(folder.glob(f"*{DRAW}"))]


@cache
def _code() -> str:
    """What prices depend on: versions, and the files that compute them. What another code summed is summed anew."""
    rooms = [Path(__file__).parents[1] / room for room in ("mechanisms", "hellinger", "privacy")]
    listed = sorted((of.name, of.stat().st_size, of.stat().st_mtime_ns) for at in rooms for of in os.scandir(at))
    versions = [distribution(name).read_text("METADATA") for name in ("dpbayes", "numpy", "scipy", "dp-accounting")]
    return digest(canonical([sys.version, versions, listed]))


def beside(ledger: Path) -> Path:
    """The folder of a ledger that is a file."""
    return ledger.with_name(ledger.name + ".draws")


def _draft(path: Path) -> Record:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("key"), str):
        raise LedgerError(f"Ledger: {path.name} in {str(path.parent)!r} is not a draft of dpbayes. Move it away.")
    return found


@contextmanager
def _explain_faults(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise LedgerError(
            f"Ledger: the folder {str(folder)!r}, which keeps what is drawn, cannot be used: {problem.strerror}."
        ) from None
    except UnicodeError:
        raise LedgerError(f"Ledger: a file in {str(folder)!r} is damaged: it is not text. Move it away.") from None
