"""The contract of engines on a real Spark cluster, and what only a cluster can do wrong; one group, so one cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from tests.tables import reference
from tests.tables.contract import EngineContract, of_texts, schema_of, text_tables

from dpbayes import ApproxDP, Curator, Ledger, Tables
from dpbayes.base.errors import BudgetExceeded, MissingExtra, TableError
from dpbayes.schema import Marginal
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.unit import Unit
from dpbayes.tables.sources import open_table

pytestmark = pytest.mark.xdist_group("spark")

SEX = Attribute(name="sex", categories=("F", "M"), missing="other")
SECRET = "Zyxwvut-4711"
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
few = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def session(spark_cluster, tmp_path_factory):
    """The session of this process on the cluster, in a time zone that disagrees with ours."""
    from pyspark.sql import SparkSession

    os.environ.update(LOOPBACK)
    os.environ["TZ"] = "Asia/Kathmandu"
    path = tmp_path_factory.mktemp("spark") / "first.parquet"
    pa.parquet.write_table(of_texts({"sex": ["F"]}), path)
    open_table(spark_cluster.address(path))
    session = SparkSession.getActiveSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    yield session
    session.stop()
    del os.environ["TZ"]


class TestSparkParquet(EngineContract):
    @pytest.fixture(autouse=True)
    def _session(self, session):
        type(self).session = session

    def open(self, table, folder):
        path = folder / "t.parquet"
        pa.parquet.write_table(table, path)
        return open_table((self.session, str(path)))

    @few
    @given(drawn=text_tables())
    def test_counts_equal_counting_by_hand(self, drawn):
        schema, columns, marginals = drawn
        self.check(schema, marginals, of_texts(columns))

    @pytest.mark.parametrize("max_rows", [1, 2])
    def test_a_person_moves_a_table_by_at_most_the_declared_rows(self, max_rows, tmp_path):
        unit = Unit(adjacency="add-remove", max_rows=max_rows)
        schema = schema_of(Attribute(name="v", categories=("a", "b", "c"), missing="other"), unit=unit, person="id")
        rows = {"id": ["p", "p", "q", None, "p", "r"], "v": ["a", "a", "b", "c", "c", None]}
        found = self.open(of_texts(rows), tmp_path).count(schema, [Marginal("v")])[0].array
        assert found.tolist() == open_table(of_texts(rows)).count(schema, [Marginal("v")])[0].array.tolist()
        assert found.sum() == min(3, max_rows) + 2


def test_csv_files_are_read_once_and_by_the_same_rule(session, tmp_path):
    texts = ["", "a", "x\ny", 'say "a"', "a,b", " a ", "名前", "NULL", None, "\\", "'", "${x}"]
    table = of_texts({"select": texts, "n": ["1", "2.5", "nan", "inf", "", None, "x", "-0", "1e1", "3", "4", "5"]})
    pa.csv.write_csv(table, tmp_path / "t.csv", pa.csv.WriteOptions(quoting_style="needed"))
    declared = tuple(text for text in texts if text)
    schema = schema_of(
        Attribute(name="select", categories=declared, missing="category"),
        Attribute(name="n", edges=(float("-inf"), 0, 2, 5), missing="category"),
    )
    marginals = [Marginal("select"), Marginal(("select", "n"))]
    rows = [{name: value or None for name, value in row.items()} for row in table.to_pylist()]
    for counts in open_table((session, str(tmp_path / "t.csv"))).count(schema, marginals):
        assert counts.array.tolist() == reference.count(schema, counts.marginal, rows).tolist()


def test_frames_and_tables_of_a_session_are_counted(session):
    frame = session.createDataFrame([("F",), ("M",), (None,)], "sex STRING")
    assert open_table(frame).count(schema_of(SEX), [Marginal("sex")])[0].array.tolist() == [1, 1, 1]
    frame.createOrReplaceTempView("people")
    assert open_table((session, "people")).values("sex", Unit(adjacency="add-remove")) == {"F": 1, "M": 1}
    session.sql(
        "CREATE OR REPLACE TEMP VIEW nocase AS SELECT CAST(sex AS STRING COLLATE UTF8_LCASE) AS sex FROM people"
    )
    f = Attribute(name="sex", categories=("f", "M"), missing="other")
    assert open_table((session, "nocase")).count(schema_of(f), [Marginal("sex")])[0].array.tolist() == [0, 1, 2]
    with pytest.raises(TableError, match="no such table"):
        open_table((session, "nobody"))


@pytest.mark.slow
def test_counts_beyond_four_bytes_are_exact(session):
    from dpbayes.tables.engine import pack
    from dpbayes.tables.spark import _counted

    crowd = session.range(2**31 + 1).selectExpr("1 AS c0")
    tables = pack(schema_of(SEX), [Marginal("sex")])
    assert _counted(crowd, tables, {"sex": "c0"}, passes=True).tolist() == [2**31 + 1, 0, 0]


BAD = {
    "nowhere.parquet": (None, "no file"),
    "truncated.parquet": (b"PAR1" + SECRET.encode() * 100, "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence_without_its_content(name, session, spark_cluster, tmp_path):
    content, words = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words) as caught:
        open_table((session, str(tmp_path / name))).count(schema_of(SEX), [Marginal("sex")])
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    application = session.sparkContext.applicationId  # a session of ours; those of callers keep their own log
    logs = list(spark_cluster.folder.glob(f"worker*/{application}/*/std*"))
    assert logs
    assert not any(SECRET in log.read_text(errors="replace") for log in logs)


def test_files_whose_types_differ_are_refused_before_anything_is_charged(session, tmp_path):
    pa.parquet.write_table(pa.table({"sex": ["F"]}), tmp_path / "1.parquet")
    pa.parquet.write_table(pa.table({"sex": [1]}), tmp_path / "2.parquet")
    with pytest.raises(TableError, match="columns and types of the files before it"):
        open_table((session, f"{tmp_path}/*.parquet"))
    with pytest.raises(TableError, match="do not have the same types"):  # where only Spark can look
        open_table((session, f"file://{tmp_path}/*.parquet"))


def test_a_master_that_does_not_answer_is_told_before_spark_starts():
    script = "from dpbayes.tables import open_table; open_table('spark://127.0.0.1:1?path=/x.parquet')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "TableError: Table: the Spark master does not answer" in done.stderr


def test_another_master_than_that_of_the_process_is_refused(session):
    with pytest.raises(TableError, match="another Spark session"):
        open_table("spark://127.0.0.1:1?path=/x.parquet")


def test_without_the_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "dpbayes.tables.spark", raising=False)
    with pytest.raises(MissingExtra, match=r"Install dpbayes\[spark\]"):
        open_table("spark://host:7077?path=/data/people.parquet")


@pytest.mark.slow  # two drivers of their own; the race on PostgreSQL alone is quick: tests/ledger
def test_of_sixteen_releasers_some_on_spark_exactly_as_many_charge_as_fit(session, spark_cluster, server, tmp_path):
    """One PostgreSQL ledger for all: two Spark drivers of their own, three on this one's session, eleven on DuckDB."""
    server.execute("CREATE DATABASE spark_ledger")
    url, path = server.url("spark_ledger"), tmp_path / "people.parquet"
    schema, budget = schema_of(SEX), ApproxDP(epsilon=0.25, delta=1e-6)
    ledger = Ledger(url)
    ledger.open(schema.id, budget, schema.unit)
    pa.parquet.write_table(of_texts({"sex": ["F", "M", "F"] * 100}), path)
    job, target = Tables("sex", mechanism="gaussian"), ApproxDP(epsilon=0.1, delta=1e-7)
    engines = [open_table((session, str(path))) for _ in range(3)] + [open_table(str(path)) for _ in range(11)]
    cost = Curator(engines[0], schema).plan(job, target).cost
    fitting = max(k for k in range(1, 17) if budget.gap(cost * k) <= 1e-9)
    ends = []

    def release(engine):
        try:
            made = Curator(engine, schema, ledger=Ledger(url)).release(job, target)
            ends.append(made.spending.hash)
        except BudgetExceeded:
            ends.append("refused")

    (tmp_path / "people.toml").write_text(schema.to_toml())
    drivers = [_driver(spark_cluster.address(path), tmp_path / "people.toml", url) for _ in range(2)]
    while len(ledger.account(schema.id).charges) == 0 and any(driver.poll() is None for driver in drivers):
        time.sleep(0.1)
    threads = [threading.Thread(target=release, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for driver in drivers:
        out, problem = driver.communicate(timeout=300)
        assert driver.returncode == 0 or "would fit" in problem, problem
        ends.append(json.loads(out)["result"]["release"]["spending"]["hash"] if driver.returncode == 0 else "refused")
        assert "correct-horse" not in out + problem
    assert 1 < fitting < 11
    assert ends.count("refused") == 16 - fitting
    assert {end for end in ends if end != "refused"} == {
        charge.entry.hash for charge in ledger.account(schema.id).charges.values()
    }
    assert drivers[0].returncode == 0 or drivers[1].returncode == 0


def _driver(address: str, schema: Path, ledger: str) -> subprocess.Popen[str]:
    """``dpbayes release`` in a process of its own, with one core of the cluster."""
    command = [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "release"]
    command += [
        address.replace("spark.cores.max=2", "spark.cores.max=1"),
        "--schema",
        str(schema),
        "sex",
        "--out",
        tempfile.mkdtemp(),
    ]
    command += ["--epsilon", "0.1", "--delta", "1e-7", "--set", "mechanism=gaussian", "--ledger", ledger, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_worker_killed_during_the_job_changes_no_count(session, spark_cluster):
    """Last of all: the cluster has one worker less until a new one joins."""
    slow = session.range(0, 1_200_000, 1, 24).selectExpr(
        "CASE WHEN id % 3 = 0 THEN 'F' ELSE 'M' END AS sex", "sha2(sha2(CAST(id AS STRING), 512), 512) AS work"
    )
    busy = slow.where("work <> ''").select("sex")
    started = threading.Event()

    def kill():
        tracker = session.sparkContext.statusTracker()
        while not any(tracker.getStageInfo(stage).numCompletedTasks > 1 for stage in tracker.getActiveStageIds()):
            time.sleep(0.02)
        spark_cluster.kill("worker one")
        started.set()

    killer = threading.Thread(target=kill)
    killer.start()
    (counts,) = open_table(busy).count(schema_of(SEX), [Marginal("sex")])
    killed_during_the_job = started.is_set()
    killer.join()
    spark_cluster.start("worker one")
    assert killed_during_the_job
    assert counts.array.tolist() == [400_000, 800_000, 0]
