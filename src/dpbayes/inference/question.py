"""A small language for questions: sums, differences, products and ratios of counts and shares.

    question   = product {("+" | "-") product}
    product    = factor {("*" | "/") factor}
    factor     = "-" factor | "(" question ")" | number | count | share
    count      = "count" "(" [conditions] ")"
    share      = "share" "(" conditions ["|" conditions] ")"
    conditions = condition {"," condition}
    condition  = name ("=" | "!=") level | name "in" "(" level {"," level} ")"

A question is read into a tree; nothing in it is ever executed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from dpbayes.base.errors import InvalidArgument

OWNER = "ask"

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<sign>!=|[-+*/(),=|])|(?P<word>[^\s'"(),=|!+*/]+))"""
)


@dataclass(frozen=True, slots=True)
class Condition:
    """An attribute that has one of the levels, or none of them."""

    name: str
    levels: tuple[str, ...]
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Atom:
    """``count(of)``, ``share(of)`` or ``share(of | given)``."""

    kind: Literal["count", "share"]
    of: tuple[Condition, ...]
    given: tuple[Condition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Two parts joined by + − * /."""

    sign: str
    left: Node
    right: Node


Node = Atom | Operation | float
T = TypeVar("T")


def read(question: str) -> Node:
    """The tree of a question; what cannot be read is refused with its place.

    >>> read("2 * count(sex='male')")
    Operation(sign='*', left=2.0, right=Atom(kind='count', of=(Condition(name='sex', levels=('male',), ...
    """
    if not isinstance(question, str):
        raise InvalidArgument(f"{OWNER}: expected a question as text, such as share(sex='male').")
    return _Reader(question).whole()


class _Reader:
    """Recursive descent: sums of products of factors."""

    def __init__(self, question: str) -> None:
        self.question, self.depth, self.powers = question, 0, 0.0
        self.tokens: list[tuple[str, str, int]] = []
        place = 0
        while question[place:].strip():
            found = _TOKEN.match(question, place)
            if found is None or found.end() == place:
                raise self._wrong(place, "cannot read on")
            kind = str(found.lastgroup)
            self.tokens.append((kind, found.group(kind), found.start(kind)))
            place = found.end()
        self.tokens.append(("end", "", len(question)))
        self.at = 0

    def whole(self) -> Node:
        node = self._sum()
        if self.tokens[self.at][0] != "end":
            raise self._wrong(self.tokens[self.at][2], "expected + - * / or the end")
        return node

    def _sum(self) -> Node:
        return self._joined("+-", lambda: self._joined("*/", self._factor))

    def _joined(self, signs: str, part: Callable[[], Node]) -> Node:
        node = part()
        while self._sign() and self._sign() in signs:
            node = Operation(self._next(), node, part())
        return node

    def _factor(self) -> Node:
        kind, text, place = self.tokens[self.at]
        self.depth += 1
        if self.depth > 50:
            raise self._wrong(place, "expected at most 50 parts inside each other")
        try:
            if text == "-":
                self.at += 1
                return Operation("-", 0.0, self._factor())
            if text == "(":
                self.at += 1
                node = self._sum()
                self._expect(")")
                return node
            if kind == "word" and text in ("count", "share"):
                self.at += 1
                return self._atom("count" if text == "count" else "share")
            if kind == "word" and re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
                self.at += 1
                number = float(text)
                self.powers += abs(math.log10(number)) if number else 0.0
                if self.powers > 100:  # powers of ten of all numbers together: nothing overflows
                    raise self._wrong(place, "the numbers lead beyond 10⁻¹⁰⁰ to 10¹⁰⁰")
                return number
        finally:
            self.depth -= 1
        raise self._wrong(place, "expected count(…), share(…), a number or a parenthesis")

    def _atom(self, kind: Literal["count", "share"]) -> Atom:
        start = self.tokens[self.at][2]
        self._expect("(")
        of = self._conditions() if self._sign() not in (")", "|") else ()
        given = None
        if self._sign() == "|":
            self.at += 1
            given = self._conditions()
        self._expect(")")
        if kind == "count" and given is not None:
            raise self._wrong(start, "expected a count without |; a bar belongs in share(… | …)")
        if kind == "share" and not of:
            raise self._wrong(start, "expected a condition, as in share(sex='male')")
        names = [each.name for each in (*of, *(given or ()))]
        for name in names:
            if names.count(name) > 1:
                raise self._wrong(start, f"{name!r} is named twice; use in ('…', '…') for several levels")
        return Atom(kind, of, given)

    def _conditions(self) -> tuple[Condition, ...]:
        return self._listed(self._condition)

    def _listed(self, part: Callable[[], T]) -> tuple[T, ...]:
        """One part, or several with commas between."""
        found = [part()]
        while self._sign() == ",":
            self.at += 1
            found.append(part())
        return tuple(found)

    def _condition(self) -> Condition:
        name = self._value("the name of an attribute")
        kind, text, place = self.tokens[self.at]
        if text in ("=", "!="):
            self.at += 1
            return Condition(name, (self._value("a level"),), text == "!=")
        if kind == "word" and text == "in":
            self.at += 1
            self._expect("(")
            levels = self._listed(lambda: self._value("a level"))
            self._expect(")")
            return Condition(name, levels)
        more = "" if text == ")" else f", or quotes around all words of a name that begins {name!r},"
        raise self._wrong(place, f"expected =, != or in{more}")

    def _value(self, what: str) -> str:
        kind, text, place = self.tokens[self.at]
        if kind not in ("text", "word"):
            raise self._wrong(place, f"expected {what}")
        self.at += 1
        return text[1:-1].replace(text[0] * 2, text[0]) if kind == "text" else text

    def _sign(self) -> str:
        kind, text, _ = self.tokens[self.at]
        return text if kind == "sign" else ""

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def _expect(self, sign: str) -> None:
        if self._sign() != sign:
            raise self._wrong(self.tokens[self.at][2], f"expected {sign}")
        self.at += 1

    def _wrong(self, place: int, what: str) -> InvalidArgument:
        return InvalidArgument(f"{OWNER}: {what} at character {place + 1} of {self.question!r}.")
