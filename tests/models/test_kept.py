"""A fitted mixture is kept beside its release, and is believed only if it is that of this draw and this code."""

from __future__ import annotations

import hashlib
import hmac
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.commands import dpbayes

from dpbayes import ApproxDP, Attribute, Curator, Release, Schema, Unit, verify
from dpbayes.jobs.synthetic import Synthetic
from dpbayes.models import latent, model
from dpbayes.models.several import Several

ROWS = 4000


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of one table, without a kept model yet."""
    rng = np.random.default_rng(0)
    hidden, names = rng.integers(3, size=ROWS), ("a", "b", "c", "d")
    columns = {
        name: pa.array((hidden * at + rng.integers(2, size=ROWS)) % 3).cast(pa.string())
        for at, name in enumerate(names)
    }
    attributes = tuple(Attribute(name, ("0", "1", "2"), unknown="drop", missing="drop") for name in names)
    schema = Schema(id="kept", unit=Unit(adjacency="replace-one"), attributes=attributes, records=ROWS)
    folder = tmp_path_factory.mktemp("kept") / "published"
    for seed in (1, 2):
        curator = Curator(pa.table(columns), schema, ledger="none", seed=seed)
        curator.release(Synthetic(target="a"), ApproxDP(epsilon=3, delta=1e-6), out=folder / str(seed))
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first release, in a place of its own; ``fits`` counts from now on."""
    shutil.copytree(published, tmp_path / "published")
    for left in (tmp_path / "published").glob(".*.model"):
        left.unlink()
    fits.clear()
    monkeypatch.setenv("DPBAYES_STATE", str(tmp_path / "state"))
    fitted = latent.best_fits
    monkeypatch.setattr(latent, "best_fits", lambda *said, **more: (fits.append(1), fitted(*said, **more))[1])
    return tmp_path / "published" / "1"


fits: list[int] = []


def kept_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.model")


def same(one: latent.LatentModel, other: latent.LatentModel) -> bool:
    found, expected = one._arrays(), other._arrays()
    assert found.keys() == expected.keys()
    records = [each.synthesise(500, rng=np.random.default_rng(3)) for each in (one, other)]
    return records[0].equals(records[1]) and all(np.array_equal(found[name], expected[name]) for name in found)


def test_a_second_reader_gets_the_same_model_without_a_fit(folder: Path) -> None:
    fitted = Release.load(folder).model()
    assert fits == [1]
    assert fitted.form == "mixture"
    assert fitted.last is not None
    kept = Release.load(folder / "release.json").model()
    assert fits == [1]
    assert kept.kept
    assert kept.form == "mixture"
    assert same(kept, fitted)
    assert kept.shares(("a", "b")) == pytest.approx(fitted.shares(("a", "b")), abs=0)
    sets = [Several.of(each, 5) for each in (kept, fitted)]
    assert sets[0].factor == sets[1].factor
    assert np.array_equal(sets[0].models[4].weights, sets[1].models[4].weights)
    assert "beside it, as written" in str(verify(folder))
    assert sorted(path.name for path in folder.parent.iterdir()) == [".1.model", "1", "2"]


def test_a_kept_model_that_was_changed_is_fitted_again(folder: Path) -> None:
    fitted = Release.load(folder).model()
    whole = kept_of(folder).read_bytes()
    assert Release.load(folder).model().kept
    for place in (0, 70, 200, len(whole) // 2, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        kept_of(folder).write_bytes(changed)
        found = Release.load(folder).model()
        assert not found.kept
        assert same(found, fitted)
        assert kept_of(folder).read_bytes() == whole
    for part in (b"", b"\n", whole[:64], whole[:-1]):
        kept_of(folder).write_bytes(part)
        assert not Release.load(folder).model().kept


def test_a_model_that_somebody_else_kept_is_fitted_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hands a release on may put a file of his own beside it, which no check of the release would see."""
    fitted = Release.load(folder).model()
    _, _, rest = kept_of(folder).read_bytes().partition(b"\n")
    forged = [hmac.new(key, rest, "sha256").hexdigest() for key in (b"", b"guessed")]
    for seal in (*forged, hashlib.sha256(rest).hexdigest()):
        kept_of(folder).write_bytes(seal.encode() + b"\n" + rest)
        assert not Release.load(folder).model().kept
    assert Release.load(folder).model().kept
    monkeypatch.setenv("DPBAYES_STATE", str(folder / "another user"))
    assert not Release.load(folder).model().kept
    assert same(Release.load(folder).model(), fitted)
    (key,) = (folder / "another user").rglob("*.key")
    assert key.stat().st_mode & 0o077 == 0
    key.write_bytes(b"")
    for _ in range(2):
        assert not Release.load(folder).model().kept


def test_a_model_of_another_release_specification_or_version_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = folder.with_name("2")
    Release.load(other).model()
    shutil.copy(kept_of(other), kept_of(folder))
    assert not Release.load(folder).model().kept
    assert not Release.load(folder).model(latent.Latent()).kept
    assert Release.load(folder).model(latent.Latent()).kept
    assert not Release.load(folder).model().kept
    assert Release.load(folder).model().kept
    monkeypatch.setattr(model, "software", lambda: {"dpbayes": "0.0.1"})
    assert not Release.load(folder).model().kept


def test_where_nothing_can_be_written_nothing_is_kept_and_nobody_is_told(folder: Path) -> None:
    kept_of(folder).mkdir()
    for _ in range(2):
        assert not Release.load(folder).model().kept
    assert not list(kept_of(folder).iterdir())
    alone = Release.from_json((folder / "release.json").read_text(), folder=folder)
    assert not alone.model().kept


def test_synth_fits_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    for name in ("one.csv", "two.csv"):
        assert dpbayes("synth", "1", "--rows", 50, "--out", name, "--seed", 4).code == 0
    assert fits == [1]
    assert Path("one.csv").read_text() == Path("two.csv").read_text()
