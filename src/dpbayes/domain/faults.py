"""All that is wrong with a file, said at once: each fault with its line and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dpbayes.errors import DpbayesError, InvalidArgument, SchemaError

Place = tuple[str | int, ...]


class Faults:
    r"""Collects faults, and raises them together.

    Args:
        owner: who complains, as the first word of each message.
        lines: where each part of the file is written, from ``toml.places``; without it no lines are named.

    >>> faults = Faults("Request", {("level",): 3})
    >>> with faults.at("level"):
    ...     raise InvalidArgument("Request: expected level below 1, got 7. Write 0.95.")
    >>> faults.said
    ['line 3: expected level below 1, got 7. Write 0.95.']
    """

    def __init__(self, owner: str, lines: Mapping[Place, int] | None = None) -> None:
        self.found: list[tuple[str, Place]] = []
        self._owner, self._lines = owner, lines or {}

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Whatever is wrong in here is a fault of this part of the file; later parts are looked at all the same."""
        try:
            yield
        except (SchemaError, InvalidArgument) as problem:
            for message, inner in problem.parts or ((str(problem), ()),):
                self.add(message, *path, *inner)

    def add(self, message: str, *path: str | int) -> None:
        """One more fault; ``path`` says which part of the file it is in."""
        self.found.append((message, path))

    @property
    def said(self) -> list[str]:
        """The faults in the order of the file, each with its line."""
        listed = [(self._line(path), message.removeprefix(f"{self._owner}: ")) for message, path in self.found]
        listed.sort(key=lambda fault: fault[0] or 0)
        return [message if line is None else f"line {line}: {message}" for line, message in listed]

    def raise_all(self, kind: type[DpbayesError]) -> None:
        """Raise what was found: one fault as a sentence, several as a list with a line each."""
        if not self.found:
            return
        said = self.said
        listed = "".join(f"\n  {fault}" for fault in said)
        problem = kind(f"{self._owner}: {said[0] if len(said) == 1 else f'{len(said)} faults:{listed}'}")
        problem.parts = tuple(self.found)
        raise problem

    def _line(self, path: Place) -> int | None:
        """The line of a part, or of what it is part of."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None
