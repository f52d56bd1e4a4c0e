"""What is public about a table: its attributes, whom a promise protects, and which totals are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpbayes.domain import codec, display, structure, toml
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.keys import checked_table, text_list
from dpbayes.domain.structure import Bools, Impossible, Structure, Within
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
    impossible: tuple[Impossible, ...] = ()
    """Levels that never occur together."""
    within: tuple[Within, ...] = ()
    """Attributes whose levels each lie in one level of another."""

    def __post_init__(self) -> None:
        for key in ("attributes", "margins", "impossible", "within"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        if not isinstance(self.id, str) or not self.id.strip() or not self.id.isprintable():
            raise SchemaError(f"Schema: expected id to be one line of text, got {self.id!r}.")
        if not self.attributes:
            raise SchemaError("Schema: expected one attribute or more. Add an [[attribute]] with a name.")
        self._check_names()
        self._check_person()
        structure.check(self.structure, self._by_name)
        self._check_public_totals()

    @property
    def structure(self) -> tuple[Structure, ...]:
        """All that is declared about what cannot occur."""
        return (*self.impossible, *self.within)

    @property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

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

    def zeros(self, names: Iterable[str]) -> Bools | None:
        """Which cells of the table on these attributes cannot be filled, with their axes; None if all can.

        >>> schema = Schema(id="survey", unit=PrivacyUnit(adjacency="replace-one"),
        ...                 attributes=(Attribute(name="age", categories=("child", "other")),
        ...                             Attribute(name="married", categories=("no", "yes", "other"))),
        ...                 impossible=(Impossible(levels={"age": ("child",), "married": ("yes",)}),))
        >>> schema.zeros(["married", "age"]).astype(int).tolist()
        [[0, 0], [1, 0], [0, 0]]
        """
        axes = tuple(names)
        for name in axes:
            self[name]
        return structure.mask(self.structure, self._by_name, axes)

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        size = f", {self.records:,} records" if self.records is not None else ""
        levels = [(each.name, display.listed(each.levels)) for each in self.attributes]
        return f"Schema {self.id!r}: {self.unit}{size}", levels

    def __repr__(self) -> str:
        return display.as_text(*self._facts())

    def _repr_html_(self) -> str:
        return display.as_html(*self._facts())

    def project(self, names: Iterable[str]) -> Schema:
        """The same data set seen through these attributes, in this order; what is known about others is left out."""
        return self.with_attributes(self[name] for name in names)

    def with_attributes(self, attributes: Iterable[Attribute]) -> Schema:
        """The same data set with other attributes; what is known about those that are gone or differ is left out."""
        chosen = tuple(attributes)
        same = {each.name for each in chosen if each in self.attributes}
        margins = tuple(each for each in self.margins if same.issuperset(each.of))
        impossible = tuple(each for each in self.impossible if same.issuperset(each.names))
        within = tuple(each for each in self.within if same.issuperset(each.names))
        return replace(self, attributes=chosen, margins=margins, impossible=impossible, within=within)

    def table(self) -> dict[str, object]:
        """The schema as plain values, with the keys of the TOML file."""
        optional = {"records": self.records}
        return {
            "format": FORMAT,
            "id": self.id,
            **self.unit.record(),
            **{key: value for key, value in optional.items() if value is not None},
            "attribute": [attribute.table() for attribute in self.attributes],
            **{
                key: [each.table() for each in declared]
                for key, declared in (
                    ("margin", self.margins),
                    ("impossible", self.impossible),
                    ("within", self.within),
                )
                if declared
            },
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
            optional=("format", "max_rows", "person", "records", "margin", "impossible", "within"),
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
            impossible=tuple(Impossible.read(entry) for entry in _entries(table, "impossible")),
            within=tuple(Within.read(entry) for entry in _entries(table, "within")),
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
            totals = np.reshape(margin.totals, [len(self[name].levels) for name in margin.of])
            zeros = self.zeros(margin.of)
            if zeros is not None and totals[zeros].any():
                raise SchemaError(
                    f"Schema: the margin of {', '.join(margin.of)} has people in a combination that the schema calls "
                    "impossible. Correct one of them."
                )
            self._check_agreement(margin, totals)

    def _check_agreement(self, margin: Margin, totals: np.ndarray) -> None:
        """Margins that share attributes have the same totals of them."""
        for other in self.margins[: self.margins.index(margin)]:
            shared = [name for name in margin.of if name in other.of]
            theirs = np.reshape(other.totals, [len(self[name].levels) for name in other.of])
            if not np.array_equal(_summed(totals, margin.of, shared), _summed(theirs, other.of, shared)):
                about = f"the totals of {', '.join(shared)}" if shared else "the number of records"
                raise SchemaError(
                    f"Schema: the margins of {', '.join(other.of)} and of {', '.join(margin.of)} contradict each other "
                    f"in {about}. Correct one of them."
                )


def _summed(totals: np.ndarray, names: tuple[str, ...], kept: list[str]) -> np.ndarray:
    """Totals of some of the attributes, in the order of ``kept``."""
    left = [name for name in names if name in kept]
    summed = totals.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept))
    return np.asarray(summed).transpose([left.index(name) for name in kept])


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
