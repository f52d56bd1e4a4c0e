"""The same 21 tables counted by DuckDB, Spark and PostgreSQL: time over a bare scan or the best query written by hand.

Timings of one engine come from the same run, interleaved, and the least of each is compared. Seconds are those of the
processor, of this process and of all that the engine runs in, so that a busy machine changes them little; wall time is
printed beside them. Spark runs as ``local[2]``; its driver's memory is measured on a cluster of real processes, where
the driver holds no executor.
"""

from __future__ import annotations

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
from dpbayes.schema.marginal import Marginal
from dpbayes.tables.encoding import POSTGRESQL, key_expressions
from dpbayes.tables.engine import pack
from dpbayes.tables.sources import open_table

SIZES = (5_000_000, 10_000_000)
MEMORY_SIZES = (1_000_000, 10_000_000)
SPARK = "spark.master=local[2]&spark.driver.memory=3g&spark.driver.host=127.0.0.1&spark.ui.enabled=false"
ATTRIBUTES = tuple(name for name in CATEGORIES if name != "class")

Times = dict[str, tuple[float, float]]
"""Seconds of the processor and of the wall clock."""


def marginals() -> list[Marginal]:
    """The class, and the class by each of 20 attributes: what a naive Bayes classifier asks for."""
    return [Marginal(("class",)), *(Marginal(("class", name)) for name in ATTRIBUTES)]


def count(source: object, engine: str | None = None) -> None:
    open_table(source, engine=engine).count(schema(), marginals())


def processor(server: psutil.Process | None) -> float:
    """Seconds that this process, a server and all that they started have spent so far, those that ended included."""
    seconds = 0.0
    for root in (psutil.Process(), *([server] if server else [])):
        for each in (root, *root.children(recursive=True)):
            try:
                seconds += sum(each.cpu_times()[:4])  # own, and of children that ended
            except psutil.NoSuchProcess:
                continue
    return seconds


def best_of(rounds: int, works: dict[str, Callable[[], object]], server: psutil.Process | None = None) -> Times:
    best: Times = {}
    for _ in range(rounds):
        for name, work in works.items():
            start, spent = time.perf_counter(), processor(server)
            work()
            took = (processor(server) - spent, time.perf_counter() - start)
            best[name] = tuple(map(min, took, best.get(name, took)))  # type: ignore[assignment]
    return best


def duckdb_times(path: Path, rounds: int) -> Times:
    return best_of(rounds, {"scan": lambda: bare_scan(path), "count": lambda: count(str(path))})


def spark_times(path: Path, rounds: int) -> Times:
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


def postgresql_times(server: servers.PostgreSQLServer, path: Path, rounds: int) -> Times:
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
        return best_of(rounds, works, psutil.Process(_server(connection)))


def _server(connection: psycopg.Connection) -> int:
    """The process that starts those of all connections."""
    return psutil.Process(connection.info.backend_pid).ppid()


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


def told(times: dict[int, Times]) -> dict[str, object]:
    """Seconds and ratios of one engine at every size, and growth from size to size over that of the rows."""
    found: dict[str, object] = {}
    for size, each in times.items():
        spent = {name: round(seconds, 2) for name, (seconds, _) in each.items()}
        wall = {name: round(seconds, 2) for name, (_, seconds) in each.items()}
        row = {"processor": spent, "wall": wall, "over scan": round(each["count"][0] / each["scan"][0], 2)}
        if by_expert := [each[name] for name in by_hand() if name in each]:
            row["over the best query by hand"] = round(each["count"][0] / min(by_expert)[0], 2)
            row["over it in wall time"] = round(each["count"][1] / min(seconds for _, seconds in by_expert), 2)
        found[f"{size:,} rows"] = row
    small, large = min(times), max(times)
    growth = times[large]["count"][0] / times[small]["count"][0] * small / large
    return {**found, "growth over that of the rows (linear 1)": round(growth, 2)}


def run(rounds: int = 2) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder) / f"{size}.parquet" for size in {*SIZES, *MEMORY_SIZES}}
        for size, path in paths.items():
            write_table(path, size)
        report: dict[str, object] = {"tables": len(marginals())}
        report["DuckDB"] = told({size: duckdb_times(paths[size], rounds) for size in SIZES})
        programs = servers.postgresql_programs()
        if programs is None:
            report["PostgreSQL"] = "not installed"
        else:
            with servers.running_postgresql(programs) as server:
                report["PostgreSQL"] = told({size: postgresql_times(server, paths[size], rounds) for size in SIZES})
        if servers.java() is None:
            report["Spark"] = "Java is not installed"
        else:
            report["Spark"] = told({size: spark_times(paths[size], rounds) for size in SIZES})
            report["memory of a Spark driver"] = cluster_memory({size: paths[size] for size in MEMORY_SIZES})
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
