"""Finding: stem × folder × address × option. Only what bears the name of the data is found, and nothing is created."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas
import pytest

from dpbayes.base.errors import LedgerError, SchemaError
from dpbayes.tables.beside import beside

TABLES = ["survey.csv", "survey.csv.gz", "survey.tsv", "survey.parquet", "survey.CSV", "survey.csv?delimiter=;"]
ADDRESSES = [
    "postgresql://owner:secret@host/db?table=survey",
    "postgres://host/db?sslmode=require&table=survey",
    "spark://host:7077?path=/data/survey.parquet",
    "s3://bucket/2026/survey.parquet",
    "https://example.org/survey.csv?token=1",
]
NAMELESS = [
    "*.csv",
    "surve?.csv",
    "[s]urvey.csv",
    "sur*ey.csv?delimiter=;",
    "*/survey.csv",
    "s3://bucket/*/survey.parquet",
    "postgresql://host/db?table=../survey",
    "postgresql://host/db?table=sur*ey",
    "",
    ".",
    "/",
]
OTHERS = ("income.toml", "income.ledger", "survey2.toml", "survey2.ledger", "survey.csv.toml", "survey.csv.ledger")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def put(*names):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


def files():
    return sorted(map(str, Path("..").rglob("*")))


def shown(near):
    return tuple(None if each is None else str(each) for each in (near.table, near.schema, near.ledger))


@pytest.mark.parametrize(
    ("data", "folder", "schema", "ledger"),
    [
        (data, folder, *there)
        for data, folder in [*itertools.product(TABLES, ("", "data/", "../x/")), *((each, "") for each in ADDRESSES)]
        for there in itertools.product((False, True), repeat=2)
    ],
)
def test_a_table_finds_what_bears_its_name_in_its_folder(data, folder, schema, ledger):
    put(*OTHERS, *(f"{folder}{name}" for name in OTHERS))
    put(*(f"elsewhere/survey{suffix}" for suffix in (".toml", ".ledger")))
    if folder:
        put("survey.toml", "survey.ledger")
    if schema:
        put(f"{folder}survey.toml")
    if ledger:
        put(f"{folder}survey.ledger")
    before = files()
    near = beside(folder + data)
    expected = (f"{folder}survey.toml" if schema else None, f"{folder}survey.ledger" if ledger else None)
    assert shown(near) == (folder + data, *expected)
    assert (str(near.new_schema), str(near.new_ledger)) == (f"{folder}survey.toml", f"{folder}survey.ledger")
    assert files() == before
    assert "secret" not in near.line
    assert "secret" not in str(near.record())


@pytest.mark.parametrize("data", NAMELESS)
def test_a_pattern_and_what_has_no_name_find_nothing(data):
    put("survey.csv", "survey.toml", "survey.ledger", ".toml", ".ledger", "*.toml", "surve?.toml", "[s]urvey.ledger")
    near = beside(data)
    assert (near.schema, near.ledger, near.stem) == (None, None, None)
    with pytest.raises(SchemaError, match="Name the schema"):
        near.need_schema()
    with pytest.raises(LedgerError, match="Name the ledger"):
        near.need_ledger()


@pytest.mark.parametrize("data", [*TABLES, *ADDRESSES, *NAMELESS, "survey.toml", "survey.ledger"])
@pytest.mark.parametrize("there", [(), ("survey.toml", "survey.ledger")])
def test_what_is_named_wins(data, there):
    put(*there)
    near = beside(data, "other.toml", "postgresql://owner:secret@host/ledgers")
    assert shown(near)[1:] == ("other.toml", "postgresql://owner:secret@host/ledgers")
    assert "secret" not in near.line
    assert near.need_ledger() == near.ledger
    forgetful = beside(data, ledger="none")
    assert (forgetful.ledger, forgetful.uncounted, forgetful.need_ledger()) == (None, True, None)
    assert forgetful.line.endswith("uncounted")
    assert beside(data, "other.toml").schema == "other.toml"


@pytest.mark.parametrize("folder", ["", "data/"])
@pytest.mark.parametrize("data", ["survey.toml", "survey.ledger"])
def test_schema_and_ledger_find_the_others(folder, data):
    put(*OTHERS, f"{folder}survey.parquet", f"{folder}survey.toml", f"{folder}survey.ledger")
    names = tuple(f"{folder}survey.{suffix}" for suffix in ("parquet", "toml", "ledger"))
    assert shown(beside(folder + data)) == names
    put(f"{folder}survey.csv")
    assert shown(beside(folder + data)) == (None, *names[1:])  # which of the two tables is not for us to say


def test_a_table_of_a_database_file_is_found_by_the_name_of_the_table():
    put("data/all.duckdb", "data/people.toml", "data/people.ledger", "data/all.toml", "data/all.ledger", "people.toml")
    assert shown(beside("data/all.duckdb?table=people"))[1:] == ("data/people.toml", "data/people.ledger")
    assert shown(beside("data/all.duckdb"))[1:] == ("data/all.toml", "data/all.ledger")


def test_a_ledger_that_is_named_need_not_be_there_yet():
    assert shown(beside("survey.ledger")) == (None, None, "survey.ledger")
    assert shown(beside("postgresql://host/ledgers")) == (None, None, "postgresql://host/ledgers")
    assert beside("survey.csv", ledger=Path("none")).ledger == Path("none")  # a file of this name


def test_a_folder_is_no_ledger():
    Path("survey.ledger").mkdir()
    assert beside("survey.csv").ledger is None
    assert beside("s" * 300 + ".csv").ledger is None


def test_a_table_in_memory_finds_nothing_and_its_columns_are_not_shown():
    put("survey.toml", "survey.ledger", "None.toml")
    for rows in ({"id": ["secret"], "name": ["secret"]}, pandas.DataFrame({"id": ["secret"], "name": ["secret"]})):
        near = beside(rows, "survey.toml")
        assert "secret" not in repr(near)
        assert near.line == "a table in memory, schema survey.toml, uncounted"
        assert near.record() == {"table": "a table in memory", "schema": "survey.toml", "ledger": None}
        assert beside(rows, "survey.toml", "survey.ledger").need_ledger() == "survey.ledger"
        assert beside(rows).schema is None


def test_the_line_says_what_was_found():
    put("survey.toml")
    assert beside("survey.csv").line == "survey.csv, schema survey.toml, no ledger survey.ledger"
    put("survey.ledger")
    assert beside("survey.csv").line == "survey.csv, schema survey.toml, ledger survey.ledger"
    with pytest.raises(LedgerError, match=r"`dpbayes ledger init other.csv --epsilon 4 --delta 1e-6`"):
        beside("other.csv").need_ledger()
