"""The start folder: all that the studio may see or write lies in it, and what it finds there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.release.format import Release
from dpbayes.schema.schema import Schema
from dpbayes.tables.sources import file_source

T = TypeVar("T")

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq", ".duckdb")
HIDDEN = (".draws",)


class Folder:
    """A folder and what is in it. No name leads out of it, whether by dots or by links."""

    def __init__(self, start: str | Path) -> None:
        try:
            self.start = Path(start).resolve(strict=True)
        except OSError:
            raise InvalidArgument(f"studio: there is no folder {str(start)!r}.") from None
        if not self.start.is_dir():
            raise InvalidArgument(f"studio: {str(start)!r} is not a folder.")

    def inside(self, text: str) -> Path:
        """The real path of a name. Whether there is such a file is looked at only if it lies inside."""
        where: Path | None = None
        if text and "\x00" not in text and len(text) < 4096:
            try:
                where = (self.start / text).resolve()
            except (OSError, RuntimeError, ValueError):
                where = None
        if where is None or not where.is_relative_to(self.start):
            raise InvalidArgument(
                "studio: expected a path inside the start folder. Start the studio where the file is."
            )
        return where

    def name(self, path: Path) -> str:
        """A path as people write it: from the start folder on."""
        return path.relative_to(self.start).as_posix()

    def new_file(self, text: str, ending: str) -> str:
        """The name of a file that the studio may write: inside, with this ending, in a folder that is there."""
        path = self.inside(text)
        if not path.name.endswith(ending) or path.name == ending or not path.parent.is_dir():
            raise InvalidArgument(
                f"studio: expected the name of a file that ends in {ending}, in a folder that exists."
            )
        return self.name(path)

    def table(self, address: str) -> str:
        """An address that an engine can open: a file or pattern inside the folder, or a PostgreSQL database."""
        if re.match(r"postgres(ql)?://", address):
            if re.match(r"[^@/]*//[^/@]*:[^/]*@", address) or re.search(r"[?&](ssl)?password=", address):
                raise InvalidArgument(
                    "studio: leave the password out of the address. Set PGPASSWORD, or write it to ~/.pgpass."
                )
            return address
        if "://" in address:
            raise InvalidArgument(
                "studio: expected a file inside the start folder, or postgresql://user@host/database."
            )
        path, mark, options = address.partition("?")
        fixed = re.split(r"[*?\[]", path)[0]
        self.inside(fixed if fixed == path else fixed.rpartition("/")[0] or ".")
        real = str(self.inside(path)) if fixed == path else str(self.start / path)
        source = file_source(real + mark + options)
        for file in source.files:
            self.inside(file)
        return real + mark + options

    def ledger(self, address: str) -> str:
        """An address of a ledger, new or old: a file inside the folder, or a PostgreSQL database."""
        if "://" in address:
            return self.table(address)
        return str(self.start / self.new_file(address, ".ledger"))

    def files(self) -> Iterator[Path]:
        """Files up to three folders down, the first 5,000 in the order of their names; links are not followed."""
        seen = 0
        for where, folders, names in os.walk(self.start):
            depth = len(Path(where).relative_to(self.start).parts)
            keep = [each for each in sorted(folders) if not each.startswith(".") and not each.endswith(HIDDEN)]
            folders[:] = keep if depth < 3 else []
            for name in sorted(names):
                seen += 1
                if seen > 5_000:
                    return
                path = Path(where) / name
                if not name.startswith(".") and not path.is_symlink():
                    yield path

    def tables(self) -> list[str]:
        """Files that could be tables; synthetic and published ones lie beside a release and are left out."""
        found = [path for path in self.files() if path.name.lower().endswith(TABLES)]
        return [self.name(path) for path in found if not (path.parent / "release.json").exists()]

    def ledgers(self) -> list[str]:
        """The ledgers that are files."""
        return [self.name(path) for path in self.files() if path.suffix == ".ledger"]

    def schemas(self) -> dict[str, Schema]:
        """The schema files that can be read."""
        found: dict[str, Schema] = {}
        for path in self.files():
            if path.suffix == ".toml" and (schema := _read(Schema.load, path)) is not None:
                found[self.name(path)] = schema
        return found

    def releases(self) -> dict[str, Release]:
        """The releases, by their folder, the latest first."""
        found: dict[str, Release] = {}
        for path in self.files():
            if path.name == "release.json" and (release := _read(Release.load, path)) is not None:
                found[self.name(path.parent)] = release
        return dict(sorted(found.items(), key=lambda item: item[1].created, reverse=True))

    def release(self, name: str) -> Release:
        """A release that is in the folder."""
        found = self.releases()
        if name not in found:
            raise InvalidArgument("studio: there is no such release in the start folder.")
        return found[name]


@contextmanager
def writing() -> Iterator[None]:
    """Turns a refusal of the disk into a sentence; what must exist only once stays an error of its own."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as problem:
        raise InvalidArgument(f"studio: the start folder cannot be written to: {problem.strerror}.") from None


def _read(load: Callable[[Path], T], path: Path) -> T | None:
    """What is in a file, kept until the file changes; None if it cannot be read."""
    try:
        stamp = path.stat()
    except OSError:
        return None
    found: T | None = _load(load, path, stamp.st_mtime_ns, stamp.st_size)
    return found


@lru_cache(maxsize=512)
def _load(load: Callable[[Path], Any], path: Path, _time: int, _size: int) -> Any:
    try:
        return load(path)
    except DpbayesError:
        return None
