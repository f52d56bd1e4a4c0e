"""SQL that turns columns into codes and codes into keys. The rule for values is that of ``schema.values``.

What is the same in every database is written here once; what differs is a ``Dialect``: of DuckDB,
PostgreSQL and Spark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.values import DATE_TEXT, DECIMAL_NUMBER, number_in
from dpbayes.tables.engine import Kind, PackedTable


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


SEARCHED = 64
"""A list up to this long is searched; a longer one is hashed."""


def quote(text: str) -> str:
    """A text in standard SQL."""
    return "'" + text.replace("'", "''") + "'"


def cases(value: str, items: Sequence[str], item_type: str, attribute: Attribute) -> str:
    """The code of a value by comparing it with one item after the other: standard SQL, and fast for short lists."""
    del item_type
    found = " ".join(f"WHEN {item} THEN {code}" for item, code in zip(items, count(1), strict=False))
    missing = f"WHEN {value} IS NULL THEN {missing_code(attribute)} " if attribute.splits_missing else ""
    listed = f"CASE {value} {found} ELSE {len(attribute.level_of_code)} END"
    return f"CASE {missing}ELSE {listed} END" if missing else listed


# -- DuckDB ---------------------------------------------------------------------------------------------------


def _duckdb_text(column: str, column_type: str) -> str:
    if column_type == "VARCHAR":
        return column
    if column_type in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # a moment too far for microseconds ends a cast of DuckDB
        first, last = (f"CAST('{day}' AS {column_type})" for day in ("0001-01-01", "10000-01-01"))
        near = f"{column} >= {first} AND {column} < {last}"
        return f"CASE WHEN {near} THEN CAST({column} AS VARCHAR) WHEN {column} IS NOT NULL THEN '(far)' END"
    in_utc = f"{column} AT TIME ZONE 'UTC'" if column_type == "TIMESTAMP WITH TIME ZONE" else column
    return f"CAST({in_utc} AS VARCHAR)"


def _duckdb_without_nan(double: str) -> str:
    """Neither a comparison with NaN nor ``isnan`` will do: DuckDB answers both from the statistics of a Parquet file.

    Parquet files leave NaN out of the largest value, and DuckDB takes NaN to be the largest (its issue 25521).
    """
    return f"CASE WHEN isfinite({double}) THEN {double} WHEN isinf({double}) THEN {double} END"


def _duckdb_listed(value: str, items: Sequence[str], item_type: str, attribute: Attribute) -> str:
    """``least`` skips NULL, so that what is not found gets the last code; a NULL in the list finds NULL."""
    last = len(attribute.level_of_code)
    if item_type == "VARCHAR" and len(items) > SEARCHED:  # the conversion to an enumeration looks up a hash
        enumerated = f"CAST(enum_code(TRY_CAST({value} AS ENUM({', '.join(items)}))) AS INTEGER)"
        found = f"least({enumerated} + 1, {last})"
        return f"CASE WHEN {value} IS NULL THEN {last - 1} ELSE {found} END" if attribute.splits_missing else found
    missing = ["NULL"] if attribute.splits_missing else []
    return f"least(list_position(CAST([{', '.join([*items, *missing])}] AS {item_type}[]), {value}), {last})"


DUCKDB = Dialect(
    kinds=(
        (r"VARCHAR|ENUM\(.*\)|UUID", Kind.TEXT),
        (r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", Kind.INTEGER),
        (r"FLOAT|DOUBLE|DECIMAL\(.*\)", Kind.NUMBER),
        (r"BOOLEAN", Kind.BOOLEAN),
        (r"DATE", Kind.DATE),
        (r"TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?", Kind.TIMESTAMP),
    ),
    text_type="VARCHAR",
    double_type="DOUBLE",
    literal=quote,
    double_of=lambda column, _: f"CAST({column} AS DOUBLE)",
    text_of=_duckdb_text,
    without_nan=_duckdb_without_nan,
    matches=lambda text, pattern: f"regexp_full_match({text}, {pattern})",
    double_in=lambda text: f"TRY_CAST({text} AS DOUBLE)",
    listed=_duckdb_listed,
)


# -- PostgreSQL -----------------------------------------------------------------------------------------------


def _postgresql_literal(text: str) -> str:
    """With the prefix E a backslash means the same whatever the session's settings."""
    return f"E{quote(text)}".replace("\\", "\\\\") if "\\" in text else quote(text)


def _postgresql_text(column: str, column_type: str) -> str:
    """Dates and times by ``to_char``, since the session decides how a cast writes them."""
    if column_type == "date":
        clock, written = column, f"to_char({column}, 'YYYY-MM-DD')"
    elif column_type.startswith("timestamp"):
        clock = f"({column} AT TIME ZONE 'UTC')" if column_type.endswith("with time zone") else column
        written = f"rtrim(rtrim(to_char({clock}, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.')"
    else:
        return f'CAST({column} AS text) COLLATE "C"'
    four_digits = f"{clock} >= TIMESTAMP '0001-01-01' AND {clock} < TIMESTAMP '10000-01-01'"  # not BC, not infinity
    return f"CASE WHEN {four_digits} THEN {written} ELSE CAST({column} AS text) END" + ' COLLATE "C"'


