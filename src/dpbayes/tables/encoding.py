"""DuckDB expressions that turn a column into codes. The rule for values is that of ``domain.values``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpbayes.domain.attribute import Attribute
from dpbayes.domain.values import DECIMAL_NUMBER, number_in
from dpbayes.tables.engine import Kind

# A short list is searched faster than it is hashed.
_SEARCHED = 64

_KINDS = (
    (r"VARCHAR|ENUM\(.*\)|UUID", Kind.TEXT),
    (r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", Kind.INTEGER),
    (r"FLOAT|DOUBLE|DECIMAL\(.*\)", Kind.NUMBER),
    (r"BOOLEAN", Kind.BOOLEAN),
    (r"DATE", Kind.DATE),
    (r"TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?", Kind.TIMESTAMP),
)


def kind_of(duckdb_type: str) -> Kind:
    """What DuckDB's type means to a schema."""
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, duckdb_type, re.DOTALL):
            return kind
    return Kind.UNSUPPORTED


def identifier(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A quoted text."""
    return "'" + text.replace("'", "''") + "'"


def text_expression(column: str, duckdb_type: str) -> str:
    """The text of a column, by the rule that all engines share."""
    if duckdb_type == "VARCHAR":
        return column
    if duckdb_type == "TIMESTAMP WITH TIME ZONE":
        return f"CAST({column} AT TIME ZONE 'UTC' AS VARCHAR)"
    if kind_of(duckdb_type) is Kind.NUMBER:
        number = f"CAST({column} AS DOUBLE)"
        whole = f"{number} = trunc({number}) AND abs({number}) < 1e15"
        return (
            f"CASE WHEN isnan({number}) THEN NULL WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) "
            f"ELSE CAST({number} AS VARCHAR) END"
        )
    return f"CAST({column} AS VARCHAR)"


def value_expression(column: str, duckdb_type: str, attribute: Attribute) -> str:
    """What a code is looked up from: text, or a double: NULL is missing, infinity unknown."""
    kind = kind_of(duckdb_type)
    if kind is Kind.NUMBER:
        return f"nullif(CAST({column} AS DOUBLE), 'nan')"
    if not attribute.edges:
        return text_expression(column, duckdb_type)
    if kind is Kind.INTEGER:
        return f"CAST({column} AS DOUBLE)"
    text = f"trim({column if duckdb_type == 'VARCHAR' else text_expression(column, duckdb_type)})"
    return (
        f"CASE WHEN regexp_full_match({text}, {literal(DECIMAL_NUMBER)}) THEN TRY_CAST({text} AS DOUBLE) "
        f"WHEN {column} IS NOT NULL AND lower({text}) <> 'nan' THEN 'inf'::DOUBLE END"
    )


def code_expression(value: str, duckdb_type: str, attribute: Attribute) -> str:
    """One more than the code of each row: the position among the declared values, counted from one."""
    if attribute.edges:
        code = _bin_code(value, attribute)
    elif kind_of(duckdb_type) is Kind.NUMBER:
        # NaN is not among the values, so it can stand for categories that are not numbers.
        numbers = (number_in(category) for category in attribute.categories)
        code = _listed_code(value, [repr("nan" if n is None else repr(n)) for n in numbers], "DOUBLE", attribute)
    elif len(attribute.categories) > _SEARCHED:
        code = _hashed_code(value, attribute)
    else:
        code = _listed_code(value, [literal(category) for category in attribute.categories], "VARCHAR", attribute)
    return f"CAST({code} AS {'UTINYINT' if len(attribute.level_of_code) < 2**8 else 'UINTEGER'})"


def _listed_code(value: str, items: Sequence[str], item_type: str, attribute: Attribute) -> str:
    """``least`` skips NULL, so that what is not found gets the last code; a NULL in the list finds NULL."""
    missing = ["NULL"] if attribute.splits_missing else []
    found = f"list_position(CAST([{', '.join([*items, *missing])}] AS {item_type}[]), {value})"
    return f"least({found}, {len(attribute.level_of_code)})"


def _hashed_code(value: str, attribute: Attribute) -> str:
    """For long lists: the conversion to an enumeration looks a value up by its hash."""
    last = len(attribute.level_of_code)
    items = ", ".join(literal(category) for category in attribute.categories)
    found = f"least(CAST(enum_code(TRY_CAST({value} AS ENUM({items}))) AS INTEGER) + 1, {last})"
    return f"CASE WHEN {value} IS NULL THEN {last - 1} ELSE {found} END" if attribute.splits_missing else found


def _bin_code(value: str, attribute: Attribute) -> str:
    last = len(attribute.level_of_code)
    missing = last - 1 if attribute.splits_missing else last
    low, high = _number(attribute.edges[0]), _number(attribute.edges[-1])
    return (
        f"CASE WHEN {value} IS NULL THEN {missing} "
        f"WHEN isinf({value}) OR {value} < {low} OR {value} >= {high} THEN {last} "
        f"ELSE {_bisection(value, attribute.edges[1:-1], 1)} END"
    )


def _bisection(value: str, inner: Sequence[float], first: int) -> str:
    """A tree of comparisons: the bin of a number among the inner edges, in logarithmically many steps."""
    if not inner:
        return str(first)
    middle = len(inner) // 2
    below = _bisection(value, inner[:middle], first)
    above = _bisection(value, inner[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {value} < {_number(inner[middle])} THEN {below} ELSE {above} END"


def _number(number: float) -> str:
    return f"'{number!r}'::DOUBLE"
