"""One line of a ledger: a canonical JSON text, chained to the line before it by SHA-256.

The hash of an entry is the hash of its text, and the text names the hash of the entry before. So an export is
nothing but these texts, one a line, and anyone can check the chain with a hash tool and price the charges again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from dpbayes.domain.codec import canonical, digest
from dpbayes.errors import InvalidArgument, LedgerError

FORMAT = 2
"""Version of the texts and of the tables that hold them; a reader refuses a higher one, and reads lower ones.

Format 2 added the schema and the software to charges, entries that accept a schema, and limits that hold whatever an
analyst adapts to.
"""

LONGEST_TEXT = 1000

GENESIS = "0" * 64
"""What the first entry names as the hash before it."""

FIELDS: dict[str, set[str]] = {
    "budget": {"format", "budget", "unit", "schema"},
    "charge": {"releases", "lock", "schema", "software"},
    "schema": {"schema"},
    "drawn": {"charge", "digest"},
    "void": {"charge", "key"},
}
"""The kinds of entries, and what each says beyond data set, serial, previous, kind, time and about."""

COMMON = {"dataset", "serial", "previous", "kind", "time", "about"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry: ``text`` is what is stored, hashed and exported, ``body`` what it says."""

    text: str
    hash: str
    body: dict[str, object]

    @property
    def serial(self) -> int:
        """Its place in the chain of its data set, from 0."""
        return int(self.body["serial"])  # type: ignore[call-overload,no-any-return]  # checked when read

    @property
    def kind(self) -> str:
        """``budget``, ``charge``, ``schema``, ``drawn`` or ``void``."""
        return str(self.body["kind"])

    @classmethod
    def write(cls, *, dataset: str, after: Entry | None, kind: str, about: str, **details: object) -> Entry:
        """The entry that follows ``after``, dated now."""
        if not (dataset and _plain(dataset) and _plain(about)):
            raise InvalidArgument(
                f"Ledger: expected names and remarks as one line of text, up to {LONGEST_TEXT} characters."
            )
        body: dict[str, object] = {
            "dataset": dataset,
            "serial": 0 if after is None else after.serial + 1,
            "previous": GENESIS if after is None else after.hash,
            "kind": kind,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "about": about,
            **details,
        }
        text = canonical(body)
        return cls(text=text, hash=digest(text), body=json.loads(text))

    @classmethod
    def read(cls, text: str, *, dataset: str, after: Entry | None) -> Entry:
        """Read a stored text back as the entry that follows ``after``; anything else is refused."""
        serial = 0 if after is None else after.serial + 1
        body = parsed(text)
        if body is None:
            raise broken(dataset, serial, "is not the text that dpbayes wrote")
        kind = str(body.get("kind"))
        if kind == "budget" and "schema" not in body:
            raise too_old()
        if kind not in FIELDS or set(body) != COMMON | FIELDS[kind]:
            raise broken(dataset, serial, "is of no known form")
        if body["previous"] != (GENESIS if after is None else after.hash):
            raise broken(dataset, serial, "does not follow from the entry before it")
        if (body["dataset"], body["serial"]) != (dataset, serial) or isinstance(body["serial"], bool):
            raise broken(dataset, serial, "stands in the wrong place")
        if not (_plain(body["time"]) and _plain(body["about"])):
            raise broken(dataset, serial, "holds what is not plain text")
        return cls(text=text, hash=digest(text), body=body)


def too_old() -> LedgerError:
    """The error for a ledger of 0.1.0, which was never published."""
    return LedgerError("Ledger: written by dpbayes 0.1.0, which no later version reads. Open a new ledger.")


def _plain(text: object) -> bool:
    """Text that any database holds and any terminal shows."""
    return isinstance(text, str) and len(text) <= LONGEST_TEXT and text.isprintable()


def parsed(text: str) -> dict[str, object] | None:
    """The JSON object that this text is the canonical form of, or ``None``."""
    try:
        body = json.loads(text)
        return body if isinstance(body, dict) and canonical(body) == text else None
    except (ValueError, RecursionError):
        return None


def broken(dataset: str, serial: int, how: str) -> LedgerError:
    """The error for an entry that cannot be trusted."""
    return LedgerError(
        f"Ledger: entry {serial} of data set {dataset!r} {how}: the ledger was altered or damaged. Restore the last "
        "good copy, and check that it holds every release published since."
    )
