"""Reading and writing the part of TOML that schema and request files use, and finding the line of each key."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date

from dpbayes import _checks
from dpbayes.errors import DpbayesError, SchemaError

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
        remedy = f" A number has a comma: got {comma[1]!r}.{_checks.meant(comma[1])}" if comma else ""
        raise error(f"{owner}: this is not TOML: {problem}.{remedy}") from None
    except (ValueError, RecursionError):
        raise error(f"{owner}: cannot read this TOML: a number or a nesting is too large.") from None


def dumps(table: Mapping[str, object]) -> str:
    """Write plain keys first, then each list of tables as [[key]] sections."""
    sections = {key: value for key, value in table.items() if _is_section(value)}
    lines = [f"{key} = {value_text(value)}" for key, value in table.items() if key not in sections]
    for key, entries in sections.items():
        for entry in entries:  # type: ignore[attr-defined]
            lines += ["", f"[[{key}]]", *(f"{_key_text(name)} = {value_text(value)}" for name, value in entry.items())]
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


def _key_text(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_section(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
