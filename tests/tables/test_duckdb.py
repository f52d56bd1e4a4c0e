from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables.contract import EngineContract, of_texts, schema_of, text_tables

from dpbayes.base.errors import DpbayesError, SchemaError, TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.engine import Column, Kind
from dpbayes.tables.sources import open_table

UNIT = Unit(adjacency="add-remove")
SEX = Attribute(name="sex", categories=("F", "M"), missing="other")
SECRET = "Zyxwvut-4711"


class TestArrow(EngineContract):
    def open(self, table, folder):
        return open_table(table)


class TestParquet(EngineContract):
    def open(self, table, folder):
        pa.parquet.write_table(table, folder / "t.parquet", row_group_size=7)
        return open_table(str(folder / "t.parquet"))


class TestCsv(EngineContract):
    typed = False
    empty_text_is_missing = True

    def open(self, table, folder):
        pa.csv.write_csv(table, folder / "t.csv", pa.csv.WriteOptions(quoting_style="needed"))
        return open_table(str(folder / "t.csv"))


class TestPandas(EngineContract):
    def open(self, table, folder):
        return open_table(table.to_pandas())

    def test_a_type_that_does_not_fit_is_refused(self, tmp_path):
        engine = self.open(pa.table({"day": pa.array([True])}), tmp_path)
        with pytest.raises(SchemaError, match="does not go with edges"):
            engine.count(schema_of(Attribute(name="day", edges=(0, 1), missing="other")), [Marginal("day")])


class TestPolars(EngineContract):
    def open(self, table, folder):
        if len(set(table.column_names)) < len(table.column_names):
            return open_table(table)  # polars itself refuses duplicate names
        return open_table(pl.from_arrow(table))


class TestDatabase(EngineContract):
    def open(self, table, folder):
        if len({name.lower() for name in table.column_names}) < len(table.column_names):
            return open_table(table)  # DuckDB itself refuses such tables
        with duckdb.connect(folder / "t.duckdb") as connection:
            connection.register("arrow", table)
            connection.execute('CREATE TABLE "odd.name ""table" AS SELECT * FROM arrow')
        return open_table(f'{folder}/t.duckdb?table=odd.name "table')


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(drawn=text_tables())
def test_many_generated_tables_are_counted_as_by_hand(drawn):
    schema, columns, marginals = drawn
    TestArrow().check(schema, marginals, of_texts(columns))


def counts_of(source, *attributes):
    marginals = [Marginal(attribute.name) for attribute in attributes]
    return [counts.array.tolist() for counts in open_table(source).count(schema_of(*attributes), marginals)]


def test_columns_are_known_without_reading_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"b ""c"""\n' + "broken row, with, too, many, fields\n")
    assert open_table(str(path)).columns() == (Column("a", Kind.TEXT), Column('b "c"', Kind.TEXT))


def test_csv_texts_are_compared_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n01,"x\r\ny"\r\n1,\r\n"",z\r\n')
    a = Attribute(name="a", categories=("01", "1"), missing="category")
    b = Attribute(name="b", categories=("x\r\ny",), missing="category")
    assert counts_of(str(path), a, b) == [[1, 1, 1, 0], [1, 1, 1]]


def test_compressed_and_tab_separated_files_are_read(tmp_path):
    import gzip

    with gzip.open(tmp_path / "t.tsv.gz", "wt") as file:
        file.write("sex\tage\nF\t1\nM\t2\nF\t3\n")
    assert counts_of(str(tmp_path / "t.tsv.gz"), SEX) == [[2, 1, 0]]


def test_another_delimiter_is_named_in_the_source(tmp_path):
    (tmp_path / "t.csv").write_text("sex;age\nF;1\nM;2\n")
    assert counts_of(f"{tmp_path}/t.csv?delimiter=;", SEX) == [[1, 1, 0]]
    with pytest.raises(TableError, match=r"write .*t\.csv\?delimiter=;"):
        open_table(f"{tmp_path}/t.csv")


def test_parquet_files_that_match_a_pattern_are_one_table(tmp_path):
    for number, sexes in enumerate((["F", "M"], ["M"])):
        pa.parquet.write_table(of_texts({"sex": sexes}), tmp_path / f"{number}.parquet")
    assert counts_of(tmp_path / "?.parquet", SEX) == [[1, 2, 0]]


def test_files_of_one_table_must_have_the_same_columns(tmp_path):
    (tmp_path / "1.csv").write_text("sex\nF\n")
    (tmp_path / "2.csv").write_text("sex\nM\n")
    assert counts_of(f"{tmp_path}/*.csv", SEX) == [[1, 1, 0]]
    (tmp_path / "3.csv").write_text("age\n3\n")
    with pytest.raises(TableError, match="does not have the columns"):
        open_table(f"{tmp_path}/*.csv")


