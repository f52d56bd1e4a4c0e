"""What is public about a table: its attributes, whom a promise protects, and which totals are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from dpbayes.base import codec, display
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.base.toml import Faults, checked_table, sections
from dpbayes.schema import file, public
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.public import Bools, Impossible, Margin, Structure, Within, check_margins, read_margin
from dpbayes.schema.unit import Adjacency, Unit
from dpbayes.schema.values import is_missing, plain, text_of

FORMAT = 1

_UNIT = ("adjacency", "max_rows")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Schema(display.Shown):
    """Ordered attributes with declared levels, the privacy unit, and the totals that are public.

    ``person`` names a column that identifies people; engines then keep at most ``unit.max_rows`` rows of
    each, so the unit is enforced rather than promised; it becomes part of the unit. ``records`` is the number of
    records: public knowledge under replace-one, and not to be declared under add-remove.

    >>> schema = Schema(id="survey", unit=Unit(adjacency="replace-one"),
    ...                 attributes=(Attribute(name="sex", categories=("F", "M")),
    ...                             Attribute(name="age", edges=(0, 18, 65, 120))))
    >>> schema.shape, schema.size, schema.project(["age"]).names
    ((4, 5), 20, ('age',))
    """

    id: str
    unit: Unit
    attributes: tuple[Attribute, ...]
    person: str | None = None
    records: int | None = None
    margins: tuple[Margin, ...] = ()
    impossible: tuple[Impossible, ...] = ()
    """Levels that never occur together."""
    within: tuple[Within, ...] = ()
    """Attributes whose levels each lie in one level of another."""
    records_guess: int | None = field(default=None, compare=False)
    """A public guess at a number of records that is not declared, for previews; no part of record and digest."""

    def __post_init__(self) -> None:
        for key in ("attributes", "margins", "impossible", "within"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        object.__setattr__(self, "unit", Unit.of(self.unit))
        faults = Faults("Schema")
        checks = {
            "id": self._check_id,
            "attribute": self._check_names,
            "person": self._check_person,
            "impossible": lambda: public.check(self.structure, self._by_name),
            "margin": self._check_public_totals,
            "records_guess": self._check_guess,
        }
        for key, check in checks.items():
            with faults.at(key):
                check()
        faults.raise_all(SchemaError)

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
    def expected(self) -> int | None:
        """The number of records: declared, or else a public guess at it."""
        return self.records or self.records_guess

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

        >>> age = Attribute(name="age", categories=("child", "other"), missing="other")
        >>> married = Attribute(name="married", categories=("no", "yes", "other"), missing="other")
        >>> schema = Schema(id="survey", unit=Unit(adjacency="replace-one"), attributes=(age, married),
        ...                 impossible=(Impossible(levels={"age": ("child",), "married": ("yes",)}),))
        >>> schema.zeros(["married", "age"]).astype(int).tolist()
        [[0, 0], [1, 0], [0, 0]]
        """
        axes = tuple(names)
        for name in axes:
            self[name]
        return public.mask(self.structure, self._by_name, axes)

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        size = f", {self.records:,} records" if self.records is not None else ""
        levels = [(each.name, display.listed(each.levels)) for each in self.attributes]
        return f"Schema {self.id!r}: {self.unit}{size}", levels

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
    def from_record(cls, record: object, *, faults: Faults | None = None, guess: object = None) -> Schema:
        """Read the JSON form: all faults at once, with those that were found on the way to it."""
        faults = faults or Faults("Schema")
        table = checked_table(
            record,
            where="the schema",
            required=("id", "adjacency"),
            optional=("attribute", "format", "max_rows", "person", "records", "margin", "impossible", "within"),
            faults=faults,
        )
        if table.get("format", FORMAT) != FORMAT:
            raise SchemaError(f"Schema: expected format = {FORMAT}, got {table['format']!r}. Upgrade dpbayes.")
        attributes = sections(table, "attribute", _attribute, faults)
        unit, margins = _unit(table, faults), sections(table, "margin", read_margin, faults)
        impossible = sections(table, "impossible", lambda entry, _: Impossible.read(entry), faults)
        within = sections(table, "within", lambda entry, _: Within.read(entry), faults)
        made = None
        with faults.at():
            made = cls(
                id=table.get("id", "unnamed"),  # type: ignore[arg-type]
                unit=unit,
                person=table.get("person"),  # type: ignore[arg-type]
                records=table.get("records"),  # type: ignore[arg-type]
                records_guess=guess,  # type: ignore[arg-type]
                attributes=attributes,
                margins=() if faults.found else margins,
                impossible=() if faults.found else impossible,
                within=() if faults.found else within,
            )
        faults.raise_all(SchemaError)
        assert made is not None
        return made

    def to_toml(self) -> str:
        """The text of a schema file."""
        return file.text(self)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read the text of a schema file; all that is wrong with it is said at once, each with its line."""
        record, faults = file.record(text)
        return cls.from_record(record, faults=faults, guess=record.pop("records_guess", None))

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
        unit: Unit,
        edges: Mapping[str, Iterable[float]] | None = None,
        unknown: str = "other",
        missing: str = "category",
    ) -> Schema:
        """Take the categories from data **that is already public**; from private rows this would be a leak.

        >>> Schema.from_public_data({"sex": ["M", "F", "M"]}, id="census-codebook",
        ...                         unit=Unit(adjacency="replace-one"))["sex"].categories
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

    def _check_id(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip() or not self.id.isprintable():
            raise SchemaError(f"Schema: expected id to be one line of text, got {self.id!r}.")

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
            raise SchemaError(str(error).replace("Unit", "Schema", 1)) from None

    def _check_public_totals(self) -> None:
        if (self.records is not None or self.margins) and not self.unit.replaces:
            raise SchemaError(
                "Schema: add-remove keeps the number of records private, so records and margins cannot be "
                "declared. Remove them, or set adjacency = 'replace-one'."
            )
        if self.records is not None and (type(self.records) is not int or self.records < 0):
            raise SchemaError(f"Schema: expected records to be a whole number, got {self.records!r}.")
        check_margins(self)

    def _check_guess(self) -> None:
        guess = self.records_guess
        if guess is not None and (type(guess) is not int or guess < 1):
            raise SchemaError(f"Schema: expected records_guess to be a whole number >= 1, got {guess!r}.")
        if guess is not None and self.records is not None:
            raise SchemaError("Schema: it declares records, and guesses at them. Keep records.")


def _finite(table: dict[str, object]) -> dict[str, object]:
    written = dict(table)
    for key, form in (("edges", lambda edge: edge if math.isfinite(edge) else str(edge)), ("dates", str)):
        values = table.get(key)
        if isinstance(values, list):
            written[key] = [form(value) for value in values]
    return written


def _unit(table: Mapping[str, object], faults: Faults) -> Unit:
    """The unit that is declared, or else any."""
    if "adjacency" in table:
        try:
            return Unit.from_record({"max_rows": 1, **{key: table[key] for key in _UNIT if key in table}})
        except InvalidArgument as error:
            key = "max_rows" if "max_rows" in str(error) else "adjacency"
            faults.add(str(error).replace("Unit", "Schema", 1), key)
    return Unit(adjacency=Adjacency.REPLACE_ONE)


def _attribute(entry: object, faults: Faults) -> Attribute:
    name = entry.get("name") if isinstance(entry, dict) else None
    table = checked_table(
        entry,
        where="an attribute" if name is None else f"attribute {name!r}",
        required=("name",),
        optional=("closed", *(each.name for each in fields(Attribute) if each.init and each.name != "name")),
        faults=faults,
    )
    made = None
    with faults.at():
        made = Attribute(**{"name": "unnamed", **table})  # type: ignore[arg-type]
    faults.raise_all(SchemaError)
    assert made is not None
    return made
