"""Counting by hand, one row at a time: what every engine must agree with. Shares no code with the library."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
from collections import Counter
from decimal import Decimal

import numpy as np

UNKNOWN_LABEL = {"other": "other", "drop": "(dropped)", "refuse": "(dropped)"}
MISSING_LABEL = {"other": "other", "drop": "(dropped)", "category": "missing"}
NOT_A_NUMBER = object()
NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")


def declared_labels(attribute):
    if attribute.categories:
        return list(attribute.categories)
    return list(range(len(attribute.edges or days_of(attribute)) - 1))


def labels(attribute):
    declared = declared_labels(attribute)
    extra = {UNKNOWN_LABEL.get(attribute.unknown), MISSING_LABEL.get(attribute.missing)}
    return declared + [label for label in ("missing", "other", "(dropped)") if label in extra - set(declared)]


def label(attribute, value):
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)):
        return MISSING_LABEL.get(attribute.missing, attribute.missing)
    kind = bin_of if attribute.edges else piece_of if attribute.dates else category_of
    found = kind(attribute, value)
    if found is NOT_A_NUMBER:
        return MISSING_LABEL.get(attribute.missing, attribute.missing)
    return UNKNOWN_LABEL.get(attribute.unknown, attribute.unknown) if found is None else found


@functools.cache
def days_of(attribute):
    """The first day of every piece, and the day after the last one, found by walking through the calendar."""
    if attribute.period is None:
        return attribute.dates
    starts = {"year": (1,), "quarter": (1, 4, 7, 10), "month": range(1, 13)}[attribute.period]
    first, last = attribute.dates
    walk = (first + datetime.timedelta(days=step) for step in range((last - first).days + 1))
    return [day for day in walk if day.day == 1 and day.month in starts]


def piece_of(attribute, value):
    if isinstance(value, datetime.datetime):
        day = (value.astimezone(datetime.UTC) if value.tzinfo else value).date()
    elif isinstance(value, datetime.date):
        day = value
    else:
        text = value.strip(" ").replace("T", " ")
        if not re.fullmatch(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|\+00:?00)?)?", text
        ):
            return None
        try:
            day = datetime.date.fromisoformat(text[:10])
            datetime.time.fromisoformat(text[11:16] or "00:00")
        except ValueError:
            return None
        if text[11:13] == "24":
            return None
    for position, (low, high) in enumerate(itertools.pairwise(days_of(attribute))):
        if low <= day < high:
            return position
    return None


def bin_of(attribute, value):
    if isinstance(value, str):
        if value.strip(" ").lower() == "nan":
            return NOT_A_NUMBER
        if not NUMBER.fullmatch(value):
            return None
    number = float(value)
    if math.isinf(number):
        return None
    for position, (low, high) in enumerate(itertools.pairwise(attribute.edges)):
        if low <= number < high:
            return position
    return None


def category_of(attribute, value):
    means = {}
    for category in attribute.categories:
        for text in dict(attribute.codes).get(category, (category,)):
            means[text] = category
    if isinstance(value, (float, Decimal)):
        for text, category in means.items():
            if NUMBER.fullmatch(text) and float(text) == float(value):
                return category
        return None
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, datetime.datetime):
        text = str(value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value)
        text = text.rstrip("0") if "." in text else text
    else:
        text = str(value)
    return means.get(text)


def count(schema, marginal, rows):
    """The table of one marginal over rows given as dictionaries."""
    attributes = [schema[name] for name in (*marginal.given, *marginal.of)]
    axes = [labels(attribute) for attribute in attributes]
    found = Counter(tuple(label(attribute, row[attribute.name]) for attribute in attributes) for row in rows)
    return np.array([found[cell] for cell in itertools.product(*axes)]).reshape([len(axis) for axis in axes])