def test_parquet_files_of_one_table_must_have_the_same_types(tmp_path):
    pa.parquet.write_table(of_texts({"sex": ["F"]}), tmp_path / "1.parquet")
    pa.parquet.write_table(pa.table({"sex": pa.array(["M"]).dictionary_encode()}), tmp_path / "2.parquet")
    assert counts_of(f"{tmp_path}/*.parquet", SEX) == [[1, 1, 0]]
    for other in ({"sex": [1]}, {"age": ["1"]}, {"sex": ["F"], "age": ["1"]}):
        pa.parquet.write_table(pa.table(other), tmp_path / "3.parquet")
        with pytest.raises(TableError, match="columns and types of the files before it"):
            open_table(f"{tmp_path}/*.parquet")


def test_mixed_python_objects_in_pandas_become_text():
    frame = pd.DataFrame({"v": pd.Series([1, "1", 1.0, True, None, float("nan"), 2.5], dtype=object)})
    v = Attribute(name="v", categories=("1", "true", "2.5"), missing="category")
    assert counts_of(frame, v) == [[3, 1, 1, 2, 0]]


def test_pandas_categories_and_nullable_integers_are_read():
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y", None]), "i": pd.array([1, None, 2], dtype="Int64")})
    c = Attribute(name="c", categories=("x", "y"), missing="category")
    i = Attribute(name="i", edges=(0, 2, 3), missing="category")
    assert counts_of(frame, c, i) == [[1, 1, 1, 0], [1, 1, 1, 0]]


def test_lazy_polars_frames_and_plain_dictionaries_are_read():
    assert counts_of(pl.LazyFrame({"sex": ["F", "M", "F"]}), SEX) == [[2, 1, 0]]
    assert counts_of({"sex": ["F", "M", "F"]}, SEX) == [[2, 1, 0]]


def test_a_table_of_an_open_connection_is_read():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.people AS SELECT 'F' AS sex; CREATE VIEW people AS SELECT 'M' AS sex"
        )
        assert counts_of((connection, "s.people"), SEX) == [[1, 0, 0]]
        with pytest.raises(TableError, match="more than one schema"):
            open_table((connection, "people"))
        with pytest.raises(TableError, match="no table 'nobody'"):
            open_table((connection, "nobody"))


def test_only_needed_columns_of_a_table_in_memory_are_converted():
    class Unreadable:
        def __str__(self):
            raise AssertionError("this column was not asked for")

    assert counts_of(pd.DataFrame({"sex": ["F"], "junk": pd.Series([Unreadable()], dtype=object)}), SEX) == [[1, 0, 0]]


def test_people_are_bounded_in_parts_as_in_one(monkeypatch):
    from dpbayes.tables import duckdb as engine

    people = [str(number % 40) for number in range(200)]
    values = ["FMX"[number * number % 3] for number in range(200)]
    unit = Unit(adjacency="add-remove", max_rows=2)
    schema = schema_of(SEX, unit=unit, person="id")
    source = {"id": people, "sex": values}
    (whole,) = open_table(source).count(schema, [Marginal("sex")])
    monkeypatch.setattr(engine, "_SORTED_ROWS", 30)
    (parts,) = open_table(source).count(schema, [Marginal("sex")])
    assert whole.array.sum() == 80
    assert parts.array.tolist() == whole.array.tolist()


BAD_FILES = {
    "header.csv": b"",
    "binary.csv": bytes(range(256)) * 10,
    "cut.csv.gz": b"\x1f\x8b\x08\x00" + SECRET.encode(),
    "truncated.parquet": b"PAR1" + SECRET.encode() * 100,
    "empty.parquet": b"",
    "fake.duckdb": SECRET.encode() * 1000,
}


DAMAGED_LINES = {
    "a carriage return": b"M\rF,1",
    "many of them": b"\rM\r\r\rF,1\r",
    "fields too many": b"M,1,2,3",
    "fields too few": b"M",
    "a quote that is not closed": b'"M,1',
    "a quote in the middle": b'M"x,1',
    "something after a quote": b'"M"x,1',
    "quotes only": b'""","',
    "no UTF-8": b"\xff\xfe,1",
    "NUL": b"M\x00,1",
    "a very long value": b"M" * 3_000_000 + b",1",
}


@pytest.mark.parametrize("before", [b"F,1\n", b'"F\r\nx",1\n"F",2\n', b""], ids=["plain", "quoted", "first"])
@pytest.mark.parametrize("name", DAMAGED_LINES)
def test_a_line_that_cannot_be_read_is_one_row_and_leaves_the_others_alone(name, before, tmp_path):
    other = Attribute(name="sex", categories=("F", "M", "F\r\nx"), missing="other")
    after = b'F,1\n"F\r\nx",1\nM,2\n"F",""\n'
    found = []
    for number, line in enumerate((b"?,1", DAMAGED_LINES[name])):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(b"sex,age\n" + before + line + b"\n" + after)
        found += counts_of(str(path), other)
    moved = [after - before for before, after in zip(*found, strict=True)]
    assert sum(found[0]) == sum(found[1])
    assert sum(map(abs, moved)) <= 2


