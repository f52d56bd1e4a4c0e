"""What a ledger remembers of earlier releases: which tables, when, which replaced which; its export; and series.

An export is the texts of the entries, one a line, so that anyone can check and price them again. All of it is public.
A series is draws that are fixed and charged as one entry, and made one by one as data come in.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base.checks import Floats
from dpbayes.base.codec import canonical, digest
from dpbayes.base.display import listed_and
from dpbayes.base.errors import BudgetExceeded, InvalidArgument, LedgerError, SchemaError
from dpbayes.ledger.account import LONGEST_TEXT, Account, broken, parse, replay
from dpbayes.privacy.calibrate import guarantee_from_record
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.schema.marginal import Marginal

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger, Receipt


ID_LENGTH = 16
"""Of the hexadecimal digits of a draw's digest, as many as its id has."""

_SUPERSEDES = re.compile(r" \[supersedes ([0-9a-f]{12,64})\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One charge that may have been drawn."""

    serial: int
    time: str
    about: str
    """Its title and tables, as its line in the ledger has them."""
    id: str
    """The id of what was drawn; empty if it was not noted."""
    tables: tuple[Marginal, ...]
    """The tables that it published, where it was a release of tables."""
    supersedes: str = ""
    """The id of the release that it replaced."""

    @property
    def day(self) -> str:
        """When, without the time of day."""
        return self.time[:10]


def line(about: str, *, title: str = "", supersedes: str = "") -> str:
    """What the ledger keeps of a release: title, tables, and what it supersedes.

    >>> line("sex; income|sex", title="Income", supersedes="0123456789abcdef")
    'Income: sex; income|sex [supersedes 0123456789abcdef]'
    """
    tail = f" [supersedes {supersedes}]" if supersedes else ""
    head = f"{title}: {about}" if title else about
    return head[: LONGEST_TEXT - len(tail)] + tail


def history(account: Account) -> tuple[Past, ...]:
    """The charges of a data set that are not void, in their order."""
    found = []
    for serial, charge in account.charges.items():
        if charge.state == "void":
            continue
        said = str(charge.entry.body["about"])
        replaced = _SUPERSEDES.search(said)
        text = said[: replaced.start()] if replaced else said
        past = Past(
            serial=serial,
            time=str(charge.entry.body["time"]),
            about=text,
            id=charge.digest[:ID_LENGTH],
            tables=tuple(_tables(text)),
            supersedes=replaced[1] if replaced else "",
        )
        found.append(past)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One line of a timeline."""

    serial: int
    time: str
    what: str
    id: str = ""
    state: str = ""


def timeline(account: Account) -> tuple[Happening, ...]:
    """Limits, accepted schemas and charges of a data set, in the order in which they came."""
    known = {past.serial: past for past in history(account)}
    replaced = {past.supersedes[:ID_LENGTH]: past.serial for past in known.values() if past.supersedes}
    events = []
    for entry in account.entries:
        body, remark = entry.body, str(entry.body["about"])
        happened = partial(Happening, serial=entry.serial, time=str(body["time"]))
        if entry.kind == "budget":
            what = f"limit: {guarantee_from_record(body['budget'])}"
            events.append(happened(what=f"{what} ({remark})" if remark else what))
        elif entry.kind == "schema":
            events.append(happened(what=f"schema accepted ({remark})"))
        elif entry.kind == "charge":
            past, state = known.get(entry.serial), account.charges[entry.serial].state
            said = remark if past is None else past.about
            if past is not None and past.supersedes:
                said += f"; supersedes {past.supersedes[:ID_LENGTH]}"
            if past is not None and past.id in replaced:
                said += f"; superseded by entry {replaced[past.id]}"
            events.append(happened(what=said, id="" if past is None else past.id, state=state))
    return tuple(events)


def already(account: Account, wanted: Iterable[Marginal]) -> list[str]:
    """Sentences about wanted tables that were published before, or follow from one that was."""
    said = []
    for marginal in wanted:
        for past in reversed(history(account)):
            holding = [table for table in past.tables if set(marginal.names) <= set(table.names)]
            if not holding:
                continue
            same = marginal in holding
            where = f"entry {past.serial} of {past.day}" + (f", id {past.id}" if past.id else "")
            how = (
                f"was published before ({where})" if same else f"follows from {holding[0]}, published before ({where})"
            )
            said.append(f"{marginal} {how}. Reading that costs nothing; `dpbayes ask` combines all releases.")
            break
    return said


def check_superseded(account: Account, identity: str, wanted: Iterable[Marginal]) -> None:
    """Refuse to supersede what this ledger has not seen, and warn about tables that readers would lose."""
    known = {past.id: past for past in history(account) if past.id}
    same = [each for each in known if identity.startswith(each) or each.startswith(identity)]
    if not same:
        listed = f" It has {', '.join([*known][-5:])}." if known else " It has none yet."
        raise LedgerError(f"Ledger: no release of {account.dataset!r} has the id {identity[:ID_LENGTH]}.{listed}")
    lost = [old for old in known[same[0]].tables if not any({*old.names} <= {*new.names} for new in wanted)]
    if lost:
        tables = listed_and(map(str, lost))
        warnings.warn(f"Ledger: {same[0]}, which this supersedes, has {tables}; readers lose that.", stacklevel=2)


def _tables(text: str) -> list[Marginal]:
    """The tables that a line names, after its title."""
    found = []
    for piece in text.split("; "):
        for part in (piece, piece.rpartition(": ")[2]):
            try:
                found.append(Marginal.parse(part))
                break
            except SchemaError:
                continue
    if found and ": " in text.split("; ", maxsplit=1)[0]:  # a title reads like the name of an attribute
        found[0] = Marginal.parse(text.split("; ", maxsplit=1)[0].rpartition(": ")[2] or "?")
    return found


def lines(account: Account) -> list[str]:
    """The entries of one data set, and a last line with the hash of the last entry: it shows when a file is cut."""
    head = {"dataset": account.dataset, "kind": "head", "serial": account.head.serial, "hash": account.head.hash}
    return [*(entry.text for entry in account.entries), canonical(head)]


def read(texts: Iterable[str]) -> dict[str, Account]:
    """The accounts of all data sets in an export, with every chain checked."""
    chains: dict[str, list[str]] = {}
    heads: dict[str, str] = {}
    for number, line in enumerate(texts, start=1):
        text = line.rstrip("\r\n")
        body = parse(text)
        if body is None or not isinstance(body.get("dataset"), str):
            raise LedgerError(f"Ledger: line {number} of the export is not an entry. Ask for the file again.")
        dataset = str(body["dataset"])
        if body.get("kind") == "head":
            heads[dataset] = text
        else:
            chains.setdefault(dataset, []).append(text)
    accounts = {dataset: replay(dataset, chain) for dataset, chain in chains.items()}
    for dataset in sorted({*accounts, *heads}):
        found = accounts.get(dataset)
        if found is None or lines(found)[-1] != heads.get(dataset):
            raise broken(dataset, 0 if found is None else found.head.serial + 1, "and perhaps later ones are missing")
    if not accounts:
        raise LedgerError("Ledger: the export is empty. Ask for the file again.")
    return accounts


class Series:
    """Draws whose mechanisms and order were fixed before the first, paid for together; ``Ledger.series`` makes one.

    Counts may depend on earlier draws, and draws may stop early. Each counts a person in no more rows than the unit
    says. Equal mechanisms are drawn one after another: the order is that of ``cost.entries``. The series lives in one
    process: what is not drawn when it ends is paid for and lost. As a context it tells the ledger what was drawn. The
    charge stays even if nothing was: whether to draw may have been decided by what the rows hold.

    Source: docs/explanation/proofs/adaptive.md, theorem 3 (a list fixed beforehand is one step).

    >>> import tempfile
    >>> from dpbayes import ApproxDP, Dirichlet, Ledger, Unit
    >>> unit = Unit(adjacency="add-remove")
    >>> ledger = Ledger(tempfile.mkdtemp() + "/trial.ledger")
    >>> ledger.open("trial", ApproxDP(epsilon=4, delta=1e-6), unit)
    >>> mechanism = Dirichlet(weight=1, concentration=40, unit=unit)
    >>> with ledger.series("trial", Cost.of(mechanism, 10), about="ten draws") as series:
    ...     for step in range(3):
    ...         drawn = series.draw([3 * step, 5])
    ...     (series.left, round(series.epsilon(1e-6), 2), round(series.cost.epsilon(1e-6), 2))
    (7, 1.26, 2.35)
    """

    def __init__(self, ledger: Ledger, receipt: Receipt, cost: Cost) -> None:
        self._ledger, self._receipt, self.cost = ledger, receipt, cost
        self._digests: list[str] = []
        self._over, self._lock, self._process = False, threading.Lock(), os.getpid()

    @property
    def drawn(self) -> int:
        """How many draws were made."""
        return len(self._digests)

    @property
    def left(self) -> int:
        """How many draws are left."""
        return 0 if self._over else self.cost.releases - self.drawn

    @property
    def so_far(self) -> Cost:
        """The cost of the draws that were made, exactly: at most ``cost``, which is what the ledger has charged."""
        left, entries = self.drawn, []
        for mechanism, times in self.cost.entries:
            entries.append((mechanism, min(times, left)))
            left -= min(times, left)
        return Cost(unit=self.cost.unit, entries=tuple(each for each in entries if each[1]))

    def epsilon(self, delta: float) -> float:
        """The running price: ε at this δ of the draws that were made."""
        return self.so_far.epsilon(delta)

    def draw(self, counts: ArrayLike) -> Floats:
        """The next draw. A refusal of the counts uses it up, as it tells something about them."""
        return self._next("draw", counts)

    def gammas(self, counts: ArrayLike) -> Floats:
        """The next draw of a Dirichlet mechanism before it is normalised, at the same cost."""
        return self._next("gammas", counts)

    def _next(self, kind: str, counts: ArrayLike) -> Floats:
        if os.getpid() != self._process:
            raise InvalidArgument("Series: it belongs to the process that opened it. Draw there.")
        with self._lock:
            if not self.left:
                raise BudgetExceeded(
                    f"Series: {'it is closed' if self._over else 'all its draws are made'}. Charge another one."
                )
            draw: Callable[[ArrayLike], Floats] | None = getattr(mechanism := self._at(self.drawn), kind, None)
            if draw is None:
                raise InvalidArgument(f"Series: {type(mechanism).__name__} has no {kind}. Use draw.")
            self._digests.append("")  # used up from here on, whatever happens
            made = draw(counts)
            self._digests[-1] = digest(np.ascontiguousarray(made).tobytes())
        return made

    def _at(self, number: int) -> Priced:
        for mechanism, times in self.cost.entries:
            if number < times:
                return mechanism
            number -= times
        raise AssertionError

    def close(self) -> None:
        """Note in the ledger what was drawn. Nothing is drawn afterwards."""
        with self._lock:
            if self._over or os.getpid() != self._process:
                return
            self._over = True
            self._ledger.confirm(self._receipt, digest=digest(canonical(self._digests)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise InvalidArgument("Series: it cannot be copied or kept, as its draws could then be made twice.")

    def __repr__(self) -> str:
        return f"Series({self._receipt.dataset!r}: {self.drawn} of {self.cost.releases} draws)"
