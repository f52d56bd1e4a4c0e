"""Counting 46 marginals of a Parquet table: time over a bare scan, and over one GROUP BY per packed table.

Every timing comes from the same run, interleaved, and the best of each is compared, so that a busy machine slows
all of them alike. Memory is the peak of a fresh process that counts once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.encoding import DUCKDB
from dpbayes.tables.engine import pack
from dpbayes.tables.sources import open_table

ROWS = 10_000_000
SIZES = (2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 30, 50)
CATEGORIES = {"class": tuple(f"class_{value}" for value in range(3))} | {
    f"a{column}": tuple(f"a{column}_value_{value}" for value in range(size)) for column, size in enumerate(SIZES)
}
THREE_WAY = (("a0", "a5", "a10"), ("a1", "a6", "a11"), ("a2", "a7", "a19"), ("a3", "a8", "a17"), ("a4", "a9", "a18"))


def schema() -> Schema:
    attributes = tuple(Attribute(name=name, categories=values, missing="other") for name, values in CATEGORIES.items())
    return Schema(id="benchmark", unit=Unit(adjacency="replace-one"), attributes=attributes)


def marginals() -> list[Marginal]:
    """21 one-way, 20 class × attribute and 5 three-way tables."""
    pairs = [("class", name) for name in CATEGORIES if name != "class"]
    return [Marginal((name,)) for name in CATEGORIES] + [Marginal(names) for names in (*pairs, *THREE_WAY)]


def quiet() -> duckdb.DuckDBPyConnection:
    return duckdb.connect().execute("SET enable_progress_bar = false")


def write_table(path: Path, rows: int, names: Iterable[str] = CATEGORIES) -> None:
    """Categories by a hash of the row number: the same table every time."""
    wanted = set(names)
    columns = ", ".join(
        f"'{values[0][:-1]}' || (hash(i * {2 * number + 3} + {number}) % {len(values)}) AS {name}"
        for number, (name, values) in enumerate(CATEGORIES.items())
        if name in wanted
    )
    quiet().sql(f"SELECT {columns} FROM range({rows}) t(i)").write_parquet(str(path))


def bare_scan(path: Path) -> None:
    """Reads every column; a length cannot be answered from the statistics of the file."""
    lengths = ", ".join(f"sum(length({name}))" for name in CATEGORIES)
    quiet().execute(f"SELECT {lengths} FROM read_parquet('{path}')").fetchall()


def group_by_per_packed_table(path: Path) -> None:
    """The same codes and the same packed tables, counted by DuckDB itself in one query."""
    declared = schema()
    queries = []
    for table in pack(declared, marginals()):
        key = "0"
        for axis, base in zip(table.axes, table.shape, strict=True):
            key = f"({key}) * {base} + {DUCKDB.code(axis.name, 'VARCHAR', axis)}::BIGINT - 1"
        queries.append(f"(SELECT {key} AS k, count(*) FROM read_parquet('{path}') GROUP BY k)")
    quiet().execute(" UNION ALL ".join(queries)).fetchall()


def count(path: Path) -> None:
    open_table(str(path)).count(schema(), marginals())


def seconds(work: Callable[[Path], None], path: Path) -> float:
    start = time.perf_counter()
    work(path)
    return time.perf_counter() - start


def best_of(rounds: int, path: Path) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for work in (bare_scan, count, group_by_per_packed_table):
            best[work.__name__] = min(best.get(work.__name__, float("inf")), seconds(work, path))
    return best


def peak_megabytes(path: Path) -> float:
    """Peak resident memory of a fresh process that counts this table once."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.counting", str(path)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def run(rows: int = ROWS, rounds: int = 5) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "tenth.parquet", Path(folder) / "whole.parquet"
        write_table(small, rows // 10)
        write_table(large, rows)
        tenth, whole = best_of(rounds, small), best_of(rounds, large)
        return {
            "rows": rows,
            "marginals": len(marginals()),
            "packed tables": len(pack(schema(), marginals())),
            "seconds": {name: round(value, 3) for name, value in whole.items()},
            "over bare scan (goal 2.5)": round(whole["count"] / whole["bare_scan"], 2),
            "over one GROUP BY per packed table (goal 1)": round(
                whole["count"] / whole["group_by_per_packed_table"], 2
            ),
            "time for ten times the rows (linear 10)": round(whole["count"] / tenth["count"], 2),
            "peak MB (goal 300)": round(peak_megabytes(large)),
            "peak MB with a tenth of the rows": round(peak_megabytes(small)),
        }


if __name__ == "__main__":
    count(Path(sys.argv[1]))
    # Not ru_maxrss: a child inherits that of the process that started it.
    status = Path("/proc/self/status").read_text().split()
    sys.stdout.write(str(int(status[status.index("VmHWM:") + 1]) / 1000))
