"""Files that are on disk when a call returns, and appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write(path: Path, content: str | bytes | Callable[[Path], object], *, private: bool = False) -> None:
    """Write a file beside its final name, flush it, rename it into place; ``private`` ones are their owner's only."""
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
        if callable(content):
            content(beside)
        else:
            beside.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(beside)
        beside.replace(path)
        flush(path.absolute().parent)
    finally:
        beside.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
