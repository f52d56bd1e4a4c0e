"""A data set's entries, and what they say together: its budget, what is spent, and whether a charge fits.

An entry is a canonical JSON text, chained to the one before it by SHA-256: its hash is the hash of its text, and the
text names the hash of the entry before. So an export is nothing but these texts, one a line, and anyone can check the
chain with a hash tool and price the charges again. Every reader replays the entries, and so checks the whole chain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from dpbayes.base import checks
from dpbayes.base.codec import Record, canonical, digest
from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument, LedgerError, UnitMismatch
from dpbayes.mechanisms.kinds import KINDS, from_record
from dpbayes.privacy.calibrate import fit_to_limit, guarantee_from_record
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Charged, Guarantee, Limit
from dpbayes.schema.unit import Unit

FORMAT = 2
"""Version of the texts and of the tables that hold them; a reader refuses any other."""

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
        body = parse(text)
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


def parse(text: str) -> dict[str, object] | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Where a charge stands in its ledger."""

    serial: int
    """Which entry the charge is."""
    hash: str
    """The hash of that entry, and so of the whole chain up to it."""
    spent: float
    """Of the budget, this charge included, in the budget's own notion."""
    left: float
    """The largest cost of one more release, seen from there."""
    budget: Record
    """The guarantee that all releases of the data set keep together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge: mechanism records with multiplicities, and what became of it.

    ``state`` is ``charged`` (it may have been drawn), ``drawn`` or ``void`` (nothing was read).
    """

    entry: Entry
    releases: tuple[tuple[str, int], ...]
    lock: str
    state: str = "charged"
    digest: str = ""
    """SHA-256 of the values that were drawn, where the releaser noted it."""

    @property
    def schema(self) -> str:
        """The digest of the schema that it was made under; empty if none was named."""
        return str(self.entry.body.get("schema", ""))

    @property
    def cost(self) -> Cost:
        """What was charged: a list that was fixed before the first of it was drawn."""
        return _cost(self.releases)


