"""A schema in minutes: flags, codebooks, presets, questions; bought lists; and the owner's own look at values."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import dpbayes

from dpbayes import ApproxDP, Ledger, Release, Schema
from dpbayes.jobs.edges import adopt

PRIVATE = "CANARY"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{number},F,{20 + number % 50},2020-0{1 + number % 9}-03,nurse,yes\n" for number in range(300))
    Path("people.csv").write_text(f"id,sex,age,admitted,job,smokes\n{rows}301,{PRIVATE},7,{PRIVATE},{PRIVATE},?\n")
    Path("codes.csv").write_text("variable,code,label\nSEX,F,women\nSEX,M,men\n")
    return tmp_path


DECLARED = (
    "--codebook", "codes.csv", "--preset", "age=ages-10", "--preset", "smokes=yes-no", "--categories", "job=nurse,cook",
    "--dates", "admitted=quarter:2020-01-01:2021-01-01", "--leave-out", "id", "--records", 301,
)  # fmt: skip


def test_a_whole_schema_in_one_command(here: Path) -> None:
    done = dpbayes("schema", "init", "people.csv", *DECLARED)
    assert (done.code, done.err) == (0, "")
    assert "Every column of people.csv is declared." in done.out
    schema = Schema.load("people.toml")
    assert schema.names == ("sex", "age", "admitted", "job", "smokes")
    assert (schema.id, schema.records) == ("people", 301)
    assert schema["sex"].label("F") == "women"
    assert schema["admitted"].levels == ("2020-Q1", "2020-Q2", "2020-Q3", "2020-Q4", "missing", "other")
    assert schema["sex"].source == "codebook codes.csv"
    assert PRIVATE not in Path("people.toml").read_text()
    assert "It fits people.csv" in dpbayes("schema", "check", "people.csv").out
    assert "codebook codes.csv" in " ".join(dpbayes("schema", "check", "people.toml").out.split())


def test_what_is_not_declared_is_left_to_fill_in_by_type(here: Path) -> None:
    table = pa.table({"day": pa.array([None], pa.date32()), "flag": [True], "size": [1.5], "text": ["x"]})
    parquet.write_table(table, "typed.parquet")
    text = dpbayes("schema", "init", "typed.parquet", "--out", "-").out
    assert "day = []  # dates" in text
    assert 'flag = ["false", "true"]' in text
    assert "size = []  # numbers: edges" in text
    done = dpbayes("schema", "init", "people.csv", "--preset", "sex=sex", "--out", "part.toml")
    assert "Fill in the empty lists (id, age, admitted, job, smokes)" in " ".join(done.out.split())


def test_a_public_file_gives_categories_and_the_table_itself_is_refused(here: Path) -> None:
    Path("public.csv").write_text("sex,job,elsewhere\nM,cook,x\nF,judge,y\n")
    text = dpbayes("schema", "init", "people.csv", "--from-public", "public.csv", "--out", "-").out
    assert 'categories = ["cook", "judge"]' in text
    assert 'source = "public file public.csv"' in text
    assert "elsewhere" not in text
    said = dpbayes("schema", "init", "people.csv", "--from-public", "./people.csv").sentence
    assert "names the table itself" in said
    assert PRIVATE not in said


def test_questions_at_the_terminal(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["l", "p", "sexes", "p", "sex", "e", "0:100:50", "s", "c", "nurse;cook", "p", "yes-no"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    done = dpbayes("schema", "init", "people.csv", "--out", "asked.toml", "--interactive")
    assert done.code == 0
    assert "no preset 'sexes'" in done.err
    text = Path("asked.toml").read_text()
    assert 'name = "id"' not in text
    assert "edges = [0, 50, 100]" in text
    assert "Fill in the empty lists (admitted)" in done.out
    assert PRIVATE not in text + done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--categories", "sex"], "expected --categories as COLUMN=VALUES"),
        (["--categories", "gender=F,M"], "no column 'gender'"),
        (["--leave-out", "gender"], "no column 'gender'"),
        (["--person", "nobody"], "no column 'nobody'"),
        (["--edges", "age=a,b"], "to be a number, got 'a'"),
        (["--edges", "age=0:10:0"], "first:last:step"),
        (["--edges", "age=5"], "two or more edges"),
        (["--dates", "admitted=week:2020-01-01:2021-01-01"], "Choose one of year, quarter, month"),
        (["--preset", "age=ages"], "no preset 'ages'"),
        (["--edges", "age=0,1", "--preset", "age=ages-5"], "declared twice"),
        (["--codebook", "none.csv"], "cannot be read"),
        (["--from-public", "none.csv"], "Table: "),
        (["--unit", "add-remove:0"], "expected the unit to be"),
        (["--unit", "people"], "expected the unit to be replace-one or add-remove"),
    ],
)
def test_wrong_input_is_one_sentence(here: Path, arguments: list[str], said: str) -> None:
    assert said in dpbayes("schema", "init", "people.csv", *arguments, "--out", "no.toml").sentence
    assert not Path("no.toml").exists()


def test_the_owner_can_look_for_undeclared_values_apart_from_releases(here: Path) -> None:
    dpbayes("schema", "init", "people.csv", *DECLARED)
    done = dpbayes("schema", "check", "people.csv", "--read-rows")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert re.search(
        r"occur in sex \([\d.]+ % of the rows\), admitted \(.*\), job \(.*\), smokes \([^)]*\)\. Numbers are read", said
    )
    assert PRIVATE not in done.out
    strict = Path("people.toml").read_text().replace(", source =", ', unknown = "refuse", source =')
    Path("strict.toml").write_text(strict)
    assert dpbayes("schema", "check", "people.csv", "--schema", "strict.toml", "--read-rows").code == 1
    released = dpbayes(
        "release", "people.csv", "--schema", "strict.toml", "sex", "--epsilon", 1, "--ledger", "none", "--json"
    )
    assert released.code == 0  # a release never tells whether there is one
    assert PRIVATE not in released.out


# -- bought lists -----------------------------------------------------------------------------------------------------


@pytest.fixture
def clinic(here: Path) -> Path:
    Path("clinic.toml").write_text(
        'id = "clinic"\nadjacency = "replace-one"\nrecords = 301\n\n# about sex\n[[attribute]]\nname = "sex"\n'
        'categories = ["F"]\n\n# a guess so far\n[[attribute]]\nname = "job"\ncategories = ["?"]\nmissing = "drop"\n\n'
        '# the last remark\n[[attribute]]\nname = "smokes"\ncategories = ["yes"]\n'
    )
    schema = Schema.load("clinic.toml")
    Ledger("clinic.ledger").open("clinic", ApproxDP(epsilon=9, delta=1e-4), schema.unit, schema=schema.digest)
    return here


ASKED = ("--schema", "clinic.toml", "--ledger", "clinic.ledger")


def test_what_stays_hidden_is_forecast_and_nothing_is_charged(clinic: Path) -> None:
    asked = ("people.csv", *ASKED, "job", "--epsilon", 1, "--dry-run", "--out", "found")
    said = " ".join(dpbayes("release", "--as", "categories", *asked).out.split())
    assert "stay hidden, and those with" in said
    assert "The threshold is" in said
    assert "The limit of the ledger allows it, and the folder is free." in said
    assert not Ledger("clinic.ledger").account("clinic").charges
    Path("found").mkdir()
    Path("found/x").touch()
    assert dpbayes("release", "--as", "categories", *asked).code == 1


def test_bought_categories_go_into_the_schema_with_their_source_and_the_rest_stays(clinic: Path) -> None:
    before = Path("clinic.toml").read_text()
    asked = ("people.csv", *ASKED, "job", "--epsilon", 1, "--delta", 1e-6, "--out", "found")
    assert "Lines for the schema" in dpbayes("release", "--as", "categories", *asked).out
    done = dpbayes("schema", "adopt", "found", "clinic.toml")
    assert "Let the data owner accept it: dpbayes ledger accept" in " ".join(done.out.split())
    schema, release = Schema.load("clinic.toml"), Release.load("found")
    assert schema["job"].categories == ("nurse",)
    assert schema["job"].missing == "drop"
    assert schema["job"].source == f"released {release.created[:10]} as {release.id}, {release.promise}"
    after = Path("clinic.toml").read_text()
    for remark in ("# about sex", "# a guess so far", "# the last remark"):
        assert remark in after
    assert after.replace(schema["job"].source, "").splitlines()[:8] == before.splitlines()[:8]
    assert schema.names == ("sex", "job", "smokes")


def test_bought_edges_of_a_new_column_are_added(clinic: Path) -> None:
    asked = ("people.csv", *ASKED, "age", "--epsilon", 2, "--set", "bins=3", "--set", "bounds=0:100")
    dpbayes("release", "--as", "edges", *asked, "--out", "cut")
    dpbayes("schema", "adopt", "cut", "clinic.toml")
    age = Schema.load("clinic.toml")["age"]
    assert (age.edges[0], age.edges[-1]) == (float("-inf"), float("inf"))
    assert age.source.startswith("released 20")


def test_adopting_the_wrong_thing_is_one_sentence(clinic: Path) -> None:
    made = ("people.csv", *ASKED, "sex", "--epsilon", 1, "--out", "tables")
    dpbayes("release", *made)
    assert "expected a release of categories or edges" in dpbayes("schema", "adopt", "tables", "clinic.toml").sentence
    dpbayes("release", "--as", "categories", "people.csv", *ASKED, "job", "--epsilon", 1, "--delta", 1e-6, "--out", "f")
    Path("other.toml").write_text(Path("clinic.toml").read_text().replace('"clinic"', '"other"'))
    assert "is about 'clinic'" in dpbayes("schema", "adopt", "f", "other.toml").sentence
    assert "cannot be read" in dpbayes("schema", "adopt", "f", "none.toml").sentence
    text = Path("f/release.json").read_text()
    Path("forged.json").write_text(text.replace('"nurse"', '"king"'))
    assert "does not verify" in dpbayes("schema", "adopt", "forged.json", "clinic.toml").sentence
    rare = ("people.csv", *ASKED, "id", "--epsilon", 1, "--delta", 1e-6, "--out", "rare")
    dpbayes("release", "--as", "categories", *rare)
    assert "common enough" in dpbayes("schema", "adopt", "rare", "clinic.toml").sentence


def test_a_file_without_a_last_line_end_can_be_added_to(clinic: Path) -> None:
    dpbayes("release", "--as", "categories", "people.csv", *ASKED, "job", "--epsilon", 1, "--delta", 1e-6, "--out", "f")
    text = 'id = "clinic"\nadjacency = "replace-one"\n[[attribute]]\nname = "sex"\ncategories = ["F"]'
    changed, made = adopt(Release.load("f"), text)
    assert Schema.from_toml(changed)["job"] == made


def test_the_owner_is_told_which_line_is_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("towns.toml").write_text('id = "towns"\nunit = "replace-one"\n[attributes]\ntown = ["Bern", "Z\u00fcrich"]\n')
    Path("towns.csv").write_bytes("town\nBern\nZ\u00fcrich\nBern\nZ\u00fcrich\n".encode("latin-1"))
    done = dpbayes("schema", "check", "towns.csv", "--read-rows")
    assert "town (50 % of the rows). Line 3 of towns.csv is not UTF-8" in " ".join(done.out.split())
    assert "not UTF-8" not in dpbayes("schema", "check", "towns.csv").out  # it would be about a value
    Path("towns.csv").write_bytes("t\u00f6wn\nBern\n".encode("latin-1"))
    assert (
        "line 1 of 'towns.csv' is not CSV in UTF-8. Save the file as UTF-8."
        in dpbayes("schema", "check", "towns.csv").sentence
    )


def test_what_a_stranger_types_wrong_is_answered_with_what_to_type(here: Path) -> None:
    Path("pay.csv").write_text('Pers.-Nr.,pay\n1,"12,5"\n')
    assert "Did you mean 'Pers.-Nr.'?" in dpbayes("schema", "init", "pay.csv", "--person", "pers nr").sentence
    assert "Did you mean 'Pers.-Nr.'?" in dpbayes("schema", "init", "pay.csv", "--edges", "PersNr=0,1").sentence
    assert dpbayes("schema", "init", "pay.csv", "--edges", "pay=0,20", "--leave-out", "Pers.-Nr.").code == 0
    said = " ".join(dpbayes("schema", "check", "pay.csv", "--read-rows").out.split())
    assert "pay (100 % of the rows). Numbers are read with a decimal point and no commas, days as 2026-01-31." in said
    said = dpbayes("ledger", "init", "pay.csv", "--epsilon", "one").sentence
    assert "ledger init: expected --epsilon to be a number, got 'one'" in said
