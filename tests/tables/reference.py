"""Counting by hand, one row at a time: what every engine must agree with. Shares no code with the library."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections import Counter
from decimal import Decimal

import numpy as np

UNKNOWN_LABEL = {"other": "other", "drop": "(dropped)"}
MISSING_LABEL = {"other": "other", "drop": "(dropped)", "category": "missing"}
NOT_A_NUMBER = object()
NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")


def declared_labels(attribute):
    if attribute.categories:
        return list(attribute.categories)
    return list(range(len(attribute.edges) - 1))


def labels(attribute):
    declared = declared_labels(attribute)
    extra = {UNKNOWN_LABEL[attribute.unknown], MISSING_LABEL[attribute.missing]}
    return declared + [label for label in ("missing", "other", "(dropped)") if label in extra - set(declared)]


def label(attribute, value):
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)):
        return MISSING_LABEL[attribute.missing]
    found = bin_of(attribute, value) if attribute.edges else category_of(attribute, value)
    if found is NOT_A_NUMBER:
        return MISSING_LABEL[attribute.missing]
    return UNKNOWN_LABEL[attribute.unknown] if found is None else found


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
    if isinstance(value, (float, Decimal)):
        for category in attribute.categories:
            if NUMBER.fullmatch(category) and float(category) == float(value):
                return category
        return None
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, datetime.datetime):
        text = str(value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value)
        text = text.rstrip("0") if "." in text else text
    else:
        text = str(value)
    return text if text in attribute.categories else None


def count(schema, marginal, rows):
    """The table of one marginal over rows given as dictionaries."""
    attributes = [schema[name] for name in (*marginal.given, *marginal.of)]
    axes = [labels(attribute) for attribute in attributes]
    found = Counter(tuple(label(attribute, row[attribute.name]) for attribute in attributes) for row in rows)
    return np.array([found[cell] for cell in itertools.product(*axes)]).reshape([len(axis) for axis in axes])
