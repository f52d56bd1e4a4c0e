"""The dialects of SQL that ``encoding`` writes: DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from dpbayes.schema.attribute import Attribute
from dpbayes.tables.encoding import Dialect, missing_code
from dpbayes.tables.engine import Kind

SEARCHED = 64
"""A list up to this long is searched; a longer one is hashed."""


def quoted(text: str) -> str:
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
    literal=quoted,
    double_of=lambda column, _: f"CAST({column} AS DOUBLE)",
    text_of=_duckdb_text,
    without_nan=_duckdb_without_nan,
    matches=lambda text, pattern: f"regexp_full_match({text}, {pattern})",
    double_in=lambda text: f"TRY_CAST({text} AS DOUBLE)",
    listed=_duckdb_listed,
)


# -- PostgreSQL -----------------------------------------------------------------------------------------------

_OVERFLOW = 2**1024 - 2**970
"""From here on a number rounds to infinity, which PostgreSQL refuses; up to 2⁻¹⁰⁷⁵ it rounds to a refused zero."""
_UNDERFLOW = "2.4703282292062328e-324"


def _postgresql_literal(text: str) -> str:
    """With the prefix E a backslash means the same whatever the session's settings."""
    return f"E{quoted(text)}".replace("\\", "\\\\") if "\\" in text else quoted(text)


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
    if not column_type.startswith("numeric"):
        return f"CAST({column} AS double precision)"
    return (
        f"CASE WHEN {column} = 'NaN' THEN 'NaN' WHEN abs({column}) >= {_OVERFLOW} THEN 'inf' "
        f"WHEN abs({column}) <= {_UNDERFLOW} THEN 0 ELSE CAST({column} AS double precision) END"
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


_MICROSECONDS_PER_DAY = 86_400_000_000


def _spark_text(column: str, column_type: str) -> str:
    if column_type == "string":
        return column
    if column_type == "timestamp":  # a cast would write it in the time zone of the session
        since = f"unix_micros({column})"
        days = f"CAST({since} div {_MICROSECONDS_PER_DAY}L AS INT)"
        seconds = f"CAST(CAST({since} % {_MICROSECONDS_PER_DAY}L AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
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
