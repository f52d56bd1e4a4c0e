"""The same 21 tables counted by DuckDB, Spark and PostgreSQL: time over a bare scan or the best query written by hand.

Timings of one engine come from the same run, interleaved, and the best of each is compared. Spark runs as ``local[2]``;
its driver's memory is measured on a cluster of real processes, where the driver holds no executor. PostgreSQL is loaded
with fewer rows at the two ends of the growth, because loading takes longer than everything else.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
from tests import servers

from benchmarks.counting import CATEGORIES, bare_scan, quiet, schema, write_table
from dpbayes.domain.marginal import Marginal
from dpbayes.tables.dialects import POSTGRESQL
from dpbayes.tables.encoding import key_expressions
from dpbayes.tables.packing import pack
from dpbayes.tables.sources import open_table

ROWS = 10_000_000
SPARK = "spark.master=local[2]&spark.driver.memory=3g&spark.driver.host=127.0.0.1&spark.ui.enabled=false"
ATTRIBUTES = tuple(name for name in CATEGORIES if name != "class")


def marginals() -> list[Marginal]:
    """The class, and the class by each of 20 attributes: what a naive Bayes classifier asks for."""
    return [Marginal(("class",)), *(Marginal(("class", name)) for name in ATTRIBUTES)]


def count(source: object, engine: str | None = None) -> None:
    open_table(source, engine=engine).count(schema(), marginals())


def best_of(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)
    return best


def duckdb_times(path: Path, rounds: int) -> dict[str, float]:
    return best_of(rounds, {"scan": lambda: bare_scan(path), "count": lambda: count(str(path))})


def spark_times(path: Path, rounds: int) -> dict[str, float]:
    """In this process: the session is the first one's."""
    engine = open_table(f"{path}?{SPARK}", engine="spark")
    from pyspark.sql import SparkSession

    frame = SparkSession.getActiveSession().read.parquet(str(path))
    lengths = [f"sum(length({name}))" for name in CATEGORIES]
    return best_of(
        rounds,
        {
            "scan": lambda: frame.selectExpr(*lengths).collect(),
            "count": lambda: engine.count(schema(), marginals()),
        },
    )


def by_hand() -> dict[str, str]:
    """Queries that a database expert would write for these tables: with declared categories, and on bare texts."""
    pairs = ", ".join(f"(class, {name})" for name in ATTRIBUTES)
    texts = f"SELECT class, {', '.join(ATTRIBUTES)}, count(*) FROM people GROUP BY GROUPING SETS ({pairs})"
    each = " UNION ALL ".join(f"(SELECT class, {name}, count(*) FROM people GROUP BY 1, 2)" for name in ATTRIBUTES)
    tables = pack(schema(), marginals())
    codes = {axis.name: POSTGRESQL.code(axis.name, "text", axis) for axis in schema().attributes}
    keys = key_expressions(tables, codes)
    numbers = ", ".join(f"k{number}" for number in range(len(keys)))
    coded = ", ".join(f"{key} AS k{number}" for number, key in enumerate(keys))
    sets = ", ".join(f"(k{number})" for number in range(len(keys)))
    packed = f"SELECT {numbers}, count(*) FROM (SELECT {coded} FROM people) AS t GROUP BY GROUPING SETS ({sets})"
    return {"grouping sets of texts": texts, "a GROUP BY for each table": each, "grouping sets of packed keys": packed}


def postgresql_times(server: servers.PostgreSQLServer, path: Path, rounds: int) -> dict[str, float]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(f"CREATE UNLOGGED TABLE people ({', '.join(f'{name} text' for name in CATEGORIES)})")
        with connection.cursor().copy("COPY people FROM STDIN (FORMAT csv)") as copy:
            reader = quiet().sql(f"FROM '{path}'").to_arrow_reader(2**16)
            for batch in reader:
                copy.write(_csv(batch))
        connection.execute("VACUUM ANALYZE people")
        lengths = ", ".join(f"sum(length({name}))" for name in CATEGORIES)
        address = f"{server.url()}?table=people"
        works: dict[str, Callable[[], object]] = {
            "scan": lambda: connection.execute(f"SELECT {lengths} FROM people").fetchall(),
            "count": lambda: count(address),
        }
        for name, query in by_hand().items():
            works[name] = lambda query=query: connection.execute(query).fetchall()
        return best_of(rounds, works)


