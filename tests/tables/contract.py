"""What every engine must do, whatever runs underneath: subclass ``EngineContract`` and say how to open a table."""

from __future__ import annotations

import datetime
import tempfile
from abc import ABC, abstractmethod
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables import reference

from dpbayes.base.errors import SchemaError, TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.tables.engine import Kind

REPLACE_ONE = Unit(adjacency="replace-one")
ODD_NAMES = ("select", 'a "quoted" name', "with space", "naïve ünï 名前", "comma,bar|", "semi;colon'--", "%s{}", "1")
TEXTS = ("", " ", "a", "A", "ä", "a\u0308", "名前", "'", '"', "a,b", "x\ny", "NULL", "nan", "1", "01", "1.0", "é" * 50)
NUMBERS = (
    "0",
    "1",
    "-1.5",
    "18",
    "1e1",
    "+7",
    ".5",
    "5.",
    "nan",
    "inf",
    "-inf",
    "abc",
    "1,5",
    "1_0",
    "0x1",
    "1e999",
    " 3 ",
    "-0",
)


def of_texts(columns: dict[str, list[str | None]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def schema_of(*attributes: Attribute, unit: Unit = REPLACE_ONE, **more: object) -> Schema:
    return Schema(id="contract", unit=unit, attributes=attributes, **more)


DAYS = (
    "2020-02-29", "2021-02-29", "2020-01-01", " 2020-03-31 ", "2020-12-31", "2021-01-01", "1899-12-31", "2020-1-1",
    "2020-06-30T23:59:59Z", "2020-06-30 23:59", "2020-06-30T24:00:00", "2020-07-01T00:00:00+02:00", "2020-13-01",
    "20200101", "0000-01-01", "9999-12-31", "nan", "NaT", "", "now", "2020-04-31", "2020-07-01 12:00:00.5",
)  # fmt: skip


rules = st.fixed_dictionaries(
    {"unknown": st.sampled_from(["other", "drop"]), "missing": st.sampled_from(["other", "category", "drop"])}
)


@st.composite
def text_attributes(draw, name):
    categories = draw(st.lists(st.sampled_from((*TEXTS, "other", "missing")), min_size=1, max_size=6, unique=True))
    return Attribute(name=name, categories=tuple(categories), **draw(rules))


@st.composite
def recoded_attributes(draw, name):
    texts = draw(st.lists(st.sampled_from(TEXTS), min_size=3, max_size=8, unique=True))
    cut = draw(st.integers(1, len(texts) - 1))
    more = draw(rules | st.fixed_dictionaries({"unknown": st.just("one"), "missing": st.sampled_from(["two", "drop"])}))
    return Attribute(name=name, categories=("one", "two", "3!"), codes={"one": texts[:cut], "two": texts[cut:]}, **more)


@st.composite
def date_attributes(draw, name):
    period = draw(st.sampled_from([None, "year", "quarter", "month"]))
    dates = ("2020-01-01", "2021-01-01") if period else ("1900-01-01", "2020-02-29", "2020-07-01", "2021-01-02")
    return Attribute(name=name, dates=dates, period=period, **draw(rules | st.just({"unknown": "refuse"})))


@st.composite
def number_attributes(draw, name):
    edges = draw(
        st.lists(st.sampled_from([float("-inf"), -1.5, -0.1, 0, 0.5, 1, 10, 18, float("inf")]), min_size=2, unique=True)
    )
    return Attribute(name=name, edges=tuple(sorted(edges)), **draw(rules))


@st.composite
def text_tables(draw):
    """A schema over three odd columns of text, rows for it, and marginals to ask for."""
    names = draw(st.permutations(ODD_NAMES))[:3]
    third, values_of_third = draw(st.sampled_from([(number_attributes, NUMBERS), (date_attributes, DAYS)]))
    attributes = [draw(text_attributes(names[0])), draw(recoded_attributes(names[1])), draw(third(names[2]))]
    values = [st.sampled_from((*TEXTS, "other", "3!", None))] * 2 + [st.sampled_from((*values_of_third, None))]
    rows = draw(st.lists(st.tuples(*values), max_size=30))
    columns = {name: [row[position] for row in rows] for position, name in enumerate(names)}
    marginals = draw(
        st.lists(
            st.permutations(names).flatmap(
                lambda order: st.tuples(st.integers(1, 3), st.integers(0, 2)).map(
                    lambda cut: Marginal(tuple(order[: cut[0]]), tuple(order[cut[0] : cut[0] + cut[1]]))
                )
            ),
            min_size=1,
            max_size=4,
        )
    )
    return schema_of(*attributes), columns, marginals


class EngineContract(ABC):
    """The laws. ``typed`` says whether columns keep their types; CSV files hold nothing but text."""

    typed: ClassVar[bool] = True
    empty_text_is_missing: ClassVar[bool] = False

    @abstractmethod
    def open(self, table: pa.Table, folder: Path):
        """An engine over the rows of this table; files go into the folder."""

    def rows(self, table: pa.Table) -> list[dict[str, object]]:
        rows = table.to_pylist()
        if self.empty_text_is_missing:
            return [{name: value if value != "" else None for name, value in row.items()} for row in rows]
        return rows

    def check(self, schema: Schema, marginals: list[Marginal], table: pa.Table) -> None:
        with tempfile.TemporaryDirectory() as folder:
            counted = self.open(table, Path(folder)).count(schema, marginals)
        assert [counts.marginal for counts in counted] == list(marginals)
        for counts, marginal in zip(counted, marginals, strict=True):
            assert counts.array.dtype == np.int64
            expected = reference.count(schema, marginal, self.rows(table))
            assert np.array_equal(counts.array, expected)
            assert counts.shape == expected.shape == marginal.shape(schema)

    @settings(
        max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
    )
    @given(drawn=text_tables())
    def test_counts_equal_counting_by_hand(self, drawn):
        schema, columns, marginals = drawn
        self.check(schema, marginals, of_texts(columns))

    def test_an_empty_table_counts_to_zero(self, tmp_path):
        sex = Attribute(name="sex", categories=("F", "M"), missing="other")
        table = of_texts({"sex": [], "other column": []})
        (counts,) = self.open(table, tmp_path).count(schema_of(sex), [Marginal("sex")])
        assert counts.array.tolist() == [0, 0, 0]

    def test_a_table_of_one_column_counts_rows_with_nothing_in_them(self, tmp_path):
        sex = Attribute(name="sex", categories=("F", "M"), missing="category")
        (counts,) = self.open(of_texts({"sex": ["F", None, "M", None, None]}), tmp_path).count(
            schema_of(sex), [Marginal("sex")]
        )
        assert counts.array.tolist() == [1, 1, 3, 0]

    def test_every_table_sums_to_the_number_of_rows(self, tmp_path):
        table = of_texts({"a": ["x", None, "?", ""] * 25, "b": ["1", "2", "?", None] * 25})
        for unknown in ("other", "drop"):
            for missing in ("other", "category", "drop"):
                a = Attribute(name="a", categories=("x",), unknown=unknown, missing=missing)
                b = Attribute(name="b", edges=(0, 2, 3), unknown=unknown, missing=missing)
                folder = tmp_path / f"{unknown}-{missing}"
                folder.mkdir()
                marginals = [Marginal("a"), Marginal("b"), Marginal("a", "b")]
                counted = self.open(table, folder).count(schema_of(a, b), marginals)
                assert [int(counts.array.sum()) for counts in counted] == [100, 100, 100]

    def test_closed_attributes_keep_every_row_in_a_declared_cell(self, tmp_path):
        table = of_texts({"a": ["x", None, "?", "", "y"] * 20, "b": ["1", "2", "?", None, "9"] * 20})
        a, b = (
            Attribute(name="a", categories=("x", "y"), closed="y"),
            Attribute(name="b", edges=(0, 2, 3), closed="[0, 2)"),
        )
        counted = self.open(table, tmp_path).count(
            schema_of(a, b), [Marginal("a"), Marginal("b"), Marginal(("a", "b"))]
        )
        assert [counts.array.tolist() for counts in counted] == [[20, 80], [80, 20], [[20, 0], [60, 20]]]

    def test_columns_of_every_type_follow_one_rule(self, tmp_path):
        if not self.typed:
            table = of_texts({"x": ["1", "true", "2026-01-31"]})
            assert self.open(table, tmp_path).columns()[0].kind is Kind.TEXT
            return
        utc = datetime.timezone(datetime.timedelta(hours=2))
        columns = {
            "integer": pa.array([1, -2, 2**62, None], pa.int64()),
            "small": pa.array([1, 2, 255, None], pa.uint8()),
            "float": pa.array([1.0, 2.5, float("nan"), float("inf")], pa.float64()),
            "single": pa.array([0.5, 0.1, None, 1e30], pa.float32()),
            "decimal": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("-7.25")], pa.decimal128(9, 2)),
            "boolean": pa.array([True, False, None, True]),
            "date": pa.array([datetime.date(2026, 1, 31), datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
            "timestamp": pa.array(
                [datetime.datetime(2026, 1, 31, 13, 45), datetime.datetime(2026, 1, 1, 0, 0, 0, 120000), None, None],
                pa.timestamp("us"),
            ),
            "zoned": pa.array(
                [datetime.datetime(2026, 1, 31, 1, 0, tzinfo=utc), None, None, None], pa.timestamp("us", tz="UTC")
            ),
        }
        texts = (
            "1",
            "-2",
            "01",
            "1.0",
            "2.5",
            "255",
            "0.5",
            "1.5",
            "2",
            "true",
            "false",
            "True",
            "2026-01-31",
            "0001-01-01",
            "9999-12-31",
            str(2**62),
            "2026-01-31 13:45:00",
            "2026-01-01 00:00:00.12",
            "2026-01-30 23:00:00",
            "inf",
        )
        declared = [Attribute(name=name, categories=texts, missing="category") for name in columns]
        table = pa.table(columns)
        self.check(schema_of(*declared), [Marginal(name) for name in columns], table)
        cut = [
            Attribute(name=name, edges=(-10, 0, 1, 2, 256, 1e31), missing="category")
            for name in ("integer", "small", "float", "single", "decimal")
        ]
        self.check(schema_of(*cut), [Marginal(attribute.name) for attribute in cut], table)

    def test_dates_of_every_type_are_cut_alike(self, tmp_path):
        zone = datetime.timezone(datetime.timedelta(hours=2))
        days = [datetime.date(2020, 2, 29), datetime.date(2021, 1, 1), datetime.date(1, 1, 1), None]
        clocks = [datetime.datetime(2020, 12, 31, 23, 59, 59, 999999), datetime.datetime(2020, 3, 31), None, None]
        zoned = [datetime.datetime(2020, 4, 1, 1, 0, tzinfo=zone), datetime.datetime(9999, 12, 31, tzinfo=zone), None]
        columns = {
            "text": pa.array(["2020-02-29", " 2020-12-31T10:00", "31.12.2020", None]),
            "date": pa.array(days, pa.date32()),
            "clock": pa.array(clocks, pa.timestamp("us")),
            "zoned": pa.array([*zoned, None], pa.timestamp("us", tz="UTC")),
        }
        if not self.typed:
            columns = {"text": columns["text"]}
        for period in (None, "year", "quarter", "month"):
            cut = [
                Attribute(name=name, dates=("2020-01-01", "2021-01-01"), period=period, missing="category")
                for name in columns
            ]
            self.check(schema_of(*cut), [Marginal(name) for name in columns], pa.table(columns))

    def test_every_day_of_the_calendar_is_a_day(self, tmp_path):
        first = datetime.date(1899, 12, 1)
        days = [(first + datetime.timedelta(days=step)).isoformat() for step in range(0, 80_000, 37)]
        near = [f"{year}-{month:02d}-{day:02d}" for year in (1900, 2000, 2023, 2024) for month in range(1, 13)
                for day in range(28, 33)]  # fmt: skip
        attribute = Attribute(name="day", dates=("1900-01-01", "2100-01-01"), period="year", missing="other")
        self.check(schema_of(attribute), [Marginal("day")], of_texts({"day": [*days, *near]}))

    def test_many_codes_of_one_level_are_counted_together(self, tmp_path):
        codes = {f"group {group}": [str(code) for code in range(group, 300, 3)] for group in range(3)}
        attribute = Attribute(name="a", categories=tuple(codes), codes=codes, missing="group 1")
        table = of_texts({"a": [str(value) for value in range(310)] + [None] * 5})
        (counts,) = self.open(table, tmp_path).count(schema_of(attribute), [Marginal("a")])
        assert counts.array.tolist() == [100, 105, 100, 10]
        if self.typed:
            typed = pa.table({"a": pa.array([*range(310), None])})
            folder = tmp_path / "typed"
            folder.mkdir()
            (counts,) = self.open(typed, folder).count(schema_of(attribute), [Marginal("a")])
            assert counts.array.tolist() == [100, 101, 100, 10]

    @pytest.mark.parametrize("rest", [[], [1.0, 2.5], [1.0, None, float("inf"), -float("inf")]])
    def test_nan_is_missing_whatever_else_is_in_the_column(self, rest, tmp_path):
        """Files keep the least and the largest value of a column, without NaN, and planners believe them."""
        numbers = [float("nan"), *rest, float("nan")]
        if self.typed:
            kinds = {"double": pa.float64(), "single": pa.float32()}
            table = pa.table({name: pa.array(numbers, kind, from_pandas=False) for name, kind in kinds.items()})
            attributes = [
                Attribute(name=name, missing="category", **values)
                for name in kinds
                for values in ({"categories": ("1", "2.5", "nan")}, {"edges": (-float("inf"), 0, 2, float("inf"))})
            ]
        else:
            texts = [None if number is None else f"{number}" for number in numbers]
            table = of_texts({"double": [*texts, "NaN", " nan "]})
            attributes = [Attribute(name="double", edges=(-float("inf"), 0, 2, float("inf")), missing="category")]
        engine = self.open(table, tmp_path)
        for attribute in attributes:
            (counts,) = engine.count(schema_of(attribute), [Marginal(attribute.name)])
            assert (
                counts.array.tolist()
                == reference.count(schema_of(attribute), counts.marginal, self.rows(table)).tolist()
            )
            missing = 2 + rest.count(None) + 2 * (not self.typed)
            assert counts.array[attribute.levels.index("missing")] == missing
        if self.typed:
            assert "nan" not in {text.lower() for text in engine.values("double", REPLACE_ONE)}

    def test_many_categories_and_edges_follow_the_same_rule(self, tmp_path):
        table = of_texts(
            {
                "a": [str(value) for value in range(600)] + [None, "?"],
                "b": [str(value / 7) for value in range(600)] + ["", "nan"],
            }
        )
        for rules_ in ({}, {"missing": "category"}, {"unknown": "drop"}, {"missing": "drop"}):
            a = Attribute(name="a", categories=tuple(str(value) for value in range(0, 300)), **rules_)
            b = Attribute(name="b", edges=tuple(float(value) for value in range(0, 300)), **rules_)
            self.check(schema_of(a, b), [Marginal("a"), Marginal("b")], table)

    def test_wide_tables_are_exact(self, tmp_path):
        digits = tuple("0123456789")
        names = [f"d{position}" for position in range(6)]
        numbers = [number * 7919 % 10**6 for number in range(3000)]
        table = of_texts(
            {name: [f"{number:06d}"[position] for number in numbers] for position, name in enumerate(names)}
        )
        schema = schema_of(*(Attribute(name=name, categories=digits, missing="other") for name in names))
        counts, narrow = self.open(table, tmp_path).count(schema, [Marginal(tuple(names)), Marginal(("d5", "d0"))])
        assert counts.array.sum() == counts.array.astype(bool).sum() == 3000
        assert all(counts.array[tuple(int(digit) for digit in f"{number:06d}")] == 1 for number in numbers)
        assert np.array_equal(narrow.array, reference.count(schema, narrow.marginal, table.to_pylist()))

    def test_a_table_of_too_many_cells_is_refused(self, tmp_path):
        names = [f"a{position}" for position in range(70)]
        schema = schema_of(*(Attribute(name=name, categories=("0", "1"), missing="other") for name in names))
        table = of_texts({name: ["0"] for name in names})
        with pytest.raises(SchemaError, match="cells; one table holds at most"):
            self.open(table, tmp_path).count(schema, [Marginal(tuple(names))])

    def test_a_missing_column_is_named_with_the_nearest_one(self, tmp_path):
        engine = self.open(of_texts({"Income": ["1"], "sex": ["F"]}), tmp_path)
        with pytest.raises(TableError, match=r"no column .income.\. Did you mean .Income."):
            engine.count(schema_of(Attribute(name="income", categories=("1",), missing="other")), [Marginal("income")])

    def test_columns_that_are_not_asked_for_are_not_checked(self, tmp_path):
        engine = self.open(of_texts({"sex": ["F", "M"]}), tmp_path)
        schema = schema_of(
            Attribute(name="sex", categories=("F",), missing="other"),
            Attribute(name="age", categories=("1",), missing="other"),
        )
        assert engine.count(schema, [Marginal("sex")])[0].array.tolist() == [1, 1]

    def test_a_type_that_does_not_fit_is_refused(self, tmp_path):
        if self.typed:
            engine = self.open(pa.table({"list": pa.array([[1]]), "day": pa.array([True])}), tmp_path)
            with pytest.raises(SchemaError, match="does not go with categories"):
                engine.count(schema_of(Attribute(name="list", categories=("1",), missing="other")), [Marginal("list")])
            day = Attribute(name="day", dates=("2020-01-01", "2021-01-01"), missing="other")
            with pytest.raises(SchemaError, match="does not go with dates"):
                engine.count(schema_of(day), [Marginal("day")])
            with pytest.raises(SchemaError, match="does not go with edges"):
                engine.count(schema_of(Attribute(name="day", edges=(0, 1), missing="other")), [Marginal("day")])

    def test_names_that_differ_in_case_only_are_refused(self, tmp_path):
        with pytest.raises(TableError, match="cannot be told apart"):
            self.open(of_texts({"a": ["1"], "A": ["2"]}), tmp_path)

    def test_duplicate_names_are_refused(self, tmp_path):
        table = pa.table([pa.array(["1"]), pa.array(["2"])], names=["a", "a"])
        with pytest.raises(TableError, match="columns 1 and 2 cannot be told apart"):
            self.open(table, tmp_path)

    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(
        people=st.lists(st.tuples(st.sampled_from(["p", "q", "r", None]), st.sampled_from("abc")), max_size=25),
        max_rows=st.integers(1, 3),
    )
    def test_a_person_moves_a_table_by_at_most_the_declared_rows(self, people, max_rows):
        unit = Unit(adjacency="add-remove", max_rows=max_rows)
        schema = schema_of(Attribute(name="v", categories=("a", "b", "c"), missing="other"), unit=unit, person="id")

        def counted(rows):
            table = of_texts({"id": [row[0] for row in rows], "v": [row[1] for row in rows]})
            with tempfile.TemporaryDirectory() as folder:
                return self.open(table, Path(folder)).count(schema, [Marginal("v")])[0].array

        everyone = counted(people)
        rows_of = {person: sum(row[0] == person for row in people) for person in "pqr"}
        assert everyone.sum() == sum(min(rows, max_rows) for rows in rows_of.values())
        moved = everyone - counted([row for row in people if row[0] != "p"])
        assert moved.min() >= 0
        assert moved.sum() == min(rows_of["p"], max_rows)

    def test_one_row_of_each_person_makes_the_table_as_large_as_the_population(self, tmp_path):
        schema = schema_of(Attribute(name="v", categories=("a", "b"), missing="other"), person="id")
        table = of_texts({"id": ["1", "1", "2", "3", None], "v": ["a", "b", "a", None, "b"]})
        (counts,) = self.open(table, tmp_path).count(schema, [Marginal("v")])
        assert counts.array.sum() == 3

    def test_the_rows_that_are_kept_do_not_depend_on_their_order(self, tmp_path):
        unit = Unit(adjacency="add-remove", max_rows=2)
        schema = schema_of(Attribute(name="v", categories=tuple("abcdef"), missing="other"), unit=unit, person="id")
        rows = [(str(number % 7), "abcdef"[number * number % 6]) for number in range(60)]
        results = []
        for step in (1, -1):
            folder = tmp_path / str(step)
            folder.mkdir()
            table = of_texts({"id": [row[0] for row in rows[::step]], "v": [row[1] for row in rows[::step]]})
            results.append(self.open(table, folder).count(schema, [Marginal("v")])[0].array.tolist())
        assert results[0] == results[1]

    def test_values_are_texts_with_their_rows(self, tmp_path):
        table = of_texts({"v": ["a", "b", "a", None, "名前"], "id": ["1", "1", "2", "3", "4"]})
        engine = self.open(table, tmp_path)
        assert engine.values("v", REPLACE_ONE) == {"a": 2, "b": 1, "名前": 1}
        assert sum(engine.values("v", REPLACE_ONE, person="id").values()) == 3

    def test_a_fingerprint_depends_on_content_and_not_on_order(self, tmp_path):
        prints = []
        for number, values in enumerate((["a", "b", "b"], ["b", "a", "b"], ["a", "a", "b"], ["a", "b"])):
            folder = tmp_path / str(number)
            folder.mkdir()
            prints.append(self.open(of_texts({"v": values, "w": ["1"] * len(values)}), folder).fingerprint(["v"]))
        assert prints[0] == prints[1]
        assert len(set(prints)) == 3
