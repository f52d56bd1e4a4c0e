"""From the entries of a data set to its account: every reader of a ledger checks the whole chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dpbayes import _checks
from dpbayes.domain.codec import canonical, digest
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import DpbayesError, InvalidArgument, LedgerError, UnitMismatch
from dpbayes.ledger.account import Account, Charge, mechanism
from dpbayes.ledger.entry import FORMAT, Entry, broken
from dpbayes.mechanisms.records import KINDS
from dpbayes.privacy.guarantee import ApproxDP, Limit, guarantee_from_record

MOST_TIMES = 10**9


def replay(dataset: str, texts: Iterable[str]) -> Account:
    """The account that these texts describe: the whole chain of a data set, in order.

    The first entry that is not in its place, or says what no ledger says, is named in the error.
    """
    state = _State()
    entries: list[Entry] = []
    for text in texts:
        entry = Entry.read(text, dataset=dataset, after=entries[-1] if entries else None)
        try:
            state.apply(entry)
        except LedgerError:
            raise
        except (DpbayesError, KeyError, TypeError, ValueError, OverflowError) as problem:
            raise broken(dataset, entry.serial, "makes no sense") from problem
        entries.append(entry)
    if state.unit is None or state.budget is None:
        raise broken(dataset, 0, "is missing")
    return Account(
        dataset=dataset,
        unit=state.unit,
        budget=state.budget,
        entries=tuple(entries),
        charges=state.charges,
        format=state.format,
        schemas=tuple(state.schemas),
    )


def release(record: object) -> tuple[str, int]:
    """A mechanism, as its canonical record, and how often it is drawn."""
    match record:
        case {"mechanism": dict(drawn), "times": int(times), **others} if 1 <= times <= MOST_TIMES and not others:
            return canonical(drawn), int(times)
    raise InvalidArgument(f"Ledger: expected a mechanism and a number of times between 1 and {MOST_TIMES}.")


@dataclass(slots=True)
class _State:
    """What the entries so far amount to."""

    unit: PrivacyUnit | None = None
    budget: Limit | None = None
    charges: dict[int, Charge] = field(default_factory=dict)
    format: int = 0
    _converted: bool = False
    schemas: list[str] = field(default_factory=list)

    def apply(self, entry: Entry) -> None:
        match entry.body:
            case {"kind": "budget", "format": version, "budget": budget, "unit": unit}:
                self._set_format(version, "schema" in entry.body)
                self._set_budget(guarantee_from_record(budget), PrivacyUnit.from_record(unit))
                self._accept(entry.body.get("schema", ""))
            case {"kind": "charge", "releases": [_, *_] as releases, "lock": str(lock)} if self.unit:
                parts = tuple(self._release(one) for one in releases)
                digest_of_schema = entry.body.get("schema", "")
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

    def _set_format(self, version: object, names_schema: bool) -> None:
        _checks.positive_integer("Ledger", format=version)
        if version > FORMAT:  # type: ignore[operator]  # checked the line before
            raise too_new()
        if version < max(self.format, 2 if names_schema else 1):  # type: ignore[operator]
            raise InvalidArgument("Ledger: a budget is not of the format that it says.")
        self._converted = 0 < self.format < version  # type: ignore[operator]
        self.format = int(version)  # type: ignore[call-overload]

    def _set_budget(self, budget: Limit, unit: PrivacyUnit) -> None:
        """The unit stays; only the entry that converts a ledger of format 1 may name the person column it left out."""
        before = replace(self.unit, person=unit.person) if self.unit and self._converted else self.unit
        if before not in (None, unit):
            raise UnitMismatch("Ledger: the unit of a data set is fixed when its ledger is opened.")
        if self.format > 1 and isinstance(budget, ApproxDP):
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
        charge = self.charges[serial]
        if charge.state != "charged":
            raise InvalidArgument("Ledger: a charge is settled once.")
        self.charges[serial] = replace(charge, state=state, digest=digest_of_values)


def too_new() -> LedgerError:
    """The error for a ledger of a later format."""
    return LedgerError("Ledger: written by a newer dpbayes. Upgrade dpbayes to read it.")
