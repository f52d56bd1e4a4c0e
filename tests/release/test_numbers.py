"""Numbers of large tables lie in Parquet files: nothing is lost, and whatever is changed shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from tests.releases import KINDS, a_release

from dpbayes import Release, verify
from dpbayes.base.errors import ReleaseError
from dpbayes.release import numbers


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "LONG", 2)


def saved(tmp_path: Path, kind: str = "gammas") -> tuple[Release, Path]:
    release, folder = a_release(kind), tmp_path / "out"
    release.save(folder)
    return release, folder


def changed(folder: Path, change: Any) -> None:
    """Edit release.json."""
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    change(record)
    (folder / "release.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_gives_back_every_number(kind: str, tmp_path: Path) -> None:
    release, folder = saved(tmp_path, kind)
    read = Release.load(folder)
    assert replace(read, files={}, seal="").record() == release.record()
    assert read.digest() == release.digest()
    assert read.seal == read.sealed()
    assert verify(read, folder=folder).checks[1].passed


@pytest.mark.parametrize("kind", KINDS)
def test_written_out_the_release_has_the_same_seal(kind: str) -> None:
    release = a_release(kind)
    text = release.to_json()
    read = Release.from_json(text)
    assert "sha256" not in text
    assert (read.seal, read.digest()) == (release.sealed(), release.digest())
    assert read.to_json() == text


def test_the_numbers_are_in_parquet_alone_whatever_was_asked_for(tmp_path: Path) -> None:
    release, folder = saved(tmp_path)
    assert not list(folder.glob("*.csv"))
    assert len(list(folder.glob("*.parquet"))) == len(release.tables)
    assert json.loads((folder / "release.json").read_text())["tables"][0]["values"].keys() == {"cells", "sha256"}


def test_without_its_folder_the_numbers_are_missing_in_one_sentence(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    with pytest.raises(ReleaseError, match="name the folder"):
        Release.from_json((folder / "release.json").read_bytes())
    next(folder.glob("*.parquet")).unlink()
    with pytest.raises(ReleaseError, match="name the folder"):
        Release.load(folder)


def test_a_changed_number_is_not_read(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    path = next(folder.glob("*.parquet"))
    table = parquet.read_table(path)
    place = table.column_names.index("counts")
    edited = np.array(table.column(place).to_pylist()) + np.eye(1, len(table))[0]
    parquet.write_table(table.set_column(place, "counts", pyarrow.array(edited)), path)
    with pytest.raises(ReleaseError, match="were changed"):
        Release.load(folder)


@pytest.mark.parametrize("cells", [1, 10**9, -1, 2.5, "6", None, True])
def test_a_wrong_length_is_refused(cells: object, tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    changed(folder, lambda record: record["tables"][0]["values"].update(cells=cells))
    with pytest.raises(ReleaseError):
        Release.load(folder)


@pytest.mark.parametrize("name", [{}, {"cells": 6}, {"cells": 6, "sha256": 7}, {"cells": 6, "sha256": "no", "more": 1}])
def test_what_is_no_name_of_a_list_is_refused(name: object, tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    changed(folder, lambda record: record["tables"][0].update(values=name))
    with pytest.raises(ReleaseError):
        Release.load(folder)


def test_numbers_are_looked_for_beside_the_release_only(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    path = next(folder.glob("*.parquet"))
    path.rename(tmp_path / path.name)

    def elsewhere(record: Any) -> None:
        record["files"] = {f"../{path.name}": "0" * 64}

    changed(folder, elsewhere)
    with pytest.raises(ReleaseError, match="name the folder"):
        Release.load(folder)


def test_a_swapped_product_breaks_the_seal(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)

    def swap(record: Any) -> None:
        product = record["tables"][0]["products"]["counts"]
        product["lower"], product["upper"] = product["upper"], product["lower"]

    changed(folder, swap)
    read = Release.load(folder)
    assert not next(check for check in verify(read, folder=folder).checks if check.name == "seal").passed


def test_a_long_list_of_mixed_numbers_is_refused() -> None:
    text = a_release("gammas").to_json()
    record = json.loads(text)
    record["tables"][0]["values"][0] = int(record["tables"][0]["values"][0]) + 1
    with pytest.raises(ReleaseError):
        Release.from_json(json.dumps(record))
