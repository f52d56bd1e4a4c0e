"""The bundled survey fits its schema, is the same everywhere, and has what real ones have: gaps and minorities."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from dpbayes.base.errors import TableError
from dpbayes.example import RECORDS, SCHEMA, survey_csv, write_example
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import open_table

DIGEST = "faece427700351f84ec728fe88fa223b46bef4191b25eb63f77619a6c3784b8c"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(survey_csv())))


def test_the_survey_is_the_same_every_time() -> None:
    assert hashlib.sha256(survey_csv().encode()).hexdigest() == DIGEST


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
