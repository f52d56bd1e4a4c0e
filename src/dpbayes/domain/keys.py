"""Reading tables of keys strictly: an unknown key is named, with the nearest valid one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from dpbayes.domain.faults import Faults
from dpbayes.errors import SchemaError

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
