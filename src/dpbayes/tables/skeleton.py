"""A first schema file, from column names and types, codebooks and known lists; no row is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpbayes.domain.attribute import Attribute
from dpbayes.domain.schema import FORMAT
from dpbayes.domain.toml import value_text
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.tables.engine import Column, Kind

_HEAD = """\
# What is public about this table. Written from column names and types; no rows were read.
# Fill in what everybody may know, and delete the columns that no release will use.
# Do not copy categories from the private rows: declare them from a codebook, or buy them (discovery).

format = {format}
id = {id}

# Whom one promise protects. replace-one: one person's records are replaced, the number of records is public.
# add-remove: one person's records are added or deleted, the number of records is private.
adjacency = {adjacency}

# The most rows that one person has. Your promise, unless a person column lets the engine enforce it.
max_rows = {max_rows}
{person}

# The number of records, if you want it used for planning (replace-one only).
{records}

# Each attribute declares categories (as text, in the order wanted), edges (bins [a, b); -inf and inf leave an end
# open) or dates (days, cut by year, quarter or month with a period). unknown says where other values go: "other",
# "drop" (counted in a last level, (dropped)), "refuse" or a level. missing says where NULL and NaN go: "other",
# "category" (a level of their own), "drop" or a level. closed = "M" stands for both: no further levels, and whatever is
# not declared counts as M. labels, codes (recodes) and source are optional.
"""

_EXAMPLE = {
    Kind.TEXT: "categories = []",
    Kind.BOOLEAN: 'categories = ["false", "true"]',
    Kind.DATE: 'dates = []  # [2020-01-01, 2026-01-01]\n# period = "year"',
    Kind.TIMESTAMP: 'dates = []  # [2020-01-01, 2026-01-01]\n# period = "year"',
    Kind.INTEGER: "edges = []",
    Kind.NUMBER: "edges = []",
}


def skeleton(
    columns: Iterable[Column],
    *,
    id: str,  # noqa: A002 - the name of the field
    declared: Mapping[str, Attribute] | None = None,
    unit: PrivacyUnit | None = None,
    records: int | None = None,
) -> str:
    """The text of a first schema file; what is not declared yet is left to be filled in.

    >>> 'name = "sex"' in skeleton([Column("sex", Kind.TEXT)], id="survey")
    True
    """
    person = None if unit is None else unit.person
    head = _HEAD.format(
        format=FORMAT,
        id=value_text(id),
        adjacency=value_text("replace-one" if unit is None else unit.adjacency.value),
        max_rows=1 if unit is None else unit.max_rows,
        person='# person = "person_id"' if person is None else f"person = {value_text(person)}",
        records="# records = 1000" if records is None else f"records = {records}",
    )
    known = declared or {}
    return head + "".join(_section(column, known.get(column.name)) for column in columns if column.name != person)


def section(attribute: Attribute) -> str:
    """One declared attribute as it stands in a schema file."""
    lines = [f"{key} = {value_text(value)}" for key, value in attribute.table().items()]
    return "\n[[attribute]]\n" + "\n".join(lines) + "\n"


def _section(column: Column, attribute: Attribute | None) -> str:
    if column.kind is Kind.UNSUPPORTED:
        return f"\n# {value_text(column.name)} has a type that cannot be counted: cast it to text first.\n"
    if attribute is not None:
        return section(attribute)
    return (
        f"\n[[attribute]]  # {column.kind}\nname = {value_text(column.name)}\n{_EXAMPLE[column.kind]}\n"
        'unknown = "other"\nmissing = "category"\n'
    )
