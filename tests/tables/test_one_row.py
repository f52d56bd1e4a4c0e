"""One row, one effect: whatever one person's row holds, every other row is read as before, and nothing is refused."""

from __future__ import annotations

import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.tables import one_row
from tests.tables.one_row import CLOSED, CODES, CUT, DAYS, LETTERS, OBJECTS, ONE, ROW, TRUTHS, levels, numbers

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.sklearn import AssumedPublic, PrivateCategoricalNB
from dpbayes.tables.sources import open_table

ORDINARY: dict[str, tuple[Attribute, list[object]]] = {
    "categories": (LETTERS, ["F", "M", "1"]),
    "categories of numbers": (LETTERS, [1.0, 2.5, 1.0]),
    "categories of bytes": (LETTERS, [b"F", b"M", b"F"]),
    "closed": (CLOSED, ["F", "M", "1"]),
    "large codes": (CODES, [one_row.BIG, one_row.BIG + 1, 7]),
    "edges": (CUT, [1, 3.5, 10]),
    "dates": (DAYS, ["2020-05-05", "2021-05-05", "2020-12-31"]),
    "booleans": (TRUTHS, [True, False, True]),
}
"""What columns of objects hold ordinarily."""


def objects(values: list[object]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def series(values: list[object]) -> pd.Series:
    """As pandas infers the type; it makes no column of text from text that is no Unicode, but keeps it as objects."""
    try:
        return pd.Series(objects(values))
    except UnicodeEncodeError:
        return pd.Series(objects(values), dtype=object)


UNTYPED = {
    "a dictionary of lists": lambda values: {ROW: numbers(len(values)), "v": list(values)},
    "a dictionary of arrays": lambda values: {ROW: np.array(numbers(len(values))), "v": objects(values)},
    "pandas, objects": lambda values: pd.DataFrame({ROW: numbers(len(values)), "v": series(values)}),
}


ESTIMATED = ("lists", "array", "frame")
CASES = [(source, kind) for kind in ORDINARY for source in (*UNTYPED, *(ESTIMATED if kind != "dates" else ()))]


def counted(source: str, attribute: Attribute, values: list[object]) -> list[str]:
    return levels(open_table(UNTYPED[source](values)), [attribute], len(values))["v"]


def fitted(source: str, attribute: Attribute, values: list[object]) -> list[str]:
    """The levels that an estimator sees: every row has a class of its own, or a value where classes are hostile."""
    rows = numbers(len(values))
    y, hidden = (rows, None) if source != "classes" else (list(values), rows)
    column = {
        "lists": lambda: [[value] for value in values],
        "array": lambda: objects(values)[:, None],
        "frame": lambda: pd.DataFrame({"x0": series(values)}),
        "classes": lambda: [[row] for row in rows],
    }[source]()
    declared = {"x0": attribute} if hidden is None else {"x0": rows}
    classes = rows if hidden is None else list(attribute.categories)
    nb = PrivateCategoricalNB(categories=declared, classes=classes, unit=ONE, private=False, tempered=False)
    (table,) = [each for each in nb.fit(column, y).release_.tables if "x0" in each.marginal.names]
    cells = np.rint(np.asarray(table.values)).reshape(table.marginal.shape(nb.release_.schema))
    given, of = table.marginal.axes(nb.release_.schema)
    cells = cells if given.name == ("class" if hidden is None else "x0") else cells.T
    axis = of if cells.shape[1] == len(of.levels) and of.name == ("x0" if hidden is None else "class") else given
    assert cells[: len(rows)].sum(axis=1).tolist() == [1] * len(rows)
    return [axis.levels[place] for place in cells[: len(rows)].argmax(axis=1)]


def read(source: str, attribute: Attribute, values: list[object]) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", AssumedPublic)
        found = counted(source, attribute, values) if source in UNTYPED else fitted(source, attribute, values)
    assert not told
    return found


@pytest.mark.parametrize(("source", "kind"), CASES)
def test_hostile_objects_change_no_other_row_and_are_refused_nowhere(source, kind):
    attribute, ordinary = ORDINARY[kind]
    alone = read(source, attribute, ordinary)
    assert "other" not in alone
    together = read(source, attribute, [*ordinary, *OBJECTS])
    assert together[: len(ordinary)] == alone
    assert together[len(ordinary) :] == [attribute.levels[attribute.level(value)] for value in OBJECTS]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "kind"), CASES)
def test_one_hostile_object_changes_no_other_row(source, kind):
    attribute, ordinary = ORDINARY[kind]
    alone = read(source, attribute, ordinary)
    for value in OBJECTS:
        assert read(source, attribute, [value, *ordinary])[1:] == alone


@pytest.mark.parametrize("classes", [["a", "b"], [0, 1], [False, True], [0.5, 2.0], [2**53, 2**53 + 1]], ids=str)
def test_labels_that_are_not_declared_are_dropped_whatever_they_are(classes):
    attribute = Attribute(name="class", categories=tuple(map(one_row.text_of, classes)), unknown="drop", missing="drop")
    hostile = [value for value in OBJECTS if attribute.level(value) == 2]
    alone, together = read("classes", attribute, classes), read("classes", attribute, [*classes, *hostile])
    assert alone == list(attribute.categories)
    assert together == [*alone, *["(dropped)"] * len(hostile)]


