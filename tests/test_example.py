"""The bundled survey fits its schema, is the same everywhere, and has what real ones have: gaps and minorities."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dpbayes

from dpbayes.base.errors import TableError
from dpbayes.example import PUBLIC, RECORDS, SCHEMA, second_wave_csv, survey_csv, visits_csv, write_example
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import open_table

DIGESTS = {
    survey_csv: "faece427700351f84ec728fe88fa223b46bef4191b25eb63f77619a6c3784b8c",
    second_wave_csv: "f96dae7576585c0f42f8b012d25e3b4dc71049285261e702aabca890a8c233bc",
    visits_csv: "1628a790733654a86f840a4cad1f42e8d44a18cf1c5e6d8fb9b801faacabe362",
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(survey_csv())))


@pytest.mark.parametrize("table", DIGESTS, ids=lambda table: table.__name__)
def test_the_tables_are_the_same_every_time(table: Callable[[], str]) -> None:
    assert hashlib.sha256(table().encode()).hexdigest() == DIGESTS[table]


def test_the_schema_counts_every_row_of_the_survey(tmp_path: Path) -> None:
    table, path = write_example(tmp_path / "new" / "folder")
    schema = Schema.from_toml(path.read_text(encoding="utf-8"))
    engine = open_table(str(table))
    assert schema.records in (None, RECORDS)
    for counts in engine.count(schema, [Marginal((name,)) for name in schema.names]):
        assert counts.array.sum() == RECORDS
        assert (counts.array[: len(schema[counts.names[0]].declared)] > 0).all()


def test_some_answers_are_missing_and_some_unforeseen(rows: list[dict[str, str]]) -> None:
    schema = Schema.from_toml(SCHEMA)
    for name in ("sex", "age", "education"):
        levels = [schema[name].levels[schema[name].level(row[name] or None)] for row in rows]
        assert 0 < levels.count("other") < 0.03 * RECORDS
    assert 0.05 < sum(row["income"] == "" for row in rows) / RECORDS < 0.09


def test_income_depends_on_education_and_one_region_is_small(rows: list[dict[str, str]]) -> None:
    def rich(education: str) -> float:
        return float(np.mean([row["income"] == "80k and over" for row in rows if row["education"] == education]))

    assert rich("postgraduate") > 5 * rich("secondary")
    assert 100 < sum(row["region"] == "Islands" for row in rows) < 500


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in write_example(tmp_path)]
    assert [path.read_bytes() for path in write_example(tmp_path)] == first


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text("mine")
    with pytest.raises(TableError, match="is another file"):
        write_example(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["survey.toml"]
    assert (tmp_path / "survey.toml").read_text() == "mine"


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot write"):
        write_example(tmp_path / "file")


def test_the_second_wave_asks_the_same_people_and_some_are_silent(rows: list[dict[str, str]]) -> None:
    later = list(csv.DictReader(io.StringIO(second_wave_csv())))
    assert len(later) == RECORDS
    assert {row["region"] for row in later} < {row["region"] for row in rows}
    silent = [not any(row[name] for name in ("sex", "age", "education", "income")) for row in later]
    assert 0.1 < np.mean(silent) < 0.16
    same = [a["income"] == b["income"] for a, b in zip(rows, later, strict=True) if a["income"] and b["income"]]
    assert 0.6 < np.mean(same) < 0.95


def test_the_public_margins_are_those_of_the_survey(tmp_path: Path) -> None:
    table, schema_file = write_example(tmp_path)
    margins = (tmp_path / "margins.toml").read_text(encoding="utf-8")
    schema = Schema.from_toml(schema_file.read_text(encoding="utf-8") + margins)
    (counts,) = open_table(str(table)).count(schema, [Marginal(("region",))])
    assert "totals = " + str(counts.array.tolist()) in margins


def test_visits_have_repeated_people_and_a_geography_of_three_levels(tmp_path: Path) -> None:
    write_example(tmp_path)
    visits = list(csv.DictReader(io.StringIO(visits_csv())))
    times = np.unique([row["person"] for row in visits], return_counts=True)[1]
    assert (times.min(), times.max()) == (1, 4)
    assert (times > 1).mean() > 0.3
    left_out = [word for name in ("visit", "admitted", "age") for word in ("--leave-out", name)]
    person = ["--unit", "add-remove:4", "--person", "person"]
    named = ["--codebook", tmp_path / "codebook.csv", *left_out, *person]
    assert dpbayes("schema", "init", tmp_path / "visits.csv", *named).code == 0
    text = (tmp_path / "visits.toml").read_text(encoding="utf-8")
    schema = Schema.from_toml(text + (tmp_path / "geography.toml").read_text(encoding="utf-8"))
    for pair in (("state", "county"), ("county", "tract")):
        (counts,) = open_table(str(tmp_path / "visits.csv")).count(schema, [Marginal(pair)])
        impossible = schema.zeros(pair)
        assert impossible is not None
        assert not counts.array[impossible].any()
        assert counts.array.sum() > 10_000


def test_every_file_that_is_not_a_table_is_public_and_written(tmp_path: Path) -> None:
    write_example(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"survey.csv", "wave-2.csv", "visits.csv", *PUBLIC}
