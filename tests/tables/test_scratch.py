"""What engines spill is for nobody else to read, and nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpbayes
from dpbayes.base.errors import TableError
from dpbayes.tables import sources
from dpbayes.tables.sources import open_table

ROWS = 800_000
SPILLING = """
    import sys
    from dpbayes.schema.attribute import Attribute
    from dpbayes.schema.marginal import Marginal
    from dpbayes.schema.schema import Schema
    from dpbayes.schema.unit import Unit
    from dpbayes.tables.sources import open_table

    unit = Unit(adjacency="add-remove")
    schema = Schema(id="x", unit=unit, attributes=(Attribute(name="v", categories=("1",)),), person="id")
    engine = open_table({source})
    engine._connection.execute("SET memory_limit = '40MB'; SET threads = 1")
    for _ in range({times}):
        print(engine.count(schema, [Marginal("v")])[0].array.sum(), flush=True)
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    written = f"SELECT md5(i::VARCHAR) AS id, i % 3 AS v FROM range({ROWS}) t(i)"
    duckdb.execute(f"COPY ({written}) TO '{path}'")
    duckdb.execute(f"ATTACH '{path.with_suffix('.duckdb')}' AS d; CREATE TABLE d.rows AS FROM '{path}'; DETACH d")
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, and another for temporary files."""
    for name in ("here", "temp"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    monkeypatch.setenv("PYTHONPATH", str(Path(dpbayes.__file__).parents[1]))  # the same one, wherever we are
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def started(source: str, times: int = 1) -> subprocess.Popen[str]:
    script = textwrap.dedent(SPILLING).format(source=source, times=times)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def spilled(folder: Path) -> Iterator[Path]:
    for found in folder.rglob("duckdb_temp*"):
        try:
            if found.stat().st_size:
                yield found
        except FileNotFoundError:
            continue


def wait_for_a_spill(process: subprocess.Popen[str], folder: Path) -> Path:
    while not (found := next(spilled(folder), None)):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.005)
    return found


SOURCES = {
    "a file": "'{rows}'",
    "a table in memory": "__import__('pyarrow.parquet').parquet.read_table('{rows}')",
    "a database": "'{database}?table=rows'",
    "the caller's connection": "(__import__('duckdb').connect('{database}', read_only=True), 'rows')",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_rows_spill_to_a_private_folder_which_ends_with_the_process(source: str, rows: Path, place: Path) -> None:
    process = started(source.format(rows=rows, database=rows.with_suffix(".duckdb")))
    file = wait_for_a_spill(process, place / "temp")
    (folder,) = (place / "temp").iterdir()
    assert file.is_relative_to(folder)
    assert (folder.stat().st_mode & 0o777, folder.stat().st_uid) == (0o700, os.geteuid())
    out, err = process.communicate(timeout=120)
    assert out.endswith(f"{ROWS}\n"), err  # a caller's connection may show a bar before
    assert list((place / "temp").iterdir()) == list((place / "here").iterdir()) == []
    assert {path.suffix for path in rows.parent.iterdir()} == {".parquet", ".duckdb"}


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(rows: Path, place: Path) -> None:
    killed = started(repr(str(rows)), times=1000)
    wait_for_a_spill(killed, place / "temp")
    killed.kill()
    killed.communicate()
    (left,) = (place / "temp").iterdir()
    assert next(spilled(left), None)
    stranger = place / "temp" / f"{sources.PREFIX}link"
    stranger.symlink_to(place / "here")
    (place / "here" / "precious").touch()
    alive = started(repr(str(rows)), times=1000)
    try:
        while left.exists():
            assert alive.poll() is None, alive.communicate()
        wait_for_a_spill(alive, place / "temp")
        (living,) = set((place / "temp").iterdir()) - {stranger}
        assert started(repr(str(rows))).communicate(timeout=120) == (f"{ROWS}\n", "")
        assert set((place / "temp").iterdir()) == {living, stranger}
        assert (place / "here" / "precious").exists()
        assert alive.poll() is None
    finally:
        alive.kill()
        alive.communicate()


def test_a_folder_swept_before_it_is_locked_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.tempfile, "tempdir", str(place / "temp"))
    make, made = sources.tempfile.mkdtemp, []

    def slowly(**options: str) -> str:
        made.append(make(**options))
        if len(made) == 1:
            sources.sweep()  # by a process that starts now
        return made[-1]

    monkeypatch.setattr(sources.tempfile, "mkdtemp", slowly)
    path = sources._made()
    sources.sweep()
    assert [str(path)] == made[1:] == [str(each) for each in (place / "temp").iterdir()]


def test_without_a_place_for_it_nothing_is_opened(place: Path) -> None:
    (place / "temp").rmdir()
    script = (
        "import tempfile; tempfile.tempdir = '/nowhere'; from dpbayes.tables import open_table; open_table({'a': [1]})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "TableError: Table: no private folder for temporary files can be made. Set TMPDIR" in done.stderr


def spill_folder(connection: duckdb.DuckDBPyConnection) -> str:
    return str(connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])


def test_a_callers_connection_keeps_the_folder_that_the_caller_chose(tmp_path: Path) -> None:
    with duckdb.connect(config={"temp_directory": str(tmp_path)}) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        open_table((connection, "t"))
        assert spill_folder(connection) == str(tmp_path)
    for path in (":memory:", str(tmp_path / "t.duckdb")):
        with duckdb.connect(path) as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
            open_table((connection, "t"))
            first = spill_folder(connection)
            assert Path(first).is_relative_to(sources.private_folder())
            open_table((connection, "t"))
            assert spill_folder(connection) == first


def test_a_connection_that_spills_where_others_can_read_is_refused(place: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a; SET lock_configuration = true")
        with pytest.raises(TableError, match="Set its temp_directory to a private folder"):
            open_table((connection, "t"))


def test_a_database_that_the_caller_has_open_is_asked_for_as_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        with pytest.raises(TableError, match="Pass the open one"):
            open_table(f"{path}?table=t")
    first, second = (open_table(f"{path}?table=t") for _ in range(2))
    assert first.columns() == second.columns()
