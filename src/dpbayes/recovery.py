"""What became of every draft, draw and charge of a ledger, and the completion of releases that were interrupted.

Nothing is charged here, and nothing is removed for want of evidence: only a draft whose charge is found, and whose
release is finished, noted or taken back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpbayes.base.codec import Record, digest
from dpbayes.base.errors import DpbayesError, InvalidArgument, Unfinished
from dpbayes.curator import Curator, address, destination, opened
from dpbayes.jobs.base import plan_from_record
from dpbayes.release.format import Release

if TYPE_CHECKING:
    from dpbayes.ledger.account import Account, Charge
    from dpbayes.ledger.kept import Draw, Slot
    from dpbayes.ledger.ledger import Ledger, Receipt

State = Literal[
    "finished",  # now
    "noted",  # now: its draw was complete, and the ledger did not know it
    "given up",  # now: no row was read, and the charge was taken back
    "set aside",  # a draft without a charge
    "under way",  # a living process works on it
    "not asked for",
    "unfinished",
    "without its charge",  # rows may have been read for it, and the ledger has no charge: it is an older copy
    "of another ledger",
    "drawn",
    "void",
    "charged",  # without a note, a draft or a draw here: made elsewhere, or a series
]

LEFT: tuple[State, ...] = ("unfinished", "without its charge")
"""What has to be looked after."""

IN_ORDER: tuple[State, ...] = ("drawn", "void")

OLDER = (
    "Rows were read for it, and this ledger has no such charge: an older copy may have been put back. "
    "Find the newer one, and finish it with that."
)
ASIDE = "This ledger has no charge for it. If an older copy was put back, finish it with the newer one; else remove it."
FOREIGN = "This ledger did not make it, and leaves it alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One draft, draw or charge, and what became of it."""

    state: State
    name: str = ""
    """That of its draft and draw."""
    dataset: str = ""
    entry: int | None = None
    """Its charge."""
    about: str = ""
    says: str = ""
    """Why, and what to do."""
    release: Release | None = None

    @property
    def left(self) -> bool:
        """Whether it has to be looked after."""
        return self.state in LEFT

    def record(self) -> Record:
        """JSON form, without the release."""
        return {name: getattr(self, name) for name in ("state", "name", "dataset", "entry", "about", "says")}


def finish(
    ledger: Ledger | str | Path,
    *,
    table: object = None,
    out: str | Path | None = None,
    forgo: bool = False,
    only: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Release]:
    """Complete every release of a ledger that was paid for and interrupted; nothing is charged again.

    A draw that was kept is used as it is. Else the table is read again, from the address in the draft, and drawn under
    the same charge; ``table`` is for releases of a table in memory, at this address with its password, or with ``only``
    wherever it lies now. ``only`` names one release, ``forgo`` takes back the charge of what never read a row. If
    anything is left, ``Unfinished`` is raised in the end; it has what could be ``finished``.
    """
    found = recover(ledger, table=table, out=out, forgo=forgo, only=only, progress=progress)
    finished = [item.release for item in found if item.release is not None]
    if any(item.left for item in found):
        raise unfinished(found)
    return finished


def unfinished(items: list[Item]) -> Unfinished:
    """The error for what is left."""
    left = [item for item in items if item.left]
    said = " ".join(f"{item.name}: {item.says}" for item in left[:5]) + " …" * (len(left) > 5)
    made = Unfinished(f"Finish: {len(left)} of {len({item.name for item in items if item.name})} left. {said}")
    made.finished = tuple(item.release for item in items if item.release is not None)
    return made


def recover(
    ledger: Ledger | str | Path,
    *,
    table: object = None,
    out: str | Path | None = None,
    forgo: bool = False,
    only: str | None = None,
    dataset: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Item]:
    """Finish as ``finish`` does, and list every draft, draw and charge with its state. What fails is in the list.

    If the ``table`` is known to be that of a ``dataset``, no release of another one is drawn from it.
    """
    book = opened(ledger)
    assert book is not None
    kept = book.kept
    with kept.unfinished() as slots:
        if only is not None and sum(slot.name.startswith(only) for slot in slots) != 1:
            known = ", ".join(slot.name for slot in slots) or "none"
            raise InvalidArgument(
                f"Finish: expected the name of one unfinished release, got {only!r}. There is {known}."
            )
        work = _Work(book, kept.ledger, table, out, forgo, only, dataset, progress)
        items = [_isolated(slot.name, lambda slot=slot: work.on_draft(slot)) for slot in slots]  # type: ignore[misc]
        mine = {slot.name for slot in slots}
        for draw in kept.draws():
            if draw.name not in mine:
                items.append(_isolated(draw.name, lambda draw=draw: work.on_draw(draw)))  # type: ignore[misc]
    return items + work.others()


