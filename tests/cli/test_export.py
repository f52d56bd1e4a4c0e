"""From a release to what leaves the building: exported, signed, checked by a stranger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import dpbayes
from tests.releases import a_release

from dpbayes import Release
from dpbayes.report.folder import save


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(a_release("joint"), "published")
    return tmp_path


def test_an_export_is_the_same_release_with_more_beside_it(here: Path) -> None:
    said = ("curator=Office", "curator_type=Government", "region=Portugal")
    options = [word for each in said for word in ("--set", each)]
    done = dpbayes("export", "published", "public", "--with", "xlsx", "--with", "sheet", "--with", "registry", *options)
    assert (done.code, done.err) == (0, "")
    for name in ("tables.xlsx", "privacy-sheet.html", "registry-entry.yaml", "csv-metadata.json"):
        assert name in done.out
        assert Path("public", name).exists()
    assert Release.load("public").digest() == Release.load("published").digest()
    assert dpbayes("verify", "public").code == 0


def test_the_registry_asks_for_what_a_release_does_not_say(here: Path) -> None:
    assert "curator_type=…" in dpbayes("export", "published", "public", "--with", "registry").sentence
    assert "no key 'town'" in dpbayes("export", "published", "public", "--set", "town=x").sentence
    assert "xlsx, sheet, registry" in dpbayes("export", "published", "public", "--with", "pdf").sentence
    assert not Path("public").exists()


def test_a_signed_release_is_checked_with_the_publishers_key(here: Path) -> None:
    made = dpbayes("keys", "office")
    assert made.code == 0
    key = made.out.split("--key ")[1].strip()
    assert dpbayes("sign", "published", "--key", "office.key", "--about", "Approved by the board").code == 0
    done = dpbayes("verify", "published", "--key", "office.pub")
    assert done.code == 0
    assert "pass  signature: signed with the key" in done.out
    assert "Approved by the board" in done.out
    assert dpbayes("verify", "published", "--key", key).code == 0
    assert "It is signed." in dpbayes("verify", "published").out


def test_a_wrong_key_or_an_edited_release_fails(here: Path) -> None:
    dpbayes("keys", "office")
    dpbayes("keys", "stranger")
    dpbayes("sign", "published", "--key", "office.key")
    assert "FAIL  signature" in dpbayes("verify", "published", "--key", "stranger.pub").out
    record = json.loads(Path("published/release.json").read_text())
    Path("published/release.json").write_text(json.dumps(record))  # the same content, other bytes
    done = dpbayes("verify", "published", "--key", "office.pub")
    assert done.code == 1
    assert "FAIL  signature" in done.out


def test_keys_are_never_overwritten_and_a_release_must_be_one(here: Path) -> None:
    dpbayes("keys", "office")
    assert "is there already" in dpbayes("keys", "office").sentence
    Path("notes.json").write_text("{}")
    assert "Release:" in dpbayes("sign", "notes.json", "--key", "office.key").sentence


def test_synthetic_records_come_with_their_metadata(here: Path) -> None:
    done = dpbayes("synth", "published", "--rows", 50, "--out", "people.csv", "--with", "croissant")
    assert done.code == 0
    said = json.loads(Path("people.croissant.json").read_text())
    assert said["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert [field["name"] for field in said["recordSet"][0]["field"]] == ["sex", "income"]
