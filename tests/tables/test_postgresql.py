"""The contract of engines on a real PostgreSQL server, and what only a server can do wrong."""

from __future__ import annotations

import threading
from itertools import count

import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import create_engine
from tests.commands import dpbayes
from tests.tables.contract import EngineContract, of_texts, schema_of

from dpbayes import Curator, Ledger, PureDP, Tables, finish
from dpbayes.base.errors import MissingExtra, TableError, Unfinished
from dpbayes.schema import Marginal
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.unit import Unit
from dpbayes.tables.engine import Kind
from dpbayes.tables.sources import open_table

NAMES = count()
SEX = Attribute(name="sex", categories=("F", "M"), missing="other")
TYPES = {
    "string": "text",
    "int64": "bigint",
    "uint8": "smallint",
    "double": "double precision",
    "float": "real",
    "decimal128(9, 2)": "numeric(9, 2)",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
    "list<item: int64>": "bigint[]",
    "list<element: int64>": "bigint[]",
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def load(url: str, table: pa.Table, name: str) -> None:
    """A new table with these rows."""
    columns = ", ".join(f"{quoted(field.name)} {TYPES[str(field.type)]}" for field in table.schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        with connection.cursor().copy(f"COPY {quoted(name)} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))


@pytest.fixture
def people(server):
    """A table of three people, and its address."""
    name = f"people{next(NAMES)}"
    load(server.url(), of_texts({"sex": ["F", "M", "F"]}), name)
    return f"{server.url()}?table={name}"


class TestPostgreSQL(EngineContract):
    """Under the settings of a session that disagree most with ours."""

    @pytest.fixture(autouse=True)
    def _connected(self, server):
        type(self).url = server.url("contract")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'contract'").fetchone() is None:
                connection.execute("CREATE DATABASE contract TEMPLATE template0")
                connection.execute("ALTER DATABASE contract SET datestyle = 'German, DMY'")
                connection.execute("ALTER DATABASE contract SET timezone = 'Asia/Kathmandu'")
                connection.execute("ALTER DATABASE contract SET standard_conforming_strings = off")
                connection.execute("ALTER DATABASE contract SET bytea_output = 'escape'")

    def open(self, table, folder):
        if len({name.lower() for name in table.column_names}) < len(set(table.column_names)) or len(
            set(table.column_names)
        ) < len(table.column_names):
            return open_table(table)  # see below: PostgreSQL has no duplicates, and tells a from A
        name = f"odd.name \"'table{next(NAMES)}"
        load(self.url, table, name)
        return open_table(f"{self.url}?table={name}")


def test_numbers_as_text_never_fail_the_query(server):
    texts = [
        "1e999",
        "-1e999",
        "1e-999",
        "1e99999",
        "0e99999",
        "1e-99999",
        "9" * 400,
        "9" * 6000,
        "0." + "0" * 400 + "1",
    ]
    texts += ["1.7976931348623158e308", "1.797693134862315807e308", "2.5e-324", "-4.9e-324", "1e-320"]
    name = f"numbers{next(NAMES)}"
    load(server.url(), of_texts({"x": texts}), name)
    x = Attribute(name="x", edges=(float("-inf"), 0, 5e-324, 1e-320, 1, float("inf")), unknown="other", missing="other")
    expected = [0] * len(x.levels)
    for text in texts:
        expected[x.level(text)] += 1
    (counts,) = open_table(f"{server.url()}?table={name}").count(schema_of(x), [Marginal("x")])
    assert counts.array.tolist() == expected


def test_counts_beyond_four_bytes_are_exact(server):
    server.execute(
        "CREATE VIEW crowd AS SELECT 'F' AS sex FROM generate_series(1, 3) "
        "UNION ALL SELECT 'M' FROM generate_series(1, 2)"
    )
    engine = open_table(f"{server.url()}?table=crowd")
    original = engine._counted

    def many_times(query, tables):  # the server adds up 8-byte numbers, as for so many rows
        return original(query.replace("count(*)", "sum(1500000000)::bigint"), tables)

    engine._counted = many_times
    (counts,) = engine.count(schema_of(SEX), [Marginal("sex")])
    assert counts.array.tolist() == [4_500_000_000, 3_000_000_000, 0]


def test_a_domain_an_enum_and_padded_text_are_texts(server):
    server.execute("CREATE TYPE sexes AS ENUM ('F', 'M')")
    server.execute("CREATE DOMAIN code AS varchar(5)")
    server.execute("CREATE TABLE typed (sex sexes, c code, p char(4), j json)")
    server.execute("INSERT INTO typed VALUES ('F', 'x', 'ab', '{}'), ('M', NULL, NULL, NULL)")
    engine = open_table(f"{server.url()}?table=typed")
    assert [column.kind for column in engine.columns()] == [Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.UNSUPPORTED]
    c, p = (
        Attribute(name="c", categories=("x",), missing="other"),
        Attribute(name="p", categories=("ab",), missing="other"),
    )
    counted = engine.count(schema_of(SEX, c, p), [Marginal("sex"), Marginal("c"), Marginal("p")])
    assert [counts.array.tolist() for counts in counted] == [[1, 1, 0], [1, 1], [1, 1]]


def test_an_open_connection_is_used_and_left_as_it_was(server, people):
    url, table = people.split("?table=")
    with psycopg.connect(url) as connection:
        connection.execute(f"INSERT INTO {table} VALUES ('M')")  # seen by this transaction only
        (counts,) = open_table((connection, table)).count(schema_of(SEX), [Marginal("sex")])
        assert counts.array.tolist() == [2, 2, 0]
        with pytest.raises(TableError, match="no table"):
            open_table((connection, "nobody"))
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.rollback()
    pool = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    assert open_table((pool, table)).count(schema_of(SEX), [Marginal("sex")])[0].array.tolist() == [2, 1, 0]
    with pool.connect() as borrowed:
        assert open_table((borrowed, table)).values("sex", Unit(adjacency="add-remove")) == {"F": 2, "M": 1}
    pool.dispose()


def test_a_connection_without_a_table_is_refused(server):
    with psycopg.connect(server.url()) as connection, pytest.raises(TableError, match="needs the name of a table"):
        open_table(connection)
    with pytest.raises(TableError, match="expected an address like"):
        open_table(server.url())


def test_of_tables_with_one_name_the_visible_one_or_the_named_one_is_read(server):
    for schema, sex in (("public", "F"), ("north", "M"), ("south", "M")):
        server.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        server.execute(f"CREATE TABLE {schema}.twins AS SELECT '{sex}' AS sex")
    server.execute("CREATE TABLE north.hidden AS SELECT 'F' AS sex")
    server.execute("CREATE TABLE south.hidden AS SELECT 'F' AS sex")

    def counted(table):
        return open_table(f"{server.url()}?table={table}").count(schema_of(SEX), [Marginal("sex")])[0].array.tolist()

    assert counted("twins") == [1, 0, 0]
    assert counted("north.twins") == [0, 1, 0]
    with pytest.raises(TableError, match="more than one schema"):
        counted("hidden")


def test_what_a_server_refuses_is_told_in_one_sentence_without_the_password(server, people):
    url, table = people.split("?table=")
    server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")
    bad = {
        f"postgresql://owner:wrong-guess@127.0.0.1:1/db?table={table}": "does not answer",
        f"{server.url(password='wrong-guess')}?table={table}": "refuses this user",
        f"{server.url('absent')}?table={table}": "refuses this user",
        f"{url}?table=nobody": "no table 'nobody'",
        f"{server.url(user='guest', password='guest-secret')}?table={table}": "may not read",
        f"{url}?table={table}&wrong_option=1": "not one of PostgreSQL",
    }
    for address, words in bad.items():
        with pytest.raises(TableError, match=words) as problem:
            open_table(address)
        for secret in ("wrong-guess", "correct-horse", "guest-secret"):
            assert secret not in str(problem.value)
        assert problem.value.__cause__ is None
        assert problem.value.__suppress_context__ or problem.value.__context__ is None


def curator_of(address, path, schema):
    ledger = Ledger(path)
    ledger.open(schema.id, PureDP(epsilon=1.0), schema.unit)
    return Curator(address, schema, ledger=ledger), ledger


def test_a_release_from_a_server_holds_no_password_anywhere(server, people, tmp_path):
    schema = schema_of(SEX)
    curator, ledger = curator_of(people, tmp_path / "x.ledger", schema)
    released = curator.release(Tables("sex", mechanism="laplace"), PureDP(epsilon=0.5))
    written = released.to_json() + repr(ledger.account(schema.id)) + repr(vars(curator))
    assert released.records == 3
    assert "correct-horse" not in written
    assert len(ledger.account(schema.id).charges) == 1


def test_the_command_line_shows_no_password(people, tmp_path):
    out = tmp_path / "people.toml"
    made = dpbayes("schema", "init", people, "--out", str(out))
    assert made.code == 0
    assert "table=people" in made.out.replace("\n", "")
    refused = dpbayes("schema", "init", people.replace("correct-horse", "wrong-guess"), "--out", "-")
    assert "refuses this user" in refused.sentence
    for secret in ("correct-horse", "wrong-guess"):
        assert secret not in made.out + made.err + refused.err + out.read_text()


def test_a_database_stopped_during_the_query_keeps_the_charge_and_is_finished_when_it_is_back(server, people, tmp_path):
    table = people.split("?table=")[1]
    server.execute(f"CREATE VIEW slow{table} AS SELECT sex FROM {table}, (SELECT pg_sleep(600)) AS pause")
    schema = schema_of(SEX)
    curator, ledger = curator_of(f"{server.url()}?table=slow{table}", tmp_path / "x.ledger", schema)
    stop = threading.Timer(2.0, server.stop, args=("immediate",))
    stop.start()
    try:
        with pytest.raises(Unfinished, match=r"database (was stopped|stopped answering)"):
            curator.release(Tables("sex", mechanism="laplace"), PureDP(epsilon=0.5))
    finally:
        stop.join()
        server.start()
    assert [charge.state for charge in ledger.account(schema.id).charges.values()] == ["charged"]
    with ledger.kept.unfinished() as (left,):
        name = left.name
    (made,) = finish(ledger, table=people, only=name)  # another address: only for the release that is named
    account = ledger.account(schema.id)
    assert [charge.state for charge in account.charges.values()] == ["drawn"]
    assert account.left() == pytest.approx(0.5)
    assert made.verify(ledger=ledger).ok


def test_nothing_is_charged_for_a_column_that_is_not_there(people, tmp_path):
    schema = schema_of(Attribute(name="age", categories=("1",), missing="other"))
    curator, ledger = curator_of(people, tmp_path / "x.ledger", schema)
    with pytest.raises(TableError, match="no column 'age'"):
        curator.release(Tables("age"), PureDP(epsilon=0.5))
    assert len(ledger.account(schema.id).entries) == 1


def test_without_the_driver_the_message_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "dpbayes.tables.postgresql", raising=False)
    with pytest.raises(MissingExtra, match=r"Install dpbayes\[postgres\]"):
        open_table("postgresql://owner@host/db?table=people")
