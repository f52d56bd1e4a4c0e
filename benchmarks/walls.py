"""How processor time grows with cells, tables, attributes, columns, categories, ledger entries and mechanisms.

For each curve the seconds of each size, and the exponent of the last step: 1 is linear, 2 is quadratic.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import _rows
from dpbayes import ApproxDP, Attribute, Cost, Laplace, Ledger, Schema
from dpbayes.base.codec import digest
from dpbayes.ledger import store as ledger_tables
from dpbayes.ledger.account import Entry
from dpbayes.ledger.ledger import _release_record
from dpbayes.schema import Marginal
from dpbayes.tables.engine import pack
from dpbayes.tables.sources import open_table

ROWS = 20_000


def run() -> dict[str, object]:
    return {
        "planning the count of T tables of 60 columns": curve(packed, (100, 300, 1000)),
        "counting a table of each of C columns, 20,000 rows": curve(columns, (30, 100, 300)),
        "counting a column of L declared categories, 20,000 rows": curve(categories, (100, 1000, 10_000)),
        "what is left after K different charges": curve(entries, (10, 100, 1000)),
        "one charge of K different mechanisms": curve(mechanisms, (10, 100, 300)),
        "release of a table of d cells": curve(cells, (10**4, 10**5, 10**6)),
        "release of T tables of 256 cells": curve(tables, (10, 30, 100)),
        "release of a table of each of A attributes": curve(attributes, (30, 100, 300)),
    }


def curve(prepare: Callable[[int, Path], Callable[[], object]], sizes: tuple[int, ...]) -> dict[str, object]:
    seconds: dict[int, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            action, runs = prepare(size, Path(folder)), []
            for _ in range(2):
                began = time.process_time()
                action()
                runs.append(time.process_time() - began)
        seconds[size] = min(runs)
    (before, less), (last, more) = list(seconds.items())[-2:]
    return {
        "processor": {str(size): round(value, 4) for size, value in seconds.items()},
        "exponent": round(math.log(more / less) / math.log(last / before), 2),
    }


def packed(tables: int, folder: Path) -> Callable[[], object]:
    del folder
    attributes = tuple(
        Attribute(name=f"a{i}", categories=tuple(map(str, range(2 + i % 9))), missing="other") for i in range(60)
    )
    schema = Schema(id="walls", unit=_rows.UNIT, attributes=attributes)
    pairs = [Marginal(pair) for pair in itertools.islice(itertools.combinations(schema.names, 2), tables)]
    return lambda: pack(schema, pairs)


def cells(many: int, folder: Path) -> Callable[[], object]:
    return _rows.released((100, 10, many // 1000), ["a0,a1,a2"], records=many)(folder)["dpbayes"]


def tables(many: int, folder: Path) -> Callable[[], object]:
    pairs = itertools.islice(itertools.combinations([f"a{place}" for place in range(16)], 2), many)
    return _rows.released((16,) * 16, [",".join(pair) for pair in pairs])(folder)["dpbayes"]


def attributes(many: int, folder: Path) -> Callable[[], object]:
    return _rows.released((4,) * many, [f"a{place}" for place in range(many)], records=10_000)(folder)["dpbayes"]


def columns(wide: int, folder: Path) -> Callable[[], object]:
    table, schema = _rows.made((4,) * wide, ROWS)
    return _counted(table, schema, folder)


def categories(levels: int, folder: Path) -> Callable[[], object]:
    table, schema = _rows.made((levels,), ROWS)
    texts = {name: np.char.add("level ", column.astype(str)) for name, column in table.items()}
    declared = tuple(f"level {level}" for level in range(levels))
    attributes = tuple(Attribute(name=name, categories=declared, missing="other") for name in schema.names)
    return _counted(texts, Schema(id="walls", unit=_rows.UNIT, attributes=attributes), folder)


def _counted(table: dict[str, np.ndarray], schema: Schema, folder: Path) -> Callable[[], object]:
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / "rows.parquet"
    parquet.write_table(pa.table(table), path)
    return lambda: open_table(str(path)).count(schema, [Marginal((name,)) for name in schema.names])


def entries(many: int, folder: Path) -> Callable[[], object]:
    """A history is written as charges would write it, without pricing each."""
    book = Ledger(folder / "walls.ledger")
    book.open("data", ApproxDP(epsilon=3, delta=1e-6), _rows.UNIT)
    with book._store.writing() as connection:
        head = ledger_tables.account(connection, "data", lock=True).head
        for i in range(many):
            releases = [_release_record(Laplace(scale=40_000.0 + i, unit=_rows.UNIT), 1)]
            head = Entry.write(dataset="data", after=head, kind="charge", about="", releases=releases,
                               lock=digest(str(i)), schema="", software={})  # fmt: skip
            ledger_tables.append(connection, head)

    def left() -> None:
        _rows.forget()
        book.account("data").left()

    return left


def mechanisms(many: int, folder: Path) -> Callable[[], object]:
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401 - measured apart from the work

    cost, numbers = Cost.total([Laplace(scale=4000.0 + i, unit=_rows.UNIT) for i in range(many)]), itertools.count()

    def charge() -> None:
        _rows.forget()
        book = Ledger(folder / f"{next(numbers)}.ledger")
        book.open("data", ApproxDP(epsilon=3, delta=1e-6), _rows.UNIT)
        book.charge("data", cost)

    return charge