def _isolated(name: str, act: Callable[[], Item]) -> Item:
    """What happens to one keeps no other from being finished. An unexpected error may quote a private value."""
    try:
        return act()
    except DpbayesError as problem:
        return Item(state="unfinished", name=name, says=str(problem))
    except Exception as problem:
        return Item(state="unfinished", name=name, says=f"An unexpected {type(problem).__name__}, a fault of dpbayes.")


@dataclass
class _Work:
    """The charges of a ledger, and what is asked for."""

    book: Ledger
    identity: str
    table: object
    out: str | Path | None
    forgo: bool
    only: str | None
    dataset: str | None
    progress: Callable[[str], None] | None

    def __post_init__(self) -> None:
        accounts = [self.book.account(name) for name in self.book.datasets()]
        self._charges = {each.lock: (account, each) for account in accounts for each in account.charges.values()}
        self._seen: set[str] = set()

    def on_draft(self, slot: Slot) -> Item:
        """Finish a release, if it is ours and can be."""
        if slot.ledger not in ("", self.identity):
            return Item(state="of another ledger", name=slot.name, says=FOREIGN)
        lock = digest(slot.key)
        known = self._charges.get(lock)
        self._seen.add(lock)
        if known is None:
            return self._uncharged(slot)
        item = _item(*known, name=slot.name)
        if not slot.held:
            return replace(item, state="under way")
        if item.state == "void":
            slot.done()
            return item
        if self.only is not None and not slot.name.startswith(self.only):
            return replace(item, state="not asked for")
        receipt = self.book.receipt_of(*known, key=slot.key)
        if self.forgo and not slot.reads:
            self.book.void(receipt, about="given up before a row was read")
            slot.done()
            return replace(item, state="given up")
        try:
            release = self._resumed(receipt, slot)
        except DpbayesError as problem:
            return replace(item, state="unfinished", says=str(problem))
        if slot.over:
            return replace(item, state="finished", release=release)
        says = "The ledger could not note what was drawn. Mend the cause, then run `dpbayes ledger finish` again."
        return replace(item, state="unfinished", release=release, says=says)

    def _uncharged(self, slot: Slot) -> Item:
        """The charge may be in a newer copy of the ledger, so nothing is removed."""
        if not slot.held:
            return Item(state="under way", name=slot.name)
        if slot.ledger != self.identity:
            return Item(state="of another ledger", name=slot.name, says=FOREIGN)
        if slot.reads or slot.kept() is not None:
            return Item(state="without its charge", name=slot.name, says=OLDER)
        slot.aside()
        return Item(state="set aside", name=slot.name, says=ASIDE)

    def on_draw(self, draw: Draw) -> Item:
        """A draw without a draft is complete; if the ledger has no note of it, it gets one."""
        if draw.ledger not in ("", self.identity):
            return Item(state="of another ledger", name=draw.name, says=FOREIGN)
        text = draw.text()
        lock = str(json.loads(text).get("lock"))
        known = self._charges.get(lock)
        self._seen.add(lock)
        if known is None:
            ours = draw.ledger == self.identity
            return Item(
                state="without its charge" if ours else "of another ledger",
                name=draw.name,
                says=OLDER if ours else FOREIGN,
            )
        item = _item(*known, name=draw.name)
        if item.state == "void":
            return replace(item, state="without its charge", says="It was drawn, and yet its charge was taken back.")
        if item.state == "charged":
            self.book.confirm(self.book.receipt_of(*known), digest=Release.from_json(text).digest())
            return replace(item, state="noted")
        return item

    def others(self) -> list[Item]:
        """The charges of which nothing is here."""
        return [_item(*known) for lock, known in self._charges.items() if lock not in self._seen]

    def _resumed(self, receipt: Receipt, slot: Slot) -> Release:
        draft = slot.draft
        plan = replace(plan_from_record(draft.get("plan")), lock=digest(slot.key))
        goes = draft.get("goes")
        if self.out is not None:
            goes = destination(self.out, (goes or {}).get("numbers", "csv"))
        source = draft.get("table")
        moved = self.only is not None and self.dataset in (None, plan.schema.id)
        if self.table is not None and (source == address(self.table) or moved):  # both None for tables in memory
            source = self.table  # never in place of another table: that of another release
        if source is None and slot.kept() is None:
            raise Unfinished("Curator: a release of a table in memory was interrupted. Hand in the table to finish it.")
        curator = Curator(source if source is not None else {}, plan.schema, ledger=self.book, progress=self.progress)
        return curator.under(receipt, plan, slot, goes)


def _item(account: Account, charge: Charge, *, name: str = "") -> Item:
    state: State = charge.state  # type: ignore[assignment]  # one of three
    said = str(charge.entry.body["about"])
    return Item(state=state, name=name, dataset=account.dataset, entry=charge.entry.serial, about=said)
