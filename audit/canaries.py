"""Marked values: in all that commands print, write and log, in errors, and in what engines spill to disk."""

from __future__ import annotations

import datetime
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

import dpbayes as package
from audit.command import dpbayes
from audit.result import Effort, Row
from dpbayes import Attribute, Ledger, PureDP, Schema, Unit
from dpbayes.jobs import Quantiles
from dpbayes.schema import Marginal
from dpbayes.tables import open_table

AREA = "leak"
CANARY = "CANARY-80731"
COUNTS = {"left": 12_347, "right": 23_459, CANARY: 1_117}
UNIT = Unit(adjacency="add-remove")
SIDE = Attribute(name="side", categories=("left", "right"), missing="other")
PLACE = Attribute(name="place", categories=("here", "there"), missing="other")
PATIENCE = 60.0
"""Seconds to wait for a process to spill; one that never does is a fault of the audit."""


def run(effort: Effort) -> list[Row]:
    """Outputs, errors and spilled rows."""
    return [_outputs(), _errors(), *_spills(effort)]


# -- outputs ------------------------------------------------------------------------------------------------------


def _outputs() -> Row:
    """Every command on a table with a category that no schema declares and counts that cannot be mistaken."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        commands = list(_commands(place))
        said = [dpbayes(*command) for command in commands]
        texts = [text for done in said for text in (done.out, done.err)]
        texts += [path.read_bytes().decode("latin-1") for path in _public(place)]
    marks = [CANARY, *map(str, COUNTS.values()), str(sum(COUNTS.values()))]
    found = {
        mark for text in texts for mark in marks if re.search(rf"(?<![\w.]){mark}(?![\w.])", text.replace(",", ""))
    }
    return Row(
        area=AREA,
        attack=f"marked values in all that {len(commands)} commands print and write",
        claim="none",
        measured=f"{len(found)} found, in {sum(done.code == 0 for done in said)} outputs and "
        f"{sum(done.code != 0 for done in said)} refusals",
        holds=not found,
    )


def _commands(place: Path) -> Iterator[list[object]]:
    sides = np.repeat(list(COUNTS), list(COUNTS.values()))
    parquet.write_table(pa.table({"side": sides, "place": ["here"] * len(sides)}), place / "rows.parquet")
    (place / "broken.csv").write_text(f'side,place\nleft,here\n"{CANARY},here\n{CANARY}\n', encoding="utf-8")
    schema = Schema(id="sides", unit=UNIT, attributes=(SIDE, PLACE))
    (place / "sides.toml").write_text(schema.to_toml(), encoding="utf-8")
    Ledger(place / "sides.ledger").open("sides", PureDP(epsilon=100.0), UNIT)
    about = ["--schema", place / "sides.toml", "--ledger", place / "sides.ledger"]
    tiny = ["--epsilon", 1e-5]
    for number, table in enumerate(("rows.parquet", "broken.csv")):
        out = place / f"published{number}"
        laplace = [*tiny, "--set", "mechanism=laplace"]
        yield ["release", place / table, "side", *laplace, *about, "--out", out]
        model = place / f"model{number}"
        yield ["release", place / table, "side", "--as", "naive-bayes", *tiny, *about, "--out", model]
        whose = ["--schema", place / "sides.toml", "--ledger", "none"]
        cut = ["--as", "categories", "--epsilon", 1, "--delta", 1e-9, "--out", place / f"categories{number}"]
        yield ["release", place / table, "place", *cut, *whose]
        grid = ["--as", "edges", "--set", "bins=2", "--set", "bounds=0:1", "--out", place / f"edges{number}"]
        yield ["release", place / table, "side", *grid, "--epsilon", 1e-5, *whose]
        yield ["schema", "check", place / table, "--schema", place / "sides.toml"]
        yield ["ledger", "finish", place / "sides.ledger"]
    yield ["synth", place / "model0", "--rows", 50, "--out", place / "synthetic.csv"]
    yield ["model", place / "model0", "side", "--as", "naive-bayes", "--json"]
    yield ["model", place / "model0"]
    yield ["verify", place / "published0", "--ledger", place / "sides.ledger"]
    yield ["ledger", "show", place / "sides.ledger"]
    yield ["export", place / "sides.ledger", place / "sides.jsonl"]


def _public(place: Path) -> Iterator[Path]:
    """All files but the private tables themselves."""
    for path in place.rglob("*"):
        if path.is_file() and path.name not in ("rows.parquet", "broken.csv"):
            yield path


# -- errors -------------------------------------------------------------------------------------------------------


class Unhashable(list):  # type: ignore[type-arg]
    """A value that no dictionary takes."""


VALUES: dict[str, Any] = {
    "text": CANARY,
    "bytes": CANARY.encode(),
    "date": datetime.date(8073, 1, 31),
    "time": datetime.datetime(8073, 1, 31, 12, tzinfo=datetime.UTC),
    "list": Unhashable([CANARY]),
    "object": {CANARY: 1},
    "complex": complex(80731, 1),
    "huge": 80731 * 10**400,
}


def _errors() -> Row:
    """Every reader of records in memory, on values it does not expect: no error may repeat them."""
    tried, told = 0, []
    for kind, value in VALUES.items():
        column = np.empty(40, dtype=object)
        column[:] = [value if row == 17 else 0.5 for row in range(40)]
        for name, read in _readers().items():
            tried += 1
            try:
                read(column)
            except Exception:
                shown = traceback.format_exc(limit=0)
                if CANARY in shown or "8073" in shown:
                    told.append(f"{name} on {kind}")
    return Row(
        area=AREA,
        attack=f"marked values in errors: {tried} records that readers and estimators do not expect",
        claim="none",
        measured=f"{len(told)} found" + (f": {', '.join(told[:4])}" if told else ""),
        holds=not told,
    )


def _readers() -> dict[str, Callable[[Any], object]]:
    from dpbayes.sklearn import PrivateCategoricalNB

    classes = np.tile([0, 1], 20)
    common = {"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1], "unit": UNIT}

    def estimator(column: Any) -> object:
        return PrivateCategoricalNB(edges=[[0.0, 0.5, 1.0]], **common).fit(column[:, None], classes)

    def buying(column: Any) -> object:
        return PrivateCategoricalNB(edges=[Quantiles(lower=0.0, upper=1.0, bins=2)], **common).fit(
            column[:, None], classes
        )

    def labels(column: Any) -> object:
        return PrivateCategoricalNB(edges=[[0.0, 0.5, 1.0]], **common).fit(np.zeros((40, 1)), column)

    def engine(column: Any) -> object:
        schema = Schema(id="x", unit=UNIT, attributes=(Attribute(name="x", edges=(0.0, 0.5, 1.0), missing="other"),))
        return open_table({"x": column.tolist()}).count(schema, [Marginal("x")])

    return {"estimator": estimator, "bought edges": buying, "labels": labels, "engine": engine}


# -- spilled rows -------------------------------------------------------------------------------------------------

SPILLING = """
import sys, duckdb
real = duckdb.connect
def connect(*given, **named):
    made = real(*given, **named)
    made.execute("SET memory_limit = '40MB'; SET threads = 1")
    return made
