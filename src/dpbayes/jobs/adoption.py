"""Bought categories and edges, written into a schema as what they are."""

from __future__ import annotations

from dataclasses import replace

from dpbayes.domain import toml
from dpbayes.domain.attribute import LONGEST_NOTE, Attribute
from dpbayes.domain.schema import Schema
from dpbayes.errors import ReleaseError, SchemaError
from dpbayes.jobs.edges import releveled
from dpbayes.release.format import Release
from dpbayes.release.verify import verify
from dpbayes.tables.skeleton import section


def adopted(release: Release, text: str) -> tuple[str, Attribute]:
    """The text of a schema file with what a release bought, and the attribute that was added or replaced.

    The rest of the file, comments included, stays as it is.
    """
    if release.kind not in ("categories", "edges"):
        raise ReleaseError(
            f"Schema: expected a release of categories or edges, got one of {release.kind}. Buy them with `discover`."
        )
    faults = [check for check in verify(release).checks if not check.passed]
    if faults:
        raise ReleaseError(f"Schema: the release does not verify: {faults[0].name}: {faults[0].detail}.")
    schema = Schema.from_toml(text)
    if (release.dataset, release.unit) != (schema.id, schema.unit):
        raise SchemaError(
            f"Schema: the release is about {release.dataset!r} ({release.unit}), the schema about {schema.id!r} "
            f"({schema.unit}). Use the schema that it was bought with."
        )
    made = bought(release, schema)
    changed = _with_section(text, made, schema)
    Schema.from_toml(changed)
    return changed, made


def bought(release: Release, schema: Schema) -> Attribute:
    """The attribute that a release of categories or edges declares, with where it comes from."""
    (answer,) = release.answers
    name = str(release.job["column"])
    if not answer.values:
        raise ReleaseError(
            f"Schema: no category of {name!r} was common enough to be found. Declare them, or buy with more budget."
        )
    source = f"bought: release {release.id} of {release.created[:10]}, {release.promise}"[:LONGEST_NOTE]
    known = schema[name] if name in schema.names else Attribute(name=name, categories=("?",))
    values = {release.kind: answer.values}
    return replace(releveled(known, **values), source=source)


def _with_section(text: str, attribute: Attribute, schema: Schema) -> str:
    """The file with one section replaced, or added at the end of the attributes."""
    lines, places = text.splitlines(keepends=True), toml.places(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if attribute.name not in schema.names:
        return "".join(lines) + section(attribute)
    start = places["attribute", schema.names.index(attribute.name)] - 1
    headers = sorted(line - 1 for path, line in places.items() if lines[line - 1].lstrip().startswith("["))
    end = next((line for line in headers if line > start), len(lines))
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1  # remarks before the next section belong to it
    return "".join(lines[:start]) + section(attribute).lstrip("\n") + "".join(lines[end:])
