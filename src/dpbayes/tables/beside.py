"""What lies beside a table: its schema and its ledger bear its name.

``survey.csv``, ``survey.toml`` and ``survey.ledger`` in one folder belong together, and each finds the others. Only
names are compared: nothing is opened, read or created here. Whether the ledger knows the data set is for the ledger to
say: it refuses a schema whose id it does not hold.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from dpbayes.base.errors import LedgerError, SchemaError
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import FORMATS, REMOTE, address_parts, dataset_name, file_source, public_address

SCHEMA, LEDGER = ".toml", ".ledger"

UNCOUNTED = "none"
"""What is said in place of a ledger where nothing is to remember the cost."""

Place = Any
"""A path or an address; in Python also the thing itself."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Beside:
    """The three that belong together, as far as they are there or were named."""

    table: Place
    schema: Place
    ledger: Place
    stem: Path | None
    """What the names of the three begin with, and where; None where nothing is looked for."""
    uncounted: bool
    """Whether it was said that nothing remembers the cost."""

    @property
    def line(self) -> str:
        """What was found, for the first line printed; no password is in it."""
        said = [
            _shown(self.table) or "no table",
            f"schema {_shown(self.schema)}" if self.schema else _none("schema", self.new_schema),
            f"ledger {_shown(self.ledger)}" if self.ledger else _none("ledger", self.new_ledger),
        ]
        return ", ".join([*said[:2], "uncounted"] if self.uncounted else said)

    @property
    def new_schema(self) -> Path | None:
        """Where the schema belongs."""
        return self._named(SCHEMA)

    @property
    def new_ledger(self) -> Path | None:
        """Where the ledger belongs."""
        return self._named(LEDGER)

    def __repr__(self) -> str:
        return f"Beside({self.line})"  # not the rows of a table in memory

    def record(self) -> dict[str, str | None]:
        """JSON form; no password is in it."""
        return {"table": _shown(self.table), "schema": _shown(self.schema), "ledger": _shown(self.ledger)}

    def need_schema(self) -> Place:
        """The schema, or a sentence that says how to make one."""
        if self.schema is not None:
            return self.schema
        if self.new_schema is None:
            raise SchemaError(f"Schema: {_shown(self.table)} has no name that a schema could share. Name the schema.")
        if isinstance(self.table, (str, Path)) and not REMOTE.match(str(self.table)):
            file_source(str(self.table))  # a table that is not there needs no schema
        table = quote(_shown(self.table) or "TABLE")
        raise SchemaError(
            f"Schema: there is no {str(self.new_schema)!r}. `dpbayes schema init {table}` writes a first one; "
            "a schema that lies elsewhere has to be named."
        )

    def need_ledger(self) -> Place:
        """The ledger, None if the cost is not to be remembered, or a sentence that says how to make one."""
        if self.ledger is not None or self.uncounted:
            return self.ledger
        if self.new_ledger is None:
            raise LedgerError(
                f"Ledger: {_shown(self.table)} has no name that a ledger could share. Name the ledger, or say "
                f"{UNCOUNTED!r}, and nothing remembers the cost."
            )
        data = quote(_shown(self.table) or str(self.new_schema))
        raise LedgerError(
            f"Ledger: there is no {str(self.new_ledger)!r}. The data owner makes it with "
            f"`dpbayes ledger init {data} --epsilon 4 --delta 1e-6`. A ledger that lies elsewhere has to be named; "
            f"with {UNCOUNTED!r} in its place nothing remembers the cost."
        )

    def _named(self, suffix: str) -> Path | None:
        return None if self.stem is None else self.stem.with_name(self.stem.name + suffix)


def beside(data: Place, schema: Place = None, ledger: Place = None) -> Beside:
    """What belongs to a table, its schema or its ledger; a schema or a ledger that is named wins over what lies there.

    A table in memory has no name: nothing is found for it, and unless a ledger is named it goes uncounted.

    >>> near = beside("postgresql://host/db?table=people", ledger="none")
    >>> str(near.stem), near.line
    ('people', 'postgresql://host/db?table=people, no schema people.toml, uncounted')
    """
    stem, kind = _stem(str(data)) if isinstance(data, (str, Path)) else (None, "table")
    if not isinstance(data, (str, Path)) and ledger is None:
        ledger = UNCOUNTED
    named: dict[str, Place] = {"table": None, "schema": schema, "ledger": ledger}
    if named[kind] is None:
        named[kind] = data
    uncounted = isinstance(named["ledger"], str) and named["ledger"] == UNCOUNTED
    if stem is not None:
        ends = [f".{suffix}{zipped}" for suffix in FORMATS for zipped in ("", ".gz")]
        tables = [near for end in ends if (near := _there(stem, end)) is not None]
        there = {
            "table": tables[0] if len(tables) == 1 else None,
            "schema": _there(stem, SCHEMA),
            "ledger": _there(stem, LEDGER),
        }
        named = {what: there[what] if place is None else place for what, place in named.items()}
    if uncounted:
        named["ledger"] = None
    return Beside(**named, stem=stem, uncounted=uncounted)


def _stem(data: str) -> tuple[Path | None, str]:
    """Where the names of what belongs together begin, and which of the three the data are."""
    (path, options), name, far = address_parts(data), dataset_name(data), bool(REMOTE.match(data))
    database = far and path.startswith(("postgres", "spark"))
    if database and path.startswith("postgres") and "table" not in options:
        return None, "ledger"
    kind = "table" if far else {SCHEMA: "schema", LEDGER: "ledger"}.get(Path(path).suffix.lower(), "table")
    pattern = re.search(r"[*?[]", name if database else path + name)
    if pattern or Path(name).name != name or not Path(path).name:
        return None, kind
    return (Path(name) if far else Path(path).with_name(name)), kind


def _there(stem: Path, suffix: str) -> Path | None:
    path = stem.with_name(stem.name + suffix)
    with suppress(OSError, ValueError):  # a name that no file can have
        return path if path.is_file() else None
    return None


def _shown(place: Place) -> str | None:
    if place is None or isinstance(place, (str, Path)):
        return None if place is None else public_address(str(place))
    if isinstance(place, Schema):
        return place.id
    return place.name if type(place).__name__ == "Ledger" else "a table in memory"  # a column may be called name


def _none(what: str, path: Path | None) -> str:
    return f"no {what}" if path is None else f"no {what} {path}"
