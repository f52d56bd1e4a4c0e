"""The schema file: short to write, and read into the record whose digest ledgers keep, which does not change.

A list of texts is categories, a list of numbers edges, a list of days dates; a table says more. The form of 0.2.0,
with its ``[[attribute]]`` sections, is read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from dpbayes.base import toml
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.base.toml import Faults, Place, key_text, unknown_key, value_text
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.unit import Unit

if TYPE_CHECKING:
    from dpbayes.schema.schema import Schema

KEYS = ("id", "unit", "person", "records", "records_guess", "attributes", "margin", "impossible", "within")
OLD_KEYS = ("format", "adjacency", "max_rows", "attribute")

RULES = {"unknown": "other", "missing": "category"}
"""What an attribute says where its file says nothing."""

WIDTH = 110
"""Characters up to which an attribute is written on one line."""


def record(text: str) -> tuple[dict[str, object], Faults]:
    """The record that a file stands for, and what is wrong with it so far, each with its line."""
    table, places = toml.loads(text), toml.places(text)
    faults = Faults("Schema", places)
    for key in table:
        if key not in (*KEYS, *OLD_KEYS):
            faults.add(f"the schema has {unknown_key(key, KEYS)}", key)
    said = {key: value for key, value in table.items() if key in (*KEYS, *OLD_KEYS)}
    _read_unit(said, faults)
    if "attributes" in said:
        if "attribute" in said:
            faults.add("it has both [attributes] and [[attribute]]. Keep [attributes].", "attribute")
        listed = said.pop("attributes")
        if not isinstance(listed, dict):
            faults.add('write attributes as a table: [attributes], then sex = ["F", "M"].', "attributes")
            listed = {}
        said["attribute"] = [_read(name, value, faults) for name, value in listed.items()]
        faults.lines = {**_lines(places, list(listed)), **faults.lines}
    return said, faults


def _read_unit(said: dict[str, object], faults: Faults) -> None:
    """The adjacency and the most rows of a person, where the file has a unit."""
    if "unit" not in said:
        if "adjacency" not in said:
            faults.add('the schema lacks the key \'unit\'. Add unit = "replace-one", or "add-remove".')
            said["adjacency"] = "replace-one"
        return
    if said.keys() & {"adjacency", "max_rows"}:
        faults.add("it has a unit, and adjacency or max_rows beside it. Keep the unit.", "unit")
    try:
        said |= Unit.of(said.pop("unit")).record()
    except InvalidArgument as problem:
        faults.add(str(problem).replace("Unit: ", "", 1), "unit")
        said["adjacency"] = "replace-one"


def _read(name: str, value: object, faults: Faults) -> dict[str, object]:
    """One attribute: a list of what it declares, or a table."""
    if isinstance(value, dict):
        if "name" in value:
            faults.add(f"attribute {name!r} has its name already. Leave the key 'name' out.", "attributes", name)
        return {**value, "name": name}
    if not isinstance(value, list):
        faults.add(f"attribute {name!r} needs a list of categories or of edges, or a table.", "attributes", name)
        return {"name": name, "categories": ["?"]}
    kinds = {_kind(each) for each in value} or {"categories"}
    if len(kinds) > 1:
        faults.add(f"attribute {name!r} mixes {' and '.join(sorted(kinds))}. Put all categories in quotes.",
                   "attributes", name)  # fmt: skip
        return {"name": name, "categories": ["?"]}
    return {"name": name, kinds.pop(): value}


def _kind(value: object) -> str:
    if isinstance(value, date):
        return "dates"
    return "edges" if isinstance(value, (int, float)) and not isinstance(value, bool) else "categories"


def _lines(places: Mapping[Place, int], names: list[str]) -> dict[Place, int]:
    """Where the parts of attributes are written, by the places that they have in the record."""
    found: dict[Place, int] = {}
    for path, line in places.items():
        if path[:1] == ("attributes",) and len(path) > 1 and path[1] in names:
            place = ("attribute", names.index(str(path[1])))
            found[(*place, *path[2:])] = line
            found[place] = min(found.get(place, line), line)
    return found


def text(schema: Schema) -> str:
    """The text of a schema file."""
    unit = schema.unit
    head: dict[str, object] = {"id": schema.id, "unit": unit.text, "person": unit.person}
    head |= {"records": schema.records, "records_guess": schema.records_guess}
    lines = [f"{key} = {value_text(value)}" for key, value in head.items() if value is not None]
    entries = "\n".join(entry(attribute) for attribute in schema.attributes)
    rest = {key: value for key, value in schema.table().items() if key in ("margin", "impossible", "within")}
    return "\n".join(lines) + f"\n\n[attributes]\n{entries}\n" + (toml.dumps(rest) if rest else "")


def entry(attribute: Attribute) -> str:
    """One attribute below ``[attributes]``: on one line if it is short, or else a line for each key.

    >>> print(entry(Attribute(name="income", categories=("low", "high"), unknown="drop")))
    income = { categories = ["low", "high"], unknown = "drop" }
    """
    said, key = _keys(attribute), key_text(attribute.name)
    if list(said) in (["categories"], ["edges"], ["dates"]):
        return f"{key} = {next(iter(said.values()))}"
    line = f"{key} = {{ {', '.join(f'{name} = {value}' for name, value in said.items())} }}"
    return line if len(line) <= WIDTH else "\n".join(f"{key}.{name} = {value}" for name, value in said.items())


def _keys(attribute: Attribute) -> dict[str, str]:
    """The keys of an attribute that say something, with their values as text."""
    table = attribute.table()
    return {key: value_text(table[key]) for key in table if key != "name" and table[key] != RULES.get(key)}


def with_attribute(file: str, attribute: Attribute) -> str:
    """The file with one attribute replaced, or added after the others; the rest, comments included, stays as it is."""
    lines, listed = (file if file.endswith("\n") else file + "\n").splitlines(keepends=True), toml.loads(file)
    places, old = toml.places(file), "attribute" in listed
    own: Place = ("attributes", attribute.name)
    if old:
        names = [each.get("name") for each in listed["attribute"]]  # type: ignore[attr-defined]  # it was read before
        own = ("attribute", names.index(attribute.name) if attribute.name in names else len(names))
    mine = [line - 1 for path, line in places.items() if path[:2] == own]
    family = mine or [line - 1 for path, line in places.items() if path[:1] == own[:1]]
    if not family:
        return "".join([*lines, "\n[attributes]\n", entry(attribute), "\n"])
    end = min((line - 1 for line in places.values() if line - 1 > max(family)), default=len(lines))
    while end > max(family) + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1  # remarks before what follows belong to it
    start = min(mine, default=end)
    header = next((line for line in reversed(lines[: start + len(mine[:1])]) if line.lstrip().startswith("[")), "")
    written = _block(attribute, header.strip(), old=old)
    return "".join([*lines[:start], written.lstrip("\n") if mine else written, *lines[end:]])


def _block(attribute: Attribute, header: str, *, old: bool) -> str:
    """An attribute as the section that it goes into has it."""
    if old:
        return toml.dumps({"attribute": [attribute.table()]})
    if header.startswith("[attributes]"):
        return entry(attribute) + "\n"
    keys = [f"{name} = {value}\n" for name, value in _keys(attribute).items()]
    name = f"attributes.{key_text(attribute.name)}"
    return f"[{name}]\n{''.join(keys)}" if header else "".join(f"{name}.{key}" for key in keys)


def check_same(schema: Schema, attribute: Attribute) -> None:
    """Refuse a file that does not say what was to be written into it."""
    if attribute.name not in schema.names or schema[attribute.name] != attribute:
        raise SchemaError(f"Schema: {attribute.name!r} could not be written into this file. Write it by hand.")
