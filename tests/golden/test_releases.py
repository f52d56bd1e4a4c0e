"""What was published before the house was reshaped is read, verified and written again, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.golden.write_releases import AGAIN, HERE, drawn, folder_of, seeded
from tests.releases import ASKED, VERIFYING

from dpbayes import Ledger, Posterior, Release, verify
from dpbayes.release.products import complete

FOLDERS = sorted(each.parent.relative_to(HERE).as_posix() for each in HERE.rglob("release.json"))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A copy of the ledger that paid for them: looking at it may write beside it."""
    shutil.copytree(HERE / "people.ledger.draws", tmp_path / "people.ledger.draws")
    return Path(shutil.copy(HERE / "people.ledger", tmp_path))


def test_there_is_a_folder_of_every_kind() -> None:
    assert {folder_of(kind).name for kind in ASKED} <= set(FOLDERS)
    assert {f"seeded/{folder_of(kind).name}" for kind in AGAIN} <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    release = Release.load(HERE / name)
    assert release.to_json(beside=True) == (HERE / name / "release.json").read_text(encoding="utf-8")
    release.save(tmp_path / "again")
    numbers = sorted(each.name for each in (HERE / name).glob("*") if each.suffix in (".csv", ".json"))
    for file in set(numbers) - {"release.json"}:
        assert (tmp_path / "again" / file).read_bytes() == (HERE / name / file).read_bytes(), file


@pytest.mark.parametrize("name", [each for each in FOLDERS if not each.startswith("seeded/")])
def test_a_folder_is_verified_with_its_ledger(name: str, ledger: Path) -> None:
    folder = HERE / name
    wide = name == "wide"  # the charge notes the wide distribution, not each answer to it
    result = verify(Release.load(folder), folder=folder, ledger=None if wide else ledger)
    assert result.ok, str(result)


@pytest.mark.parametrize("name", VERIFYING)
def test_a_file_is_verified_and_written_again(name: str) -> None:
    text = (HERE / f"{name}.json").read_text(encoding="utf-8")
    release = Release.from_json(text)
    assert release.to_json() == text
    assert verify(release).ok
    assert Posterior(release).releases == (release,)


@pytest.mark.parametrize("kind", AGAIN)
def test_the_same_seed_draws_the_same_and_promises_the_same(kind: str, tmp_path: Path) -> None:
    then, now = Release.load(HERE / "seeded" / folder_of(kind).name), seeded(kind, tmp_path)
    assert drawn(now) == drawn(then)
    assert now.paid == then.paid
    assert now.promise == then.promise
    assert now.schema.digest == then.schema.digest
    for made, kept in zip(complete(now).tables, then.tables, strict=True):
        for name, product in kept.products.items():
            for part in ("values", "lower", "upper"):
                then_, now_ = getattr(product, part), getattr(made.products[name], part)
                assert (then_ is None) == (now_ is None)
                if then_ is not None:
                    np.testing.assert_allclose(now_, then_, rtol=1e-9, atol=1e-9)


def test_the_ledger_is_what_it_was(ledger: Path) -> None:
    account = Ledger(ledger).account("people")
    assert len(account.charges) == len(ASKED)
    assert account.spent == pytest.approx(5.397284102464054, rel=1e-9)
