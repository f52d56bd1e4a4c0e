"""How a value in a table becomes text or a number: one rule, which every engine repeats.

Categories compare as text, code point by code point. Integers are written in plain digits, booleans as
``true`` and ``false``, dates as ``2026-01-31``, timestamps as ``2026-01-31 13:45:00`` in UTC with a fraction
only when there is one. A number with a fraction has no single text form, so a floating-point value matches
the first category that denotes the same number.

A date is a text ``2026-01-31``, perhaps followed by a time of day, or a column of dates or timestamps, which has that
text in UTC. Its number is 20260131, so that dates are cut at edges, years, quarters or months as any number is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from typing import Literal, get_args

import numpy as np

from dpbayes.base.errors import SchemaError

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


Period = Literal["year", "quarter", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)

_MONTHS = {"year": 12, "quarter": 3, "month": 1}

_DAY = "(0[1-9]|[12][0-9]"
_LEAP = "([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"

DATE_TEXT = (
    f"([0-9]{{4}}-((0[13578]|1[02])-{_DAY}|3[01])|(0[469]|11)-{_DAY}|30)|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
    "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?(Z|[+]00:?00)?)?"
)
"""Text that denotes a day, in a notation that all databases share; a time in another zone is no day of ours."""

_DATE_TEXT = re.compile(DATE_TEXT, re.ASCII)


def date_number(value: object) -> float | None:
    """20260131 for a date, a timestamp or a text of one; None for anything else.

    >>> date_number("2026-01-31T23:59:00Z"), date_number(date(1900, 3, 1)), date_number("2026-02-29"), date_number(7)
    (20260131.0, 19000301.0, None, None)
    """
    if not isinstance(value, (str, date)):
        return None
    text = text_of(value).strip(" ")
    if not _DATE_TEXT.fullmatch(text) or text.startswith("0000"):
        return None
    return float(text[:10].replace("-", ""))


def date_of(value: object) -> date:
    """A day as a schema states it: a date, or its text."""
    if isinstance(value, str):
        value = date.fromisoformat(value) if re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII) else None
    if type(value) is not date:
        raise ValueError("no date")
    return value


@lru_cache(maxsize=1024)
def date_cuts(dates: tuple[date, ...], period: Period | None) -> tuple[float, ...]:
    """The edges as numbers: the days themselves, or the first days of all periods from the first to the last of them.

    >>> date_cuts((date(2026, 1, 1), date(2026, 7, 1)), "quarter")
    (20260101.0, 20260401.0, 20260701.0)
    """
    days = dates if period is None else _starts(dates[0], dates[-1], _MONTHS[period])
    return tuple(float(each.year * 10_000 + each.month * 100 + each.day) for each in days)


@lru_cache(maxsize=1024)
def date_labels(dates: tuple[date, ...], period: Period | None) -> tuple[str, ...]:
    """A name for each piece.

    >>> half_year = (date(2026, 1, 1), date(2026, 7, 1))
    >>> date_labels(half_year, "quarter"), date_labels(half_year, None)
    (('2026-Q1', '2026-Q2'), ('[2026-01-01, 2026-07-01)',))
    """
    if period is None:
        return tuple(f"[{low.isoformat()}, {high.isoformat()})" for low, high in pairwise(dates))
    starts = _starts(dates[0], dates[-1], _MONTHS[period])[:-1]
    named = {
        "year": lambda start: f"{start.year:04d}",
        "quarter": lambda start: f"{start.year:04d}-Q{start.month // 3 + 1}",
        "month": lambda start: f"{start.year:04d}-{start.month:02d}",
    }
    return tuple(named[period](start) for start in starts)


def check_days(dates: Sequence[date], period: object) -> None:
    """Refuse days that do not increase, or a period whose ends are not first days of one."""
    if len(dates) < 2 or any(low >= high for low, high in pairwise(dates)):
        raise SchemaError("needs two dates or more, each after the one before it, as in [2020-01-01, 2025-01-01].")
    if period is None:
        return
    if period not in PERIODS:
        raise SchemaError(f"has period = {period!r}. Choose one of {', '.join(PERIODS)}.")
    if len(dates) > 2:
        raise SchemaError("has a period and more than two dates. Give the first day, and the day after the last one.")
    for each in dates:
        if each.day != 1 or (each.month - 1) % _MONTHS[str(period)]:
            raise SchemaError(f"has {each}, not the first day of a {period}. Start on one; end on the day after.")


def _starts(first: date, last: date, months: int) -> list[date]:
    begin, end = (each.year * 12 + each.month - 1 for each in (first, last))
    return [date(month // 12, month % 12 + 1, 1) for month in range(begin, end + 1, months)]
