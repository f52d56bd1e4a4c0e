from __future__ import annotations

import pytest

from dpbayes.tables.sources import dataset_name, public_address


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://owner:secret@host/db?table=people",
        "postgresql://owner:se:cr@et@host/db?table=people",
        "postgresql://owner@host/db?password=secret&table=people",
        "postgresql://host/db?table=people&password=secret",
    ],
)
def test_an_address_is_shown_without_its_password(address):
    shown = public_address(address)
    assert "se" not in shown.replace("password=…", "")
    assert "host/db" in shown
    assert "table=people" in shown


def test_data_are_named_after_their_table_or_file():
    assert dataset_name("postgresql://owner:secret@host?table=people") == "people"
    assert dataset_name("spark://host:7077?path=/data/people.parquet&spark.cores.max=1") == "people"
    assert dataset_name("data/people.csv?delimiter=;") == dataset_name("people.csv.gz") == "people"
    assert dataset_name("data/all.duckdb?table=people") == "people"
    assert dataset_name("postgresql://owner:secret@host") == ""
