"""Numbers that people write: one rule for forms, options and files. A comma is refused, never dropped or cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.studio.house import ASKED, Visitor, begun, declared, ready, survey, text_of

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.design.noise import wants
from dpbayes.example import write_example
from dpbayes.jobs.request import Request
from dpbayes.ledger.ledger import Ledger
from dpbayes.schema.attribute import Attribute
from dpbayes.tables import declaring

COMMAS = [
    ("1,5", "1.5"),
    ("0,5", "0.5"),
    ("-1,25", "-1.25"),
    ("1.000,5", "1000.5"),
    ("12,345,678", "12345678"),
    ("1,234.5", "1234.5"),
    ("1,000", "1000 or 1.000"),
    ("1,5e3", "1.5e3"),
]


@pytest.mark.parametrize(("text", "meant"), COMMAS)
def test_a_comma_is_refused_with_the_number_as_understood(text, meant):
    with pytest.raises(InvalidArgument) as told:
        checks.number("studio", "ε", text)
    assert str(told.value) == f"studio: expected ε with a decimal point and no commas, got {text!r}. Write {meant}."


@pytest.mark.parametrize("text", ["1_5", "1 5", "", "1.5.2", "٣", "0x10", "1e", "much", "1,", ",", "1,2,3"])
def test_what_is_no_number_is_no_other_number(text):
    with pytest.raises(InvalidArgument):
        checks.number("studio", "ε", text)
    with pytest.raises(InvalidArgument):
        checks.whole("studio", "records", text)


def test_numbers_are_read_as_python_writes_them():
    texts = ["1.5", " 20000 ", "1e-6", ".5", "5.", "-3", "+2E3", "inf", "-inf"]
    assert [checks.number("studio", "ε", text) for text in texts] == [float(text) for text in texts]
    assert checks.whole("studio", "records", " 20000 ") == 20000
    for text, meant in (("20,000", "20000"), ("1.5", ""), ("1e3", ""), ("1,5", "")):
        with pytest.raises(InvalidArgument) as told:
            checks.whole("studio", "records", text)
        assert str(told.value).endswith(f"Write {meant}." if meant else f"got {text!r}.")


def test_no_face_takes_a_comma_for_another_number(tmp_path: Path):
    table, schema = write_example(tmp_path)
    for words in (
        ("risk", "--epsilon", "1,5"),
        ("risk", "--epsilon=1,5"),
        ("price", "Laplace(1)", "--at", "epsilon=1,5"),
        ("ledger", "init", table, "--ledger", tmp_path / "l", "--epsilon", "1,5"),
        ("release", table, "sex", "--epsilon", "1,5", "--ledger", "none"),
        ("release", table, "sex", "--epsilon", "1", "--ledger", "none", "--set", "level=1,5"),
        ("release", table, "sex ± 1,5 points", "--epsilon", "9", "--ledger", "none"),
    ):
        done = dpbayes(*words)
        assert "got '1,5'" in done.sentence, words
        assert done.sentence.endswith("Write 1.5."), words
    assert not (tmp_path / "l").exists()
    assert dpbayes("schema", "check", schema, "--bogus").sentence.startswith("schema check: there is no option --bogus")


@pytest.mark.parametrize("line", ["epsilon = 1,5", 'epsilon = "1,5"', 'epsilon = 9\ntables = ["sex ± 1,5 points"]'])
def test_a_request_file_refuses_a_decimal_comma(line):
    with pytest.raises(InvalidArgument, match=r"1,5.*Write 1\.5\."):
        Request.from_toml(f"{line}\n")


def test_a_wanted_accuracy_refuses_a_decimal_comma():
    for text in ("region ± 1,5 points", "region ± 1,000 records"):
        with pytest.raises(InvalidArgument, match="decimal point and no commas"):
            wants([text])


def test_edges_refuse_what_only_looks_like_a_number():
    for edge in ("1,5", "1_5", "٣"):
        with pytest.raises(SchemaError, match="Edges are numbers"):
            Attribute(name="age", edges=("0", edge, "99"))


def test_edges_have_one_separator():
    assert declaring.edges("x", "0, 1.5;7".replace(",", ";")).edges == (0.0, 1.5, 7.0)
    assert declaring.edges("x", "0 1.5\n7").edges == declaring.edges("x", "0,1.5,\n7").edges == (0.0, 1.5, 7.0)
    for text in ("0\n1,5\n7", "0; 1,5; 7", "0 1,5 7"):  # 0, 1, 5, 7 would be taken without a word
        with pytest.raises(SchemaError):
            declaring.edges("x", text)


def test_the_studio_refuses_a_decimal_comma_in_every_box(tmp_path):
    visitor = Visitor(survey(tmp_path))
    name = begun(visitor)
    assert visitor.post(f"/d/{name}/declare", declared(visitor, name)).status_code == 303
    limit = {"action": "budget", "limit-epsilon": "1,5", "limit-delta": "1e-6", "ledger": "survey.ledger"}
    answer = visitor.post(f"/d/{name}/ask", {**ASKED, **limit})
    assert answer.status_code == 422
    assert "Write 1.5." in text_of(answer)
    assert not (tmp_path / "survey.ledger").exists()
    said = {"table": "private/survey.csv", "id": "example-survey", "several": "no", "size": "public"}
    assert "Write 20000." in text_of(visitor.post(f"/d/{name}/table", {**said, "records": "20,000"}))
    wrong = declared(visitor, name, **{"text.1": "0; 18,5; 65"})
    assert "Write 18.5." in text_of(visitor.post(f"/d/{name}/declare", wrong))
    name = ready(visitor)
    assert Ledger(tmp_path / "survey.ledger").account("example-survey").budget.size == 2.0
    for box in ("epsilon", "delta", "within"):
        wrong = {**ASKED, "action": "solve", "within": "50", box: "0,5"}
        assert "Write 0.5." in text_of(visitor.post(f"/d/{name}/ask", wrong)), box
        shown = text_of(visitor.post(f"/d/{name}/ask/forecast", wrong))
        assert box == "within" or "Write 0.5." in shown


STEPS = [
    ("1974:2020:10", "1974:2014:10 or 1974:2024:10"),
    ("0:1:0.3", "0:0.9:0.3 or 0:1.2:0.3"),
    ("0:7:10", "0:10:10"),
    ("-5:1e3:100", "-5:995:100 or -5:1095:100"),
]


@pytest.mark.parametrize(("text", "nearest"), STEPS)
def test_steps_that_do_not_end_at_the_last_edge_are_refused_with_both_nearest_ranges(text, nearest):
    with pytest.raises(SchemaError, match="do not end at") as told:
        declaring.edges("year", text)
    assert str(told.value).endswith(f"Write {nearest}.")
    for each in nearest.split(" or "):
        first, last, step = (float(part) for part in each.split(":"))
        cut = declaring.edges("year", each).edges
        assert (cut[0], cut[-1]) == (first, last)
        assert cut[1] - cut[0] == pytest.approx(step)


def test_steps_in_tenths_are_exact():
    assert declaring.edges("x", "0:1:0.1").edges == tuple(place / 10 for place in range(11))
    assert len(declaring.edges("x", "1e-3:10:1e-3").edges) == 10_000


def test_the_command_line_writes_no_schema_with_a_range_cut_short(tmp_path: Path):
    table, _ = write_example(tmp_path)
    done = dpbayes("schema", "init", table, "--edges", "age=0:75:10", "--out", tmp_path / "new.toml")
    assert done.sentence.endswith("Write 0:70:10 or 0:80:10.")
    assert not (tmp_path / "new.toml").exists()