def test_a_line_break_inside_a_value_does_not_end_the_row_where_lines_end_otherwise(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"sex,age\r\nF,1\r\nM\nF,2\r\nF\rM,3\r\nF,4\r\n")
    sex = Attribute(name="sex", categories=("F", "M\nF", "F\rM"), missing="other")
    assert counts_of(str(tmp_path / "t.csv"), sex) == [[2, 1, 1, 0]]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.text(alphabet='aF,"\n\r ', max_size=4)] * 2), min_size=1, max_size=6))
def test_a_mended_copy_reads_as_the_file_does_where_nothing_is_wrong_with_it(rows, tmp_path):
    import csv

    from dpbayes.tables.mending import mend

    path, copy = tmp_path / "t.csv", tmp_path / "copy.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), *rows])
    unit = Unit(adjacency="replace-one")
    mend(str(path), ",", 2, copy)
    again, first = open_table(str(copy)), open_table(str(path))
    for column in "ab":
        assert again.values(column, unit) == first.values(column, unit)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence_without_its_content(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(BAD_FILES[name])
    with pytest.raises(DpbayesError) as caught:
        open_table(f"{path}?table=t" if name.endswith("duckdb") else str(path)).count(schema_of(SEX), [Marginal("sex")])
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(of_texts({"sex": ["F", "M"] * 5000}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TableError, match="Table: it "):
        open_table(str(path))
    pa.parquet.write_table(of_texts({"sex": [str(n) for n in range(5000)]}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:50] + bytes(10000) + whole[10050:])
    with pytest.raises(TableError, match="Table: it "):
        open_table(str(path)).count(schema_of(SEX), [Marginal("sex")])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.csv", "no file"),
        ("nowhere/*.parquet", "no file"),
        ("notes.docx", "cannot tell what"),
        ("", "cannot tell what"),
        ("x.parquet?delimiter=;", "does not take the option 'delimiter'; it takes none"),
        (42, "not a table"),
        ("https://localhost/t.csv", "local paths only"),
    ],
)
def test_a_source_that_is_no_table_is_refused(source, words):
    with pytest.raises(TableError, match=words):
        open_table(source)


def test_a_directory_is_refused(tmp_path):
    (tmp_path / "t.parquet").mkdir()
    with pytest.raises(TableError, match="is not a file"):
        open_table(str(tmp_path / "t.parquet"))


def test_an_unknown_engine_is_refused():
    with pytest.raises(TableError, match="no engine 'abacus'"):
        open_table({"a": [1]}, engine="abacus")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.text(alphabet='a,"\n\r;\t1é\x00', max_size=60).map(str.encode)))
def test_any_bytes_are_counted_or_refused_in_our_words(content, tmp_path):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(content)
    try:
        engine = open_table(str(path))
        name = engine.columns()[0].name
        attribute = Attribute(name=name or "x", categories=("1",), missing="other")
        counts = engine.count(schema_of(attribute), [Marginal(attribute.name)])
    except DpbayesError as error:
        counted_or_refused = str(error).endswith((".", "?"))
    else:
        counted_or_refused = counts[0].array.min() >= 0
    assert counted_or_refused


def test_an_interrupt_cancels_the_query(tmp_path):
    script = textwrap.dedent("""
        import duckdb, os, signal, threading
        from dpbayes.schema.attribute import Attribute
        from dpbayes.schema.marginal import Marginal
        from dpbayes.schema.schema import Schema
        from dpbayes.schema.unit import Unit
        from dpbayes.tables.sources import open_table

        connection = duckdb.connect()
        connection.execute("CREATE VIEW endless AS SELECT i % 5 AS v, i AS id FROM range(1000000000000) t(i)")
        unit = Unit(adjacency="add-remove")
        schema = Schema(id="x", unit=unit, attributes=(Attribute(name="v", categories=("1",)),), person=PERSON)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            open_table((connection, "endless")).count(schema, [Marginal("v")])
        except KeyboardInterrupt:
            print("interrupted", connection.execute("SELECT 42").fetchone())
    """)
    for person in ("None", "'id'"):
        done = subprocess.run(
            [sys.executable, "-c", script.replace("PERSON", person)], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "interrupted (42,)\n", done.stderr


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_carriage_return_is_one_row_of_a_file_with_one_column(place: int, tmp_path: Path) -> None:
    values = ["a", "a", "b"]
    values[place] = "\r"  # written without quotes, as pandas does
    (tmp_path / "v.csv").write_bytes("\n".join(["v", *values, ""]).encode())
    column = Attribute(name="v", categories=("a", "b"), missing="other")
    schema = Schema(id="v", unit=Unit(adjacency="replace-one"), attributes=(column,))
    (counts,) = open_table(tmp_path / "v.csv").count(schema, [Marginal("v")])
    assert counts.array.sum() == 3
    assert counts.array[:2].sum() == 2
