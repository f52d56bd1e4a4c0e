"""SQL that turns columns into codes and codes into keys. The rule for values is that of ``schema.values``.

What is the same in every database is written here once; what differs is a ``Dialect`` of ``tables.dialects``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.values import DATE_TEXT, DECIMAL_NUMBER, number_in
from dpbayes.tables.engine import Kind
from dpbayes.tables.packing import PackedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one database says what every encoding needs; each function takes SQL and gives SQL."""

    kinds: tuple[tuple[str, Kind], ...]
    """Patterns of the names of types, and what they mean to a schema."""

    text_type: str
    double_type: str
    literal: Callable[[str], str]
    """A quoted text."""

    double_of: Callable[[str, str], str]
    """The double of a column of numbers, given its type."""

    text_of: Callable[[str, str], str]
    """The text of a column that holds no fractions, given its type."""

    without_nan: Callable[[str], str]
    """A double, with NULL in place of NaN."""

    matches: Callable[[str, str], str]
    """Whether a whole text matches a pattern, given as a quoted text."""

    double_in: Callable[[str], str]
    """The double that a text denotes which matches ``DECIMAL_NUMBER``; infinity where there is none."""

    listed: Callable[[str, Sequence[str], str, Attribute], str]
    """The code of a value among listed ones, given their SQL and their type."""

    binned: Callable[[str, Attribute], str] | None = None
    """The code of a double among edges, where the database has something faster than comparisons."""

    def kind(self, column_type: str) -> Kind:
        """What a type of this database means to a schema."""
        for pattern, kind in self.kinds:
            if re.fullmatch(pattern, column_type, re.DOTALL):
                return kind
        return Kind.UNSUPPORTED

    def double(self, number: float) -> str:
        """A number."""
        return f"CAST('{number!r}' AS {self.double_type})"

    def text(self, column: str, column_type: str) -> str:
        """The text of a column, by the rule that all engines share."""
        if self.kind(column_type) is not Kind.NUMBER:
            return self.text_of(column, column_type)
        number = self._number(column, column_type)
        small = f"CASE WHEN abs({number}) < 1e15 THEN {number} END"  # elsewhere a database may refuse to round it
        return (
            f"CASE WHEN {small} = floor({small}) THEN CAST(CAST({small} AS BIGINT) AS {self.text_type}) "
            f"ELSE CAST({number} AS {self.text_type}) END"
        )

    def value(self, column: str, column_type: str, attribute: Attribute) -> str:
        """What a code is looked up from: text, or a double: NULL is missing, infinity unknown."""
        kind = self.kind(column_type)
        if kind is Kind.NUMBER:
            return self._number(column, column_type)
        text = self.text(column, column_type)
        if attribute.categories:
            return text
        if attribute.dates:
            return self._day(column, f"trim({text})")
        if kind is Kind.INTEGER:
            return f"CAST({column} AS {self.double_type})"
        trimmed = f"trim({text})"
        return (
            f"CASE WHEN {self.matches(trimmed, self.literal(DECIMAL_NUMBER))} THEN {self.double_in(trimmed)} "
            f"WHEN {column} IS NOT NULL AND lower({trimmed}) <> 'nan' THEN {self.double(math.inf)} END"
        )

    def code(self, value: str, column_type: str, attribute: Attribute) -> str:
        """One more than the code of each row: the position among the declared values, counted from one."""
        if attribute.cuts:
            return (self.binned or self._compared)(value, attribute)
        if self.kind(column_type) is Kind.NUMBER:
            # NaN is not among the values, so it can stand for categories that are not numbers.
            numbers = [number_in(text) for text in attribute.texts]
            items = [self.double(math.nan if number is None else number) for number in numbers]
            return self.listed(value, items, self.double_type, attribute)
        return self.listed(value, [self.literal(text) for text in attribute.texts], self.text_type, attribute)

    def _number(self, column: str, column_type: str) -> str:
        return self.without_nan(self.double_of(column, column_type))

    def _day(self, column: str, text: str) -> str:
        """The number of a date, as ``calendar.date_number`` has it: no cast to a date, which some texts would break."""
        number = f"CAST(replace(substr({text}, 1, 10), '-', '') AS {self.double_type})"
        is_day = f"{self.matches(text, self.literal(DATE_TEXT))} AND substr({text}, 1, 4) <> '0000'"
        return f"CASE WHEN {is_day} THEN {number} WHEN {column} IS NOT NULL THEN {self.double(math.inf)} END"

    def _compared(self, value: str, attribute: Attribute) -> str:
        last, edges = len(attribute.level_of_code), attribute.cuts
        return (
            f"CASE WHEN {value} IS NULL THEN {missing_code(attribute)} "
            f"WHEN {value} >= {self.double(edges[-1])} OR {value} < {self.double(edges[0])} "
            f"OR {value} = {self.double(-math.inf)} THEN {last} "
            f"ELSE {self._bisection(value, edges[1:-1], 1)} END"
        )

    def _bisection(self, value: str, inner: Sequence[float], first: int) -> str:
        """A tree of comparisons: the bin of a number among the inner edges, in logarithmically many steps."""
        if not inner:
            return str(first)
        middle = len(inner) // 2
        below = self._bisection(value, inner[:middle], first)
        above = self._bisection(value, inner[middle + 1 :], first + middle + 1)
        return f"CASE WHEN {value} < {self.double(inner[middle])} THEN {below} ELSE {above} END"


def identifier(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def missing_code(attribute: Attribute) -> int:
    """The code of missing values, counted from one: the last, or the one before it."""
    return len(attribute.level_of_code) - attribute.splits_missing


def key_expressions(tables: Sequence[PackedTable], codes: Mapping[str, str]) -> list[str]:
    """For each table the number of a row's cell, counted on from the last cell of the table before.

    One row then has one key for each table, and a single GROUP BY over all keys counts all tables in one scan.
    """
    keys = []
    before = 0
    for table in tables:
        digits, weight, ones = [], 1, 0
        for name, base in zip(reversed(table.names), reversed(table.shape), strict=True):
            digits.append(f"{codes[name]} * {weight}" if weight > 1 else codes[name])
            ones += weight
            weight *= base
        keys.append(f"CAST({before - ones} AS BIGINT) + {' + '.join(digits)}")
        before += table.size
    return keys