Chain = tuple[tuple[Entry, ...], Mapping[int, Charge]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The state of one data set, replayed from its entries, or remembered from when they were."""

    dataset: str
    unit: Unit
    head: Entry
    """The last entry, whose hash fixes all others."""
    charged: Charged = field(compare=False)
    """The limit, and what it is charged with."""
    schemas: tuple[str, ...] = ()
    """Digests of the schemas that may be charged; none yet, if the data set was opened without one."""
    chain: Callable[[], Chain] = field(default=lambda: ((), {}), compare=False, repr=False)
    """Reads all entries, where that has not been done yet."""
    open: Mapping[int, Charge] = field(default_factory=dict, compare=False)
    """Charges since it was remembered that are not settled."""
    seal: str = field(default="", compare=False)
    """What changes when anybody writes these entries; empty if nothing tells."""

    def __hash__(self) -> int:
        return hash(self.head.hash)

    @property
    def budget(self) -> Limit:
        """The limit."""
        return self.charged.limit

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them."""
        return self.chain()[0]

    @property
    def charges(self) -> Mapping[int, Charge]:
        """All of them, by serial."""
        return self.chain()[1]

    @property
    def cost(self) -> Cost:
        """The cost of every charge that is not void, equal mechanisms merged: as if all had been planned together."""
        return Cost.total([Cost(unit=self.unit), *self.costs.values()])

    @property
    def costs(self) -> dict[int, Cost]:
        """The charges that are not void, by serial: each a list that was fixed before it was drawn."""
        return {serial: one.cost for serial, one in self.charges.items() if one.state != "void"}

    @property
    def used(self) -> float:
        """The share of the limit that is used up."""
        return self.budget.used(self.charged)

    @property
    def spent(self) -> float:
        """What is used up, as the number that the budget limits."""
        return self.budget.spent(self.charged)

    def affords(self, cost: Cost) -> bool:
        """Whether the limit holds with this cost on top of what is spent, whatever it was adapted to."""
        return self.budget.used(self.charged.plus(cost)) <= 1.0

    def left(self) -> float:
        """The largest number, in the budget's notion, that one more release may cost on its own, by the ledger's rule.

        Under (ε, δ) it is the ε at the budget's δ; in other notions costs add, and it is the limit minus what is spent.
        """
        return self.budget.left(self.charged)

    def rest(self) -> Guarantee:
        """What is left, as a guarantee: the most that one more release may promise."""
        if not (left := self.left()) > 0:
            raise BudgetExceeded(f"Ledger: nothing is left of {self.budget}. Ask the data owner to raise the limit.")
        return self.budget.plain.of_size(left)

    def priced(self, target: Guarantee) -> Guarantee:
        """A target as this ledger prices it: what is calibrated to it and is not above what is left, fits."""
        return fit_to_limit(target, self.budget, self.charged)

    def followed(self, texts: Iterable[str]) -> Account | None:
        """The account after more entries, if it can be told without those before it: none of them is settled."""
        state = _State(self.unit, self.budget, dict(self.open), list(self.schemas))
        head, charged = self.head, self.charged
        for text in texts:
            head = Entry.read(text, dataset=self.dataset, after=head)
            settles = head.body.get("charge")
            if head.kind in ("budget", "void") or not (settles is None or settles in state.charges):
                return None
            state.apply(head)
            if head.kind == "charge":
                charged = charged.plus(state.charges[head.serial].cost)
        return replace(self, head=head, charged=charged, schemas=tuple(state.schemas), open=state.open())

    def spending(self, serial: int) -> Spending:
        """Where a charge stood when it was made."""
        same = self.head.serial == serial
        then = self if same else replay(self.dataset, (entry.text for entry in self.entries[: serial + 1]))
        return Spending(
            serial=serial, hash=then.head.hash, spent=then.spent, left=then.left(), budget=dict(then.budget.record())
        )


@lru_cache(maxsize=2**16)
def mechanism(record: str) -> Priced:
    """The mechanism of a canonical record."""
    return from_record(json.loads(record))


@lru_cache(maxsize=2**16)
def _cost(releases: tuple[tuple[str, int], ...]) -> Cost:
    entries = tuple((mechanism(record), times) for record, times in releases)
    return Cost(unit=entries[0][0].unit, entries=entries)


def replay(dataset: str, texts: Iterable[str]) -> Account:
    """The account that these texts describe: the whole chain of a data set, in order.

    The first entry that is not in its place, or says what no ledger says, is named in the error.
    """
    state, entries = _State(), list[Entry]()
    for text in texts:
        entries.append(Entry.read(text, dataset=dataset, after=entries[-1] if entries else None))
        state.apply(entries[-1])
    if state.unit is None or state.budget is None:
        raise broken(dataset, 0, "is missing")
    chain, counted = (tuple(entries), state.charges), [one for one in state.charges.values() if one.state != "void"]
    return Account(
        dataset=dataset,
        unit=state.unit,
        head=entries[-1],
        charged=Charged(state.budget, tuple(one.cost for one in counted)),
        schemas=tuple(state.schemas),
        chain=lambda: chain,
        open=state.open(),
    )


MOST_TIMES = 10**9
"""How often one mechanism may be drawn in a charge."""


def release(record: object) -> tuple[str, int]:
    """A mechanism, as its canonical record, and how often it is drawn."""
    match record:
        case {"mechanism": dict(drawn), "times": int(times), **others} if 1 <= times <= MOST_TIMES and not others:
            return canonical(drawn), int(times)
    raise InvalidArgument(f"Ledger: expected a mechanism and a number of times between 1 and {MOST_TIMES}.")


@dataclass(slots=True)
class _State:
    """What the entries so far amount to."""

    unit: Unit | None = None
    budget: Limit | None = None
    charges: dict[int, Charge] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)

    def open(self) -> dict[int, Charge]:
        """Charges that are not settled."""
        return {serial: charge for serial, charge in self.charges.items() if charge.state == "charged"}

    def apply(self, entry: Entry) -> None:
        try:
            self._follow(entry)
        except LedgerError:
            raise
        except (DpbayesError, KeyError, TypeError, ValueError, OverflowError) as problem:
            raise broken(str(entry.body["dataset"]), entry.serial, "makes no sense") from problem

    def _follow(self, entry: Entry) -> None:
        match entry.body:
            case {"kind": "budget", "format": version, "budget": budget, "unit": unit}:
                self._set_budget(version, guarantee_from_record(budget), Unit.from_record(unit))
                self._accept(entry.body["schema"])
            case {"kind": "charge", "releases": [_, *_] as releases, "lock": str(lock)} if self.unit:
                parts = tuple(self._release(one) for one in releases)
                digest_of_schema = entry.body["schema"]
                if digest_of_schema and self.schemas and digest_of_schema not in self.schemas:
                    raise InvalidArgument("Ledger: a charge names a schema that was not accepted.")
                self._accept(digest_of_schema)
                self.charges[entry.serial] = Charge(entry=entry, releases=parts, lock=lock)
            case {"kind": "schema", "schema": str(accepted)} if self.unit and accepted:
                self._accept(accepted)
            case {"kind": "drawn", "charge": int(serial), "digest": str(digest_of_values)}:
                self._settle(serial, "drawn", digest_of_values)
            case {"kind": "void", "charge": int(serial), "key": str(key)}:
                if digest(key) != self.charges[serial].lock:
                    raise InvalidArgument("Ledger: the key does not open the lock of the charge.")
                self._settle(serial, "void")
            case _:
                raise InvalidArgument("Ledger: expected an entry that follows from the others.")

    def _set_budget(self, version: object, budget: Limit, unit: Unit) -> None:
        checks.positive_integer("Ledger", format=version)
        if version > FORMAT:  # type: ignore[operator]  # checked the line before
            raise too_new()
        if self.unit not in (None, unit):
            raise UnitMismatch("Ledger: the unit of a data set is fixed when its ledger is opened.")
        if not budget.lasts:
            raise InvalidArgument("Ledger: an (ε, δ) limit says by which rule it is kept.")
        self.budget, self.unit = budget, unit

    def _accept(self, schema: object) -> None:
        """A schema that the owner registered or, where there was none, the first that was charged."""
        if not isinstance(schema, str):
            raise InvalidArgument("Ledger: expected the digest of a schema.")
        if schema and schema not in self.schemas:
            self.schemas.append(schema)

    def _release(self, record: object) -> tuple[str, int]:
        match record:
            case {"mechanism": {"mechanism": name}} if name not in KINDS:
                raise too_new()
        text, times = release(record)
        if mechanism(text).unit != self.unit:
            raise UnitMismatch("Ledger: a charge protects another unit than its data set.")
        return text, times

    def _settle(self, serial: int, state: str, digest_of_values: str = "") -> None:
        if self.charges[serial].state != "charged":
            raise InvalidArgument("Ledger: a charge is settled once.")
        self.charges[serial] = replace(self.charges[serial], state=state, digest=digest_of_values)


def too_new() -> LedgerError:
    """The error for a ledger of a later format."""
    return LedgerError("Ledger: written by a newer dpbayes. Upgrade dpbayes to read it.")
