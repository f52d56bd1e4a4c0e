"""From what people say about columns to a first schema file: flags, answers, codebooks, known lists, public files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.base.toml import key_text, value_text
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.codebook import preset, read_codebook
from dpbayes.schema.file import entry
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, Unit
from dpbayes.tables.engine import Column, Kind, spelling
from dpbayes.tables.sources import open_table


def categories(name: str, text: str) -> Attribute:
    """``F,M`` or, for categories with commas, ``F;M``."""
    cut = ";" if ";" in text else ","
    return Attribute(name=name, categories=tuple(each.strip() for each in text.split(cut)), source="declared")


def edges(name: str, text: str) -> Attribute:
    """``0,18,65,inf``, or ``0:100:10`` for equal steps.

    Edges are separated by semicolons, or else by commas, or else by blanks: by one of them throughout.

    >>> edges("age", "0:30:10").edges
    (0.0, 10.0, 20.0, 30.0)
    """
    return Attribute(name=name, edges=tuple(cuts(name, text)), source="declared")


def cuts(name: str, text: str) -> list[float]:
    """The edges that a text lists, or the equal steps that it names, which have to end at its last number."""
    if ":" not in text:
        cut = next((each for each in ";," if each in text), None)
        return [_number(name, each) for each in text.strip().rstrip(";,").split(cut)]
    numbers = [_number(name, each) for each in text.split(":")]
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or not 0 < numbers[1] - numbers[0] <= 1e4 * numbers[2]:
        raise SchemaError(f"Schema: expected edges of {name!r} as first:last:step, with up to 10,000 steps.")
    low, high, step = (Decimal(f"{each:.15g}") for each in numbers)  # tenths are exact
    many = (high - low) // step
    if low + many * step != high:
        nearest = " or ".join(f"{low:f}:{low + each * step:f}:{step:f}" for each in (many, many + 1) if each)
        raise SchemaError(
            f"Schema: steps of {step:f} from {low:f} do not end at {high:f}, so that some values of {name!r} would "
            f"count as other. Write {nearest}."
        )
    return [float(low + step * place) for place in range(int(many) + 1)]


def dates(name: str, text: str) -> Attribute:
    """``2019-01-01,2020-07-01,2022-01-01``, or ``quarter:2019-01-01:2022-01-01``."""
    period, *days = text.split(":") if ":" in text else (None, *text.split(","))
    made = {"dates": tuple(str(each).strip() for each in days), "period": period, "source": "declared"}
    return Attribute(name=name, **made)  # type: ignore[arg-type]  # by name


KINDS: dict[str, Callable[[str, str], Attribute]] = {
    "categories": categories,
    "edges": edges,
    "dates": dates,
    "preset": lambda name, text: preset(text.strip(), name),
}
"""How a column may be declared, and what reads the words for it."""


def declare(said: Mapping[str, Sequence[str]], columns: Sequence[Column]) -> dict[str, Attribute]:
    """Declarations such as ``edges: ["age=0,18,65"]``; a column that is not there is refused."""
    known, found = {column.name for column in columns}, dict[str, Attribute]()
    for kind, texts in said.items():
        for text in texts:
            name, equals, rest = text.rpartition("=") if kind == "preset" else text.partition("=")
            if not equals or not rest.strip():
                raise SchemaError(f"Schema: expected --{kind} as COLUMN=VALUES, got {text!r}.")
            if name not in known:
                raise SchemaError(f"Schema: the table has no column {name!r}. {spelling(name, known)}")
            if name in found:
                raise SchemaError(f"Schema: column {name!r} is declared twice. Keep one.")
            found[name] = KINDS[kind](name, rest)
    return found


def from_codebooks(paths: Sequence[str | Path], columns: Sequence[Column]) -> dict[str, Attribute]:
    """What codebooks say about the columns of a table; names are compared without regard to case, if need be."""
    found: dict[str, Attribute] = {}
    for path in paths:
        listed = read_codebook(path)
        folded = {name.casefold(): each for name, each in listed.items()}
        for column in columns:
            if (each := listed.get(column.name) or folded.get(column.name.casefold())) is not None:
                found.setdefault(column.name, replace(each, name=column.name))
    return found


def from_public(path: str, columns: Sequence[Column]) -> dict[str, Attribute]:
    """Categories from a file that is **already public**: the values of its columns of text and whole numbers.

    Numbers with fractions, dates, and columns of more than 1000 values are left to be declared.
    """
    table = open_table(path)
    unit, known = Unit(adjacency=Adjacency.REPLACE_ONE), {column.name for column in columns}
    found: dict[str, Attribute] = {}
    for column in table.columns():
        if column.name not in known or column.kind not in (Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN):
            continue
        values = sorted(table.values(column.name, unit))
        if 0 < len(values) <= 1000:
            made = Schema.from_public_data({column.name: values}, id="public", unit=unit)[column.name]
            found[column.name] = replace(made, source=f"public file {Path(path).name}"[:300])
    return found


def _number(name: str, text: str) -> float:
    try:
        return checks.number("Schema", f"edges of {name!r}", text)
    except InvalidArgument as problem:
        raise SchemaError(str(problem)) from None


_HEAD = """\
# What is public about this table. Written from column names and types; no rows were read.
# Fill in what everybody may know, and delete the columns that no release will use.
# Do not copy categories from the private rows: declare them from a codebook, or release them with privacy.

