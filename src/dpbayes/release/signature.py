"""Signatures of releases: who published this file? Ed25519 with local keys, in the file format of minisign.

A signature is over ``release.json``, which holds the hash of every file beside it. ``minisign -Vm release.json`` checks
it too. Nothing here needs a network. The arithmetic is that of ``cryptography`` (extra ``sign``).

Source: the file formats at https://jedisct1.github.io/minisign (public key, secret key without password, prehashed
signature with a trusted comment).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpbayes.base.errors import InvalidArgument, MissingExtra, ReleaseError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SUFFIX = ".minisig"

KEY, PREHASHED, NO_PASSWORD, CHECKSUM = b"Ed", b"ED", b"\0\0", b"B2"
ID, SIGNATURE, SALT = 8, 64, 32 + 8 + 8

_UNTRUSTED, _TRUSTED = "untrusted comment: ", "trusted comment: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A signature that fits: by which key, and what its signer wrote beside it."""

    key: str
    comment: str


def key_name(number: bytes) -> str:
    """The id of a key as minisign prints it."""
    return number[::-1].hex().upper()


def new_key(path: str | Path) -> tuple[Path, Path]:
    """Make a key pair: ``path`` with ``.key``, which only its owner may read, and ``.pub`` for everyone."""
    secret, public = Path(f"{path}.key"), Path(f"{path}.pub")
    made, number = _ed25519().generate(), secrets.token_bytes(ID)
    seed, open_part = made.private_bytes_raw(), made.public_key().public_bytes_raw()
    whole = seed + open_part
    check = hashlib.blake2b(KEY + number + whole, digest_size=32).digest()
    hidden = KEY + NO_PASSWORD + CHECKSUM + bytes(SALT) + number + whole + check
    name = key_name(number)
    try:
        for file in (secret, public):
            if file.exists():
                raise InvalidArgument(f"sign: {str(file)!r} is there already. Name another key.")
        handle = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(_text(f"{_UNTRUSTED}dpbayes secret key {name}, without password", hidden))
        public.write_text(_text(f"{_UNTRUSTED}dpbayes public key {name}", KEY + number + open_part), encoding="utf-8")
    except OSError as problem:
        raise InvalidArgument(f"sign: cannot write {str(path)!r}: {problem.strerror}.") from None
    return secret, public


def sign(folder: str | Path, key: str | Path, *, comment: str = "") -> Path:
    """Sign the release in a folder with a secret key; return the signature's path."""
    file = _release_file(folder)
    number, made = _secret(key)
    content = _read(file)
    if len(comment.splitlines()) > 1 or not comment.isprintable():
        raise InvalidArgument("sign: expected a comment of one line.")
    trusted = comment or f"file:{file.name}\tsha256:{hashlib.sha256(content).hexdigest()}"
    signature = made.sign(hashlib.blake2b(content).digest())
    all_of_it = made.sign(signature + trusted.encode())
    lines = [
        f"{_UNTRUSTED}signature by dpbayes, key {key_name(number)}",
        _base64(PREHASHED + number + signature),
        f"{_TRUSTED}{trusted}",
        _base64(all_of_it),
    ]
    target = file.with_name(file.name + SUFFIX)
    try:
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as problem:
        raise InvalidArgument(f"sign: cannot write {str(target)!r}: {problem.strerror}.") from None
    return target


def check_signature(folder: str | Path, key: str | Path) -> Signed:
    """Check the signature of the release in a folder against a public key: its file, or the text of the key itself."""
    file = _release_file(folder)
    number, public = _public(key)
    return check_content(
        _read(file), _read(file.with_name(file.name + SUFFIX)).decode("utf-8", "replace"), number, public
    )


def check_content(content: bytes, signature: str, number: bytes, public: Ed25519PublicKey) -> Signed:
    """Check a signature of this content; whatever does not fit is refused."""
    from cryptography.exceptions import InvalidSignature

    lines = signature.splitlines()
    if len(lines) < 4 or not lines[0].startswith(_UNTRUSTED) or not lines[2].startswith(_TRUSTED):
        raise ReleaseError("Signature: the file is not a minisign signature.")
    found, trusted = _bytes(lines[1], 2 + ID + SIGNATURE), lines[2].removeprefix(_TRUSTED)
    kind, by, made = found[:2], found[2 : 2 + ID], found[2 + ID :]
    if kind != PREHASHED:
        raise ReleaseError("Signature: expected a prehashed signature, as minisign makes by default.")
    if by != number:
        raise ReleaseError(f"Signature: it was made with the key {key_name(by)}, not with {key_name(number)}.")
    try:
        public.verify(made, hashlib.blake2b(content).digest())
        public.verify(_bytes(lines[3], SIGNATURE), made + trusted.encode())
    except InvalidSignature:
        raise ReleaseError("Signature: it does not fit. The release, or its signature, was changed.") from None
    return Signed(key=key_name(by), comment=trusted)


def _public(key: str | Path) -> tuple[bytes, Ed25519PublicKey]:
    """The id and the public key, from a file or from the text itself."""
    _ed25519()
    text = str(key)
    if len(text) < 200 and Path(text).exists():
        text = _read(Path(text)).decode("utf-8", "replace")
    whole = _bytes(text.strip().splitlines()[-1] if text.strip() else "", 2 + ID + 32)
    if whole[:2] != KEY:
        raise ReleaseError("Signature: expected a public key of minisign, or its file.")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return whole[2 : 2 + ID], Ed25519PublicKey.from_public_bytes(whole[2 + ID :])


def _secret(key: str | Path) -> tuple[bytes, Ed25519PrivateKey]:
    private = _ed25519()
    lines = _read(Path(key)).decode("utf-8", "replace").strip().splitlines()
    whole = _bytes(lines[-1] if lines else "", 6 + SALT + ID + 64 + 32, "a secret key of minisign")
    if whole[:2] != KEY or whole[4:6] != CHECKSUM:
        raise ReleaseError("Signature: expected a secret key of minisign, as in office.key; office.pub is public.")
    if whole[2:4] != NO_PASSWORD:
        raise ReleaseError(
            "Signature: the key has a password. Sign with minisign itself, or make a key with dpbayes keys."
        )
    number, hidden = whole[6 + SALT : 6 + SALT + ID], whole[6 + SALT + ID : -32]
    if hashlib.blake2b(KEY + number + hidden, digest_size=32).digest() != whole[-32:]:
        raise ReleaseError("Signature: the secret key is damaged: its checksum does not fit.")
    return number, private.from_private_bytes(hidden[:32])


def _ed25519() -> type[Ed25519PrivateKey]:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise MissingExtra("sign: cryptography is not installed. Install dpbayes[sign].") from None
    return Ed25519PrivateKey


def _release_file(folder: str | Path) -> Path:
    where = Path(folder)
    return where / "release.json" if where.is_dir() else where


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise ReleaseError(
            f"Signature: cannot read {str(file)!r}: {problem.strerror}. `dpbayes keys` makes keys."
        ) from None


def _bytes(text: str, size: int, what: str = "a key or signature of minisign") -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != size:
        raise ReleaseError(f"Signature: expected {what}.")
    return found


def _text(comment: str, content: bytes) -> str:
    return f"{comment}\n{_base64(content)}\n"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
