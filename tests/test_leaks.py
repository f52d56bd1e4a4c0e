"""Nothing private leaves unpaid: marked values and exact counts are looked for in everything that a command leaves.

A category that no schema declares, and cells with recognisable counts. Noise is drawn so wide (ε = 10⁻⁶) that an exact
count has no chance to appear among the noisy ones.
"""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import Done, dpbayes

from dpbayes import Attribute, Curator, Dirichlet, Ledger, PureDP, Schema, Tables, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.curator import STEPS
from dpbayes.tables.duckdb import DuckDBEngine
from dpbayes.tables.sources import private_folder

SECRET = "SECRET-4711"
COUNTS = {"left": 123_457, "right": 76_543, SECRET: 11_117}
TOTAL = sum(COUNTS.values())
UNIT = Unit(adjacency="add-remove")
SCHEMA = """
id = "sides"
adjacency = "add-remove"
[[attribute]]
name = "side"
categories = ["left", "right"]
unknown = "drop"
[[attribute]]
name = "place"
categories = ["here", "there"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sides = np.repeat(list(COUNTS), list(COUNTS.values()))
    parquet.write_table(pa.table({"side": sides, "place": ["here"] * TOTAL}), "sides.parquet")
    Path("sides.toml").write_text(SCHEMA)
    Ledger("sides.ledger").open("sides", PureDP(epsilon=1), UNIT)
    return tmp_path


def release(*more: object, table: str = "sides.parquet", marginal: str = "side", epsilon: float = 1e-6) -> Done:
    asked = [marginal, "--epsilon", epsilon, "--set", "mechanism=laplace", "--ledger", "sides.ledger"]
    return dpbayes("release", table, "--schema", "sides.toml", *asked, *more)


def left_behind(done: Done, folder: Path) -> Iterator[tuple[str, str]]:
    """All that was printed and written, but for the private tables themselves."""
    yield "standard output", done.out
    yield "standard error", done.err
    gc.collect()  # a copy goes with the engine that reads it
    for path in [*folder.rglob("*"), *private_folder().rglob("*")]:  # copies of lines are there while they are read
        if (path.is_file() and not path.name.startswith("sides.")) or path.suffix == ".ledger":
            yield path.name, path.read_bytes().decode("latin-1")


def assert_nothing_private(done: Done, folder: Path) -> None:
    numbers = {*COUNTS.values(), TOTAL}
    for where, text in left_behind(done, folder):
        assert SECRET not in text, where
        found = {int(number) for number in re.findall(r"(?<![\d.])\d{5,6}(?![\d.])", text.replace(",", ""))}
        assert not found & numbers, where


@pytest.mark.parametrize("options", [["--json"], ["--out", "published"]])
@pytest.mark.parametrize("marginal", ["side", "side,place", "side|place"])
def test_a_release_holds_no_exact_count_no_found_category_and_no_size(
    here: Path, options: list[str], marginal: str
) -> None:
    done = release(*options, marginal=marginal)
    assert done.code == 0, done.err
    assert_nothing_private(done, here)


@pytest.mark.parametrize("product", ["tables", "draw", "pseudo-records"])
def test_a_dirichlet_release_holds_none_either(here: Path, product: str) -> None:
    target = ["--epsilon", 1e-4, "--delta", 1e-9, "--ledger", "none", "--as", product]
    target += ["--set", "mechanism=dirichlet"] if product == "tables" else []
    done = dpbayes("release", "sides.parquet", "--schema", "sides.toml", "side", *target, "--out", "published")
    assert done.code == 0, done.err
    assert_nothing_private(done, here)


MENDED = {
    "too few fields": f"side,place\nleft,here\n{SECRET}\n",
    "too many fields": f"side,place\nleft,here\n{SECRET},here,there\n",
    "an open quote": f'side,place\n"{SECRET},here\nleft,here\n',
    "not UTF-8": f"side,place\nleft,here\n{SECRET}\xff,here\n",
}
"""What is wrong with a line is a matter of that line: these are read."""

REFUSED = {
    "no header": f"{SECRET},here\nleft,here\n",
    "no header, twice the same": f"{SECRET},{SECRET}\nleft,here\n",
    "no header, near a name": f"sides,{SECRET}\nleft,here\n",
    "another delimiter": f"side;place\n{SECRET};here\n",
}
FAILING = ["a damaged page", "a view that cannot convert"]
"""These fail only when their rows are read, the last with a message of DuckDB that quotes a row."""


def written(what: str) -> str:
    """Write a table with something wrong in it, and return its address."""
    if what == "a damaged page":
        table = pa.table({"side": ["left", SECRET], "place": ["here", "here"]})
        parquet.write_table(table, "sides.broken.parquet", compression="none", use_dictionary=False)
        before, secret, after = Path("sides.broken.parquet").read_bytes().partition(SECRET.encode())
        Path("sides.broken.parquet").write_bytes(before[:-4] + b"\xff\xff\xff\x7f" + secret + after)  # its length
        return "sides.broken.parquet"
    if what == "a view that cannot convert":
        view = "CREATE VIEW seen AS SELECT CAST(CAST(side AS INTEGER) AS VARCHAR) AS side, place FROM kept"
        with duckdb.connect("sides.broken.duckdb") as database:
            database.execute(f"CREATE TABLE kept AS SELECT '{SECRET}' AS side, 'here' AS place")
            database.execute(view)
            with pytest.raises(duckdb.ConversionException, match=SECRET):  # so the checks of this can fail
                database.execute("FROM seen").fetchall()
        return "sides.broken.duckdb?table=seen"
    Path("sides.broken.csv").write_bytes({**MENDED, **REFUSED}[what].encode("latin-1"))
    return "sides.broken.csv"


COMMANDS = ["release", "schema check", "discover", "posterior"]


def run(command: str, table: str, records: int) -> Done:
    """Run a command that reads a table."""
    if command == "release":
        return release("--out", "published", table=table)
    if command == "schema check":
        return dpbayes("schema", "check", table, "--schema", "sides.toml")
    if command == "posterior":
        declared = SCHEMA.replace("add-remove", "replace-one").replace("id =", f"records = {records}\nid =")
        Path("sides.toml").write_text(declared)
        asked = ["side", "--set", "prior=1", "--epsilon", 1, "--set", "mechanism=laplace", "--ledger", "none"]
        return dpbayes("release", "--as", "posterior", table, "--schema", "sides.toml", *asked, "--out", "published")
    asked = ["side", "--epsilon", 1, "--delta", 1e-9, "--schema", "sides.toml", "--ledger", "none"]
    return dpbayes("release", "--as", "categories", table, *asked)


@pytest.mark.parametrize("what", [*REFUSED, *FAILING])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_cannot_be_read_is_not_quoted(here: Path, command: str, what: str) -> None:
    done = run(command, written(what), records=9_000_000)
    if command != "schema check" or what in REFUSED:  # which may read no row
        assert done.sentence.startswith("Table: ")
    assert "sides'" not in done.err  # the value that is near the name of a column
    assert_nothing_private(done, here)


@pytest.mark.parametrize("what", MENDED)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_line_is_neither_quoted_nor_mentioned(here: Path, command: str, what: str) -> None:
    done = run(command, written(what), records=2)
    assert done.code == 0, done.err
    assert_nothing_private(done, here)
    shutil.rmtree("published", ignore_errors=True)
    Path("sides.sound.csv").write_text("side,place\nleft,here\nright,here\n")
    assert done.err == run(command, "sides.sound.csv", records=2).err


def test_rare_categories_are_not_discovered(here: Path) -> None:
    rare = pa.table({"side": ["left"] * 5000 + [SECRET], "place": ["here"] * 5001})
    parquet.write_table(rare, "sides.parquet")
    asked = ["side", "--epsilon", 0.5, "--delta", 1e-9, "--schema", "sides.toml", "--ledger", "none", "--json"]
    done = dpbayes("release", "--as", "categories", "sides.parquet", *asked)
    assert (done.code, '"left"' in done.out) == (0, True)
    assert_nothing_private(done, here)


def test_a_failure_that_nobody_expected_is_not_quoted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(*_: object) -> None:
        raise ValueError(f"could not convert string {SECRET!r} in a table of {TOTAL} rows")

    monkeypatch.setattr(DuckDBEngine, "count", count)
    done = release("--out", "published")
    assert done.code == 70
    assert "an unexpected ValueError" in done.sentence
    assert_nothing_private(done, here)
    assert [charge.state for charge in Ledger("sides.ledger").account("sides").charges.values()] == ["charged"]


@pytest.mark.parametrize("what", ["too few fields", *FAILING])
def test_neither_developer_mode_nor_warnings_show_a_row(here: Path, what: str) -> None:
    asked = f"release {written(what)} side --schema sides.toml --epsilon 1e-6 --set mechanism=laplace --ledger none"
    python = [sys.executable, "-X", "dev", "-W", "always", "-c", "from dpbayes.cli.main import run; run()"]
    done = subprocess.run([*python, *asked.split()], capture_output=True, text=True, check=False)
    assert done.returncode == (what in FAILING), done.stderr
    assert_nothing_private(Done(code=done.returncode, out=done.stdout, err=done.stderr), here)


# -- the same from Python -----------------------------------------------------------------------------------------


def curator(table: object, progress: object = None) -> Curator:
    declared = Schema(
        id="sides", unit=UNIT, attributes=(Attribute(name="side", categories=("left", "right"), missing="other"),)
    )
    return Curator(table, declared, ledger="sides.ledger", progress=progress)  # type: ignore[arg-type]


ASKED, TARGET = Tables("side", mechanism="laplace"), PureDP(epsilon=1e-6)


def test_what_a_notebook_shows_of_a_curator_is_public(here: Path) -> None:
    heard: list[str] = []
    made = curator("sides.parquet", heard.append)
    released = made.release(ASKED, TARGET)
    assert heard == [f"{step}, step {place} of 5" for place, step in enumerate(STEPS[:4], start=1)]
    counts = made._engine.count(made.schema, ASKED.marginals)
    each = (made, ASKED, made.plan(ASKED, TARGET), made._engine, counts, released, released["side"])
    assert_nothing_private(Done(code=0, out="\n".join(map(repr, each)), err="\n".join(heard)), here)


@pytest.mark.parametrize("what", [*REFUSED, *FAILING])
def test_the_traceback_of_an_error_in_python_quotes_no_row(here: Path, what: str) -> None:
    with pytest.raises(DpbayesError, match=r"^Table: ") as problem:
        curator(written(what)).release(ASKED, TARGET)
    shown = "".join(traceback.format_exception(problem.value))
    assert_nothing_private(Done(code=1, out="", err=shown), here)


@pytest.mark.parametrize("what", MENDED)
def test_a_damaged_line_shows_nowhere_in_python(
    here: Path, what: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    made = curator(written(what))
    shown = repr((made, made.release(ASKED, TARGET)))
    printed = capfd.readouterr()
    assert (printed.out, printed.err, [str(warning.message) for warning in recwarn]) == ("", "", [])
    del made  # the copy that it reads is in a private folder for as long as it can be asked
    assert_nothing_private(Done(code=0, out=shown, err=""), here)


@pytest.mark.parametrize(
    "bad", [[-4711, 3], [4711.5, 3], [[4711], [3, 4]], [float("nan"), 4711], "4711", [2**63, 4711]]
)
def test_messages_about_counts_never_repeat_them(bad: object) -> None:
    mechanism = Dirichlet(weight=1, concentration=10, unit=UNIT)
    with pytest.raises(DpbayesError) as problem:
        mechanism.draw(bad)
    assert "4711" not in str(problem.value)
