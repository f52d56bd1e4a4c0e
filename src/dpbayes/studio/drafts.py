"""What a user has said so far about a data set: kept in the start folder, so that it survives the studio.

The schema and the request are the plain files that the commands use too. What does not fit into them, such as a
half-filled list of categories, is in ``.studio`` beside them. No private value is in any of it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpbayes.base import codec, files
from dpbayes.base.errors import DpbayesError, InvalidArgument, SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, Unit
from dpbayes.studio.folder import Folder, writing
from dpbayes.tables.declaring import cuts
from dpbayes.tables.engine import Column, Kind

OURS = "# Written by dpbayes studio: what is public about this table. Nothing here was learned from its rows.\n"
NUMBERS = (Kind.INTEGER, Kind.NUMBER)

STATE = ".studio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A column of the table, and what was said about it."""

    name: str
    kind: str = "text"
    use: str = "ignore"
    """``use``, ``ignore`` or ``person``."""
    values: str = "categories"
    """``categories``, ``edges``, or ``file``: something that only a schema file can say, such as dates."""
    text: str = ""
    """The list as typed: one category per line, or edges."""
    source: str = ""
    """Where the list comes from."""
    unknown: str = "other"
    missing: str = "category"
    full: dict[str, Any] = field(default_factory=dict)
    """The whole declaration where it came from a file or a known list: with recodes, labels or dates."""

    @classmethod
    def of(cls, attribute: Attribute, kind: str) -> Declared:
        """A column as a schema declares it."""
        edges = [f"{edge:g}" if edge != int(edge) else str(int(edge)) for edge in attribute.edges if abs(edge) < 1e15]
        if len(edges) < len(attribute.edges):
            edges = [repr(edge) for edge in attribute.edges]
        values = "edges" if attribute.edges else "categories" if attribute.categories else "file"
        text = {"edges": ", ".join(edges), "categories": "\n".join(attribute.categories)}
        return cls(
            name=attribute.name,
            kind=kind,
            use="use",
            values=values,
            text=text.get(values, "\n".join(attribute.levels)),
            source=attribute.source,
            unknown=attribute.unknown,
            missing=attribute.missing,
            full=_alone(attribute).record()["attribute"][0],  # type: ignore[index]
        )

    @property
    def listed(self) -> tuple[str, ...]:
        """The items of the list: one per line, or separated by commas or semicolons on a single line."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        if self.values == "edges":
            return tuple(item for item in re.split(r"[\s,;]+", self.text.strip()) if item)
        if len(lines) == 1:
            lines = [item.strip() for item in re.split(r"[,;\t]", lines[0]) if item.strip()]
        return tuple(lines)

    def takers(self, rule: str) -> tuple[str, ...]:
        """Declared levels that may count other values: all of a short list, and the one that does."""
        try:
            declared = self.attribute().declared
        except SchemaError:
            declared = ()
        offered = (*(declared if len(declared) <= 12 else ()), rule)
        return tuple(dict.fromkeys(level for level in offered if level not in ("other", "category", "drop", "refuse")))

    def attribute(self) -> Attribute:
        """The attribute, or a sentence about what is missing. A whole declaration holds until something is changed."""
        if self.full:
            whole = Schema.from_record({**_NOBODY, "attribute": [self.full]}).attributes[0]
            if self == replace(Declared.of(whole, self.kind), use=self.use):
                return whole
        if self.values == "file":
            raise SchemaError(f"Schema: {self.name!r} is declared in a file. Change it there.")
        if not self.listed:
            what = "its edges" if self.values == "edges" else "its categories"
            raise SchemaError(f"Schema: {self.name!r} is to be used, and {what} are not listed yet.")
        rules = {"name": self.name, "unknown": self.unknown, "missing": self.missing, "source": self.source}
        made = {"edges": cuts(self.name, self.text)} if self.values == "edges" else {"categories": self.listed}
        return Attribute(**rules, **made)  # type: ignore[arg-type]  # by name


_NOBODY: dict[str, object] = {"id": "alone", "adjacency": "add-remove"}


def _alone(attribute: Attribute) -> Schema:
    """A schema of one attribute: it knows how to write it down."""
    return Schema(id="alone", unit=Unit(adjacency=Adjacency.ADD_REMOVE), attributes=(attribute,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Where the files are, and what was declared."""

    name: str
    """Part of addresses and of the names of files: letters, digits and hyphens."""
    id: str = ""
    table: str = ""
    schema: str = ""
    ledger: str = ""
    adjacency: str = ""
    max_rows: int = 1
    records: int | None = None
    columns: tuple[Declared, ...] = ()
    once: str = field(default_factory=lambda: secrets.token_hex(16))
    """Names the next release of this draft: however often it is asked for, it is made once."""

    @property
    def person(self) -> str | None:
        """The column that identifies people."""
        return next((each.name for each in self.columns if each.use == "person"), None)

    @property
    def used(self) -> tuple[Declared, ...]:
        """The columns that tables can be made of."""
        return tuple(each for each in self.columns if each.use == "use")

    def unit(self) -> Unit:
        """Whom one promise protects."""
        if not self.adjacency:
            raise SchemaError("Schema: say first whether the number of records is public.")
        return Unit(adjacency=Adjacency(self.adjacency), max_rows=self.max_rows, person=self.person)

    def faults(self) -> dict[str, str]:
        """What is wrong with each column that is to be used."""
        found: dict[str, str] = {}
        for each in self.used:
            try:
                each.attribute()
            except DpbayesError as problem:
                found[each.name] = str(problem).removeprefix("Schema: ")
        return found

    def declared(self, before: Schema | None = None) -> Schema:
        """The schema that this amounts to, or the first fault of it.

        What the schema file says of columns that were not changed stays, such as public totals.
        """
        attributes = tuple(each.attribute() for each in self.used)
        public, guess = (self.records, None) if self.adjacency == Adjacency.REPLACE_ONE else (None, self.records)
        said = {"id": self.id, "unit": self.unit(), "records": public, "records_guess": guess}
        known = {each.name: each for each in before.attributes} if before is not None else {}
        same = [each.name for each in attributes if each == known.get(each.name)]
        if before is None or not same:
            return Schema(**said, attributes=attributes)  # type: ignore[arg-type]  # by name
        return replace(before.project(same), **said, attributes=attributes)  # type: ignore[arg-type]

    def about(self, schema: Schema) -> Draft:
        """The draft with what a schema says of people and records."""
        unit, records = schema.unit, schema.records if schema.unit.replaces else schema.records_guess
        return replace(self, id=schema.id, adjacency=str(unit.adjacency), max_rows=unit.max_rows, records=records)

    def with_columns(self, schema: Schema, columns: Sequence[Column]) -> Draft:
        """The draft with what a schema says of these columns of a table."""
        known = {attribute.name: attribute for attribute in schema.attributes}
        declared = (
            Declared.of(known[each.name], each.kind)
            if each.name in known
            else first(each, use="person" if each.name == schema.person else "ignore")
            for each in columns
        )
        return replace(self, columns=tuple(declared))


