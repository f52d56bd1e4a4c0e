"""Categories and edges that are released, and taken over by the schema."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbayes import ApproxDP, Cost, Release, Schema, Unit
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.threshold import Threshold

from ..commands import Done, dpbayes

ROWS = 4000
SCHEMA = """
id = "people"
adjacency = "add-remove"
[[attribute]]
name = "job"
categories = ["nurse"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    columns = {
        "job": ["nurse"] * (ROWS - 1) + ["king"],
        "age": [float(age) for age in range(ROWS)],
        "born": [dt.date(1987, 6, 5)] * ROWS,
    }
    parquet.write_table(pa.table(columns), "people.parquet")
    Path("people.toml").write_text(SCHEMA)
    Ledger("people.ledger").open("people", ApproxDP(epsilon=20, delta=1e-5), Unit(adjacency="add-remove"))
    return tmp_path


def found_in(kind: str, *asked: object) -> Done:
    return dpbayes("release", "people.parquet", "--as", kind, *asked, "--json")


def test_categories_are_charged_by_scale_and_threshold(here: Path) -> None:
    found = found_in("categories", "job", "--epsilon", 8, "--delta", 1e-6, "--out", "bought").result["release"]
    assert [answer["values"] for answer in found["answers"]] == [["nurse"]]
    ((mechanism, times),) = Ledger("people.ledger").account("people").cost.entries
    assert isinstance(mechanism, Threshold)
    assert times == 1
    assert mechanism.threshold == found["paid"][0]["mechanism"]["threshold"]
    assert ApproxDP(epsilon=8, delta=1e-6).gap(Cost.of(mechanism)) <= 0
    assert dpbayes("verify", "bought", "--ledger", "people.ledger").code == 0


def test_a_lone_text_stays_hidden_where_the_first_version_published_it(here: Path) -> None:
    """At ε = 8 and δ = 10⁻³ it kept a lone text with probability 0.9997."""
    asked = ["job", "--epsilon", 8, "--delta", 1e-3]
    for _ in range(5):
        made = found_in("categories", *asked, "--ledger", "none").release
        assert [answer.values for answer in made.answers] == [("nurse",)]


def test_nothing_found_is_an_answer_too(here: Path) -> None:
    parquet.write_table(pa.table({"job": ["a", "b"]}), "people.parquet")
    asked = ["job", "--epsilon", 1, "--delta", 1e-7]
    made = found_in("categories", *asked, "--out", "bought").release
    assert [answer.values for answer in made.answers] == [()]
    assert dpbayes("verify", "bought", "--ledger", "people.ledger").code == 0


def test_edges_are_charged_as_selections(here: Path) -> None:
    asked = ["age", "--set", "bins=4", "--set", f"bounds=0:{ROWS}", "--epsilon", 3, "--delta", 0]
    found = found_in("edges", *asked).result["release"]
    (answer,) = found["answers"]
    assert (len(answer["values"]), answer["values"][0], answer["values"][-1]) == (5, "-inf", "inf")
    assert found["paid"][0]["times"] == 3
    assert Ledger("people.ledger").account("people").cost.renyi(float("inf")) == pytest.approx(3.0)


@pytest.mark.parametrize("column", ["job", "born"])
def test_edges_of_texts_and_dates_are_refused_before_the_charge(here: Path, column: str) -> None:
    asked = [column, "--set", "bins=4", "--set", "bounds=0:9", "--epsilon", 1]
    done = found_in("edges", *asked)
    assert done.code == 1
    assert column in done.err
    assert not Ledger("people.ledger").account("people").charges


def test_nothing_needs_to_be_declared_before_something_is_bought(here: Path) -> None:
    Path("people.toml").write_text('id = "new"\nadjacency = "add-remove"\n')
    limit = ("--epsilon", 20, "--delta", 1e-5)
    assert dpbayes("ledger", "init", "people.toml", "--ledger", "new.ledger", *limit).code == 0
    asked = ("job", "--epsilon", 8, "--delta", 1e-6, "--out", "bought", "--ledger", "new.ledger")
    done = dpbayes("release", "people.parquet", "--as", "categories", *asked)
    assert done.code == 0, done.err
    assert 'job = { categories = ["nurse"]' in done.out
    assert "dpbayes schema adopt bought SCHEMA" in done.out
    adopted = dpbayes("schema", "adopt", "bought", "people.toml")
    assert "dpbayes ledger accept people.toml" in " ".join(adopted.out.split())
    assert dpbayes("schema", "check", "people.parquet").code == 0
    assert dpbayes("verify", "bought", "--ledger", "new.ledger").code == 0
    assert Schema.from_record(Release.load("bought").schema.record()).attributes == ()
    assert Schema.load("people.toml")["job"].categories == ("nurse",)


def test_tables_of_a_schema_that_declares_nothing_are_refused(here: Path) -> None:
    Path("people.toml").write_text('id = "people"\nadjacency = "add-remove"\n')
    done = dpbayes("release", "people.parquet", "job", "--epsilon", 1, "--ledger", "none")
    assert "no attribute 'job'" in done.sentence
    assert "--as categories" in done.sentence


def test_edges_need_their_public_bounds(here: Path) -> None:
    assert "--set bounds=0:120" in found_in("edges", "age", "--epsilon", 1).err
    assert "one column" in found_in("edges", "age,job", "--set", "bounds=0:9", "--epsilon", 1).err
