"""Reading and writing the part of TOML that schema files use."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

from dpbayes.errors import SchemaError


def loads(text: str) -> dict[str, object]:
    """Parse TOML; a schema is public, so the message may say where it went wrong."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"Schema: this is not TOML: {error}.") from None
    except (ValueError, RecursionError):
        raise SchemaError("Schema: cannot read this TOML: a number or a nesting is too large.") from None


def dumps(table: Mapping[str, object]) -> str:
    """Write plain keys first, then each list of tables as [[key]] sections."""
    sections = {key: value for key, value in table.items() if _is_section(value)}
    lines = [f"{key} = {value_text(value)}" for key, value in table.items() if key not in sections]
    for key, entries in sections.items():
        for entry in entries:  # type: ignore[attr-defined]
            lines += ["", f"[[{key}]]", *(f"{name} = {value_text(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def value_text(value: object) -> str:
    """One TOML value: text, a whole number, a float or a list of them."""
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_section(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