id = {id}

# Whom the guarantee protects. "replace-one": one person's records are replaced, the number of records is public.
# "add-remove": one person's records are added or deleted, the number of records is private. With "replace-one:5" a
# person has up to 5 rows: your word, unless a person column lets the engine enforce it.
unit = {unit}
{person}

# The number of records, if you want it used for planning (replace-one only); else a guess, records_guess = 1000.
{records}

# A list of texts declares categories, in the order wanted. A list of numbers declares edges: bins [a, b), and -inf or
# inf leaves an end open. A list of days declares dates. A table says more, as in
# {{ categories = ["F", "M"], unknown = "drop", missing = "other" }}: unknown says where other values go ("other", which
# is usual, "drop": counted in a last level, (dropped), "refuse", or a level), missing where NULL and NaN go
# ("category", which is usual: a level of their own, "other", "drop" or a level). closed = "M" stands for both: whatever
# is not declared counts as M. period (of dates: year, quarter or month), labels, codes (recodes) and source are
# optional.
[attributes]
"""

_EXAMPLE = {
    Kind.TEXT: "[]  # text: categories, in quotes",
    Kind.BOOLEAN: '["false", "true"]',
    Kind.DATE: "[]  # dates, as in [2020-01-01, 2026-01-01]",
    Kind.TIMESTAMP: "[]  # dates, as in [2020-01-01, 2026-01-01]",
    Kind.INTEGER: "[]  # whole numbers: edges",
    Kind.NUMBER: "[]  # numbers: edges",
}


def skeleton(
    columns: Iterable[Column],
    *,
    id: str,  # noqa: A002 - the name of the field
    declared: Mapping[str, Attribute] | None = None,
    unit: Unit | None = None,
    records: int | None = None,
) -> str:
    """The text of a first schema file; what is not declared yet is left to be filled in.

    >>> skeleton([Column("sex", Kind.TEXT)], id="survey").splitlines()[-1]
    'sex = []  # text: categories, in quotes'
    """
    person = None if unit is None else unit.person
    head = _HEAD.format(
        id=value_text(id),
        unit=value_text("replace-one" if unit is None else unit.text),
        person='# person = "person_id"' if person is None else f"person = {value_text(person)}",
        records="# records = 1000" if records is None else f"records = {records}",
    )
    known = declared or {}
    return head + "".join(_entry(column, known.get(column.name)) for column in columns if column.name != person)


def _entry(column: Column, attribute: Attribute | None) -> str:
    if column.kind is Kind.UNSUPPORTED:
        return f"# {value_text(column.name)} has a type that cannot be counted: cast it to text first.\n"
    if attribute is not None:
        return entry(attribute) + "\n"
    return f"{key_text(column.name)} = {_EXAMPLE[column.kind]}\n"
