"""What leaves the building beside a release is valid by the rules of those who will read it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import openpyxl
import pytest
import yaml
from csvw import CSVW
from tests.releases import KINDS, REPLACE, VERIFYING, a_release, charged, release_of, schema_of
from tests.report.test_page import Page

from dpbayes import ZCDP, ApproxDP, Attribute, Gaussian, Release, Schema, verify
from dpbayes.base.errors import InvalidArgument, MissingExtra
from dpbayes.ledger.ledger import Ledger
from dpbayes.models.histogram import Histogram
from dpbayes.models.model import Published
from dpbayes.models.synthetic import synthetic_table, write_table
from dpbayes.report.companions import croissant_json, facts, sheet_html, write_xlsx
from dpbayes.report.folder import save
from dpbayes.report.registry import Deployment, entry, entry_yaml
from dpbayes.report.tables import defused, file_columns
from dpbayes.schema import Prior

OFFICE = Deployment(curator="Office of Statistics", curator_type="Government", region="Portugal", sector="Government")
ABOUT = {
    "title": "Income: by sex",
    "author": "Unit B2",
    "contact": "b2@example.org",
    "purpose": "For the board.\nTwo lines.",
}


def published(kind: str) -> Release:
    return replace(a_release(kind), about=ABOUT)


# -- all of them ------------------------------------------------------------------------------------------------------


def test_companions_are_hashed_and_an_edit_of_any_shows(tmp_path: Path) -> None:
    paths = save(published("joint"), tmp_path / "out", also=("xlsx", "sheet", "registry"), deployment=OFFICE)
    names = {path.name for path in paths}
    assert {"tables.xlsx", "privacy-sheet.html", "registry-entry.yaml", "csv-metadata.json"} < names
    read = Release.load(tmp_path / "out")
    assert set(read.files) == names - {"release.json"}
    assert verify(read, folder=tmp_path / "out").ok
    for path in paths:
        if path.name != "release.json":
            whole = path.read_bytes()
            path.write_bytes(whole[:-1])
            assert not verify(read, folder=tmp_path / "out").ok
            path.write_bytes(whole)


def test_a_companion_that_cannot_be_made_is_refused_before_a_folder_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="curator's name"):
        save(published("joint"), tmp_path / "out", also=("registry",))
    with pytest.raises(InvalidArgument, match="not private"):
        save(published("seeded"), tmp_path / "out", also=("registry",), deployment=OFFICE)
    with pytest.raises(InvalidArgument, match="xlsx, sheet, registry"):
        save(published("joint"), tmp_path / "out", also=("pdf",))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# -- CSV and its metadata ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VERIFYING)
def test_the_metadata_of_csv_files_is_valid_by_the_rules_of_the_w3c(kind: str, tmp_path: Path) -> None:
    save(published(kind), tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = CSVW(str(tmp_path / "out" / "csv-metadata.json"), validate=True)
        assert package.is_valid, package.warnings
    assert len(package.tables) == len(a_release(kind).tables)
    for table in package.tables:
        rows = list(table)
        assert len(rows) > 1
        assert all(isinstance(row["released"], (int, float)) for row in rows)


def test_the_metadata_describes_each_column_and_the_key() -> None:
    from dpbayes.report.companions import csvw

    found = csvw(published("conditional"))
    (table,) = found["tables"]
    described = table["tableSchema"]["columns"]
    assert [column["titles"] for column in described][:3] == ["region", "income", "released"]
    assert all(column["dc:description"] for column in described)
    assert table["tableSchema"]["primaryKey"] == ["region", "income"]
    assert found["dc:title"] == "Income: by sex"
    assert "ε=3" in found["dc:rights"]


HOSTILE = ("=cmd|'/c calc'!A1", "+1", "-1+1", "@SUM(A1)", "\tx", "plain")


def hostile() -> Release:
    schema = Schema(id="s", unit=REPLACE, attributes=(Attribute(name="=evil", categories=HOSTILE, missing="other"),))
    release = release_of("income", mechanism=Gaussian(sigma=8, unit=REPLACE), promise=ApproxDP(epsilon=1, delta=1e-6))
    (table,) = release.drawn().tables
    values = np.array([50.0, 40, 30, 20, 10, 5, -3])
    bare = replace(table, marginal=type(table.marginal)(("=evil",)), values=values)
    return replace(release.drawn(), schema=schema, tables=(bare,), records=152, about=ABOUT | {"title": "=1+1"})


def test_no_cell_of_a_csv_file_starts_a_formula(tmp_path: Path) -> None:
    save(hostile(), tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    assert names[0] == "'=evil"
    assert [row[0] for row in rows][:6] == [f"'{level}" for level in HOSTILE[:5]] + ["plain"]
    assert rows[-1][1] == "-3"  # a number is no formula
    assert defused("−5 to −1") == "−5 to −1"


def test_a_published_file_can_be_the_next_prior() -> None:
    ages = Attribute(name="age", edges=(0, 18, 65, float("inf")), missing="other")
    schema = Schema(id="s", unit=REPLACE, attributes=(ages,))
    by_label = "age,share\n0 to under 18,1\n18 to under 65,2\n65 and over,3\nother,4\n"
    by_level = 'age,share\n"[0, 18)",1\n"[18, 65)",2\n"[65, inf)",3\nother,4\n'
    assert Prior.from_csv(by_label, schema).shares == Prior.from_csv(by_level, schema).shares == (1, 2, 3, 4)


# -- the workbook -----------------------------------------------------------------------------------------------------


def test_a_workbook_has_the_numbers_of_the_csv_files(tmp_path: Path) -> None:
    release = published("add-remove")
    write_xlsx(release, tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    assert book.sheetnames == ["About", "Table 1", "Table 2"]
    for number, table in enumerate(release.tables, start=1):
        head, *rows = list(book[f"Table {number}"].iter_rows(min_row=4, values_only=True))
        found = file_columns(release, table)
        assert list(head) == [column.name for column in found]
        for at, column in enumerate(found):
            assert [row[at] for row in rows] == column.plain
    texts = [str(cell) for row in book["About"].iter_rows(values_only=True) for cell in row if cell]
    assert {"Income: by sex", "Unit B2", release.statement()} <= set(texts)


def test_a_workbook_runs_nothing_and_is_the_same_twice(tmp_path: Path) -> None:
    for name in ("one.xlsx", "two.xlsx"):
        write_xlsx(hostile(), tmp_path / name)
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    for sheet in openpyxl.load_workbook(tmp_path / "one.xlsx"):
        assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


def test_without_the_writer_a_workbook_is_refused_with_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['xlsxwriter'] = None\n"
        "from dpbayes.base.errors import MissingExtra\nfrom dpbayes.report.companions import check_xlsx\n"
        "try: check_xlsx()\nexcept MissingExtra as said: print(said)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "dpbayes[xlsx]" in done.stdout
    assert issubclass(MissingExtra, Exception)


# -- the privacy sheet ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_privacy_sheet_states_all_that_readers_should_look_for(kind: str) -> None:
    release = published(kind)
    said = facts(release)
    assert set(said) == {
        "The guarantee", "Mechanisms", "Accounting", "Accuracy and bias", "Threat model", "Data and security",
    }  # fmt: skip
    assert all(text for rows in said.values() for _, text in rows)
    page = Page(sheet_html(release))
    for text in (str(release.unit.adjacency), "Side channels", "To be stated by the publisher"):
        assert text in page.text
    assert ("Not private." in page.text) == release.seeded
    (unit,) = (text for name, text in said["The guarantee"] if name == "Neighbours")
    assert ("replacing" in unit) == release.unit.replaces


# -- the registry -----------------------------------------------------------------------------------------------------

TEXT = {"type": "string", "minLength": 1}


def of(required: str, optional: str = "", **others: object) -> dict[str, object]:
    """An object whose members are texts, unless said otherwise, and that has no others."""
    names = [*required.split(), *optional.split()]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": {name: others.get(name, TEXT) for name in names},
    }


def one_of(*values: str) -> dict[str, object]:
    return {"type": "string", "enum": list(values)}


NUMBER = {"type": "number"}
REGISTRY = of(
    "url_slug deployment",
    deployment=of(
        "basic administrative",
        "dp_variant privacy_loss deployment_model implementation",
        basic=of(
            "name data_curators description intended_use data_product_type data_product_region publication_date",
            "data_product_sector",
            data_curators={
                "type": "array",
                "minItems": 1,
                "items": of(
                    "data_curator_name data_curator_type",
                    data_curator_type=one_of("Government", "Industry", "Nonprofit"),
                ),
            },
            data_product_type=one_of(
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            ),
            data_product_sector=one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
            publication_date={"type": "string", "format": "date"},
        ),
        dp_variant=of(
            "",
            "variant_name data_domain unprotected_quantities",
            variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
        ),
        privacy_loss=of(
            "",
            "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters privacy_parameters_details",
            number_of_privacy_units={"type": "integer"},
            privacy_parameters=of("", "epsilon delta rho", epsilon=NUMBER, delta=NUMBER, rho=NUMBER),
        ),
        deployment_model=of(
            "",
            "model_name model_name_details trust_assumptions actors release_type release_type_details "
            "data_source_type data_source_type_details access_type access_type_details",
            model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            release_type=one_of("One release", "Many releases"),
            data_source_type=one_of("Static", "Dynamic"),
            access_type=one_of("Interactive", "Non-interactive"),
        ),
        implementation=of(
            "",
            "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification utility "
            "additional_information",
        ),
        administrative=of(
            "status registry_authors tier",
            "evidence_sources",
            status=one_of("Draft", "Pending", "Approved"),
            registry_authors={"type": "array", "items": TEXT, "minItems": 1},
            tier={"type": "integer", "enum": [1, 2, 3]},
        ),
    ),
)
"""The rules of the registry's schema, as its documentation gives them."""