def _postgresql_double(column: str, column_type: str) -> str:
    """PostgreSQL refuses what rounds to infinity, from 2¹⁰²⁴ − 2⁹⁷⁰ on, and what rounds to zero, up to 2⁻¹⁰⁷⁵."""
    if not column_type.startswith("numeric"):
        return f"CAST({column} AS double precision)"
    return (
        f"CASE WHEN {column} = 'NaN' THEN 'NaN' WHEN abs({column}) >= {2**1024 - 2**970} THEN 'inf' "
        f"WHEN abs({column}) <= 2.4703282292062328e-324 THEN 0 ELSE CAST({column} AS double precision) END"
    )


def _postgresql_double_in(text: str) -> str:
    """A cast refuses what overflows or underflows, so only short numbers go straight through it.

    Below 200 digits and an exponent of two neither can happen; below 5000 and four, the type numeric holds it.
    """
    return (
        f"CASE WHEN {text} ~ '^[^eE]{{1,200}}([eE][+-]?0*[0-9]{{1,2}})?$' THEN CAST({text} AS double precision) "
        f"WHEN length({text}) < 5000 AND {text} !~ '[eE][+-]?0*[1-9][0-9]{{4}}' "
        f"THEN {_postgresql_double(f'CAST({text} AS numeric)', 'numeric')} "
        f"WHEN {text} ~ '^[^eE]*[1-9]' AND {text} !~ '[eE]-' THEN 'inf' ELSE 0 END"
    )


def _postgresql_binned(value: str, attribute: Attribute) -> str:
    """``width_bucket`` finds the bin by bisection, zero below the edges; the value is computed only once."""
    last, edges = len(attribute.level_of_code), attribute.cuts
    finite = f"CASE {value} WHEN '-inf' THEN 'inf' ELSE {value} END" if edges[0] == -float("inf") else value
    bin_number = f"width_bucket({finite}, CAST('{{{', '.join(map(repr, edges))}}}' AS double precision[]))"
    codes = [last, *range(1, len(edges)), last]
    code = f"(CAST('{{{', '.join(map(str, codes))}}}' AS integer[]))[1 + {bin_number}]"
    return f"coalesce({code}, {missing_code(attribute)})"


POSTGRESQL = Dialect(
    kinds=(
        (r"text|citext|name|uuid|enum|character( varying)?(\(.*\))?", Kind.TEXT),
        (r"smallint|integer|bigint", Kind.INTEGER),
        (r"real|double precision|numeric(\(.*\))?", Kind.NUMBER),
        (r"boolean", Kind.BOOLEAN),
        (r"date", Kind.DATE),
        (r"timestamp(\(.*\))? with(out)? time zone", Kind.TIMESTAMP),
    ),
    text_type="text",
    double_type="double precision",
    literal=_postgresql_literal,
    double_of=_postgresql_double,
    text_of=_postgresql_text,
    without_nan=lambda double: f"nullif({double}, CAST('NaN' AS double precision))",  # the server has no isnan
    matches=lambda text, pattern: f"{text} ~ ('^(' || {pattern} || ')$')",
    double_in=_postgresql_double_in,
    listed=cases,
    binned=_postgresql_binned,
)


# -- Spark ----------------------------------------------------------------------------------------------------


def _spark_literal(text: str) -> str:
    r"""Settings decide what \\, ' and $ mean in a text, but not what bytes mean."""
    plain = re.fullmatch(r"[^'\\$]*", text)
    return f"'{text}'" if plain else f"CAST(X'{text.encode().hex()}' AS STRING)"


def _spark_text(column: str, column_type: str) -> str:
    if column_type == "string":
        return column
    if column_type == "timestamp":  # a cast would write it in the time zone of the session
        since = f"unix_micros({column})"
        days = f"CAST({since} div 86400000000L AS INT)"
        seconds = f"CAST(CAST({since} % 86400000000L AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        column = f"TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval({days}, 0, 0, {seconds})"
    return f"CAST({column} AS STRING)" + (" COLLATE UTF8_BINARY" if "collate" in column_type else "")


def _spark_listed(value: str, items: Sequence[str], item_type: str, attribute: Attribute) -> str:
    """The list is one constant, so the code that Spark compiles stays short; zero is not found, NULL is missing."""
    del item_type
    last = len(attribute.level_of_code)
    found = f"coalesce(nullif(array_position(array({', '.join(items)}), {value}), 0), {last})"
    return f"CASE WHEN {value} IS NULL THEN {last - 1} ELSE {found} END" if attribute.splits_missing else found


SPARK = Dialect(
    kinds=(
        (r"string( collate \w+)?|(var)?char\(.*\)", Kind.TEXT),
        (r"tinyint|smallint|int|bigint", Kind.INTEGER),
        (r"float|double|decimal\(.*\)", Kind.NUMBER),
        (r"boolean", Kind.BOOLEAN),
        (r"date", Kind.DATE),
        (r"timestamp(_ntz)?", Kind.TIMESTAMP),
    ),
    text_type="STRING",
    double_type="DOUBLE",
    literal=_spark_literal,
    double_of=lambda column, _: f"CAST({column} AS DOUBLE)",
    text_of=_spark_text,
    without_nan=lambda double: f"CASE WHEN NOT isnan({double}) THEN {double} END",
    matches=lambda text, pattern: f"{text} RLIKE concat('^(', {pattern}, ')', {_spark_literal(chr(92) + 'z')})",
    double_in=lambda text: f"try_cast({text} AS DOUBLE)",
    listed=_spark_listed,
)
