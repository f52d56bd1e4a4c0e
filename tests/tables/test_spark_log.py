"""A failing job of ours leaves no row in the logs of a caller's own session, which then go on as before."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests import servers

import dpbayes

pytestmark = pytest.mark.xdist_group("spark")

SECRET = "Zyxwvut-4711"
SCRIPT = f"""
    import logging, sys
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.sql import SparkSession
    from dpbayes.schema.attribute import Attribute
    from dpbayes.schema.marginal import Marginal
    from dpbayes.schema.schema import Schema
    from dpbayes.schema.unit import Unit
    from dpbayes.base.errors import TableError
    from dpbayes.tables.sources import open_table

    unit = Unit(adjacency="add-remove")

    def counted(source, **more):
        y = Attribute(name="y", categories=("1",), missing="other")
        schema = Schema(id="x", unit=unit, attributes=(y,), **more)
        return open_table(source, engine="spark").count(schema, [Marginal("y")])[0].array.tolist()

    def refused(ask):
        try:
            ask()
        except TableError as problem:
            print("refused:", problem)

    pages = pa.table({{"y": ["1", "{SECRET}"]}})
    parquet.write_table(pages, "damaged.parquet", compression="none", use_dictionary=False)
    before, secret, after = open("damaged.parquet", "rb").read().partition(b"{SECRET}")
    open("damaged.parquet", "wb").write(before[:-4] + bytes([255, 255, 255, 127]) + secret + after)  # its length
    if "own" in sys.argv:
        refused(lambda: counted("damaged.parquet?spark.master=local[1]"))
        session = SparkSession.getActiveSession()
        print(session.conf.get("spark.local.dir"))
    else:
        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        session.sparkContext.setLogLevel("INFO")
        logging.basicConfig(level=logging.DEBUG)
        refused(lambda: counted((session, "damaged.parquet")))
        logging.getLogger("py4j").setLevel(logging.WARNING)
        infinite = session.sql("SELECT CAST('Infinity' AS DOUBLE) AS y")
        print(open_table(infinite).values("y", unit))
        far = session.sql("SELECT TIMESTAMP '+33700-01-01 00:00:00' AS y UNION ALL SELECT TIMESTAMP '-20000-01-01'")
        print(counted(far))
    texts = session.createDataFrame([("{SECRET}",)], "x STRING")
    refused(lambda: counted(texts.selectExpr("CAST(x AS INT) AS y", "x AS id"), person="id"))
    refused(lambda: open_table(texts.selectExpr("CAST(x AS DATE) AS y")).values("y", unit))
    sys.stderr.write("as before:\\n")
    session._jvm.org.apache.logging.log4j.LogManager.getLogger("caller").error("a line of the caller")
    try:
        texts.selectExpr("CAST(x AS INT) AS y").collect()
    except Exception:
        pass
"""


@pytest.mark.parametrize("whose", ["the caller's", "own"])
def test_a_failing_job_quotes_no_row_and_logs_go_on_afterwards(whose: str, tmp_path: Path, monkeypatch) -> None:
    if servers.java() is None:
        pytest.skip("Java is not installed: nothing was tested on Spark")
    (tmp_path / "temp").mkdir()
    (tmp_path / "here").mkdir()
    for name, value in {
        "TMPDIR": str(tmp_path / "temp"),
        "PYTHONPATH": str(Path(dpbayes.__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), whose],
        capture_output=True,
        text=True,
        timeout=900,  # a busy machine starts Java slowly
        cwd=tmp_path / "here",
    )
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("refused: Table:") for line in done.stdout.splitlines()) == 3
    assert SECRET not in done.stdout
    during, _, after = done.stderr.partition("as before:\n")
    assert SECRET not in during
    assert ("a line of the caller" in after) == (whose != "own")  # a session of our own never logs
    assert SECRET in after  # what the caller does is the caller's: so the check above can fail
    if whose == "own":
        assert f"\n{tmp_path / 'temp' / 'dpbayes-rows-'}" in done.stdout
    else:  # neither of which fails, so that no executor has a row to quote
        assert "{'Infinity': 1}\n[0, 2]\n" in done.stdout
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "damaged.parquet"]
    assert [path for path in left if SECRET.encode() in path.read_bytes()] == []
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"damaged.parquet"}
    assert [path for path in (tmp_path / "temp").iterdir() if path.name.startswith("dpbayes")] == []