@pytest.mark.parametrize("kind", VERIFYING)
def test_an_entry_for_the_registry_is_valid_and_full(kind: str, tmp_path: Path) -> None:
    release = charged(published(kind), Ledger(tmp_path / "l.ledger")) if kind == "joint" else published(kind)
    read = yaml.safe_load(entry_yaml(release, OFFICE))
    assert read == json.loads(json.dumps(entry(release, OFFICE)))
    jsonschema.validate(read, REGISTRY, format_checker=jsonschema.FormatChecker())
    said = read["deployment"]
    assert said["basic"]["name"] == "Income: by sex"
    assert said["administrative"]["registry_authors"] == ["Unit B2"]
    assert said["privacy_loss"]["privacy_parameters"]
    assert ("number_of_privacy_units" in said["privacy_loss"]) == (release.records is not None)
    if kind == "joint":
        assert "of 5 is spent" in said["implementation"]["composition"]


def test_the_rules_of_the_registry_refuse_what_they_should() -> None:
    for change in ({"url_slug": 3}, {"author": "x"}, {"deployment": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**entry(published("joint"), OFFICE), **change}, REGISTRY)


def test_an_entry_names_the_notion_of_privacy_as_the_registry_does() -> None:
    concentrated = replace(published("joint"), promise=ZCDP(rho=0.5))
    said = entry(concentrated, OFFICE)["deployment"]
    assert said["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert said["privacy_loss"]["privacy_parameters"] == {"rho": 0.5}


@pytest.mark.parametrize(
    "wrong", [{"curator_type": "Club"}, {"sector": "Sports"}, {"curator": " "}, {"region": ""}], ids=str
)
def test_a_deployment_is_what_the_registry_knows(wrong: dict[str, str]) -> None:
    usual = {"curator": "Office", "curator_type": "Government", "region": "Portugal"}
    with pytest.raises(InvalidArgument):
        Deployment(**{**usual, **wrong})  # type: ignore[arg-type]


# -- synthetic records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_croissant_record_of_synthetic_data_loads_in_mlcroissant(suffix: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        release = published("joint")
        model = Histogram(attributes=("sex", "income")).build(Published.of(release))
        made = synthetic_table(model, 30, rng=np.random.default_rng(1))
        write_table(made, tmp_path / f"people{suffix}")
        text = croissant_json(release, tmp_path / f"people{suffix}", made.schema, 30)
        (tmp_path / "croissant.json").write_text(text)
        dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "croissant.json"))
        records = list(dataset.records("records"))
    assert not dataset.metadata.ctx.issues.errors
    assert len(records) == 30
    told = {value.decode() if isinstance(value, bytes) else value for record in records for value in record.values()}
    assert told <= set(schema_of("sex", "income")["sex"].levels) | set(schema_of("income")["income"].levels)
