"""All that is wrong with a file, said at once: each fault with its line and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dpbayes.errors import DpbayesError, InvalidArgument, SchemaError

Path = tuple[str | int, ...]


class Faults:
    r"""Collects faults, and raises them together.

    Args:
        owner: who complains, as the first word of each message.
        lines: where each part of the file is written, from ``toml.places``; without it no lines are named.

    >>> faults = Faults("Request", {("level",): 3})
    >>> with faults.at("level"):
    ...     raise InvalidArgument("Request: expected level below 1, got 7. Write 0.95.")
    >>> faults.found
    ['line 3: expected level below 1, got 7. Write 0.95.']
    """

    def __init__(self, owner: str, lines: Mapping[Path, int] | None = None) -> None:
        self.found: list[str] = []
        self._owner, self._lines = owner, lines or {}

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Whatever is wrong in here is a fault of this part of the file; later parts are looked at all the same."""
        try:
            yield
        except (SchemaError, InvalidArgument) as problem:
            self.add(str(problem), *path)

    def add(self, message: str, *path: str | int) -> None:
        """One more fault; ``path`` says which part of the file it is in."""
        said = message.removeprefix(f"{self._owner}: ")
        line = self._line(path)
        self.found.append(said if line is None else f"line {line}: {said}")

    def raise_all(self, kind: type[DpbayesError]) -> None:
        """Raise what was found: one fault as a sentence, several as a list with a line each."""
        if len(self.found) == 1:
            raise kind(f"{self._owner}: {self.found[0]}")
        if self.found:
            listed = "".join(f"\n  {fault}" for fault in self.found)
            raise kind(f"{self._owner}: {len(self.found)} faults:{listed}")

    def _line(self, path: Path) -> int | None:
        """The line of a part, or of what it is part of."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None