duckdb.connect = connect
from dpbayes.cli.main import run
run()
"""


PROBE = b"blat"
"""Python writes this, and deletes it, to find out whether it may write to a folder for temporary files."""


def _spills(effort: Effort) -> list[Row]:
    """The real command with little memory, in a folder of its own; killed while its rows are on disk."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        here, temp = place / "here", place / "temp"
        here.mkdir(mode=0o755)
        temp.mkdir(mode=0o755)
        command = _spilling(place, effort.rows)
        environment = os.environ | {"TMPDIR": str(temp), "PYTHONPATH": str(Path(package.__file__).parents[1])}
        process = subprocess.Popen(
            command, cwd=here, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        seen = _first_spill(process, (here, temp))
        open_to_all = seen is not None and not _closed(seen, place)
        where = "nothing spilled" if seen is None else f"{seen.relative_to(place).parts[0]} folder"
        process.send_signal(signal.SIGKILL)
        process.wait()
        again = [*command[:3], "schema", "check", str(place / "rows.parquet")]
        subprocess.run(again, cwd=here, env=environment, capture_output=True, check=False)
        left = sum(path.stat().st_size for path in _spilled((here, temp)))
    return [
        Row(
            area=AREA,
            attack="rows that DuckDB spills while a release is counted",
            claim="in a folder that only its owner can enter",
            measured=f"{where}, {'open to others' if open_to_all else 'closed to others'}",
            holds=seen is not None and not open_to_all,
        ),
        Row(
            area=AREA,
            attack="what a killed release leaves on disk, after the next command",
            claim="nothing",
            measured=f"{left:,} bytes",
            holds=left == 0,
        ),
    ]


def _spilling(place: Path, rows: int) -> list[str]:
    written = f"SELECT md5(i::VARCHAR) AS id, i % 3 AS side FROM range({rows}) t(i)"
    duckdb.connect().execute(f"COPY ({written}) TO '{place / 'rows.parquet'}'")
    schema = Schema(
        id="rows", unit=UNIT, attributes=(Attribute(name="side", categories=("1",), missing="other"),), person="id"
    )
    (place / "rows.toml").write_text(schema.to_toml(), encoding="utf-8")
    asked = ["release", place / "rows.parquet", "side", "--epsilon", 1]
    how = ["--set", "mechanism=laplace", "--ledger", "none", "--json", "--out", place / "published"]
    return [sys.executable, "-c", SPILLING, *map(str, asked), *map(str, how)]


def _first_spill(process: subprocess.Popen[bytes], folders: tuple[Path, ...]) -> Path | None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        for path in _spilled(folders):
            return path
        time.sleep(0.005)
    return None


def _spilled(folders: tuple[Path, ...]) -> Iterator[Path]:
    """Files with something in them that may come from rows."""
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                if path.is_file() and _start(path) not in (b"", PROBE):
                    yield path
            except FileNotFoundError:
                continue


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(PROBE) + 1)


def _closed(path: Path, top: Path) -> bool:
    """Whether the file, or a folder on the way to it, keeps everybody else out."""
    steps = [path, *(parent for parent in path.parents if parent != top and parent.is_relative_to(top))]
    try:
        return any(stat.S_IMODE(step.stat().st_mode) & 0o077 == 0 for step in steps)
    except FileNotFoundError:
        return False
