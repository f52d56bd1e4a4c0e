"""Dates cut into years, quarters, months or at days of one's own: one rule, which every engine repeats.

A date is a text ``2026-01-31``, perhaps followed by a time of day, or a column of dates or timestamps, which has that
text in UTC. Its number is 20260131, so that dates are cut at edges as any number is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args

from dpbayes.domain.values import text_of
from dpbayes.errors import SchemaError

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


def day(value: object) -> date:
    """A day as a schema states it: a date, or its text."""
    if isinstance(value, str):
        value = date.fromisoformat(value) if re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII) else None
    if type(value) is not date:
        raise ValueError("no date")
    return value


@lru_cache(maxsize=1024)
def cuts(dates: tuple[date, ...], period: Period | None) -> tuple[float, ...]:
    """The edges as numbers: the days themselves, or the first days of all periods from the first to the last of them.

    >>> cuts((date(2026, 1, 1), date(2026, 7, 1)), "quarter")
    (20260101.0, 20260401.0, 20260701.0)
    """
    days = dates if period is None else _starts(dates[0], dates[-1], _MONTHS[period])
    return tuple(float(each.year * 10_000 + each.month * 100 + each.day) for each in days)


@lru_cache(maxsize=1024)
def labels(dates: tuple[date, ...], period: Period | None) -> tuple[str, ...]:
    """A name for each piece.

    >>> labels((date(2026, 1, 1), date(2026, 7, 1)), "quarter"), labels((date(2026, 1, 1), date(2026, 7, 1)), None)
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
            raise SchemaError(f"has the date {each.isoformat()}, which is not the first day of a {period}. Move it.")


def _starts(first: date, last: date, months: int) -> list[date]:
    begin, end = (each.year * 12 + each.month - 1 for each in (first, last))
    return [date(month // 12, month % 12 + 1, 1) for month in range(begin, end + 1, months)]
