"""A release reaches its folder whole, or not at all."""

from __future__ import annotations

import csv
import errno
import itertools
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from tests.releases import KINDS, REPLACE, a_release, levels_of, release_of

from dpbayes import ApproxDP, Attribute, Gaussian, Release, Schema, verify
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.release.estimates import TableView
from dpbayes.report.folder import check_folder, save
from dpbayes.report.page import file_stem, report_html
from dpbayes.schema import Marginal


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_holds_json_report_and_one_file_of_numbers_a_table(kind: str, tmp_path: Path) -> None:
    release = a_release(kind)
    paths = save(release, tmp_path / "out")
    assert sorted(paths) == sorted((tmp_path / "out").iterdir())
    assert len(paths) == 3 + len(release.tables)
    read = Release.load(tmp_path / "out")
    assert set(read.files) == {path.name for path in paths} - {"release.json"}
    assert replace(read, files={}, seal="").record() == release.record()
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == report_html(release)
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_the_folder_is_on_disk_with_all_its_files_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, tuple[str, ...]]] = []
    sync, rename = os.fsync, Path.rename

    def syncing(handle: int) -> None:
        sync(handle)
        synced.append((os.fstat(handle).st_ino, tuple(sorted(os.listdir(handle))) if _is_folder(handle) else ()))

    def renaming(self: Path, target: Path) -> Path:
        there = dict(synced)
        assert there[self.stat().st_ino] == tuple(sorted(path.name for path in self.iterdir()))
        assert {path.stat().st_ino for path in self.iterdir()} <= there.keys()
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "rename", renaming)
    save(a_release("gammas"), tmp_path / "new" / "out")
    assert synced[-1][0] == (tmp_path / "new").stat().st_ino
    assert tmp_path.stat().st_ino in dict(synced)  # which holds the name of the new folder


def _is_folder(handle: int) -> bool:
    return stat.S_ISDIR(os.fstat(handle).st_mode)


def test_the_numbers_are_tidy_and_in_the_order_of_the_table(tmp_path: Path) -> None:
    release = a_release("gammas")
    table = release.tables[0]
    save(release, tmp_path / "out")
    with (tmp_path / "out" / "1-sex-income.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sex"], row["income"]) for row in rows] == list(
        itertools.product(levels_of("sex"), levels_of("income"))
    )
    assert [float(row["released"]) for row in rows] == table.values.tolist()
    for name, product in table.products.items():
        written = np.array([float(row[name]) for row in rows])
        if product.lower is None or product.upper is None:
            assert written == pytest.approx(product.values, rel=1e-5)
            continue
        lower, upper = (np.array([float(row[f"{name}_{end}"]) for row in rows]) for end in ("lower", "upper"))
        half = (product.upper - product.lower) / 2
        assert (np.abs(written - product.values) <= 0.0251 * half).all()
        assert (lower <= product.lower + 1e-9).all()
        assert (product.upper <= upper + 1e-9).all()
        assert (upper - lower <= 2.11 * half).all()
        assert (lower <= written).all()
        assert (written <= upper).all()
    assert set(rows[0]) == {"sex", "income", "released", "draw"} | {
        name + end for name in ("counts", "empirical", "population") for end in ("", "_lower", "_upper")
    }


@pytest.mark.parametrize("kind", ["joint", "hostile", "pseudo-records"])
def test_parquet_keeps_every_digit_and_csv_has_the_same_columns(kind: str, tmp_path: Path) -> None:
    release = a_release(kind)
    (as_parquet,) = (path for path in save(release, tmp_path / "p", numbers="parquet") if path.suffix == ".parquet")
    (as_csv,) = (path for path in save(release, tmp_path / "c") if path.suffix == ".csv")
    with as_csv.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    read = pyarrow.parquet.read_table(as_parquet)
    assert names == read.column_names
    assert len(rows) == read.num_rows
    for name, product in release.tables[0].products.items():
        assert read[name].to_pylist() == product.values.tolist()


