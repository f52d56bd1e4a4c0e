"""Reading tables of keys strictly: an unknown key is named, with the nearest valid one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from dpbayes.errors import SchemaError


def checked_table(
    value: object, *, where: str, required: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, object]:
    """A table that has all required keys and no unknown ones."""
    if not isinstance(value, dict):
        raise SchemaError(f"Schema: expected {where} to be a table of keys.")
    needed, allowed = tuple(required), (*required, *optional)
    for key in value:
        if key not in allowed:
            raise SchemaError(f"Schema: {where} has {unknown_key(str(key), allowed)}")
    for key in needed:
        if key not in value:
            raise SchemaError(f"Schema: {where} lacks the key {key!r}. Add it.")
    return value


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
