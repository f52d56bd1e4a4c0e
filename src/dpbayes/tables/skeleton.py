"""A first schema file, from column names and types alone."""

from __future__ import annotations

from collections.abc import Iterable

from dpbayes.domain.schema import FORMAT
from dpbayes.domain.toml import value_text
from dpbayes.tables.engine import Column, Kind

_HEAD = f"""\
# What is public about this table. Written from column names and types; no rows were read.
# Fill in what everybody may know, and delete the columns that no release will use.
# Do not copy categories from the private rows: declare them from a codebook, or buy them (discovery).

format = {FORMAT}
id = %s

# Whom one promise protects. replace-one: one person's records are replaced, the number of records is public.
# add-remove: one person's records are added or deleted, the number of records is private.
adjacency = "replace-one"

# The most rows that one person has. Your promise, unless a person column lets the engine enforce it.
max_rows = 1
# person = "person_id"

# The number of records, if you want it checked and used for planning (replace-one only).
# records = 1000

# Each attribute declares categories (as text, in the order wanted) or edges (bins [a, b); -inf and inf leave an
# end open). unknown says where other values go: "other", or "drop" (counted in a last level, (dropped)).
# missing says where NULL and NaN go: "other", "category" (a level of their own), or "drop".
"""

_EXAMPLE = {
    Kind.TEXT: ("categories", []),
    Kind.BOOLEAN: ("categories", ["false", "true"]),
    Kind.DATE: ("categories", []),
    Kind.TIMESTAMP: ("categories", []),
    Kind.INTEGER: ("edges", []),
    Kind.NUMBER: ("edges", []),
}


def skeleton(columns: Iterable[Column], *, id: str) -> str:  # noqa: A002 - the name of the field
    """The text of a first schema file, to be filled in.

    >>> 'name = "sex"' in skeleton([Column("sex", Kind.TEXT)], id="survey")
    True
    """
    return _HEAD % value_text(id) + "".join(_section(column) for column in columns)


def _section(column: Column) -> str:
    if column.kind is Kind.UNSUPPORTED:
        return f"\n# {value_text(column.name)} has a type that cannot be counted: cast it to text first.\n"
    key, values = _EXAMPLE[column.kind]
    return (
        f"\n[[attribute]]  # {column.kind}\nname = {value_text(column.name)}\n{key} = {value_text(values)}\n"
        'unknown = "other"\nmissing = "other"\n'
    )
