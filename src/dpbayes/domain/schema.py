"""What is public about a table: its attributes, whom a promise protects, and which totals are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dpbayes.domain import codec, display, toml
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.keys import checked_table, text_list
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.domain.values import is_missing, plain, text_of
from dpbayes.errors import InvalidArgument, SchemaError

FORMAT = 1

_UNIT = ("adjacency", "max_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A table of totals that is public knowledge, row-major over the levels of its attributes."""

    of: tuple[str, ...]
    totals: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of))
        object.__setattr__(self, "totals", tuple(self.totals))
        if not all(type(total) is int and total >= 0 for total in self.totals):
            raise SchemaError("Schema: expected the totals of a margin to be whole numbers, zero or above.")

    def table(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {"of": list(self.of), "totals": list(self.totals)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Schema:
    """Ordered attributes with declared levels, the privacy unit, and the totals that are public.

    ``person`` names a column that identifies people; engines then keep at most ``unit.max_rows`` rows of
    each, so the unit is enforced rather than promised; it becomes part of the unit. ``records`` is the number of
    records: public knowledge under replace-one, and not to be declared under add-remove.

    >>> schema = Schema(id="survey", unit=PrivacyUnit(adjacency="replace-one"),
    ...                 attributes=(Attribute(name="sex", categories=("F", "M")),
    ...                             Attribute(name="age", edges=(0, 18, 65, 120))))
    >>> schema.shape, schema.size, schema.project(["age"]).names
    ((3, 4), 12, ('age',))
    """

    id: str
    unit: PrivacyUnit
    attributes: tuple[Attribute, ...]
    person: str | None = None
    records: int | None = None
    margins: tuple[Margin, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "margins", tuple(self.margins))
        if not isinstance(self.id, str) or not self.id.strip() or not self.id.isprintable():
            raise SchemaError(f"Schema: expected id to be one line of text, got {self.id!r}.")
        if not self.attributes:
            raise SchemaError("Schema: expected one attribute or more. Add an [[attribute]] with a name.")
        self._check_names()
        self._check_person()
        self._check_public_totals()

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels per attribute."""
        return tuple(len(attribute.levels) for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Cells of the full table, as an exact integer of any size."""
        return math.prod(self.shape)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON record: equal exactly when two schemas are equal."""
        return codec.digest(codec.canonical(self.record()))

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise SchemaError(f"Schema: there is no attribute {name!r}. It has {', '.join(self.names)}.")

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        size = f", {self.records:,} records" if self.records is not None else ""
        levels = [(each.name, display.listed(each.levels)) for each in self.attributes]
        return f"Schema {self.id!r}: {self.unit}{size}", levels

    def __repr__(self) -> str:
        return display.as_text(*self._facts())

    def _repr_html_(self) -> str:
        return display.as_html(*self._facts())

    def project(self, names: Iterable[str]) -> Schema:
        """The same data set seen through these attributes, in this order; other margins are left out."""
        chosen = tuple(self[name] for name in names)
        visible = {attribute.name for attribute in chosen}
        margins = tuple(margin for margin in self.margins if visible.issuperset(margin.of))
        return replace(self, attributes=chosen, margins=margins)

    def table(self) -> dict[str, object]:
        """The schema as plain values, with the keys of the TOML file."""
        optional = {"records": self.records}
        return {
            "format": FORMAT,
            "id": self.id,
            **self.unit.record(),
            **{key: value for key, value in optional.items() if value is not None},
            "attribute": [attribute.table() for attribute in self.attributes],
            **({"margin": [margin.table() for margin in self.margins]} if self.margins else {}),
        }

    def record(self) -> dict[str, object]:
        """JSON form; infinite edges, which JSON lacks, are written as text."""
        return {**self.table(), "attribute": [_finite(attribute.table()) for attribute in self.attributes]}

    @classmethod
    def from_record(cls, record: object) -> Schema:
        """Read the JSON form, or what a TOML reader returns; an unknown key is an error that names it."""
        table = checked_table(
            record,
            where="the schema",
            required=("id", "adjacency", "attribute"),
            optional=("format", "max_rows", "person", "records", "margin"),
        )
        if table.get("format", FORMAT) != FORMAT:
            raise SchemaError(f"Schema: expected format = {FORMAT}, got {table['format']!r}. Upgrade dpbayes.")
        try:
            unit = PrivacyUnit.from_record({"max_rows": 1, **{key: table[key] for key in _UNIT if key in table}})
        except InvalidArgument as error:
            raise SchemaError(str(error).replace("PrivacyUnit", "Schema", 1)) from None
        return cls(
            id=table["id"],  # type: ignore[arg-type]
            unit=unit,
            person=table.get("person"),  # type: ignore[arg-type]
            records=table.get("records"),  # type: ignore[arg-type]
            attributes=tuple(_attribute(entry) for entry in _entries(table, "attribute")),
            margins=tuple(_margin(entry) for entry in _entries(table, "margin")),
        )

    def to_toml(self) -> str:
        """The text of a schema file."""
        return toml.dumps(self.table())

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read the text of a schema file."""
        return cls.from_record(toml.loads(text))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SchemaError(
                f"Schema: there is no file {str(path)!r}. `dpbayes schema init TABLE` writes a first one."
            ) from None
        except (OSError, ValueError):
            raise SchemaError(f"Schema: {str(path)!r} cannot be read as UTF-8 text. Check the file.") from None
        return cls.from_toml(text)

    @classmethod
    def from_public_data(
        cls,
        columns: Mapping[str, Iterable[object]],
        *,
        id: str,  # noqa: A002 - the name of the field
        unit: PrivacyUnit,
        edges: Mapping[str, Iterable[float]] | None = None,
        unknown: str = "other",
        missing: str = "other",
    ) -> Schema:
        """Take the categories from data **that is already public**; from private rows this would be a leak.

        >>> Schema.from_public_data({"sex": ["M", "F", "M"]}, id="census-codebook",
        ...                         unit=PrivacyUnit(adjacency="replace-one"))["sex"].categories
        ('F', 'M')
        """
        cut = edges or {}
        found = {
            name: sorted({text_of(value) for value in map(plain, values) if not is_missing(value)})
            for name, values in columns.items()
            if name not in cut
        }
        attributes = tuple(
            Attribute(
                name=name,
                edges=tuple(cut.get(name, ())),
                categories=tuple(found.get(name, ())),
                unknown=unknown,
                missing=missing,
            )
            for name in columns
        )
        return cls(id=id, unit=unit, attributes=attributes)

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for name in self.names:
            other = seen.get(name.casefold())
            if other is not None:
                raise SchemaError(
                    f"Schema: attributes {other!r} and {name!r}: engines cannot tell apart their names. Keep one."
                )
            seen[name.casefold()] = name

    def _check_person(self) -> None:
        if self.person is None:
            object.__setattr__(self, "person", self.unit.person)
        if self.person is None:
            return
        if not isinstance(self.person, str) or not self.person:
            raise SchemaError(f"Schema: expected person to be the name of a column, got {self.person!r}.")
        if self.person.casefold() in {name.casefold() for name in self.names}:
            raise SchemaError(f"Schema: {self.person!r} identifies people and cannot be an attribute as well.")
        if self.unit.replaces and self.unit.max_rows > 1:
            raise SchemaError(
                "Schema: with a person column and max_rows above 1, replacing a person can change the number "
                "of records. Set max_rows = 1, or adjacency = 'add-remove'."
            )
        try:
            object.__setattr__(self, "unit", replace(self.unit, person=self.person))
        except InvalidArgument as error:
            raise SchemaError(str(error).replace("PrivacyUnit", "Schema", 1)) from None

    def _check_public_totals(self) -> None:
        if (self.records is not None or self.margins) and not self.unit.replaces:
            raise SchemaError(
                "Schema: add-remove keeps the number of records private, so records and margins cannot be "
                "declared. Remove them, or set adjacency = 'replace-one'."
            )
        if self.records is not None and (type(self.records) is not int or self.records < 0):
            raise SchemaError(f"Schema: expected records to be a whole number, got {self.records!r}.")
        for margin in self.margins:
            size = math.prod(len(self[name].levels) for name in margin.of)
            if len(margin.totals) != size:
                raise SchemaError(
                    f"Schema: the margin of {', '.join(margin.of)} needs {size} totals, one for each "
                    f"combination of levels, got {len(margin.totals)}. `dpbayes schema show` lists them."
                )
            if self.records is not None and sum(margin.totals) != self.records:
                raise SchemaError(f"Schema: the margin of {', '.join(margin.of)} does not add up to records.")


def _finite(table: dict[str, object]) -> dict[str, object]:
    edges = table.get("edges")
    if not isinstance(edges, list):
        return table
    return {**table, "edges": [edge if math.isfinite(edge) else str(edge) for edge in edges]}


def _entries(table: Mapping[str, object], key: str) -> list[object]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise SchemaError(f"Schema: write each {key} as its own [[{key}]] section.")
    return entries


def _attribute(entry: object) -> Attribute:
    table = checked_table(
        entry,
        where="an [[attribute]]",
        required=("name",),
        optional=("categories", "edges", "unknown", "missing"),
    )
    for key in ("categories", "edges"):
        if key in table and not isinstance(table[key], list):
            raise SchemaError(f"Schema: attribute {table['name']!r} needs {key} as a list in brackets.")
    return Attribute(**table)  # type: ignore[arg-type]


def _margin(entry: object) -> Margin:
    table = checked_table(entry, where="a [[margin]]", required=("of", "totals"))
    if not isinstance(table["totals"], list):
        raise SchemaError("Schema: a margin needs totals as a list in brackets.")
    return Margin(of=text_list(table["of"], "of in a [[margin]]"), totals=tuple(table["totals"]))