def _csv(batch: object) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_batches([batch]), sink, csv.WriteOptions(include_header=False))
    return sink.getvalue().to_pybytes()


def driver_megabytes(source: str, log: Path | None = None) -> dict[str, float]:
    """Peak memory of a fresh process that counts once, and of the driver's JVM; what workers exchanged, from a log."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale_out", source], check=True, capture_output=True, text=True
    )
    peaks: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if log is not None:
        peaks["shuffled MB"] = round(sum(_shuffled(file) for file in log.rglob("*")) / 1e6, 2)
    return peaks


def _shuffled(log: Path) -> int:
    if not log.is_file():
        return 0
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"SparkListenerTaskEnd"' in line]
    return sum(line["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"] for line in lines)


def cluster_memory(paths: dict[int, Path]) -> dict[str, object]:
    found: dict[str, object] = {}
    with servers.running_spark() as cluster:
        for rows, path in paths.items():
            with tempfile.TemporaryDirectory() as log:
                logged = f"&spark.eventLog.enabled=true&spark.eventLog.dir=file://{log}&spark.eventLog.compress=false"
                found[f"{rows:,} rows"] = driver_megabytes(cluster.address(path) + logged, Path(log))
    return found


def told(times: dict[int, dict[str, float]], rows: int) -> dict[str, object]:
    """Ratios of one engine at the main size, and growth from size to size over that of the rows."""
    sizes = sorted(times)
    growth = {
        f"{small:,} → {large:,}": round(times[large]["count"] / times[small]["count"] * small / large, 2)
        for small, large in itertools.pairwise(sizes)
    }
    return {
        "seconds": {f"{size:,} rows": {k: round(v, 2) for k, v in times[size].items()} for size in sizes},
        "count over bare scan": round(times[rows]["count"] / times[rows]["scan"], 2),
        "rows per second and core": round(rows / times[rows]["count"] / 2),
        "growth over that of the rows (linear 1)": growth,
    }


def run(rows: int = ROWS, rounds: int = 3) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        sizes = [rows // 10, rows, 3 * rows]
        paths = {size: Path(folder) / f"{size}.parquet" for size in sizes}
        for size, path in paths.items():
            write_table(path, size)
        report: dict[str, object] = {"rows": rows, "tables": len(marginals())}
        report["duckdb (goal 2.5 over scan)"] = told(
            {size: duckdb_times(path, rounds) for size, path in paths.items()}, rows
        )
        programs = servers.postgresql_programs()
        if programs is None:
            report["postgresql"] = "not installed"
        else:
            with servers.running_postgresql(programs) as server:
                times = {size: postgresql_times(server, paths[size], rounds) for size in sizes[:2]}
            by_expert = min(times[rows][name] for name in by_hand())
            over = round(times[rows]["count"] / by_expert, 2)
            report["postgresql"] = {"over best query by hand (goal 2)": over, **told(times, rows)}
        if servers.java() is None:
            report["spark"] = "Java is not installed"
        else:
            report["spark (goal 2.2 over scan)"] = told(
                {size: spark_times(path, rounds) for size, path in paths.items()}, rows
            )
            report["spark driver"] = cluster_memory({size: paths[size] for size in sizes[:2]})
        return report


if __name__ == "__main__":
    count(sys.argv[1])
    # Not ru_maxrss: a child inherits that of the process that started it.
    peaks: dict[str, int] = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        status = Path(f"/proc/{process.pid}/status").read_text().split()
        if "VmHWM:" in status:  # a child that has ended has no memory
            kind = "java MB" if "java" in process.name() else "python MB"
            peaks[kind] = max(peaks.get(kind, 0), round(int(status[status.index("VmHWM:") + 1]) / 1000))
    sys.stdout.write(f"\n{json.dumps(peaks)}\n")
