"""TOML of schema and request files: read, written, and checked with all faults said at once, each with its line.

An unknown key is named, with the nearest valid one.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from difflib import get_close_matches
from typing import TypeVar

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument, SchemaError

Place = tuple[str | int, ...]

_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n|[^\n"\'#\[\]{}]+|.',
    re.DOTALL,
)
"""A text, a comment, a bracket, the end of a line, or something else."""

_KEY = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])+""")
"""What stands before the equals sign."""


def loads(text: str, *, owner: str = "Schema", error: type[DpbayesError] = SchemaError) -> dict[str, object]:
    """Parse TOML; the file is public, so the message may say where it went wrong."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        comma = re.search(r"=\s*([+-]?\d[\d.]*,\d[\w,+-]*)\s*(#.*)?$", text, re.MULTILINE)
        remedy = f" A number has a comma: got {comma[1]!r}.{checks.hint(comma[1])}" if comma else ""
        raise error(f"{owner}: this is not TOML: {problem}.{remedy}") from None
    except (ValueError, RecursionError):
        raise error(f"{owner}: cannot read this TOML: a number or a nesting is too large.") from None


def dumps(table: Mapping[str, object]) -> str:
    """Write plain keys first, then each list of tables as [[key]] sections."""
    lists = {key: value for key, value in table.items() if isinstance(value, list)}
    sections = {key: value for key, value in lists.items() if value and isinstance(value[0], dict)}
    lines = [f"{key} = {value_text(value)}" for key, value in table.items() if key not in sections]
    for key, entries in sections.items():
        for entry in entries:
            lines += ["", f"[[{key}]]", *(f"{key_text(name)} = {value_text(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def value_text(value: object) -> str:
    """One TOML value: text, a whole number, a float, a truth value, or a list or table of them."""
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    if isinstance(value, Mapping):
        listed = ", ".join(f"{_text(str(key))} = {value_text(item)}" for key, item in value.items())
        return "{ " + listed + " }" if listed else "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, (int, date)):
        return str(value)
    return _text(str(value))


def places(text: str) -> dict[Place, int]:
    r"""The line on which each key and section of a valid TOML text begins, counted from 1.

    >>> places('[[attribute]]\nname = "a"\nedges = [0,\n 1]\n[[attribute]]\nname = "b"')[("attribute", 1, "name")]
    6
    """
    found: dict[Place, int] = {}
    here: Place = ()
    many: dict[Place, int] = {}
    for line, statement in _statements(text):
        try:
            if statement.startswith("[["):
                name = _keys(f"{statement[1 : statement.index(']]') + 1]}")
                many[name] = many.get(name, -1) + 1
                here = (*name, many[name])
                found[here] = line
                found.setdefault(name, line)
            elif statement.startswith("["):
                here = _keys(statement)
                found[here] = line
            elif key := _KEY.match(statement):
                found[(*here, *_keys(f"{key[0]}= 0"))] = line
        except ValueError:  # nothing but a line number is lost
            continue
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with its line: a section's header, or a key with its value, which may go over many lines."""
    line, depth, start, parts = 1, 0, 1, list[str]()
    for piece in _PIECE.findall(text):
        if piece == "\n" and depth == 0:
            if statement := "".join(parts).strip():
                yield start, statement
            parts, start = [], line + 1
        elif not piece.startswith("#"):
            depth += (piece in "[{") - (piece in "]}") if len(piece) == 1 else 0
            parts.append(piece)
        line += piece.count("\n")
    if statement := "".join(parts).strip():
        yield start, statement


def _keys(statement: str) -> Place:
    """The names in a header or before an equals sign, in order."""
    table: object = tomllib.loads(statement)
    names = []
    while isinstance(table, dict) and table:
        (name, table), *_ = table.items()
        names.append(name)
    return tuple(names)


def key_text(key: str) -> str:
    """A key, in quotes if it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


T = TypeVar("T")


def checked_table(
    value: object, *, where: str, required: Iterable[str], optional: Iterable[str] = (), faults: Faults | None = None
) -> dict[str, object]:
    """A table that has all required keys and no unknown ones; with ``faults`` those are noted there, and left out."""
    if not isinstance(value, dict):
        raise SchemaError(f"Schema: expected {where} to be a table of keys.")
    needed, allowed, noted = tuple(required), (*required, *optional), faults or Faults("Schema")
    for key in value:
        if key not in allowed:
            noted.add(f"{where} has {unknown_key(str(key), allowed)}", str(key))
    for key in needed:
        if key not in value:
            noted.add(f"{where} lacks the key {key!r}. Add it.")
    if faults is None:
        noted.raise_all(SchemaError)
    return {key: item for key, item in value.items() if key in allowed}


def sections(
    table: Mapping[str, object], key: str, read: Callable[[object, Faults], T], faults: Faults
) -> tuple[T, ...]:
    """The sections of this name that are sound; of the others the faults."""
    entries, found = table.get(key, []), []
    if not isinstance(entries, list):
        faults.add(f"write each {key} as its own [[{key}]] section.", key)
        return ()
    for number, entry in enumerate(entries):
        with faults.at(key, number):
            inner = Faults("Schema")
            found.append(read(entry, inner))
            inner.raise_all(SchemaError)
    return tuple(found)


def unknown_key(key: str, allowed: Iterable[str]) -> str:
    """The rest of a sentence about a key that is not known, with the nearest one that is.

    >>> unknown_key("titel", ["title", "author"])
    "the unknown key 'titel'. Did you mean 'title'?"
    """
    known = tuple(allowed)
    near = get_close_matches(key, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Valid keys are {', '.join(known)}."
    return f"the unknown key {key!r}. {hint}"


def text_list(value: object, what: str) -> tuple[str, ...]:
    """A list of names."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SchemaError(f"Schema: expected {what} to be a list of names.")
    return tuple(value)


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
        self._owner, self.lines = owner, lines or {}

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
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None