def test_an_attribute_keeps_its_name_when_a_column_of_numbers_has_it_too() -> None:
    release = a_release("gammas")
    named = tuple(
        Attribute(name=name, categories=attribute.categories, missing="other")
        for name, attribute in zip(("Draw", "released"), release.schema.attributes, strict=True)
    )
    table = replace(release.tables[0], marginal=Marginal(("Draw", "released")))
    renamed = Schema(id="survey", unit=REPLACE, attributes=named)
    names = TableView(replace(release, schema=renamed, tables=(table,)), table).to_arrow().column_names
    assert names[:4] == ["Draw", "released", "released_", "draw_"]


@pytest.mark.parametrize("text", ["a/b,c|d", '"../../etc"', '"/"', "日本", '"' + "x" * 300 + '"', '"\\:*?"'])
def test_file_names_are_safe_on_every_system(text: str) -> None:
    stem = file_stem(Marginal.parse(text))
    assert stem
    assert len(stem) <= 40
    assert not set(stem) & set('/\\:*?"<>|. ')


def test_two_tables_never_share_a_file(tmp_path: Path) -> None:
    noise, promise = Gaussian(sigma=8, unit=REPLACE), ApproxDP(epsilon=1, delta=1e-6)
    twice = release_of("sex", "sex", mechanism=noise, promise=promise, estimates=False)
    assert len({path.name for path in save(twice, tmp_path / "out")}) == 5


@pytest.mark.parametrize("numbers", ["csv", "parquet"])
def test_a_file_beside_the_release_that_is_edited_or_missing_fails_the_folder(numbers: str, tmp_path: Path) -> None:
    paths = save(a_release("joint"), tmp_path / "out", numbers=numbers)  # type: ignore[arg-type]
    read = Release.load(tmp_path / "out")
    assert verify(read, folder=tmp_path / "out").ok
    for path in paths:
        if path.name == "release.json":
            continue
        whole = path.read_bytes()
        for spoilt in (whole + b" ", whole[:-1], whole[:50] + bytes([whole[50] ^ 1]) + whole[51:]):
            path.write_bytes(spoilt)
            failed = [check for check in verify(read, folder=tmp_path / "out").checks if not check.passed]
            assert [(check.name, path.name in check.detail) for check in failed] == [("files", True)]
        path.unlink()
        assert not verify(read, folder=tmp_path / "out").ok
        path.write_bytes(whole)
    assert verify(read, folder=tmp_path / "out").ok


def test_a_release_cannot_vouch_for_files_elsewhere(tmp_path: Path) -> None:
    save(a_release("joint"), tmp_path / "out")
    (tmp_path / "secret").write_text("x")
    outside = replace(Release.load(tmp_path / "out"), files={"../secret": "0" * 64}, seal="")
    assert "beside" in str(verify(outside, folder=tmp_path / "out"))


def test_an_empty_folder_is_used_and_missing_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert len(save(a_release("joint"), tmp_path / "empty")) == 4
    assert len(save(a_release("joint"), tmp_path / "a" / "b" / "c")) == 4


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    save(a_release("joint"), tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(ReleaseError, match="is not empty"):
        save(a_release("gammas"), tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    for folder in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(ReleaseError):
            save(a_release("joint"), folder)
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc, which nobody may write to")
def test_a_folder_without_permission_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(ReleaseError, match="cannot write to '/proc/out'"):
        check_folder("/proc/out")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to let a file grow beyond this, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("numbers", ["csv", "parquet"])
@pytest.mark.parametrize("size", [0, 500, 4000])
def test_when_the_disk_refuses_nothing_is_left_behind(size: int, numbers: str, tmp_path: Path) -> None:
    with largest_file(size), pytest.raises(ReleaseError, match=os.strerror(errno.EFBIG)):
        save(a_release("joint"), tmp_path / "out", numbers=numbers)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_checking_a_folder_leaves_no_trace(tmp_path: Path) -> None:
    check_folder(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_of_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="csv, parquet"):
        save(a_release("joint"), tmp_path / "out", numbers="xlsx")  # type: ignore[arg-type]
