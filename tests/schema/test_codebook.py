"""Codebooks of every format become declarations; what is no codebook is one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpbayes.base.errors import SchemaError
from dpbayes.schema.codebook import COUNTRIES, PRESETS, preset, read_codebook

CSV = (
    "variable,code,label,level\nsex,1,Male,\n,2,Female,\njob,11,Cook,service\njob,12,Waiter,service\njob,20,Judge,law\n"
)
DDI = """<?xml version="1.0"?>
<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="sex"><labl>Sex of respondent</labl>
<catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">7</catStat></catgry>
<catgry missing="Y"><catValu> 2 </catValu><labl>Female</labl></catgry></var>
<var name="weight"><labl>no codes</labl></var>
</dataDscr></codeBook>"""
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "tableSchema": {
        "columns": [
            {"name": "sex", "datatype": {"base": "string", "format": "1|2"}},
            {"titles": ["ok"], "datatype": {"base": "boolean", "format": "Y|N"}},
            {"name": "zip", "datatype": {"base": "string", "format": "[0-9]{5}|none"}},
            {"name": "age", "datatype": "integer"},
        ]
    },
}
FRICTIONLESS = {
    "resources": [
        {
            "schema": {
                "fields": [
                    {"name": "sex", "type": "integer", "categories": [{"value": 1, "label": "Male"}, {"value": 2}]},
                    {"name": "size", "type": "string", "constraints": {"enum": ["S", "M"]}},
                    {"name": "ok", "type": "boolean"},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0}},
                ]
            }
        }
    ]
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_list_with_labels_and_recodes(tmp_path: Path) -> None:
    found = read_codebook(written(tmp_path, "codes.csv", CSV))
    assert found["sex"].categories == ("1", "2")
    assert dict(found["sex"].labels) == {"1": "Male", "2": "Female"}
    assert found["job"].categories == ("service", "law")
    assert dict(found["job"].codes) == {"service": ("11", "12"), "law": ("20",)}
    assert found["sex"].source == "codebook codes.csv"
    semicolons = read_codebook(written(tmp_path, "c2.csv", "\ufeffName;Value;Description\nsex;F;women\nsex;M;men\n"))
    assert semicolons["sex"].label("F") == "women"


@pytest.mark.parametrize(
    "content",
    [
        {"sex": {"1": "Male", "2": "Female"}},
        {"sex": [{"code": 1, "label": "Male"}, {"code": 2, "label": "Female"}]},
        FRICTIONLESS,
        FRICTIONLESS["resources"][0]["schema"],
        CSVW,
    ],
)
def test_json_lists_of_every_kind(content: object, tmp_path: Path) -> None:
    found = read_codebook(written(tmp_path, "codes.json", json.dumps(content)))
    assert found["sex"].categories == ("1", "2")
    assert "age" not in found
    assert "zip" not in found
    if "ok" in found:
        assert set(found["ok"].categories) in ({"Y", "N"}, {"true", "false"})


def test_ddi_in_any_name_space(tmp_path: Path) -> None:
    for text in (DDI, DDI.replace(' xmlns="ddi:codebook:2_5"', "")):
        found = read_codebook(written(tmp_path, "study.xml", text))
        assert found["sex"].categories == ("1", "2")
        assert found["sex"].label("2") == "Female"
        assert list(found) == ["sex"]


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_value_labels_of_spss_and_stata_without_reading_rows(suffix: str, tmp_path: Path) -> None:
    import pandas
    import pyreadstat

    path = tmp_path / f"survey.{suffix}"
    frame = pandas.DataFrame({"sex": [1, 2, 2], "age": [30, 40, 50]})
    write = pyreadstat.write_sav if suffix == "sav" else pyreadstat.write_dta
    write(frame, str(path), variable_value_labels={"sex": {1: "Male", 2: "Female"}})
    found = read_codebook(path)
    assert found["sex"].categories == ("1", "2")
    assert found["sex"].label("1") == "Male"
    assert list(found) == ["sex"]


def test_a_file_on_which_its_library_crashes_is_damaged(tmp_path: Path) -> None:
    import pandas
    import pyreadstat

    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(pandas.DataFrame({"sex": [1.0]}), str(path), variable_value_labels={"sex": {1: "Male"}})
    assert read_codebook(path)["sex"].label("1") == "Male"
    whole = bytearray(path.read_bytes())
    whole[182] = 1  # a text of 65,536 characters, where 255 are the most
    path.write_bytes(whole)
    with pytest.raises(SchemaError, match="damaged"):
        read_codebook(path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("codes.txt", "x", "expected a file named"),
        ("codes.csv", "a,b\n1,2\n", "columns named variable and code"),
        ("codes.csv", "variable,code\n", "lists no codes"),
        ("codes.json", "{", "damaged"),
        ("codes.json", "[1]", "damaged"),
        ("codes.json", '{"a": 3}', "damaged"),
        ("codes.json", '{"fields": [{"type": "x"}]}', "damaged"),
        ("study.xml", "<a>", "not XML"),
        ("study.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a/>', "document type"),
        ("survey.sav", "nothing", "damaged"),
        ("codes.csv", 'variable,code\na,"1\n', "damaged"),
    ],
)
def test_what_is_no_codebook_is_one_sentence(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"^Codebook: ") as caught:
        read_codebook(written(tmp_path, name, text))
    assert said in str(caught.value)


def test_a_missing_codebook_is_one_sentence(tmp_path: Path) -> None:
    for name in ("none.csv", "none.sav"):
        with pytest.raises(SchemaError, match="cannot be read"):
            read_codebook(tmp_path / name)


def test_presets_declare_what_they_say() -> None:
    assert len(COUNTRIES) == len(set(COUNTRIES)) == 249
    for kind in PRESETS:
        made = preset(kind, "x")
        assert made.source
        assert made.levels
    months = preset("months", "m")
    assert [months.level(value) for value in ("1", "01", "Jan", "JANUARY", 1, 1.0)] == [0] * 6
    assert months.label("12") == "December"
    assert preset("weekdays", "d").level("Sun") == 6
    assert preset("ages-5", "a").levels[0] == "[0, 5)"
    assert preset("ages-5", "a").level(104) == 20
    assert preset("income", "i").level(75_000) == 6
    with pytest.raises(SchemaError, match="no preset 'ages'"):
        preset("ages", "x")