def first(column: Column, use: str = "ignore") -> Declared:
    """A column about which nothing was said yet but its type."""
    values = "edges" if column.kind in NUMBERS else "categories"
    text = "false\ntrue" if column.kind is Kind.BOOLEAN else ""
    return Declared(name=column.name, kind=column.kind, use=use, values=values, text=text)


class Drafts:
    """The drafts of a start folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.state = folder.start / STATE
        if self.state.is_symlink():
            raise InvalidArgument(f"studio: {STATE} in the start folder is a link. Remove it: the studio writes there.")

    def all(self) -> list[Draft]:
        """Every draft that can be read."""
        found = []
        for path in sorted(self.state.glob("*.json")) if self.state.is_dir() else []:
            try:
                found.append(self.load(path.stem))
            except DpbayesError:
                continue
        return found

    def load(self, name: str) -> Draft:
        """One draft."""
        path = self.state / f"{name}.json"
        if not re.fullmatch(r"[a-z0-9-]{1,60}", name) or not path.is_file() or path.is_symlink():
            raise InvalidArgument("studio: there is no such data set in progress. Start from the data sets.")
        try:
            return codec.from_fields(Draft, json.loads(path.read_text(encoding="utf-8")), "draft")
        except (OSError, ValueError):
            raise InvalidArgument(
                "studio: the file of this draft cannot be read. Start again from the table."
            ) from None

    def save(self, draft: Draft) -> Draft:
        """Keep a draft."""
        with writing():
            self.state.mkdir(mode=0o700, exist_ok=True)
            text = json.dumps(codec.fields_record(draft), indent=1, ensure_ascii=False)
            files.write(self.state / f"{draft.name}.json", text + "\n")
        return draft

    def new(self, wanted: str, **said: str) -> Draft:
        """A draft under a free name."""
        stem = re.sub(r"[^a-z0-9]+", "-", wanted.casefold()).strip("-")[:40] or "data"
        name, number = stem, 1
        while (self.state / f"{name}.json").exists():
            number += 1
            name = f"{stem}-{number}"
        return self.save(Draft(name=name, **said))  # type: ignore[arg-type]

    def forget(self, draft: Draft) -> None:
        """Take a draft off the list."""
        with writing():
            (self.state / f"{draft.name}.json").unlink(missing_ok=True)

    def schema(self, draft: Draft) -> Schema:
        """The schema file of a draft, which must have been written by now."""
        if not draft.schema:
            raise SchemaError("Schema: the columns are not declared yet. Declare them first.")
        return Schema.load(self.folder.inside(draft.schema))

    def write_schema(self, draft: Draft, schema: Schema) -> Draft:
        """Write the schema file. A file that the studio did not write, and that says something else, is left alone."""
        name = draft.schema or f"{draft.name}.toml"
        number = 1
        while not self._may_write(name, schema):
            number += 1
            name = f"{draft.name}-{number}.toml"
        path = self.folder.inside(name)
        if not path.exists() or Schema.load(path) != schema:
            with writing():
                files.write(path, OURS + schema.to_toml())
        return replace(draft, schema=self.folder.name(path))

    def _may_write(self, name: str, schema: Schema) -> bool:
        path = self.folder.inside(name)
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else OURS
            return text.startswith(OURS) or Schema.load(path) == schema
        except (OSError, UnicodeError, DpbayesError):
            return False
