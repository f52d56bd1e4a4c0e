"""How a value in a table becomes text or a number: one rule, which every engine repeats.

Categories compare as text, code point by code point. Integers are written in plain digits, booleans as
``true`` and ``false``, dates as ``2026-01-31``, timestamps as ``2026-01-31 13:45:00`` in UTC with a fraction
only when there is one. A number with a fraction has no single text form, so a floating-point value matches
the first category that denotes the same number.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real

import numpy as np

DECIMAL_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Text that denotes a number; anything else in a numeric column is unknown."""

_DECIMAL_NUMBER = re.compile(DECIMAL_NUMBER, re.ASCII)


_PLAIN = (str, int, float, Decimal, date, type(None))


def plain(value: object) -> object:
    r"""What one value is read as, whatever stands around it: a text, a number, a date or None.

    NumPy's scalars are what is in them, bytes are texts in UTF-8, and any other object is its own text.

    >>> plain(np.int8(7)), plain(b"F"), plain(b"caf\xe9"), plain([1])
    (7, 'F', 'caf\\xe9', '[1]')
    """
    if isinstance(value, _PLAIN) or is_missing(value):
        return value
    if isinstance(value, np.datetime64):
        found = value.astype("datetime64[us]").item()
        return str(value) if isinstance(found, int) else found  # a day that Python has no date for
    if isinstance(value, np.generic) and type(value.item()) is not type(value):
        return plain(value.item())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode(errors="backslashreplace")
    number = number_of(value)
    return text_of(value) if number is None else number


def text_or_none(value: object) -> str | None:
    """The text of a value as every engine can hold it; None if it is missing."""
    known = plain(value)
    return None if is_missing(known) else text_of(known).encode(errors="backslashreplace").decode()


def is_missing(value: object) -> bool:
    """None, NaN, and the NA and NaT of pandas."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def number_in(text: str) -> float | None:
    """The number that a text denotes, or None.

    >>> number_in(" 1.5e3 "), number_in("1,5"), number_in("inf")
    (1500.0, None, None)
    """
    stripped = text.strip(" ")
    return float(stripped) if _DECIMAL_NUMBER.fullmatch(stripped) else None


def number_of(value: object) -> float | None:
    """The number that a value denotes, or None: what is no number is never quoted in an error, it is unknown.

    >>> number_of(Decimal("1.5")), number_of("1.5"), number_of(b"1.5"), number_of(10**400), number_of(date(2026, 1, 31))
    (1.5, 1.5, None, None, None)
    """
    if isinstance(value, str):
        return number_in(value)
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    try:
        return float(value)
    except Exception:  # too large, or a number of the caller's own
        return None


def text_of(value: object) -> str:
    """The text of a value that is not missing.

    >>> text_of(7), text_of(7.0), text_of(True), text_of(date(2026, 1, 31))
    ('7', '7', 'true', '2026-01-31')
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        clock = _in_utc(value)
        text = clock.isoformat(sep=" ")
        return text.rstrip("0") if clock.microsecond else text
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (float, Decimal)):
        number = float(value)
        return str(int(value)) if math.isfinite(number) and value == int(value) else repr(number)
    try:
        return str(value)
    except Exception:  # whatever it says may quote the value: too many digits, or an object of the caller's own
        return f"({type(value).__name__})"


def _in_utc(clock: datetime) -> datetime:
    try:
        return clock.astimezone(UTC).replace(tzinfo=None) if clock.tzinfo else clock
    except (OverflowError, ValueError):  # at the ends of the calendar
        return clock.replace(tzinfo=None)
