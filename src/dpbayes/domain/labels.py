"""How levels read to people: "65 and over" for [65, inf). The one place where a level gets its words."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from itertools import pairwise

from dpbayes.domain.attribute import DROPPED, MISSING, OTHER, Attribute

RESERVED = {DROPPED: "dropped", MISSING: "not stated", OTHER: "other"}
"""Levels that nobody declared, in words."""


def labels(attribute: Attribute) -> tuple[str, ...]:
    """The levels of an attribute for people, in the order of the axis: its labels, where the schema has them.

    A bin says where it ends: a schema does not know whether a column holds whole numbers only, and 79.5 is in [60, 80).
    It may give labels of its own. No two levels read the same.

    >>> labels(Attribute(name="age", edges=(float("-inf"), 18, 25, 65, float("inf"))))
    ('under 18', '18 to under 25', '25 to under 65', '65 and over', 'not stated', 'other')
    >>> labels(Attribute(name="pay", edges=(0, 0.5, 15000, 30000), unknown="drop"))
    ('0 to under 0.5', '0.5 to under 15,000', '15,000 to under 30,000', 'not stated', 'dropped')
    >>> labels(Attribute(name="sex", categories=("1", "2"), labels={"1": "male", "2": "female"}))
    ('male', 'female', 'not stated', 'other')
    """
    said, levels = dict(attribute.labels), attribute.levels
    declared = _declared(attribute)
    words = [*declared, *(RESERVED[level] for level in levels[len(declared) :])]
    found = [said.get(level, word) for level, word in zip(levels, words, strict=True)]
    times = Counter(found)
    taken = {word for word in found if times[word] == 1}
    for place, word in enumerate(found):
        if times[word] > 1:
            found[place] = _free(f"{word} ({levels[place]})", taken)
            taken.add(found[place])
    return tuple(found)


def _declared(attribute: Attribute) -> tuple[str, ...]:
    if attribute.dates and attribute.period is None:
        last = [day - timedelta(days=1) for day in attribute.dates[1:]]
        return tuple(f"{low} to {high}" for low, high in zip(attribute.dates, last, strict=False))
    if not attribute.edges:
        return attribute.declared
    return tuple(_bin(low, high) for low, high in pairwise(attribute.edges))


def _bin(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(low):
        return f"under {number(high)}"
    if math.isinf(high):
        return f"{number(low)} and over"
    return f"{number(low)} to under {number(high)}"


def number(value: float) -> str:
    """A number of a schema for people; years keep their four digits together.

    >>> number(1990.0), number(15000.0), number(-0.25)
    ('1990', '15,000', '−0.25')
    """
    text = f"{int(value)}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    if value.is_integer() and 1e4 <= abs(value) < 1e15:
        text = f"{int(value):,}"
    return text.replace("-", "−", 1) if value < 0 else text


def _free(word: str, taken: set[str]) -> str:
    """The word, with apostrophes until no other level has it."""
    while word in taken:
        word += "'"
    return word