@pytest.mark.parametrize("source", UNTYPED)
def test_a_person_that_cannot_be_read_keeps_no_row_of_others(source):
    unit = Unit(adjacency="add-remove", max_rows=1, person="id")
    sex = Attribute(name="v", categories=("F", "M"), missing="other")
    ordinary = [b"p", b"p", b"q", "r", 7, 7]

    def answer(people):
        made = UNTYPED[source](["F", "M"] * (len(people) // 2))
        made["id"] = pd.Series(objects(people)) if source.startswith("pandas") else objects(people)
        return open_table(made).count(Schema(id="p", unit=unit, attributes=(sex,)), [Marginal("v")])[0].array

    before = answer(ordinary)
    assert before.sum() == 4
    for hostile in OBJECTS:
        moved = answer([*ordinary, hostile, None]) - before
        known = one_row.text_or_none(hostile)
        assert moved.tolist() == [int(known is not None and known not in {"p", "q", "r", "7"}), 0, 0]


def parquet(table, folder):
    pa.parquet.write_table(table, folder / "t.parquet")
    return str(folder / "t.parquet")


def database(table, folder):
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return f"{folder}/t.duckdb?table=t"


NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.float32(): pd.Float32Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


def nullable(table):
    """What pandas' own types can hold in them, and the rest in Arrow's."""
    return table.to_pandas(types_mapper=lambda kind: NULLABLE.get(kind, pd.ArrowDtype(kind)))


MEMORY = {
    "Arrow": lambda table, _: table,
    "polars": lambda table, _: pl.from_arrow(table),
    "pandas, Arrow types": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, nullable types": lambda table, _: nullable(table),
}
TYPED = {**MEMORY, "Parquet": parquet, "DuckDB": database}


@pytest.mark.parametrize("source", TYPED)
def test_hostile_values_of_a_type_are_read_alike_everywhere(source, tmp_path):
    columns = {**one_row.TYPED, **(one_row.MORE_TYPED if source in MEMORY and source != "polars" else {})}
    table, attributes, expected = one_row.typed_table(columns)
    assert levels(open_table(TYPED[source](table, tmp_path)), attributes, len(table)) == expected


@pytest.mark.parametrize("source", MEMORY)
@pytest.mark.parametrize("name", ["text", "codes", "whole", "double", "truth"])
def test_hostile_values_of_a_typed_frame_leave_an_estimator_the_other_rows(source, name):
    table, (attribute,), expected = one_row.typed_table({name: one_row.TYPED[name]})
    rows, frame = table[ROW].to_pylist(), MEMORY[source](table.select([name]), None)
    nb = PrivateCategoricalNB(categories={name: attribute}, classes=rows, unit=ONE, private=False, tempered=False)
    found = nb.fit(frame, rows).release_
    (made,) = [each for each in found.tables if name in each.marginal.names]
    cells = np.rint(np.asarray(made.values)).reshape(made.marginal.shape(found.schema))
    cells = cells if made.marginal.axes(found.schema)[0].name == "class" else cells.T
    assert [attribute.levels[place] for place in cells[: len(rows)].argmax(axis=1)] == expected[name]


def test_a_csv_file_of_hostile_texts_is_read_as_it_was_written(tmp_path):
    texts = {name: each for name, each in one_row.TYPED.items() if each.type == pa.string()}
    table, attributes, expected = one_row.typed_table(texts)
    table = table.append_column("last", pa.array(["x"] * len(table)))  # the end of a line is no part of a value
    empty = [attribute.levels[attribute.level(None)] for attribute in attributes]
    pa.csv.write_csv(table, tmp_path / "t.csv", pa.csv.WriteOptions(quoting_style="needed"))
    table.to_pandas().to_csv(tmp_path / "pandas.csv", index=False)
    for name in ("t.csv", "pandas.csv"):
        found = levels(open_table(str(tmp_path / name)), attributes, len(table))
        for attribute, missing in zip(attributes, empty, strict=True):
            values = table[attribute.name].to_pylist()
            pairs = zip(values, expected[attribute.name], strict=True)
            assert found[attribute.name] == [missing if value == "" else level for value, level in pairs]


def test_an_empty_table_is_fitted_where_its_size_is_private():
    options = {"categories": [["a", "b"]], "classes": [0, 1], "tempered": False}
    unit = Unit(adjacency="add-remove")
    for X, y in ((np.empty((0, 1), dtype=object), []), ([], []), (pd.DataFrame({"x0": []}, dtype=object), [])):
        declared = {**options, "categories": {"x0": ["a", "b"]}} if isinstance(X, pd.DataFrame) else options
        nb = PrivateCategoricalNB(unit=unit, random_state=0, **declared).fit(X, y)
        assert nb.predict([["a"]] if not isinstance(X, pd.DataFrame) else pd.DataFrame({"x0": ["a"]})).shape == (1,)
    (counts,) = open_table({"v": []}).count(Schema(id="e", unit=unit, attributes=(LETTERS,)), [Marginal("v")])
    assert counts.array.sum() == 0
