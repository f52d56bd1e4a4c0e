"""Where ``dpbayes posterior`` takes its private table from: typed counts, or a table with its schema and ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument, LedgerError, SchemaError
from dpbayes.ledger.ledger import Ledger, Receipt
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.tables.engine import check_public_totals, check_schema
from dpbayes.tables.sources import open_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table whose size is public, and how to read it once it is paid for."""

    cells: int
    total: int
    unit: PrivacyUnit
    levels: list[str] | None
    read: Callable[[Priced], list[int]]
    """Charges the mechanism where there is a ledger, then returns the counts."""
    drawn: Callable[[], None]
    """Notes in the ledger that the release was drawn."""


def typed(counts: list[int], unit: PrivacyUnit) -> Source:
    """Counts from the command line: nothing is charged."""
    return Source(
        cells=len(counts), total=sum(counts), unit=unit, levels=None, read=lambda _: counts, drawn=lambda: None
    )


def of_table(table: str, schema: Schema, marginal: str, ledger: str | None) -> Source:
    """One joint marginal of a table. Its size must be declared: it decides the mechanism before a row is read."""
    asked = Marginal.parse(marginal)
    if asked.given:
        raise InvalidArgument(
            "posterior: expected a joint table such as sex,income. The candidates of this mechanism are all tables of "
            "one known size, and the rows of a conditional table have none."
        )
    if schema.records is None:
        raise SchemaError("posterior: expected the schema to declare records, the public number of records.")
    engine = open_table(table)
    check_schema(schema, engine.columns(), asked.names)
    levels = [""]
    for axis in asked.axes(schema):
        levels = [f"{before} · {level}".removeprefix(" · ") for before in levels for level in axis.levels]

    book = None if ledger is None else Ledger(ledger)
    receipts: list[Receipt] = []

    def read(mechanism: Priced) -> list[int]:
        if book is not None:
            receipts.append(book.charge(schema.id, Cost.of(mechanism), about=f"posterior of {asked}"))
        try:
            (counts,) = engine.count(schema, [asked])
            check_public_totals(schema, counts)
        except BaseException:
            if book is not None:
                book.void(receipts.pop(), about="counting failed; nothing was drawn")
            raise
        return [int(count) for count in counts.array.ravel()]

    def drawn() -> None:
        if book is not None:
            with suppress(LedgerError):  # only a note: a charge without it counts as well
                book.confirm(receipts.pop())

    return Source(
        cells=asked.size(schema), total=schema.records, unit=schema.unit, levels=levels, read=read, drawn=drawn
    )
