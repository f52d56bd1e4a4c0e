"""A signature fits the release that it was made for, and nothing else; minisign's own signatures are read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.releases import a_release

from dpbayes import Release, verify
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.release.signature import _public, check_content, check_signature, new_key, sign
from dpbayes.report.folder import save

# The example on the page of minisign and in the tests of its other implementations: the four letters "test".
PUBLIC = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
BY_MINISIGN = """untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1633700835\tfile:test\tprehashed
wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==
"""


def test_a_signature_of_minisign_is_read() -> None:
    found = check_content(b"test", BY_MINISIGN, *_public(PUBLIC))
    assert found.key == "E7620F1842B4E81F"
    assert found.comment == "timestamp:1633700835\tfile:test\tprehashed"
    with pytest.raises(ReleaseError, match="does not fit"):
        check_content(b"Test", BY_MINISIGN, *_public(PUBLIC))
    with pytest.raises(ReleaseError, match="does not fit"):
        check_content(b"test", BY_MINISIGN.replace("file:test", "file:rest"), *_public(PUBLIC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(a_release("joint"), tmp_path / "out")
    return tmp_path / "out"


def test_a_signed_release_verifies_with_its_key_and_with_no_other(folder: Path, tmp_path: Path) -> None:
    secret, public = new_key(tmp_path / "office")
    _, other = new_key(tmp_path / "someone")
    assert sign(folder, secret).name == "release.json.minisig"
    for key in (public, public.read_text(), public.read_text().splitlines()[1]):
        assert "release.json" in check_signature(folder, key).comment
    read = Release.load(folder)
    assert verify(read, folder=folder, key=public).ok
    failed = [check for check in verify(read, folder=folder, key=other).checks if not check.passed]
    assert [check.name for check in failed] == ["signature"]
    assert "made with the key" in failed[0].detail


def test_a_change_of_the_release_or_of_its_signature_shows(folder: Path, tmp_path: Path) -> None:
    secret, public = new_key(tmp_path / "office")
    for file in (folder / "release.json", sign(folder, secret)):
        whole = file.read_bytes()
        for at in range(20, len(whole) - 1, max(len(whole) // 40, 1)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            untrusted = file.suffix == ".minisig" and at < whole.index(b"\n")
            if not untrusted:
                with pytest.raises(ReleaseError):
                    check_signature(folder, public)
        file.write_bytes(whole)
    assert check_signature(folder, public)


def test_a_release_without_a_signature_fails_when_a_key_is_given(folder: Path, tmp_path: Path) -> None:
    _, public = new_key(tmp_path / "office")
    found = verify(Release.load(folder), folder=folder, key=public)
    assert [check.name for check in found.checks if not check.passed] == ["signature"]
    assert verify(Release.load(folder), folder=folder).ok
    assert not verify(Release.load(folder), key=public).ok


def test_only_the_owner_can_read_a_secret_key_and_none_is_overwritten(tmp_path: Path) -> None:
    secret, _ = new_key(tmp_path / "office")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    with pytest.raises(InvalidArgument, match="is there already"):
        new_key(tmp_path / "office")


@pytest.mark.parametrize("text", ["", "x", "untrusted comment: x\nAAAA", "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0"])
def test_what_is_no_key_is_refused_in_one_sentence(text: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.key").write_text(text)
    with pytest.raises(ReleaseError, match=r"^Signature: "):
        sign(folder, tmp_path / "bad.key")
    with pytest.raises(ReleaseError, match=r"^Signature: "):
        check_signature(folder, text)


def test_a_damaged_secret_key_is_refused(folder: Path, tmp_path: Path) -> None:
    secret, _ = new_key(tmp_path / "office")
    lines = secret.read_text().splitlines()
    at = len(lines[1]) // 2
    lines[1] = lines[1][:at] + ("A" if lines[1][at] != "A" else "B") + lines[1][at + 1 :]
    secret.write_text("\n".join(lines))
    with pytest.raises(ReleaseError, match="checksum"):
        sign(folder, secret)
